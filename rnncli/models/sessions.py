"""Sessions: models or operators prepared once and called many times.

An evaluator serves one call at a time, because nodes cache facts about the last call. Concurrent
threads get one evaluator each.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from rnncli.backends.threads import allowed
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.limits import UNLIMITED, limited, timed
from rnncli.models import evaluator
from rnncli.models.evaluation_settings import ONNX, EvaluationSettings
from rnncli.models.loading import as_model
from rnncli.models.model import check_inputs, check_names
from rnncli.operators import OPERATORS, Operator, operator_named
from rnncli.operators.evaluation import OperatorSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.limits import Limits
    from rnncli.models.evaluator import Evaluator
    from rnncli.models.loading import ModelSource
    from rnncli.models.model import Model
    from rnncli.numerics import Array


MOST_KEPT = 4
"""Idle evaluators of a session that are kept at most, each with weights as its backend has them;
and sessions that are kept with a model."""

MOST_SHAPES = 64
"""Kinds of inputs that a session remembers to be as declared."""


class ModelSession:
    """A prepared model; threads may share it.

    Args:
        model: from `load_model`; what is altered in its protobuf later does not count.
        settings: how its recurrent nodes are evaluated.

    Attributes:
        inputs: the names that each call must pass.
        outputs: the names of the returned tensors, in the graph's order.
        held: the names of initializers, which calls may omit.

    Raises:
        InvalidRequest: a backend, mode or reading does not exist, or a node is malformed.
        Unsupported: a node has no implementation.
    """

    def __init__(self, model: Model, settings: EvaluationSettings) -> None:
        self._model, self._settings = replace(model), settings  # not to keep the caller's alive
        self._fitting: set[tuple[Any, ...]] = set()
        # Kinds that are compared in half the time of a look-up.
        self._last: tuple[Any, ...] | None = None
        self._idle = [self._prepared()]
        self.inputs = tuple(value.name for value in model.inputs)
        self.outputs = tuple(self._idle[0].output_names)
        self.held = frozenset(model.initializers)

    def _prepared(self) -> Evaluator:
        return evaluator.prepare(self._model, **self._settings._asdict())

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Evaluate the model.

        Args:
            inputs: every required input by name, and initializers to replace, if any.

        Returns:
            Every output of the graph by name.

        Raises:
            InvalidRequest: inputs do not fit the graph, or a node is invalid.
            Unsupported: a node cannot be evaluated here.
            Exhausted: it takes more memory or time than it may.
        """
        # Inputs are checked against the graph's declarations once per kind of inputs.
        try:
            kinds = tuple([(name, type(v), v.dtype, v.shape) for name, v in inputs.items()])
        except (AttributeError, TypeError):  # what is no array
            kinds = ()
        if not kinds or (kinds != self._last and kinds not in self._fitting):
            check_inputs(self._model, inputs)
            if len(self._fitting) >= MOST_SHAPES:
                self._fitting.clear()
            if kinds:
                self._fitting.add(kinds)
        self._last = kinds

        try:
            own = self._idle.pop()  # no other thread gets it
        except IndexError:
            own = self._prepared()
        made = own.outputs(inputs)
        if len(self._idle) < MOST_KEPT:  # what failed halfway is not used again
            self._idle.append(own)
        return made


_KEPT: WeakKeyDictionary[Model, list[tuple[EvaluationSettings, ModelSession]]] = WeakKeyDictionary()
_LOCK = Lock()


def session_of(model: Model, settings: EvaluationSettings) -> ModelSession:
    """Return the session cached with a model, one per settings.

    Raises:
        Unsupported: an output is not a tensor.
        RnncliError: as `ModelSession` does.
    """
    with _LOCK:
        kept = _KEPT.setdefault(model, [])
        found = [session for each, session in kept if each == settings]
    if found:
        return found[0]
    refuse_other_than_tensors(model)
    own = settings._replace(readings=dict(settings.readings))
    session = ModelSession(model, own)
    with _LOCK:
        kept[:] = [*kept, (own, session)][-MOST_KEPT:]
    return session


