"""The eleven activations, against 60 digits of mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.arithmetic import NumPyArithmetic

MATH = NumPyArithmetic()
mpmath.mp.dps = 60

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
PARAMETERS = [(None, None), (0.5, 0.25), (1.5, -0.75), (-0.5, 2.0)]
GRID = np.unique(
    np.concatenate(
        [
            sign * scale
            for sign in (1, -1)
            for scale in (
                np.linspace(0, 4, 161),
                np.geomspace(1e-12, 700, 97),
                [1e-30, 1e-38, 18.5, 44.4, 44.6, 87.5, 88.8, 700.0],
            )
        ]
    )
)


def exact(name, x, alpha, beta):
    """The formula's value for the stored x, rounded once to float64."""
    row = ACTIVATIONS[name].with_values(alpha, beta)
    a, b = (mpmath.mpf(0 if value is None else value) for value in (row.alpha, row.beta))
    return np.array([float(FORMULAS[name](mpmath.mpf(float(v)), a, b)) for v in x])


def scale_of(name, x, alpha, beta):
    """What an error is relative to: the value, or where a sum cancels, its larger term."""
    row = ACTIVATIONS[name].with_values(alpha, beta)
    wanted = np.abs(exact(name, x, alpha, beta))
    sums = name in {"Affine", "HardSigmoid"}
    return np.maximum(wanted, np.abs(row.alpha * x.astype(float))) if sums else wanted


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("alpha", "beta"), PARAMETERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_formula_holds_over_the_whole_range(name, alpha, beta, dtype):
    """To 4 roundings of the arithmetic's precision, deep negative tails included."""
    row = ACTIVATIONS[name].with_values(alpha, beta)
    info = np.finfo(dtype)
    x = GRID[np.abs(GRID) <= (80 if dtype is np.float32 else 700)].astype(dtype)

    with np.errstate(all="ignore"):
        found = row(MATH, x)

    assert found.dtype == dtype
    error = np.abs(found.astype(np.float64) - exact(name, x, alpha, beta))
    # Below the smallest normal number precision is lost, as it is in any rounding there.
    allowed = 4 * info.eps * scale_of(name, x, alpha, beta) + float(info.smallest_subnormal)
    assert (error <= allowed).all(), x[error > allowed]


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
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
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


def test_sigmoid_keeps_its_tail():
    """Near -700 the value is e^x, to the last bits; 0.5*tanh(x/2) + 0.5 has none left at -40."""
    x = np.array([-40.0, -100.0, -700.0])

    np.testing.assert_allclose(MATH.sigmoid(x), np.exp(x), rtol=1e-15)


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
