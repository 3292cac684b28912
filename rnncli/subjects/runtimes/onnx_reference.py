"""The reference evaluator of the onnx package, https://onnx.ai/onnx/api/reference.html."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnx.reference import ReferenceEvaluator

from rnncli.subjects.runtime import Prepared, known_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector


class OnnxReference:
    """Runs the reference evaluator; without settings, on NumPy's own number of threads."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:  # noqa: ARG002
        known_settings(settings, ())

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": onnx.__version__}

    def prepare(self, vector: Vector) -> Prepared:
        """Create an evaluator for the model."""
        return _bound(_evaluator(vector), vector)

    def open(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Create an evaluator for any number of vectors."""
        evaluator = _evaluator(vector)
        return lambda asked: _bound(evaluator, asked).outputs()

    def run(self, vector: Vector) -> Tensors:
        """Evaluate the model."""
        return self.prepare(vector).outputs()


def _evaluator(vector: Vector) -> ReferenceEvaluator:
    return ReferenceEvaluator(onnx.load_model_from_string(vector.model))


def _bound(evaluator: ReferenceEvaluator, vector: Vector) -> Prepared:
    fed = vector.fed
    return Prepared(
        lambda: evaluator.run(None, fed),
        lambda outputs: dict(zip(evaluator.output_names, outputs, strict=True)),
    )
