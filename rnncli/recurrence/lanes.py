"""Lanes: single directions of recurrences, in processing order, with every contested rule applied.

Code that walks over lanes need not know about reverse directions, ragged batches, padding, length 0
or the scope of clip. This module implements those rules, also for kernels that do not use lanes. A
stack of alike recurrences simply yields more lanes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.numerics import Array, DType
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import Cell, CellOptions
    from rnncli.recurrence.quantisation import Quantiser
    from rnncli.recurrence.recurrence import Recurrence

Values = TypeVar("Values", bound="Array | None")


# Never modified. Not frozen, for the same reason as `Recurrence`.
@dataclass(slots=True, eq=False)
class Lanes:
    """L lanes of T steps, N sequences, I inputs, H units, G gates; in the tensors' own dtype."""

    cell: Cell  # its equations
    X: Array  # inputs [L, T, N, I], in processing order; padding comes last and is zero
    # mask of the steps that are not padding [L, T, N]; None if there is no padding
    live: Array | None
    W: Array  # input weights [G, L, H, I]
    R: Array  # recurrent weights [G, L, H, H]
    Wb: Array | None  # input bias [G, L, 1, H], or None
    Rb: Array | None  # recurrent bias [G, L, 1, H], or None
    P: Array | None  # peephole weights [3, L, 1, H], gates i, o, f, or None
    initial: tuple[Array, ...]  # the initial states, each [L, N, H], or of other `widths`
    # letter of the cell -> the activation and the bound of its argument (infinity if unbounded)
    activations: dict[str, tuple[Activation, float]]
    options: CellOptions  # the lines of the cell's equations that hold
    dtype: DType  # the dtype of the tensors
    states_dtype: DType  # that of the states but the first
    # how products take states, if those are quantised; X is quantised already
    quantiser: Quantiser | None = None
    # projection weights, and their bias in a last column [1, L, O, H + 1]; or None
    projection: Array | None = None


def lanes_of(recurrence: Recurrence) -> Lanes:
    """Return the lanes of directions with the same activations.

    Args:
        recurrence: a recurrence or a stack of them, whose arrays have one more leading axis.
    """
    r, L, live = recurrence, math.prod(recurrence.W.shape[:-3]), None
    taken = r.X if r.quantiser is None else r.quantiser.inputs(r.X, r.lengths).values
    X = in_lanes(r, taken).reshape(L, *r.X.shape[-3:])
    if r.lengths is not None:
        valid = np.expand_dims(_valid(r), -3)
        live = np.repeat(valid, len(r.directions), -3).reshape(L, *valid.shape[-2:])
    return lanes_with(r, X, live)


def lanes_with(recurrence: Recurrence, X: Array, live: Array | None = None) -> Lanes:
    """Return the lanes of directions with the same activations, with inputs [L, T, N, I]."""
    r = recurrence
    L, _, N, _ = X.shape
    return Lanes(
        cell=r.cell,
        X=X,
        live=live,
        W=gates_first(r.W),
        R=gates_first(r.R),
        Wb=per_gate(r.Wb),
        Rb=per_gate(r.Rb),
        P=per_gate(r.P),
        initial=tuple(
            np.zeros((L, N, *own), r.dtype.numpy) if state is None else state.reshape(L, N, *own)
            for own, state in zip(r.widths, r.initial, strict=True)
        ),
        activations={
            letter: (activation, r.bound(letter))
            for letter, activation in zip(r.cell.activations, r.activations[0], strict=True)
        },
        options=r.options,
        quantiser=r.quantiser,
        dtype=r.dtype,
        states_dtype=r.dtypes[-1],
        projection=None if r.projection is None else gates_first(r.projection[..., None, :, :]),
    )


def gates_first(weights: Array) -> Array:
    """Return weights [..., D, G, H, K] as [G, L, H, K]."""
    L = math.prod(weights.shape[:-3])
    return weights.reshape(L, *weights.shape[-3:]).swapaxes(0, 1)


def per_gate(values: Array | None) -> Array | None:
    """Return rows per gate [..., D, G, H] as [G, L, 1, H]."""
    return None if values is None else gates_first(values[..., None, :])


def in_lanes(recurrence: Recurrence, X: Array) -> Array:
    """Return values of inputs [..., T, N, I] in processing order, [..., D, T, N, I].

    Padding becomes zero.
    """
    r, front = recurrence, recurrence.X.ndim - 3
    if r.lengths is not None:
        X = np.where(_valid(r)[..., None], X, X.dtype.type(0))
    if all(direction is Direction.FORWARD for direction in r.directions):
        return np.repeat(np.expand_dims(X, front), len(r.directions), front)
    turned = [in_order(X, r.lengths, direction, front) for direction in r.directions]
    return np.stack(turned, axis=front)


def _valid(recurrence: Recurrence) -> Array:
    """Return the mask of steps that are not padding [..., T, N]; it is the same in both orders."""
    T = recurrence.X.shape[-3]
    lengths = recurrence.lengths
    assert lengths is not None
    return np.asarray(np.arange(T)[:, None] < lengths[..., None, :])


def in_order(values: Array, lengths: Array | None, direction: Direction, front: int = 0) -> Array:
    """Bring steps [..., T, N, ...] into processing order, padding last; its own inverse.

    Args:
        values: one entry per step.
        lengths: valid steps [..., N]; None means T.
        direction: the direction of processing.
        front: the number of axes before T.
    """
    if direction is Direction.FORWARD:
        return values
    if lengths is None:
        return np.flip(values, front)
    ends = lengths[..., None, :]
    steps = np.arange(values.shape[front])[:, None]
    turned = np.where(steps < ends, ends - 1 - steps, steps)
    index = turned.reshape(*turned.shape, *[1] * (values.ndim - turned.ndim))
    return np.take_along_axis(values, index, front)


