"""The eleven activations, against 60 digits of mpmath, over all that float64 and float32 hold."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import ACTIVATIONS

MATH = NumPyArithmetic()

# The specification's text, a line each, over exact numbers.
FORMULAS = {
    "Relu": lambda x, _a, _b: max(mpmath.mpf(0), x),
    "Tanh": lambda x, _a, _b: mpmath.tanh(x),
    "Sigmoid": lambda x, _a, _b: 1 / (1 + mpmath.exp(-x)),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, _b: x if x >= 0 else a * x,
    "ThresholdedRelu": lambda x, a, _b: x if x >= a else mpmath.mpf(0),
    "ScaledTanh": lambda x, a, b: a * mpmath.tanh(b * x),
    "HardSigmoid": lambda x, a, b: min(max(a * x + b, mpmath.mpf(0)), mpmath.mpf(1)),
    "Elu": lambda x, a, _b: x if x >= 0 else a * mpmath.expm1(x),
    "Softsign": lambda x, _a, _b: x / (1 + abs(x)),
    "Softplus": lambda x, _a, _b: mpmath.log1p(mpmath.exp(x)),
}
PARAMETERS = [(None, None), (0.5, 0.25), (1.5, -0.75), (-0.5, 2.0), (0.0, 0.0)]

# How many functions and how many of + - * / stand between x and the value. NumPy keeps its
# vectorised functions within 4 ulp; an operation is within half of one. No formula magnifies the
# errors of its parts: where terms of a sum cancel, `scale_of` is what the error is relative to.
PARTS = {
    "Relu": (0, 0),
    "Tanh": (1, 0),
    "Sigmoid": (1, 2),
    "Affine": (0, 2),
    "LeakyRelu": (0, 1),
    "ThresholdedRelu": (0, 0),
    "ScaledTanh": (1, 2),
    "HardSigmoid": (0, 2),
    "Elu": (1, 1),
    "Softsign": (0, 2),
    "Softplus": (2, 1),
}
FLOATS = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def grid(dtype):
    """Both signs: near 0, moderate, around every cliff, and to the ends of the dtype's range."""
    info = np.finfo(dtype)
    magnitudes = [
        np.linspace(0, 4, 161),
        np.geomspace(1e-12, 800, 193),
        # e^x rounds to nothing beside 1, is subnormal, underflows, overflows: float32, float64.
        np.concatenate([np.arange(16, 20, 0.125), np.arange(36, 46, 0.25)]),
        np.concatenate([np.arange(86, 106, 0.25), np.arange(707, 747, 0.25)]),
        np.geomspace(float(info.smallest_normal), 1e-12, 33),
        float(info.smallest_subnormal) * np.array([1, 2, 3, 5, 1001]),
        np.geomspace(800, float(info.max) / 2, 33),
        [float(info.max)],
    ]
    positive = np.concatenate(magnitudes).astype(dtype)
    return np.unique(np.concatenate([positive, -positive]))


def parameters_of(row):
    """Alpha and beta, 0 for what a function does not take."""
    return row.alpha or 0.0, row.beta or 0.0


def exact(row, x):
    """The formula's values for the stored x, each rounded once to float64."""
    with mpmath.workdps(60):
        alpha, beta = map(mpmath.mpf, parameters_of(row))
        return np.array([float(FORMULAS[row.name](mpmath.mpf(v), alpha, beta)) for v in x.tolist()])


def ulps_of(name):
    """How far the roundings of its parts may take a value."""
    functions, operations = PARTS[name]
    return 4 * functions + 0.5 * operations


def ulp_of(size, dtype):
    """An ulp is at most eps times the value's size, and at least the smallest subnormal."""
    info = np.finfo(dtype)
    return np.maximum(float(info.eps) * size, float(info.smallest_subnormal))


def scale_of(row, x, wanted):
    """What an error is relative to: the value, or where a sum cancels, its larger term."""
    if row.name not in {"Affine", "HardSigmoid"}:
        return np.abs(wanted)
    return np.maximum(np.abs(wanted), np.abs(row.alpha * x.astype(np.float64)))


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("alpha", "beta"), PARAMETERS)
@FLOATS
def test_formula_holds_over_the_whole_range(name, alpha, beta, dtype):
    """Within the roundings of its parts, subnormals, negative tails and huge numbers included."""
    row = ACTIVATIONS[name].with_values(alpha, beta)
    x = grid(dtype)

    with np.errstate(all="ignore"):
        found = row(MATH, x)
        wanted = exact(row, x)
        # Beyond the largest number the right answer is infinity.
        agrees = found == wanted.astype(dtype)
        error = np.abs(found.astype(np.float64) - wanted)
        # The last half is the rounding of `wanted` itself.
        agrees |= error <= (ulps_of(name) + 0.5) * ulp_of(scale_of(row, x, wanted), dtype)

    assert found.dtype == dtype
    assert agrees.all(), x[~agrees]


