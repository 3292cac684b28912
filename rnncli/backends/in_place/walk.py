"""The NumPy backend: recurrences in place, with one matrix product per step.

Each direction is stepped through time, which is cut into pieces with the same live sequences, and
pieces into blocks whose inputs are projected together. Directions and interleaved sequences of a
batch are shared among threads; wide batches are split even for a single thread.

Attentions of several steps are evaluated in chunks of steps.

The reference evaluates other cells without a kernel and quantised products, and re-evaluates
recurrences that overflow or become NaN or infinite. Kernels detect that at no cost, by the
processor's flags and the last states; checking the inputs of every call instead would cost 2 to 3 %
of a tiny one.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends import in_place as tuning
from rnncli.backends.in_place.attention import attend_in_chunks, attends_in_chunks
from rnncli.backends.in_place.prepared_calls import (
    NotFiniteError,
    bound,
    fuse_directions,
    pays,
    prepared_call,
    split_directions,
)
from rnncli.backends.in_place.stages import stage_for, weights_of
from rnncli.backends.in_place.time_steps import has_kernel, kernel_of
from rnncli.backends.threads import at_once, threads
from rnncli.limits import check_clock
from rnncli.numerics import ready_to_round
from rnncli.recurrence.lanes import LongestFirst, clear_unstarted, empty_outputs
from rnncli.recurrence.recurrence import Constants, Direction, Result, working_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.backends.backend import BoundCall
    from rnncli.backends.in_place.stages import StageWeights
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Compute, Recurrence


def evaluate_in_place(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Evaluate a recurrence whose cell has a kernel, see `has_kernel`, in a dtype's arithmetic.

    Raises:
        NotFiniteError: a number, such as e^x, overflows, or a last state is NaN or infinite.
    """
    if pays(recurrence):
        return split_directions(evaluate_in_place(fuse_directions(recurrence), dtype))
    prepared = prepared_call(recurrence, dtype)
    return _walked(recurrence, dtype) if prepared is None else prepared.run(recurrence)


def _walked(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Evaluate each direction and share of the sequences."""
    D, places = len(recurrence.directions), empty_outputs(recurrence)
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
    """Return the sequences of each share of a direction.

    Sequences are interleaved, because lengths differ at random. A thread gets several shares if its
    sequences are too many for OpenBLAS to multiply at full speed.
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
    """Return a recurrence restricted to some sequences."""
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


class TimePiece(NamedTuple):
    """A range of steps with the same live sequences, the first ones in the batch's order."""

    start: int
    stop: int
    live: int


def pieces(active: Sequence[int]) -> Iterator[TimePiece]:
    """Split time where sequences end; steps that are all padding are left out.

    Args:
        active: the number of live sequences at each time, which never increases.
    """
    if active and active[0] == active[-1] > 0:
        yield TimePiece(0, len(active), active[0])
        return
    start = 0
    for live, steps in groupby(active):
        stop = start + sum(1 for _ in steps)
        if live:
            yield TimePiece(start, stop, live)
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
        zeros = partial(np.zeros, (self.N, recurrence.W.shape[2]), self.dtype)
        own = self.batch.rows(self.N)
        self.states = [
            zeros() if state is None else state[self.d][own].astype(self.dtype, order="C")
            for state in recurrence.initial
        ]
        self.constants = recurrence.constants or Constants()  # at least those of this walk

    def run(self, Y: Array | None) -> None:
        """Step through time; write each H, rounded, to Y [T, N, H]."""
        all_pieces = [*pieces(self.batch.active)]
        for piece in reversed(all_pieces) if self.is_reverse else all_pieces:
            # The stage of some sequences, with this direction's weights.
            stage = stage_for(self.recurrence, self.d, self.dtype, piece.live)
            key = stage.form, kernel_of(self.recurrence), self.d, self.dtype
            weights: StageWeights | None = self.constants.get(key)
            if weights is None:
                weights = stage.lay_out(weights_of(self.recurrence, self.d, self.dtype))
                self.constants.keep(key, weights)
            stage.load(weights)
            for start in range(piece.start, piece.stop, stage.steps):
                check_clock()
                # A NaN persists; infinity may pass.
                isnan = (math.isnan(np.vdot(state, state)) for state in self.states)
                if start > piece.start and any(isnan):
                    raise NotFiniteError
                block = slice(start, min(start + stage.steps, piece.stop))
                if self.is_reverse:
                    mirrored = piece.start + piece.stop
                    block = slice(mirrored - block.stop, mirrored - block.start)
                rows = self.batch.rows(piece.live)
                X, states = self.recurrence.X[block, rows], self.states
                if piece.live < self.N:
                    states = [state[: piece.live] for state in states]
                after, last = stage.run(X[::-1] if self.is_reverse else X, states)
                for state, new in zip(states, last, strict=True):
                    state[...] = new
                if Y is not None:
                    after = after[::-1] if self.is_reverse else after
                    Y[block, rows] = ready_to_round(after, self.recurrence.dtype)

    def finish(self, last: Sequence[Array]) -> None:
        """Write the last states, rounded, in the caller's order; initial ones if no step was taken.

        Raises:
            NotFiniteError: a last state is not finite, or so large that its square is not.
        """
        live = self.batch.active[0] if self.T else 0
        for state, out in zip(self.states, last, strict=True):
            out[self.batch.rows(self.N)] = ready_to_round(state, self.recurrence.dtype)
            ran = state if self.recurrence.keep_initial else state[:live]
            if not math.isfinite(np.vdot(ran, ran)):
                raise NotFiniteError


class NumPyBackend:
    """A backend for every recurrence, in float64 or natively."""

    name = "numpy"
    summary = "fast: NumPy and its BLAS, in place; every operator, dtype and reading"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None: every recurrence is supported."""
        del recurrence, compute
        return None

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate; NaN and infinity propagate as IEEE 754 specifies."""
        dtype = working_dtype(recurrence, compute)
        if has_kernel(recurrence):
            with suppress(NotFiniteError):
                return evaluate_in_place(recurrence, dtype)
        if attends_in_chunks(recurrence, dtype):
            with suppress(NotFiniteError):
                return attend_in_chunks(recurrence, dtype)
        from rnncli.backends.reference import NumPyEngine, evaluate  # seldom needed

        return evaluate(recurrence, NumPyEngine(dtype))

    def bind(self, recurrence: Recurrence, compute: Compute) -> BoundCall | None:
        """Return the fast path of recurrences like one that was evaluated, or None."""
        dtype = working_dtype(recurrence, compute)
        return bound(recurrence, dtype) if has_kernel(recurrence) else None
