"""The backend protocol and bound calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from rnncli.numerics import FLOAT64
from rnncli.recurrence.recurrence import Compute, working_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

    BoundCall: TypeAlias = Callable[
        [Array, Sequence[Array | None], Array | None], tuple[Array | None, ...] | None
    ]

__all__ = ["FLOAT64", "QUANTISED", "Backend", "Compute", "bound_call", "working_dtype"]


QUANTISED = "does not evaluate quantised states; numpy, reference and certified do"
"""Why a backend refuses recurrences that are quantised."""


class Backend(Protocol):
    """An evaluator of recurrences, without state between calls.

    Attributes:
        name: as `--backend` spells it.
        summary: one line for `rnncli backends`.
    """

    name: str
    summary: str

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why the backend cannot evaluate a recurrence, or None if it can."""

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate a recurrence for which `supports` returned None."""


def bound_call(backend: Backend, recurrence: Recurrence, compute: Compute) -> BoundCall:
    """Return a fast path for recurrences like one that the backend has evaluated.

    Such recurrences have the same settings and weight arrays, X and initial states of the same
    dtypes and shapes, and lengths if it has some. A backend offers a fast path by a method `bind`
    with the parameters of `run`, which may return None.

    Returns:
        A function of X [T, N, I], the initial states and the lengths [N], or None. It returns Y
        (None if not requested) and the last states, or only None if these inputs must be evaluated
        by `run`.
    """
    bind = getattr(backend, "bind", None)
    bound: BoundCall | None = bind(recurrence, compute) if bind else None
    return bound or (lambda _, __, ___: None)  # without a fast path, every call is declined
