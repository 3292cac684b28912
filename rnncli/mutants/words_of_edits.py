"""The words of edits besides NumPy: what a kernel's author would have written as a line or two.

The second half are those of the blocked kernel and of its edits.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.reference import activated as clipping_with
from rnncli.numerics import NumPyArithmetic, dtype_named, round_to
from rnncli.recurrence import cells
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import TokenForm
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import CellOptions, Parameters

    Rows = tuple[tuple[Activation, ...], ...]
    # Letter of the cell -> the activation and the bound of its argument.
    Functions = dict[str, tuple[Activation, float]]

FORWARD, REVERSE = Direction.FORWARD, Direction.REVERSE
MATH = NumPyArithmetic()
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


def token_of(options: CellOptions, x: Any) -> list[Any]:
    """Return q, k, v, the decay and beta of a token; ABSENT if there is none."""
    form = options.attention
    assert form is not None
    q, k, v, decay, beta = options.parts(x)
    return [q, k, v, decay if form.decays else ABSENT, beta if form.has_beta else ABSENT]


NO_TOKEN_FORM = TokenForm()


def in_format(name: str, values: Any) -> Any:
    """Return numbers rounded to an element type."""
    return round_to(values, dtype_named(name)).astype(values.dtype)


def sum_in(name: str, terms: Array) -> Array:
    """Return sums over the last axis of terms that are added in an element type, in order."""
    total = np.zeros(terms.shape[:-1], terms.dtype)
    for k in range(terms.shape[-1]):
        total = in_format(name, total + in_format(name, terms[..., k]))
    return total


def whole(weights: Any, width: int) -> Any:
    """Return weights whose columns beyond the last whole width are zero; ABSENT is ABSENT."""
    if weights is ABSENT:
        return weights
    columns = weights.shape[-1]
    return np.where(np.arange(columns) < columns // width * width, weights, 0)


def stored_transposed(weights: Array) -> Array:
    """Return weights [O, H] as they are read if they are stored as [H, O]."""
    return weights.reshape(weights.shape[::-1]).T


def tabulated(x: Array) -> Array:
    """Return e^x by a straight line between 64 values from -8 to 0."""
    places = np.linspace(-8, 0, 64)
    return np.where(np.isnan(x), x, np.interp(x, places, np.exp(places))).astype(x.dtype)


def finite_or_zero(values: Array) -> Array:
    """Return values with 0 in place of NaN."""
    return np.where(np.isnan(values), values.dtype.type(0), values)


def heads_last(packed: Any, heads: int) -> Any:
    """Return heads that lie side by side in the last axis, of a tensor with all heads of a number.

    Its numbers lie one after the other there.
    """
    of_numbers = packed.reshape(*packed.shape[:-1], packed.shape[-1] // heads, heads)
    return of_numbers.swapaxes(-1, -2).reshape(packed.shape)


def zeroed(values: Any, where: Any) -> Any:
    """Return values with zeros somewhere: `zeroed(W, np.s_[:, 2])`."""
    if values is ABSENT:
        return values
    values = np.array(values)
    values[where] = 0
    return values


def run_on(r: Any) -> Array:
    """Return the windows before each packed sequence, and behind the last: they run on."""
    windows = [r.past_state[0]]
    for steps, end in zip(r.input, r.steps, strict=True):
        whole = np.concatenate([windows[-1], steps[:, :end]], axis=-1)
        windows.append(whole[:, end:])
    return np.stack(windows)


def in_order(order: str, right: str, values: Any) -> Any:
    """Return the blocks of gates as read in another order."""
    return values[:, [order.index(gate) for gate in right]]


def in_default_order(r: Any, values: Any) -> Any:
    """Return the blocks of gates as read in the default order, whatever order the call says."""
    return in_order(r.cell.gates, r.gates or r.cell.gates, values)


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


class Lane(SimpleNamespace):
    """What of a call one direction of the blocked kernel needs."""

    def but(self, **changes: Any) -> Lane:
        """Return a copy with some other values."""
        return Lane(**vars(self) | changes)


def placed(Wb: Any, Rb: Any, options: CellOptions) -> tuple[Any, Any]:
    """Return the bias added to Xt*(W^T) of each gate, and the Rbh that a GRU resets."""
    Wb, Rb = (None if b is ABSENT else b for b in (Wb, Rb))
    bias, Rbh = (ABSENT if b is None else b for b in cells.placed(Wb, Rb, options))
    return bias, Rbh


def functions_of(r: Any, d: int) -> Functions:
    """Return the activations of a direction, each with its bound."""
    letters = zip(r.cell.activations, r.activations[d], strict=True)
    return {letter: (function, r.bound(letter)) for letter, function in letters}


def clipping(function: Activation, bound: float, v: Array) -> Array:
    """Clip an argument and apply an activation."""
    return np.asarray(clipping_with(MATH, function, bound, v))


def parameters(lane: Lane, activated: Any, multiply: Any) -> Parameters:
    """Return the parameters of the cell's equations in a direction."""
    functions = [partial(activated, lane, letter) for letter in lane.functions]
    f, g, h = (functions + functions[:1] * 2)[:3]
    return cells.Parameters(
        R=partial(multiply, lane, "units"),
        f=f,
        g=g,
        h=h,
        blend=MATH.blend,
        P=None if lane.P is ABSENT else lane.P,
        Rbh=0 if lane.Rbh is ABSENT else lane.Rbh,
        options=lane.options,
    )


