"""Walking each direction of a recurrence through time, in place.

Time is cut into pieces within which the same sequences are live, and no longer than what one
projection of inputs should hold. Directions, and every other sequence of a batch, are shared among
threads; wide batches even where one thread does all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.in_place import tuning
from rnncli.backends.in_place.cells import kernel_of
from rnncli.backends.in_place.general import GeneralStage
from rnncli.backends.in_place.plan import (
    KernelWeights,
    NotFiniteError,
    Stage,
    given_by,
    settings_of,
)
from rnncli.backends.in_place.scratch import kept
from rnncli.backends.in_place.small import (
    SmallStage,
    fuse_directions,
    is_small,
    is_soon_copied,
    pays,
    prepared_call,
    split_directions,
)
from rnncli.backends.threads import at_once, threads
from rnncli.deadline import check
from rnncli.numerics import ready_to_round
from rnncli.recurrence.lanes import LongestFirst, clear_unstarted, places_of
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


def evaluate_in_place(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Evaluate what has a kernel.

    Args:
        recurrence: what to evaluate; `has_kernel` says of which cells.
        dtype: of the arithmetic.

    Raises:
        NotFiniteError: a number overflows, such as e^x, or a state ends as NaN or infinity.
    """
    if pays(recurrence):
        return split_directions(evaluate_in_place(fuse_directions(recurrence), dtype))
    prepared = prepared_call(recurrence, dtype)
    return _walked(recurrence, dtype) if prepared is None else prepared.run(recurrence)


