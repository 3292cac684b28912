"""Tolerances: absolute, relative and in ulp, for all outputs or for one.

NaN equals NaN wherever outputs are compared, as in `onnx.backend.test`: a NaN may be the expected
value. `equal_nan=False` makes them differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.numerics import Array

# A bound as Python callers write it: a number for all outputs, or numbers by output.
Limit: TypeAlias = float | Mapping[str, float]
ROUNDS = 100
_THREE_DIGITS = Context(prec=3, rounding=ROUND_CEILING)


class Bound(NamedTuple):
    """One kind of tolerance: a default for every output, and numbers for single outputs."""

    default: float = 0.0
    by_output: Mapping[str, float] = {}

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Bound:
        """Read ``1e-5`` (every output) and ``Y:1e-5`` (one; the name may contain colons).

        Raises:
            InvalidRequest: not a number, negative, not finite, or the same output given twice.
        """
        bounds: dict[str | None, float] = {}
        for text in texts:
            name, separator, number = text.rpartition(":")
            output = name if separator else None
            if output in bounds:
                raise InvalidRequest(f"tolerance '{text}': given twice for the same output")
            bounds[output] = _parse_number(text, number)
        default = bounds.pop(None, 0.0)
        return cls(default, {name: bound for name, bound in bounds.items() if name is not None})

    @classmethod
    def given(cls, numbers: Limit | None) -> Bound:
        """Return the bound of a Python argument: a number, or numbers by output (`""`: all others).

        Raises:
            InvalidRequest: negative, or not finite.
        """
        by_output = dict(numbers) if isinstance(numbers, Mapping) else {"": numbers or 0.0}
        bounds = {
            output: _parse_number(f"{output}:{value}" if output else f"{value}", f"{value}")
            for output, value in by_output.items()
        }
        return cls(bounds.pop("", 0.0), bounds)

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers by output; `""` is all others."""
        return {"": self.default, **self.by_output}

    def texts(self) -> list[str]:
        """Return the bound as arguments of the command line, without a default of zero."""
        return [
            f"{output}{':' if output else ''}{value!r}".removesuffix(".0")
            for output, value in self.numbers.items()
            if value or output
        ]

    def of(self, output: str) -> float:
        """Return the number for an output."""
        return self.by_output.get(output, self.default)


