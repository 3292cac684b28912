"""Walking each direction of a recurrence through time, in place.

Time is cut into pieces within which the same sequences are live, and no longer than what one
projection of inputs should hold.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.in_place.cells import Kernel, kernel_of
from rnncli.backends.in_place.sharing import at_once, share_of, shares
from rnncli.backends.in_place.stage import Settings, Stage, Weights, stage_for
from rnncli.backends.order import Batch
from rnncli.numerics import round_to
from rnncli.recurrence.constants import Constants
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.backends.in_place.layouts import Layout
    from rnncli.numerics import Array


def evaluate_in_place(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result | None:
    """Evaluate, or return None for what only the textbook's way is known to get right.

    That is: other equations than the specification's, and what ends in a state that is not finite.
    The latter may be an overflow of e^x, which the steps here do not look for: it makes a NaN, and
    a NaN in a state stays one.

    Args:
        recurrence: what to evaluate.
        dtype: of the arithmetic.
    """
    kernel = kernel_of(recurrence)
    if kernel is None:
        return None
    T, N, _ = recurrence.X.shape
    D, _, H, _ = recurrence.W.shape
    room = np.empty if recurrence.lengths is None else np.zeros
    Y = room((T, D, N, H), recurrence.dtype.numpy) if recurrence.wants_Y else None
    last = tuple(np.empty((D, N, H), recurrence.dtype.numpy) for _ in recurrence.initial)
    finite: list[bool] = []

    def walk(d: int, rows: slice) -> None:
        with np.errstate(all="ignore"):
            one = Walk(share_of(recurrence, rows), d, dtype, kernel)
            one.run(None if Y is None else Y[:, d, rows])
            one.finish([state[d, rows] for state in last])
            finite.append(one.is_finite())

    at_once([partial(walk, d, rows) for d in range(D) for rows in shares(recurrence)])
    return Result(Y, last) if all(finite) else None


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

    def __init__(
        self, recurrence: Recurrence, d: int, dtype: np.dtype[Any], kernel: Kernel
    ) -> None:
        self.recurrence, self.d, self.dtype, self.kernel = recurrence, d, dtype, kernel
        self.T, self.N, _ = recurrence.X.shape
        self.batch = Batch.of(recurrence.lengths, self.T, self.N)
        self.is_reverse = recurrence.directions[d] is Direction.REVERSE
        self.states = [self._initial(state) for state in recurrence.initial]
        self.constants = Constants.of(recurrence)
        self._laid_out: dict[type[Layout], Weights] = {}

    def run(self, Y: Array | None) -> None:
        """Walk through time; write each H into Y [T, N, H], rounded."""
        found = [*pieces(self.batch.active)]
        for piece in reversed(found) if self.is_reverse else found:
            stage = self._stage(piece)
            for start in range(piece.start, piece.stop, stage.steps):
                block = slice(start, min(start + stage.steps, piece.stop))
                if self.is_reverse:
                    mirrored = piece.start + piece.stop
                    block = slice(mirrored - block.stop, mirrored - block.start)
                self._block(stage, block, piece.live, Y)

    def is_finite(self) -> bool:
        """Return whether all states are, by their squares: those of huge ones may not be."""
        return all(math.isfinite(np.vdot(state, state)) for state in self.states)

    def finish(self, last: Sequence[Array]) -> None:
        """Write the last states, in the caller's order, rounded; zero those of length 0 or not."""
        live = self.batch.active[0] if self.T else 0
        for state, out in zip(self.states, last, strict=True):
            if live < self.N and not self.recurrence.keep_initial:
                state[live:] = 0
            out[self.batch.rows(self.N)] = self._rounded(state)

    def _stage(self, piece: Piece) -> Stage:
        """Return the stage of a piece, with this direction's weights."""
        recurrence = self.recurrence
        _, G, H, _ = recurrence.W.shape
        activations = recurrence.activations[self.d]
        settings = Settings(
            kernel=self.kernel,
            N=piece.live,
            H=H,
            G=G,
            steps=1 << (self.T - 1).bit_length(),
            dtype=self.dtype,
            activations=tuple((a.function, a.alpha, a.beta) for a in activations),
            clips=self._clips(),
            has_P=recurrence.P is not None,
            has_Rbh=recurrence.Rb is not None and recurrence.linear_before_reset,
            input_forget=recurrence.input_forget,
        )
        stage = stage_for(settings, activations)
        stage.load(self._weights(stage.layout))
        return stage

    def _clips(self) -> tuple[float, float, float]:
        clip = self.recurrence.clip
        return clip, clip, clip if self.recurrence.clip_hidden else math.inf

    def _weights(self, layout: Layout) -> Weights:
        """Return this direction's weights as a layout wants them, once for all its pieces."""
        found = self._laid_out.get(type(layout))
        if found is None:
            found = self._laid_out[type(layout)] = self._of_constants(layout)
        return found

    def _of_constants(self, layout: Layout) -> Weights:
        """Lay out weights, once for all calls where they are constants."""
        if self.constants is None:
            return self._lay_out(layout, str)
        key = type(layout), self.d, self.dtype, self.kernel
        found: Weights | None = self.constants.get(key)
        if found is None:
            found = self._lay_out(layout, lambda _: None)
            self.constants.keep(key, found)
        return found

    def _lay_out(self, layout: Layout, named: Callable[[str], str | None]) -> Weights:
        """Lay out weights under names of their own, or none: see `Layout.matrix`."""
        given = self.recurrence
        W, R = self._widened(given.W), self._widened(given.R)
        bias, Rbh = self._biases()
        return Weights(
            W=layout.matrix(named("W"), W),
            R=[
                layout.matrix(named(f"R{k}"), R[gates])
                for k, gates in enumerate(self.kernel.products)
            ],
            bias=bias,
            P=None if given.P is None else self._widened(given.P),
            Rbh=Rbh,
        )

    def _block(self, stage: Stage, block: slice, live: int, Y: Array | None) -> None:
        """Walk through a block of time."""
        X = self.recurrence.X[block, self.batch.rows(live)]
        if self.is_reverse:
            X = X[::-1]
        found = stage.run(X.astype(self.dtype, order="C", copy=False), self._live(live))
        if Y is not None:
            found = found[::-1] if self.is_reverse else found
            Y[block, self.batch.rows(live)] = self._rounded(found)

    def _live(self, count: int) -> list[Array]:
        return self.states if count == self.N else [state[:count] for state in self.states]

    def _initial(self, state: Array | None) -> Array:
        if state is None:
            return np.zeros((self.N, self.recurrence.W.shape[2]), self.dtype)
        own: Array = state[self.d]
        return own[self.batch.rows(self.N)].astype(self.dtype, order="C")

    def _biases(self) -> tuple[Array | None, Array | None]:
        """Return what is added to the projected inputs [G, H], and the Rbh that is reset [H]."""
        given = (self.recurrence.Wb, self.recurrence.Rb)
        Wb, Rb = (None if values is None else self._widened(values) for values in given)
        if Rb is None or not self.recurrence.linear_before_reset:
            return (Wb if Rb is None else Rb if Wb is None else Wb + Rb), None
        bias = np.zeros_like(Rb) if Wb is None else Wb.copy()
        bias[:2] += Rb[:2]
        return bias, Rb[2]

    def _widened(self, values: Array) -> Array:
        own: Array = values[self.d]
        return own.astype(self.dtype, copy=False)

    def _rounded(self, values: Array) -> Array:
        """Return what an assignment to the recurrence's dtype rounds once, or rounded already.

        A cast to a type of NumPy's own, or from float32, rounds once; the rest is for `round_to`.
        """
        dtype = self.recurrence.dtype
        once = dtype.native_to_numpy or values.dtype == np.float32
        return values if once else round_to(values, dtype)
