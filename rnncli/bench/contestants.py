"""The implementations that can be compared, and a backend of this package as one of them."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import ModelProto

from rnncli import __version__
from rnncli.backends import backend_named, known_backends
from rnncli.backends.backend_table import FAMILIES
from rnncli.errors import InvalidRequest, Unsupported, did_you_mean
from rnncli.models.evaluation_settings import ONNX, EvaluationSettings
from rnncli.models.evaluator import node_seconds
from rnncli.models.evaluator import prepare as prepare_model
from rnncli.models.loading import model_from
from rnncli.models.sessions import prepare
from rnncli.operators import evaluate
from rnncli.operators.evaluation import compute_named
from rnncli.recurrence.recurrence import lock
from rnncli.subjects.runtime import Prepared, known_settings
from rnncli.subjects.runtimes import row_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        self._how: dict[str, Any] = {"backend": self._backend, "compute": self._compute}
        backend_named(self._backend)

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        return {"version": f"rnncli {__version__}", COMPUTE: self._compute}

    def prepare(self, vector: Vector) -> Prepared:
        """Return a call of the node, or of the model where the record tells of no node."""
        is_node = not vector.record.is_whole_model
        if self._call == "model" or (self._call == "session" and not is_node):
            return _in_session(vector, prepare(vector.model, **self._how, host=self._host))
        if not is_node:
            model = model_from(ModelProto.FromString(vector.model))
            evaluator = prepare_model(model, **self._how, host=self._host)
            return Prepared(partial(evaluator.outputs, vector.inputs), _as_they_are)
        node = vector.node
        if self._call == "session":
            held: dict[str, Any] = {name: vector.inputs[name] for name in vector.initializers}
            with_weights = {**self._how, **held, **node.attributes}
            return _in_session(vector, prepare(node.operator, outputs=node.outputs, **with_weights))
        for name in vector.initializers:  # the model that runtimes get holds them
            lock(vector.inputs[name])
        whole = partial(
            evaluate,
            node.operator,
            vector.inputs,
            attributes=node.attributes,
            outputs=node.outputs,
            readings=node.readings,
            **self._how,
        )
        if self._call == "evaluate":
            return Prepared(whole, _as_they_are)
        whole()  # which refuses what the backend cannot do
        recurrence = vector.recurrence
        run, mode = backend_named(self._backend).run, compute_named(self._compute)
        return Prepared(lambda: run(recurrence, mode), vector.node.outputs_of)

    def node_seconds(self, vector: Vector, runs: int) -> dict[str, float]:
        """Return what the nodes of each operator of a model take in one run."""
        model = model_from(ModelProto.FromString(vector.model))
        settings = EvaluationSettings(self._backend, self._compute, {}, self._host)
        return node_seconds(model, vector.inputs, runs, settings)


def _in_session(vector: Vector, session: Session) -> Prepared:
    return Prepared(partial(session.run, vector.fed), _as_they_are)


def _as_they_are(outputs: Tensors) -> Tensors:
    return outputs


OWN = "rnncli.bench.contestants:Own"
# The default runtimes; ratios are relative to the first that is installed.
USUAL = ("onnxruntime", "openvino", "torch")
USUAL_BACKENDS = ("numpy", "numba")
# Settings for the fastest single inference.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "onnxruntime": {"linear": "contrib"},
    "openvino": {"PERFORMANCE_HINT": "LATENCY"},
}


class Contestant(NamedTuple):
    """An implementation in a benchmark."""

    name: str  # the runtime's or backend's name
    where: str  # "module:attribute" of a factory of `rnncli.subjects.runtime.Preparing`
    settings: Mapping[str, str]  # the factory's settings
    is_own: bool = False  # whether it is a backend of this package


def runtimes(names: Sequence[str] | None) -> tuple[list[Contestant], dict[str, str]]:
    """Return the named runtimes, or the installed defaults and the reasons for missing ones.

    Raises:
        InvalidRequest: a name is unknown.
        Unsupported: a named runtime is not installed.
    """
    found, missing = [], {}
    for name in USUAL if names is None else names:
        row = row_of(name)
        if not row.package or find_spec(row.package):
            found.append(Contestant(name, row.where, SETTINGS.get(name, {})))
        elif names is not None:
            how = row.install or row.origin
            raise Unsupported(f"runtime '{name}' is not installed: {how}")
        else:
            missing[name] = row.install or row.origin
    return found, missing


def backends(
    names: Sequence[str] | None, compute: str, call: str = "evaluate", host: str = ONNX
) -> list[Contestant]:
    """Return backends of this package: the named ones, or the defaults that are available.

    Tables add a host that is not ONNX's to a backend's name.

    Raises:
        InvalidRequest: a name is unknown.
    """
    ground = {} if host == ONNX else {HOST: host}
    if names is None:  # those that are known and whose package, if they have one, is installed
        names = [each for each in USUAL_BACKENDS if each in known_backends() and find_spec(each)]
    for name in names:
        if name not in known_backends() and name.partition(":")[0] not in FAMILIES:
            near = did_you_mean(name, known_backends())
            raise InvalidRequest(f"unknown backend '{name}'{near} ({', '.join(known_backends())})")
    return [
        Contestant(
            " ".join((f"{name}{suffix}", *ground.values())),
            OWN,
            {BACKEND: name, COMPUTE: compute, CALL: each, **ground},
            is_own=True,
        )
        for name in names
        for each, suffix in CALLS[call].items()
    ]
