"""Operators that move, select or count elements."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.host_operators.kernel import Staged, per_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.numerics import Array

    OfData: TypeAlias = Callable[[Array], Array]
    Ends: TypeAlias = Sequence[tuple[int, int]]

_REDUCTIONS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@Staged
def pad(
    pads: Array,
    constant_value: Array | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
) -> OfData:
    """Pad, or crop with negative numbers, a tensor [D1 ... Dn] at both ends of its axes.

    Raises:
        InvalidRequest: the numbers do not fit the tensor.
        Unsupported: the mode is unknown.
    """
    if mode != "constant" and mode not in _SOURCES:
        raise Unsupported(f"mode '{mode}' is not supported")
    numbers = np.ravel(pads).tolist()
    chosen = None if axes is None else axes.ravel().tolist()

    @per_shape
    def padding(shape: tuple[int, ...]) -> OfData:
        amounts = _amounts(numbers, range(len(shape)) if chosen is None else chosen, len(shape))
        kept, added = tuple(_kept(amounts, shape)), _added(amounts, shape)
        sizes = [part.stop - part.start for part in kept]
        if mode == "constant":
            return _surrounding(kept, added, sizes, constant_value)
        if any(n == 0 and any(ends) for ends, n in zip(added, sizes, strict=True)):
            raise InvalidRequest(f"mode '{mode}' cannot pad an empty axis")
        if mode == "reflect":
            _check_reflected(added, sizes)
        return _continuing(kept, added, sizes, _SOURCES[mode])

    return lambda data: padding(data.shape)(data)


def _amounts(numbers: Sequence[int], axes: Sequence[int], rank: int) -> Ends:
    """Return the padding at both ends of each axis."""
    if len(numbers) != 2 * len(axes):
        raise InvalidRequest(f"pads must have {2 * len(axes)} elements, got {len(numbers)}")
    amounts = [(0, 0)] * rank
    for axis, begin, end in zip(axes, numbers, numbers[len(axes) :], strict=False):
        amounts[axis] = begin, end
    return amounts


def _kept(amounts: Ends, shape: Sequence[int]) -> Iterator[slice]:
    """Yield the part of each axis that remains after cropping."""
    for (begin, end), n in zip(amounts, shape, strict=True):
        start = min(max(-begin, 0), n)
        yield slice(start, max(n - max(-end, 0), start))


def _added(amounts: Ends, shape: Sequence[int]) -> Ends:
    """Return the amounts of padding, reduced if one end crops beyond the other."""
    added = []
    for (begin, end), n in zip(amounts, shape, strict=True):
        if begin + n + end < 0:
            raise InvalidRequest(f"pads {begin} and {end} cut more than the {n} elements there are")
        added.append((max(begin + min(n + end, 0), 0), max(end + min(n + begin, 0), 0)))
    return added


def _surrounding(
    kept: tuple[slice, ...], added: Ends, sizes: Sequence[int], value: Array | None
) -> OfData:
    """Pad with a constant; np.pad's overhead exceeds the copying of most models' tensors."""
    shape = [begin + n + end for (begin, end), n in zip(added, sizes, strict=True)]
    inside = tuple(slice(b, b + n) for (b, _), n in zip(added, sizes, strict=True))
    given = np.asarray(value) if value is not None and np.size(value) else np.asarray(0)

    def surrounded(data: Array) -> Array:
        filled = np.empty(shape, data.dtype)
        filled[...] = given
        filled[inside] = data[kept]
        return filled

    return surrounded


def _continuing(
    kept: tuple[slice, ...],
    added: Ends,
    sizes: Sequence[int],
    source: Callable[[Array, int], Array],
) -> OfData:
    """Pad with elements of the tensor; `source` maps positions to elements."""
    taken = [
        (source(np.arange(-begin, n + end), n), axis)
        for axis, ((begin, end), n) in enumerate(zip(added, sizes, strict=True))
        if begin or end
    ]

    def continued(data: Array) -> Array:
        data = data[kept]
        for positions, axis in taken:
            data = data.take(positions, axis)
        return data

    return continued


def _check_reflected(added: Ends, sizes: Sequence[int]) -> None:
    """Refuse to reflect more elements than an axis has beyond its first or last.

    The specification does not say what they would be; its example of such an axis was an error
    (onnx/onnx#7700), and ONNX Runtime refuses them as well.
    """
    for axis, (ends, n) in enumerate(zip(added, sizes, strict=True)):
        if max(ends) >= max(n, 1):
            raise InvalidRequest(
                f"mode 'reflect' pads axis {axis}, of {n}, by at most {n - 1}, not by {max(ends)}"
            )


_SOURCES: dict[str, Callable[[Array, int], Array]] = {
    "edge": lambda at, n: np.clip(at, 0, n - 1),
    "wrap": lambda at, n: at % n,
    "reflect": lambda at, n: n - 1 - np.abs(n - 1 - np.abs(at)),
}


@Staged
def pad_2(pads: Sequence[int], value: float = 0.0, mode: str = "constant") -> OfData:
    """Pad by attributes (opsets 2 to 10)."""
    return pad.prepare(np.asarray(pads), np.asarray(value), mode=mode)


@Staged
def pad_1(paddings: Sequence[int], value: float = 0.0, mode: str = "constant") -> OfData:
    """Pad by attributes (opset 1)."""
    return pad_2.prepare(paddings, value, mode)


def expand(data: Array, shape: Array) -> Array:
    """Broadcast a tensor with a shape."""
    filled = np.empty(np.broadcast_shapes(data.shape, tuple(shape.tolist())), data.dtype)
    filled[...] = data
    return filled


@Staged
def unsqueeze(axes: Array | Sequence[int]) -> OfData:
    """Insert axes of size 1; the numbers are positions in the result, in any order."""
    wanted = np.ravel(axes).tolist()
    if len(wanted) != 1:
        return lambda data: np.expand_dims(data, tuple(wanted))
    (axis,) = wanted
    rest = slice(None)
    place = (*[rest] * axis, None, ...) if axis >= 0 else (..., None, *[rest] * (-1 - axis))
    return lambda data: data[place]


@Staged
def squeeze(axes: Array | Sequence[int] | None = None) -> OfData:
    """Remove axes of size 1, by default all."""
    chosen = None if axes is None or not np.size(axes) else tuple(np.ravel(axes).tolist())
    return lambda data: data.squeeze(chosen)


def one_hot(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """Write the second of `values` at each index along a new axis, and the first elsewhere.

    Negative indices count from the end, those out of range are ignored.
    """
    size = int(depth.item())
    wanted = np.expand_dims(indices.astype(np.int64), axis)
    shape = [1] * wanted.ndim
    shape[axis] = size
    hit = np.where(wanted < 0, wanted + size, wanted) == np.arange(size).reshape(shape)
    return np.asarray(np.where(hit, values[1], values[0]))


def unique(
    X: Array,
    *,
    axis: int | None = None,
    sorted: int = 1,  # noqa: A002 -- ONNX's name
) -> tuple[Array, Array, Array, Array]:
    """Return the distinct elements or slices, in ascending order or by first appearance."""
    found = np.unique(X, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, first, inverse, counts = (np.asarray(part) for part in found)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = first.argsort()
        values = values.take(order, axis=axis or 0)
        first, inverse, counts = first[order], order.argsort()[inverse], counts[order]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


def flatten(data: Array, *, axis: int = 1) -> Array:
    """Reshape to a matrix: the axes before `axis` become rows, the others columns."""
    split = axis + data.ndim if axis < 0 else axis
    return data.reshape(prod(data.shape[:split]), prod(data.shape[split:]))


def gather_elements(data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Return one element per index, at the same position along all other axes."""
    return np.take_along_axis(data[_beside(indices, axis)], indices, axis)


def scatter_elements(
    data: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """Write one element per index, the counterpart of `gather_elements`.

    Raises:
        Unsupported: the reduction is unknown.
    """
    if reduction not in ("none", *_REDUCTIONS):
        raise Unsupported(f"reduction '{reduction}' is not supported")
    result = data.copy()
    part = result[_beside(indices, axis)]
    if reduction == "none":
        np.put_along_axis(part, indices, updates, axis)
    else:
        place = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
        place[axis] = indices
        _REDUCTIONS[reduction].at(part, tuple(place), updates)
    return result


def gather_nd(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """Return slices by their leading coordinates, the last axis of `indices`."""
    places = indices.shape[:-1]
    batch = np.ogrid[tuple(slice(n) for n in places)][:batch_dims] if batch_dims else ()
    return np.asarray(data[(*batch, *np.moveaxis(indices, -1, 0))])


@partial(Staged, late=(0, 2))
def scatter_nd(indices: Array, *, reduction: str = "none") -> Callable[[Array, Array], Array]:
    """Write slices by their leading coordinates, the counterpart of `gather_nd`.

    The second stage takes the data, [D1 ... Dn], and the updates, [..., Dk+1 ... Dn]; of equal
    indices the last wins.

    Raises:
        InvalidRequest: the updates have another shape.
        Unsupported: the reduction is unknown.
    """
    if reduction not in ("none", *_REDUCTIONS):
        raise Unsupported(f"reduction '{reduction}' is not supported")
    rank = indices.shape[-1]
    place = tuple(np.moveaxis(indices, -1, 0))

    def scattered(data: Array, updates: Array) -> Array:
        wanted = indices.shape[:-1] + data.shape[rank:]
        if updates.shape != wanted:
            raise InvalidRequest(f"updates must be {list(wanted)}, got {list(updates.shape)}")
        result = data.copy()
        if reduction == "none":
            result[place] = updates
        else:
            _REDUCTIONS[reduction].at(result, place, updates)
        return result

    return scattered


def _beside(indices: Array, axis: int) -> tuple[slice, ...]:
    """Return slices that crop a tensor to the size of its indices along all axes but one."""
    along = axis % indices.ndim
    return tuple(slice(None) if i == along else slice(n) for i, n in enumerate(indices.shape))


def split(
    data: Array,
    lengths: Array | None = None,
    *,
    outputs: int,
    axis: int = 0,
    split: Sequence[int] | None = None,
    num_outputs: int | None = None,
) -> tuple[Array, ...]:
    """Split into parts of given or equal lengths.

    Raises:
        InvalidRequest: the number of parts or their total length is wrong.
    """
    size = data.shape[axis]
    given = split if lengths is None else lengths.astype(np.int64).tolist()
    parts = _equal_parts(size, outputs, num_outputs) if given is None else [*given]
    if len(parts) != outputs or sum(parts) != size or min(parts, default=0) < 0:
        raise InvalidRequest(f"axis {axis} of size {size} cannot be split into parts of {parts}")
    return tuple(np.split(data, np.cumsum(parts)[:-1], axis))


def _equal_parts(size: int, outputs: int, num_outputs: int | None) -> list[int]:
    if not num_outputs:
        return [size // outputs] * outputs
    part = -(-size // num_outputs)
    return [part] * (num_outputs - 1) + [size - part * (num_outputs - 1)]
