"""Grids of numbers: multiples of one unit, and floats of few significant bits.

Which grid outputs lie on tells how a device writes them; how far they are from the right ones, in
units, tells how it rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.numerics import DTYPES, dtype_of, round_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.numerics import Array

# The most binary places of a fixed point.
FIXED = 24
DIGITS = 53  # of a float64
# The least number of elements that show a fixed point or a grid.
ELEMENTS, LEAST = 8, 10
# The least number of bits, over all values, that floats of as many significant bits would have and
# multiples of a power of 2 have not.
CERTAIN = 20
# Types that may represent numbers of few significant bits.
NARROW = ("float32", "float16", "bfloat16")
# The most decimals of a unit, and multiples of it of any other.
MOST_DECIMALS, MOST_MULTIPLES = 8, 1 << 16
# The smallest difference of two values is so many units at most.
MOST_STEPS = 16
# The part of a unit by which a value may be off besides its rounding.
SLACK = 0.1


def binary_places(values: Array) -> tuple[Array, Array]:
    """Return the binary places of each value, those of 3 and 0.25 being 0 and 2, and exponents."""
    fractions, exponents = np.frexp(values)
    whole = np.ldexp(fractions, DIGITS).astype(np.int64)
    _, lowest = np.frexp((whole & -whole).astype(np.float64))
    return np.asarray(DIGITS + 1 - lowest - exponents), exponents


def multiples_of(values: Array) -> int:
    """Return the least k of which finite values are multiples of 2^-k."""
    some = values[values != 0].astype(np.float64)
    return max(0, int(binary_places(some)[0].max(initial=0)))


def fixed_point_of(got: Array, wanted: Array) -> int | None:
    """Return the k of finite values that are multiples of 2^-k, unlike the wanted ones.

    Floats of as many significant bits have the more binary places, the smaller they are: None if
    these values may be such floats.
    """
    values = np.unique(np.abs(got[got != 0].astype(np.float64)))
    if len(values) < ELEMENTS:
        return None
    places, exponents = binary_places(values)
    k, stored = int(places.max()), (places + exponents).max()
    lacking = np.maximum(stored - exponents - k, 0).sum()
    scaled = np.ldexp(wanted.astype(np.float64), k)
    others = np.count_nonzero(scaled != np.rint(scaled))
    return k if 0 < k < FIXED and lacking >= CERTAIN and others >= ELEMENTS else None


class Grid(NamedTuple):
    """The numbers that some values are, and others near them are not."""

    words: str  # what they are, as "multiples of 2^-12: fixed point"
    unit: Array  # the distance of two of them, at each of the other values

    def rounding(self, values: Array, others: Array) -> str:
        """Return how the others became the values, as "rounded to"; "" if no rounding did."""
        off = (values - others) / self.unit
        inward = off * np.sign(others)
        for way, low, high, of in (
            ("rounded to", -0.5, 0.5, off),
            ("cut toward zero to", -1, 0, inward),
            ("rounded down to", -1, 0, off),
            ("rounded up to", 0, 1, off),
        ):
            if (of >= low - SLACK).all() and (of <= high + SLACK).all():
                return way
        return ""


def grid_of(values: Array, others: Array) -> Grid | None:
    """Return the grid of finite values of a type, on which others of that type are not, if any."""
    dtype = dtype_of(values)
    v, o = values.astype(np.float64), others.astype(np.float64)
    some = np.unique(np.abs(v[v != 0]))
    if not dtype.is_float or len(some) < LEAST:
        return None

    if (k := fixed_point_of(v, o)) is not None:
        return Grid(f"multiples of 2^-{k}: fixed point", np.full(o.shape, 2.0**-k))

    places, exponents = binary_places(some)
    bits = int((places + exponents).max())
    others_bits = np.add(*binary_places(o[o != 0]))
    if bits < dtype.precision and np.count_nonzero(others_bits > bits) >= LEAST:
        exact = (
            name
            for name in NARROW
            if DTYPES[name].precision == bits
            and (round_to(some, DTYPES[name]).astype(np.float64) == some).all()
        )
        name = next(exact, "")
        words = name or f"{bits} significant bits{', as TensorFloat-32 has' * (bits == 11)}"
        least = -24.0 if name == "float16" else -149.0  # of subnormal numbers
        exponents = np.where(o == 0, least, np.frexp(o)[1] - bits)
        return Grid(words, np.exp2(np.maximum(exponents, least)))

    epsilon = 2.0**-dtype.precision
    for unit, name in _units(some, epsilon):
        multiples = some / unit
        near = np.minimum(0.25, 1e-9 + 4 * epsilon * multiples)
        is_grid = (np.abs(multiples - np.rint(multiples)) <= near).all()
        apart = np.abs(o / unit - np.rint(o / unit))
        if is_grid and np.count_nonzero(apart > SLACK) >= LEAST:
            return Grid(name, np.full(o.shape, unit))
    return None


def _units(some: Array, epsilon: float) -> Iterator[tuple[float, str]]:
    """Yield the units of which sorted positive values may be multiples, and their names."""
    steps = np.diff(some, prepend=0.0)
    steps = steps[steps > 8 * epsilon * some[-1]]
    for count in range(1, MOST_STEPS) if steps.size else ():
        unit = float(steps.min()) / count
        if some[-1] / unit > MOST_MULTIPLES:
            break
        for value in some.tolist():  # the larger a value, the better it tells the unit
            unit = value / max(1, round(value / unit))
        whole = round(1 / unit)
        if abs(whole * unit - 1) > 4 * epsilon:
            yield unit, f"multiples of {unit:.6g}"
        else:
            is_decimal = f"{whole}".strip("0") == "1"
            yield (
                1 / whole,
                _decimals(f"{whole}".count("0")) if is_decimal else f"multiples of 1/{whole}",
            )
    for decimals in range(MOST_DECIMALS):
        if some[-1] * 10.0**decimals * epsilon <= 1 / 16:
            yield 10.0**-decimals, _decimals(decimals)


def _decimals(count: int) -> str:
    return f"{count} decimal{'s' * (count != 1)}"
