"""Refuse a node that would fill memory from a few numbers.

A damaged shape in a small file asks for terabytes, and an operating system that overcommits grants
them. Each row says how many elements an operator makes from its inputs' values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.graph.tensors import LARGEST_FROM_NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Count = Callable[..., float]


def may_be_giant(op_type: str) -> bool:
    """Whether the output of an operator of ONNX's own domain can be of any size."""
    return op_type in _ELEMENTS


def refuse_giant(op_type: str, inputs: Sequence[Any]) -> None:
    """Refuse an operator of ONNX's own domain whose output these inputs make giant.

    Raises:
        NotImplementedError: it would have more elements than this package makes from nothing.
    """
    if not may_be_giant(op_type) or not inputs or inputs[-1] is None:
        return
    elements = _ELEMENTS[op_type](*inputs)
    if elements > LARGEST_FROM_NOTHING and elements > 4 * max(map(np.size, inputs)):
        raise NotImplementedError(
            f"would make {elements:.0f} elements; at most {LARGEST_FROM_NOTHING} are made"
        )


def _product(sizes: Any) -> int:
    return math.prod(map(int, np.ravel(sizes).tolist()))


def _expanded(values: Any, shape: Any) -> int:
    sizes = [*map(int, np.ravel(shape).tolist())]
    ours = [1] * (len(sizes) - values.ndim) + list(values.shape)
    theirs = [1] * (values.ndim - len(sizes)) + sizes
    return math.prod(max(pair) for pair in zip(ours, theirs, strict=True))


def _range(start: Any, limit: Any, delta: Any) -> float:
    step = float(delta.item())
    return (float(limit.item()) - float(start.item())) / step if step else 0


def _padded(values: Any, pads: Any = (), _fill: Any = None, axes: Any = None) -> int:
    sizes, amounts = [*values.shape], np.ravel(pads).tolist()
    count = len(amounts) // 2
    for i, axis in enumerate(range(count) if axes is None else np.ravel(axes).tolist()):
        sizes[axis] += int(amounts[i]) + int(amounts[i + count])
    return math.prod(sizes)


def _resized(values: Any, *factors: Any) -> float:
    """Resize names sizes last; scales, or Upsample's, come before; the rest is empty."""
    given = [f for f in factors if f is not None and f.size == values.ndim]
    if not given:
        return 0
    sizes = given[-1]
    scaled = sizes.dtype.kind == "f"
    return float(math.prod(map(float, sizes))) * (values.size if scaled else 1)


_ELEMENTS: Mapping[str, Count] = {
    "ConstantOfShape": _product,
    "Expand": _expanded,
    "Tile": lambda values, repeats: values.size * _product(repeats),
    "Range": _range,
    "Pad": _padded,
    "OneHot": lambda indices, depth, *_: indices.size * int(np.ravel(depth)[0]),
    "Resize": _resized,
    "Upsample": _resized,
}
