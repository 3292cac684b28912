"""A Python function as an implementation under test, called in this process."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, RnncliError
from rnncli.packs.vector import Attempt, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.packs.vector import Vector

# Exceptions, besides rnncli's own, by which a function refuses a case.
REFUSALS = (NotImplementedError, ValueError)


class FunctionSubject:
    """An implementation given as a function from a vector to its outputs.

    It refuses a case by raising NotImplementedError, ValueError or an RnncliError.

    Args:
        function: takes a vector; returns arrays by name, or in the order of
            `vector.record["outputs"]`.
        name: its name in reports.
        raises: whether any other exception propagates instead of counting as a crash of that case.
    """

    def __init__(
        self, function: Callable[[Vector], Any], name: str = "function", *, raises: bool = False
    ) -> None:
        self.name = name
        self._function = function
        self._raises = raises

    def describe(self) -> Mapping[str, str]:
        """Return an empty mapping: a function has no version."""
        return {}

    def attempt(self, vector: Vector) -> Attempt:
        """Call the function on a vector of its own, so that it changes nothing that is judged by.

        One that ends this process has crashed, as a program has that ends before its answer.

        Raises:
            Exception: if `raises`, any exception that is not a refusal; also TypeError or
                InvalidRequest if the function returns no outputs.
        """
        start = time.perf_counter()
        try:
            attempt_made = self._attempt(vector)
        except (Exception, SystemExit) as error:
            if self._raises:
                raise
            attempt_made = _crashed(error)
        return replace(attempt_made, seconds=time.perf_counter() - start)

    def _attempt(self, vector: Vector) -> Attempt:
        try:
            outputs = self._function(copy.deepcopy(vector))
        except (*REFUSALS, RnncliError) as refusal:
            return attempt_of(vector, refusal)
        if outputs is None:
            raise TypeError("the function returned None; it must return the outputs")
        return attempt_of(vector, outputs)

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Call the function on each data set of one model, in turn."""
        return [self.attempt(vector) for vector in vectors]

    def close(self) -> None:
        """Do nothing: a function holds no process."""


def attempt_of(vector: Vector, outputs: Any) -> Attempt:
    """Return outputs, or the exception raised instead of them, as an attempt.

    Args:
        vector: the case.
        outputs: arrays by name, or in the order of `vector.record["outputs"]`; one array for a
            single output; or an exception, which counts as a crash unless it refuses the case.

    Raises:
        InvalidRequest: an output is not an array, or their number is wrong.
    """
    if isinstance(outputs, (*REFUSALS, RnncliError)):
        return Attempt(Status.REFUSED, message=str(outputs) or type(outputs).__name__)
    if isinstance(outputs, Exception):
        return _crashed(outputs)
    named = outputs if isinstance(outputs, Mapping) else _in_order(vector, outputs)
    arrays = {name: np.asarray(values) for name, values in named.items()}
    for name, values in arrays.items():
        if values.dtype == object:
            raise InvalidRequest(f"{vector.id}: output '{name}' is not an array")
    return Attempt(Status.RAN, arrays)


def _crashed(error: BaseException) -> Attempt:
    return Attempt(Status.CRASHED, message=f"{type(error).__name__}: {error}")


def _in_order(vector: Vector, outputs: Any) -> dict[str, Any]:
    names = vector.record["outputs"]
    if isinstance(outputs, np.ndarray) and len(names) == 1:
        return {names[0]: outputs}
    if not isinstance(outputs, list | tuple) or len(outputs) != len(names):
        received = f"{len(outputs)}" if isinstance(outputs, list | tuple) else f"{outputs!r:.80}"
        raise InvalidRequest(
            f"{vector.id}: outputs must be arrays by name, or a list of {', '.join(names)}; "
            f"got {received}"
        )
    return dict(zip(names, outputs, strict=True))