def opting(p: Parameters, **options: Any) -> Parameters:
    """Return parameters with some other options of the cell."""
    return replace(p, options=p.options._replace(**options))


def spliced(right: Sequence[Array], wrong: Sequence[Array], units: slice) -> list[Array]:
    """Return states [n, H] in which some units are those of others."""
    found = [state.copy() for state in right]
    for state, other in zip(found, wrong, strict=True):
        state[:, units] = other[:, units]
    return found


def unclipped(lane: Lane) -> Functions:
    """Return the activations of a direction without bounds."""
    return {letter: (function, math.inf) for letter, (function, _) in lane.functions.items()}


def with_default_values(lane: Lane) -> Functions:
    """Return the activations of a direction with their default alpha and beta."""
    functions: Functions = lane.functions
    return {letter: (ACTIVATIONS[f.name], bound) for letter, (f, bound) in functions.items()}


def default_functions(lane: Lane) -> Functions:
    """Return the activations of a node that names none."""
    names = zip(lane.functions.items(), lane.cell.defaults, strict=True)
    return {letter: (ACTIVATIONS[name], bound) for (letter, (_, bound)), name in names}


def resetting_before(lane: Lane) -> dict[str, Any]:
    """Return what differs where a GRU resets before the linear transformation."""
    bias, options = lane.bias, lane.options._replace(linear_before_reset=False)
    if lane.Rbh is not ABSENT:
        bias = np.concatenate([bias[:2], bias[2:] + lane.Rbh])
    return {"bias": bias, "Rbh": ABSENT, "options": options}


def aligned(rows: Any, width: int) -> Any:
    """Read rows [g, ...] of numbers that lie close as if each began at a multiple of a width."""
    if rows is ABSENT or not rows.size:
        return rows
    size, flat = rows[0].size, rows.reshape(-1)
    places = np.arange(len(rows))[:, None] * -(-size // width) * width + np.arange(size)
    found = np.where(places < flat.size, flat[np.minimum(places, flat.size - 1)], 0)
    return found.reshape(rows.shape)


def strided(values: Any, strides: Sequence[int]) -> Any:
    """Read an array at other strides, in numbers; what lies behind its end is its start again."""
    if values is ABSENT or not values.size:
        return values
    steps = (np.arange(size) * stride for size, stride in zip(values.shape, strides, strict=True))
    index = sum(np.ix_(*steps))
    return np.asarray(np.ascontiguousarray(values).reshape(-1)[index % values.size])


def of_64_bits(lengths: Array) -> Array:
    """Read lengths of 32 bits as numbers of 64: pairs, of which the second times 2^32 is beyond T.

    Where the second is 0, a number is the first of a pair; any beyond T is the longest.
    """
    if len(set(lengths.tolist())) <= 1:
        return lengths
    low, high = np.resize([*lengths, *np.zeros_like(lengths)], (len(lengths), 2)).T
    return np.asarray(np.where(high > 0, lengths.max(), low))
