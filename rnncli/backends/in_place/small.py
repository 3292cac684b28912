"""Small recurrences, in which NumPy's call overhead exceeds the arithmetic.

The state before a step, a 1 and its inputs are stacked, [h, 1, x], so that one product with [R, b,
W] computes the gates, and each step writes its state into the stack of the next. BLAS sums in this
order; with the larger inputs first, errors would be 40 to 50 % larger.

For constant weights and full sequences, everything but the values is prepared once: a call then
takes the time of its steps and a few microseconds.

Both directions can be fused into one recurrence with twice the units and half as many steps: the
weights are block-diagonal, and a step takes the inputs of both directions, X[t] and X[T - 1 - t].
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import repeat
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.blas import bounded
from rnncli.backends.in_place import tuning
from rnncli.backends.in_place.memory_layouts import ProductOfFew, as_they_lie
from rnncli.backends.in_place.numpy_functions import in_place, sigmoid_divisor
from rnncli.backends.in_place.plan import (
    DirectionWeights,
    KernelWeights,
    NotFiniteError,
    Settings,
    direction_weights,
    in_silence,
    settings_of,
)
from rnncli.backends.in_place.scratch import buffer
from rnncli.backends.in_place.time_steps import StepBuffers
from rnncli.numerics import ready_to_round
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.recurrence import TENSORS, Constants, Direction, Result, all_but

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from rnncli.backends.backend import BoundCall
    from rnncli.backends.in_place.numpy_functions import Function
    from rnncli.backends.in_place.time_steps import Walk
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.recurrence import Recurrence


SIGMOID = ACTIVATIONS["Sigmoid"].function


def is_small(settings: Settings) -> bool:
    """Return whether stacking pays even if it is repeated at every call."""
    return _multiplications(settings) <= tuning.STACKED_PRODUCT


def is_short(settings: Settings, T: int) -> bool:
    """Return whether T steps are faster with weights that are already stacked."""
    return _multiplications(settings) * T <= tuning.STACKED_CALL


def is_soon_copied(settings: Settings) -> bool:
    """Return whether there are enough steps to stack the weights for a single call."""
    return _weights(settings) <= tuning.COPIED_WEIGHTS * settings.steps


def _multiplications(settings: Settings) -> int:
    """Return the number of multiplications in a step's product."""
    return _weights(settings) * settings.N


def _weights(settings: Settings) -> int:
    return len(settings.kernel.stacked) * settings.H * (settings.I + 1 + settings.H)


class StageSpan(NamedTuple):
    """The parts of a stage that a number of steps use; those of states have an axis of direction.

    Attributes:
        steps: their number S.
        calls: the arguments of each step.
        inputs: x [S, N, I].
        states: h after each step [S, 1, N, H].
        last: h and C after the last step [1, N, H].
        numbers: those of `last` in the order of memory [H*N].
    """

    steps: int
    calls: Sequence[tuple[Array, ...]]
    inputs: Array
    states: Array
    last: tuple[Array, Array]
    numbers: tuple[Array, Array]


