"""Arithmetic that is too coarse: narrow formats, approximated functions, numbers lost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from rnncli.backends.numpy_backend import NumPyEngine
from rnncli.mutants.mutant import Change
from rnncli.mutants.parts import ALL, GATED, LSTM, arrays, family, initial_states, row, stepped
from rnncli.mutants.reasons import NO_STEP, unreached, uses_none_of
from rnncli.numerics import DTYPES, round_to
from rnncli.recurrence.arithmetic import NumPyArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.mutant import Mutant, Reason, Run
    from rnncli.mutants.parts import Right
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence, Result

Function: TypeAlias = "Callable[[Value], Value]"
RIGHT = NumPyArithmetic()
NO_SIGMOID = uses_none_of("Sigmoid")
NO_TANH = uses_none_of("Tanh", "ScaledTanh")
NEITHER = uses_none_of("Sigmoid", "Tanh", "ScaledTanh")

COARSE = "Errors of the size of the format's last bit, growing with the length of the sequence."
SMOOTH = "Errors of the size of the approximation's, largest where the function bends."


# Formats


def rounded(dtype: str) -> Function:
    """Return the function that rounds to a dtype and back."""
    return lambda values: round_to(values, DTYPES[dtype]).astype(values.dtype)


def tf32(values: Value) -> Value:
    """Round to the 11 significant bits of TensorFloat-32, in the range of float32."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(fraction, 11)), exponent - 11)