def _walked(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Walk each direction, and each share of the sequences."""
    D, places = len(recurrence.directions), places_of(recurrence)
    Y, last = places.Y, places.last
    failures: list[ArithmeticError] = []

    def walk(d: int, rows: slice) -> None:
        if failures:
            return
        one = Walk(share_of(recurrence, rows), d, dtype)
        try:
            with np.errstate(all="ignore", over="raise"):
                one.run(None if Y is None else Y[:, d, rows])
                one.finish([state[d, rows] for state in last])
        except (FloatingPointError, NotFiniteError) as failure:
            failures.append(failure)

    at_once([partial(walk, d, rows) for d in range(D) for rows in shares(recurrence, dtype)])
    if failures:
        raise NotFiniteError from failures[0]
    clear_unstarted(recurrence, last)
    return places


def shares(recurrence: Recurrence, dtype: np.dtype[Any]) -> list[slice]:
    """Return the sequences of each share of a direction; one share for each is enough.

    Lengths differ at random, so every other sequence goes to another share. For each thread there
    are as many shares as its sequences are wider than OpenBLAS multiplies at full speed.
    """
    T, N, I = recurrence.X.shape  # noqa: E741 -- the specification's letter
    D, G, H, _ = recurrence.W.shape
    work = D * T * N * G * H * (I + H)
    if work < tuning.SHARED_WORK:
        return [slice(0, None, 1)]
    count = max(1, min(N, threads() // D))
    count *= max(1, N // count * dtype.itemsize // tuning.SHARED_BYTES)
    return [slice(k, None, count) for k in range(count)]


def share_of(recurrence: Recurrence, rows: slice) -> Recurrence:
    """Return a recurrence of some of the sequences."""
    if rows == slice(0, None, 1):
        return recurrence
    share = replace(
        recurrence,
        X=recurrence.X[:, rows],
        initial=tuple(state if state is None else state[:, rows] for state in recurrence.initial),
        lengths=None if recurrence.lengths is None else recurrence.lengths[rows],
    )
    share.constants = recurrence.constants
    return share


class Piece(NamedTuple):
    """Steps within which the same sequences are live, the first ones of the batch's order."""

    start: int
    stop: int
    live: int


def pieces(active: Sequence[int]) -> Iterator[Piece]:
    """Cut time where sequences end, leaving out what is padding alone.

    Args:
        active: how many sequences are live at each time, never more than before.
    """
    if active and active[0] == active[-1] > 0:
        yield Piece(0, len(active), active[0])
        return
    start = 0
    for live, steps in groupby(active):
        stop = start + sum(1 for _ in steps)
        if live:
            yield Piece(start, stop, live)
        start = stop


class Walk:
    """One direction of a recurrence, ready to run.

    Attributes:
        states: the current states [N, H], in the batch's order.
    """

    def __init__(self, recurrence: Recurrence, d: int, dtype: np.dtype[Any]) -> None:
        self.recurrence, self.d, self.dtype = recurrence, d, dtype
        self.T, self.N, _ = recurrence.X.shape
        self.batch = LongestFirst.of(recurrence)
        self.is_reverse = recurrence.directions[d] is Direction.REVERSE
        self.states = [self._initial(state) for state in recurrence.initial]
        self._laid_out: dict[Hashable, KernelWeights] = {}

    def run(self, Y: Array | None) -> None:
        """Walk through time; write each H into Y [T, N, H], rounded."""
        found = [*pieces(self.batch.active)]
        for piece in reversed(found) if self.is_reverse else found:
            stage = self._stage(piece)
            for start in range(piece.start, piece.stop, stage.steps):
                check()
                if start > piece.start:
                    self._stop_at_nan()
                block = slice(start, min(start + stage.steps, piece.stop))
                if self.is_reverse:
                    mirrored = piece.start + piece.stop
                    block = slice(mirrored - block.stop, mirrored - block.start)
                self._block(stage, block, piece.live, Y)

    def _stop_at_nan(self) -> None:
        """Raise NotFiniteError where a state is NaN, which it stays; infinity may pass."""
        if any(math.isnan(np.vdot(state, state)) for state in self.states):
            raise NotFiniteError

    def finish(self, last: Sequence[Array]) -> None:
        """Write the last states, in the caller's order, rounded; initial where no step was taken.

        Raises:
            NotFiniteError: one that stays is not, by its squares: those of huge ones may not be.
        """
        live = self.batch.active[0] if self.T else 0
        for state, out in zip(self.states, last, strict=True):
            out[self.batch.rows(self.N)] = ready_to_round(state, self.recurrence.dtype)
            ran = state if self.recurrence.keep_initial else state[:live]
            if not math.isfinite(np.vdot(ran, ran)):
                raise NotFiniteError

    def _stage(self, piece: Piece) -> Stage:
        """Return the stage of a piece, with this direction's weights."""
        stage = stage_for(self.recurrence, self.d, self.dtype, piece.live)
        stage.load(self._weights(stage))
        return stage

    def _weights(self, stage: Stage) -> KernelWeights:
        """Return this direction's weights as a stage wants them, once for all its pieces."""
        found = self._laid_out.get(stage.form)
        if found is None:
            found = laid_out(stage, self.recurrence, self.d, self.dtype)
            self._laid_out[stage.form] = found
        return found

    def _block(self, stage: Stage, block: slice, live: int, Y: Array | None) -> None:
        """Walk through a block of time."""
        X = self.recurrence.X[block, self.batch.rows(live)]
        if self.is_reverse:
            X = X[::-1]
        states = self._live(live)
        found, last = stage.run(X, states)
        for state, new in zip(states, last, strict=True):
            state[...] = new
        if Y is not None:
            found = found[::-1] if self.is_reverse else found
            Y[block, self.batch.rows(live)] = ready_to_round(found, self.recurrence.dtype)

    def _live(self, count: int) -> list[Array]:
        return self.states if count == self.N else [state[:count] for state in self.states]

    def _initial(self, state: Array | None) -> Array:
        if state is None:
            return np.zeros((self.N, self.recurrence.W.shape[2]), self.dtype)
        own: Array = state[self.d]
        return own[self.batch.rows(self.N)].astype(self.dtype, order="C")


def stage_for(recurrence: Recurrence, d: int, dtype: np.dtype[Any], live: int) -> Stage:
    """Return a stage for some sequences, the one of before where this thread still has it."""
    settings = settings_of(recurrence, d, dtype, live)
    is_stacked = is_small(settings) and (
        recurrence.constants is not None or is_soon_copied(settings)
    )
    make = SmallStage if is_stacked else GeneralStage
    return kept((make, settings), lambda: make(settings, recurrence.activations[d]))


def laid_out(stage: Stage, recurrence: Recurrence, d: int, dtype: np.dtype[Any]) -> KernelWeights:
    """Return the weights of a direction laid out, once for all calls where they are constants."""
    constants = recurrence.constants
    if constants is None:
        return stage.lay_out(given_by(recurrence, d, dtype), str)
    key = stage.form, kernel_of(recurrence), d, dtype
    found: KernelWeights | None = constants.get(key)
    if found is None:
        found = stage.lay_out(given_by(recurrence, d, dtype), lambda _: None)
        constants.keep(key, found)
    return found
