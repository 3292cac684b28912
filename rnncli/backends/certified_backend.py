"""The certified backend: the cells' equations over balls, with outputs proved correctly rounded.

A ball is a midpoint and a radius that enclose the real value (python-flint's arb). The recurrence
runs on balls of some precision; an element is accepted when both ends of its ball round to the same
value of the output's dtype, which is then the correctly rounded real value of the specification's
formula for the inputs as stored (Ziv's strategy). Otherwise the evaluation is repeated with more
bits: radii grow exponentially with the length of a sequence, so the bits needed grow linearly.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import flint
import ml_dtypes
import numpy as np
from flint import arb, arb_mat

from rnncli.backends.reference import evaluate, exact
from rnncli.errors import Unsupported
from rnncli.limits import ask
from rnncli.numerics import dtype_named
from rnncli.recurrence.recurrence import Compute

if TYPE_CHECKING:
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.cells import Value
    from rnncli.recurrence.recurrence import Recurrence, Result
    from rnncli.recurrence.unit import Dress

GUARD_BITS = 40
# Bits of a radius in flint, and the number of bits below the midpoint's last one that are ignored.
RADIUS_BITS = 30
NEGLIGIBLE = 128
MOST_BITS = 1 << 16
# Memory of a ball of few bits in an array and in a flint matrix together, as measured.
BYTES_PER_BALL = 160


class CertifiedBackend:
    """A slow backend for recurrences with finite inputs."""

    name = "certified"
    summary = "slow: each output proved correctly rounded by ball arithmetic"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why the real-number formula has no value to prove, or None."""
        if compute is Compute.NATIVE:
            return "proves exact results and has no native arithmetic; leave out --compute"
        X, numbers = without_padding(recurrence).X, []
        if form := recurrence.options.attention:
            # A decay of -infinity has a value: it leaves nothing of a state.
            of_decay = slice(sum(form.widths[:3]), sum(form.widths[:4]))
            decay = X[..., of_decay]
            X = np.delete(X, of_decay, axis=-1)
            numbers = [decay[decay != -np.inf]]
        tensors = (
            *(recurrence.W, recurrence.R, recurrence.Wb, recurrence.Rb, recurrence.P),
            *(*recurrence.initial, X, recurrence.projection),
        )
        numbers += [values for values in tensors if values is not None]
        parameters = [
            value for row in recurrence.activations for a in row for value in (a.alpha, a.beta)
        ]
        finite = all(np.isfinite(values).all() for values in numbers)
        if finite and all(value is None or math.isfinite(value) for value in parameters):
            return None
        return "needs finite inputs, but an input is NaN or infinite"

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate with increasing precision until every element is resolved.

        Raises:
            Unsupported: an element is unresolved at the highest precision.
        """
        del compute
        return self.prove(recurrence)

    def prove(self, recurrence: Recurrence, *, wants_signals: bool = False) -> Result:
        """Evaluate likewise, with the signals of every step if they are requested.

        Raises:
            Unsupported: an element is unresolved at the highest precision.
        """
        if (known := exact(recurrence, wants_signals=wants_signals)) is not None:
            return known
        r = recurrence = without_padding(recurrence)
        # flint aborts the process if an allocation fails.
        balls = r.W.size + r.R.size + r.X.size
        ask(BYTES_PER_BALL * balls, f"a recurrence of {balls:,} balls", otherwise=sys.maxsize)
        bits = recurrence.dtype.precision + GUARD_BITS
        passes = 1
        while bits <= MOST_BITS:
            try:
                with flint.ctx.workprec(bits):
                    engine = BallEngine(bits, recurrence)
                    result = evaluate(recurrence, engine, wants_signals=wants_signals)
            except Unresolved as unresolved:
                bits = max(int(1.6 * bits) + 64, min(unresolved.bits, 8 * bits))
                passes += 1
            else:
                return replace(result, bits=bits, passes=passes)
        raise Unsupported(
            f"backend '{self.name}': an element is still unresolved with {MOST_BITS} bits: it lies"
            f" on a tie of {recurrence.dtype}, or the recurrence amplifies errors without end"
        )


def without_padding(recurrence: Recurrence) -> Recurrence:
    """Return the recurrence with zeros as padding, but for padding that counts for a scale."""
    if recurrence.quantiser is not None:
        return replace(recurrence, X=recurrence.quantiser.counted(recurrence.X, recurrence.lengths))
    if recurrence.lengths is None:
        return recurrence
    live = np.arange(len(recurrence.X))[:, None] < recurrence.lengths
    return replace(
        recurrence, X=np.where(live[:, :, None], recurrence.X, recurrence.X.dtype.type(0))
    )


class Unresolved(Exception):  # noqa: N818 -- not a failure: a request for more bits
    """A ball contains a rounding boundary; `bits` should suffice."""

    def __init__(self, bits: int) -> None:
        self.bits = bits


class BallEngine:
    """Arithmetic on object arrays of balls, at the current precision of flint's context.

    Args:
        bits: that precision.
        recurrence: the recurrence, for the number of elements to round.
    """

    dtype = np.dtype(object)

    def __init__(self, bits: int, recurrence: Recurrence) -> None:
        self.math = BallArithmetic()
        self.bits = bits
        r, D = recurrence, len(recurrence.directions)
        T, N, _ = r.X.shape
        first, *others = map(math.prod, r.widths)
        # What a step rounds as well: the first state, or the others, to levels or to their type.
        of_first = r.quantiser is not None or r.options.levels is not None
        of_step = first * (r.wants_Y + of_first) + sum(others) * r.options.rounded_states
        self.steps = D * N * (T * of_step + first + sum(others))
        self.rounded = 0

    def widen(self, values: Array) -> Array:
        """Return exact balls."""
        return np.asarray(_TO_BALL(values.astype(np.float64)), object)

    def matrix(self, weights: Array) -> list[list[arb_mat]]:
        """Return the transposed weights as flint matrices, one per gate and lane."""
        rows, columns = weights.shape[2:]
        return [
            [arb_mat(columns, rows, lane.T.ravel().tolist()) for lane in gate] for gate in weights
        ]

    def multiply(self, values: Array, matrix: list[list[arb_mat]]) -> Array:
        """Multiply; the radii include all rounding errors."""
        lanes, rows, columns = values.shape
        mats = [arb_mat(rows, columns, lane_values.ravel().tolist()) for lane_values in values]
        units = matrix[0][0].ncols() if lanes else 0
        products = np.empty((len(matrix), lanes, rows * units), object)
        for g, gate in enumerate(matrix):
            for lane, weights in enumerate(gate):
                products[g, lane] = (mats[lane] * weights).entries()
        return products.reshape(len(matrix), lanes, rows, units)

    def round(self, values: Array, dtype: DType) -> Array:
        """Round each ball to the value that it proves.

        Raises:
            Unresolved: a ball does not prove one.
        """
        target = FloatTarget.of(dtype)
        rounded = np.empty(values.size)
        for k, ball in enumerate(values.ravel().tolist()):
            low, high = ends(arb(ball), target)
            if low != high:  # NaN included
                bits = 0
                if arb(ball).is_finite():  # what resolves everything, by the loss so far
                    lost = self.bits - min(arb(ball).rel_accuracy_bits(), self.bits)
                    loss = 1.1 * lost * self.steps / (self.rounded + k + 1)
                    bits = int(dtype.precision + GUARD_BITS + loss)
                raise Unresolved(bits)
            rounded[k] = low
        self.rounded += values.size
        return rounded.reshape(values.shape).astype(dtype.numpy)

    def levelled(self, values: Array, dress: Dress) -> Array:
        """Return the numbers that the levels of proved float64 numbers stand for.

        Of a tie between two levels this is one of them; tolerances allow the other.

        Raises:
            Unresolved: a ball does not prove a number.
        """
        return self.widen(dress.reals(dress.levels(self.round(values, WIDE))))


_TO_BALL = np.frompyfunc(arb, 1, 1)
WIDE = dtype_named("float64")


class FloatTarget(NamedTuple):
    """A floating-point format: n * 2**exponent with |n| <= 2**precision."""

    precision: int  # bits of n
    smallest: int  # the least exponent, that of subnormal numbers
    overflow: int  # values of at least 2**overflow are infinite

    @classmethod
    def of(cls, dtype: DType) -> FloatTarget:
        """Return the format of a dtype."""
        info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
        return cls(dtype.precision, int(info.minexp) - int(info.nmant), int(info.maxexp))


def ends(ball: arb, target: FloatTarget) -> tuple[float, float]:
    """Return both ends of a ball, rounded once; NaN if it has none. Zero is +0."""
    if not ball.is_finite():
        return math.nan, math.nan
    middle, exponent = map(int, ball.mid().man_exp())
    radius, radius_exponent = map(int, ball.rad().man_exp())
    if not radius:
        value = nearest(middle, exponent, target)
        return value, value
    if middle and exponent - radius_exponent > NEGLIGIBLE:
        # A radius may be as small as e^-10^38; a larger one that is still negligible will do.
        radius, radius_exponent = 1, exponent - NEGLIGIBLE + RADIUS_BITS
    elif middle and middle.bit_length() + exponent < radius_exponent:
        middle, radius = 0, radius + 1  # the midpoint is negligible
    common = min(exponent, radius_exponent) if middle else radius_exponent
    middle <<= exponent - common if middle else 0
    radius <<= radius_exponent - common
    return nearest(middle - radius, common, target), nearest(middle + radius, common, target)


def nearest(significand: int, exponent: int, target: FloatTarget) -> float:
    """Round significand * 2**exponent to nearest even, exactly, on integers."""
    magnitude = abs(significand)
    quantum = max(magnitude.bit_length() + exponent - target.precision, target.smallest)
    shift = quantum - exponent
    if shift <= 0:
        magnitude <<= -shift
    elif shift > magnitude.bit_length() + 1:
        magnitude = 0  # below half the smallest number, possibly by more bits than fit in memory
    else:
        magnitude, rest = divmod(magnitude, 1 << shift)
        half = 1 << (shift - 1)
        magnitude += rest > half or (rest == half and magnitude & 1)
    if not magnitude:
        return 0.0
    overflows = magnitude.bit_length() + quantum > target.overflow
    value = math.inf if overflows else math.ldexp(magnitude, quantum)
    return value if significand > 0 else -value


@dataclass(frozen=True, slots=True)
class BallArithmetic:
    """The functions of `Arithmetic` for object arrays of balls.

    Comparisons of overlapping balls are all false, so NumPy's `maximum` and `where` cannot be used:
    a ball that straddles a kink becomes the union of both branches, which is valid but wider.
    """

    def tanh(self, x: Value, /) -> Value:
        """Call the balls' own."""
        return np.tanh(x)

    def sigmoid(self, x: Value, /) -> Value:
        """1/(1 + e^-x), x once."""
        return 1 / (1 + np.exp(-x))

    def softplus(self, x: Value, /) -> Value:
        """log(1 + e^x); balls do not overflow."""
        return np.log1p(np.exp(x))

    def expm1(self, x: Value, /) -> Value:
        """Call the balls' own."""
        return np.expm1(x)

    def exp(self, x: Value, /) -> Value:
        """Call the balls' own."""
        return np.exp(x)

    def sqrt(self, x: Value, /) -> Value:
        """Call the balls' own."""
        return np.sqrt(x)

    def maximum(self, x: Value, bound: float, /) -> Value:
        """The larger of x and a number."""
        exact = arb(bound)
        return _each(lambda ball: ball.max(exact), x)

    def minimum(self, x: Value, bound: float, /) -> Value:
        """The smaller of x and a number."""
        exact = arb(bound)
        return _each(lambda ball: ball.min(exact), x)

    def absolute(self, x: Value, /) -> Value:
        """|x|."""
        return np.abs(x)

    def zero_below(self, x: Value, bound: float, *, inclusive: bool) -> Value:
        """0 where x < bound (inclusive: x <= bound), else x."""
        edge, zero = arb(bound), arb(0)

        def cut(ball: arb) -> arb:
            below, above = (ball <= edge, ball > edge) if inclusive else (ball < edge, ball >= edge)
            return zero if below else ball if above else ball.union(zero)

        return _each(cut, x)

    def nonnegative_else(self, x: Value, otherwise: Value, /) -> Value:
        """X where x >= 0, else `otherwise`."""

        def choose(ball: arb, other: arb) -> arb:
            return ball if ball >= 0 else other if ball < 0 else ball.union(other)

        return _each(choose, x, otherwise)

    def blend(self, z: Value, h: Value, H: Value, /) -> Value:
        """(1 - z) (.) h + z (.) H with a single z, which halves the growth of the radius."""
        return h + z * (H - h)


def _each(function: Any, *values: Value) -> Value:
    """Apply a function of balls to each element."""
    return np.frompyfunc(function, len(values), 1)(*values)
