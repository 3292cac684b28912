"""Activations in place: the values of the formulas, the sigmoid's tail included."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from rnncli.backends.in_place.time_steps import in_place, sigmoid_divisor
from rnncli.numerics import NumPyArithmetic, ulp_distance
from rnncli.recurrence.activations import ACTIVATIONS

MATH = NumPyArithmetic()
ODD = {"alpha": 0.3, "beta": -0.7}
EVERY = pytest.mark.parametrize("name", ACTIVATIONS)
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def row(name):
    """A row with values that no function has by default."""
    activation = ACTIVATIONS[name]
    values = (ODD[key] if getattr(activation, key) is not None else None for key in ODD)
    return activation.with_values(*values)


def arguments(dtype):
    """Both signs, zeros, subnormals, and the range in which nothing overflows."""
    tiny = np.finfo(dtype).smallest_subnormal
    return np.array([*np.linspace(-80, 80, 4001), 0.0, -0.0, tiny, -tiny], dtype)


@BOTH
@EVERY
def test_values_are_the_formulas(name, dtype):
    """Within 2 ulp, out of place and in place."""
    x = arguments(dtype)
    wanted = np.asarray(row(name)(MATH, x), dtype)
    function = in_place(row(name), np.empty_like(x))
    found, itself = np.empty_like(x), x.copy()

    function(x, found)
    function(itself, itself)

    assert ulp_distance(found, wanted).max() <= 2
    np.testing.assert_array_equal(found, itself)
    np.testing.assert_array_equal(x, arguments(dtype))


@BOTH
@EVERY
def test_nan_gives_nan(name, dtype):
    """And only where it stands, clipped or not."""
    x = np.array([1, np.nan, -1], dtype)
    for clip in (np.inf, 2.0):
        found = np.empty_like(x)
        in_place(row(name), np.empty_like(x), clip)(x, found)
        assert np.isnan(found).tolist() == [False, True, False]


@EVERY
def test_arguments_are_clipped_first(name):
    """As the formula of a bounded argument."""
    x = arguments(np.float64)
    found = np.empty_like(x)

    in_place(row(name), np.empty_like(x), 0.5)(x, found)

    np.testing.assert_allclose(found, row(name)(MATH, np.clip(x, -0.5, 0.5)), rtol=1e-15)


@BOTH
def test_sigmoid_keeps_its_negative_tail(dtype):
    """Down into the subnormals within 2 ulp of the arithmetic's, and few of the real value."""
    smallest = float(np.log(np.finfo(dtype).smallest_subnormal.astype(np.float64)))
    x = np.linspace(0, smallest - 2, 20001).astype(dtype)
    found = np.empty_like(x)

    with np.errstate(under="ignore", over="raise", invalid="raise"):
        in_place(ACTIVATIONS["Sigmoid"], np.empty_like(x))(x, found)
        wanted = MATH.sigmoid(x)

    assert ulp_distance(found, wanted).max() <= 2
    for k in range(0, len(x), 500):
        exact = 1 / (1 + mpmath.exp(-mpmath.mpf(float(x[k]))))
        spacing = float(np.spacing(dtype(float(exact))))
        assert abs(mpmath.mpf(float(found[k])) - exact) <= 10 * spacing


@BOTH
def test_sigmoid_is_one_or_nan_where_its_exponential_is_large(dtype):
    """A number too large is never a wrong number."""
    x = np.array([20, 40, 88, 89, 709, 710, 1e30, np.inf], dtype)
    found = np.empty_like(x)

    with np.errstate(all="ignore"):
        in_place(ACTIVATIONS["Sigmoid"], np.empty_like(x))(x, found)

    wanted = MATH.sigmoid(x)
    assert (np.isnan(found) | (np.abs(found - wanted) <= 2 * np.spacing(wanted))).all()
    assert np.isnan(found[-1])


@BOTH
@pytest.mark.parametrize("clip", [np.inf, 2.0])
def test_a_divisor_makes_a_sigmoid(dtype, clip):
    """Of the negative argument, within 3 ulp, in place as well; NaN stays."""
    x = np.append(arguments(dtype), dtype(np.nan))
    itself, found = x.copy(), np.empty_like(x)
    function = sigmoid_divisor(np.empty_like(x), clip)

    function(x, found)
    function(itself, itself)

    wanted = MATH.sigmoid(np.clip(-x, -clip, clip))
    assert ulp_distance(dtype(1) / found[:-1], wanted[:-1]).max() <= 3
    assert np.isnan(found[-1])
    np.testing.assert_array_equal(found, itself)


@BOTH
def test_a_divisor_that_is_too_large_is_raised(dtype):
    """By the flags of the processor, which NumPy looks at, wherever it is in an array."""
    for count in (1, 3, 8, 17, 100):
        for place in {0, count // 2, count - 1}:
            x = np.zeros(count, dtype)
            x[place] = 89 if dtype == np.float32 else 710
            with np.errstate(over="raise"), pytest.raises(FloatingPointError):
                sigmoid_divisor(np.empty_like(x))(x, x)
