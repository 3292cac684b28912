"""A backend of this package, as a benchmark calls it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from rnncli import __version__
from rnncli.backends import backend_named
from rnncli.models.evaluation_settings import ONNX, EvaluationSettings
from rnncli.models.evaluator import node_seconds, run
from rnncli.models.evaluator import prepare as prepare_model
from rnncli.models.loading import model_from
from rnncli.models.sessions import prepare
from rnncli.operators import evaluate
from rnncli.operators.evaluation import compute_named
from rnncli.recurrence.recurrence import lock
from rnncli.subjects.runtime import Prepared, known_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.models.sessions import Session
    from rnncli.packs.vector import Vector

BACKEND, COMPUTE, HOST, CALL = "backend", "compute", "host", "call"
# What `rnncli bench` times -> the settings `call`, each with what tables add to a backend's name.
CALLS: Mapping[str, Mapping[str, str]] = {
    "evaluate": {"evaluate": ""},
    "bound": {"bound": ""},
    "session": {"session": " session", "model": " model session"},
}


class Own:
    """A backend of this package, called in one of several ways.

    Settings are ``backend``, ``compute``, ``host`` and ``call``: "evaluate" checks and binds the
    node in each call, as `rnncli.evaluate` does; "session" and "model" call what `rnncli.prepare`
    makes of the operator, weights held, and of the one-node model that runtimes get; "bound" calls
    the backend alone, as the session of a runtime calls its kernel. Where the vector is a model,
    "evaluate" prepares its nodes as well, and leaves out what a session checks. Threads are those
    of RNNCLI_THREADS.
    """

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:  # noqa: ARG002
        known_settings(settings, (BACKEND, COMPUTE, HOST, CALL))
        self._backend, self._compute = settings[BACKEND], settings[COMPUTE]
        self._call, self._host = settings[CALL], settings.get(HOST, ONNX)
        backend_named(self._backend)

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        return {"version": f"rnncli {__version__}", COMPUTE: self._compute}

    def prepare(self, vector: Vector) -> Prepared:
        """Return a call of the node, or of the model where the record tells of no node."""
        is_node = "operator" in vector.record
        if self._call == "model" or (self._call == "session" and not is_node):
            return self._session(
                vector,
                prepare(
                    vector.model, backend=self._backend, compute=self._compute, host=self._host
                ),
            )
        if not is_node:
            return self._model(vector)
        node = vector.node
        if self._call == "session":
            held: dict[str, Any] = {name: vector.inputs[name] for name in vector.initializers}
            session = prepare(
                node.operator,
                outputs=node.outputs,
                backend=self._backend,
                compute=self._compute,
                **held,
                **node.attributes,
            )
            return self._session(vector, session)
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
        if self._call == "evaluate":
            return Prepared(whole, _as_they_are)
        whole()  # which refuses what the backend cannot do
        return self._bound(vector)

    def _session(self, vector: Vector, session: Session) -> Prepared:
        return Prepared(partial(session.run, vector.fed), _as_they_are)

    def _model(self, vector: Vector) -> Prepared:
        model = model_from(ModelProto.FromString(vector.model))
        evaluator = prepare_model(
            model, backend=self._backend, compute=self._compute, host=self._host
        )
        names = evaluator.output_names
        return Prepared(
            partial(run, evaluator, vector.inputs),
            lambda outputs: dict(zip(names, outputs, strict=True)),
        )

    def node_seconds(self, vector: Vector, runs: int) -> dict[str, float]:
        """Return what the nodes of each operator of a model take in one run."""
        model = model_from(ModelProto.FromString(vector.model))
        return node_seconds(
            model,
            vector.inputs,
            runs,
            EvaluationSettings(self._backend, self._compute, {}, self._host),
        )

    def _bound(self, vector: Vector) -> Prepared:
        recurrence = vector.recurrence
        run, mode = backend_named(self._backend).run, compute_named(self._compute)
        return Prepared(lambda: run(recurrence, mode), vector.node.outputs_of)


def _as_they_are(outputs: Tensors) -> Tensors:
    return outputs
