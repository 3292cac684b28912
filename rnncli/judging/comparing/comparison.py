"""Comparison of tensors: how much each output differs, where, and whether that is tolerated.

An element agrees when it is equal (-0.0 is 0.0, an infinity is the same infinity, NaN is NaN unless
the tolerance says otherwise), when ``|got - wanted| <= atol + rtol * |wanted|``, or when at most
``max_ulp`` floating-point steps separate the two. Without tolerances, only equal elements agree.
Tolerances apply to floating-point and complex elements; integers, bool and text must be equal.
Infinity is one step from the largest finite number in ulp, and infinitely far in `atol` and `rtol`.

Differences are taken in float64, into which every narrower float widens exactly, and between
integers without rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.files.formats.stored import texts_of
from rnncli.judging.tolerances.tolerance import EXACT, ElementBounds, Tolerance
from rnncli.numerics import WIDEST, dtype_of, ulp_distance
from rnncli.talk.display import Conclusion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import Array

# Elements compared at a time, so that working memory does not grow with the tensors.
BLOCK = 1 << 18


Scalar: TypeAlias = "float | int | bool | complex | str"
# What has values that were evaluated here.
MODEL = "the model gives"


class Sides(NamedTuple):
    """What has the values of both sides of a comparison: phrases that a value follows."""

    got: str = "got"  # such as "got.npz has", "onnxruntime gives" or `MODEL`
    wanted: str = "expected"

    def told(self, got: object, wanted: object, what: str = "") -> str:
        """Return both values in words, that of the model last."""
        words = [f"{self.got} {what}{got}", f"{self.wanted} {wanted}"]
        if self.got == MODEL:
            words = [f"{self.wanted} {what}{wanted}", f"{self.got} {got}"]
        return ", ".join(words)


UNNAMED = Sides()


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element with the largest absolute difference, among those beyond the tolerance if any."""

    index: tuple[int, ...]  # its index; empty in a scalar
    got: Scalar  # its value
    wanted: Scalar  # the value it should have
    allowed: float  # the difference that `atol` and `rtol` allow


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """The comparison of one output."""

    name: str  # the output's name
    # why the output could not be compared: missing, not expected, another shape or dtype, all
    # without measures; or it differs within a tolerance in which zeros would agree as well; "" if
    # it was
    problem: str
    dtype: str  # dtype of the wanted output, or of the one that was got if none was wanted
    shape: tuple[int, ...]  # likewise
    differing: int = 0  # number of elements beyond the tolerance
    unequal: int = 0  # number of elements that are not equal
    # the largest absolute difference; infinite for an unmatched NaN or infinity; None for text
    max_abs: float | None = None
    max_rel: float | None = None  # the largest absolute difference divided by the wanted value
    # the largest difference in units in the last place, for a complex number that of its worse
    # part; None for dtypes other than floating point
    max_ulp: float | None = None
    mean_abs: float | None = None  # the mean absolute difference of all elements
    # the largest error / tolerance; None for dtypes other than floating point
    of_tolerance: float | None = None
    unjudged: int = 0  # number of elements whose tolerance says nothing
    worst: WorstElement | None = None  # the worst element; None if all elements are equal
    sides: Sides = UNNAMED  # what has its values

    @property
    def agrees(self) -> bool:
        """Whether the output exists and every element is within the tolerance."""
        return not self.problem and self.differing == 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def record(self) -> dict[str, Any]:
        """Return the comparison as JSON data: infinities, NaN and complex numbers become text."""

        def plain(row: Any) -> dict[str, Any]:
            found = {name: getattr(row, name) for name in row.__slots__}
            for name, value in found.items():
                if isinstance(value, Sides):
                    found[name] = value._asdict()
                elif isinstance(value, tuple):
                    found[name] = list(value)
                elif isinstance(value, complex) or (
                    isinstance(value, float) and not math.isfinite(value)
                ):
                    found[name] = str(value)
            return found

        worst = self.worst and plain(self.worst)
        return {**plain(self), "size": self.size, "agrees": self.agrees, "worst": worst}


