"""The integer LSTM as one compiled loop, every bit of it that of `recurrence.integers`.

Functions of 16-bit arguments are tables of all their values, which `IntegerKernel` makes; products
and sums are here. Where a sum leaves int32, which no table can know, NumPy evaluates the node again
and refuses it, or wraps.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types

from rnncli.backends.compiled.compiling import compiled, kernel, sources
from rnncli.backends.compiled.kernel_plan import tensors
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.errors import Unsupported
from rnncli.limits import check_clock
from rnncli.numerics import FLOAT64
from rnncli.recurrence.integers import GATE_BITS, INT16, IntegerKernel
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.numerics import Array
    from rnncli.recurrence.integers import IntegerForm
    from rnncli.recurrence.recurrence import Recurrence

OPTIONS = {"IntegerLSTM": frozenset({"integers"})}
EVERY = np.arange(INT16.min, INT16.max + 1)
# Multiplications between two looks at the clock: some tenths of a second.
BLOCK = 1 << 28


class Program(NamedTuple):
    """What an IntegerForm says, in numbers that the kernel reads."""

    functions: Array  # sigmoid, tanh, and tanh of cell states, for each of EVERY [3, 65536]
    factors: Array  # value and shift of gates' inputs and hidden states, f C, i g and o c [11, 2]
    is_wide: int  # whether inputs have 16 bits, and sums of products 48
    is_single: int  # whether a product with a factor is rounded once
    saturates_terms: int  # whether both terms of a gate are saturated before they are added
    saturates_written: int  # likewise, of a cell state
    right: int  # bits by which i g is shifted instead of multiplied, as f C by 15; -1: none
    low: int  # bounds of cell states
    high: int
    read: int  # zero point of hidden states that are read
    made: int  # that of hidden states that are made
    bits: int  # of these


@lru_cache(maxsize=16)
def program_of(form: IntegerForm) -> Program:
    """Return the program of a form.

    Raises:
        Unsupported: the readings give no result for these scales, or not for every argument.
    """
    one = np.zeros((4, 1, 1, 1))
    arithmetic, of, bound = IntegerKernel(form, one, one, None), form.multipliers, form.bound
    functions = (arithmetic.sigmoid, arithmetic.tanh, arithmetic.tanh_of_cell)
    factors = (*of.inputs, *of.hidden, of.forgotten, of.written, of.output)
    is_shifted = form.reads("cell-products") == "shift"
    return Program(
        functions=np.array([np.asarray(each(EVERY), np.int64) for each in functions]),
        factors=np.array(factors, np.int64),
        is_wide=int(form.bits == 16),
        is_single=int(form.reads("rounding") == "single"),
        saturates_terms=int(form.reads("gate-sum") == "both-terms"),
        saturates_written=int(form.reads("cell-sum") == "both-terms"),
        right=2 * GATE_BITS + form.exponent if is_shifted else -1,
        low=INT16.min if bound is None else -bound,
        high=INT16.max if bound is None else bound,
        read=form.hidden.zero_point,
        made=form.made.zero_point,
        bits=form.bits,
    )


@compiled
def clamped(x: int, bits: int) -> int:
    """Return a number clamped to a signed integer of as many bits."""
    top = 1 << (bits - 1)
    return max(-top, min(top - 1, x))


@compiled
def leaves(x: int, bits: int) -> bool:
    """Return whether a number needs more bits than these and a sign."""
    return x >= 1 << bits or x < -(1 << bits)


@compiled
def half_up(x: int, bits: int) -> int:
    """Return x / 2^bits, rounded half up."""
    return (x + (1 << (bits - 1))) >> bits if bits > 0 else x << -bits


@compiled
def half_away(x: int, bits: int) -> int:
    """Return x / 2^bits, rounded half away from 0."""
    mask = (1 << bits) - 1
    return (x >> bits) + int((x & mask) > (mask >> 1) + int(x < 0))


@compiled
def wrapped(x: int) -> Any:
    """Return what is left of a number in 16 bits."""
    return np.int64(np.int16(x))


@compiled
def times(x: int, factor: Any, is_single: int, undefined: Any) -> int:
    """Return an int32 value times a factor, as `Multiplier.times`; note what leaves int32."""
    value, shift = factor[0], factor[1]
    if shift > 30 or leaves(x, 31):
        undefined[0] = 1
        return 0
    if is_single:
        return half_up(x * value, 31 - shift)
    wide = x << max(shift, 0)
    if leaves(wide, 31):
        undefined[0] = 1
        return 0
    return half_away(half_up(wide * value, 31), max(-shift, 0))


@compiled
def times_wide(x: int, factor: Any, undefined: Any) -> int:
    """Return a value of up to 47 bits times a factor, as `Multiplier.times_wide`."""
    value, shift = factor[0], factor[1]
    narrow = (value + (1 << 15)) >> 16 if value < 0x7FFF0000 else 0x7FFF
    if shift > 7 or leaves(x, 47):
        undefined[0] = 1
        return 0
    made = half_up(x * narrow, 15 - shift)
    if leaves(made, 31):
        undefined[0] = 1
    return made


NUMBERS = types.NamedTuple(
    [*tensors("int64", 2, 2), *[types.int64] * (len(Program._fields) - 2)], Program
)


@cache
def integer_kernel() -> Callable[..., None]:
    """Compile or load the kernel.

    It takes a Program; X [T, N, I] without its zero point, W [G, H, I], R [G, H, H] and biases
    [G, H], gates i, f, c, o; hidden and cell states [N, H], which it advances; Y [T, N, H]; room
    for hidden states [H]; and an array of one number, which becomes 1 where C leaves the result
    open.
    """
    stamp = sources()
    given, made = tensors("int32", 3, 3, 3), [types.Array(types.int64, n, "C") for n in (2, 2, 3)]
    rest = [types.Array(types.int64, 1, "C")] * 2

    @kernel("integer lstm", NUMBERS, *given, *tensors("int64", 2), *made, *rest)
    def advance(
        p: Program,
        X: Any,
        W: Any,
        R: Any,
        bias: Any,
        h: Any,
        c: Any,
        Y: Any,
        room: Any,
        undefined: Any,
    ) -> None:
        stamp  # noqa: B018 -- part of the key of cached code
        T, N, I = X.shape  # noqa: E741 -- the specification's letter
        H, middle = h.shape[1], 1 << 15
        gates = np.empty(4, np.int64)
        for t in range(T):
            for n in range(N):
                for unit in range(H):
                    for g in range(4):
                        of_input, of_hidden = bias[g, unit], 0
                        for k in range(I):
                            of_input += np.int64(X[t, n, k]) * W[g, unit, k]
                        for k in range(H):
                            of_hidden += (h[n, k] - p.read) * R[g, unit, k]
                        if p.is_wide:
                            one = times_wide(of_input, p.factors[g], undefined)
                            other = times_wide(of_hidden, p.factors[4 + g], undefined)
                        else:
                            one = times(of_input, p.factors[g], p.is_single, undefined)
                            other = times(of_hidden, p.factors[4 + g], p.is_single, undefined)
                        if p.saturates_terms:
                            other = clamped(other, 16)
                        total = clamped(clamped(one, 16) + other, 16)
                        gates[g] = p.functions[1 if g == 2 else 0, total + middle]
                    i, f, g_, o = gates[0], gates[1], gates[2], gates[3]
                    if p.right >= 0:
                        kept = half_away(f * c[n, unit], 15)
                        added = wrapped(half_away(i * g_, p.right))
                    else:
                        kept = times(f * c[n, unit], p.factors[8], p.is_single, undefined)
                        added = times(i * g_, p.factors[9], p.is_single, undefined)
                    if p.saturates_written:
                        added = clamped(added, 16)
                    new = clamped(clamped(kept, 16) + added, 16)
                    new = max(p.low, min(p.high, new))
                    c[n, unit] = new
                    read = o * p.functions[2, new + middle]
                    out = times(read, p.factors[10], p.is_single, undefined) + p.made
                    room[unit] = clamped(out, p.bits)
                h[n] = room
                Y[t, n] = room

    return advance


def run(recurrence: Recurrence) -> Result:
    """Evaluate an integer LSTM."""
    r, form = recurrence, recurrence.options.integers
    assert form is not None
    T, N, _ = r.X.shape
    _, G, H, I = r.W.shape  # noqa: E741 -- the specification's letter
    try:
        program = program_of(form)
    except Unsupported:
        return evaluate(r, NumPyEngine(FLOAT64))
    W, R = (np.ascontiguousarray(weights[0], np.int32) for weights in (r.W, r.R))
    bias = np.zeros((G, H), np.int64) if r.Wb is None else np.ascontiguousarray(r.Wb[0], np.int64)
    h, c = (
        np.zeros((N, H), np.int64) if state is None else np.array(state[0], np.int64, order="C")
        for state in r.initial
    )
    Y, room, undefined = np.empty((T, N, H), np.int64), np.empty(H, np.int64), np.zeros(1, np.int64)
    steps = max(1, BLOCK // max(1, N * G * H * (I + H)))
    for start in range(0, T, steps):
        check_clock()
        block = slice(start, start + steps)
        X = np.ascontiguousarray(r.X[block], np.int32)
        integer_kernel()(program, X, W, R, bias, h, c, Y[block], room, undefined)
        if undefined[0]:
            return evaluate(r, NumPyEngine(FLOAT64))
    of_h, of_c = (dtype.numpy for dtype in r.dtypes)
    steps_made = Y.astype(of_h)[:, None] if r.wants_Y else None
    return Result(steps_made, (h.astype(of_h)[None], c.astype(of_c)[None]))
