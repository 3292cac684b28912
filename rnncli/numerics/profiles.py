"""Profiles: the roundings allowed to a correct implementation, and the resulting errors.

Vectors name the profile that their tolerances were derived for. An implementation that accumulates
in float16 must be judged by a profile that allows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import ml_dtypes

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.numerics import dtype_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import DType


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The arithmetic of sums of products."""

    # significand bits of the running sum; 0 means those of the tensors. Never fewer than the
    # tensors have: float64 is summed in float64 by every profile.
    precision: int
    # significand bits that each factor of a product is rounded to first; 0 means that factors are
    # not rounded
    factor_precision: int
    summary: str  # a description
    # the dtype of gates, states and factors where the tensors' own is finer; "" if it is theirs
    stored: str = ""
    # the dtype of everything but results where the tensors' own is coarser; "" if it is theirs
    inside: str = ""
    # linear attentions: how many steps may be computed at once, as sums in any order; 1: one by one
    chunk: int = 1


ACCUMULATORS: Mapping[str, Accumulator] = {
    "float32": Accumulator(24, 0, "sums in float32, in float64 for float64 tensors"),
    "dtype": Accumulator(0, 0, "sums in the tensors' own dtype"),
    "tf32": Accumulator(24, 11, "products of factors rounded to 11 bits, summed in float32"),
    "float32-inside": Accumulator(24, 0, "float32, and results rounded once", inside="float32"),
    "float16": Accumulator(24, 11, "float16 but for sums, which are in float32", "float16"),
    "chunked": Accumulator(24, 0, "float32, up to 128 steps of a state at once", chunk=128),
}


@dataclass(frozen=True, slots=True)
class Rounding:
    """A profile's errors for tensors of one dtype, as fractions of the rounded values."""

    unit: float  # unit roundoff u of the dtype: largest relative error of a stored value
    accumulator: float  # unit roundoff u_a of the running sums
    factor: float  # unit roundoff of the factors of a product; 0 if they are exact
    # largest absolute error of a value stored near zero: half the smallest subnormal, or the
    # smallest normal where subnormals are flushed to zero
    floor: float
    relative: float  # kr*u, the relative error allowed to an activation
    absolute: float  # ka*u, its absolute error, if the usual formulas have one
    deviations: float  # lambda, the number of standard deviations tolerated
    chunk: int = 1  # how many steps of a linear attention may be computed at once


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of correct implementations."""

    name: str  # its name in suites, manifests and on the command line
    summary: str  # one line
    accumulator: str = "float32"  # a row of `ACCUMULATORS`
    deviations: float = 6.0  # lambda: standard deviations tolerated; 0 means exact equality
    # relative error that an activation may have, in unit roundoffs of the dtype: halves of a unit
    # in the last place
    kr: float = 2.0
    ka: float = 1.0  # absolute error besides, in unit roundoffs, where the usual formulas cancel
    flush_to_zero: bool = False  # subnormal values may be replaced by zero

    def __str__(self) -> str:
        return self.name

    def inner(self, dtype: DType) -> DType:
        """Return the dtype of arithmetic whose results are rounded once to a dtype, or itself."""
        inside = ACCUMULATORS[self.accumulator].inside
        wide = dtype_named(inside) if inside else dtype
        return wide if wide.precision > dtype.precision else dtype

    def step(self, dtype: DType) -> DType:
        """Return the dtype in which steps of linear recurrences are computed, float32 at least.

        Their specification rounds results only; a profile may say that sums are in the dtype.
        """
        single = dtype_named("float32")
        sums = ACCUMULATORS[self.accumulator].precision
        return single if dtype.precision < single.precision <= sums else dtype

    @property
    def is_exact(self) -> bool:
        """Whether only equal values are tolerated."""
        return self.deviations == 0

    def rounding(self, dtype: DType) -> Rounding:
        """Return the errors for tensors of a dtype."""
        return _rounding(self, dtype)


@cache
def _rounding(profile: Profile, dtype: DType) -> Rounding:
    sums = ACCUMULATORS[profile.accumulator]
    stored = dtype_named(sums.stored) if sums.stored else dtype
    if stored.precision > dtype.precision:
        stored = dtype
    unit = 2.0**-stored.precision
    rounds_factors = 0 < sums.factor_precision < dtype.precision <= sums.precision
    info = ml_dtypes.finfo(stored.numpy)  # type: ignore[no-untyped-call]
    least = info.smallest_normal if profile.flush_to_zero else info.smallest_subnormal
    return Rounding(
        unit=unit,
        accumulator=2.0 ** -max(sums.precision, dtype.precision),
        factor=2.0**-sums.factor_precision if rounds_factors else 0.0,
        floor=float(least) * (1 if profile.flush_to_zero else 0.5),
        relative=profile.kr * unit,
        absolute=profile.ka * unit,
        deviations=profile.deviations,
        chunk=sums.chunk,
    )


_ROWS = (
    Profile("standard", "float32 accumulation, six deviations: every sound implementation passes"),
    Profile(
        "strict",
        "float32 accumulation, three deviations and half the allowance for activations",
        deviations=3.0,
        kr=1.0,
        ka=0.5,
    ),
    Profile(
        "relative",
        "float32 accumulation; activations right to the last bits in their tails, too, where the"
        " other profiles allow an absolute error",
        ka=0.0,
    ),
    Profile(
        "dtype-accumulator",
        "sums in the tensors' own dtype, as float16 and bfloat16 hardware without wide sums",
        accumulator="dtype",
    ),
    Profile(
        "four-ulp",
        "float32 accumulation; activations up to four units in the last place off, as in fast"
        " libraries of functions",
        kr=8.0,
        ka=4.0,
    ),
    Profile("tf32", "products of factors rounded to 11 bits, summed in float32", "tf32"),
    Profile(
        "float16-inside",
        "float16 between tensors of any dtype, such as levels; sums in float32",
        "float16",
    ),
    Profile(
        "float32-inside",
        "float32 between 16-bit tensors, and results are rounded once: nearly all are the expected"
        " ones",
        accumulator="float32-inside",
    ),
    Profile(
        "chunked",
        "float32 accumulation; linear attentions may compute up to 128 steps at once, by sums of"
        " their decays and a triangular system",
        accumulator="chunked",
    ),
    Profile(
        "flush-to-zero",
        "float32 accumulation; subnormal numbers may become zero",
        flush_to_zero=True,
    ),
    Profile(
        "exact",
        "the very same values: for cases whose every partial sum is representable",
        deviations=0.0,
        kr=0.0,
        ka=0.0,
    ),
)
PROFILES: Mapping[str, Profile] = {row.name: row for row in _ROWS}


def profile_named(name: str) -> Profile:
    """Return the profile of that name.

    Raises:
        InvalidRequest: unknown.
    """
    try:
        return PROFILES[name]
    except KeyError:
        hint = did_you_mean(name, PROFILES) or f" (there are {', '.join(PROFILES)})"
        raise InvalidRequest(f"unknown profile '{name}'{hint}") from None
