"""A mutant: the canonical recurrence with one plausible kernel bug in it.

A mutant is never a copy of a kernel. It is the right evaluation with one part replaced: the
recurrence, the arithmetic, or the result. The functions below make such changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from inspect import getdoc
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from rnncli.backends.backend import Compute, working_dtype
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.mutants.equivalence import (
    UNTOUCHED,
    always_seen,
    first,
    is_same,
    lengths_of,
    same_results,
)
from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.cells import CELLS
from rnncli.recurrence.lanes import of_directions
from rnncli.recurrence.recurrence import Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.backends.reference import Engine
    from rnncli.mutants.edits import Edits
    from rnncli.mutants.equivalence import Reason
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value

Run: TypeAlias = "Callable[[Recurrence], Result]"
Session: TypeAlias = "Callable[[Recurrence, Compute], Result]"
Right: TypeAlias = "Callable[[Parameters, Value, States], States]"
Last: TypeAlias = "tuple[Array, ...]"
Outputs: TypeAlias = "tuple[Array, Last]"
Elementwise: TypeAlias = "Callable[[Value], Value]"
RecurrenceChange: TypeAlias = "Callable[[Recurrence], Recurrence]"
Changed: TypeAlias = "Change | RecurrenceChange"
Function = TypeVar("Function", bound="Callable[..., Any]")

RNN, GRU, LSTM = ("RNN",), ("GRU",), ("LSTM",)
# Bugs of what gated cells have in common, by default, are theirs alone; those of others name them.
ALL = tuple(name for name, cell in CELLS.items() if cell.projects)
GATED = tuple(name for name in ALL if len(CELLS[name].gates) > 1)
PER_DIRECTION = ("W", "R", "Wb", "Rb", "P")
MATH = NumPyArithmetic()


@dataclass(frozen=True, slots=True)
class Change:
    """The replaced part of a right evaluation; the defaults are right."""

    # recurrence -> the one that the kernel computes, whose cell may differ as well
    recurrence: Callable[[Recurrence], Recurrence] = lambda recurrence: recurrence
    # working dtype -> the engine that computes
    engine: Callable[[np.dtype[Any]], Engine] = NumPyEngine
    # (run, recurrence) -> the result, from any number of runs
    result: Callable[[Run, Recurrence], Result] = lambda run, recurrence: run(recurrence)

    def run(self, recurrence: Recurrence, compute: Compute = Compute.FLOAT64) -> Result:
        """Evaluate with this change."""
        engine = self.engine(working_dtype(recurrence, compute))
        return self.result(lambda changed: evaluate(changed, engine), self.recurrence(recurrence))


RIGHT = Change()


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """One plausible bug."""

    id: str  # its id, as in `--backend mutant:ID`
    cells: tuple[str, ...]  # the names of the cells whose kernels can have it
    family: str  # the part of the kernel that is wrong
    sentence: str  # what goes wrong
    effect: str  # the visible effect
    change: Change  # the change of the right evaluation
    # recurrence -> why the mutant cannot be seen in it, or ""; needs no evaluation
    unseen: Reason = always_seen
    unreached: str = ""  # why it cannot be seen where its results are right
    edits: Edits = ()  # what it edits in the plain kernel; () for a function

    @property
    def rewrites(self) -> bool:
        """Whether it changes only the recurrence, which is then evaluated right."""
        return self.change.engine is RIGHT.engine and self.change.result is RIGHT.result

    def equivalent_when(self, recurrence: Recurrence) -> str:
        """Return why the mutant cannot be seen in a recurrence, or ""; it may have to run."""
        if reason := self.unseen(recurrence):
            return reason
        if self.rewrites and is_same(recurrence, self.change.recurrence(recurrence)):
            return UNTOUCHED
        if self.unreached and same_results(RIGHT.run(recurrence), self.run(recurrence)):
            return self.unreached
        return ""

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


class Family:
    """The bugs of one part of a kernel, and the decorator of the functions that are bugs.

    Args:
        name: its name.
        effect: the visible effect of most of its bugs.
        of: the names of the cells whose kernels can have most of its bugs.
        reasons: why all of them cannot be seen in some recurrences.
    """

    def __init__(
        self, name: str, effect: str = "", of: tuple[str, ...] = ALL, *reasons: Reason
    ) -> None:
        self.name, self.effect, self.of, self.reasons = name, effect, of, reasons
        self._groups: list[list[list[Mutant]]] = []
        self._each: Sequence[Variant] = ()

    @property
    def rows(self) -> tuple[Mutant, ...]:
        """The mutants in the order in which bugs are written.

        Bugs that follow each other with the same variants are in the order of the variants.
        """
        return tuple(row for group in self._groups for rows in group for row in rows)

    def __call__(
        self,
        *reasons: Reason,
        changes: Callable[[Any], Any] = lambda function: function,
        each: Sequence[Variant] = (),
        **settings: Any,
    ) -> Callable[[Function], Function]:
        """Return the decorator of a bug: its name is the id, its docstring sentence and effect.

        Args:
            reasons: why it cannot be seen in some recurrences.
            changes: function -> the change that it makes; without, the function is the change.
            each: the mutants that it is, if it is several.
            settings: what differs from the family, as in `row`.
        """
        variants = each or (Variant(),)

        def add(function: Function) -> Function:
            # The two paragraphs of its docstring.
            told = (" ".join(each.split()) for each in (getdoc(function) or "").split("\n\n", 1))
            sentence, effect = (*told, "", "")[:2]
            own = settings | ({"effect": effect} if effect else {})
            if not each or each is not self._each:
                self._groups.append([[] for _ in variants])
            self._each = each
            for variant, rows in zip(variants, self._groups[-1], strict=True):
                # The function's name, with words in place of each X.
                left, names = iter(variant.words), function.__name__.split("_")
                parts = (next(left).lower() if part == "X" else part for part in names)
                mutant = self._mutant(
                    "-".join(parts).replace(" ", "-"),
                    sentence,
                    changes(variant.of(function)),
                    *reasons,
                    *variant.reasons,
                    words=variant.words,
                    **own | variant.settings,
                )
                rows.append(mutant)
            return function

        return add

    def row(self, *bug: Any, **settings: Any) -> None:
        """Add a bug: its id, sentence, change and why it cannot be seen in some recurrences.

        Settings are `effect`, `of` and `unreached`, what differs from the family.
        """
        self._each = ()
        self._groups.append([[self._mutant(*bug, **settings)]])

    def _mutant(
        self,
        id: str,  # noqa: A002 -- what a mutant itself calls it
        sentence: str,
        change: Changed,
        *reasons: Reason,
        words: tuple[str, ...] = (),
        effect: str = "",
        of: tuple[str, ...] = (),
        unreached: str = "",
    ) -> Mutant:
        seen = (sentence.format(*words), (effect or self.effect).format(*words))
        reason = first(*self.reasons, *reasons)
        return mutant_of(id, of or self.of, self.name, *seen, change, reason, unreached=unreached)


def mutant_of(  # noqa: PLR0917 -- the attributes of a mutant, in their order
    id: str,  # noqa: A002 -- what a mutant itself calls it
    cells: tuple[str, ...],
    family: str,
    sentence: str,
    effect: str,
    change: Changed,
    unseen: Reason,
    *,
    unreached: str = "",
    edits: Edits = (),
) -> Mutant:
    """Return a mutant.

    A change that is a function is of the recurrence alone, and is seen wherever it changes one;
    another one says in `unreached` whether right results tell that it is not.
    """
    if not isinstance(change, Change):
        change, unreached = Change(recurrence=change), ""
    return Mutant(id, cells, family, sentence, effect, change, unseen, unreached, edits)


def running(function: Callable[[Run, Recurrence], Result]) -> Change:
    """Return the change (run, recurrence) -> result, from any number of right runs."""
    return Change(result=function)


def reading(*names: str) -> Callable[[Callable[[Array], Array]], RecurrenceChange]:
    """Return the change that reads the present ones of some arrays by a function."""

    def changes(function: Callable[[Array], Array]) -> RecurrenceChange:
        def change(recurrence: Recurrence) -> Recurrence:
            old = {name: getattr(recurrence, name) for name in names}
            new: dict[str, Any] = {
                name: function(values) for name, values in old.items() if values is not None
            }
            return replace(recurrence, **new)

        return change

    return changes


def initial_states(
    function: Callable[[Array], Array | None], which: Sequence[int] = (0, 1)
) -> RecurrenceChange:
    """Return the change that applies a function to the present ones of some initial states."""

    def change(recurrence: Recurrence) -> Recurrence:
        states = (
            function(state) if state is not None and k in which else state
            for k, state in enumerate(recurrence.initial)
        )
        return replace(recurrence, initial=tuple(states))

    return change


def stepped(
    function: Callable[..., States], **settings: Callable[[Recurrence], Any]
) -> RecurrenceChange:
    """Return the change that advances by function(step, p, x, states, **settings).

    `step` is the right one; each setting is taken from the recurrence.
    """

    def change(recurrence: Recurrence) -> Recurrence:
        values = {name: setting(recurrence) for name, setting in settings.items()}
        step = partial(function, recurrence.cell.step, **values)
        return replace(recurrence, cell=replace(recurrence.cell, step=step))

    return change


def results(function: Callable[[Recurrence, Array, Last], Outputs]) -> Change:
    """Return the change (recurrence, Y, last) -> (Y, last) of the right results."""

    def result(run: Run, recurrence: Recurrence) -> Result:
        right = run(replace(recurrence, wants_Y=True))
        assert right.Y is not None
        Y, last = function(recurrence, right.Y, right.last)
        return Result(Y if recurrence.wants_Y else None, last)

    return Change(result=result)


def each_direction(change: RecurrenceChange) -> Change:
    """Return the change that applies another to each direction by itself."""

    def result(run: Run, recurrence: Recurrence) -> Result:
        return joined([run(change(each)) for each in directions(recurrence)])

    return Change(result=result)


def directions(recurrence: Recurrence) -> list[Recurrence]:
    """Return each direction as a recurrence of one direction."""
    return [of_directions(recurrence, slice(d, d + 1)) for d in range(len(recurrence.directions))]


def joined(parts: Sequence[Result]) -> Result:
    """Join the results of single directions."""
    found = [part.Y for part in parts if part.Y is not None]
    last = zip(*(part.last for part in parts), strict=True)
    return Result(
        np.concatenate(found, axis=1) if found else None,
        tuple(np.concatenate(states) for states in last),
    )


def live(recurrence: Recurrence) -> Array:
    """Return the mask of valid steps, which broadcasts with Y [T, D, N, H]."""
    T = len(recurrence.X)
    return (np.arange(T)[:, None] < lengths_of(recurrence))[:, None, :, None]


def computing(**functions: Any) -> Change:
    """Return the change that computes with other functions, by their names in the arithmetic."""
    math = NumPyArithmetic()
    vars(math).update(functions)

    def engine(dtype: np.dtype[Any]) -> Engine:
        found = NumPyEngine(dtype)
        found.math = math
        return found

    return Change(engine=engine)
