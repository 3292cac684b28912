"""Statistics of one tensor."""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from rnncli.running.request import TensorSummary, summarise


def test_statistics_are_of_finite_elements():
    """NaN and infinity are counted, and spoil neither minimum nor mean."""
    values = np.array([[1.0, np.nan], [np.inf, -3.0]], np.float32)

    assert summarise("Y", values) == TensorSummary(
        "Y", "float32", (2, 2), min=-3.0, max=1.0, mean=-1.0, nan=1, inf=1
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.zeros((0, 3)), (None, None, None, 0, 0)),
        (np.array(7), (7.0, 7.0, 7.0, 0, 0)),
        (np.array([True, False]), (0.0, 1.0, 0.5, 0, 0)),
        (np.array(["a"], object), (None, None, None, 0, 0)),
        (np.array([1j]), (None, None, None, 0, 0)),
        (np.array([np.nan, np.inf]), (None, None, None, 1, 1)),
        (np.array([1, -np.inf], ml_dtypes.bfloat16), (1.0, 1.0, 1.0, 0, 1)),
        (np.array([-8, 7], ml_dtypes.int4), (-8.0, 7.0, -0.5, 0, 0)),
    ],
    ids=["empty", "scalar", "bool", "string", "complex", "no finite", "bfloat16", "int4"],
)
def test_every_kind_of_tensor_has_a_summary(values, expected):
    """Empty, scalar, text, 16-bit and 4-bit tensors included."""
    summary = summarise("t", values)

    assert (summary.min, summary.max, summary.mean, summary.nan, summary.inf) == expected


def test_a_large_tensor_is_looked_at_in_pieces():
    """What that takes is a fraction of it; the statistics are those of all elements."""
    values = np.random.default_rng(1).standard_normal((16, 7, 1 << 15), np.float32)[:, ::2]
    values[0, 0, :3] = np.nan, np.inf, -np.inf
    finite = values[np.isfinite(values)].astype(np.float64)

    tracemalloc.start()
    summary = summarise("Y", values)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < values.nbytes / 4
    assert (summary.min, summary.max) == (finite.min(), finite.max())
    assert summary.mean == pytest.approx(finite.mean(), rel=1e-9)
    assert (summary.nan, summary.inf) == (1, 2)
