"""Sessions of a model: implementations of nodes are found at the first call and then only run.

An evaluator serves one call at a time, because nodes cache facts about the last call. Concurrent
threads get one evaluator each.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rnncli.backends.threads import allowed
from rnncli.errors import Unsupported
from rnncli.limits import UNLIMITED, budget, deadline
from rnncli.models import evaluator
from rnncli.models.declarations import check_inputs
from rnncli.models.hosts import ONNX
from rnncli.models.loading import as_model
from rnncli.models.recurrent_node import EvaluationSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
        self._last: tuple[Any, ...] = ()  # kinds that are compared in half the time of a look-up
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
        self._check(inputs)
        try:
            own = self._idle.pop()  # no other thread gets it
        except IndexError:
            own = self._prepared()
        made = evaluator.outputs(own, inputs)
        if len(self._idle) < MOST_KEPT:  # what failed halfway is not used again
            self._idle.append(own)
        return made

    def _check(self, inputs: Mapping[str, Any]) -> None:
        """Check inputs against the graph's declarations, once per kind of inputs."""
        try:
            kinds = tuple([(name, type(v), v.dtype, v.shape) for name, v in inputs.items()])
            if kinds == self._last or kinds in self._fitting:
                self._last = kinds
                return
        except (AttributeError, TypeError):  # what is no array
            kinds = ()
        check_inputs(self._model, inputs)
        if len(self._fitting) >= MOST_SHAPES:
            self._fitting.clear()
        if len(kinds) == len(inputs):
            self._fitting.add(kinds)


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
            stack.enter_context(budget.limited(limits.max_memory))
        if limits.timeout is not None:
            stack.enter_context(deadline.timed(limits.timeout))
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
