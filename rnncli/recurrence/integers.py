"""The integer LSTM of TFLite: its equations, fixed-point products, and tables of functions.

https://github.com/tensorflow/tflite-micro/blob/main/tensorflow/lite/micro/kernels/lstm_eval.cc
https://github.com/google-ai-edge/LiteRT/blob/main/tflite/kernels/lstm_eval.cc
https://github.com/ARM-software/CMSIS-NN/blob/main/Source/LSTMFunctions

No text specifies it. Three implementations do, each by its code, and where they disagree, a reading
says which is meant. Sums of products are integers; a product of scales becomes a fixed-point
multiplier m and a shift e, which stand for m * 2^(e - 31); pre-activations have 12 bits of fraction
and gates 15. What leaves int32 on the way is undefined there, and refused here.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.numerics import Array

INT16 = np.iinfo(np.int16)
GATE_BITS = 15  # of fraction, of gates and of tanh
ARGUMENT_BITS = 12  # likewise, of pre-activations
MOST_BITS = 47  # of a sum of products with int16 activations
# The exponents of the scale of the cell state for which gemmlowp's tanh has integer bits.
GEMMLOWP_EXPONENTS = range(-15, -8)


class Scaled(NamedTuple):
    """How integers stand for real numbers: scale * (n - zero_point)."""

    scale: float
    zero_point: int = 0


class IntegerForm(NamedTuple):
    """The scales of an integer LSTM, and how contested points are read.

    Scales are float32 values; those of weights are of the gates i, f, c, o.
    """

    bits: int  # of inputs and hidden states: 8 or 16
    inputs: Scaled
    hidden: Scaled  # the hidden state, which is the output
    # what o and tanh(C) make, before it becomes a hidden state: the intermediate tensor 4
    product: Scaled
    cell_scale: float
    input_scales: tuple[float, ...]
    recurrent_scales: tuple[float, ...]
    clip: float  # of the cell state; 0: none
    readings: tuple[tuple[str, str], ...]  # (name, choice), without presets
    wraps: bool = False  # whether what leaves int32 wraps; it is refused otherwise

    def reads(self, name: str) -> str:
        """Return the choice of a reading."""
        return dict(self.readings)[name]

    @property
    def made(self) -> Scaled:
        """The scale and zero point of hidden states as they are made."""
        return self.product if self.reads("hidden-scale") == "intermediate" else self.hidden

    @property
    def exponent(self) -> int:
        """p, the binary logarithm of the scale of the cell state, rounded."""
        return round(float(np.log2(np.float32(self.cell_scale))))

    @property
    def bound(self) -> int | None:
        """The bound of the cell state in units of its scale; None if it is not clipped."""
        with np.errstate(over="ignore"):
            bound = int(np.clip(np.float32(self.clip) / np.float32(self.cell_scale), 0, INT16.max))
        is_clipped = self.clip > 0 if self.reads("clip-test") == "float" else bound > 0
        return bound if is_clipped else None

    @property
    def multipliers(self) -> Multipliers:
        """The factors of sums of products, as the readings have scales multiplied."""
        of = partial(Multiplier.of, is_single=self.reads("rounding") == "single")
        kind = np.float32 if self.reads("scale-product") == "float32" else np.float64
        inputs, hidden = (
            tuple(of(float(kind(each.scale) * kind(w)) * 2.0**ARGUMENT_BITS) for w in scales)
            for each, scales in (
                (self.inputs, self.input_scales),
                (self.hidden, self.recurrent_scales),
            )
        )
        unit = 2.0 ** (-2 * GATE_BITS)  # of a product of two gates
        kind = np.float32 if self.reads("hidden-scale") == "intermediate" else np.float64
        made = of(float(kind(unit) / kind(self.made.scale)))
        return Multipliers(inputs, hidden, of(2.0**-GATE_BITS), of(unit / self.cell_scale), made)


class Multiplier(NamedTuple):
    """A real factor as integers: value * 2^(shift - 31)."""

    value: int
    shift: int

    @classmethod
    def of(cls, factor: float, *, is_single: bool = False) -> Multiplier:
        """Return the multiplier nearest to a positive factor, half away from 0.

        A factor below 2^-32 becomes 0. Of the single rounding, one of 2^30 or more becomes the
        largest.
        """
        fraction, shift = math.frexp(factor)
        value = math.floor(math.ldexp(fraction, 31) + 0.5)
        if value == 1 << 31:
            value, shift = 1 << 30, shift + 1
        if shift < -31:
            return cls(0, 0)
        if is_single and shift > 30:
            return cls((1 << 31) - 1, 30)
        return cls(value, shift)

    def times(self, x: Array, *, is_single: bool = False, wraps: bool = False) -> Array:
        """Return int32 values times the factor, rounded once or twice.

        Raises:
            Unsupported: a value shifted to the left leaves int32, or the factor is 2^30 or more,
                and nothing wraps.
        """
        if self.shift > 30 and not wraps:
            raise Unsupported("a product of scales is 2^30 or more, which TFLite leaves undefined")
        if is_single:
            return shifted(x * self.value, 31 - self.shift)
        product = _within(x << max(self.shift, 0), 31, wraps=wraps) * self.value
        # SaturatingRoundingDoublingHighMul adds 2^30, or 1 - 2^30 to what is negative, and rounds
        # toward 0: that is half up.
        return rounded_shift(shifted(product, 31), max(-self.shift, 0))

    def times_wide(self, x: Array, *, wraps: bool = False) -> Array:
        """Return values of up to 47 bits times the factor, of which 16 bits are used.

        Raises:
            Unsupported: a value or a result is too wide, and does not wrap.
        """
        narrow = (self.value + (1 << 15)) >> 16 if self.value < 0x7FFF0000 else 0x7FFF
        if self.shift > 7 and not wraps:
            raise Unsupported(f"a product of scales of 2^{self.shift} or more overflows")
        wide = _within(x, MOST_BITS, wraps=wraps) * narrow
        return _within(shifted(wide, 15 - self.shift), 31, wraps=wraps)


class Multipliers(NamedTuple):
    """The multipliers of an integer LSTM."""

    inputs: tuple[Multiplier, ...]  # of the gates i, f, c, o, as those of hidden states
    hidden: tuple[Multiplier, ...]
    forgotten: Multiplier  # of f and C
    written: Multiplier  # of i and g
    output: Multiplier  # of o and tanh(C)


def _within(x: Array, bits: int, *, wraps: bool = False) -> Array:
    """Return values if they fit a signed integer of as many bits and a sign; or what is left.

    Raises:
        Unsupported: one does not fit, and does not wrap.
    """
    if wraps:
        return wrapped(x, bits + 1)
    if x.size and (int(x.max()) >= 1 << bits or int(x.min()) < -(1 << bits)):
        raise Unsupported(
            f"a sum of products needs more than {bits + 1} bits, where TFLite's result is undefined"
        )
    return x


def wrapped(x: Array, bits: int = 16) -> Array:
    """Return what is left of integers in as many bits."""
    if bits in {16, 32}:  # at a third of the cost
        return x.astype(f"i{bits // 8}").astype(np.int64)
    return ((x + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))


def shifted(x: Array, bits: int) -> Array:
    """Return x / 2^bits, rounded half up."""
    return (x + (1 << (bits - 1))) >> bits if bits > 0 else x << -bits


def rounded_shift(x: Array, bits: int) -> Array:
    """Return x / 2^bits, rounded half away from 0, as RoundingDivideByPOT."""
    mask = (1 << bits) - 1
    return (x >> bits) + ((x & mask) > (mask >> 1) + (x < 0))


def saturated(x: Array, bits: int = 16) -> Array:
    """Return values clamped to a signed integer of as many bits."""
    return np.minimum(np.maximum(x, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)


# sigmoid(n / 24) in units of 2^-16, n from 0 to 255, rounded to nearest; and where the table of
# the implementations has 1 more.
_ONE_MORE = (
    *(4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41),
    *(43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255),
)


@cache
def sigmoid_table() -> Array:
    """Return the table of 256 numbers."""
    exact = [65536 / (1 + math.exp(-n / 24)) for n in range(256)]
    return np.array([round(x) + (n in _ONE_MORE) for n, x in enumerate(exact)], np.int64)


def table_sigmoid(x: Array) -> Array:
    """Return sigmoid of arguments with 12 bits of fraction, with 15, interpolated in the table."""
    table, v = sigmoid_table(), 3 * x
    a = np.abs(v)
    k = np.minimum(a >> 9, 254)
    found = (table[k] << 9) + (a & 511) * (table[k + 1] - table[k])
    found = np.where(a >> 9 >= 255, 0x7FFF << 10, found)
    return np.where(v >= 0, found + 512, (1 << 25) - found + 511) >> 10


def table_tanh(x: Array, exponent: int = -ARGUMENT_BITS) -> Array:
    """Return tanh of x * 2^exponent, with 15 bits of fraction, by the same table.

    Raises:
        Unsupported: the exponent is so far from -12 that arguments leave int32.
    """
    table, shift = sigmoid_table(), exponent + ARGUMENT_BITS
    if abs(shift) > 29:
        raise Unsupported(f"tanh of numbers in units of 2^{exponent} is undefined in TFLite")
    v = _within(3 * x << max(shift, 0), 31)
    if shift < 0:
        v = (v + (1 << (-shift - 1))) >> -shift
    a = np.abs(v)
    k = np.minimum(a >> 8, 254)
    found = (table[k] << 8) + (a & 255) * (table[k + 1] - table[k])
    found = np.where(a >> 8 >= 255, 0xFFFF << 8, found)
    return np.where(v >= 0, found - (1 << 23) + 128, -found + (1 << 23) + 127) >> 8


# gemmlowp's fixed-point functions on int16, https://github.com/google/gemmlowp, fixedpoint.h. A
# number of `n` integer bits has 15 - n bits of fraction.


def _doubled_product(a: Array, b: Array | int) -> Array:
    """Return a * b / 2^15, rounded half up and saturated."""
    return saturated(shifted(a * b, 15))


def _scaled_by_power(x: Array, exponent: int) -> Array:
    """Return x * 2^exponent, saturated or rounded half away from 0."""
    return saturated(x << exponent) if exponent >= 0 else rounded_shift(x, -exponent)


def _constant(of_int32: int) -> int:
    """Return a constant of 31 bits of fraction with 15."""
    return int(rounded_shift(np.array(of_int32, np.int64), 16))


# exp(-2^k), k from -2 to 4, with 31 bits of fraction.
_EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def _exp_of_last_quarter(a: Array) -> Array:
    """Return exp(a), a in [-1/4, 0) without integer bits, by the Taylor series at -1/8."""
    x = wrapped(a + (1 << 12))
    x2 = _doubled_product(x, x)
    x3, x4 = _doubled_product(x2, x), _doubled_product(x2, x2)
    quarter = _scaled_by_power(x4, -2)
    sixth = _doubled_product(wrapped(quarter + x3), _constant(715827883))
    rest = _scaled_by_power(wrapped(sixth + x2), -1)
    factor = _constant(1895147668)
    return saturated(factor + _doubled_product(wrapped(x + rest), factor))


def _exp_of_negative(a: Array, integer_bits: int) -> Array:
    """Return exp(a), a <= 0, without integer bits."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    within = wrapped((a & (quarter - 1)) - quarter)
    result = _exp_of_last_quarter(_scaled_by_power(within, integer_bits))
    remainder = wrapped(within - a)
    for k, exponential in enumerate(_EXPONENTIALS, -2):
        if integer_bits > k:
            bit = fraction_bits + k
            halved = _doubled_product(result, _constant(exponential))
            result = np.where(remainder & (1 << bit), halved, result)
    if integer_bits > 5:
        result = np.where(a < -(1 << (fraction_bits + 5)), 0, result)
    return np.where(a == 0, INT16.max, result)


