"""The words of the integer LSTM's kernel and of its edits: fixed-point products, tables, stores.

Where a right kernel refuses what leaves int32, these wrap, as kernels do that do not look.
"""

from __future__ import annotations

import math
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.words_of_edits import zeroed
from rnncli.recurrence.integers import (
    ARGUMENT_BITS,
    Multiplier,
    gemmlowp_sigmoid,
    gemmlowp_tanh,
    rounded_shift,
    saturated,
    shifted,
    sigmoid_table,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.numerics import Array

__all__ = (
    "SimpleNamespace",
    "np",
    "rounded_shift",
    "saturated",
    "toward_zero",
    "wrapped",
    "zeroed",
)

NUMBERS = {"float64": np.float64, "float32": np.float32}


def scaled(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier, rounded twice: its high half, and its shift to the right."""
    return m.times(wrapped(x, 32), wraps=True)


def scaled_once(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier, rounded once, half up."""
    return m.times(wrapped(x, 32), is_single=True)


def scaled_wide(x: Array, m: Multiplier) -> Array:
    """Return x times the upper 16 bits of a multiplier, rounded once, half up."""
    return m.times_wide(x, wraps=True)


def floored(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier, shifted to the right without rounding."""
    return wrapped(x, 32) * m.value >> max(31 - m.shift, 0)


def high_floored(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier: the high half is cut off, and the shift rounds."""
    left, right = max(m.shift, 0), max(-m.shift, 0)
    return rounded_shift(wrapped(wrapped(x, 32) << left, 32) * m.value >> 31, right)


def shift_floored(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier: the high half is rounded, and the shift cuts off."""
    left, right = max(m.shift, 0), max(-m.shift, 0)
    return shifted(wrapped(wrapped(x, 32) << left, 32) * m.value, 31) >> right


def shift_half_up(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier: halves of the shift go up, those of negative numbers as well."""
    left, right = max(m.shift, 0), max(-m.shift, 0)
    return shifted(shifted(wrapped(wrapped(x, 32) << left, 32) * m.value, 31), right)


def toward_zero(x: Array, bits: int) -> Array:
    """Return x / 2^bits, rounded toward 0."""
    return np.where(x >= 0, x >> bits, -(-x >> bits))


def scaled_toward_zero(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier, rounded toward 0."""
    return toward_zero(wrapped(x, 32) * m.value, max(31 - m.shift, 0))


def scaled_from_16_bits(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier of which 16 bits are left, without rounding them."""
    return scaled(x, Multiplier(m.value >> 16 << 16, m.shift))


def scaled_to_the_right_only(x: Array, m: Multiplier) -> Array:
    """Return x times a multiplier whose shift to the left is left out."""
    return scaled(x, Multiplier(m.value, min(m.shift, 0)))


def multiplier_cut_off(factor: float) -> Multiplier:
    """Return a multiplier whose 31 bits are cut off instead of rounded."""
    fraction, shift = np.frexp(float(factor))
    return Multiplier(int(np.floor(fraction * 2.0**31)), int(shift)) if shift >= -31 else _NOTHING


def multiplier_not_carried(factor: float) -> Multiplier:
    """Return a multiplier that is 2^31 - 1 where rounding gives 2^31."""
    fraction, shift = np.frexp(float(factor))
    value = min(int(np.floor(fraction * 2.0**31 + 0.5)), (1 << 31) - 1)
    return Multiplier(value, int(shift)) if shift >= -31 else _NOTHING


def multiplier_wrapped(factor: float) -> Multiplier:
    """Return a multiplier that is -2^31 where rounding gives 2^31."""
    fraction, shift = np.frexp(float(factor))
    value = int(np.floor(fraction * 2.0**31 + 0.5))
    value -= (value >> 31) << 32
    return Multiplier(value, int(shift)) if shift >= -31 else _NOTHING


_NOTHING = Multiplier(0, 0)


def of_table(
    x: Array,
    exponent: int = -ARGUMENT_BITS,
    *,
    is_tanh: bool = False,
    is_corrected: bool = True,
    last: int = 255,
    interpolates: bool = True,
    rounds: bool = True,
    rounds_argument: bool = True,
    mirrors: int = 1,
) -> Array:
    """Return sigmoid or tanh of x * 2^exponent, with 15 bits of fraction, of a table of sigmoids.

    Args:
        x: the arguments.
        exponent: of their unit.
        is_tanh: which function it is.
        is_corrected: whether 44 numbers of the table are one more than rounding gives.
        last: the place from which on a function has reached its bound.
        interpolates: whether numbers between two of the table are on a straight line.
        rounds: whether the result is rounded, not cut off.
        rounds_argument: whether that is so of arguments that are shifted to the right.
        mirrors: what is taken off of numbers on the other side.
    """
    base, slope = _lines_of(last, is_tanh=is_tanh, is_corrected=is_corrected)
    shift, fraction = exponent + ARGUMENT_BITS, 8 if is_tanh else 9
    v = wrapped(3 * x << max(shift, 0), 32)
    if shift < 0:
        v = (v + ((1 << (-shift - 1)) if rounds_argument else 0)) >> -shift
    a = np.abs(v)
    k = np.minimum(a >> fraction, len(base) - 1)
    found = base[k] << fraction
    if interpolates:
        found += (a & ((1 << fraction) - 1)) * slope[k]
    half = (128 if is_tanh else 512) * rounds
    if is_tanh:
        found = found - (1 << 23)
        return np.asarray(np.where(v >= 0, found + half, -found + half - mirrors) >> 8)
    return np.asarray(np.where(v >= 0, found + half, (1 << 25) - found + half - mirrors) >> 10)


def functions(**settings: Any) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """Return sigmoid and tanh of a table, of which something is otherwise."""
    return partial(of_table, **settings), partial(of_table, is_tanh=True, **settings)


@cache
def _lines_of(last: int, *, is_tanh: bool, is_corrected: bool) -> tuple[Array, Array]:
    """Return the starts and slopes of the lines of a table, the last of which is a bound."""
    exact = np.array([round(65536 / (1 + math.exp(-n / 24))) for n in range(256)], np.int64)
    table = sigmoid_table() if is_corrected else exact
    starts = np.array([*table[:last], 0xFFFF if is_tanh else 0x7FFF << 1])
    slopes = np.append(np.diff(table[: last + 1]), 0)
    return starts, np.append(slopes, 0) if last > 255 else slopes


def float_functions() -> tuple[Callable[..., Array], Callable[..., Array]]:
    """Return sigmoid and tanh with 15 bits of fraction, computed in floating point."""

    def rounded(x: Array) -> Array:
        return saturated(np.rint(x * 2.0**15).astype(np.int64))

    def tanh(x: Array, exponent: int = -ARGUMENT_BITS) -> Array:
        return rounded(np.tanh(x * 2.0**exponent))

    return (lambda x: rounded(1 / (1 + np.exp(-x * 2.0**-ARGUMENT_BITS)))), tanh


def hard_sigmoid(x: Array) -> Array:
    """Return max(0, min(1, x / 4 + 1 / 2)) with 15 bits of fraction."""
    return np.asarray(np.clip(2 * x + (1 << 14), 0, (1 << 15) - 1))


FUNCTIONS = {
    "table": functions(),
    "gemmlowp": (
        gemmlowp_sigmoid,
        lambda x, exponent=-ARGUMENT_BITS: gemmlowp_tanh(x, 15 + exponent),
    ),
}
# How often products are rounded -> how multipliers are made, and what multiplies by one.
FIXED_POINT = {
    "double": (Multiplier.of, scaled),
    "single": (partial(Multiplier.of, is_single=True), scaled_once),
}
