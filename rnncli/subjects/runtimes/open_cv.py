"""The DNN module of OpenCV with its engine of version 5, https://docs.opencv.org/5.x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from rnncli.subjects.runtime import LoadingRuntime, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector


class OpenCV(LoadingRuntime):
    """Runs the engine of version 5, without settings; the classic one refuses weights as inputs."""

    refuses_by = (cv2.error,)

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        super().__init__(settings, threads)
        cv2.setNumThreads(threads)
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)

    def describe(self) -> Mapping[str, str]:
        """Return the version and the engine."""
        return {"version": cv2.__version__, "engine": "new"}

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load the model for any number of vectors."""
        dtype = vector.record.dtype
        if dtype != "float32":
            raise Refusal(f"its recurrent layers compute in float32 alone, not in {dtype}")
        net = cv2.dnn.readNetFromONNX(np.frombuffer(vector.model, np.uint8), cv2.dnn.ENGINE_NEW)
        names = net.getUnconnectedOutLayersNames()
        if net.empty() or not names:
            raise Refusal("its importer cannot read the node")

        def run(asked: Vector) -> Tensors:
            for name, values in asked.fed.items():
                net.setInput(values, name)
            return dict(zip(names, map(np.copy, net.forward(names)), strict=True))

        return run

    @staticmethod
    def reason(error: Any) -> str:
        """Return the message without the place in the source that comes before it."""
        return str(error.err or error).strip()
