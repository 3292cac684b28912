"""The reference backend: the cells' equations, walked step by step over any arithmetic.

This is the whole of it: `recurrence.lanes` decides order, padding and clipping, and
`recurrence.cells` holds the equations. Goldens, mutants and the certified backend are this walk
over other numbers.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rnncli.backends.backend import FLOAT64, working_dtype
from rnncli.deadline import check
from rnncli.numerics import NumPyArithmetic, round_to
from rnncli.recurrence.cells import Parameters, placed
from rnncli.recurrence.lanes import alike, assemble, lanes_of, of_directions, part_of, places_of
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.arithmetic import Arithmetic, Value
    from rnncli.recurrence.lanes import Lanes
    from rnncli.recurrence.recurrence import Recurrence

# Numbers of Xt*(W^T) that are computed at once: more would only take memory.
BLOCK_NUMBERS = 1 << 22


class Engine(Protocol):
    """What a walk computes with; `dtype` is that of the arrays of its numbers."""

    dtype: np.dtype[Any]

    @property
    def math(self) -> Arithmetic:
        """Elementwise functions of its numbers."""

    def widen(self, values: Array) -> Array:
        """Return a tensor's values as its numbers, exactly."""

    def matrix(self, weights: Array) -> Any:
        """Return weights [G, L, H, K] in the form that `multiply` wants, a row for each gate."""

    def multiply(self, values: Array, matrix: Any) -> Array:
        """Return values [L, n, K] times the transposed weights of some gates, [g, L, n, H]."""

    def round(self, values: Array, dtype: DType) -> Array:
        """Round its numbers once to a tensor's dtype."""


class ReferenceBackend:
    """Evaluates everything, in float64 or natively, as the specification writes it."""

    name = "reference"
    summary = "the specification's equations, step by step, in NumPy; what goldens come from"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None: it evaluates every recurrence."""
        del recurrence, compute
        return None

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate; NaN and infinity propagate as IEEE says."""
        return evaluate(recurrence, NumPyEngine(working_dtype(recurrence, compute)))


class NumPyEngine:
    """Floating-point arrays of one dtype."""

    math = NumPyArithmetic()

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def widen(self, values: Array) -> Array:
        """Return the values in the working dtype."""
        return values.astype(self.dtype, copy=False)

    def matrix(self, weights: Array) -> Array:
        """Return the transposed weights; BLAS reads them as they lie."""
        return np.ascontiguousarray(weights).swapaxes(2, 3)

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Multiply, each lane and gate by itself."""
        return np.asarray(values @ matrix)

    def round(self, values: Array, dtype: DType) -> Array:
        """Round once to nearest even."""
        return round_to(values, dtype)


def evaluate(recurrence: Recurrence, engine: Engine) -> Result:
    """Evaluate a recurrence, or each of a stack with the very bits that it has alone.

    Returns:
        Y [..., T, D, N, H], None when not wanted, and the last states [..., D, N, H], each element
        rounded once to the recurrence's dtype.
    """
    places = places_of(recurrence)
    with np.errstate(all="ignore"):
        for part in alike(recurrence):
            some = of_directions(recurrence, part)
            Y, last = walk(lanes_of(some), engine, wants_Y=some.wants_Y)
            rounded = None if Y is None else engine.round(Y, recurrence.dtype).swapaxes(0, 1)
            own = Result(
                part_of(places.Y, part), tuple(part_of(state, part) for state in places.last)
            )
            assemble(some, rounded, [engine.round(s, recurrence.dtype) for s in last], own)
    return places


def walk(lanes: Lanes, engine: Engine, *, wants_Y: bool) -> tuple[Array | None, list[Array]]:
    """Take every step of some lanes.

    A sequence that has ended keeps its states, whatever is computed beside it.

    Returns:
        H after every step [T, L, N, H], 0 in padding, None when not wanted; and the states after
        the last valid step, each [L, N, H].
    """
    L, T, N, _ = lanes.X.shape
    H = lanes.R.shape[-1]
    p = parameters(lanes, engine)
    states = [engine.widen(state) for state in lanes.initial]
    zero = engine.widen(np.zeros((), FLOAT64))
    Y = np.empty((T, L, N, H), engine.dtype) if wants_Y else None
    steps = max(1, BLOCK_NUMBERS // max(1, N * lanes.W.size // max(1, lanes.W.shape[-1])))
    for t in range(T):
        check()
        if t % steps == 0:
            x = projected(engine, lanes, lanes.X[:, t : t + steps])
        new = lanes.cell.step(p, x[:, :, t % steps], tuple(states))
        if lanes.live is None:
            states = list(new)
        else:
            live = lanes.live[:, t, :, None]
            states = [np.where(live, *pair) for pair in zip(new, states, strict=True)]
        if Y is not None:
            Y[t] = states[0] if lanes.live is None else np.where(live, states[0], zero)
    return Y, states


def projected(engine: Engine, lanes: Lanes, X: Array) -> Array:
    """Return Xt*(W^T) + (Wb + Rb) of every gate for some steps.

    Args:
        engine: what computes.
        lanes: whose weights and biases are taken.
        X: inputs [L, steps, N, I].

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
    """Return what is added to Xt*(W^T) [G, L, 1, H], and the Rbh that is reset [L, 1, H]."""
    Wb, Rb = (None if b is None else engine.widen(b) for b in (lanes.Wb, lanes.Rb))
    return placed(Wb, Rb, after=lanes.linear_before_reset)


def parameters(lanes: Lanes, engine: Engine) -> Parameters:
    """Return what a step needs besides Xt and the states [L, N, H]."""
    R = engine.matrix(engine.widen(lanes.R))
    _, Rbh = _biases(engine, lanes)
    functions = {
        letter: partial(activated, engine.math, activation, bound)
        for letter, (activation, bound) in lanes.activations.items()
    }
    return Parameters(
        R=lambda state, gates=slice(None): engine.multiply(state, R[gates]),
        f=functions["f"],
        g=functions.get("g", functions["f"]),
        h=functions.get("h", functions["f"]),
        blend=engine.math.blend,
        P=None if lanes.P is None else engine.widen(lanes.P),
        Rbh=0 if Rbh is None else Rbh,
        input_forget=lanes.input_forget,
        linear_before_reset=lanes.linear_before_reset,
    )


def activated(numbers: Arithmetic, activation: Activation, bound: float, x: Value) -> Value:
    """Apply an activation to an argument that is clipped first."""
    if math.isfinite(bound):
        x = numbers.minimum(numbers.maximum(x, -bound), bound)
    return np.asarray(activation(numbers, x))