@pytest.mark.parametrize("name", ACTIVATIONS)
@FLOATS
def test_activations_never_decrease(name, dtype):
    """With their defaults, and but for the roundings of their parts: branches meet, tails end."""
    with np.errstate(all="ignore"):
        values = ACTIVATIONS[name](MATH, grid(dtype))
        fall = values[:-1] - values[1:]

    assert (fall <= ulps_of(name) * ulp_of(np.abs(values[:-1]), dtype)).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
@FLOATS
def test_both_zeros_have_one_value(name, dtype):
    """f(-0) = f(0), the formula's value at 0."""
    row = ACTIVATIONS[name]
    found = row(MATH, np.array([0.0, -0.0], dtype))
    (wanted,) = exact(row, np.zeros(1)).astype(dtype)

    np.testing.assert_allclose(found, [wanted, wanted], rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_nan_stays_nan(name):
    """No activation turns NaN into a number, Relu and ThresholdedRelu included."""
    assert np.isnan(ACTIVATIONS[name](MATH, np.array([np.nan]))).all()
    for readings in ({"threshold-tie": "gt"}, {"threshold-tie": "ge"}):
        assert np.isnan(ACTIVATIONS[name].under(readings)(MATH, np.array([np.nan]))).all()


INFINITIES = {
    "Relu": (np.inf, 0),
    "Tanh": (1, -1),
    "Sigmoid": (1, 0),
    "Affine": (np.inf, -np.inf),
    "LeakyRelu": (np.inf, -np.inf),
    "ThresholdedRelu": (np.inf, 0),
    "ScaledTanh": (1, -1),
    "HardSigmoid": (1, 0),
    "Elu": (np.inf, -1),
    "Softsign": (np.nan, np.nan),  # inf/(1 + inf), as IEEE evaluates the formula
    "Softplus": (np.inf, 0),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@FLOATS
def test_infinities(name, dtype):
    """The limits of the formulas; Softsign is what IEEE makes of its quotient."""
    with np.errstate(invalid="ignore"):
        found = ACTIVATIONS[name](MATH, np.array([np.inf, -np.inf], dtype))

    np.testing.assert_array_equal(found, np.array(INFINITIES[name], dtype))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_argument_is_left_alone(name):
    """The pre-activation is still there afterwards."""
    x = np.linspace(-3, 3, 7)
    before = x.copy()

    ACTIVATIONS[name](MATH, x)

    assert np.array_equal(x, before)


def test_threshold_tie_is_a_reading():
    """At x = alpha: ge keeps x, gt gives 0; nothing else differs."""
    row = ACTIVATIONS["ThresholdedRelu"].with_values(0.5, None)
    x = np.array([0.25, 0.5, 0.75])

    assert row.under({"threshold-tie": "ge"})(MATH, x).tolist() == [0, 0.5, 0.75]
    assert row.under({"threshold-tie": "gt"})(MATH, x).tolist() == [0, 0, 0.75]


def test_defaults_are_float32_values():
    """ONNX stores alpha 0.01 as a float32; exactly that number is used."""
    defaults = [v for row in ACTIVATIONS.values() for v in (row.alpha, row.beta) if v is not None]

    assert all(float(np.float32(value)) == value for value in defaults)
    assert ACTIVATIONS["LeakyRelu"].alpha != 0.01
    assert (ACTIVATIONS["HardSigmoid"].alpha, ACTIVATIONS["HardSigmoid"].beta) == (
        float(np.float32(0.2)),
        0.5,
    )


def test_infinite_slope_does_not_spoil_the_other_side():
    """LeakyRelu and Elu with infinite alpha are x for x >= 0: the other branch is not mixed in."""
    for name in ("LeakyRelu", "Elu"):
        row = ACTIVATIONS[name].with_values(np.inf, None)
        with np.errstate(invalid="ignore"):
            assert row(MATH, np.array([0.0, 2.0])).tolist() == [0.0, 2.0]
