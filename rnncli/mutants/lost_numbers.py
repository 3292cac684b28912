"""Bugs that lose numbers: subnormals, tails, infinities and NaN."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from rnncli.mutants.changes import ALL, GATED, RIGHT, arrays, computing, family, initial_states, row
from rnncli.mutants.equivalence import Unreached
from rnncli.mutants.mutant import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.mutants.changes import Function
    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.recurrence import Recurrence, Result


def _flushed(values: Array, smallest: float) -> Array:
    magnitudes = np.abs(values.astype(np.float64))
    # A zero of either sign stays.
    return np.where((magnitudes > 0) & (magnitudes < smallest), values.dtype.type(0), values)


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


def saturated(function: Function, low: float) -> Function:
    """Return a function that is `low` below -3 and 1 above 3."""
    return lambda x: np.where(x > 3, 1, np.where(x < -3, low, function(x))).astype(x.dtype)


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
            "Sigmoid and Tanh take NaN for the upper bound of a clip that is always there.",
            "NaN ends where it should spread.",
            computing(
                minimum=np.fmin,  # where there is a clip, NaN is its bound
                sigmoid=_nan_to(np.inf, RIGHT.sigmoid),
                tanh=_nan_to(np.inf, RIGHT.tanh),
            ),
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
        yield row(id_, cells, sentence, effect, change, Unreached(change, reason))


ROWS = family("numbers lost", _losses())
