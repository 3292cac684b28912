"""Walking one direction of a recurrence through time, over any arithmetic.

Sequences are processed longest first, so that at time t the live ones are the first `active[t]`
rows. Forward that prefix shrinks, in reverse it grows; either way padding is never computed with,
and each sequence starts from its initial state at its own first step.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rnncli.backends.order import Batch
from rnncli.deadline import check
from rnncli.recurrence.cells import Parameters
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.numerics import Array, DType
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.arithmetic import Arithmetic

# Time is cut into blocks of about this many numbers, inputs or projected gates, but no fewer rows:
# enough for an efficient matrix product, few enough to bound memory and to stay in cache.
BLOCK_NUMBERS = 1 << 18
BLOCK_ROWS = 256


class Engine(Protocol):
    """What a scan computes with; `dtype` is that of the arrays of its numbers."""

    dtype: np.dtype[Any]

    @property
    def math(self) -> Arithmetic:
        """Elementwise functions of its numbers."""

    def widen(self, values: Array) -> Array:
        """Return a tensor's values as its numbers, exactly."""

    def matrix(self, weights: Array) -> Any:
        """Return weights [rows, K] in the form that `multiply` wants."""

    def multiply(self, values: Array, matrix: Any, out: Array) -> None:
        """Write values [n, K] times the transposed weights to out [n, rows]."""

    def round(self, values: Array, dtype: DType) -> Array:
        """Round its numbers once to a tensor's dtype."""


