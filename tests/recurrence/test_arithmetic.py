"""NumPy's arithmetic where the obvious formula would overflow, cancel or lose NaN."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.cells import Arithmetic

MATH = NumPyArithmetic()
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
OPERATIONS = [name for name in vars(Arithmetic) if not name.startswith("_")]


def ulps_off(found, formula, x):
    """How far each value is from the formula at 60 digits, in units of its own last place."""
    with mpmath.workdps(60):
        exact = [formula(mpmath.mpf(v)) for v in x.tolist()]
        # spacing() is the smallest subnormal where there are no normal numbers.
        return np.array(
            [
                float(abs(mpmath.mpf(f) - e) / mpmath.mpf(float(np.spacing(found.dtype.type(e)))))
                for f, e in zip(found.tolist(), exact, strict=True)
            ]
        )


def tail(dtype):
    """From 0 down to where e^x is less than the smallest subnormal number."""
    smallest = float(np.log(np.finfo(dtype).smallest_subnormal.astype(np.float64)))
    return np.linspace(0, smallest - 2, 2001).astype(dtype)


def test_every_operation_is_there():
    """Each name of the protocol, and it can be called."""
    assert {"tanh", "sigmoid", "softplus", "expm1", "zero_below"} <= set(OPERATIONS)
    assert all(callable(getattr(MATH, name)) for name in OPERATIONS)


@DTYPES
def test_sigmoid_keeps_its_negative_tail(dtype):
    """Few ulp down into the subnormals, as e^x has them; 0.5*tanh(x/2) + 0.5 has none at -40."""
    x = tail(dtype)

    with np.errstate(under="ignore"):
        found = MATH.sigmoid(x)

    assert found.dtype == dtype
    # e^x within 4 ulp, a sum and a quotient within a half each; 2 in place of 1 ulp where the
    # quotient falls below a power of two that e^x is above.
    assert ulps_off(found, lambda v: 1 / (1 + mpmath.exp(-v)), x).max() <= 10
    subnormal = (found > 0) & (found < np.finfo(dtype).smallest_normal)
    assert subnormal.any()
    assert found[-1] == 0


@DTYPES
def test_softplus_keeps_its_negative_tail(dtype):
    """Few ulp down into the subnormals; log(1 + e^x) is 0 from where e^x vanishes beside 1."""
    x = tail(dtype)

    with np.errstate(under="ignore"):
        found = MATH.softplus(x)

    assert found.dtype == dtype
    # Two functions within 4 ulp each, doubled at powers of two.
    assert ulps_off(found, lambda v: mpmath.log1p(mpmath.exp(v)), x).max() <= 18


@DTYPES
@pytest.mark.parametrize("operation", ["sigmoid", "softplus", "tanh"])
def test_nothing_overflows(dtype, operation):
    """No warning of overflow or of an invalid operation from one end of the range to the other."""
    largest = np.finfo(dtype).max
    x = np.array([-np.inf, -largest, -1000, -89, 0, 89, 1000, largest, np.inf], dtype)

    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        found = getattr(MATH, operation)(x)

    assert not np.isnan(found).any()


@DTYPES
def test_softplus_of_large_numbers_is_the_number(dtype):
    """log(1 + e^x) would be infinite above 88.7 in float32 and 709 in float64."""
    x = np.array([100, 1000, 1e30], dtype)

    assert MATH.softplus(x).tolist() == x.tolist()


@DTYPES
@pytest.mark.parametrize("operation", ["tanh", "sigmoid", "softplus", "expm1", "absolute"])
def test_nan_gives_nan(dtype, operation):
    """And only where it stands."""
    found = getattr(MATH, operation)(np.array([1, np.nan, -1], dtype))

    assert np.isnan(found).tolist() == [False, True, False]


@DTYPES
@pytest.mark.parametrize("operation", ["maximum", "minimum"])
@pytest.mark.parametrize("bound", [0, 1, -np.inf, np.inf])
def test_bounds_let_nan_through(dtype, operation, bound):
    """A comparison with NaN is false, but neither bound replaces it; the dtype stays."""
    found = getattr(MATH, operation)(np.array([np.nan, 2], dtype), bound)

    assert found.dtype == dtype
    assert np.isnan(found).tolist() == [True, False]


@DTYPES
@pytest.mark.parametrize(
    ("inclusive", "wanted"), [(False, [0, 0.5, 0.75, 0, np.inf]), (True, [0, 0, 0.75, 0, np.inf])]
)
def test_zero_below(dtype, inclusive, wanted):
    """0 below the bound, at it as asked, x above it; NaN is neither below nor above: it stays."""
    x = np.array([0.25, 0.5, 0.75, -np.inf, np.inf, np.nan], dtype)

    found = MATH.zero_below(x, 0.5, inclusive=inclusive)

    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.array([*wanted, np.nan], dtype))


@DTYPES
def test_nonnegative_else(dtype):
    """X from either zero up, what was computed otherwise below; NaN comes from there as NaN."""
    x = np.array([-np.inf, -2, -0.0, 0, 3, np.inf, np.nan], dtype)

    found = MATH.nonnegative_else(x, 10 * x)

    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.array([-np.inf, -20, 0, 0, 3, np.inf, np.nan], dtype))


@DTYPES
def test_nonnegative_else_does_not_mix(dtype):
    """The value not chosen may be infinite or NaN."""
    x = np.array([1, -1], dtype)

    assert MATH.nonnegative_else(x, np.array([np.nan, 5], dtype)).tolist() == [1, 5]
    assert MATH.nonnegative_else(x, np.array([np.inf, -np.inf], dtype)).tolist() == [1, -np.inf]


@DTYPES
def test_blend_is_the_specifications_line(dtype):
    """(1 - 0.25)*8 + 0.25*4; an infinite state times a gate that is shut is NaN, as IEEE says."""
    z, h, H = (np.array(values, dtype) for values in ([0.25, 0], [8, 1], [4, np.inf]))

    with np.errstate(invalid="ignore"):
        found = MATH.blend(z, h, H)

    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.array([7, np.nan], dtype))
