"""A Python function as an implementation under test, called in this very process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, RnncliError
from rnncli.packs.attempt import Attempt, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.packs.vector import Vector

# By what else than an error of rnncli a function refuses a case.
REFUSALS = (NotImplementedError, ValueError)


class FunctionSubject:
    """A function from a vector to its outputs.

    It refuses a case by NotImplementedError, ValueError or an error of rnncli.

    Args:
        function: takes a vector; returns arrays by name, or in the order of
            `vector.record["outputs"]`.
        name: for reports.
        raises: whether any other exception is raised again, instead of being a crash of that case.
    """

    def __init__(
        self, function: Callable[[Vector], Any], name: str = "function", *, raises: bool = False
    ) -> None:
        self.name = name
        self._function = function
        self._raises = raises

    def describe(self) -> Mapping[str, str]:
        """Return nothing: a function has no version."""
        return {}

    def attempt(self, vector: Vector) -> Attempt:
        """Call the function on one vector.

        Raises:
            Exception: whatever the function raises that is no refusal, if `raises`; TypeError or
                InvalidRequest where it returns no outputs.
        """
        start = time.perf_counter()
        try:
            made = self._attempt(vector)
        except Exception as error:
            if self._raises:
                raise
            made = Attempt(Status.CRASHED, message=f"{type(error).__name__}: {error}")
        return replace(made, seconds=time.perf_counter() - start)

    def _attempt(self, vector: Vector) -> Attempt:
        try:
            outputs = self._function(vector)
        except (*REFUSALS, RnncliError) as refusal:
            return attempt_of(vector, refusal)
        if outputs is None:
            raise TypeError("the function returned None; it must return the outputs")
        return attempt_of(vector, outputs)

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Call the function on the data sets of one model, in turn."""
        return [self.attempt(vector) for vector in vectors]

    def close(self) -> None:
        """Leave the function as it is."""


def attempt_of(vector: Vector, outputs: Any) -> Attempt:
    """Return outputs, or the exception raised in their place, as an attempt.

    Args:
        vector: the case.
        outputs: arrays by name, or in the order of `vector.record["outputs"]`, a single one for a
            single output; or an exception, which is a refusal.

    Raises:
        InvalidRequest: they are neither arrays nor as many as are asked for.
    """
    if isinstance(outputs, Exception):
        return Attempt(Status.REFUSED, message=str(outputs) or type(outputs).__name__)
    named = outputs if isinstance(outputs, Mapping) else _in_order(vector, outputs)
    arrays = {name: np.asarray(values) for name, values in named.items()}
    for name, values in arrays.items():
        if values.dtype == object:
            raise InvalidRequest(f"{vector.id}: output '{name}' is not an array")
    return Attempt(Status.RAN, arrays)


def _in_order(vector: Vector, outputs: Any) -> dict[str, Any]:
    names = vector.record["outputs"]
    if isinstance(outputs, np.ndarray) and len(names) == 1:
        return {names[0]: outputs}
    if not isinstance(outputs, list | tuple) or len(outputs) != len(names):
        given = f"{len(outputs)}" if isinstance(outputs, list | tuple) else f"{outputs!r:.80}"
        raise InvalidRequest(
            f"{vector.id}: outputs must be arrays by name, or a list of {', '.join(names)}; "
            f"got {given}"
        )
    return dict(zip(names, outputs, strict=True))
