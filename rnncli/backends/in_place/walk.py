"""Walking each direction of a recurrence through time, in place.

Time is cut into pieces within which the same sequences are live, and no longer than what one
projection of inputs should hold.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.in_place.activations import in_place
from rnncli.backends.in_place.cells import Parts, kernel_of
from rnncli.backends.in_place.layouts import layout_for, spread
from rnncli.backends.scan import Batch
from rnncli.numerics import round_to
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.backends.in_place.activations import Function
    from rnncli.backends.in_place.cells import Kernel
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
    for d in range(D):
        walk = Walk(recurrence, d, dtype, kernel)
        walk.run(None if Y is None else Y[:, d])
        if not walk.is_finite():
            return None
        walk.finish([state[d] for state in last])
    return Result(Y, last)


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
        self.T, self.N, self.I = recurrence.X.shape
        _, self.G, self.H, _ = recurrence.W.shape
        self.batch = Batch.of(recurrence.lengths, self.T, self.N)
        self.states = [self._initial(state) for state in recurrence.initial]
        self.bias, self.Rbh = self._biases()
        self.P = None if recurrence.P is None else self._widened(recurrence.P)
        self._weights: dict[type[Layout], tuple[Array, list[Array]]] = {}

    def run(self, Y: Array | None) -> None:
        """Walk through time; write each H into Y [T, N, H], rounded."""
        order = reversed if self.is_reverse else iter
        for piece in order([*pieces(self.batch.active)]):
            stage = Stage(self, piece.live)
            starts = range(piece.start, piece.stop, stage.most_steps)
            for start in order(starts):
                stage.run(slice(start, min(start + stage.most_steps, piece.stop)), Y)

    def is_finite(self) -> bool:
        """Return whether all states are, by their squares: those of huge ones may not be."""
        return all(math.isfinite(np.vdot(state, state)) for state in self.states)

    def finish(self, last: Sequence[Array]) -> None:
        """Write the last states, in the caller's order, rounded; zero those of length 0 or not."""
        live = self.batch.active[0] if self.T else 0
        for state, out in zip(self.states, last, strict=True):
            if not self.recurrence.keep_initial:
                state[live:] = 0
            out[self.batch.rows(self.N)] = round_to(state, self.recurrence.dtype)

    def weights(self, layout: Layout) -> tuple[Array, list[Array]]:
        """Return W, and R of each product, as a layout wants them."""
        if type(layout) not in self._weights:
            W, R = self._widened(self.recurrence.W), self._widened(self.recurrence.R)
            parts = [
                layout.matrix(f"R{k}", R[gates]) for k, gates in enumerate(self.kernel.products)
            ]
            self._weights[type(layout)] = layout.matrix("W", W), parts
        return self._weights[type(layout)]

    def inputs(self, steps: slice, live: int) -> Array:
        """Return X of some steps and live sequences, [S, N, I]."""
        X: Array = self.recurrence.X[steps, self.batch.rows(live)]
        return X.astype(self.dtype, order="C", copy=False)

    def writes_into(self, Y: Array) -> bool:
        """Return whether steps may write their H right where the caller looks for them."""
        return self.batch.order is None and Y.dtype == self.dtype

    @property
    def is_reverse(self) -> bool:
        """Whether time is walked from its end."""
        return self.recurrence.directions[self.d] is Direction.REVERSE

    def _initial(self, state: Array | None) -> Array:
        if state is None:
            return np.zeros((self.N, self.H), self.dtype)
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


class Stage:
    """The first sequences of a walk's batch: memory for their steps, and what works in it.

    Args:
        walk: the direction.
        live: how many sequences.
    """

    def __init__(self, walk: Walk, live: int) -> None:
        self.walk, self.live = walk, live
        self.layout = layout_for(live, walk.H, walk.dtype)
        self.W, R = walk.weights(self.layout)
        self.most_steps = self.layout.steps(max(walk.G * walk.H, walk.I))
        self.bias = None if walk.bias is None else self.layout.bias(walk.bias)
        self.C = np.empty(self.layout.unit, walk.dtype)
        self.step = walk.kernel.make(self._parts(R))

    def _parts(self, R: list[Array]) -> Parts:
        walk, layout = self.walk, self.layout
        gates = np.empty((walk.G, *layout.unit), walk.dtype)
        reset = layout.history(1, walk.dtype)[0]
        products = zip(R, walk.kernel.products, strict=True)
        return Parts(
            gates=gates,
            spare=np.empty_like(gates),
            products=tuple(layout.product(matrix, gates[part]) for matrix, part in products),
            functions=self._functions(gates),
            C=self.C,
            P=self._spread(walk.P),
            Rbh=self._spread(walk.Rbh),
            operand=layout.operands(reset),
            operand_unit=layout.units(reset),
            input_forget=walk.recurrence.input_forget,
        )

    def _functions(self, gates: Array) -> tuple[Function, ...]:
        recurrence = self.walk.recurrence
        clips = [recurrence.clip] * 2 + [recurrence.clip if recurrence.clip_hidden else math.inf]
        rows = zip(
            recurrence.activations[self.walk.d], self.walk.kernel.arguments, clips, strict=False
        )
        return tuple(in_place(activation, gates[part], clip) for activation, part, clip in rows)

    def _spread(self, values: Array | None) -> Array | None:
        return None if values is None else spread(self.layout, values, self.live)

    def run(self, steps: slice, Y: Array | None) -> None:
        """Walk through a block of time, from the walk's states; write each H into Y [T, N, H]."""
        walk, layout = self.walk, self.layout
        room = None if Y is None else Y[steps, : self.live]
        if room is not None and walk.writes_into(room) and layout.is_native(room):
            self._advance(steps, room)
            return
        history = layout.history(steps.stop - steps.start, walk.dtype)
        self._advance(steps, history)
        if Y is not None:
            Y[steps, walk.batch.rows(self.live)] = round_to(history, walk.recurrence.dtype)

    def _advance(self, steps: slice, history: Array) -> None:
        """Write the states of each step to a history [S, N, H] that suits the layout."""
        walk, layout = self.walk, self.layout
        projected = layout.project(walk.inputs(steps, self.live), self.W, self.bias)
        arguments = [projected[:, part] for part in walk.kernel.inputs]
        arguments += [layout.operands(history), layout.units(history)]
        if walk.is_reverse:
            arguments = [values[::-1] for values in arguments]
        states = [state[: self.live] for state in walk.states]
        start = layout.history(1, walk.dtype)[0]
        start[...] = states[0]
        if len(states) > 1:
            self.C[...] = layout.units(states[1])
        step, h, H = self.step, layout.operands(start), layout.units(start)
        for *x, new_h, new_H in zip(*arguments, strict=True):
            step(*x, h, H, new_H)
            h, H = new_h, new_H
        layout.units(states[0])[...] = H
        if len(states) > 1:
            layout.units(states[1])[...] = self.C
