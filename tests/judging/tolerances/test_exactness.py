"""Exact cases are those that no order of summation rounds."""

from dataclasses import replace

import numpy as np
import pytest
from recurrences import recurrence_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.judging.tolerances.exactness import exactness_problem
from rnncli.recurrence.recurrence import Result

LINEAR = {
    "RNN": {"activations": ["Relu"]},
    "GRU": {"activations": ["HardSigmoid", "Relu"], "activation_alpha": [0.25]},
    "LSTM": {"activations": ["HardSigmoid", "Relu", "Affine"], "activation_alpha": [0.25, 1.0]},
}


def dyadic(kind, dtype="float32", unit=4, **options):
    """Return a recurrence of integers over a power of two, one step forward."""
    found = recurrence_of(kind, dtype=dtype, **LINEAR[kind], **{"T": 1, **options})
    generator = np.random.default_rng(3)

    def small(values):
        return (generator.integers(-2, 3, values.shape) / unit).astype(values.dtype)

    return replace(
        found,
        X=small(found.X),
        W=small(found.W),
        R=small(found.R),
        Wb=small(found.Wb),
        Rb=small(found.Rb),
        initial=tuple(small(state) for state in found.initial),
    )


def golden_of(recurrence):
    """Evaluate it."""
    return backend_named("numpy").run(recurrence, Compute.FLOAT64)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", LINEAR)
def test_dyadic_cases_are_exact(kind, dtype):
    """Small integers over 4, through piecewise linear functions."""
    found = dyadic(kind, dtype)

    assert exactness_problem(found, golden_of(found)) == ""
    assert exactness_problem(replace(found, wants_Y=False), golden_of(found)) == ""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_one_step_of_whole_numbers_is_exact_in_sixteen_bits(dtype):
    """Few bits are enough for whole numbers."""
    found = dyadic("RNN", dtype, unit=1)

    assert exactness_problem(found, golden_of(found)) == ""


@pytest.mark.parametrize("kind", LINEAR)
def test_normal_numbers_are_not_exact(kind):
    """The sentence names the output and both values."""
    found = recurrence_of(kind, T=4, I=20, **LINEAR[kind])

    problem = exactness_problem(found, golden_of(found))

    assert "Y is not exact: summed in float32, first term first" in problem


def test_other_golden_is_not_exact():
    """One element off is found, in the last states too."""
    found = dyadic("LSTM")
    golden = golden_of(found)
    C = golden.last[1].copy()
    C[0, 1, 2] += 0.25

    problem = exactness_problem(found, Result(golden.Y, (golden.last[0], C)))

    assert "Y_c is not exact" in problem
    assert "[0, 1, 2]" in problem


def test_sums_that_another_order_would_round_are_not_exact():
    """2^24 + 1 - 2^24 is exact from one end only by luck; the terms' bits tell."""
    found = dyadic("RNN")
    X = np.zeros_like(found.X)
    X[..., 0] = 2.0**23
    found = replace(found, X=X, W=np.ones_like(found.W), R=np.zeros_like(found.R))
    found = replace(found, Wb=np.full_like(found.Wb, 1.0), Rb=np.full_like(found.Rb, 2.0**23 - 1))

    assert "another order of summation could round" in exactness_problem(found, golden_of(found))


def test_empty_is_exact():
    """Nothing to add up."""
    for sizes in ({"T": 0}, {"N": 0}):
        found = recurrence_of("GRU", **{"T": 2, **sizes})
        assert exactness_problem(found, golden_of(found)) == ""
