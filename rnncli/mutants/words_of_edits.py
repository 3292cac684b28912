"""The words of edits besides NumPy: what a kernel's author would have written as a line or two."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace  # noqa: F401 -- for the lines of edits
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation

    Rows = tuple[tuple[Activation, ...], ...]

FORWARD, REVERSE = Direction.FORWARD, Direction.REVERSE
# Functions whose defaults ONNX Runtime does not know.
UNDEFINED = ("Affine", "ScaledTanh", "ThresholdedRelu")


class _Absent:
    """An input that is not given: what is made of it is not given, either."""

    def __call__(self, *_: Any, **__: Any) -> _Absent:
        return self

    def __getattr__(self, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    __array_ufunc__ = __array_function__ = __getitem__ = __call__
    __add__ = __sub__ = __mul__ = __neg__ = __call__


ABSENT = _Absent()


def zeroed(values: Any, where: Any) -> Any:
    """Return values with zeros somewhere: `zeroed(W, np.s_[:, 2])`."""
    if values is ABSENT:
        return values
    values = np.array(values)
    values[where] = 0
    return values


def in_order(order: str, right: str, values: Any) -> Any:
    """Return the blocks of gates as read in another order."""
    return values[:, [order.index(gate) for gate in right]]


def _rows(rows: Iterable[Iterable[Activation]]) -> Rows:
    return tuple(map(tuple, rows))


def with_function(rows: Rows, k: int, function: Activation) -> Rows:
    """Return activations with other ones in place k of each direction."""
    found = [[*row] for row in rows]
    for row in found:
        row[k] = function
    return _rows(found)


def exchanged(rows: Rows, one: int, other: int) -> Rows:
    """Return activations of which two of each direction are exchanged."""
    found = [[*row] for row in rows]
    for row in found:
        row[one], row[other] = row[other], row[one]
    return _rows(found)


def with_values(rows: Rows, keys: str, value: Callable[[str, float, float], float]) -> Rows:
    """Return activations with other values of alpha or beta, or both, where they take one.

    Args:
        rows: the activations of each direction.
        keys: "alpha", "beta" or both.
        value: name, default and own value -> value.
    """

    def changed(each: Activation) -> Activation:
        for key in keys.split():
            if (given := getattr(each, key)) is not None:
                default = float(getattr(ACTIVATIONS[each.name], key))
                new: dict[str, Any] = {key: value(each.name, default, given)}
                each = replace(each, **new)
        return each

    return _rows(map(changed, row) for row in rows)


def dealt(rows: Rows, keys: str, *, restart: bool = False, positional: bool = False) -> Rows:
    """Return activations that take other elements of activation_alpha or activation_beta.

    Args:
        rows: the activations of each direction.
        keys: "alpha", "beta" or both.
        restart: whether each direction begins with the first element.
        positional: whether a function that takes none uses up an element.
    """
    found = [[*row] for row in rows]
    for key in keys.split():
        # Written in full, as a node must.
        queue = [v for row in found for each in row if (v := getattr(each, key)) is not None]
        k = 0
        for row in found:
            k = 0 if restart else k
            for place, each in enumerate(row):
                takes = getattr(each, key) is not None
                if takes:
                    value = queue[k] if k < len(queue) else getattr(ACTIVATIONS[each.name], key)
                    new: dict[str, Any] = {key: value}
                    row[place] = replace(each, **new)
                k += positional or takes
    return _rows(found)


def taking(function: Callable[[Any], Any], change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of a changed argument."""
    return lambda v: function(change(v))


def rolled(values: Array, shifts: Array) -> Array:
    """Roll each sequence of [T, N, K] to later steps by its own shift."""
    T = len(values)
    if not T:
        return values
    index = (np.arange(T)[:, None] - shifts) % T
    return np.asarray(np.take_along_axis(values, index[:, :, None], axis=0))