class LongestFirst(NamedTuple):
    """An order of sequences in which the live ones come first."""

    # indices of the sequences, longest first; None if they already are in that order
    order: Array | None
    active: list[int]  # the number of live sequences at each time [T]

    @classmethod
    def of(cls, recurrence: Recurrence) -> LongestFirst:
        """Sort by length, stably."""
        T, N, _ = recurrence.X.shape
        lengths = recurrence.lengths
        if lengths is None:
            return cls(None, [N] * T)
        ended = np.bincount(lengths, minlength=T + 1)
        active = N - np.cumsum(ended)[:T]
        ordered = bool(np.all(lengths[:-1] >= lengths[1:]))
        return cls(None if ordered else np.argsort(-lengths, kind="stable"), active.tolist())

    def rows(self, count: int) -> Array | slice:
        """Return an index that selects the first `count` sequences in this order."""
        return slice(count) if self.order is None else self.order[:count]


def empty_outputs(recurrence: Recurrence) -> Result:
    """Return uninitialised outputs in the recurrence's dtype; those of a stack have a leading axis.

    If some sequences end early, Y starts as zero, the value of padding.
    """
    r, D = recurrence, recurrence.W.shape[-4]
    *front, T, N, _ = r.X.shape
    fresh = np.empty if r.lengths is None else np.zeros
    Y = fresh((*front, T, D, N, *r.widths[0]), r.dtype.numpy) if r.wants_Y else None
    states = zip(r.widths, r.dtypes, strict=True)
    return Result(Y, tuple([np.empty((*front, D, N, *own), dtype.numpy) for own, dtype in states]))


def assemble(
    recurrence: Recurrence, Y: Array | None, last: Sequence[Array], places: Result
) -> None:
    """Write the results of lanes to the recurrence's outputs.

    Args:
        recurrence: the recurrence of the lanes.
        Y: H after every step in processing order [L, T, N, H]; None if not requested.
        last: the states after the last valid step, each [L, N, H].
        places: the outputs: Y [..., T, D, N, H], 0 in padding, and the last states [..., D, N, H],
            with length 0 treated as the reading zero-length says.
    """
    if Y is not None and places.Y is not None:
        place_in_time(recurrence, Y, places.Y)
    for place, state in zip(places.last, last, strict=True):
        place[...] = state.reshape(place.shape)
    clear_unstarted(recurrence, places.last)


def place_in_time(recurrence: Recurrence, steps: Array, place: Array) -> None:
    """Write a value of every step [L, T, N, H], in processing order, to [..., T, D, N, H].

    Padding becomes 0.
    """
    r, front, D = recurrence, recurrence.X.shape[:-3], len(recurrence.directions)
    of_directions = steps.reshape(*front, D, *steps.shape[1:])
    for d, direction in enumerate(r.directions):
        own = in_order(of_directions[..., d, :, :, :], r.lengths, direction, len(front))
        place[..., d, :, :] = own
    if r.lengths is not None:
        place.swapaxes(-3, -2)[~_valid(r)] = 0


def clear_unstarted(recurrence: Recurrence, last: Sequence[Array]) -> None:
    """Zero the last states of length 0, unless the reading zero-length keeps the initial ones.

    Args:
        recurrence: the recurrence of the states.
        last: the last states [..., D, N, H], equal to the initial ones if no step was taken.
    """
    lengths, T = recurrence.lengths, recurrence.X.shape[-3]
    all_started = T if lengths is None else np.count_nonzero(lengths) == lengths.size
    if recurrence.keep_initial or all_started:
        return
    if not recurrence.cell.projects:  # the states of such cells stay as they are
        return
    unstarted = True if lengths is None else (lengths == 0)[..., None, :, None]
    for state in last:
        np.copyto(state, 0, where=unstarted)


def after_last_step(states: Array, lengths: Array | None) -> Array:
    """Return the states [..., D, N, H] after the last valid step of each sequence.

    Args:
        states: before and after every step [..., D, T + 1, N, H], in processing order.
        lengths: valid steps [..., N]; None means T.
    """
    if lengths is None:
        return states[..., -1, :, :]
    return np.take_along_axis(states, lengths[..., None, None, :, None], -3)[..., 0, :, :]


def alike(recurrence: Recurrence) -> Iterator[slice]:
    """Yield all directions as one slice if their activations are equal, else one slice each."""
    rows, D = recurrence.activations, len(recurrence.directions)
    if all(row == rows[0] for row in rows):
        yield slice(0, D)
    else:
        yield from (slice(d, d + 1) for d in range(D))


def of_directions(recurrence: Recurrence, part: slice) -> Recurrence:
    """Return a recurrence restricted to some directions."""
    if part == slice(0, len(recurrence.directions)):
        return recurrence
    return replace(
        recurrence,
        W=recurrence.W[..., part, :, :, :],
        R=recurrence.R[..., part, :, :, :],
        Wb=part_of(recurrence.Wb, part),
        Rb=part_of(recurrence.Rb, part),
        P=part_of(recurrence.P, part),
        projection=part_of(recurrence.projection, part),
        initial=tuple(part_of(state, part) for state in recurrence.initial),
        directions=recurrence.directions[part],
        activations=recurrence.activations[part],
    )


def part_of(values: Values, part: slice, within: int = 2) -> Values:
    """Return values [..., D, any, any] restricted to some directions.

    There are two axes within a direction, or as many as are given.
    """
    index: Any = (..., part, *[slice(None)] * within)
    return values if values is None else values[index]
