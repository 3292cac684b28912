"""Changes that make mutants: of arrays, steps, results and functions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.backends.reference import NumPyEngine
from rnncli.mutants.equivalence import (
    NO_INITIAL_C,
    NO_INITIAL_H,
    Unreached,
    first,
    lengths_of,
    untouched,
)
from rnncli.mutants.mutant import BugFamily, Change, Mutant, Variant, always_seen
from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.cells import CELLS
from rnncli.recurrence.recurrence import Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.mutants.mutant import Reason, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States


Right: TypeAlias = "Callable[[Parameters, Value, States], States]"
Last: TypeAlias = "tuple[Array, ...]"
Outputs: TypeAlias = "tuple[Array, Last]"
Elementwise: TypeAlias = "Callable[[Value], Value]"
RecurrenceChange: TypeAlias = "Callable[[Recurrence], Recurrence]"
Changed: TypeAlias = "Change | RecurrenceChange"

RNN, GRU, LSTM = ("RNN",), ("GRU",), ("LSTM",)
GATED = tuple(name for name, cell in CELLS.items() if len(cell.gates) > 1)
ALL = tuple(CELLS)
PER_DIRECTION = ("W", "R", "Wb", "Rb", "P")
# The states, and those that a recurrence starts from.
STATES = (Variant("h", 0), Variant("c", 1, of=LSTM))
STARTS = (Variant("h", 0, NO_INITIAL_H), Variant("c", 1, NO_INITIAL_C, of=LSTM))


class Family(BugFamily[Mutant]):
    """The bugs of one part of the equations.

    Args:
        name: its name.
        effect: the visible effect of most of its bugs.
        of: the names of the cells whose kernels can have most of its bugs.
        reasons: why all of them cannot be seen in some recurrences.
    """

    def __init__(
        self, name: str, effect: str = "", of: tuple[str, ...] = ALL, *reasons: Reason
    ) -> None:
        super().__init__(name, *reasons)
        self.effect, self.of = effect, of

    def mutants(
        self,
        id: str,  # noqa: A002 -- what a mutant itself calls it
        sentence: str,
        change: Changed,
        *reasons: Reason,
        words: tuple[str, ...] = (),
        effect: str = "",
        of: tuple[str, ...] = (),
        unreached: str = "",
    ) -> Iterator[Mutant]:
        """Yield one mutant.

        A mutant that changes only the recurrence is equivalent where the recurrence stays the
        same; another one where its results are right, if it says so in `unreached`.
        """
        idle: Reason = always_seen
        if not isinstance(change, Change):
            idle, change = untouched(change), Change(recurrence=change)
        elif unreached:
            idle = Unreached(change, unreached)
        yield Mutant(
            id,
            of or self.of,
            self.name,
            sentence.format(*words),
            (effect or self.effect).format(*words),
            change,
            first(*self.reasons, *reasons),
            idle,
        )


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


def parameters(
    function: Callable[[Parameters], Parameters],
) -> RecurrenceChange:
    """Return the change that computes each step with other parameters."""

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        return right(function(p), x, states)

    return stepped(step)


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
    return [_direction(recurrence, d) for d in range(len(recurrence.directions))]


def _direction(recurrence: Recurrence, d: int) -> Recurrence:
    only = slice(d, d + 1)
    single = reading(*PER_DIRECTION)(lambda values: values[only])(recurrence)
    return replace(
        initial_states(lambda state: state[only])(single),
        directions=recurrence.directions[only],
        activations=recurrence.activations[only],
    )


def joined(parts: Sequence[Result]) -> Result:
    """Join the results of single directions."""
    found = [part.Y for part in parts if part.Y is not None]
    last = zip(*(part.last for part in parts), strict=True)
    return Result(
        np.concatenate(found, axis=1) if found else None,
        tuple(np.concatenate(states) for states in last),
    )


def of_first_direction(values: Array) -> Array:
    """Return values in which both directions have those of the first."""
    return np.broadcast_to(values[:1], values.shape)


def of_second_direction(values: Array) -> Array:
    """Return values in which both directions have those of the second."""
    return np.broadcast_to(values[-1:], values.shape)


def second_zeroed(values: Array) -> Array:
    """Return values in which the second direction has zeros."""
    return np.concatenate([values[:1], np.zeros_like(values[1:])])


def live(recurrence: Recurrence) -> Array:
    """Return the mask of valid steps, which broadcasts with Y [T, D, N, H]."""
    T = len(recurrence.X)
    return (np.arange(T)[:, None] < lengths_of(recurrence))[:, None, :, None]


def without_lengths(recurrence: Recurrence) -> Recurrence:
    """Return a recurrence whose sequences all run to the end of X."""
    return replace(recurrence, lengths=None)


def rolled(values: Array, shifts: Array) -> Array:
    """Roll each sequence of [T, N, K] to later steps by its own shift."""
    T = len(values)
    if not T:
        return values
    index = (np.arange(T)[:, None] - shifts) % T
    return np.asarray(np.take_along_axis(values, index[:, :, None], axis=0))


def padding_of(recurrence: Recurrence) -> Array:
    """Return the number of padding steps of each sequence [N]."""
    return len(recurrence.X) - lengths_of(recurrence)


RIGHT = NumPyArithmetic()


class ReplacedArithmetic(NumPyArithmetic):
    """NumPy's arithmetic with some functions replaced."""

    def __init__(self, **functions: Any) -> None:
        vars(self).update(functions)


class ReplacedFunctions(NumPyEngine):
    """An engine with a replaced arithmetic.

    Args:
        functions: the functions, by their names in the arithmetic.
        dtype: the dtype of the arithmetic.
    """

    def __init__(self, functions: dict[str, Any], dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self.math = ReplacedArithmetic(**functions)


def computing(**functions: Any) -> Change:
    """Return the change that computes with other functions."""
    return Change(engine=partial(ReplacedFunctions, functions))