def _two_over_one_more(a: Array) -> Array:
    """Return 2 / (1 + a), a in [0, 1], with 2 integer bits, by three steps of Newton's method."""
    half = (a + INT16.max + 1) >> 1
    x = wrapped(_constant(1515870810) + _doubled_product(half, _constant(-1010580540)))
    for _ in range(3):
        rest = wrapped((1 << 13) - _doubled_product(half, x))
        x = wrapped(x + _scaled_by_power(_doubled_product(x, rest), 2))
    return x


def gemmlowp_sigmoid(x: Array) -> Array:
    """Return sigmoid of arguments with 3 integer bits, with 15 bits of fraction."""
    exponential = _exp_of_negative(-np.abs(x), 3)
    positive = _scaled_by_power(_two_over_one_more(exponential), 1)
    found = np.where(x >= 0, positive, INT16.max - positive)
    return np.where(x == 0, 1 << 14, found)


def gemmlowp_tanh(x: Array, integer_bits: int) -> Array:
    """Return tanh of arguments with some integer bits, with 15 bits of fraction."""
    exponential = _exp_of_negative(-np.abs(x), integer_bits + 1)
    positive = _scaled_by_power(wrapped(_two_over_one_more(exponential) - (1 << 13)), 2)
    return np.where(x == 0, 0, np.where(x > 0, positive, -positive))


