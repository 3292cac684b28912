"""The protocol of a backend, and what a backend needs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from rnncli.recurrence.recurrence import FLOAT64, Compute, working_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

    BoundCall: TypeAlias = Callable[
        [Array, Sequence[Array | None]], tuple[Array | None, ...] | None
    ]

__all__ = ["FLOAT64", "Backend", "Compute", "bound_call", "working_dtype"]


class Backend(Protocol):
    """Evaluates recurrences. Instances hold no state between calls.

    Attributes:
        name: as `--backend` spells it.
        summary: one line for `rnncli backends`.
    """

    name: str
    summary: str

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why it cannot evaluate this, or None when it can."""

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate. Called only when `supports` returned None."""


def bound_call(backend: Backend, recurrence: Recurrence, compute: Compute) -> BoundCall:
    """Return a short way to evaluate recurrences that are like one which a backend has evaluated.

    They have its settings and its very weights, X and initial states of the same dtypes and shapes,
    and no lengths. A backend has a short way if it has a method `bind` with the parameters of
    `run`, which may return None.

    Returns:
        A function of X [T, N, I] and the initial states that returns Y, or None if that is not
        wanted, and the last states; or None instead of all, if `run` must evaluate these inputs.
    """
    bind = getattr(backend, "bind", None)
    found: BoundCall | None = bind(recurrence, compute) if bind else None
    return found or _declines


def _declines(X: Array, initial: Sequence[Array | None]) -> None:
    """Stand in for the short way that a backend does not have."""
    del X, initial
