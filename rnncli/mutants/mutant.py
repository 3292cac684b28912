"""A mutant: the canonical recurrence with one plausible kernel bug in it.

A mutant is never a copy of a kernel. It is the right evaluation with one part replaced: the
recurrence, the arithmetic, or the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from rnncli.backends.backend import Compute, working_dtype
from rnncli.backends.reference import NumPyEngine, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from rnncli.backends.reference import Engine
    from rnncli.recurrence.recurrence import Recurrence, Result

Run: TypeAlias = "Callable[[Recurrence], Result]"
Session: TypeAlias = "Callable[[Recurrence, Compute], Result]"
Reason: TypeAlias = "Callable[[Recurrence], str]"
Function = TypeVar("Function", bound="Callable[..., Any]")
Kind = TypeVar("Kind")


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


class Variant:
    """What tells one of several mutants apart that are one function.

    Args:
        words: the words in place of each X in the function's name, and of {} in its docstring.
        value: the function's first argument, if it takes one more than a bug that is one mutant.
        reasons: why the mutant cannot be seen in some recurrences.
        settings: what differs from the other mutants.
    """

    def __init__(
        self,
        words: str | tuple[str, ...] = (),
        value: Any = None,
        *reasons: Reason,
        **settings: Any,
    ) -> None:
        self.words = (words,) if isinstance(words, str) else words
        self.value, self.reasons, self.settings = value, reasons, settings

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the variant of a function."""
        return function if self.value is None else partial(function, self.value)


class BugFamily(Generic[Kind]):
    """The bugs of one part of a kernel, and the decorator of the functions that are bugs.

    Attributes:
        mutants: (id, sentence, change, *reasons, words=..., **settings) -> the mutants of a bug,
            with words in place of {} in what it says.
    """

    mutants: Callable[..., Iterator[Kind]]

    def __init__(self, name: str, *reasons: Reason) -> None:
        self.name, self.reasons = name, reasons
        self._groups: list[list[list[Kind]]] = []
        self._each: Sequence[Variant] = ()

    @property
    def rows(self) -> tuple[Kind, ...]:
        """The mutants in the order in which bugs are written.

        Bugs that follow each other with the same variants are in the order of the variants.
        """
        return tuple(row for group in self._groups for rows in group for row in rows)

    def __call__(
        self,
        *reasons: Reason,
        changes: Callable[[Any], Any] = lambda function: function,
        each: Sequence[Variant] = (),
        unless: Callable[[Any], Reason] | None = None,
        **settings: Any,
    ) -> Callable[[Function], Function]:
        """Return the decorator of a bug: its name is the id, its docstring sentence and effect.

        Args:
            reasons: why it cannot be seen in some recurrences.
            changes: function -> the change that it makes; without, the function is the change.
            each: the mutants that it is, if it is several.
            unless: value of a variant -> why it cannot be seen in some recurrences.
            settings: what differs from the family, as in `mutants`.
        """
        variants = each or (Variant(),)

        def add(function: Function) -> Function:
            sentence, effect = _paragraphs(function)
            own = settings | ({"effect": effect} if effect else {})
            if not each or each is not self._each:
                self._groups.append([[] for _ in variants])
            self._each = each
            for variant, rows in zip(variants, self._groups[-1], strict=True):
                mutants = self.mutants(
                    _id(function.__name__, variant.words),
                    sentence,
                    changes(variant.of(function)),
                    *((unless(variant.value),) if unless else ()),
                    *reasons,
                    *variant.reasons,
                    words=variant.words,
                    **own | variant.settings,
                )
                rows.extend(mutants)
            return function

        return add

    def row(self, *bug: Any, **settings: Any) -> None:
        """Add a bug, as `mutants` takes it."""
        self._each = ()
        self._groups.append([list(self.mutants(*bug, **settings))])


def _id(name: str, words: tuple[str, ...]) -> str:
    """Return the id of a bug that is a function, with words in place of each X in its name."""
    left = iter(words)
    parts = (next(left).lower() if part == "X" else part for part in name.split("_"))
    return "-".join(parts).replace(" ", "-")


def _paragraphs(bug: Callable[..., Any]) -> tuple[str, str]:
    """Return a bug's sentence and its effect, the two paragraphs of a docstring; "" for none."""
    sentence, _, effect = (getdoc(bug) or "").partition("\n\n")
    return " ".join(sentence.split()), " ".join(effect.split())