def _parse_number(text: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InvalidRequest(
            f"tolerance '{text}': write a number >= 0, such as 1e-5, or OUTPUT:1e-5"
        )
    return value


class Tolerance(NamedTuple):
    """The tolerance of each output; `comparison` tells how the three bounds combine.

    Attributes:
        atol, rtol, max_ulp: bounds for all outputs, or for some.
        equal_nan: whether NaN equals NaN.
        elements: output -> absolute tolerance of each element, in the output's shape, NaN where
            nothing can be judged; replaces the three bounds.
    """

    atol: Bound = Bound()
    rtol: Bound = Bound()
    max_ulp: Bound = Bound()
    equal_nan: bool = True
    elements: Mapping[str, Array] = {}

    @classmethod
    def parse(
        cls,
        *,
        atol: Iterable[str] = (),
        rtol: Iterable[str] = (),
        max_ulp: Iterable[str] = (),
        equal_nan: bool = True,
    ) -> Tolerance:
        """Read tolerances as the command line gives them.

        Raises:
            InvalidRequest: see `Bound.parse`.
        """
        return cls(Bound.parse(atol), Bound.parse(rtol), Bound.parse(max_ulp), equal_nan)

    @classmethod
    def given(cls, atol: Limit | None, rtol: Limit | None, max_ulp: Limit | None) -> Tolerance:
        """Return the tolerance of Python arguments.

        Raises:
            InvalidRequest: see `Bound.given`.
        """
        return cls(Bound.given(atol), Bound.given(rtol), Bound.given(max_ulp))

    def of(self, output: str) -> ElementBounds:
        """Return the limits of one output."""
        if output in self.elements:
            return ElementBounds(self.elements[output].reshape(-1), 0.0, 0.0, self.equal_nan)
        return ElementBounds(
            self.atol.of(output), self.rtol.of(output), self.max_ulp.of(output), self.equal_nan
        )

    def check(self, outputs: Iterable[str]) -> None:
        """Refuse a tolerance for an output that is not one of these.

        Raises:
            InvalidRequest: it is not; suggests a similar name.
        """
        known = dict.fromkeys(outputs)
        named = {*self.atol.by_output, *self.rtol.by_output, *self.max_ulp.by_output}
        for name in sorted(named - set(known)):
            hint = did_you_mean(name, known) or f": there are {', '.join(known) or 'none'}"
            raise InvalidRequest(f"a tolerance is given for an unknown output '{name}'{hint}")


EXACT = Tolerance()
# The default for test data sets without tolerances of their own.
DATA_SET = Tolerance(Bound(1e-5), Bound(1e-3), Bound(1))


def ulp_width(units: float, wanted: Array) -> Array:
    """Return a number of units in the last place as an absolute tolerance, rounded up.

    Args:
        units: the number of units.
        wanted: the expected values, in whose dtype a unit is meant; complex ones by their size.
    """
    spacing = 2.0 ** (1 - dtype_of(wanted.real).precision)
    size = np.abs(wanted).astype(np.float64)
    return np.asarray(units * spacing * np.where(np.isfinite(size), size, 0.0))


class ElementBounds(NamedTuple):
    """The tolerance of one output, or of a range of its elements."""

    atol: float | Array  # absolute, for all elements or for each
    rtol: float  # relative to the wanted value
    max_ulp: float  # in units in the last place
    equal_nan: bool  # whether NaN equals NaN

    def at(self, elements: slice) -> ElementBounds:
        """Return the limits of a range of elements, counted in row-major order."""
        if isinstance(self.atol, int | float):
            return self
        return self._replace(atol=self.atol[elements].astype(np.float64))

    def width(self, wanted: Array) -> float:
        """Return the widest tolerance of some elements, by whichever bound is widest."""
        widths = np.maximum(self.allowed(wanted), ulp_width(self.max_ulp, wanted))
        return float(np.fmax.reduce(widths, initial=0.0))

    def allowed(self, wanted: Array) -> Array:
        """Return the absolute tolerance by atol and rtol; NaN and infinity must match exactly."""
        size = np.abs(wanted).astype(np.float64)
        finite = np.isfinite(size)
        with np.errstate(over="ignore"):
            return np.where(finite, self.atol + self.rtol * np.where(finite, size, 0.0), 0.0)


def scalar_equivalents(wanted: Array, tolerance: Array) -> list[tuple[float, float]]:
    """Return (rtol, atol) for each of a stack of outputs, nowhere below its tolerances.

    atol + rtol |wanted| is the line above the points (|wanted|, tolerance) with the least sum over
    the elements: it lies on the edge of their upper hull above the mean of |wanted|. Both numbers
    are rounded up to three digits. Elements that are not finite must match exactly and are ignored.

    Args:
        wanted: outputs [n, ...].
        tolerance: the tolerance of each of their elements.
    """
    n, elements = len(wanted), math.prod(wanted.shape[1:])
    x = np.abs(wanted.reshape(n, elements).astype(np.float64))
    t = tolerance.reshape(n, elements).astype(np.float64)
    finite = np.isfinite(x) & np.isfinite(t)
    if not finite.all():  # rows of different lengths, one by one
        return [_lines(x[k : k + 1, f], t[k : k + 1, f])[0] for k, f in enumerate(finite)]
    return _lines(x, t)


def _lines(x: Array, t: Array) -> list[tuple[float, float]]:
    """Return the line above the points (x, t) of each row [n, elements]; all are finite."""
    found = [(0.0, 0.0)] * len(x)
    rows = np.flatnonzero(t.any(axis=1))
    if not rows.size:
        return found
    x, t = x[rows], t[rows]
    rtol = _each_three_digits(_slopes(x, t))
    atol = _each_three_digits(np.maximum((t - rtol * x).max(axis=1), 0.0))
    while (low := (atol + rtol * x < t).any(axis=1)).any():  # the sum was rounded too
        atol[low] = _each_three_digits(np.nextafter(atol[low, 0], np.inf))
    for row, *line in zip(rows, rtol[:, 0].tolist(), atol[:, 0].tolist(), strict=True):
        found[row] = line[0], line[1]
    return found


def _slopes(x: Array, t: Array) -> Array:
    """Return the slope of the tightest line with slope and intercept >= 0 above each row, [n]."""
    every = np.arange(len(x))
    left, right = x.argmin(axis=1), x.argmax(axis=1)
    mean = np.array([math.fsum(row) for row in x.tolist()]) / x.shape[1]
    slope = np.zeros(len(x))
    wide = np.flatnonzero((x[every, left] < mean) & (mean < x[every, right]))
    slope[wide] = _edges_above(x[wide], t[wide], mean[wide], left[wide], right[wide])
    slope = np.maximum(slope, 0.0)
    for k in np.flatnonzero((t - slope[:, None] * x).max(axis=1) < 0):
        positive = x[k] > 0  # the line through zero: atol is not negative
        slope[k] = (t[k, positive] / x[k, positive]).max()
    return slope


def _edges_above(x: Array, t: Array, positions: Array, left: Array, right: Array) -> Array:
    """Return the slope of each row's upper hull's edge above a position strictly within, [n].

    From any two points on both sides, the point farthest above the line through them replaces the
    one on its side, until no point is above. A few rounds suffice; if the moduli are nearly equal,
    rounding might keep this going for ever, and any slope will do.
    """
    slopes = np.zeros(len(x))
    going = np.arange(len(x))
    for _ in range(ROUNDS):
        if not going.size:
            break
        a, b = left[going], right[going]
        slope = (t[going, b] - t[going, a]) / (x[going, b] - x[going, a])
        slopes[going] = slope
        above = t[going] - slope[:, None] * x[going]
        farthest = above.argmax(axis=1)
        rows = np.arange(len(going))
        least = above[rows, a] + 1e-9 * t[going, farthest]
        higher = (farthest != a) & (farthest != b) & (above[rows, farthest] > least)
        going, farthest = going[higher], farthest[higher]
        on_left = x[going, farthest] <= positions[going]
        left[going[on_left]] = farthest[on_left]
        right[going[~on_left]] = farthest[~on_left]
    return slopes


def _each_three_digits(values: Array) -> Array:
    """Round numbers [n] >= 0 up to three significant decimal digits, [n, 1]."""
    found = []
    for value in values.tolist():
        up = float(_THREE_DIGITS.create_decimal(Decimal(value))) if value else 0.0
        found.append([up if up >= value else math.nextafter(up, math.inf)])
    return np.array(found)
