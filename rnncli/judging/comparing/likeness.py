"""What two tensors that differ have in common: one is the other moved, scaled, rounded, or nearly.

Each sentence is measured: what it says leaves at most `LEFT` of the error, and a rounding no
element that is further off than it takes it.
"""

from __future__ import annotations

from itertools import groupby, permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.judging.comparing.comparison import agreeing
from rnncli.numerics import DTYPES, dtype_of, round_to
from rnncli.numerics.grids import LEAST, NARROW, grid_of
from rnncli.talk.words import counted, listed, plural, shown, times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.judging.comparing.comparison import Sides
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.numerics import Array
    from rnncli.numerics.grids import Grid

# The part of an error, on average, that what explains it may leave.
LEFT = 0.01
# How near a factor is to a power of 2 to be one.
ALIKE = 1e-4
# The most elements, axes and indices of an axis that are looked at, and indices and ranges told.
MOST_ELEMENTS, MOST_AXES, MOST_INDICES, MOST_TOLD, MOST_RANGES = 1 << 22, 5, 256, 16, 2
# How far errors may be from those of a rounding to be as large, and how far to come of any: steps
# in bfloat16 or weights in int8 add up to errors of up to 7 times those of rounding the outputs to
# bfloat16, see `running.request.LARGEST`.
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
    grids = grid_of(got, wanted), grid_of(wanted, got)
    for sentence in _explaining(g, w, differs, grids, sides):
        return [Likeness(sentence, explains=True)]
    found = [*_places(differs)]
    if grids[0]:
        found.append(f"{sides.got} nothing but {grids[0].words}")
    off = (g - w)[differs]
    if off.size >= LEAST and ((off > 0).all() or (off < 0).all()):
        more = "larger" if off[0] > 0 else "smaller"
        found.append(f"{sides.got} {more} values in all of {off.size} wrong elements")
    return [Likeness(sentence) for sentence in found]


def _is_real(values: Array) -> bool:
    return values.dtype.kind in "fiu" or dtype_of(values).is_float


def _explaining(
    g: Array, w: Array, differs: Array, grids: Sequence[Grid | None], sides: Sides
) -> Iterator[str]:
    """Yield what explains the whole error."""
    size = _rms(g - w)
    got_is, wanted_is = f"{sides.got} what {sides.wanted}", f"{sides.wanted} what {sides.got}"

    def is_left(values: Array) -> bool:
        return values.shape == g.shape and _rms(g - values) <= LEFT * size

    if not (w.any() and g.any()):
        yield f"{sides.got if w.any() else sides.wanted} nothing but zeros"
        return
    if g.size >= LEAST:
        shift, factor = float(np.mean(g - w)), float(np.vdot(g, w) / np.vdot(w, w))
        if is_left(w + shift):
            yield f"{got_is} {'+' if shift > 0 else '-'} {shown(abs(shift))}"
        power = np.copysign(np.exp2(np.rint(np.log2(abs(factor) or 1.0))), factor)
        factor = float(power) if np.isclose(power, factor, rtol=ALIKE) else factor
        if is_left(w * factor):
            yield f"{got_is} times {shown(factor)}"
        slope, start = np.polynomial.polynomial.polyfit(w.ravel(), g.ravel(), 1)[::-1].tolist()
        if is_left(w * slope + start):
            sign = "+" if start > 0 else "-"
            yield f"{got_is} times {shown(slope)} {sign} {shown(abs(start))}"
    for grid, a, b, said in zip(grids, (g, w), (w, g), (got_is, wanted_is), strict=True):
        if grid and (rounding := grid.rounding(a, b)):
            yield f"{said} {rounding} {grid.words}"
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
        rows, others, wrong = (
            np.moveaxis(values, axis, 0).reshape(count, -1) for values in (g, w, differs)
        )
        apart = np.add.outer((rows**2).sum(1), (others**2).sum(1)) - 2 * rows @ others.T
        nearest = np.where(wrong.any(axis=1), apart.argmin(axis=1), range(count)).tolist()
        # Of few elements one may be like another by chance, unless each is there once.
        is_sure = rows.shape[1] >= LEAST or sorted(nearest) == [*range(count)]
        if is_sure and is_left(np.take(w, nearest, axis)):
            yield _taken(nearest, axis, sides)


def _taken(indices: Sequence[int], axis: int, sides: Sides) -> str:
    """Return which indices of an axis have what others should have, in words."""
    moved = [(k, index) for k, index in enumerate(indices) if k != index]
    runs = groupby(enumerate(moved), lambda each: (each[1][0] - each[0], each[1][1] - each[0]))
    ranges = [[pair for _, pair in run] for _, run in runs]
    if len(ranges) > MOST_RANGES:
        said = listed([str(k) for k in indices], MOST_TOLD)
        return f"{sides.got} what {sides.wanted} at the indices {said} along axis {axis}"
    words = []
    for run in ranges:
        ends = zip(run[0], run[-1], strict=True)
        words.append([f"{a}" if a == b else f"{a} to {b}" for a, b in ends])
    (at, of), *more = words
    first = f"{sides.got} at {at} of axis {axis} what {sides.wanted} at {of}"
    return "".join([first, *(f", and at {at} what it has at {of}" for at, of in more)])


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
        name: _rms(round_to(numbers, DTYPES[name]).astype(np.float64) - numbers) for name in NARROW
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

    Of types that differ, it begins with whether the elements agree in the narrower one; of shapes
    that differ, it is whether they agree with axes in another order.
    """
    found: dict[str, list[Likeness]] = {}
    for name in [name for name in wanted if name in got]:
        g, w = got[name], wanted[name]
        said: list[Likeness] = []
        if dtype_of(g) != dtype_of(w):
            found[name] = said
            if g.shape != w.shape or not (_is_real(g) and _is_real(w)):
                continue
            floats = [each for each in map(dtype_of, (g, w)) if each.is_float]
            narrow = min(floats, key=lambda each: each.precision) if floats else dtype_of(w)
            g, w = (round_to(values.astype(np.float64), narrow) for values in (g, w))
            mask = agreeing(g, w, tolerance.of(name))
            some = f"{mask.sum()} of {counted(mask.size, 'element')}"
            agree = plural(mask.size, "agrees", "agree")
            said.append(Likeness(f"in {narrow} {some} {agree}", bool(mask.all())))
        if g.shape == w.shape:
            mask = agreeing(g, w, tolerance.of(name))
            if mask.all():
                continue
            found[name] = said
            exchanged = (
                other
                for other, theirs in wanted.items()
                if (other != name and theirs.shape == g.shape)
                and (dtype_of(theirs) == dtype_of(g) and theirs.any())
                and agreeing(g, theirs, tolerance.of(other)).all()
            )
            if other := next(exchanged, ""):
                said.append(Likeness(f"{sides.got} what {sides.wanted} as {other}", explains=True))
            else:
                said += likenesses(g, w, ~mask, sides)
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
