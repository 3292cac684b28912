"""The stage of small recurrences, in which calls of NumPy cost more than what they compute.

The state before a step, a 1 and its inputs are stacked, [h, 1, x], so that one product with
[R, b, W] makes the gates, and each step writes its state into the stack of the next. BLAS sums up
in this order; with the inputs first, which are larger, errors would be larger too, by 40 to 50 %.
"""

from __future__ import annotations

import math
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.in_place import tuning
from rnncli.backends.in_place.activations import in_place, sigmoid_divisor
from rnncli.backends.in_place.cells import Parts
from rnncli.backends.in_place.layouts import ProductOfFew, as_they_lie
from rnncli.backends.in_place.memory import room
from rnncli.backends.in_place.weights import Given, Weights
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from rnncli.backends.in_place.activations import Function
    from rnncli.backends.in_place.cells import Walk
    from rnncli.backends.in_place.stage import Settings
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation


SIGMOID = ACTIVATIONS["Sigmoid"].function


def is_small(settings: Settings) -> bool:
    """Return whether stacking pays, at every call anew."""
    return _multiplications(settings) <= tuning.STACKED_PRODUCT


def is_short(settings: Settings, T: int) -> bool:
    """Return whether T steps are faster with weights that are stacked already."""
    return _multiplications(settings) * T <= tuning.STACKED_CALL


def is_soon_copied(settings: Settings) -> bool:
    """Return whether the steps are enough for weights that are stacked for one call alone."""
    return _weights(settings) <= tuning.COPIED_WEIGHTS * settings.steps


def _multiplications(settings: Settings) -> int:
    """Count those of a step's product."""
    return _weights(settings) * settings.N


def _weights(settings: Settings) -> int:
    return len(settings.kernel.stacked) * settings.H * (settings.I + 1 + settings.H)


