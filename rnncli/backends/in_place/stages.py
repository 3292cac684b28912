"""Stages: memory for a block of steps of some sequences, and the code that runs them in it.

Gates and states are [H, N], so that a gate, and the block of all sigmoids, is contiguous and
weights are used unchanged, from the left: weights @ h. A general stage projects the inputs of all
steps of a block at once, before stepping.

In small recurrences NumPy's call overhead exceeds the arithmetic. Their stage stacks the state
before a step, a 1 and its inputs, [h, 1, x], so that one product with [R, b, W] computes the gates,
and each step writes its state into the stack of the next. BLAS sums in this order; with the larger
inputs first, errors would be 40 to 50 % larger.
"""

from __future__ import annotations

import threading
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.backends import in_place as tuning
from rnncli.backends.in_place.time_steps import StepBuffers, in_place, kernel_of, sigmoid_divisor
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import placed

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from rnncli.backends.in_place.time_steps import Kernel, Walk
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import CellOptions
    from rnncli.recurrence.recurrence import Recurrence

SIGMOID = ACTIVATIONS["Sigmoid"].function


class StageSettings(NamedTuple):
    """The settings that determine the memory and the calls of a step.

    Attributes:
        kernel: the cell's kernel.
        N, I, H, G: numbers of live sequences, inputs, units and gates.
        steps: the maximum number of steps in a block.
        dtype: the dtype of the arithmetic.
        activations: the function, alpha and beta of each.
        clips: the bound of each activation's argument.
        has_P, has_Rbh: whether there are peepholes, and an Rbh scaled by the reset gate.
        options: as `StepBuffers` has it.
    """

    kernel: Kernel
    N: int
    I: int  # noqa: E741 -- the specification's letter
    H: int
    G: int
    steps: int
    dtype: np.dtype[Any]
    activations: tuple[tuple[Any, float | None, float | None], ...]
    clips: tuple[float, ...]
    has_P: bool
    has_Rbh: bool
    options: CellOptions

    @property
    def multiplications(self) -> int:
        """The number of multiplications in a step's product, if inputs are stacked."""
        return self.stacked_weights * self.N

    @property
    def stacked_weights(self) -> int:
        """The number of weights in [R, b, W] of all gates."""
        return len(self.kernel.stacked) * self.H * (self.I + 1 + self.H)


def settings_of(recurrence: Recurrence, d: int, dtype: np.dtype[Any], live: int) -> StageSettings:
    """Return the settings of the stage of a direction, for some sequences."""
    r = recurrence
    T, _, I = r.X.shape  # noqa: E741
    _, G, H, _ = r.W.shape
    kernel = kernel_of(r)
    return StageSettings(
        kernel=kernel,
        N=live,
        I=I,
        H=H,
        G=G,
        steps=1 << (T - 1).bit_length(),
        dtype=dtype,
        activations=tuple([(a.function, a.alpha, a.beta) for a in r.activations[d]]),
        clips=(r.clip, r.clip, r.bound("h")),
        has_P=r.P is not None,
        has_Rbh=r.Rb is not None and kernel.resets_bias,
        options=r.options,
    )


def is_small(settings: StageSettings) -> bool:
    """Return whether stacking pays even if it is repeated at every call."""
    return settings.multiplications <= tuning.STACKED_PRODUCT


class StageWeights(NamedTuple):
    """The weights of one direction, in the dtype of the arithmetic."""

    W: Array  # weights of the gates [G, H, I]; in a small stage those of the stack [H + 1 + I, G*H]
    R: Array  # recurrent weights [G, H, H]
    bias: Array | None  # bias of the projected inputs [G, H], or None
    P: Array | None  # peephole weights [3, H], or None
    # recurrent bias [H] of the GRU's hidden gate, if it is scaled by the reset gate
    Rbh: Array | None


def weights_of(recurrence: Recurrence, d: int, dtype: np.dtype[Any]) -> StageWeights:
    """Return the weights of a direction.

    They are aligned, because NumPy copies unaligned ones, like some tensors in a protobuf, at every
    product.
    """

    def own(values: Array | None) -> Any:
        if values is None:
            return None
        return np.require(values[d].astype(dtype, copy=False), requirements=["C", "ALIGNED"])

    r = recurrence
    bias, Rbh = placed(own(r.Wb), own(r.Rb), r.options)
    return StageWeights(own(r.W), own(r.R), bias, own(r.P), Rbh)


# Memory for a block of steps, in processing order, and the code that runs them in it. `form` is
# equal for stages with the same layout of weights, `steps` the most of a block, `nbytes` the size.
Stage: TypeAlias = "GeneralStage | SmallStage"

