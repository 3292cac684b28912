"""Operators that move or select elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest, Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array

_REDUCTIONS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def pad(
    data: Array,
    pads: Array | Sequence[int],
    constant_value: Array | float | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
) -> Array:
    """Pad, or crop with negative numbers, a tensor [D1 ... Dn] at both ends of its axes.

    The specification does not say what is reflected beyond the first or last element of an axis;
    its example of such an axis was an error (onnx/onnx#7700), and ONNX Runtime refuses it as well.

    Raises:
        InvalidRequest: the numbers do not fit the tensor.
        Unsupported: the mode is unknown.
    """
    if mode not in ("constant", "edge", "wrap", "reflect"):
        raise Unsupported(f"mode '{mode}' is not supported")
    numbers = np.ravel(pads).tolist()
    chosen = [*range(data.ndim)] if axes is None else axes.ravel().tolist()
    if len(numbers) != 2 * len(chosen):
        raise InvalidRequest(f"pads must have {2 * len(chosen)} elements, got {len(numbers)}")
    kept, added = [slice(None)] * data.ndim, [(0, 0)] * data.ndim
    for axis, begin, end in zip(chosen, numbers, numbers[len(chosen) :], strict=False):
        n = data.shape[axis]
        if begin + n + end < 0:
            raise InvalidRequest(f"pads {begin} and {end} cut more than the {n} elements there are")
        start = min(max(-begin, 0), n)
        kept[axis] = slice(start, max(n - max(-end, 0), start))
        # An end that crops beyond the other reduces its padding.
        added[axis] = max(begin + min(n + end, 0), 0), max(end + min(n + begin, 0), 0)
    if not added:
        return data.copy()
    inside, widths = data[tuple(kept)], np.array(added, np.int64)
    if mode == "constant":
        value = 0 if constant_value is None or not np.size(constant_value) else constant_value
        return np.pad(inside, widths, constant_values=np.asarray(value).item())
    for axis, (ends, n) in enumerate(zip(added, inside.shape, strict=True)):
        if n == 0 and any(ends):
            raise InvalidRequest(f"mode '{mode}' cannot pad an empty axis")
        if mode == "reflect" and max(ends) >= max(n, 1):
            raise InvalidRequest(
                f"mode 'reflect' pads axis {axis}, of {n}, by at most {n - 1}, not by {max(ends)}"
            )
    return np.asarray(np.pad(inside, widths, mode))  # type: ignore[call-overload]


def pad_by_attributes(
    data: Array,
    *,
    pads: Sequence[int] = (),
    paddings: Sequence[int] = (),
    value: float = 0.0,
    mode: str = "constant",
) -> Array:
    """Pad by attributes (opsets 1 to 10); in opset 1 `pads` has another name."""
    return pad(data, pads or paddings, value, mode=mode)


def unsqueeze(data: Array, *, axes: Sequence[int]) -> Array:
    """Insert axes of size 1; the numbers are positions in the result, in any order."""
    return np.expand_dims(data, tuple(axes))


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


def scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    """Write slices [..., Dk+1 ... Dn] by their leading coordinates; of equal ones the last wins.

    Raises:
        InvalidRequest: the updates have another shape.
        Unsupported: the reduction is unknown.
    """
    if reduction not in ("none", *_REDUCTIONS):
        raise Unsupported(f"reduction '{reduction}' is not supported")
    wanted = indices.shape[:-1] + data.shape[indices.shape[-1] :]
    if updates.shape != wanted:
        raise InvalidRequest(f"updates must be {list(wanted)}, got {list(updates.shape)}")
    result, place = data.copy(), tuple(np.moveaxis(indices, -1, 0))
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

    Raises:
        InvalidRequest: the number of parts or their total length is wrong.
    """
    size = data.shape[axis]
    given = split if lengths is None else lengths.astype(np.int64).tolist()
    if given is not None:
        parts = [*given]
    elif num_outputs:
        part = -(-size // num_outputs)
        parts = [part] * (num_outputs - 1) + [size - part * (num_outputs - 1)]
    else:
        parts = [size // outputs] * outputs
    if len(parts) != outputs or sum(parts) != size or min(parts, default=0) < 0:
        raise InvalidRequest(f"axis {axis} of size {size} cannot be split into parts of {parts}")
    return tuple(np.split(data, np.cumsum(parts)[:-1], axis))
