"""What two tensors that differ have in common: one is the other moved, scaled, rounded, or nearly.

Each sentence is measured: what it says leaves at most `LEFT` of the error.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.judging.comparing.comparison import agreeing
from rnncli.numerics import DTYPES, dtype_of, round_to
from rnncli.talk.words import counted, listed, shown, times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.judging.comparing.comparison import Sides
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.numerics import Array

# The part of an error, on average, that what explains it may leave.
LEFT = 0.01
# The least number of elements that have one sign, or fit a number, by no chance.
LEAST = 10
# The most elements, axes and indices of an axis that are looked at, decimals, binary places, and
# indices told.
MOST_ELEMENTS, MOST_AXES, MOST_INDICES, MOST_TOLD = 1 << 22, 5, 256, 16
MOST_DECIMALS, MOST_PLACES = 8, 24
# Types to whose roundings errors are compared, the finest first, how far from one they may be to be
# as large, and how far to come of any: steps in bfloat16 or weights in int8 add up to errors of up
# to 7 times those of rounding the outputs to bfloat16, see `running.request.LARGEST`.
ROUNDED = ("float32", "float16", "bfloat16")
NEAR, FAR = 4.0, 10.0


class Likeness(NamedTuple):
    """Something that two tensors have in common."""

    sentence: str
    explains: bool = False  # whether it explains all of the error


def likenesses(got: Array, wanted: Array, differs: Array, sides: Sides) -> list[Likeness]:
    """Return what two tensors of one shape have in common, given which elements differ."""
    if not 1 < got.size <= MOST_ELEMENTS or not (_is_real(got) and _is_real(wanted)):
        return []
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    if np.isnan(g).all() and np.isfinite(w).any():
        return [Likeness(f"{sides.got} nothing but NaN", explains=True)]
    if not (np.isfinite(g).all() and np.isfinite(w).all() and differs.any()):
        return []
    for sentence in _explaining(g, w, sides):
        return [Likeness(sentence, explains=True)]
    found = [*_places(differs)]
    off = (g - w)[differs]
    if off.size >= LEAST and ((off > 0).all() or (off < 0).all()):
        more = "larger" if off[0] > 0 else "smaller"
        found.append(f"{sides.got} {more} values in all of {off.size} wrong elements")
    return [Likeness(sentence) for sentence in found]


def _is_real(values: Array) -> bool:
    return values.dtype.kind in "fiu" or dtype_of(values).is_float


def _explaining(g: Array, w: Array, sides: Sides) -> Iterator[str]:
    """Yield what explains the whole error."""
    size = _rms(g - w)
    got_is = f"{sides.got} what {sides.wanted}"

    def is_left(values: Array) -> bool:
        return values.shape == g.shape and _rms(g - values) <= LEFT * size

    if not (w.any() and g.any()):
        yield f"{sides.got if w.any() else sides.wanted} nothing but zeros"
        return
    if g.size >= LEAST:
        shift, factor = float(np.mean(g - w)), float(np.vdot(g, w) / np.vdot(w, w))
        if is_left(w + shift):
            yield f"{got_is} {'+' if shift > 0 else '-'} {shown(abs(shift))}"
        if is_left(w * factor):
            yield f"{got_is} times {shown(factor)}"
        slope, start = np.polynomial.polynomial.polyfit(w.ravel(), g.ravel(), 1)[::-1].tolist()
        if is_left(w * slope + start):
            sign = "+" if start > 0 else "-"
            yield f"{got_is} times {shown(slope)} {sign} {shown(abs(start))}"
        for a, b, said in ((g, w, got_is), (w, g, f"{sides.wanted} what {sides.got}")):
            for decimals in range(MOST_DECIMALS):
                if _rms(a - np.round(b, decimals)) <= LEFT * size:
                    yield f"{said} rounded to {counted(decimals, 'decimal')}"
            for name in ROUNDED:
                if _rms(a - round_to(b, DTYPES[name]).astype(np.float64)) <= LEFT * size:
                    yield f"{said} rounded to {name}"
            for places in range(1, MOST_PLACES):
                unit = 2.0**-places
                if _rms(a - np.round(b / unit) * unit) <= LEFT * size:
                    yield f"{said} rounded to multiples of 2^-{places}: fixed point"
    if w.ndim <= MOST_AXES:
        for order in permutations(range(w.ndim)):
            if order != (*range(w.ndim),) and is_left(w.transpose(order)):
                yield f"{got_is} with its axes in the order {', '.join(map(str, order))}"
    for axis, count in enumerate(w.shape):
        if not 1 < count <= MOST_INDICES:
            continue
        if is_left(np.flip(w, axis)):
            yield f"{got_is} reversed along axis {axis}"
        late, early, before = slice(1, None), slice(None, -1), (slice(None),) * axis
        for own, theirs, way in ((late, early, "later"), (early, late, "earlier")):
            here, there = ((*before, each) for each in (own, theirs))
            is_moved = count > 2 and _rms(g[here] - w[here]) > size / 2
            if is_moved and _rms(g[here] - w[there]) <= LEFT * size:
                yield f"{got_is} one index {way} along axis {axis}"
        rows, others = (np.moveaxis(values, axis, 0).reshape(count, -1) for values in (g, w))
        apart = np.add.outer((rows**2).sum(1), (others**2).sum(1)) - 2 * rows @ others.T
        nearest = apart.argmin(axis=1).tolist()
        if sorted(nearest) == [*range(count)] and is_left(np.take(w, nearest, axis)):
            said = listed([str(k) for k in nearest], MOST_TOLD)
            yield f"{got_is} at the indices {said} along axis {axis}"


def _places(differs: Array) -> Iterator[str]:
    """Yield the indices of an axis to which all wrong elements are confined."""
    if differs.sum() == 1:
        return
    for axis, size in enumerate(differs.shape):
        others = tuple(k for k in range(differs.ndim) if k != axis)
        wrong = np.flatnonzero(differs.any(axis=others)).tolist()
        if size == 1 or len(wrong) == size:
            continue
        if len(wrong) == 1:
            yield f"only index {wrong[0]} of axis {axis} is wrong, of {size}"
        elif wrong == [*range(wrong[0], wrong[-1] + 1)]:
            end = "on" if wrong[-1] == size - 1 else f"to {wrong[-1]}"
            yield f"only indices from {wrong[0]} {end} of axis {axis} are wrong, of {size}"


def beside_roundings(got: Array, wanted: Array) -> str:
    """Return how large the error is beside that of rounding to a type, or ""."""
    if not dtype_of(wanted).is_float:
        return ""
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    is_number = np.isfinite(g) & np.isfinite(w)
    size = _rms((g - w)[is_number])
    if not (is_number.any() and size):
        return ""
    numbers = w[is_number]
    made = {
        name: _rms(round_to(numbers, DTYPES[name]).astype(np.float64) - numbers) for name in ROUNDED
    }
    found = {name: size / each for name, each in made.items() if each}
    near = min(found, key=lambda name: abs(np.log(found[name])), default="")
    if not near or found[near] < 1 / NEAR:
        return ""
    if found[near] <= NEAR:
        return f"errors are as large as those of rounding to {near} ({times(found[near])})"
    beside = f"{times(found[near])} those of rounding to {near}"
    if found[near] > FAR:
        return f"errors are larger than roundings make, {beside}: something else is computed"
    return f"errors are {beside}"


def differences(
    got: Mapping[str, Array], wanted: Mapping[str, Array], tolerance: Tolerance, sides: Sides
) -> dict[str, list[Likeness]]:
    """Return what outputs that differ have in common with those that are wanted, by name.

    Of shapes that differ, it is whether the elements agree with axes in another order.
    """
    found: dict[str, list[Likeness]] = {}
    for name in [name for name in wanted if name in got]:
        g, w = got[name], wanted[name]
        if dtype_of(g) != dtype_of(w):
            continue
        if g.shape == w.shape:
            mask = agreeing(g, w, tolerance.of(name))
            if not mask.all():
                found[name] = likenesses(g, w, ~mask, sides)
        elif order := order_of(g.shape, w.shape):
            mask = agreeing(in_order(g, order, w.shape), w, tolerance.of(name))
            agree = f"{mask.sum()} of {counted(mask.size, 'element')}"
            moved = _reordered(g.shape, order, w.shape)
            sentence = f"what {sides.got}, {moved}: {agree} agree"
            found[name] = [Likeness(sentence, bool(mask.all()))]
    return found


def order_of(shape: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Return the order of axes in which a shape is the wanted one but for axes of size 1.

    Returns:
        () for the wanted shape itself, and None if there is no such order, or more than one that
        is not its own.
    """
    if tuple(shape) == tuple(wanted):
        return ()
    long = [axis for axis, size in enumerate(shape) if size != 1]
    sizes = [size for size in wanted if size != 1]
    orders = [[*long]] if [shape[axis] for axis in long] == sizes else []
    if not orders and len(long) <= MOST_AXES:
        orders = [[*each] for each in permutations(long) if [shape[axis] for axis in each] == sizes]
    if len(orders) != 1:
        return None
    rest = [axis for axis in range(len(shape)) if axis not in long]
    moved = iter(orders[0])
    return tuple(axis if axis in rest else next(moved) for axis in range(len(shape)))


def _reordered(shape: Sequence[int], order: Sequence[int], wanted: Sequence[int]) -> str:
    """Return what `in_order` does, in words."""
    moved, words = [shape[axis] for axis in order], []
    if [*order] != sorted(order):
        words.append(f"with axes in the order {', '.join(map(str, order))}")
    if moved != [*wanted]:
        axes = (k for k in range(len(moved)) if [*moved[:k], *moved[k + 1 :]] == [*wanted])
        axis = next(axes, None)
        words.append(f"in the shape {[*wanted]}" if axis is None else f"without axis {axis}")
    return " and ".join(words)


def in_order(values: Array, order: Sequence[int], shape: Sequence[int]) -> Array:
    """Return values with their axes in an order, in a shape."""
    return (values.transpose(order) if order else values).reshape(shape)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