class Comparison(Conclusion, tuple[OutputComparison, ...]):
    """The comparisons of all outputs."""

    __slots__ = ()

    @property
    def exit_code(self) -> int:
        """The exit code of `rnncli compare`: 1 if an output differs, 5 if none was judged."""
        if not all(output.agrees for output in self):
            return 1
        return (
            0
            if any(output.size > output.unjudged for output in self)
            else NothingSelected.exit_code
        )


def compare(
    got: Mapping[str, Array],
    wanted: Mapping[str, Array],
    tolerance: Tolerance = EXACT,
    sides: Sides = UNNAMED,
) -> Comparison:
    """Compare outputs by name: the wanted ones in their order, then any others.

    Args:
        got: the outputs to judge.
        wanted: the expected outputs.
        tolerance: the tolerances; by default only equal elements agree.
        sides: what has the outputs, in words.

    Raises:
        InvalidRequest: the tolerance names an output that is on neither side, or both sides are one
            object, which shows nothing.
    """
    if got is wanted:
        raise InvalidRequest("the outputs are compared with themselves, which shows nothing")
    names = dict.fromkeys([*wanted, *got])
    tolerance.check(names)
    return Comparison(
        _compared(name, got.get(name), wanted.get(name), tolerance.of(name), sides)
        for name in names
    )


def _compared(
    name: str, got: Array | None, wanted: Array | None, limits: ElementBounds, sides: Sides
) -> OutputComparison:
    sample = got if wanted is None else wanted
    assert sample is not None
    dtype = dtype_of(sample)

    def refused(problem: str) -> OutputComparison:
        return OutputComparison(name, problem, dtype.name, sample.shape, sides=sides)

    if got is None:
        return refused(f"{sides.wanted} it, {sides.got} none")
    if wanted is None:
        return refused(f"{sides.got} it, {sides.wanted} none")
    if dtype_of(got) != dtype:
        return refused(sides.told(dtype_of(got), dtype, "dtype "))
    if got.shape != wanted.shape:
        return refused(sides.told([*got.shape], [*wanted.shape], "shape "))

    is_text, is_inexact = dtype.numpy.kind == "O", dtype.is_float or dtype.numpy.kind == "c"
    differing = unequal = 0
    max_abs = max_rel = max_ulp = sum_abs = widest = largest = margin = 0.0
    worst: tuple[bool, float, int] = (False, -1.0, 0)  # differs, error, position
    # Overflow to infinity and NaN from infinities are results here, not accidents.
    with np.errstate(all="ignore"):
        for start in range(0, got.size, BLOCK):
            piece = slice(start, start + BLOCK)
            here = limits.at(piece)
            g, w = (np.ascontiguousarray(v.reshape(-1)[piece], dtype.numpy) for v in (got, wanted))
            if is_inexact:
                size = np.abs(w).astype(np.float64)
                largest = max(largest, float(np.max(size, initial=0.0, where=np.isfinite(size))))
                widest = max(widest, here.width(w))
            if np.array_equal(g, w):  # equal blocks add nothing
                continue
            equal, agrees, absolute, size, ulp = _measured(g, w, here, is_inexact=is_inexact)
            relative = np.where(absolute == 0, 0.0, absolute / size)
            relative[np.isnan(relative)] = np.inf
            differing += int(np.count_nonzero(~agrees))
            unequal += int(np.count_nonzero(~equal))
            max_abs = max(max_abs, float(absolute.max()))
            max_rel = max(max_rel, float(relative.max()))
            max_ulp = max(max_ulp, float(ulp.max(initial=0.0)))
            if is_inexact:
                of_width = np.where(equal, 0.0, absolute / here.allowed(w))
                of_ulp = np.where(equal, 0.0, ulp / here.max_ulp)
                margin = max(margin, float(np.fmax.reduce(np.fmin(of_width, of_ulp))))
            sum_abs += float(absolute.sum())
            candidates = ~agrees if not agrees.all() else ~equal
            k = int(np.where(candidates, absolute, -1.0).argmax())
            found = (bool(~agrees[k]), float(absolute[k]), start + k)
            worst = max(worst, found, key=lambda each: each[:2])

    problem, element = "", None
    if unequal and not differing and widest > WIDEST * (largest or 1.0):
        problem = (
            f"cannot be judged: zeros would agree, too, within tolerance {widest:.3g}; the largest"
            f" value is {largest:.3g}"
        )
    if unequal:
        at = slice(worst[2], worst[2] + 1)
        index = tuple(map(int, np.unravel_index(worst[2], wanted.shape)))
        allowed = limits.at(at).allowed(wanted.reshape(-1)[at]).item() if is_inexact else 0.0
        plain = [str(v[index]) if is_text else v[index].item() for v in (got, wanted)]
        kinds = str | bool | int | complex  # numbers of other types become floats
        read = [value if isinstance(value, kinds) else float(value) for value in plain]
        element = WorstElement(index, read[0], read[1], allowed)
    return OutputComparison(
        name,
        problem,
        dtype.name,
        wanted.shape,
        differing=differing,
        unequal=unequal,
        max_abs=None if is_text else max_abs,
        max_rel=None if is_text else max_rel,
        max_ulp=max_ulp if is_inexact else None,
        of_tolerance=margin if is_inexact else None,
        mean_abs=None if is_text else sum_abs / max(wanted.size, 1),
        unjudged=int(np.isnan(limits.atol).sum()),
        worst=element,
        sides=sides,
    )


