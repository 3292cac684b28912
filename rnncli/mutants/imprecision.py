"""Bugs of arithmetic: narrow formats, approximated functions, lost numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from rnncli.backends.reference import NumPyEngine
from rnncli.mutants.equivalence import NO_STEP, uses_none_of, where
from rnncli.mutants.mutant import (
    ALL,
    GATED,
    LSTM,
    MATH,
    PER_DIRECTION,
    Change,
    Family,
    Variant,
    computing,
    initial_states,
    reading,
    running,
    stepped,
)
from rnncli.numerics import DTYPES, round_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.mutant import Elementwise, Right, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence, Result

format_bug = Family(
    "formats",
    "Errors of the size of the format's last bit, growing with the length of the sequence.",
)


def rounded(dtype: str) -> Elementwise:
    """Return the function that rounds to a dtype and back."""
    return lambda values: round_to(values, DTYPES[dtype]).astype(values.dtype)


def tf32(values: Value) -> Value:
    """Round to the 11 significant bits of TensorFloat-32, in the range of float32."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(fraction, 11)), exponent - 11)


class RoundedOperands(NumPyEngine):
    """An engine that rounds both operands of every matrix product, but not the sums.

    Args:
        function: the rounding.
        dtype: the dtype of the arithmetic.
    """

    def __init__(self, function: Elementwise, dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self.rounded = function

    def matrix(self, weights: Array) -> Array:
        """Return the rounded transposed weights."""
        return super().matrix(np.asarray(self.rounded(weights)))

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Multiply rounded values."""
        return super().multiply(np.asarray(self.rounded(values)), matrix)


class Float16Sums(NumPyEngine):
    """An engine that sums the terms of matrix products in float16, in order."""

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Round every product and every partial sum."""
        total = np.zeros((*matrix.shape[:2], values.shape[1], matrix.shape[3]), np.float16)
        for k in range(values.shape[2]):
            total += (values[:, :, k, None] * matrix[:, :, None, k]).astype(np.float16)
        return total.astype(self.dtype)


NARROW = ("bfloat16", "float16")
# In ids, in sentences, and the function that rounds.
ROUNDINGS = (
    Variant(("tf32", "TensorFloat-32"), tf32),
    *(Variant((dtype, dtype), rounded(dtype)) for dtype in NARROW),
)


@format_bug(
    NO_STEP,
    changes=stepped,
    each=[
        Variant((letter.lower(), dtype, letter), (k, rounded(dtype)), of=cells)
        for dtype in NARROW
        for k, (letter, cells) in enumerate((("H", ALL), ("C", LSTM)))
    ],
)
def X_stored_in_X(
    stored: tuple[int, Elementwise], right: Right, p: Parameters, x: Value, states: States
) -> States:
    """{2} is stored in {1} between steps."""
    which, function = stored
    new = list(right(p, x, states))
    new[which] = function(new[which])
    return tuple(new)


def multiplying(function: Elementwise) -> Change:
    """Return the change that rounds the operands of matrix products."""
    return Change(engine=partial(RoundedOperands, function))


def computing_rounded(function: Elementwise) -> Change:
    """Return the change that rounds the operands of matrix products and the states of each step."""

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        return tuple(map(function, right(p, x, states)))

    return replace(multiplying(function), recurrence=stepped(step))


@format_bug(
    changes=multiplying,
    each=ROUNDINGS,
    unreached="every operand and result is the same rounded",
)
def operands_in_X(function: Elementwise, values: Value) -> Value:
    """The operands of matrix products are rounded to {1}."""
    return function(values)


@format_bug(
    changes=computing_rounded,
    each=ROUNDINGS[1:],
    unreached="every operand, state and result is the same rounded",
)
def computed_in_X(function: Elementwise, values: Value) -> Value:
    """The operands of matrix products are rounded to {}, and so are states."""
    return function(values)


format_bug.row(
    "sums-in-float16",
    "Matrix products are accumulated in float16.",
    Change(engine=Float16Sums),
    effect="Errors grow with I and H; sums above 65504 are infinite.",
    unreached="every sum is the same in float16",
)

NO_SIGMOID = uses_none_of("Sigmoid")
NO_TANH = uses_none_of("Tanh", "ScaledTanh")
NEITHER = uses_none_of("Sigmoid", "Tanh", "ScaledTanh")
SMOOTH = "Errors of the size of the approximation's, largest where the function bends."

approximation_bug = Family("approximations", SMOOTH)


def sigmoid(function: Elementwise) -> Change:
    """Return the change of Sigmoid."""
    return computing(sigmoid=function)


def tanh(function: Elementwise) -> Change:
    """Return the change of Tanh."""
    return computing(tanh=function)


def interpolated(between: Callable[[Elementwise, float], Elementwise]) -> Change:
    """Return the change to functions between values on the range where they are not constant."""
    return computing(sigmoid=between(MATH.sigmoid, 8.0), tanh=between(MATH.tanh, 4.0))


NUMBERS_OF_VALUES = (Variant("64", 64), Variant("1024", 1024))
interpolation_bug = partial(
    approximation_bug, NEITHER, NO_STEP, changes=interpolated, each=NUMBERS_OF_VALUES
)


@interpolation_bug()
def table_X(entries: int, function: Elementwise, reach: float) -> Elementwise:
    """Sigmoid and Tanh are the nearest of {} values."""
    values = function(np.linspace(-reach, reach, entries))

    def look_up(x: Value) -> Value:
        place = (np.clip(np.nan_to_num(x), -reach, reach) + reach) * ((entries - 1) / (2 * reach))
        found = values[np.rint(place).astype(np.int64)].astype(x.dtype)
        return np.where(np.isnan(x), x, found)

    return look_up


@interpolation_bug()
def piecewise_linear_X(entries: int, function: Elementwise, reach: float) -> Elementwise:
    """Sigmoid and Tanh are straight lines between {} values."""
    places = np.linspace(-reach, reach, entries)
    values = function(places)
    return lambda x: np.interp(x, places, values).astype(x.dtype)


@approximation_bug(NO_SIGMOID, NO_STEP, changes=sigmoid)
def hard_sigmoid(x: Value) -> Value:
    """Sigmoid is min(max(x/5 + 1/2, 0), 1)."""
    return np.clip(0.2 * x + 0.5, 0, 1)


@approximation_bug(NO_TANH, NO_STEP, changes=tanh)
def hard_tanh(x: Value) -> Value:
    """Tanh is min(max(x, -1), 1)."""
    return np.clip(x, -1, 1)


@approximation_bug(NO_TANH, NO_STEP, changes=tanh)
def pade_tanh(x: Value) -> Value:
    """Tanh is a Pade approximation."""
    x = np.clip(x, -3, 3)  # x(27 + x^2)/(27 + 9x^2) is 1 at 3, and constant from there
    return x * (27 + x * x) / (27 + 9 * x * x)


@approximation_bug(NO_TANH, NO_STEP, changes=tanh)
def polynomial_tanh(x: Value) -> Value:
    """Tanh is a polynomial of degree 5."""
    square = np.minimum(x * x, 16)  # from there on x - x^3/3 + 2x^5/15 is beyond 1 anyway
    return np.clip(x * (1 - square / 3 + 2 * square * square / 15), -1, 1)


def sigmoid_and_tanh(exp: Elementwise) -> Change:
    """Return the change of the exponential in Sigmoid and Tanh."""
    return computing(
        sigmoid=lambda x: 1 / (1 + exp(-x)), tanh=lambda x: 2 * (1 / (1 + exp(-(2 * x)))) - 1
    )


@approximation_bug(NEITHER, NO_STEP, changes=sigmoid_and_tanh)
def fast_exp(x: Value) -> Value:
    """The exponential in Sigmoid and Tanh is 3 % off."""
    # x is written into the exponent of a float32 (Schraudolph 1999).
    bits = np.clip(np.nan_to_num(x), -80, 80) * (2**23 / np.log(2)) + (127 * 2**23 - 366393)
    found = bits.astype(np.int32).view(np.float32).astype(x.dtype)
    return np.where(np.isnan(x), x, found)


finer_format_bug = Family(
    "formats",
    "Errors of the size of the format's last bit, which do not grow with the length.",
    ALL,
    where(lambda r: r.unit is not None, "outputs are levels"),
)


def upper_half(values: Value) -> Value:
    """Return what the upper 16 bits of float32 numbers say."""
    bits = np.asarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(values.dtype)


@finer_format_bug(
    changes=running,
    each=[
        Variant((f"in {dtype}", f"rounded to {dtype}"), (DTYPES[dtype].precision, rounded(dtype)))
        for dtype in ("float32", *NARROW)
    ]
    + [
        Variant(
            ("cut to bfloat16", "the upper 16 bits of float32"),
            (DTYPES["bfloat16"].precision, upper_half),
        )
    ],
    unreached="the dtype of the outputs is no finer",
)
def outputs_X(stored: tuple[int, Elementwise], run: Run, recurrence: Recurrence) -> Result:
    """Outputs are {1}, although computed in the dtype of the tensors."""
    right, (precision, function) = run(recurrence), stored
    if recurrence.unit is not None or recurrence.dtype.precision <= precision:
        return right
    Y = None if right.Y is None else function(right.Y)
    return replace(right, Y=Y, last=tuple(map(function, right.last)))


loss_bug = Family("numbers lost", "NaN ends where it should spread.")


def _flushed(values: Array, smallest: float) -> Array:
    magnitudes = np.abs(values.astype(np.float64))
    # A zero of either sign stays.
    return np.where((magnitudes > 0) & (magnitudes < smallest), values.dtype.type(0), values)


def _smallest(recurrence: Recurrence) -> float:
    """Return the smallest normal number of the tensors' dtype."""
    return float(ml_dtypes.finfo(recurrence.dtype.numpy).smallest_normal)  # type: ignore[no-untyped-call]


@loss_bug(effect="Only what the smallest numbers contribute is missing.")
def inputs_flushed(recurrence: Recurrence) -> Recurrence:
    """Inputs that are subnormal in their dtype are read as zero."""
    flush = partial(_flushed, smallest=_smallest(recurrence))
    tensors = reading("X", *PER_DIRECTION)(flush)(recurrence)
    return initial_states(flush)(tensors)


@loss_bug(
    changes=running,
    effect="Only the smallest numbers are wrong.",
    unreached="no output is subnormal",
)
def results_flushed(run: Run, recurrence: Recurrence) -> Result:
    """Outputs that are subnormal in their dtype are zero."""
    right, flush = run(recurrence), partial(_flushed, smallest=_smallest(recurrence))
    Y = None if right.Y is None else flush(right.Y)
    return replace(right, Y=Y, last=tuple(map(flush, right.last)))


def saturated(x: Value, value: Value, low: float) -> Value:
    """Return a value that is `low` where x is below -3, and 1 above 3."""
    return np.where(x > 3, 1, np.where(x < -3, low, value)).astype(x.dtype)


@loss_bug(
    changes=tanh,
    effect="Small arguments are right.",
    unreached="no argument of Tanh that shows is beyond 3",
)
def tanh_saturates_at_3(x: Value) -> Value:
    """Tanh is -1 below -3 and 1 above 3."""
    return saturated(x, MATH.tanh(x), -1)


@loss_bug(
    changes=sigmoid,
    effect="Small arguments are right.",
    unreached="no argument of Sigmoid that shows is beyond 3",
)
def sigmoid_saturates_at_3(x: Value) -> Value:
    """Sigmoid is 0 below -3 and 1 above 3."""
    return saturated(x, MATH.sigmoid(x), 0)


@loss_bug(
    changes=sigmoid,
    effect="The negative tail has lost its relative accuracy.",
    unreached="no argument of Sigmoid that shows is below -18",
)
def sigmoid_zero_below_18(x: Value) -> Value:
    """Sigmoid is exactly 0 below -18."""
    return np.where(x < -18, x.dtype.type(0), MATH.sigmoid(x))


@loss_bug(
    changes=lambda function: computing(softplus=function),
    effect="Large arguments give infinity, others a few units in the last place.",
    unreached="no argument of Softplus shows",
)
def softplus_overflows(x: Value) -> Value:
    """Softplus is log(1 + e^x) in float32, infinite above 88.7."""
    return np.log1p(np.exp(x.astype(np.float32))).astype(x.dtype)


def _nan_to(value: float, function: Elementwise) -> Elementwise:
    return lambda x: function(np.where(np.isnan(x), x.dtype.type(value), x))


NO_NAN = "no argument of Sigmoid or Tanh is NaN"
loss_bug.row(
    "nan-is-zero",
    "Sigmoid and Tanh take NaN for 0.",
    computing(sigmoid=_nan_to(0, MATH.sigmoid), tanh=_nan_to(0, MATH.tanh)),
    unreached=NO_NAN,
)
loss_bug.row(
    "nan-swallowed-by-bounds",
    "The larger and the smaller of NaN and a number is the number: in clip and Relu.",
    computing(maximum=np.fmax, minimum=np.fmin),
    unreached="no NaN is compared",
)
loss_bug.row(
    "nan-saturates",
    "Sigmoid and Tanh take NaN for the upper bound of a clip that is always there.",
    computing(
        minimum=np.fmin,  # where there is a clip, NaN is its bound
        sigmoid=_nan_to(np.inf, MATH.sigmoid),
        tanh=_nan_to(np.inf, MATH.tanh),
    ),
    of=GATED,
    unreached=NO_NAN,
)

finer_approximation_bug = Family("approximations", SMOOTH)


@finer_approximation_bug(NO_SIGMOID, NO_STEP, changes=sigmoid)
def hard_sigmoid_of_a_sixth(x: Value) -> Value:
    """Sigmoid is min(max(x/6 + 1/2, 0), 1)."""
    return np.clip(x / 6 + 0.5, 0, 1)  # as PyTorch and ONNX's HardSwish have it


@finer_approximation_bug(NO_SIGMOID, NO_STEP, changes=sigmoid)
def sigmoid_of_base_2(x: Value) -> Value:
    """Sigmoid is 1/(1 + 2^-x)."""
    return MATH.sigmoid(x * np.log(2).astype(x.dtype))


finer_loss_bug = Family("numbers lost")
reported_loss_bug = Family("numbers lost")


@finer_loss_bug(
    changes=sigmoid,
    effect="The negative tail has lost its relative accuracy, and is 0 from -17.3 down.",
    unreached="no argument of Sigmoid that shows is far below 0",
)
def sigmoid_by_tanh(x: Value) -> Value:
    """Sigmoid is (1 + tanh(x/2))/2 in float32."""
    half = x.astype(np.float32) / 2
    return ((1 + MATH.tanh(half)) / 2).astype(x.dtype)


@reported_loss_bug(changes=sigmoid, unreached="no argument of Sigmoid is above 88.7")
def sigmoid_overflows(x: Value) -> Value:
    """Sigmoid is NaN above 88.7, where e^x / (1 + e^x) overflows in float32.

    Large arguments give NaN.
    """
    return np.where(x > 88.7, x.dtype.type(np.nan), MATH.sigmoid(x))
