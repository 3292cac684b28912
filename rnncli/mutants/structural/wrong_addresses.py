"""Bugs of addresses: narrow counters, strides of the wrong size, layouts guessed from sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.mutant import GATED, LSTM, Variant, initial_states
from rnncli.mutants.structural.bug import (
    StructuralFamily,
    at_most_one,
    beyond,
    equal,
    exactly,
    passing,
    read,
    same_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.mutants.structural.blocked_kernel import BlockedLane, Seam, States
    from rnncli.mutants.structural.bug import Changes, SizeClass
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

Counter: TypeAlias = "type[np.integer[Any]]"
WORD = 1 << 16

counter_bug = StructuralFamily("narrow counters")


def counted(size: int, dtype: Counter) -> int:
    """Return how many iterations a loop with a narrow counter makes."""
    return max(0, int(np.array(size).astype(dtype)))


BYTES = ((np.int8, 127), (np.uint8, 255))


def counters(axis: str, *dtypes: tuple[Counter, int]) -> list[Variant]:
    """Return the counters of an axis, each a dtype and its largest number."""
    return [
        Variant(np.dtype(dtype).name, dtype, seen=beyond(axis)(largest))
        for dtype, largest in dtypes
    ]


@counter_bug(changes="given", each=counters("T", *BYTES, (np.int16, 32767)))
def lengths_in_X(dtype: Counter, right: Seam, name: str, d: int, values: Any) -> Any:
    """Lengths are kept in {}."""
    if name == "lengths":
        values = values.astype(dtype).astype(np.int64).clip(0)
    return right(name, d, values)


@counter_bug(changes="step", each=counters("H", *BYTES))
def units_in_X(dtype: Counter, right: Seam, lane: BlockedLane, x: Array, old: States) -> States:
    """Units are counted in {}."""
    done = np.arange(lane.units) < counted(lane.units, dtype)
    new = right(lane, x, old)
    return tuple(np.where(done, *pair) for pair in zip(new, old, strict=True))


@counter_bug(changes=passing("tiles"), each=counters("N", *BYTES))
def sequences_in_X(dtype: Counter, lane: BlockedLane) -> BlockedLane:
    """Sequences are counted in {}."""
    return replace(lane, order=lane.order[: counted(len(lane.order), dtype)])


@counter_bug(changes=passing("small"), each=counters("I", *BYTES))
def inputs_in_X(dtype: Counter, lane: BlockedLane) -> BlockedLane:
    """Inputs are counted in {}."""
    done = counted(lane.X.shape[-1], dtype)
    return replace(lane, X=lane.X[..., :done], W=lane.W[..., :done])


OFFSETS = tuple(
    Variant(name, name, seen=beyond(sizes)(WORD))
    for name, sizes in (("X", "T*N*I"), ("W", "G*H*I"), ("R", "G*H*H"))
)


@counter_bug(changes=passing("small"), each=OFFSETS)
def offset_of_X_in_uint16(name: str, lane: BlockedLane) -> BlockedLane:
    """{} is read at offsets of 16 bits."""

    def wrapped(values: Array) -> Array:
        return values.reshape(-1)[np.arange(values.size) % WORD].reshape(values.shape)

    return read(lane, (name,), wrapped)


@counter_bug(unless.NO_Y, changes="returned", seen=beyond("T*D*N*H")(WORD))
def offset_of_y_in_uint16(right: Seam, recurrence: Recurrence, Y: Array, last: States) -> Any:
    """Y is written at offsets of 16 bits."""
    flat, found = Y.reshape(-1), np.zeros(Y.size, Y.dtype)
    for start in range(0, Y.size, WORD):
        part = flat[start : start + WORD]
        found[: len(part)] = part
    return right(recurrence, found.reshape(Y.shape), last)


stride_bug = StructuralFamily("strides")


def strided(values: Array, strides: Sequence[int]) -> Array:
    """Read an array at other strides, in numbers; what lies behind its end is its start again."""
    if not values.size:
        return values
    index: Any = np.zeros((), np.int64)
    for axis, (size, stride) in enumerate(zip(values.shape, strides, strict=True)):
        steps = np.arange(size) * stride
        index = index + steps.reshape(-1, *[1] * (values.ndim - 1 - axis))
    return np.asarray(np.ascontiguousarray(values).reshape(-1)[index % values.size])


def reading(name: str) -> Callable[[Callable[[BlockedLane], Sequence[int]]], Changes]:
    """Return the change that reads an array of a direction at other strides."""

    def changes(strides: Callable[[BlockedLane], Sequence[int]]) -> Changes:
        def other(lane: BlockedLane) -> BlockedLane:
            return read(lane, (name,), lambda values: strided(values, strides(lane)))

        return passing("small")(other)

    return changes


def _I(lane: BlockedLane) -> int:
    return int(lane.X.shape[-1])


@stride_bug(same_size("I", "H"), changes=reading("X"))
def stride_x_rows_of_h(lane: BlockedLane) -> Sequence[int]:
    """Rows of X are taken to be H long."""
    return (lane.X.shape[1] * lane.units, lane.units, 1)


@stride_bug(same_size("T", "N"), unless.ONE_STEP, changes=reading("X"))
def stride_x_steps_of_t_rows(lane: BlockedLane) -> Sequence[int]:
    """Steps of X are taken to hold T rows."""
    return (len(lane.X) * _I(lane), _I(lane), 1)


@stride_bug(same_size("I", "H"), at_most_one("H"), changes=reading("W"))
def stride_w_rows_of_h(lane: BlockedLane) -> Sequence[int]:
    """Rows of W are taken to be H long."""
    return (lane.units * _I(lane), lane.units, 1)


@stride_bug(same_size("I", "H"), changes=reading("W"), of=GATED)
def stride_w_gates_of_h_by_h(lane: BlockedLane) -> Sequence[int]:
    """Gates of W are taken to be H by H."""
    return (lane.units * lane.units, _I(lane), 1)


@stride_bug(same_size("I", "H"), at_most_one("H"), changes=reading("R"))
def stride_r_rows_of_i(lane: BlockedLane) -> Sequence[int]:
    """Rows of R are taken to be I long."""
    return (lane.units * lane.units, _I(lane), 1)


@stride_bug(same_size("I", "H"), changes=reading("R"), of=GATED)
def stride_r_gates_of_h_by_i(lane: BlockedLane) -> Sequence[int]:
    """Gates of R are taken to be H by I."""
    return (lane.units * _I(lane), lane.units, 1)


@stride_bug(same_size("I", "H"), unless.NO_BIAS, changes=reading("bias"), of=GATED)
def stride_bias_gates_of_i(lane: BlockedLane) -> Sequence[int]:
    """Gates of the biases are taken to be I long."""
    return (_I(lane), 1, 1)


@stride_bug(same_size("I", "H"), unless.ONE_SEQUENCE, unless.NO_INITIAL, changes=passing("small"))
def stride_initial_rows_of_i(lane: BlockedLane) -> BlockedLane:
    """Rows of the initial states are taken to be I long."""
    states = (strided(state, (_I(lane), 1)) for state in lane.initial)
    return replace(lane, initial=tuple(states))


@stride_bug(unless.ONE_DIRECTION, unless.ONE_STEP, unless.NO_Y, changes="returned")
def stride_y_steps_of_one_direction(
    right: Seam, recurrence: Recurrence, Y: Array, last: States
) -> Any:
    """Steps of Y are taken to hold one direction."""
    found = np.zeros((Y.shape[0] * Y.shape[1], *Y.shape[2:]), Y.dtype)
    for t, d in np.ndindex(*Y.shape[:2]):
        found[t + d] = Y[t, d]
    return right(recurrence, found.reshape(Y.shape), last)


@stride_bug(unless.NOT_RAGGED, changes="given")
def stride_lengths_of_64_bits(right: Seam, name: str, d: int, values: Any) -> Any:
    """Lengths of 32 bits are read as numbers of 64."""
    if name != "lengths" or len(set(values.tolist())) <= 1:
        return right(name, d, values)
    # Each number is a pair of lengths, the second times 2^32: beyond any T, or the first.
    low, high = np.resize([*values, *np.zeros_like(values)], (len(values), 2)).T
    return right(name, d, np.where(high > 0, values.max(), low))


@stride_bug(unless.ONE_DIRECTION, unless.ONE_SEQUENCE, unless.NO_INITIAL, changes="prepared")
def stride_initial_directions_of_one_row(right: Seam, r: Recurrence, d: int, *rest: Any) -> Any:
    """Directions of the initial states are taken to hold one row."""
    H = r.W.shape[-2]
    states = (None if s is None else strided(s, (H, H, 1)) for s in r.initial)
    return right(replace(r, initial=tuple(states)), d, *rest)


guess_bug = StructuralFamily("equal sizes")


def guessing(size: SizeClass) -> Callable[[Callable[[Recurrence], Recurrence]], Changes]:
    """Return the change that takes a recurrence for another at some sizes."""

    def changes(other: Callable[[Recurrence], Recurrence]) -> Changes:
        return passing("run")(lambda r: other(r) if size.reached(r) else r)

    return changes


I_IS_H, T_IS_N, N_IS_D, N_IS_H = equal("I", "H"), equal("T", "N"), equal("N", "D"), equal("N", "H")
H_IS_3 = exactly("H", 3)


@guess_bug(changes=guessing(I_IS_H), seen=I_IS_H)
def equal_sizes_w_transposed(r: Recurrence) -> Recurrence:
    """W [H, I] is told from its transpose by its shape."""
    return replace(r, W=r.W.swapaxes(2, 3))


@guess_bug(changes=guessing(T_IS_N), seen=T_IS_N)
def equal_sizes_x_batch_first(r: Recurrence) -> Recurrence:
    """The layout of X is told from its shape."""
    return replace(r, X=r.X.swapaxes(0, 1))


@guess_bug(unless.NO_INITIAL, changes=guessing(N_IS_D), seen=N_IS_D)
def equal_sizes_initial_states_by_sequence(r: Recurrence) -> Recurrence:
    """The layout of initial states is told from their shape."""
    return initial_states(lambda state: state.swapaxes(0, 1))(r)


@guess_bug(unless.NO_Y, changes="returned", seen=N_IS_D)
def equal_sizes_y_by_sequence(right: Seam, r: Recurrence, Y: Array, last: States) -> Any:
    """The layout of Y is told from its shape."""
    return right(r, Y.swapaxes(1, 2).copy() if N_IS_D.reached(r) else Y, last)


@guess_bug(unless.NO_INITIAL, changes=guessing(N_IS_H), seen=N_IS_H)
def equal_sizes_initial_states_transposed(r: Recurrence) -> Recurrence:
    """Initial states [N, H] are told from their transpose by their shape."""
    return initial_states(lambda state: state.swapaxes(1, 2))(r)


@guess_bug(unless.NO_PEEPHOLES, changes=guessing(H_IS_3), of=LSTM, seen=H_IS_3)
def equal_sizes_peepholes_transposed(r: Recurrence) -> Recurrence:
    """Peepholes [3, H] are told from their transpose by their shape."""
    return r if r.P is None else replace(r, P=r.P.swapaxes(1, 2))
