"""The DNN module of OpenCV with its engine of version 5, https://docs.opencv.org/5.x."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from rnncli.subjects.runtime import Refusal, known_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector


class OpenCV:
    """Runs the engine of version 5, without settings; the classic one refuses weights as inputs."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        known_settings(settings, ())
        cv2.setNumThreads(threads)
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)

    def describe(self) -> Mapping[str, str]:
        """Return the version and the engine."""
        return {"version": cv2.__version__, "engine": "new"}

    def open(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load the model for any number of vectors."""
        dtype = vector.record["dtype"]
        if dtype != "float32":
            raise Refusal(f"its recurrent layers compute in float32 alone, not in {dtype}")
        try:
            net = cv2.dnn.readNetFromONNX(np.frombuffer(vector.model, np.uint8), cv2.dnn.ENGINE_NEW)
            names = net.getUnconnectedOutLayersNames()
        except cv2.error as error:
            raise Refusal(_sentence(error)) from error
        if net.empty() or not names:
            raise Refusal("its importer cannot read the node")

        def run(asked: Vector) -> Tensors:
            try:
                for name, values in asked.fed.items():
                    net.setInput(values, name)
                return dict(zip(names, map(np.copy, net.forward(names)), strict=True))
            except cv2.error as error:
                raise Refusal(_sentence(error)) from error

        return run

    def run(self, vector: Vector) -> Tensors:
        """Load the model and run it."""
        return self.open(vector)(vector)


def _sentence(error: cv2.error) -> str:
    """Return the reason, without the place in the source that comes before it."""
    return str(error.err or error).strip()
