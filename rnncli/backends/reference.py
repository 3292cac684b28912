"""The reference backend: the cells' equations, evaluated step by step over any arithmetic.

`recurrence.lanes` decides order, padding and clipping; `recurrence.cells` has the equations.
Goldens, mutants and the certified backend use the same code with other arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rnncli.errors import Unsupported
from rnncli.limits import current_activity
from rnncli.numerics import FLOAT64, NumPyArithmetic, dtype_named, round_to
from rnncli.recurrence.cells import Parameters, placed
from rnncli.recurrence.integers import IntegerKernel
from rnncli.recurrence.lanes import (
    alike,
    assemble,
    empty_outputs,
    lanes_of,
    of_directions,
    part_of,
    place_in_time,
)
from rnncli.recurrence.recurrence import Result, working_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.numerics import Array, DType
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import Arithmetic, States, Value
    from rnncli.recurrence.lanes import Lanes
    from rnncli.recurrence.recurrence import Compute, Recurrence
    from rnncli.recurrence.unit import Dress


class StepSignals:
    """A recording of the signals of every step of some lanes.

    The signals of a step are the argument, before clipping, and the value of each activation, in
    order of evaluation, and then the new states.
    """

    def __init__(self) -> None:
        self._steps: list[Array] = []
        self._rows: list[Array] = []

    def watching(self, p: Parameters) -> Parameters:
        """Return parameters whose activations are recorded."""
        return replace(p, f=self._watched(p.f), g=self._watched(p.g), h=self._watched(p.h))

    def _watched(self, function: Callable[[Value], Value]) -> Callable[[Value], Value]:
        def watched(x: Value) -> Value:
            y = function(x)
            is_of_gates = x.ndim > len("LNH")  # an argument of several gates, or of one
            for pair in zip(x, y, strict=True) if is_of_gates else [(x, y)]:
                self._rows += pair
            return y

        return watched

    def keep(self, states: States, live: Array | None, zero: Array) -> None:
        """End a step.

        Args:
            states: the new states, each [L, N, H].
            live: whether it is a step of the sequence and not padding [L, N, 1]; None if all are.
            zero: the value in padding.
        """
        signals = np.stack([*self._rows, *states])
        self._steps.append(signals if live is None else np.where(live, signals, zero))
        self._rows = []

    def values(self) -> Array:
        """Return the signals of all steps, [signals, L, T, N, H]."""
        return np.stack(self._steps, axis=2)


FLOAT32_STATES = dtype_named("float32")
# Numbers of Xt*(W^T) to compute at once; more would only use more memory.
BLOCK_NUMBERS = 1 << 22


class Engine(Protocol):
    """The arithmetic of an evaluation; `dtype` is the dtype of its arrays."""

    dtype: np.dtype[Any]

    @property
    def math(self) -> Arithmetic:
        """The elementwise functions."""

    def widen(self, values: Array) -> Array:
        """Convert a tensor's values exactly."""

    def matrix(self, weights: Array) -> Any:
        """Return weights [G, L, H, K] in the form for `multiply`, one row per gate."""

    def multiply(self, values: Array, matrix: Any) -> Array:
        """Return values [L, n, K] times the transposed weights of some gates, [g, L, n, H]."""

    def round(self, values: Array, dtype: DType) -> Array:
        """Round values once to a tensor's dtype."""

    def levelled(self, values: Array, dress: Dress) -> Array:
        """Return the numbers that the levels of values stand for."""


class ReferenceBackend:
    """A backend for every recurrence, which evaluates the specification's equations literally."""

    name = "reference"
    summary = "the specification's equations, step by step, in NumPy; the source of goldens"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None: it evaluates every recurrence."""
        del recurrence, compute
        return None

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate; NaN and infinity propagate as IEEE says."""
        return evaluate(recurrence, NumPyEngine(working_dtype(recurrence, compute)))