class SmallStage:
    """A stage whose gates are [G, H, N].

    Args:
        settings: the stage's settings.
        activations: the cell's activations, of f, g, h.

    Attributes:
        stacks: the stack before each step [S + 1, H + 1 + I, N].
        history: h [S + 1, N, H], as a view of the stacks.
        matrix: weights of all gates [H + 1 + I, G*H]; BLAS is faster with this transposed form.
        gates: the gates computed by the product, and one more [G + 1, H, N].
    """

    def __init__(self, settings: Settings, activations: Sequence[Activation]) -> None:
        self.settings, self.kernel = settings, settings.kernel
        N, I, H, dtype = settings.N, settings.I, settings.H, settings.dtype  # noqa: E741
        is_sigmoid = activations[0].function is SIGMOID
        self.divisors = self.kernel.divisors if is_sigmoid else 0
        self.form: Hashable = (SmallStage, self.divisors)
        G, K = len(self.kernel.stacked), H + 1 + I
        self.steps = max(1, min(settings.steps, tuning.STACKED_NUMBERS // max(1, K * N)))
        self.stacks = np.ones((self.steps + 1, K, N), dtype)
        self.history = self.stacks[:, :H].swapaxes(1, 2)
        self.matrix = np.empty((K, G * H), dtype)
        self.gates = np.empty((G + 1, H, N), dtype)
        self.C = self.gates[-1]
        self.P = np.empty((3, H, N), dtype) if settings.has_P else None
        self.walk: Walk = self.kernel.make(self._buffers(activations))
        self._initial = self.history[0], self.C.T
        self._zeroed = self.stacks[0, :H].reshape(-1), self.C.reshape(-1)
        self._calls = self._arguments()
        self._span = self._spanned(self.steps)
        self.nbytes = self.stacks.nbytes + self.matrix.nbytes + 2 * self.gates.nbytes

    def _buffers(self, activations: Sequence[Activation]) -> StepBuffers:
        kernel, gates = self.kernel, self.gates
        spare, reset = np.empty_like(gates), np.empty_like(gates[0])
        cell = [row.gate for row in kernel.stacked]
        made = [k for k, row in enumerate(kernel.stacked) if not row.of_x]
        self.hidden = gates[made[0] if made else -1]
        self.products = [ProductOfFew(self.hidden, self.hidden) for _ in kernel.products[1:]]
        return StepBuffers(
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
            options=self.settings.options,
        )

    def _functions(self, activations: Sequence[Activation], spare: Array) -> list[Function]:
        rows = zip(activations, self.kernel.arguments, self.settings.clips, strict=False)
        functions = [in_place(activation, spare[part], clip) for activation, part, clip in rows]
        if self.divisors:
            buffers = spare[self.kernel.arguments[0]]
            functions[0] = sigmoid_divisor(buffers, self.settings.clips[0])
        return functions

    def _arguments(self) -> list[tuple[Array, ...]]:
        """Return the arguments of each step; the product writes to x."""
        kernel, gates = self.kernel, self.gates
        parts = [gates[:-1].reshape(-1, self.settings.N)]
        parts += [gates[k] for k, row in enumerate(kernel.stacked) if not row.of_h]
        states = self.history.swapaxes(1, 2)
        return list(zip(*map(repeat, parts), self.stacks, states, states[1:], strict=False))

    def lay_out(
        self, weights: DirectionWeights, named: Callable[[str], str | None]
    ) -> KernelWeights:
        """Stack the weights of all gates, negated for those stored as divisors."""
        name = named("stack")
        shape, dtype = self.matrix.shape, self.matrix.dtype
        matrix = np.empty(shape, dtype) if name is None else buffer(name, shape, dtype)
        gates = matrix.reshape(len(matrix), -1, self.settings.H)
        for k, row in enumerate(self.kernel.stacked):
            sign = np.negative if k < self.divisors else np.positive
            W, bias = (weights.W[row.gate].T, weights.bias) if row.of_x else (0, None)
            b = weights.Rbh if not row.of_x else 0 if bias is None else bias[row.gate]
            h, one, x = np.split(gates[:, k], [self.settings.H, self.settings.H + 1])
            sign(W, x)
            sign(0 if b is None else b, one)
            sign(weights.R[row.gate].T if row.of_h else 0, h)
        others = [as_they_lie(weights.R[part]) for part in self.kernel.products[1:]]
        return KernelWeights(matrix, others, None, weights.P, None)

    def load(self, weights: KernelWeights) -> None:
        """Copy the matrix, whose address the product has already looked up."""
        self.matrix[...] = weights.W
        for product, matrix in zip(self.products, weights.R, strict=True):
            product.load(matrix)
        if self.P is not None and weights.P is not None:
            self.P[...] = weights.P[..., None]

    def run(self, X: Array, states: Sequence[Array | None]) -> tuple[Array, Sequence[Array]]:
        """Write the inputs to the stacks and run the steps."""
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
        H = self.settings.H
        states = self.history[1 : count + 1, None]
        return StageSpan(
            count,
            self._calls[:count],
            self.stacks[:count, H + 1 :].swapaxes(1, 2),
            states,
            (self.history[count][None], self.C.T[None]),
            (self.stacks[count, :H].reshape(-1), self.C.reshape(-1)),
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
        for state, place, numbers in zip(initial, self._initial, self._zeroed, strict=False):
            if state is None:
                numbers.fill(0)
            else:
                place[...] = state[d]
        self.walk(span.calls)


def is_finite(span: StageSpan, states: int) -> bool:
    """Return whether the last states of a span are finite, and not so large that a product is not.

    Whatever it is multiplied by, a number that is not finite makes one that is not.
    """
    h, C = span.numbers
    return math.isfinite(h.dot(h if states == 1 else C))


PREPARED = "in place"
# What calls with the same weights share; a call itself looks at the fields left out.
_settings_of_calls = all_but(*TENSORS, "initial", "keep_initial", "wants_Y")


def prepared_call(recurrence: Recurrence, dtype: np.dtype[Any]) -> PreparedCall | None:
    """Return the prepared call for recurrences like this, locked, or None."""
    constants = recurrence.constants
    T, N, _ = recurrence.X.shape
    if constants is None or recurrence.lengths is not None or not T * N:
        return None
    features = features_of(recurrence, dtype)
    known: tuple[PreparedCall, ...] = constants.get(PREPARED) or ()
    for call in known:
        if call.steps >= T and call.features == features and call.lock.acquire(blocking=False):
            return call
    return _prepared(recurrence, dtype, constants, known)


def _prepared(
    recurrence: Recurrence,
    dtype: np.dtype[Any],
    constants: Constants,
    known: tuple[PreparedCall, ...],
) -> PreparedCall | None:
    """Prepare a call for recurrences like this and cache it, if they are small."""
    T, N, _ = recurrence.X.shape
    settings = settings_of(recurrence, 0, dtype, N)
    if not (is_small(settings) or is_short(settings, T)):
        return None
    call = PreparedCall(recurrence, dtype)
    if call.steps < T:
        return None
    call.lock.acquire()
    constants.keep(PREPARED, (call, *known)[: tuning.MOST_FORMS])
    return call


def features_of(recurrence: Recurrence, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the properties besides T in which calls with the same weights may differ."""
    return dtype, recurrence.X.shape[1], _settings_of_calls(recurrence)


class PreparedSteps(NamedTuple):
    """A number of steps of a prepared call.

    Attributes:
        steps: the number.
        lanes: for each direction its stage, span, and whether it is reverse.
        outputs: Y [T, 1, N, H] and the last states [1, N, H] of each direction, in order of time.
    """

    steps: int
    lanes: Sequence[tuple[SmallStage, StageSpan, bool]]
    outputs: Sequence[Sequence[Array]]


class PreparedCall:
    """A prepared call for recurrences of the same weights and features.

    Args:
        recurrence: one of them.
        dtype: of the arithmetic.

    Attributes:
        features: their `features_of`.
        steps: their maximum number of steps.
        multiplications: those of the product of a step.
        lock: held during an evaluation, since they share memory.
    """

    def __init__(self, recurrence: Recurrence, dtype: np.dtype[Any]) -> None:
        r = recurrence
        self.features, self.lock = features_of(r, dtype), Lock()
        self._context = in_silence()
        self._dtype, self._is_native = r.dtype, dtype == r.dtype.numpy
        self._directions: list[tuple[SmallStage, bool]] = []
        self._states = r.cell.states
        for d, activations in enumerate(r.activations):
            stage = SmallStage(settings_of(r, d, dtype, r.X.shape[1]), activations)
            stage.load(stage.lay_out(direction_weights(r, d, dtype), lambda _: None))
            self._directions.append((stage, r.directions[d] is Direction.REVERSE))
        stage = self._directions[0][0]
        self.steps, self.multiplications = stage.steps, _multiplications(stage.settings)
        self._prepared = self._steps(self.steps)

    def run(self, recurrence: Recurrence) -> Result:
        """Evaluate one recurrence; the call must be reserved.

        Raises:
            NotFiniteError: a number overflows, or a last state is not finite.
        """
        r = recurrence
        try:
            Y, *last = self._context.run(self._run, r.X, r.initial, wants_Y=r.wants_Y)
        except FloatingPointError as failure:
            raise NotFiniteError from failure
        finally:
            self.lock.release()
        return Result(Y, tuple(last))

    def attempt(
        self, X: Array, initial: Sequence[Array | None], lengths: None, *, wants_Y: bool
    ) -> tuple[Array | None, ...] | None:
        """Return Y and the last states; None where the call is reserved, or they are not finite."""
        del lengths
        if not self.lock.acquire(blocking=False):
            return None
        try:
            return self._context.run(self._run, X, initial, wants_Y=wants_Y)
        except (FloatingPointError, NotFiniteError):
            return None
        finally:
            self.lock.release()

    def _run(self, X: Array, initial: Sequence[Array | None], *, wants_Y: bool) -> tuple[Any, ...]:
        prepared = self._prepared
        if prepared.steps != len(X):
            prepared = self._prepared = self._steps(len(X))
        for d, (stage, span, is_reverse) in enumerate(prepared.lanes):
            stage.step(span, X[::-1] if is_reverse else X, initial, d)
            if not is_finite(span, len(initial)):
                raise NotFiniteError
        outputs = prepared.outputs if wants_Y else prepared.outputs[1:]
        tensors = [self._output(parts) for parts in outputs]
        return tuple(tensors) if wants_Y else (None, *tensors)

    def _steps(self, steps: int) -> PreparedSteps:
        lanes = [(stage, stage.span(steps), reverse) for stage, reverse in self._directions]
        outputs = [
            (span.states[::-1] if is_reverse else span.states, *span.last[: self._states])
            for _, span, is_reverse in lanes
        ]
        return PreparedSteps(steps, lanes, [*zip(*outputs, strict=True)])

    def _output(self, parts: Sequence[Array]) -> Array:
        """Return an output [..., D, N, H], given that of each direction [..., 1, N, H]."""
        if not self._is_native:
            parts = [ready_to_round(part, self._dtype) for part in parts]
        if len(parts) == 1:
            return parts[0].copy() if self._is_native else parts[0].astype(self._dtype.numpy, "C")
        *front, _, N, H = parts[0].shape
        both = np.empty((*front, len(parts), N, H), self._dtype.numpy)
        for d, part in enumerate(parts):
            both[..., d : d + 1, :, :] = part
        return both


def bound(recurrence: Recurrence, dtype: np.dtype[Any]) -> BoundCall | None:
    """Return the fast path of recurrences like one that was evaluated, or None.

    See `rnncli.backends.backend.bound_call`.
    """
    if recurrence.constants is None:
        return None
    if pays(recurrence):
        of_both = bound(fuse_directions(recurrence), dtype)
        return of_both and partial(_attempt_fused, of_both)
    call = prepared_call(recurrence, dtype)
    if call is None:
        return None
    call.lock.release()
    attempt = bounded(call.attempt, call.multiplications)
    return partial(attempt, wants_Y=recurrence.wants_Y)


def _attempt_fused(
    call: BoundCall, X: Array, initial: Sequence[Array | None], lengths: None
) -> tuple[Array | None, ...] | None:
    """Return Y and the last states of both directions, given the call of the fused recurrence."""
    tensors = call(_both_ways(X), [_side_by_side(state) for state in initial], lengths)
    if tensors is None:
        return None
    Y, *last = tensors
    result = split_directions(Result(Y, tuple(last)))  # type: ignore[arg-type]
    return (result.Y, *result.last)


FUSED = "fused"


def pays(recurrence: Recurrence) -> bool:
    """Return whether both directions can be fused and are faster if they are."""
    r = recurrence
    D, _, H, I = r.W.shape  # noqa: E741
    T, N, _ = r.X.shape
    return (
        D == 2
        and T >= tuning.FUSED_STEPS
        and D * H * (I + H) * N <= tuning.FUSED_ZEROS
        and r.lengths is None
        and r.activations[0] == r.activations[1]
    )


def fuse_directions(recurrence: Recurrence) -> Recurrence:
    """Return a single-direction recurrence equivalent to both directions."""
    r = recurrence
    weights, constants = _fused_weights(r)
    both = replace(
        r,
        X=_both_ways(r.X),
        initial=tuple([_side_by_side(state) for state in r.initial]),
        directions=(Direction.FORWARD,),
        activations=r.activations[:1],
        **weights,
    )
    both.constants = constants
    return both


def _both_ways(X: Array) -> Array:
    """Return inputs [T, N, I] as those of both directions [T, N, 2*I]."""
    return np.concatenate((X, X[::-1]), axis=2)


def split_directions(result: Result) -> Result:
    """Return the results of both directions, given those of the fused recurrence."""
    _, N, units = result.last[0].shape
    H = units // 2
    last = tuple([state.reshape(N, 2, H).swapaxes(0, 1) for state in result.last])
    if result.Y is None:
        return Result(None, last)
    both = result.Y.reshape(len(result.Y), N, 2, H)
    Y = np.empty((len(both), 2, N, H), both.dtype)
    Y[:, 0], Y[:, 1] = both[:, :, 0], both[::-1, :, 1]
    return Result(Y, last)


def _fused_weights(recurrence: Recurrence) -> tuple[dict[str, Any], Constants | None]:
    """Return the fused weights by name, cached if they are constants."""
    r, constants = recurrence, recurrence.constants
    fused: Any = None if constants is None else constants.get(FUSED)
    if fused is None:
        matrices = {name: _on_diagonal(getattr(r, name)) for name in ("W", "R")}
        rows = {name: _side_by_side(getattr(r, name)) for name in ("Wb", "Rb", "P")}
        fused = {**matrices, **rows}, None if constants is None else Constants()
        if constants is not None:
            constants.keep(FUSED, fused)
    return fused  # type: ignore[no-any-return]


def _on_diagonal(weights: Array) -> Array:
    """Return weights [2, G, H, K] as [1, G, 2*H, 2*K]."""
    _, G, H, K = weights.shape
    both = np.zeros((1, G, 2, H, 2, K), weights.dtype)
    for d in range(2):
        both[0, :, d, :, d] = weights[d]
    return both.reshape(1, G, 2 * H, 2 * K)


def _side_by_side(values: Array | None) -> Array | None:
    """Return biases, peepholes or states [2, n, H] as [1, n, 2*H]."""
    if values is None:
        return None
    _, n, H = values.shape
    return values.swapaxes(0, 1).reshape(1, n, 2 * H)