_CACHE = threading.local()


def stage_for(recurrence: Recurrence, d: int, dtype: np.dtype[Any], live: int) -> Stage:
    """Return this thread's cached stage for some sequences, or a new one.

    Only the memory is reused, never its contents: touching a fresh page costs more than filling it.
    """
    settings = settings_of(recurrence, d, dtype, live)
    repays = settings.stacked_weights <= tuning.COPIED_WEIGHTS * settings.steps
    is_stacked = is_small(settings) and (recurrence.constants is not None or repays)
    make: type[SmallStage | GeneralStage] = SmallStage if is_stacked else GeneralStage
    stages: dict[Hashable, Stage] = vars(_CACHE).setdefault("stages", {})
    stage = stages.pop((make, settings), None) or make(settings, recurrence.activations[d])
    if stage.nbytes <= tuning.MOST_OF_ONE:
        stages[make, settings] = stage  # most recently used last
        total = sum(each.nbytes for each in stages.values())
        while total > tuning.MOST_OF_ALL or len(stages) > tuning.MOST_STAGES:
            total -= stages.pop(next(iter(stages))).nbytes
    return stage


class StateProduct:
    """A product of weights [n, K], set before stepping, with a state, written to fixed gates.

    Args:
        out: the gates.
        sums: those of them to which projected inputs are added.
        depth: the number of terms that are summed up at once, which limits rounding errors.
            OpenBLAS sums 256 to 384; each additional block costs 1 to 4 % of the product.
    """

    __slots__ = ("depth", "matrix", "others", "out", "part", "sums")

    def __init__(self, out: Array, sums: Array, depth: int) -> None:
        self.out, self.sums, self.depth = out.reshape(-1, out.shape[-1]), sums, depth
        self.matrix = self.part = np.empty_like(self.out)
        self.others: list[tuple[Array, slice]] = []

    def load(self, weights: Array) -> None:
        """Set the weights [..., K]."""
        matrix = weights.reshape(-1, weights.shape[-1])
        starts = range(self.depth, matrix.shape[-1], self.depth)
        blocks = [slice(start, start + self.depth) for start in starts]
        self.matrix = matrix[:, : self.depth]
        self.others = [(matrix[:, block], block) for block in blocks]

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply; add x."""
        self.matrix.dot(operand[: self.depth] if self.others else operand, self.out)
        np.add(self.sums, x, self.sums)
        for matrix, block in self.others:
            matrix.dot(operand[block], self.part)
            np.add(self.out, self.part, self.out)


class GeneralStage:
    """A stage that projects the inputs of a block of steps at once, before stepping.

    Inputs of many sequences are projected to [G*H, S*N], in the order of the gates; of few to
    [S*N, G*H], whose rows stay in the cache until their step.

    Args:
        settings: the stage's settings.
        activations: the cell's activations, of f, g, h.
    """

    def __init__(self, settings: StageSettings, activations: Sequence[Activation]) -> None:
        self.settings, kernel = settings, settings.kernel
        self.form: Hashable = GeneralStage
        N, H, G, dtype = settings.N, settings.H, settings.G, settings.dtype
        self.is_wide = N >= tuning.MANY_SEQUENCES
        least = tuning.BLOCK_COLUMNS // N if self.is_wide else 1
        self.steps = min(settings.steps, max(least, tuning.BLOCK_NUMBERS // (N * G * H)))
        gates, spare = np.empty((2, G, H, N), dtype)
        self.C, self.Rbh = np.empty((2, H, N), dtype)
        self.P = np.empty((3, H, N), dtype) if settings.has_P else None
        depth = tuning.STATES_AS_INPUTS * kernel.depth
        self.products = [
            StateProduct(gates[part], gates[sums], depth)
            for part, sums in zip(kernel.products, kernel.inputs, strict=False)
        ]
        functions = zip(activations, kernel.arguments, settings.clips, strict=False)
        self.walk: Walk = kernel.make(
            StepBuffers(
                gates=gates,
                places=range(G),
                hidden=gates[-1],
                spare=spare[0],
                products=self.products,
                functions=[in_place(a, spare[part], clip) for a, part, clip in functions],
                scale=np.multiply,
                C=self.C,
                P=self.P,
                Rbh=self.Rbh if settings.has_Rbh else None,
                options=settings.options,
            )
        )
        self.history = np.empty((self.steps + 1, H, N), dtype)  # starts with the state before
        if self.is_wide:
            self.projection = np.empty((G * H, self.steps * N), dtype)
            inputs = self.projection.reshape(G, H, self.steps, N).transpose(2, 0, 1, 3)
        else:
            self.projection = np.empty((self.steps * N, G * H), dtype)
            inputs = self.projection.reshape(self.steps, N, G, H).transpose(0, 2, 3, 1)
        parts = [inputs[:, part] for part in kernel.inputs]
        states = self.history
        self.calls = list(zip(*parts, states, states, states[1:], strict=False))
        self.nbytes = self.projection.nbytes + self.history.nbytes + 4 * gates.nbytes

    def lay_out(self, weights: StageWeights) -> StageWeights:
        """Lay out weights for `load`: these stay as they are."""
        return weights

    def load(self, weights: StageWeights) -> None:
        """Store references; copy what the steps have looked up."""
        self.weights = weights
        for product, part in zip(self.products, self.settings.kernel.products, strict=True):
            product.load(weights.R[part])
        for buffer, values in ((self.P, weights.P), (self.Rbh, weights.Rbh)):
            if buffer is not None and values is not None:
                buffer[...] = values[..., None]

    def run(self, X: Array, states: Sequence[Array | None]) -> tuple[Array, Sequence[Array]]:
        """Run a block of steps, after projecting its inputs.

        Args:
            X: inputs [S, N, I].
            states: H and, for an LSTM, C before the block [N, H]; None means zero.

        Returns:
            H after each step [S, N, H], and the last states [N, H], in memory overwritten by the
            next block.

        Raises:
            FloatingPointError: a number, such as e^x, overflows and NumPy raises that.
        """
        count = len(X)
        self._project(X.astype(self.settings.dtype, order="C", copy=False))
        for buffer, state in zip((self.history[0], self.C), states, strict=False):
            buffer[...] = 0 if state is None else state.T
        self.walk(self.calls[:count])
        last = self.history[count].T, self.C.T
        return self.history[1 : count + 1].swapaxes(1, 2), last[: len(states)]

    def _project(self, X: Array) -> None:
        """Multiply once for all steps, but sum large products in blocks of the kernel's depth."""
        flat = (v.reshape(v.shape[0] * v.shape[1], v.shape[2]) for v in (X, self.weights.W))
        rows, W = flat  # without -1, which says nothing where there are no inputs
        depth, bias = self.settings.kernel.depth, self.weights.bias
        if self.is_wide:
            left, right, out = W, rows.T, self.projection[:, : len(rows)]
        else:
            left, right, out = rows, W.T, self.projection[: len(rows)]
        np.matmul(left[:, :depth], right[:depth], out=out)
        for start in range(depth, self.settings.I, depth):
            block = slice(start, start + depth)
            out += left[:, block] @ right[block]
        if bias is not None:
            out += bias.reshape(-1, 1) if self.is_wide else bias.reshape(-1)


