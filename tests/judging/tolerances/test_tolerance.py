"""One rtol and one atol accept all that the tolerances accept, and little more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from rnncli.judging.tolerances.tolerance import scalar_equivalents


def scalar_equivalent(wanted, tolerance):
    """Return (rtol, atol) of one output."""
    return scalar_equivalents(wanted[None], tolerance[None])[0]


def sets(seed, count, kind):
    """Make outputs and tolerances of several kinds."""
    generator = np.random.default_rng(seed)
    wanted = generator.normal(0, 1, count).astype(np.float32)
    tolerance = {
        "relative": 1e-6 * np.abs(wanted),
        "absolute": np.full(count, 3e-7),
        "both": 1e-7 + 2e-6 * np.abs(wanted),
        "falling": 1e-6 / (1 + np.abs(wanted)),
        "random": generator.uniform(0, 1e-6, count),
        "tiny": generator.uniform(0, 1e-44, count),
        "crowded": generator.uniform(0, 1e-6, count),
    }[kind]
    if kind == "crowded":
        wanted = (1 + generator.integers(0, 4, count) * 2.0**-50) * generator.choice([1, 1e30])
    return wanted, tolerance.astype(np.float32)


KINDS = ["relative", "absolute", "both", "falling", "random", "tiny", "crowded"]


@examples(400)
@given(st.integers(0, 2**32 - 1), st.integers(1, 50), st.sampled_from(KINDS))
def test_never_below_the_tolerance(seed, count, kind):
    """For every element, in float64."""
    wanted, tolerance = sets(seed, count, kind)

    rtol, atol = scalar_equivalent(wanted, tolerance)

    assert rtol >= 0
    assert atol >= 0
    assert (atol + rtol * np.abs(wanted.astype(np.float64)) >= tolerance).all()


@examples(150)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from(KINDS[:-2]))
def test_no_pair_through_two_points_is_tighter(seed, count, kind):
    """But for three digits, the sum over the elements is the least of all feasible lines."""
    wanted, tolerance = sets(seed, count, kind)
    x, t = np.abs(wanted.astype(np.float64)), tolerance.astype(np.float64)
    slopes = [0.0, float(np.max(t / x))]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes += [s for s in ((t[:, None] - t) / (x[:, None] - x)).ravel() if 0 <= s < 1]
    best = min(max(0.0, float(np.max(t - slope * x))) * count + slope * x.sum() for slope in slopes)

    rtol, atol = scalar_equivalent(wanted, tolerance)

    assert atol * count + rtol * x.sum() <= best * 1.011


@pytest.mark.parametrize(
    ("wanted", "tolerance", "pair"),
    [
        ([], [], (0.0, 0.0)),
        ([0.0, 1.0], [0.0, 0.0], (0.0, 0.0)),
        ([0.0, 1.0], [0.25, 0.25], (0.0, 0.25)),
        ([0.0, 1.0, 2.0], [0.0, 0.5, 1.0], (0.5, 0.0)),
        ([0.0, 1.0, 2.0], [0.25, 0.5, 0.75], (0.25, 0.25)),
        ([0.0, 1.0, 2.0], [1.0, 0.5, 0.0], (0.0, 1.0)),
        ([np.nan, np.inf, 1.0], [0.0, 0.0, 0.5], (0.0, 0.5)),
        ([1.0], [0.12345], (0.0, 0.124)),
        ([1.0], [2.0**-149], (0.0, 1.41e-45)),
    ],
)
def test_by_hand(wanted, tolerance, pair):
    """Small enough to check: rtol, then atol."""
    found = scalar_equivalent(np.array(wanted), np.array(tolerance, np.float32))

    assert found == pytest.approx(pair, rel=1e-9)


def test_order_and_shape_change_nothing():
    """The same pairs in another order give the same numbers."""
    wanted, tolerance = sets(0, 48, "random")
    order = np.random.default_rng(1).permutation(48)

    assert scalar_equivalent(wanted, tolerance) == scalar_equivalent(
        wanted[order].reshape(2, 24), tolerance[order].reshape(2, 24)
    )


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.sampled_from(KINDS))
def test_outputs_of_a_stack_have_the_numbers_they_have_alone(seed, count, kind):
    """Infinities and exact ones among them."""
    found = [sets(seed + k, count, kind) for k in range(4)]
    wanted, tolerance = (np.stack(each) for each in zip(*found, strict=True))
    wanted[1, ::3], tolerance[1, ::3] = np.inf, 0
    tolerance[2] = 0

    together = scalar_equivalents(wanted, tolerance)

    assert together == [scalar_equivalent(*pair) for pair in zip(wanted, tolerance, strict=True)]
