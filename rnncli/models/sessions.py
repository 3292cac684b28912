"""Sessions, made by `rnncli.prepare`: models or operators prepared once and called many times."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.limits import UNLIMITED
from rnncli.models.declarations import check_names
from rnncli.models.hosts import ONNX
from rnncli.models.loading import as_model
from rnncli.models.recurrent_node import EvaluationSettings
from rnncli.models.session import ModelSession, refuse_other_than_tensors, within
from rnncli.operators import OPERATORS, Operator, operator_named
from rnncli.operators.prepared_node import OperatorSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.limits import Limits
    from rnncli.models.loading import ModelSource
    from rnncli.numerics import Array


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

    def __call__(self, /, **inputs: Any) -> dict[str, Array]:
        """Evaluate: `session(X=x)["Y"]`; see `run` for names that are not Python identifiers.

        Raises:
            rnncli.errors.RnncliError: as `run` does.
        """
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
    if row := _operator(what):
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


def _operator(what: object) -> Operator | None:
    """Return an operator given by row or name; a name is one that no file has."""
    if isinstance(what, Operator):
        return what
    is_name = isinstance(what, str) and (what in OPERATORS or _NAME.fullmatch(what))
    return operator_named(str(what)) if is_name and not Path(str(what)).exists() else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
