"""onnx2pytorch, https://github.com/Talmaj/onnx2pytorch, which converts a model to a PyTorch module.

A recurrent layer of the module holds its weights and lengths, so these are made constants of the
model, which is converted again for a call that has others.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import onnx
import torch
from onnx import numpy_helper
from onnx2pytorch import ConvertModel

from rnncli.subjects.runtime import Prepared, TimedRuntime
from rnncli.subjects.runtimes.torch_layers import array_of, tensor_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

HELD = ("W", "R", "B", "P", "sequence_lens")


class Onnx2PyTorch(TimedRuntime):
    """Runs the converted module; it has no settings."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        super().__init__(settings, threads)
        torch.set_num_threads(threads)

    def describe(self) -> Mapping[str, str]:
        """Return the versions of the converter and of PyTorch."""
        return {"version": version("onnx2pytorch"), "torch": torch.__version__}

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Convert the model, once for all calls of the same weights and lengths."""
        own = () if vector.record.is_whole_model else HELD
        modules: dict[tuple[bytes, ...], Any] = {}

        def bound(asked: Vector) -> Prepared:
            held = {name: asked.fed[name] for name in own if name in asked.fed}
            key = tuple(values.tobytes() for values in held.values())
            if key not in modules:
                loaded = onnx.load_model_from_string(vector.model)
                loaded.graph.initializer.extend(
                    numpy_helper.from_array(values, name) for name, values in held.items()
                )
                modules[key] = ConvertModel(loaded).eval()
            module = modules[key]
            fed = [tensor_of(asked.fed[name]) for name in module.input_names]

            def call() -> Any:
                with torch.inference_mode():
                    return module(*fed)

            def named(made: Any) -> Tensors:
                outputs = made if len(module.output_names) > 1 else [made]
                return dict(zip(module.output_names, map(array_of, outputs), strict=True))

            return Prepared(call, named)

        return bound