class StackedStage:
    """A stage whose gates are [G, H, N].

    Args:
        settings: what it is for.
        activations: f, g, h, as many as there are.

    Attributes:
        stacks: before each step [S + 1, H + 1 + I, N].
        inputs, history: x [S, N, I] and h [S + 1, N, H] in them.
        matrix: weights of all gates [H + 1 + I, G*H]; BLAS takes them transposed sooner.
        gates: those that the product makes, and one more [G + 1, H, N].
    """

    def __init__(self, settings: Settings, activations: Sequence[Activation]) -> None:
        self.settings, self.kernel = settings, settings.kernel
        N, I, H, dtype = settings.N, settings.I, settings.H, settings.dtype  # noqa: E741
        is_sigmoid = activations[0].function is SIGMOID
        self.divisors = self.kernel.divisors if is_sigmoid else 0
        self.form: Hashable = (StackedStage, self.divisors)
        G, K = len(self.kernel.stacked), H + 1 + I
        self.steps = max(1, min(settings.steps, tuning.STACKED_NUMBERS // max(1, K * N)))
        self.stacks = np.ones((self.steps + 1, K, N), dtype)
        self.inputs = self.stacks[:-1, H + 1 :].swapaxes(1, 2)
        self.history = self.stacks[:, :H].swapaxes(1, 2)
        self._flat = self.stacks[:, :H].reshape(len(self.stacks), -1)
        self.matrix = np.empty((K, G * H), dtype)
        self.gates = np.empty((G + 1, H, N), dtype)
        self.C, self.last_C = self.gates[-1], self.gates[-1].T
        self._flat_C = self.C.reshape(-1)
        self.P = np.empty((3, H, N), dtype) if settings.has_P else None
        self.walk: Walk = self.kernel.make(self._parts(activations))
        self.calls = self._calls()
        self.nbytes = self.stacks.nbytes + self.matrix.nbytes + 2 * self.gates.nbytes

    def _parts(self, activations: Sequence[Activation]) -> Parts:
        kernel, gates = self.kernel, self.gates
        spare, reset = np.empty_like(gates), np.empty_like(gates[0])
        cell = [row.gate for row in kernel.stacked]
        made = [k for k, row in enumerate(kernel.stacked) if not row.of_x]
        self.hidden = gates[made[0] if made else -1]
        self.products = [ProductOfFew(self.hidden, self.hidden) for _ in kernel.products[1:]]
        return Parts(
            gates=gates,
            places=tuple([cell.index(gate) for gate in sorted({*cell})]),
            hidden=self.hidden,
            spare=spare[0],
            products=[self.matrix.T.dot, *self.products],
            functions=self._functions(activations, spare),
            scale=np.divide if self.divisors else np.multiply,
            C=self.C,
            P=self.P,
            Rbh=None,
            operand=reset,
            operand_unit=reset,
            input_forget=self.settings.input_forget,
        )

    def _functions(self, activations: Sequence[Activation], spare: Array) -> list[Function]:
        rows = zip(activations, self.kernel.arguments, self.settings.clips, strict=False)
        functions = [in_place(activation, spare[part], clip) for activation, part, clip in rows]
        if self.divisors:
            rooms = spare[self.kernel.arguments[0]]
            functions[0] = sigmoid_divisor(rooms, self.settings.clips[0])
        return functions

    def _calls(self) -> list[tuple[Array, ...]]:
        """Return what each step is called with; x is where the product writes."""
        kernel, gates = self.kernel, self.gates
        parts = [gates[:-1].reshape(-1, self.settings.N)]
        parts += [gates[k] for k, row in enumerate(kernel.stacked) if not row.of_h]
        states = self.history.swapaxes(1, 2)
        return list(zip(*map(repeat, parts), self.stacks, states, states[1:], strict=False))

    def lay_out(self, given: Given, named: Callable[[str], str | None]) -> Weights:
        """Stack the weights of all gates, negated where what is made is a divisor."""
        name = named("stack")
        shape, dtype = self.matrix.shape, self.matrix.dtype
        matrix = np.empty(shape, dtype) if name is None else room(name, shape, dtype)
        gates = matrix.reshape(len(matrix), -1, self.settings.H)
        for k, row in enumerate(self.kernel.stacked):
            sign = np.negative if k < self.divisors else np.positive
            W, bias = (given.W[row.gate].T, given.bias) if row.of_x else (0, None)
            b = given.Rbh if not row.of_x else 0 if bias is None else bias[row.gate]
            h, one, x = np.split(gates[:, k], [self.settings.H, self.settings.H + 1])
            sign(W, x)
            sign(0 if b is None else b, one)
            sign(given.R[row.gate].T if row.of_h else 0, h)
        others = [as_they_lie(given.R[part]) for part in self.kernel.products[1:]]
        return Weights(matrix, others, None, given.P, None)

    def load(self, weights: Weights) -> None:
        """Copy the matrix: the product was looked up once."""
        self.matrix[...] = weights.W
        for product, matrix in zip(self.products, weights.R, strict=True):
            product.load(matrix)
        if self.P is not None and weights.P is not None:
            self.P[...] = weights.P[..., None]

    def run(self, X: Array, states: Sequence[Array | None]) -> tuple[Array, Sequence[Array]]:
        """Write the inputs into their stacks, and walk."""
        count = len(X)
        self.inputs[:count] = X.astype(self.matrix.dtype, copy=False)  # 16 bits sooner in order
        for place, state in zip((self.history[0], self.last_C), states, strict=False):
            if state is None:
                place.fill(0)
            else:
                place[...] = state
        self.walk(self.calls if count == self.steps else self.calls[:count])
        return self.history[1 : count + 1], (self.history[count], self.last_C)[: len(states)]

    def is_finite(self, count: int, states: int) -> bool:
        """Return whether the states after some steps are, as `Walk.is_finite` has it."""
        h = self._flat[count]
        if not math.isfinite(h.dot(h)):
            return False
        C = self._flat_C
        return states == 1 or math.isfinite(C.dot(C))
