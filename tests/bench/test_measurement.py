"""Claims about what measurements mean, on numbers that are checked by hand."""

import math

import numpy as np
import pytest

from rnncli.bench.machine import MachineLimits
from rnncli.bench.measurement import Measurement, WorkloadMeasurements, largest_error
from rnncli.bench.workloads import Cost, Workload

WORKLOAD = Workload(
    "w", "LSTM", "T 1", None, {}, Cost(flops=6_000_000, moved=3000, held=80, given=30)
)


def contest(*measurements, statistic="median"):
    """A contest on a machine of 12 MFLOP/s and 12 KB/s."""
    return WorkloadMeasurements(WORKLOAD, MachineLimits(12e6, 12e3), measurements, statistic)


def measurement(name, seconds, status="ran"):
    """What took so many seconds in each round."""
    return Measurement("w", "LSTM", name, is_own=True, status=status, seconds=seconds)


def test_speed_is_the_time_of_the_first_divided():
    """The median stands for all rounds."""
    first, second = contest(
        measurement("a", [3.0, 1.0, 2.0]), measurement("b", [1.0, 9.0, 0.5])
    ).records()

    assert (first.seconds, first.ratio) == (2.0, 1.0)
    assert (second.seconds, second.ratio) == (1.0, 2.0)
    assert (second.lower_quartile, second.upper_quartile) == (0.75, 5.0)
    assert second.rounds == [1.0, 9.0, 0.5]


def test_the_fastest_round_can_stand_for_all():
    """Where others use the machine, too."""
    first, second = contest(
        measurement("a", [3.0, 1.0]), measurement("b", [4.0, 0.5]), statistic="fastest"
    ).records()

    assert (first.seconds, second.seconds, second.ratio) == (1.0, 0.5, 2.0)


def test_rates_are_held_against_the_limits():
    """6 MFLOP and 3000 bytes in a second."""
    (record,) = contest(measurement("a", [1.0])).records()

    assert (record.gflops, record.of_peak) == (0.006, 0.5)
    assert (record.gbytes, record.of_bandwidth) == (3e-6, 0.25)


def test_memory_is_held_against_inputs_outputs_and_projection():
    """What a process grew by, and the inputs, which were there before."""
    measured = measurement("a", [1.0])
    measured.memory = 70
    (record,) = contest(measured).records()

    assert record.memory_ratio == (30 + 70) / 80


def test_where_the_first_fails_ratios_refer_to_the_next_that_ran():
    """Which one it was is told."""
    first, second, third = contest(
        measurement("a", [], "refused"), measurement("b", [1.0]), measurement("c", [0.5])
    ).records()

    assert (first.ratio, second.ratio, third.ratio) == (None, 1.0, 2.0)
    assert third.baseline == "b"


def test_where_all_fail_there_is_no_ratio():
    """And no error."""
    (record,) = contest(measurement("a", [], "crashed")).records()

    assert (record.seconds, record.ratio) == (None, None)


def test_one_that_fails_after_some_rounds_has_no_time():
    """What it did before is worth nothing."""
    (record,) = contest(measurement("a", [1.0], "crashed")).records()

    assert (record.seconds, record.ratio, record.gflops) == (None, None, None)


@pytest.mark.parametrize(
    ("given", "wanted", "error"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.5),
        ([math.nan, math.inf, -math.inf], [math.nan, math.inf, -math.inf], 0.0),
        ([math.inf], [1.0], math.inf),
        ([-math.inf], [math.inf], math.inf),
        ([math.nan, 9.0], [1.0, 1.0], math.nan),
        ([], [], 0.0),
    ],
)
def test_the_error_is_the_largest_difference(given, wanted, error):
    """Equal infinities and NaN are right; NaN for a number is worse than any difference."""
    given, wanted = (np.array(each, np.float32) for each in (given, wanted))
    fine = {"Y": wanted, "Z": np.zeros(1)}

    found = largest_error({"Y": given, "Z": np.zeros(1)}, fine)

    assert found == error or (math.isnan(found) and math.isnan(error))