class IntegerKernel:
    """The arithmetic of a step: products, multipliers and functions.

    Args:
        form: the scales and readings.
        W: input weights [G, L, H, I].
        R: recurrent weights [G, L, H, H].
        bias: [G, L, 1, H], or None.

    Raises:
        Unsupported: the readings give no result for these scales.
    """

    def __init__(self, form: IntegerForm, W: Array, R: Array, bias: Array | None) -> None:
        self.form, self.weights, self.biases = form, (W, R), bias
        # Sums of products are exact in float64: terms are below 2^30, and sums below 2^53.
        self._W, self._R = (w.astype(np.float64).swapaxes(-1, -2) for w in (W, R))
        self._bias = 0 if bias is None else bias.astype(np.int64)
        self._is_single = form.reads("rounding") == "single"
        self._saturates_terms = form.reads("gate-sum") == "both-terms"
        self._saturates_written = form.reads("cell-sum") == "both-terms"
        self._of = form.multipliers
        self._is_shifted = form.reads("cell-products") == "shift"
        is_power = math.frexp(form.cell_scale)[0] == 0.5
        self.sigmoid: Callable[[Array], Array] = table_sigmoid
        self.tanh: Callable[[Array], Array] = table_tanh
        self.tanh_of_cell: Callable[[Array], Array] = partial(table_tanh, exponent=form.exponent)
        is_gemmlowp = form.reads("activations") == "gemmlowp"
        if self._is_shifted and not 0 <= 2 * GATE_BITS + form.exponent <= 31:
            raise Unsupported(
                f"a cell_state_scale of 2^{form.exponent} leaves no shift of 0 to 31 bits"
            )
        if (is_gemmlowp or self._is_shifted) and not is_power:
            raise Unsupported(
                f"a cell_state_scale of {form.cell_scale:g} is no power of two: undefined"
            )
        if is_gemmlowp:
            if form.exponent not in GEMMLOWP_EXPONENTS:
                raise Unsupported(
                    f"a cell_state_scale of 2^{form.exponent} is undefined where tanh is"
                    " gemmlowp's, which takes 2^-15 to 2^-9"
                )
            self.sigmoid = gemmlowp_sigmoid
            self.tanh = partial(gemmlowp_tanh, integer_bits=15 - ARGUMENT_BITS)
            self.tanh_of_cell = partial(gemmlowp_tanh, integer_bits=15 + form.exponent)

    def _times(self, x: Array, factor: Multiplier) -> Array:
        wraps = self.form.wraps
        return factor.times(_within(x, 31, wraps=wraps), is_single=self._is_single, wraps=wraps)

    def arguments(self, x: Array, H: Array) -> Array:
        """Return the arguments of the gates' functions, [G, L, N, H], with 12 bits of fraction.

        Args:
            x: inputs without their zero point, [L, N, I].
            H: hidden states with theirs, [L, N, H].
        """
        form = self.form
        of_inputs = (x.astype(np.float64) @ self._W).astype(np.int64) + self._bias
        of_hidden = ((H - form.hidden.zero_point).astype(np.float64) @ self._R).astype(np.int64)
        found = []
        for terms in zip(of_inputs, of_hidden, self._of.inputs, self._of.hidden, strict=True):
            one, other = (
                factor.times_wide(total, wraps=form.wraps)
                if form.bits == 16
                else self._times(total, factor)
                for total, factor in (terms[::2], terms[1::2])
            )
            if self._saturates_terms:
                other = saturated(other)
            found.append(saturated(saturated(one) + other))
        return np.stack(found)

    def cell(self, f: Array, C: Array, i: Array, g: Array) -> Array:
        """Return the new cell states from the gates and the old ones, saturated and clipped."""
        form, bound = self.form, self.form.bound
        if self._is_shifted:
            kept = saturated(rounded_shift(f * C, GATE_BITS))
            written = wrapped(rounded_shift(i * g, 2 * GATE_BITS + form.exponent))
        else:
            kept = saturated(self._times(f * C, self._of.forgotten))
            written = self._times(i * g, self._of.written)
        total = saturated(kept + (saturated(written) if self._saturates_written else written))
        low, high = (INT16.min, INT16.max) if bound is None else (-bound, bound)
        return np.asarray(np.clip(total, low, high))

    def hidden(self, o: Array, c: Array) -> Array:
        """Return the new hidden states from the output gate and tanh of the new cell states."""
        made = self._times(o * c, self._of.output) + self.form.made.zero_point
        return saturated(made, self.form.bits)
