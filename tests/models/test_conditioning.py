"""A case that cannot tell right from wrong is refused."""

import numpy as np
import pytest

from rnncli.models.conditioning import conditioning_problem, limit_of
from rnncli.numerics import DTYPES


@pytest.mark.parametrize(
    ("wanted", "tolerance"),
    [
        ([1.0, -2.0], [0.0999, 0.0999]),
        ([], []),
        ([0.0, 0.0], [1e-7, 0.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([np.nan, 1.0], [0.0, 0.0499]),
        ([np.inf, 1.0], [0.0, 0.0499]),
        ([np.nan, np.inf], [0.0, 0.0]),
    ],
)
def test_fit(wanted, tolerance):
    """At most 5 % of the largest finite value; all zeros are compared with 1."""
    assert conditioning_problem(np.array(wanted), np.array(tolerance, np.float32)) == ""


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_coarse_dtypes_have_coarse_limits(dtype):
    """5 %, or some roundings where those are more; the sentence names the limit."""
    wanted = np.ones(2, DTYPES[dtype].numpy)
    limit = limit_of(wanted)

    assert limit == 0.05 if dtype != "bfloat16" else 0.05 < limit <= 0.25
    assert conditioning_problem(wanted, np.full(2, limit * 0.99)) == ""
    assert f"at most {limit:.0%}" in conditioning_problem(wanted, np.full(2, limit * 1.01))


@pytest.mark.parametrize(
    ("wanted", "tolerance", "sentence"),
    [
        ([[1.0, -2.0]], [[0.01, 0.12]], "tolerance 0.12 at [0, 1] is 6% of the largest value 2"),
        ([[1.0, -2.0]], [[np.nan, 0.01]], "element [0, 0]: its tolerance is not finite"),
        ([[1.0, -2.0]], [[0.1, np.inf]], "element [0, 1]: its tolerance is not finite"),
        ([[0.0]], [[0.06]], "6% of the largest value 1"),
        ([[np.inf, 1.0]], [[0.0, 0.06]], "6% of the largest value 1"),
        ([[1e-9]], [[1e-7]], "10000% of the largest value 1e-09"),
    ],
)
def test_unfit(wanted, tolerance, sentence):
    """The sentence says by how much and where; NaN is never a pass."""
    problem = conditioning_problem(np.array(wanted), np.array(tolerance, np.float32))

    assert sentence in problem