def evaluate_model(
    model: ModelSource,
    inputs: Mapping[str, Array],
    *,
    backend: str = "numpy",
    compute: str = "float64",
    readings: Mapping[str, str] | None = None,
    host: str = ONNX,
    limits: Limits = UNLIMITED,
) -> dict[str, Array]:
    """Evaluate a model.

    What the first call prepares is kept with a loaded model, for each `backend`, `compute`,
    `readings` and `host`; later calls only run the nodes. Threads may evaluate one model at the
    same time. A model whose protobuf is altered after its first call must be made anew:
    ``dataclasses.replace(model)``.

    Args:
        model: from `load_model`, a protobuf, a serialized one, or a path.
        inputs: every required input by name, and initializers to replace, if any.
        backend: which backend evaluates the recurrent nodes.
        compute: "float64" or "native".
        readings: for the nodes whose operator has them.
        host: what evaluates all other nodes: "onnx" or "onnxruntime".
        limits: memory is that of the nodes' outputs together; whatever it is, no tensor of more
            than 512 MiB is made from next to nothing. When the time is up, no further node, trip of
            a loop or block of a recurrence's steps is begun.

    Returns:
        Every output of the graph by name.

    Raises:
        InvalidRequest: the model is malformed, inputs do not fit the graph, no node has a reading,
            a node is invalid.
        Unsupported: a node cannot be evaluated here, or an output is no tensor.
        Exhausted: it takes more memory or time than it may.
    """
    session = session_of(
        as_model(model), EvaluationSettings(backend, compute, readings or {}, host)
    )
    with within(limits):
        return session.run(inputs)


@contextmanager
def within(limits: Limits) -> Iterator[None]:
    """Limit a run; what is not limited stays as it is."""
    with ExitStack() as stack:
        if limits.threads is not None:
            stack.enter_context(allowed(limits.threads))
        if limits.max_memory is not None:
            stack.enter_context(limited(limits.max_memory))
        if limits.timeout is not None:
            stack.enter_context(timed(limits.timeout))
        yield


def refuse_other_than_tensors(model: Model) -> None:
    """Raise if an output of a model is not a tensor.

    Raises:
        Unsupported: one is a sequence, an optional value or a map.
    """
    for value in model.proto.graph.output:
        kind = value.type.WhichOneof("value")
        if kind not in (None, "tensor_type"):
            raise Unsupported(
                f"{model.name}: output '{value.name}' is a {kind.removesuffix('_type')}; "
                "only tensors can be returned"
            )


# Names of operators, such as LSTM-14 or RNN, but not of files.
_NAME = re.compile(r"[A-Za-z]+(-\d+)?")


class PreparedTarget(Protocol):
    """A prepared model or operator."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    held: frozenset[str]

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Return the outputs by name."""


