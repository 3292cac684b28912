"""exp, tanh, sigmoid and related functions on vectors, within 2 units in the last place everywhere.

They implement `recurrence.cells.Arithmetic` for `VectorLanes`. All are based on e^x = 2^n * (1 +
expm1(r)) with n the integer nearest to x/ln 2 and |r| <= ln(2)/2 (W. J. Cody and W. Waite, Software
Manual for the Elementary Functions, 1980). The polynomials are minimax for the relative error,
found by Remez's algorithm. Activations need e^x only for x <= 0: nothing overflows, and underflow
is gradual. The decays of a linear attention may grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.backends.compiled.vector_lanes import Bits, VectorLanes, by_power, fma, has_scaling

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """The constants of a floating-point format."""

    stored: int  # bits of the significand without the hidden bit
    bias: int  # bias of the exponent
    ln2: tuple[float, float]  # ln 2 rounded to the format, and the remainder
    vanishing: float  # the bound below which e^x rounds to 0
    overflowing: float  # a bound from which on it rounds to infinity
    all_gone: float  # the bound below which e^x - 1 rounds to -1
    expm1: tuple[float, ...]  # coefficients of Q, lowest first, in expm1(r) = r + r^2 Q(r)
    # coefficients of A, lowest first, in atanh(s) = s + s^3 A(s^2) for s <= 1/3
    atanh: tuple[float, ...]

    @property
    def rounder(self) -> float:
        """A constant whose addition rounds a number to an integer in the lowest bits.

        It is 1.5 * 2^stored plus the offset that turns an integer n into the exponent field of 2^n
        / 2.
        """
        return 1.5 * 2.0**self.stored + self.bias - 1


FORMATS = {
    "float32": FloatFormat(
        stored=23,
        bias=127,
        ln2=(float.fromhex("0x1.62e43p-1"), float.fromhex("-0x1.05c61p-29")),
        vanishing=-104.0,
        overflowing=89.0,
        all_gone=-25.0,
        expm1=(
            *(0.4999999701976776, 0.16666539013385773, 0.04166774824261665),
            *(0.008367087692022324, 0.0013837856240570545),
        ),
        atanh=(
            *(0.3333333777430685, 0.19999441517049704, 0.14308378867687527),
            *(0.10714452790795544, 0.12148307884155296),
        ),
    ),
    "float64": FloatFormat(
        stored=52,
        bias=1023,
        ln2=(float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")),
        vanishing=-746.0,
        overflowing=710.0,
        all_gone=-40.0,
        expm1=(
            *(0.5, 0.16666666666666677, 0.0416666666666667, 0.008333333333321471),
            *(0.001388888888886653, 0.0001984126988659236, 2.4801587361206312e-05),
            *(2.7557243684784445e-06, 2.7557242174653833e-07, 2.510923711587258e-08),
            2.0924631300692442e-09,
        ),
        atanh=(
            *(0.33333333333333337, 0.1999999999999707, 0.14285714286244736),
            *(0.1111111106340938, 0.0909091157529376, 0.07692226607095959),
            *(0.06668392725035971, 0.05858080100943519, 0.05485609921294829),
            *(0.03499582957672943, 0.08229922101389496),
        ),
    ),
}


def tanh(x: VectorLanes) -> VectorLanes:
    """d/(1 - d) for |x|, d = (1 - e^(-2|x|))/2, with the sign of x.

    This equals d + d tanh |x|, so at most half of the quotient's error counts.
    """
    half, rest = half_e_to(-2.0 * absolute(x), FORMATS[x.dtype].all_gone)
    d, total = fma(-half, rest, 0.5 - half), fma(half, rest, 0.5 + half)
    signs, magnitude = x.bits() & sign_bit(x), fma(d, d / total, d)
    return (signs | magnitude.bits()).as_floats()


def sigmoid(x: VectorLanes) -> VectorLanes:
    """1 - q, and e - e q for x < 0, with e = e^-|x| and q = e/(1 + e).

    The negative tail keeps its relative accuracy, and q's error is scaled by e.
    """
    e = falling_exp(-absolute(x))
    whole = x.choose("<", 0.0, e, x.like(1.0))
    return fma(-whole, e / (1.0 + e), whole)


def softplus(x: VectorLanes) -> VectorLanes:
    """max(x, 0) + log(1 + e^-|x|), which does not overflow."""
    return maximum(x, 0.0) + log1p(falling_exp(-absolute(x)))


def exp(x: VectorLanes) -> VectorLanes:
    """e^x, from the subnormal numbers to infinity."""
    return falling_exp(minimum(x, FORMATS[x.dtype].overflowing))


def falling_exp(x: VectorLanes) -> VectorLanes:
    """e^x for x <= 0, or at most `overflowing`."""
    form = FORMATS[x.dtype]
    shifted, r = reduced(maximum(x, form.vanishing), form)
    return scaled(polynomial(r, (1.0, 1.0, *form.expm1)), shifted, form)


def expm1(x: VectorLanes) -> VectorLanes:
    """e^x - 1 for x <= 0, as accurate near 0 as elsewhere."""
    half, rest = half_e_to(x, FORMATS[x.dtype].all_gone)
    return 2.0 * fma(half, rest, half - 0.5)


def half_e_to(x: VectorLanes, lowest: float) -> tuple[VectorLanes, VectorLanes]:
    """Return a power of two and a number near 0: e^max(x, lowest) / 2 = half * (1 + rest)."""
    form = FORMATS[x.dtype]
    shifted, r = reduced(maximum(x, lowest), form)
    rest = fma(r * r, polynomial(r, form.expm1), r)  # e^r - 1 for |r| <= ln(2)/2
    return (shifted.bits() << form.stored).as_floats(), rest


def log1p(e: VectorLanes) -> VectorLanes:
    """log(1 + e) = 2 atanh(e/(2 + e)) for 0 <= e <= 1."""
    twice = quotient(e, 0.5 * e)
    z = 0.25 * (twice * twice)
    return fma(twice, z * polynomial(z, FORMATS[e.dtype].atanh), twice)


def quotient(numerator: VectorLanes, e: VectorLanes) -> VectorLanes:
    """Return numerator/(1 + e) for -1/2 <= e <= 1, almost as if rounded once.

    The rounding error of 1 + e and the remainder of the division correct the quotient.
    """
    total = 1.0 + e
    lost = e - (total - 1.0)
    reciprocal = 1.0 / total
    first = numerator * reciprocal
    remainder = fma(-first, lost, fma(-first, total, numerator))
    return fma(remainder, reciprocal, first)


def reduced(x: VectorLanes, form: FloatFormat) -> tuple[VectorLanes, VectorLanes]:
    """Return n + rounder and r with x = n ln 2 + r."""
    shifted = fma(x, 1 / math.log(2), form.rounder)
    n = shifted - form.rounder
    high, low = form.ln2
    return shifted, fma(n, -low, fma(n, -high, x))


def scaled(x: VectorLanes, shifted: VectorLanes, form: FloatFormat) -> VectorLanes:
    """X * 2^n, rounded once, for 1/2 <= x <= 2 and the n of `reduced`."""
    if has_scaling(x):
        return by_power(x, shifted - form.rounder)
    n = shifted.bits() - shifted.like(form.rounder).bits()
    half = n >> 1  # 2^n itself may be subnormal; the first product is exact, the second rounds
    return (x * power(half, form)) * power(n - half, form)


def power(n: Bits, form: FloatFormat) -> VectorLanes:
    """2^n for n such that 2^n is a normal number."""
    return ((n + form.bias) << form.stored).as_floats()


def polynomial(x: VectorLanes, coefficients: Sequence[float]) -> VectorLanes:
    """Evaluate by Horner's rule; coefficients lowest first."""
    *lower, highest = coefficients
    value = x.like(highest)
    for coefficient in reversed(lower):
        value = fma(value, x, coefficient)
    return value


