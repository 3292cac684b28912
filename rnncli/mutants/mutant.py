"""A mutant: the canonical recurrence with one plausible kernel bug in it.

A mutant is never a copy of a kernel. It is the right evaluation with one part replaced: the
recurrence it is given, the arithmetic it computes with, or what becomes of its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rnncli.backends.backend import Compute, working_dtype
from rnncli.backends.reference import NumPyEngine, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from rnncli.backends.reference import Engine
    from rnncli.recurrence.recurrence import Recurrence, Result

Run: TypeAlias = "Callable[[Recurrence], Result]"
Session: TypeAlias = "Callable[[Recurrence, Compute], Result]"
Reason: TypeAlias = "Callable[[Recurrence], str]"


def itself(recurrence: Recurrence) -> Recurrence:
    """Change nothing."""
    return recurrence


def once(run: Run, recurrence: Recurrence) -> Result:
    """Evaluate, and return what comes out."""
    return run(recurrence)


def always_seen(recurrence: Recurrence) -> str:
    """Give no reason."""
    del recurrence
    return ""


@dataclass(frozen=True, slots=True)
class Change:
    """Which part of a right evaluation is replaced; the defaults are right.

    Attributes:
        recurrence: what the kernel takes the recurrence for; its cell's step may be another.
        engine: working dtype -> what it computes with.
        result: (run, recurrence) -> the result, from as many runs as it needs.
    """

    recurrence: Callable[[Recurrence], Recurrence] = itself
    engine: Callable[[np.dtype[Any]], Engine] = NumPyEngine
    result: Callable[[Run, Recurrence], Result] = once

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate with this change."""
        engine = self.engine(working_dtype(recurrence, compute))
        return self.result(lambda given: evaluate(given, engine), self.recurrence(recurrence))


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """One plausible bug.

    Attributes:
        id: as `--backend mutant:ID` spells it.
        cells: the names of the cells whose kernels can have it.
        family: what it is a bug of.
        sentence: what goes wrong.
        effect: what is seen.
        change: how the right evaluation becomes this one.
        unseen: why it cannot be seen in a recurrence, from a glance at it; "" where it may be.
        idle: the same, where it takes the change, or an evaluation, to know.
    """

    id: str
    cells: tuple[str, ...]
    family: str
    sentence: str
    effect: str
    change: Change
    unseen: Reason = always_seen
    idle: Reason = always_seen

    def equivalent_when(self, recurrence: Recurrence) -> str:
        """Return why it cannot be seen in a recurrence; "" where it may be."""
        return self.unseen(recurrence) or self.idle(recurrence)

    def run(self, recurrence: Recurrence, compute: Compute = Compute.FLOAT64) -> Result:
        """Evaluate a recurrence of one of the cells as a kernel with this bug does."""
        return self.change.run(recurrence, compute)

    def session(self) -> Session:
        """Return what evaluates call after call; nothing is kept between them."""
        return self.run