def agreeing(got: Array, wanted: Array, limits: ElementBounds) -> Array:
    """Return the mask of the elements that agree, of outputs of one shape and dtype."""
    dtype = dtype_of(wanted)
    is_inexact = dtype.is_float or dtype.numpy.kind == "c"
    g, w = (np.ascontiguousarray(v.reshape(-1), dtype.numpy) for v in (got, wanted))
    with np.errstate(all="ignore"):
        return _measured(g, w, limits, is_inexact=is_inexact)[1].reshape(wanted.shape)


def _measured(g: Array, w: Array, limits: ElementBounds, *, is_inexact: bool) -> tuple[Array, ...]:
    """Return equal, agrees, absolute difference, size of the wanted, and ulp of a block."""
    none = np.zeros(0)
    if g.dtype.kind == "O":
        equal = np.asarray([a == b for a, b in zip(texts_of(g), texts_of(w), strict=True)])
        return equal, equal, (~equal).astype(np.float64), np.ones(()), none
    if not is_inexact:
        wide = np.uint64 if g.dtype == np.uint64 else np.int64
        g, w = g.astype(wide), w.astype(wide)
        # Modulo 2**64 the difference of two int64 values is exact, however far apart they are.
        apart = np.maximum(g, w).astype(np.uint64) - np.minimum(g, w).astype(np.uint64)
        return g == w, g == w, apart.astype(np.float64), np.abs(w.astype(np.float64)), none
    if g.dtype.kind == "c":
        part = g.real.dtype
        ulp = ulp_distance(g.view(part), w.view(part)).reshape(-1, 2).max(axis=1)
        g, w = g.astype(np.complex128), w.astype(np.complex128)
    else:
        ulp = ulp_distance(g, w)
        g, w = g.astype(np.float64), w.astype(np.float64)
    nan_g, nan_w, finite = np.isnan(g), np.isnan(w), np.isfinite(g) & np.isfinite(w)
    equal = (g == w) | (nan_g & nan_w & limits.equal_nan)
    absolute = np.where(equal, 0.0, np.abs(g - w))
    absolute[~equal & ~finite] = np.inf
    ulp = np.where(equal, 0.0, np.where((nan_g | nan_w) & ~equal, np.inf, ulp))
    close = finite & ~(absolute > limits.allowed(w))  # NaN: not judged
    return equal, equal | close | (ulp <= limits.max_ulp), absolute, np.abs(w), ulp