class RoundedOperands(NumPyEngine):
    """Rounds both operands of every matrix product; the products are summed as they are.

    Args:
        function: rounds.
        dtype: of the arithmetic.
    """

    def __init__(self, function: Function, dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self.rounded = function

    def matrix(self, weights: Array) -> Array:
        """Return the rounded transposed weights."""
        return super().matrix(np.asarray(self.rounded(weights)))

    def multiply(self, values: Array, matrix: Array, out: Array) -> None:
        """Multiply rounded values."""
        super().multiply(np.asarray(self.rounded(values)), matrix, out)


class Float16Sums(NumPyEngine):
    """Sums the products of a matrix product in float16, from the first to the last."""

    def multiply(self, values: Array, matrix: Array, out: Array) -> None:
        """Round every product and every partial sum."""
        total = np.zeros(out.shape, np.float16)
        for k in range(values.shape[1]):
            total += (values[:, k, None] * matrix[k]).astype(np.float16)
        out[...] = total


def _stored(which: int, function: Function) -> Callable[[Recurrence], Recurrence]:
    """Return the change that rounds a state before the next step reads it."""

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        new = list(right(p, x, states))
        new[which] = function(new[which])
        return tuple(new)

    return stepped(step)


def _all_stored(function: Function) -> Callable[[Recurrence], Recurrence]:
    """Return the change that rounds every state before the next step reads it."""

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        return tuple(map(function, right(p, x, states)))

    return stepped(step)


def _formats() -> Iterator[Mutant]:
    for dtype in ("bfloat16", "float16"):
        for which, name, cells in ((0, "h", ALL), (1, "c", LSTM)):
            yield row(
                f"{name}-stored-in-{dtype}",
                cells,
                f"{name.upper()} is stored in {dtype} between steps.",
                COARSE,
                _stored(which, rounded(dtype)),
                NO_STEP,
            )
    for id_, spelled, function in (
        ("tf32", "TensorFloat-32", tf32),
        ("bfloat16", "bfloat16", rounded("bfloat16")),
        ("float16", "float16", rounded("float16")),
    ):
        change = Change(engine=partial(RoundedOperands, function))
        yield row(
            f"operands-in-{id_}",
            ALL,
            f"The operands of matrix products are rounded to {spelled}.",
            COARSE,
            change,
            unreached(change, "every operand and result is the same rounded"),
        )
    for dtype in ("bfloat16", "float16"):
        change = Change(_all_stored(rounded(dtype)), partial(RoundedOperands, rounded(dtype)))
        yield row(
            f"computed-in-{dtype}",
            ALL,
            f"The operands of matrix products are rounded to {dtype}, and so are states.",
            COARSE,
            change,
            unreached(change, "every operand, state and result is the same rounded"),
        )
    change = Change(engine=Float16Sums)
    yield row(
        "sums-in-float16",
        ALL,
        "Matrix products are accumulated in float16.",
        "Errors grow with I and H; sums above 65504 are infinite.",
        change,
        unreached(change, "every sum is the same in float16"),
    )


# Functions


class ReplacedArithmetic(NumPyArithmetic):
    """NumPy's arithmetic with some functions replaced."""

    def __init__(self, **functions: Any) -> None:
        vars(self).update(functions)


class ReplacedFunctions(NumPyEngine):
    """Computes with a replaced arithmetic.

    Args:
        functions: by their names in the arithmetic.
        dtype: of the arithmetic.
    """

    def __init__(self, functions: dict[str, Any], dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self.math = ReplacedArithmetic(**functions)


def computing(**functions: Any) -> Change:
    """Return the change that computes with other functions."""
    return Change(engine=partial(ReplacedFunctions, functions))


def table(function: Function, reach: float, entries: int) -> Function:
    """Return the nearest of some equidistant values of a function on [-reach, reach]."""
    values = function(np.linspace(-reach, reach, entries))

    def look_up(x: Value) -> Value:
        place = (np.clip(np.nan_to_num(x), -reach, reach) + reach) * ((entries - 1) / (2 * reach))
        found = values[np.rint(place).astype(np.int64)].astype(x.dtype)
        return np.where(np.isnan(x), x, found)

    return look_up


def piecewise_linear(function: Function, reach: float, entries: int) -> Function:
    """Return straight lines between equidistant values of a function on [-reach, reach]."""
    places = np.linspace(-reach, reach, entries)
    values = function(places)
    return lambda x: np.interp(x, places, values).astype(x.dtype)


def pade_tanh(x: Value) -> Value:
    """x(27 + x^2)/(27 + 9x^2), which is 1 at 3, and constant from there."""
    x = np.clip(x, -3, 3)
    return x * (27 + x * x) / (27 + 9 * x * x)


def polynomial_tanh(x: Value) -> Value:
    """X - x^3/3 + 2x^5/15, at most 1."""
    square = np.minimum(x * x, 16)  # from there on it is beyond 1 anyway
    return np.clip(x * (1 - square / 3 + 2 * square * square / 15), -1, 1)


def saturated(function: Function, low: float) -> Function:
    """Return a function that is `low` below -3 and 1 above 3."""
    return lambda x: np.where(x > 3, 1, np.where(x < -3, low, function(x))).astype(x.dtype)


def hard_sigmoid(x: Value) -> Value:
    """min(max(x/5 + 1/2, 0), 1)."""
    return np.clip(0.2 * x + 0.5, 0, 1)


def fast_exp(x: Value) -> Value:
    """e^x by writing x into the exponent of a float32 (Schraudolph 1999): 3 % off at most."""
    bits = np.clip(np.nan_to_num(x), -80, 80) * (2**23 / np.log(2)) + (127 * 2**23 - 366393)
    found = bits.astype(np.int32).view(np.float32).astype(x.dtype)
    return np.where(np.isnan(x), x, found)


def fast_sigmoid(x: Value) -> Value:
    """1/(1 + e^-x) with the fast exponential."""
    return 1 / (1 + fast_exp(-x))


def fast_tanh(x: Value) -> Value:
    """2/(1 + e^-2x) - 1 with the fast exponential."""
    return 2 * fast_sigmoid(2 * x) - 1


def _both(make: Callable[[Function, float, int], Function], entries: int) -> Change:
    return computing(sigmoid=make(RIGHT.sigmoid, 8.0, entries), tanh=make(RIGHT.tanh, 4.0, entries))


def _approximations() -> Iterator[Mutant]:
    for entries in (64, 1024):
        for id_, spelled, make in (
            ("table", "the nearest of", table),
            ("piecewise-linear", "straight lines between", piecewise_linear),
        ):
            yield row(
                f"{id_}-{entries}",
                ALL,
                f"Sigmoid and Tanh are {spelled} {entries} values.",
                SMOOTH,
                _both(make, entries),
                NEITHER,
                NO_STEP,
            )
    rows: tuple[tuple[str, str, Change, Reason], ...] = (
        (
            "hard-sigmoid",
            "Sigmoid is min(max(x/5 + 1/2, 0), 1).",
            computing(sigmoid=hard_sigmoid),
            NO_SIGMOID,
        ),
        (
            "hard-tanh",
            "Tanh is min(max(x, -1), 1).",
            computing(tanh=lambda x: np.clip(x, -1, 1)),
            NO_TANH,
        ),
        ("pade-tanh", "Tanh is a Pade approximation.", computing(tanh=pade_tanh), NO_TANH),
        (
            "polynomial-tanh",
            "Tanh is a polynomial of degree 5.",
            computing(tanh=polynomial_tanh),
            NO_TANH,
        ),
        (
            "fast-exp",
            "The exponential in Sigmoid and Tanh is 3 % off.",
            computing(sigmoid=fast_sigmoid, tanh=fast_tanh),
            NEITHER,
        ),
    )
    for id_, sentence, change, reason in rows:
        yield row(id_, ALL, sentence, SMOOTH, change, reason, NO_STEP)


# Numbers lost


def _flushed(values: Array, smallest: float) -> Array:
    return np.where(np.abs(values.astype(np.float64)) < smallest, values.dtype.type(0), values)


def _smallest(recurrence: Recurrence) -> float:
    """Return the smallest normal number of the tensors' dtype."""
    return float(ml_dtypes.finfo(recurrence.dtype.numpy).smallest_normal)  # type: ignore[no-untyped-call]


def _inputs_flushed(recurrence: Recurrence) -> Recurrence:
    flush = partial(_flushed, smallest=_smallest(recurrence))
    tensors = arrays(("X", "W", "R", "Wb", "Rb", "P"), flush)(recurrence)
    return initial_states(flush)(tensors)


def _results_flushed(run: Run, recurrence: Recurrence) -> Result:
    right, flush = run(recurrence), partial(_flushed, smallest=_smallest(recurrence))
    Y = None if right.Y is None else flush(right.Y)
    return replace(right, Y=Y, last=tuple(map(flush, right.last)))


def _nan_to(value: float, function: Function) -> Function:
    return lambda x: function(np.where(np.isnan(x), x.dtype.type(value), x))


def _large_as(value: float) -> Function:
    return lambda x: np.where(x < -18, x.dtype.type(value), RIGHT.sigmoid(x))


def _overflowing_softplus(x: Value) -> Value:
    """log(1 + e^x) as written, in float32: infinite above 88.7."""
    return np.log1p(np.exp(x.astype(np.float32))).astype(x.dtype)


def _losses() -> Iterator[Mutant]:
    rows: tuple[tuple[str, tuple[str, ...], str, str, Change, str], ...] = (
        (
            "results-flushed",
            ALL,
            "Outputs that are subnormal in their dtype are zero.",
            "Only the smallest numbers are wrong.",
            Change(result=_results_flushed),
            "no output is subnormal",
        ),
        (
            "tanh-saturates-at-3",
            ALL,
            "Tanh is -1 below -3 and 1 above 3.",
            "Small arguments are right.",
            computing(tanh=saturated(RIGHT.tanh, -1)),
            "no argument of Tanh that shows is beyond 3",
        ),
        (
            "sigmoid-saturates-at-3",
            ALL,
            "Sigmoid is 0 below -3 and 1 above 3.",
            "Small arguments are right.",
            computing(sigmoid=saturated(RIGHT.sigmoid, 0)),
            "no argument of Sigmoid that shows is beyond 3",
        ),
        (
            "sigmoid-zero-below-18",
            ALL,
            "Sigmoid is exactly 0 below -18.",
            "The negative tail has lost its relative accuracy.",
            computing(sigmoid=_large_as(0)),
            "no argument of Sigmoid that shows is below -18",
        ),
        (
            "softplus-overflows",
            ALL,
            "Softplus is log(1 + e^x) in float32, infinite above 88.7.",
            "Large arguments give infinity, others a few units in the last place.",
            computing(softplus=_overflowing_softplus),
            "no argument of Softplus shows",
        ),
        (
            "nan-is-zero",
            ALL,
            "Sigmoid and Tanh take NaN for 0.",
            "NaN ends where it should spread.",
            computing(sigmoid=_nan_to(0, RIGHT.sigmoid), tanh=_nan_to(0, RIGHT.tanh)),
            "no argument of Sigmoid or Tanh is NaN",
        ),
        (
            "nan-swallowed-by-bounds",
            ALL,
            "The larger and the smaller of NaN and a number is the number: in clip and Relu.",
            "NaN ends where it should spread.",
            computing(maximum=np.fmax, minimum=np.fmin),
            "no NaN is compared",
        ),
        (
            "nan-saturates",
            GATED,
            "Sigmoid and Tanh take NaN for the lower bound of a clip that is always there.",
            "NaN ends where it should spread.",
            computing(sigmoid=_nan_to(-np.inf, RIGHT.sigmoid), tanh=_nan_to(-np.inf, RIGHT.tanh)),
            "no argument of Sigmoid or Tanh is NaN",
        ),
    )
    yield row(
        "inputs-flushed",
        ALL,
        "Inputs that are subnormal in their dtype are read as zero.",
        "Only what the smallest numbers contribute is missing.",
        _inputs_flushed,
    )
    for id_, cells, sentence, effect, change, reason in rows:
        yield row(id_, cells, sentence, effect, change, unreached(change, reason))


ROWS = (
    *family("formats", _formats()),
    *family("approximations", _approximations()),
    *family("numbers lost", _losses()),
)
