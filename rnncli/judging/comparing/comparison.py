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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.files.formats.stored import texts_of
from rnncli.judging.tolerances.tolerance import EXACT, ElementBounds, Tolerance
from rnncli.models.data_sets import WIDEST
from rnncli.numerics import DType, dtype_of, ulp_distance
from rnncli.talk.display import Conclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.numerics import Array

# Elements compared at a time, so that working memory does not grow with the tensors.
BLOCK = 1 << 18


Scalar: TypeAlias = "float | int | bool | complex | str"


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element with the largest absolute difference, among those beyond the tolerance if any.

    Attributes:
        index: its index; empty in a scalar.
        got: its value.
        wanted: the value it should have.
        allowed: the difference that `atol` and `rtol` allow.
    """

    index: tuple[int, ...]
    got: Scalar
    wanted: Scalar
    allowed: float


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """The comparison of one output.

    Attributes:
        name: the output's name.
        problem: why the output could not be compared: missing, not expected, another shape or
            dtype, all without measures; or it differs within a tolerance in which zeros would
            agree as well; "" if it was.
        dtype: dtype of the wanted output, or of the one that was got if none was wanted.
        shape: likewise.
        differing: number of elements beyond the tolerance.
        unequal: number of elements that are not equal.
        max_abs: the largest absolute difference; infinite for an unmatched NaN or infinity; None
            for text.
        max_rel: the largest absolute difference divided by the wanted value.
        max_ulp: the largest difference in units in the last place, for a complex number that of its
            worse part; None for dtypes other than floating point.
        mean_abs: the mean absolute difference of all elements.
        unjudged: number of elements whose tolerance says nothing.
        worst: the worst element; None if all elements are equal.
    """

    name: str
    problem: str
    dtype: str
    shape: tuple[int, ...]
    differing: int = 0
    unequal: int = 0
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    mean_abs: float | None = None
    unjudged: int = 0
    worst: WorstElement | None = None

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
        fields = {name: _json(getattr(self, name)) for name in self.__slots__ if name != "worst"}
        worst = self.worst and {
            name: _json(getattr(self.worst, name)) for name in self.worst.__slots__
        }
        return {**fields, "size": self.size, "agrees": self.agrees, "worst": worst}


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    unsayable = isinstance(value, complex) or (
        isinstance(value, float) and not math.isfinite(value)
    )
    return str(value) if unsayable else value


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
    got: Mapping[str, Array], wanted: Mapping[str, Array], tolerance: Tolerance = EXACT
) -> Comparison:
    """Compare outputs by name: the wanted ones in their order, then any others.

    Args:
        got: the outputs to judge.
        wanted: the expected outputs.
        tolerance: the tolerances; by default only equal elements agree.

    Raises:
        InvalidRequest: the tolerance names an output that is on neither side, or both sides are one
            object, which shows nothing.
    """
    if got is wanted:
        raise InvalidRequest("the outputs are compared with themselves, which shows nothing")
    names = dict.fromkeys([*wanted, *got])
    tolerance.check(names)
    return Comparison(_compare_output(name, got, wanted, tolerance.of(name)) for name in names)


def _compare_output(
    name: str, got: Mapping[str, Array], wanted: Mapping[str, Array], limits: ElementBounds
) -> OutputComparison:
    sample = wanted[name] if name in wanted else got[name]
    dtype = dtype_of(sample)
    if problem := _problem(got.get(name), wanted.get(name)):
        return OutputComparison(name, problem, dtype.name, sample.shape)
    tally = _Tally()
    # Overflow to infinity and NaN from infinities are results here, not accidents.
    with np.errstate(all="ignore"):
        for start, got_block, wanted_block in _blocks(got[name], wanted[name], dtype):
            if not np.array_equal(got_block, wanted_block):  # equal blocks add nothing
                here = limits.at(slice(start, start + BLOCK))
                tally.add(start, _kind(dtype).measure(got_block, wanted_block, here))
        is_excused = tally.unequal and not tally.differing
        problem = _width_problem(wanted[name], limits, dtype) if is_excused else ""
    unjudged = int(np.isnan(limits.atol).sum())
    found = _result(name, got[name], wanted[name], limits, tally)
    return replace(found, problem=problem, unjudged=unjudged)


def _problem(got: Array | None, wanted: Array | None) -> str:
    if got is None:
        return "is missing"
    if wanted is None:
        return "is not expected"
    if dtype_of(got) != dtype_of(wanted):
        return f"dtype is {dtype_of(got)}, wanted {dtype_of(wanted)}"
    if got.shape != wanted.shape:
        return f"shape is {list(got.shape)}, wanted {list(wanted.shape)}"
    return ""


def _blocks(got: Array, wanted: Array, dtype: DType) -> Iterator[tuple[int, Array, Array]]:
    """Yield flat, contiguous, native-endian blocks of both, with the position of each."""
    got, wanted = got.reshape(-1), wanted.reshape(-1)
    for start in range(0, got.size, BLOCK):
        piece = slice(start, start + BLOCK)
        yield (
            start,
            np.ascontiguousarray(got[piece], dtype.numpy),
            np.ascontiguousarray(wanted[piece], dtype.numpy),
        )


class _Differences(NamedTuple):
    """Elementwise measures of a block, all of one length."""

    equal: Array
    agrees: Array
    absolute: Array
    relative: Array
    ulp: Array


def _exact(equal: Array, absolute: Array, size_of_wanted: Array) -> _Differences:
    nowhere = np.zeros(0)
    return _Differences(equal, equal, absolute, _ratio(absolute, size_of_wanted), nowhere)


def _text(got: Array, wanted: Array, _: ElementBounds) -> _Differences:
    equal = np.array(texts_of(got), object) == np.array(texts_of(wanted), object)
    return _exact(equal.astype(bool), (~equal.astype(bool)).astype(np.float64), np.ones(()))


def _integers(got: Array, wanted: Array, _: ElementBounds) -> _Differences:
    wide = np.uint64 if got.dtype == np.uint64 else np.int64
    g, w = got.astype(wide), wanted.astype(wide)
    # Modulo 2**64 the difference of two int64 values is exact, however far apart they are.
    apart = np.maximum(g, w).astype(np.uint64) - np.minimum(g, w).astype(np.uint64)
    return _exact(g == w, apart.astype(np.float64), np.abs(w.astype(np.float64)))


def _floats(got: Array, wanted: Array, limits: ElementBounds) -> _Differences:
    ulp = ulp_distance(got, wanted)
    return _inexact(got.astype(np.float64), wanted.astype(np.float64), ulp, limits)


def _complexes(got: Array, wanted: Array, limits: ElementBounds) -> _Differences:
    part = got.real.dtype
    ulp = ulp_distance(got.view(part), wanted.view(part)).reshape(-1, 2).max(axis=1)
    return _inexact(got.astype(np.complex128), wanted.astype(np.complex128), ulp, limits)


def _inexact(g: Array, w: Array, ulp: Array, limits: ElementBounds) -> _Differences:
    nan_g, nan_w = np.isnan(g), np.isnan(w)
    equal = (g == w) | (nan_g & nan_w & limits.equal_nan)
    unmatched = (nan_g | nan_w) & ~equal
    size = np.abs(w)
    absolute = np.where(equal, 0.0, np.abs(g - w))
    absolute[~equal & ~(np.isfinite(g) & np.isfinite(w))] = np.inf
    ulp = np.where(equal, 0.0, np.where(unmatched, np.inf, ulp))
    close = np.isfinite(g) & np.isfinite(w) & ~(absolute > limits.allowed(w))  # NaN: not judged
    agrees = equal | close | (ulp <= limits.max_ulp)
    return _Differences(equal, agrees, absolute, _ratio(absolute, size), ulp)


def _ratio(absolute: Array, size: Array) -> Array:
    relative = np.where(absolute == 0, 0.0, absolute / size)
    return np.where(np.isnan(relative), np.inf, relative)


class _Kind(NamedTuple):
    """The comparison of elements of one kind: their measures and their Python type."""

    measure: Callable[[Array, Array, ElementBounds], _Differences]
    scalar: Callable[[Any], Scalar]
    has_distance: bool = True
    has_ulp: bool = False


_KINDS = {
    "O": _Kind(_text, str, has_distance=False),
    "b": _Kind(_integers, bool),
    "c": _Kind(_complexes, complex, has_ulp=True),
    "f": _Kind(_floats, float, has_ulp=True),
    "i": _Kind(_integers, int),
}


def _kind(dtype: DType) -> _Kind:
    return _KINDS.get("f" if dtype.is_float else dtype.numpy.kind, _KINDS["i"])


def _width_problem(wanted: Array, limits: ElementBounds, dtype: DType) -> str:
    """Return why an output that agrees within its tolerance may be wrong all the same, or ""."""
    largest = widest = 0.0
    for start, block, _ in _blocks(wanted, wanted, dtype):
        size = np.abs(block).astype(np.float64)
        largest = max(largest, float(np.max(size, initial=0.0, where=np.isfinite(size))))
        widest = max(widest, limits.at(slice(start, start + BLOCK)).width(block))
    if widest <= WIDEST * (largest or 1.0):
        return ""
    return (
        f"cannot be judged: zeros would agree, too, within tolerance {widest:.3g}; the largest"
        f" value is {largest:.3g}"
    )


class _Extreme(NamedTuple):
    """An element, ordered by its error."""

    differs: bool
    absolute: float
    position: int


@dataclass(slots=True)
class _Tally:
    """The totals over the blocks of one output."""

    differing: int = 0
    unequal: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    sum_abs: float = 0.0
    extreme: _Extreme | None = None

    def add(self, start: int, block: _Differences) -> None:
        self.differing += int(np.count_nonzero(~block.agrees))
        self.unequal += int(np.count_nonzero(~block.equal))
        self.max_abs = max(self.max_abs, float(block.absolute.max()))
        self.max_rel = max(self.max_rel, float(block.relative.max()))
        self.max_ulp = max(self.max_ulp, float(block.ulp.max(initial=0.0)))
        self.sum_abs += float(block.absolute.sum())
        found = _extreme(start, block)
        if self.extreme is None or found[:2] > self.extreme[:2]:
            self.extreme = found


def _extreme(start: int, block: _Differences) -> _Extreme:
    candidates = ~block.agrees if not block.agrees.all() else ~block.equal
    position = int(np.where(candidates, block.absolute, -1.0).argmax())
    differs = not block.agrees[position]
    return _Extreme(differs, float(block.absolute[position]), start + position)


def _result(
    name: str, got: Array, wanted: Array, limits: ElementBounds, tally: _Tally
) -> OutputComparison:
    dtype = dtype_of(wanted)
    kind = _kind(dtype)
    return OutputComparison(
        name=name,
        problem="",
        dtype=dtype.name,
        shape=wanted.shape,
        differing=tally.differing,
        unequal=tally.unequal,
        max_abs=tally.max_abs if kind.has_distance else None,
        max_rel=tally.max_rel if kind.has_distance else None,
        max_ulp=tally.max_ulp if kind.has_ulp else None,
        mean_abs=tally.sum_abs / max(wanted.size, 1) if kind.has_distance else None,
        worst=_worst(kind, got, wanted, limits, tally) if tally.unequal else None,
    )


def _worst(
    kind: _Kind, got: Array, wanted: Array, limits: ElementBounds, tally: _Tally
) -> WorstElement:
    assert tally.extreme
    index = tuple(map(int, np.unravel_index(tally.extreme.position, wanted.shape)))
    here = slice(tally.extreme.position, tally.extreme.position + 1)
    allowed = limits.at(here).allowed(wanted.reshape(-1)[here]).item() if kind.has_ulp else 0.0
    return WorstElement(index, kind.scalar(got[index]), kind.scalar(wanted[index]), allowed)