class StageSpan(NamedTuple):
    """The parts of a stage that a number of steps use; states have an axis of direction."""

    steps: int  # their number S
    calls: Sequence[tuple[Array, ...]]  # the arguments of each step
    inputs: Array  # x [S, N, I]
    states: Array  # h after each step [S, 1, N, H]
    last: tuple[Array, Array]  # h and C after the last step [1, N, H]
    numbers: tuple[Array, Array]  # those of `last` in the order of memory [H*N]


class SmallStage:
    """A stage of stacks.

    Args:
        settings: the stage's settings.
        activations: the cell's activations, of f, g, h.

    Attributes:
        stacks: the stack before each step [S + 1, H + 1 + I, N].
        matrix: weights of all gates [H + 1 + I, G*H]; BLAS is faster with this transposed form.
        gates: the gates computed by the product, and one more [G + 1, H, N].
        divisors: the number of gates, the first ones, that are stored as divisors.
    """

    def __init__(self, settings: StageSettings, activations: Sequence[Activation]) -> None:
        self.settings, self.kernel = settings, settings.kernel
        N, I, H, dtype = settings.N, settings.I, settings.H, settings.dtype  # noqa: E741
        is_sigmoid = activations[0].function is SIGMOID
        self.divisors = self.kernel.divisors if is_sigmoid else 0
        self.form: Hashable = (SmallStage, self.divisors)
        G, K = len(self.kernel.stacked), H + 1 + I
        self.steps = max(1, min(settings.steps, tuning.STACKED_NUMBERS // max(1, K * N)))
        self.stacks = np.ones((self.steps + 1, K, N), dtype)
        self.matrix = np.empty((K, G * H), dtype)
        self.gates = np.empty((G + 1, H, N), dtype)
        self.C = self.gates[-1]
        self.P = np.empty((3, H, N), dtype) if settings.has_P else None
        self.walk: Walk = self.kernel.make(self._buffers(activations))
        self._entering = self.stacks[0, :H], self.C

        # The arguments of each step; the product writes to x.
        kernel, gates = self.kernel, self.gates
        parts = [gates[:-1].reshape(-1, self.settings.N)]
        parts += [gates[k] for k, row in enumerate(kernel.stacked) if not row.of_h]
        states = self.stacks[:, : self.settings.H]
        self._calls = list(zip(*map(repeat, parts), self.stacks, states, states[1:], strict=False))
        self._span = self._spanned(self.steps)
        self.nbytes = self.stacks.nbytes + self.matrix.nbytes + 2 * self.gates.nbytes

    def _buffers(self, activations: Sequence[Activation]) -> StepBuffers:
        kernel, gates = self.kernel, self.gates
        spare = np.empty_like(gates)
        cell = [row.gate for row in kernel.stacked]
        made = [k for k, row in enumerate(kernel.stacked) if not row.of_x]
        hidden = gates[made[0] if made else -1]
        self.products = [StateProduct(hidden, hidden, len(hidden)) for _ in kernel.products[1:]]
        rows = zip(activations, self.kernel.arguments, self.settings.clips, strict=False)
        functions = [in_place(activation, spare[part], clip) for activation, part, clip in rows]
        if self.divisors:
            buffers = spare[self.kernel.arguments[0]]
            functions[0] = sigmoid_divisor(buffers, self.settings.clips[0])
        return StepBuffers(
            gates=gates,
            places=tuple([cell.index(gate) for gate in sorted({*cell})]),
            hidden=hidden,
            spare=spare[0],
            products=[self.matrix.T.dot, *self.products],
            functions=functions,
            scale=np.divide if self.divisors else np.multiply,
            C=self.C,
            P=self.P,
            Rbh=None,
            options=self.settings.options,
        )

    def lay_out(self, weights: StageWeights) -> StageWeights:
        """Stack the weights of all gates, negated for those stored as divisors."""
        matrix, H = np.empty_like(self.matrix), self.settings.H
        gates = matrix.reshape(len(matrix), -1, H)
        for k, row in enumerate(self.kernel.stacked):
            sign = np.negative if k < self.divisors else np.positive
            W, bias = (weights.W[row.gate].T, weights.bias) if row.of_x else (0, None)
            b = weights.Rbh if not row.of_x else 0 if bias is None else bias[row.gate]
            h, one, x = np.split(gates[:, k], [H, H + 1])
            sign(W, x)
            sign(0 if b is None else b, one)
            sign(weights.R[row.gate].T if row.of_h else 0, h)
        return weights._replace(W=matrix)

    def load(self, weights: StageWeights) -> None:
        """Copy the matrix, whose address the product has already looked up."""
        self.matrix[...] = weights.W
        for product, part in zip(self.products, self.kernel.products[1:], strict=True):
            product.load(weights.R[part])
        if self.P is not None and weights.P is not None:
            self.P[...] = weights.P[..., None]

    def run(self, X: Array, states: Sequence[Array | None]) -> tuple[Array, Sequence[Array]]:
        """Run a block of steps in the stacks; see `GeneralStage.run`."""
        span = self.span(len(X))
        self.step(span, X, [None if state is None else state[None] for state in states], 0)
        return span.states[:, 0], [state[0] for state in span.last[: len(states)]]

    def span(self, count: int) -> StageSpan:
        """Return the parts that a number of steps use; those of the last number are kept."""
        span = self._span
        if span.steps != count:
            span = self._span = self._spanned(count)
        return span

    def _spanned(self, count: int) -> StageSpan:
        H, stacks = self.settings.H, self.stacks
        return StageSpan(
            count,
            self._calls[:count],
            stacks[:count, H + 1 :].swapaxes(1, 2),
            stacks[1 : count + 1, None, :H].swapaxes(2, 3),
            (stacks[count, :H].T[None], self.C.T[None]),
            (stacks[count, :H].reshape(-1), self.C.reshape(-1)),
        )

    def step(self, span: StageSpan, X: Array, initial: Sequence[Array | None], d: int) -> None:
        """Run the steps of a span.

        Args:
            span: a span of this stage.
            X: inputs [S, N, I].
            initial: H and, for an LSTM, C before the span [D, N, H]; None means zero.
            d: the direction.
        """
        dtype = self.matrix.dtype  # 16 bits: faster in order
        span.inputs[...] = X if X.dtype == dtype else X.astype(dtype)
        for state, place in zip(initial, self._entering, strict=False):
            if state is None:
                place.fill(0)
            else:
                place[...] = state[d].T
        self.walk(span.calls)
