"""The reference evaluator of the onnx package, https://onnx.ai/onnx/api/reference.html."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnx.reference import ReferenceEvaluator

from rnncli.subjects.runtime import Prepared, TimedRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.packs.vector import Vector


class OnnxReference(TimedRuntime):
    """Runs the reference evaluator; without settings, on NumPy's own number of threads."""

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": onnx.__version__}

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Create an evaluator of the model."""
        evaluator = ReferenceEvaluator(onnx.load_model_from_string(vector.model))

        def bound(asked: Vector) -> Prepared:
            fed = asked.fed
            return Prepared(
                lambda: evaluator.run(None, fed),
                lambda outputs: dict(zip(evaluator.output_names, outputs, strict=True)),
            )

        return bound
