"""A mutant: the canonical recurrence with one plausible kernel bug in it.

A mutant is never a copy of a kernel. It is the right evaluation with one part replaced: the
recurrence, the arithmetic, or the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import getdoc
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
    """Return the recurrence unchanged."""
    return recurrence


def once(run: Run, recurrence: Recurrence) -> Result:
    """Evaluate once, and return the result unchanged."""
    return run(recurrence)


def always_seen(recurrence: Recurrence) -> str:
    """Return no reason."""
    del recurrence
    return ""


def id_of(bug: Callable[..., Any]) -> str:
    """Return the id of a bug that is a function."""
    return bug.__name__.replace("_", "-")


def words_of(bug: Callable[..., Any]) -> tuple[str, str]:
    """Return a bug's sentence and its effect, the two paragraphs of a docstring; "" for none."""
    sentence, _, effect = (getdoc(bug) or "").partition("\n\n")
    return " ".join(sentence.split()), " ".join(effect.split())


@dataclass(frozen=True, slots=True)
class Change:
    """The replaced part of a right evaluation; the defaults are right.

    Attributes:
        recurrence: recurrence -> the one that the kernel computes, whose cell may differ as well.
        engine: working dtype -> the engine that computes.
        result: (run, recurrence) -> the result, from any number of runs.
    """

    recurrence: Callable[[Recurrence], Recurrence] = itself
    engine: Callable[[np.dtype[Any]], Engine] = NumPyEngine
    result: Callable[[Run, Recurrence], Result] = once

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate with this change."""
        engine = self.engine(working_dtype(recurrence, compute))
        return self.result(lambda changed: evaluate(changed, engine), self.recurrence(recurrence))


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """One plausible bug.

    Attributes:
        id: its id, as in `--backend mutant:ID`.
        cells: the names of the cells whose kernels can have it.
        family: the part of the kernel that is wrong.
        sentence: what goes wrong.
        effect: the visible effect.
        change: the change of the right evaluation.
        unseen: recurrence -> why the mutant cannot be seen in it, or ""; needs no evaluation.
        idle: the same, by applying the change or evaluating with it.
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
        """Return why the mutant cannot be seen in a recurrence, or ""."""
        return self.unseen(recurrence) or self.idle(recurrence)

    def run(self, recurrence: Recurrence, compute: Compute = Compute.FLOAT64) -> Result:
        """Evaluate a recurrence of one of the cells like a kernel with this bug."""
        return self.change.run(recurrence, compute)

    def session(self) -> Session:
        """Return a session, which for this mutant keeps nothing between calls."""
        return self.run
