"""Approximated activation functions: tables, polynomials, bit tricks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import ALL, RIGHT, computing, family, row
from rnncli.mutants.equivalence import NO_STEP, uses_none_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Function
    from rnncli.mutants.mutant import Change, Mutant, Reason
    from rnncli.recurrence.arithmetic import Value

NO_SIGMOID = uses_none_of("Sigmoid")
NO_TANH = uses_none_of("Tanh", "ScaledTanh")
NEITHER = uses_none_of("Sigmoid", "Tanh", "ScaledTanh")
SMOOTH = "Errors of the size of the approximation's, largest where the function bends."


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


ROWS = family("approximations", _approximations())