def block_steps(T: int, N: int, width: int) -> int:
    """Return how many time steps, of N rows of some width, one matrix product projects."""
    steps = max(BLOCK_NUMBERS // max(1, N * width), BLOCK_ROWS // max(1, N), 1)
    return min(steps, max(1, T))


def scan_all(recurrence: Recurrence, engine: Engine) -> Result:
    """Scan each direction of a recurrence."""
    T, N, _ = recurrence.X.shape
    D, _, H, _ = recurrence.W.shape
    Y = np.zeros((T, D, N, H), recurrence.dtype.numpy) if recurrence.wants_Y else None
    last = tuple(np.empty((D, N, H), recurrence.dtype.numpy) for _ in range(recurrence.cell.states))
    for d in range(D):
        states = Scan(recurrence, d, engine).run(None if Y is None else Y[:, d])
        for output, state in zip(last, states, strict=True):
            output[d] = state
    return Result(Y, last)


class Scan:
    """One direction of a recurrence, ready to run."""

    def __init__(self, recurrence: Recurrence, d: int, engine: Engine) -> None:
        self.recurrence = recurrence
        self.d = d
        self.engine = engine
        self.T, self.N, self.I = recurrence.X.shape
        _, self.G, self.H, _ = recurrence.W.shape
        self.block_steps = block_steps(self.T, self.N, max(self.G * self.H, self.I))
        self.batch = Batch.of(recurrence.lengths, self.T, self.N)
        W = engine.widen(recurrence.W[d])
        self.W = engine.matrix(W.reshape(self.G * self.H, self.I))
        self.R = engine.widen(recurrence.R[d])
        self.matrices: dict[tuple[int, int], Any] = {}
        self.bias = self._input_bias()
        self.product = np.empty(self.N * self.G * self.H, engine.dtype)
        self.parameters = self._parameters()

    def run(self, Y: Array | None) -> list[Array]:
        """Walk through time; write each H into Y [T, N, H] and return the last states [N, H].

        Y and the states returned are rounded to the recurrence's dtype.
        """
        states = [self._initial(state) for state in self.recurrence.initial]
        history = (
            None if Y is None else np.empty((self.block_steps, self.N, self.H), self.engine.dtype)
        )
        projected = np.empty((self.block_steps * self.N, self.G * self.H), self.engine.dtype)
        for block in self._blocks():
            check()
            x = self._project(block, projected)
            steps = range(block.stop - block.start)
            for t in reversed(steps) if self._is_reverse else steps:
                self._step(x[t], block.start + t, states, None if history is None else history[t])
            if Y is not None and history is not None:
                Y[block] = self.engine.round(history[: len(steps)], self.recurrence.dtype)
        last = [self._finish(state) for state in states]
        return [self.engine.round(state, self.recurrence.dtype) for state in last]

    @property
    def _is_reverse(self) -> bool:
        return self.recurrence.directions[self.d] is Direction.REVERSE

    def _initial(self, state: Array | None) -> Array:
        """Return an initial state [N, H] in processing order, free to be overwritten."""
        if state is None:
            return np.zeros((self.N, self.H), self.engine.dtype)
        return self.engine.widen(state[self.d][self.batch.rows(self.N)]).copy()

    def _finish(self, state: Array) -> Array:
        """Put a last state back into the caller's order and settle sequences of length 0."""
        if not self.recurrence.keep_initial:
            live = self.batch.active[0] if self.T else 0
            state[live:] = 0
        if self.batch.order is not None:
            state[self.batch.order] = state.copy()
        return state

    def _input_bias(self) -> Array:
        """Sum what is added to Xt*(W^T) of each gate [G*H], in the engine's numbers."""
        bias = np.zeros((self.G, self.H), self.engine.dtype)
        for part in (self.recurrence.Wb, self.recurrence.Rb):
            if part is not None:
                bias += self.engine.widen(part[self.d])
        if self.recurrence.linear_before_reset and self.recurrence.Rb is not None:
            hidden = self.recurrence.Wb
            bias[2] = 0 if hidden is None else self.engine.widen(hidden[self.d][2])
        return bias.reshape(-1)

    def _parameters(self) -> Parameters:
        recurrence = self.recurrence
        clips = {"f": True, "g": True, "h": recurrence.clip_hidden}
        functions = {
            letter: partial(self._activate, activation, clip=clips[letter])
            for letter, activation in zip(
                recurrence.cell.activations, recurrence.activations[self.d], strict=True
            )
        }
        reset_bias = recurrence.linear_before_reset and recurrence.Rb is not None
        return Parameters(
            R=self._recur,
            f=functions["f"],
            g=functions.get("g", functions["f"]),
            h=functions.get("h", functions["f"]),
            blend=self.engine.math.blend,
            P=None if recurrence.P is None else self.engine.widen(recurrence.P[self.d]),
            Rbh=self.engine.widen(recurrence.Rb[self.d][2]) if reset_bias else 0,  # type: ignore[index]
            input_forget=recurrence.input_forget,
            linear_before_reset=recurrence.linear_before_reset,
        )

    def _activate(self, activation: Activation, x: Array, *, clip: bool) -> Array:
        bound = self.recurrence.clip
        if clip and math.isfinite(bound):
            x = self.engine.math.minimum(self.engine.math.maximum(x, -bound), bound)
        return np.asarray(activation(self.engine.math, x))

    def _recur(self, state: Array, gates: slice = slice(None)) -> Array:
        """Return state*(R^T) of some gates, [gates, n, H], in the buffer kept for it."""
        first, last, _ = gates.indices(self.G)
        if (first, last) not in self.matrices:
            self.matrices[first, last] = self.engine.matrix(self.R[gates].reshape(-1, self.H))
        n, count = len(state), last - first
        out = self.product[: n * count * self.H].reshape(n, count * self.H)
        self.engine.multiply(state, self.matrices[first, last], out)
        return out.reshape(n, count, self.H).transpose(1, 0, 2)

    def _blocks(self) -> Iterator[slice]:
        """Cut time into blocks, in the order of this direction."""
        starts = range(0, self.T, self.block_steps)
        for start in reversed(starts) if self._is_reverse else starts:
            yield slice(start, min(start + self.block_steps, self.T))

    def _project(self, block: slice, out: Array) -> Array:
        """Return Xt*(W^T) + Wb + Rb of every step and gate of a block, [steps, N, G, H]."""
        X = self.engine.widen(self.recurrence.X[block])
        steps = len(X)
        out = out[: steps * self.N]
        self.engine.multiply(X.reshape(steps * self.N, self.I), self.W, out)
        out += self.bias
        return out.reshape(steps, self.N, self.G, self.H)

    def _step(self, x: Array, t: int, states: list[Array], H: Array | None) -> None:
        """Advance the live sequences from x [N, G, H]; write their H into the row of Y."""
        n = self.batch.active[t]
        rows = self.batch.rows(n)
        live = tuple(state[:n] for state in states)
        new = self.recurrence.cell.step(self.parameters, x[rows].transpose(1, 0, 2), live)
        if H is not None:
            if n < self.N:
                H[...] = 0
            H[rows] = new[0]
        for k, state in enumerate(new):
            if n == self.N:
                states[k] = state
            else:
                states[k][:n] = state