class NumPyEngine:
    """Arithmetic on NumPy arrays of one floating-point dtype."""

    math = NumPyArithmetic()

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def widen(self, values: Array) -> Array:
        """Return the values in the working dtype."""
        return values.astype(self.dtype, copy=False)

    def matrix(self, weights: Array) -> Array:
        """Return the transposed weights as a view, which BLAS reads directly."""
        return np.ascontiguousarray(weights).swapaxes(2, 3)

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Multiply, each lane and gate separately."""
        return np.asarray(values @ matrix)

    def round(self, values: Array, dtype: DType) -> Array:
        """Round once to nearest even."""
        return round_to(values, dtype)

    def levelled(self, values: Array, dress: Dress) -> Array:
        """Quantise and dequantise as the nodes do."""
        return self.widen(dress.reals(dress.levels(values)))


def exact(recurrence: Recurrence, *, wants_signals: bool = False) -> Result | None:
    """Return the result of an integer LSTM, or of a stack, which is proved; None of other cells.

    Raises:
        Unsupported: a sum leaves its integers, or signals are requested.
    """
    if recurrence.options.integers is None:
        return None
    return replace(evaluate(recurrence, NumPyEngine(FLOAT64), wants_signals=wants_signals), bits=64)


def evaluate(recurrence: Recurrence, engine: Engine, *, wants_signals: bool = False) -> Result:
    """Evaluate a recurrence or a stack of them; stacking does not change a single bit.

    Args:
        recurrence: the recurrence.
        engine: the arithmetic.
        wants_signals: whether the signals of every step are requested; without steps, there are
            none.

    Returns:
        Y [..., T, D, N, H], None if not requested, the last states [..., D, N, H] and the signals
        [signals, ..., T, D, N, H], each element rounded once to the recurrence's dtype.

    Raises:
        Unsupported: signals are requested of a cell that has no gates.
    """
    if wants_signals and not recurrence.cell.projects:
        name = recurrence.cell.name
        raise Unsupported(f"{name}: signals of every step are of cells with gates; leave out steps")
    places = empty_outputs(recurrence)
    wants_signals = wants_signals and recurrence.X.shape[-3] > 0
    found = []
    with np.errstate(all="ignore"):
        for part in alike(recurrence):
            some = of_directions(recurrence, part)
            signals = StepSignals() if wants_signals else None
            Y, last = walk(lanes_of(some), engine, wants_Y=some.wants_Y, signals=signals)
            rounded = None if Y is None else engine.round(Y, recurrence.dtype).swapaxes(0, 1)
            parts = zip(places.last, recurrence.widths, strict=True)
            own = Result(
                part_of(places.Y, part),
                tuple(part_of(state, part, 1 + len(width)) for state, width in parts),
            )
            states = zip(last, recurrence.dtypes, strict=True)
            assemble(some, rounded, [engine.round(*state) for state in states], own)
            if signals is not None:
                # From [signals, L, T, N, H] to the order of time, [signals, ..., T, D, N, H].
                values = engine.round(signals.values(), recurrence.dtype)
                *front, T, N, _ = some.X.shape
                shape = (len(values), *front, T, len(some.directions), N, values.shape[-1])
                found.append(np.empty(shape, values.dtype))
                for steps, place in zip(values, found[-1], strict=True):
                    place_in_time(some, steps, place)
    if wants_signals:
        places.signals = np.concatenate(found, axis=-3)
    return places


def walk(
    lanes: Lanes, engine: Engine, *, wants_Y: bool, signals: StepSignals | None = None
) -> tuple[Array | None, list[Array]]:
    """Run all steps of some lanes.

    A sequence that has ended keeps its states.

    Args:
        lanes: the lanes.
        engine: the arithmetic.
        wants_Y: whether all steps are requested, or only the last states.
        signals: receives the signals of every step.

    Returns:
        H after every step [T, L, N, H], 0 in padding, None if not requested; and the states after
        the last valid step, each [L, N, H].
    """
    _, T, N, _ = lanes.X.shape
    p = parameters(lanes, engine)
    if signals is not None:
        p = signals.watching(p)
    states = [engine.widen(state) for state in lanes.initial]
    zero = engine.widen(np.zeros((), FLOAT64))
    Y = np.empty((T, *lanes.initial[0].shape), engine.dtype) if wants_Y else None
    steps = max(1, BLOCK_NUMBERS // max(1, N * lanes.W.size // max(1, lanes.W.shape[-1])))
    activity = current_activity()
    for t in range(T):
        if activity:
            activity.check()
        if lanes.cell.projects and t % steps == 0:
            x = projected(engine, lanes, lanes.X[:, t : t + steps])
        own = x[:, :, t % steps] if lanes.cell.projects else engine.widen(lanes.X[:, t])
        entering = tuple(states)
        # A quantised H has the scale of its whole batch, where a sequence that has ended counts as
        # in Y: with its last H right after its end, and with zeros from then on; or with its last
        # H, as the reading quant-ended says. Its new states are not used.
        as_in_Y = lanes.quantiser is not None and not lanes.quantiser.keeps_ended
        if as_in_Y and lanes.live is not None and t > 0:
            H, *others = states
            entering = np.where(lanes.live[:, t - 1, :, None], H, H.dtype.type(0)), *others
        new = lanes.cell.step(p, own, entering)
        if lanes.options.rounded_states:
            first, *others = new
            new = first, *(engine.widen(engine.round(s, lanes.states_dtype)) for s in others)
        if lanes.options.levels is not None:  # a unit may round them to levels
            new = tuple(
                state if dress is None else engine.levelled(state, dress)
                for state, dress in zip(new, lanes.options.levels.states, strict=True)
            )
        if lanes.live is None:
            states = list(new)
        else:
            live = lanes.live[:, t, :, None]
            states = [
                np.where(live.reshape(*live.shape[:2], *[1] * (old.ndim - 2)), own, old)
                for own, old in zip(new, states, strict=True)
            ]
        if Y is not None:
            Y[t] = states[0] if lanes.live is None else np.where(live, states[0], zero)
        if signals is not None:
            signals.keep(new, None if lanes.live is None else live, zero)
    return Y, states


def projected(engine: Engine, lanes: Lanes, X: Array) -> Array:
    """Return Xt*(W^T) + (Wb + Rb) of every gate for some steps.

    Returns:
        [G, L, steps, N, H].
    """
    L, steps, N, inputs = X.shape
    W = engine.matrix(engine.widen(lanes.W))
    product = engine.multiply(engine.widen(X).reshape(L, steps * N, inputs), W)
    x = product.reshape(len(product), L, steps, N, product.shape[-1])
    bias, _ = _biases(engine, lanes)
    if bias is not None:
        x += bias[:, :, None]
    return x


def _biases(engine: Engine, lanes: Lanes) -> tuple[Array | None, Array | None]:
    """Return the bias of Xt*(W^T) [G, L, 1, H], and the Rbh that is reset [L, 1, H]."""
    Wb, Rb = (None if b is None else engine.widen(b) for b in (lanes.Wb, lanes.Rb))
    return placed(Wb, Rb, lanes.options)


def parameters(lanes: Lanes, engine: Engine) -> Parameters:
    """Return the parameters of a step with states [L, N, H]."""
    if (form := lanes.options.integers) is not None:
        kernel = IntegerKernel(form, lanes.W, lanes.R, lanes.Wb)
        return Parameters(
            R=lambda state, *_: state,
            f=kernel.sigmoid,
            g=kernel.tanh,
            h=kernel.tanh_of_cell,
            blend=engine.math.blend,
            options=lanes.options,
            integers=kernel,
        )
    if not (lanes.cell.projects or lanes.options.projected):
        return _unprojected(lanes, engine)
    R = engine.matrix(engine.widen(lanes.R))

    def product(state: Array, gates: slice = slice(None)) -> Array:
        if lanes.quantiser is not None:  # of states that are float32 before
            rounded = engine.round(state, FLOAT32_STATES)
            state = engine.widen(lanes.quantiser.states(rounded).values)
        return engine.multiply(state, R[gates])

    _, Rbh = _biases(engine, lanes)
    functions = {
        letter: _by_levels(lanes, engine, letter, partial(activated, engine.math, *function))
        for letter, function in lanes.activations.items()
    }
    return Parameters(
        R=product,
        f=functions["f"],
        g=functions.get("g", functions["f"]),
        h=functions.get("h", functions["f"]),
        blend=engine.math.blend,
        P=None if lanes.P is None else engine.widen(lanes.P),
        Rbh=0 if Rbh is None else Rbh,
        options=lanes.options,
        **(_of_projection(lanes, engine) if lanes.options.projected else {}),
    )


def _of_projection(lanes: Lanes, engine: Engine) -> dict[str, Any]:
    """Return what an LSTM with a projection has besides, and its products with X."""
    W, project = engine.matrix(engine.widen(lanes.W)), None
    bias, _ = _biases(engine, lanes)
    if lanes.projection is not None:
        Wp = engine.matrix(engine.widen(lanes.projection[..., :-1]))
        of_Wp = engine.widen(lanes.projection[0, ..., -1][:, None])

        def project(m: Value) -> Value:
            return engine.multiply(m, Wp)[0] + of_Wp

    def products(x: Value) -> Value:
        return engine.multiply(x, W) + (0 if bias is None else bias)

    return {"numbers": engine.math, "x": products, "project": project}


def _unprojected(lanes: Lanes, engine: Engine) -> Parameters:
    """Return the parameters of a step that sees X itself: of an attention or a convolution."""
    numbers, options, scale = engine.math, lanes.options, engine.widen(np.ones(()))
    if (form := options.attention) is not None:
        given, width = (engine.widen(np.array(float(n))) for n in (form.scale, form.key_size))
        scale = given if form.scale else scale / numbers.sqrt(width)

    def activated_sum(a: Value) -> Value:
        if not options.silu:
            return a
        a = a if options.unrounded_sum else engine.widen(engine.round(a, lanes.dtype))
        return a * numbers.sigmoid(a)

    taps = np.moveaxis(lanes.W[..., 0], 0, -1)[:, None]  # [L, 1, H, G]
    bias = 0 if lanes.Wb is None else engine.widen(lanes.Wb)[0]
    return Parameters(
        R=lambda state, *_: state,
        f=activated_sum,
        g=activated_sum,
        h=activated_sum,
        blend=numbers.blend,
        Rbh=bias,
        options=options,
        numbers=numbers,
        W=engine.widen(taps),
        scale=scale,
    )


def _by_levels(
    lanes: Lanes, engine: Engine, letter: str, function: Callable[[Value], Value]
) -> Callable[[Value], Value]:
    """Return an activation, whose argument and value a unit may round to levels."""
    levels = lanes.options.levels
    argument, gate = levels.of_activation(letter) if levels else (None, None)

    def rounded(x: Value) -> Value:
        y = function(x if argument is None else engine.levelled(x, argument))
        return y if gate is None else engine.levelled(y, gate)

    return rounded if argument or gate else function


def activated(numbers: Arithmetic, activation: Activation, bound: float, x: Value) -> Value:
    """Clip an argument and apply an activation."""
    if math.isfinite(bound):
        x = numbers.minimum(numbers.maximum(x, -bound), bound)
    return np.asarray(activation(numbers, x))
