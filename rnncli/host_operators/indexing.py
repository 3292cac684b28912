"""Operators that move, select or count elements."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.numerics import Array

_REDUCTIONS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def pad(
    data: Array,
    pads: Array,
    constant_value: Array | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
) -> Array:
    """Pad, or crop with negative numbers, a tensor at both ends of its axes.

    Args:
        data: [D1 ... Dn].
        pads: the amounts at the start of all axes, then at their ends.
        constant_value: the value of the mode constant; 0 if absent.
        axes: the axes; all if absent.
        mode: constant, reflect, edge or wrap.

    Raises:
        InvalidRequest: the numbers do not fit the tensor.
        Unsupported: the mode is unknown.
    """
    if mode != "constant" and mode not in _SOURCES:
        raise Unsupported(f"mode '{mode}' is not supported")
    chosen = range(data.ndim) if axes is None else axes.ravel().tolist()
    if len(pads) != 2 * len(chosen):
        raise InvalidRequest(f"pads must have {2 * len(chosen)} elements, got {len(pads)}")
    amounts, numbers = [(0, 0)] * data.ndim, np.ravel(pads).tolist()
    for axis, begin, end in zip(chosen, numbers, numbers[len(chosen) :], strict=False):
        amounts[axis] = begin, end
    kept, added = data, amounts
    if min(numbers, default=0) < 0:
        kept, added = data[*_kept(amounts, data.shape)], _added(amounts, data.shape)
    if mode == "constant":
        return _surrounded(kept, added, constant_value)
    if any(n == 0 and any(ends) for ends, n in zip(added, kept.shape, strict=True)):
        raise InvalidRequest(f"mode '{mode}' cannot pad an empty axis")
    return _continued(kept, added, _SOURCES[mode])


def _kept(amounts: Sequence[tuple[int, int]], shape: Sequence[int]) -> Iterator[slice]:
    """Yield the part of each axis that remains after cropping."""
    for (begin, end), n in zip(amounts, shape, strict=True):
        yield slice(max(-begin, 0), max(n - max(-end, 0), 0))


def _added(amounts: Sequence[tuple[int, int]], shape: Sequence[int]) -> list[tuple[int, int]]:
    """Return the amounts of padding, reduced if one end crops beyond the other."""
    added = []
    for (begin, end), n in zip(amounts, shape, strict=True):
        if begin + n + end < 0:
            raise InvalidRequest(f"pads {begin} and {end} cut more than the {n} elements there are")
        added.append((max(begin + min(n + end, 0), 0), max(end + min(n + begin, 0), 0)))
    return added


def _surrounded(data: Array, added: Sequence[tuple[int, int]], value: Array | None) -> Array:
    """Pad with a constant; np.pad's overhead exceeds the copying of most models' tensors."""
    shape = [begin + n + end for (begin, end), n in zip(added, data.shape, strict=True)]
    given = value is not None and np.size(value)
    filled = np.full(shape, np.asarray(value).astype(data.dtype).item() if given else 0, data.dtype)
    filled[*(slice(b, b + n) for (b, _), n in zip(added, data.shape, strict=True))] = data
    return filled


def _continued(
    data: Array, added: Sequence[tuple[int, int]], source: Callable[[Array, int], Array]
) -> Array:
    """Pad with elements of the tensor; `source` maps positions to elements."""
    for axis, (begin, end) in enumerate(added):
        if begin or end:
            n = data.shape[axis]
            data = data.take(source(np.arange(-begin, n + end), n), axis)
    return data


def _reflected(at: Array, n: int) -> Array:
    """Reflect positions back and forth; a single element repeats."""
    there_and_back = max(2 * n - 2, 1)
    return np.asarray(np.minimum(at % there_and_back, -at % there_and_back))


_SOURCES: dict[str, Callable[[Array, int], Array]] = {
    "edge": lambda at, n: np.clip(at, 0, n - 1),
    "wrap": lambda at, n: at % n,
    "reflect": _reflected,
}


def pad_2(data: Array, pads: Sequence[int], value: float = 0.0, mode: str = "constant") -> Array:
    """Pad by attributes (opsets 2 to 10)."""
    return pad(data, np.asarray(pads), np.asarray(value), mode=mode)


def pad_1(
    data: Array, paddings: Sequence[int], value: float = 0.0, mode: str = "constant"
) -> Array:
    """Pad by attributes (opset 1)."""
    return pad_2(data, paddings, value, mode)


def reshape(data: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """Reshape; 0 keeps a size unless `allowzero` is set, -1 infers one."""
    sizes = shape.tolist()
    if not allowzero:
        sizes = [data.shape[i] if n == 0 else n for i, n in enumerate(sizes)]
    return data.reshape(sizes)


def expand(data: Array, shape: Array) -> Array:
    """Broadcast a tensor with a shape."""
    filled = np.empty(np.broadcast_shapes(data.shape, tuple(shape.tolist())), data.dtype)
    filled[...] = data
    return filled


def unsqueeze(data: Array, axes: Array | Sequence[int]) -> Array:
    """Insert axes of size 1; the numbers are positions in the result, in any order."""
    wanted = axes.ravel().tolist() if isinstance(axes, np.ndarray) else axes
    if len(wanted) == 1 and 0 <= wanted[0] <= data.ndim:
        shape = data.shape
        return data.reshape((*shape[: wanted[0]], 1, *shape[wanted[0] :]))
    return np.expand_dims(data, tuple(wanted))


def transpose(data: Array, perm: Sequence[int] | None = None) -> Array:
    """Reorder the axes; without an order, reverse them."""
    return data.transpose(perm or None)


def concat(*inputs: Array, axis: int) -> Array:
    """Join along an axis."""
    return np.concatenate(inputs, axis)


def gather(data: Array, indices: Array, axis: int = 0) -> Array:
    """Pick slices along an axis; negative numbers count from the end."""
    return np.asarray(data.take(indices, axis))


def cut(
    data: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    """Return the part of a tensor from starts to ends: Slice from opset 10 on."""
    places = [slice(None)] * data.ndim
    limits = [starts.ravel().tolist(), ends.ravel().tolist()]
    if steps is not None:
        limits.append(steps.ravel().tolist())
    along = range(data.ndim) if axes is None else axes.ravel().tolist()
    for axis, *limit in zip(along, *limits, strict=False):
        places[axis] = slice(*limit)
    return data[tuple(places)]


def one_hot(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """Write the second of `values` at each index along a new axis, and the first elsewhere.

    Args:
        indices: [...]; negative ones count from the end, those out of range are ignored.
        depth: one number, the size of the new axis.
        values: [off, on].
        axis: the position of the new axis in the result.
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
    """Return the distinct elements or slices, in ascending order or by first appearance.

    Returns:
        The elements, their first indices in X, the inverse indices of X, and the counts.
    """
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

    Args:
        data: [D1 ... Dn].
        indices: [E1 ... En], no larger than the data along the other axes.
        updates: like `indices`.
        axis: the axis that the indices refer to.
        reduction: how an update is combined with the old value: none (replaces it), add, mul, min
            or max.

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
    """Return slices by their leading coordinates, the last axis of `indices`.

    Args:
        data: [B1 ... Bb, D1 ... Dn].
        indices: [B1 ... Bb, ..., k].
        batch_dims: b, the number of shared leading axes.

    Returns:
        [B1 ... Bb, ..., Dk+1 ... Dn].
    """
    places = indices.shape[:-1]
    batch = np.ogrid[tuple(slice(n) for n in places)][:batch_dims] if batch_dims else ()
    return np.asarray(data[(*batch, *np.moveaxis(indices, -1, 0))])


def scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    """Write slices by their leading coordinates, the counterpart of `gather_nd`.

    Args:
        data: [D1 ... Dn].
        indices: [..., k]; the last of equal ones wins.
        updates: [..., Dk+1 ... Dn].
        reduction: as in `scatter_elements`.

    Raises:
        InvalidRequest: the updates have another shape.
        Unsupported: the reduction is unknown.
    """
    if reduction not in ("none", *_REDUCTIONS):
        raise Unsupported(f"reduction '{reduction}' is not supported")
    wanted = indices.shape[:-1] + data.shape[indices.shape[-1] :]
    if updates.shape != wanted:
        raise InvalidRequest(f"updates must be {list(wanted)}, got {list(updates.shape)}")
    result, place = data.copy(), tuple([indices[..., k] for k in range(indices.shape[-1])])
    if reduction == "none":
        result[place] = updates
    else:
        _REDUCTIONS[reduction].at(result, place, updates)
    return result


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

    Args:
        data: [D1 ... Dn].
        lengths: the lengths of the parts.
        outputs: the number of parts that the node names.
        axis: the axis to split.
        split: the lengths, as an attribute before opset 13.
        num_outputs: the number of equal parts; the last may be shorter (opset 18).

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
