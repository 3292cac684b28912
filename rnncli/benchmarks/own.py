"""A backend of this package, as a benchmark calls it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onnx import ModelProto

from rnncli import __version__
from rnncli.backends import backend_named
from rnncli.graph.evaluator import prepare, run
from rnncli.graph.loading import model_from
from rnncli.graph.node_times import node_seconds
from rnncli.operators import evaluate
from rnncli.operators.evaluation import compute_named
from rnncli.recurrence.recurrence import lock
from rnncli.subjects.runtime import Prepared, known_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.formats.format import Tensors
    from rnncli.vectors.vector import Vector

BACKEND, COMPUTE, BOUND = "backend", "compute", "bound"


class Own:
    """Evaluates the node of a vector's record as `rnncli.evaluate` does, or its whole model.

    Settings are ``backend``, ``compute`` and ``bound``: "1" when the node is to be checked and
    bound once, so that only the backend is called, as the session of a runtime calls its kernel.
    Threads are those of RNNCLI_THREADS.
    """

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:  # noqa: ARG002
        known_settings(settings, (BACKEND, COMPUTE, BOUND))
        self._backend, self._compute = settings[BACKEND], settings[COMPUTE]
        self._is_bound = settings[BOUND] == "1"
        backend_named(self._backend)

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        return {"version": f"rnncli {__version__}", COMPUTE: self._compute}

    def prepare(self, vector: Vector) -> Prepared:
        """Return a call of the node, or of the model where the record tells of no node."""
        if "operator" not in vector.record:
            return self._model(vector)
        node = vector.node
        for name in vector.initializers:  # the model that runtimes get holds them
            lock(vector.inputs[name])
        whole = partial(
            evaluate,
            node.operator,
            vector.inputs,
            attributes=node.attributes,
            outputs=node.outputs,
            readings=node.readings,
            backend=self._backend,
            compute=self._compute,
        )
        if not self._is_bound:
            return Prepared(whole, _as_they_are)
        whole()  # which refuses what the backend cannot do
        return self._bound(vector)

    def _model(self, vector: Vector) -> Prepared:
        model = model_from(ModelProto.FromString(vector.model))
        evaluator = prepare(model, backend=self._backend, compute=self._compute)
        names = evaluator.output_names
        return Prepared(
            partial(run, evaluator, vector.inputs),
            lambda outputs: dict(zip(names, outputs, strict=True)),
        )

    def node_seconds(self, vector: Vector, runs: int) -> dict[str, float]:
        """Return what the nodes of each operator of a model take in one run."""
        model = model_from(ModelProto.FromString(vector.model))
        return node_seconds(
            model, vector.inputs, runs, backend=self._backend, compute=self._compute
        )

    def _bound(self, vector: Vector) -> Prepared:
        recurrence = vector.recurrence
        run, mode = backend_named(self._backend).run, compute_named(self._compute)
        return Prepared(lambda: run(recurrence, mode), vector.node.outputs_of)


def _as_they_are(outputs: Tensors) -> Tensors:
    return outputs
