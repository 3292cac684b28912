"""Memory limits of a running model: giant outputs are refused, live values are counted.

A damaged shape in a small file can request terabytes, which an overcommitting operating system
grants. Each row computes the number of output elements from an operator's inputs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.limits.budget import ask, from_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Count = Callable[..., float]
    from collections.abc import Iterable, Iterator

    from rnncli.limits.budget import Budget
    from rnncli.numerics import Array


def refuse_giant(op_type: str, inputs: Sequence[Any]) -> None:
    """Raise if these inputs give an operator of ONNX's own domain a giant output.

    Raises:
        OutOfMemory: the output exceeds the run's memory.
    """
    if op_type not in _ELEMENTS or not inputs or inputs[-1] is None:
        return
    elements = _ELEMENTS[op_type](*inputs)
    arrays = [values for values in inputs if isinstance(values, np.ndarray | np.generic)]
    width = _WIDTHS.get(op_type, arrays[0].itemsize)
    limit = from_tensors(max(values.nbytes for values in arrays))
    ask(elements * width, "its output", otherwise=limit)


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
    """Return the size of Resize's or Upsample's output; sizes come last, scales before them."""
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

# Bytes of an output element, if it does not have the first input's type.
_WIDTHS: Mapping[str, int] = {"ConstantOfShape": 4, "OneHot": 4}


class MemoryTally:
    """A tally of live arrays, each counted once even if several values view it.

    Args:
        budget: the run's budget.
        given: values that existed before; they and their views do not count.
    """

    def __init__(self, budget: Budget, given: Iterable[Any]) -> None:
        self._budget = budget
        self._given = {id(owner) for value in given for owner in _owners(value)}
        self._alive: dict[int, list[int]] = {}  # by owner: number of values, bytes

    def add(self, values: Iterable[Any]) -> None:
        """Count the outputs of a node.

        Raises:
            OutOfMemory: the live values exceed the budget.
        """
        for owner in (owner for value in values for owner in _owners(value)):
            if id(owner) in self._alive:
                self._alive[id(owner)][0] += 1
            elif id(owner) not in self._given:
                self._alive[id(owner)] = [1, owner.nbytes]
                self._budget.count(owner.nbytes)

    def drop(self, value: Any) -> None:
        """Release a value that has no further readers."""
        for owner in _owners(value):
            if found := self._alive.get(id(owner)):
                found[0] -= 1
                if not found[0]:
                    self._budget.count(-found[1])
                    del self._alive[id(owner)]

    def close(self) -> None:
        """Release everything; returned values are counted by their receiver."""
        self._budget.count(-sum(nbytes for _, nbytes in self._alive.values()))


def _owners(value: Any) -> Iterator[Array]:
    """Yield the arrays that own a value's memory; a sequence has many."""
    if isinstance(value, np.ndarray):
        yield value.base if isinstance(value.base, np.ndarray) else value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _owners(each)