class Session:
    """A prepared model or operator, made by `rnncli.prepare` and called many times.

    A session has no state: the states of a streaming model are inputs and outputs of each call.
    Threads may call one session concurrently without waiting for each other.

    A session keeps its constant weights, of any size, and what backends derive from them at the
    first call: about as much memory again, or twice that in float64.

    Attributes:
        name: the name of the model or operator in messages.
        inputs: the names that each call must pass.
        outputs: the names of the returned tensors, in order.
        held: the names that calls may omit: initializers, and inputs passed to `prepare`.
    """

    def __init__(
        self,
        name: str,
        prepared: PreparedTarget,
        held: Mapping[str, Array],
        limits: Limits,
    ) -> None:
        self.name, self._prepared, self._held = name, prepared, held
        self.inputs = tuple(each for each in prepared.inputs if each not in self._held)
        self.outputs = prepared.outputs
        self.held = prepared.held.union(held)
        self._limits = limits
        self._is_limited = limits != UNLIMITED

    def __call__(self, /, *unnamed: Any, **inputs: Any) -> dict[str, Array]:
        """Evaluate: `session(X=x)["Y"]`; see `run` for names that are not Python identifiers.

        Raises:
            rnncli.errors.RnncliError: as `run` does, and if an input is given without its name.
        """
        if unnamed:
            names = ", ".join(name for name in self.inputs if name not in self.held)
            raise InvalidRequest(f"inputs are given by name, as session(X=x); they are {names}")
        return self.run(inputs)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Evaluate.

        Args:
            inputs: by name; they may replace those passed to `prepare`.

        Returns:
            The outputs by name.

        Raises:
            rnncli.errors.InvalidRequest: inputs do not fit, or a node is invalid.
            rnncli.errors.Unsupported: a node, or the backend, cannot evaluate this.
            rnncli.errors.Exhausted: it exceeds its limit of memory or time.
        """
        given = {**self._held, **inputs} if self._held else inputs
        if not self._is_limited:
            return self._prepared.run(given)
        with within(self._limits):
            return self._prepared.run(given)

    def __repr__(self) -> str:
        return f"<rnncli session {self.name}: {_listed(self.inputs)} -> {_listed(self.outputs)}>"


def prepare(
    what: ModelSource | Operator,
    /,
    *,
    backend: str = "numpy",
    compute: str = "float64",
    readings: Mapping[str, str] | None = None,
    host: str = ONNX,
    outputs: Sequence[str] | None = None,
    limits: Limits = UNLIMITED,
    **held: Any,
) -> Session:
    """Prepare a model or an operator for many calls.

    >>> import numpy as np
    >>> session = prepare("GRU-14", W=np.ones((1, 9, 2)), R=np.ones((1, 9, 3)), direction="reverse")
    >>> session(X=np.ones((5, 1, 2)))["Y_h"].shape
    (1, 1, 3)

    Args:
        what: a model: loaded, as a protobuf, serialized, or the path of its file; or an operator:
            a row of `rnncli.operators.OPERATORS`, or its name and version, `LSTM-14`.
        backend: the backend of recurrent nodes.
        compute: "float64" (all arithmetic in float64, each output rounded once) or "native".
        readings: choices on contested points of the specifications, by name.
        host: what evaluates the nodes of a model that are not recurrent: "onnx", its reference with
            rnncli's corrections, or "onnxruntime" (extra `runtimes`), in the model's own types.
        outputs: the requested outputs of an operator; None means all.
        limits: of each call; its threads are RNNCLI_THREADS, or 1, where they are not given, and
            its memory is that of the nodes' outputs.
        held: inputs shared by all calls, by name; for an operator also its attributes.

    Returns:
        A session: `session(X=x)` or `session.run({"X": x})` gives the outputs by name.

    Raises:
        rnncli.errors.InvalidRequest: the model is malformed, or something given does not exist or
            does not fit.
        rnncli.errors.InvalidOperator: what is given breaks the operator's specification.
        rnncli.errors.Unsupported: a node, or the backend, has no implementation here.
    """
    settings = EvaluationSettings(backend, compute, readings or {}, host)
    row = what if isinstance(what, Operator) else None
    if isinstance(what, str) and (what in OPERATORS or _NAME.fullmatch(what)):
        row = None if Path(what).exists() else operator_named(what)
    if row:
        names = {each.name for each in row.inputs}
        fed = {name: held.pop(name) for name in [*held] if name in names}
        prepared = OperatorSession(
            row,
            fed,
            attributes=held,
            outputs=outputs,
            readings=settings.readings,
            backend=backend,
            compute=compute,
        )
        return Session(row.name, prepared, {}, limits)
    model = as_model(what, "a model, the path of one, or an operator")
    if outputs is not None:
        raise InvalidRequest(f"{model.name}: outputs are chosen of operators; it returns all")
    refuse_other_than_tensors(model)
    check_names(model, held)
    fixed = {name: np.array(values) for name, values in held.items()}
    return Session(model.name, ModelSession(model, settings), fixed, limits)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