def maximum(x: VectorLanes, bound: VectorLanes | float) -> VectorLanes:
    """The larger of x and a bound; NaN where x is NaN."""
    limit = bound if isinstance(bound, VectorLanes) else x.like(bound)
    return x.choose("<", limit, limit, x)


def minimum(x: VectorLanes, bound: VectorLanes | float) -> VectorLanes:
    """The smaller of x and a bound; NaN where x is NaN."""
    limit = bound if isinstance(bound, VectorLanes) else x.like(bound)
    return x.choose(">", limit, limit, x)


def absolute(x: VectorLanes) -> VectorLanes:
    """|x|."""
    return (x.bits() & ~sign_bit(x)).as_floats()


def sign_bit(x: VectorLanes) -> int:
    """Return the highest bit of a lane as a signed integer."""
    return -(1 << (31 if x.dtype == "float32" else 63))


def zero_below(x: VectorLanes, bound: VectorLanes | float, *, inclusive: bool) -> VectorLanes:
    """0 where x < bound (inclusive: x <= bound), else x; NaN stays NaN."""
    return x.choose("<=" if inclusive else "<", bound, x.like(0.0), x)


def nonnegative_else(x: VectorLanes, otherwise: VectorLanes) -> VectorLanes:
    """X where x >= 0, else `otherwise`."""
    return x.choose(">=", 0.0, x, otherwise)


def blend(z: VectorLanes, h: VectorLanes, H: VectorLanes) -> VectorLanes:
    """(1 - z) (.) h + z (.) H."""
    return fma(z, H, (1.0 - z) * h)
