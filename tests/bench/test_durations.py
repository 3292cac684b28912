"""Claims about how long commands take, on numbers that are checked by hand."""

import pytest

from rnncli.bench.durations import RoundTimes


@pytest.mark.parametrize(
    ("seconds", "median"), [([2.0], 2.0), ([9.0, 1.0, 3.0], 3.0), ([1.0, 2.0, 4.0, 9.0], 3.0)]
)
def test_the_median_stands_for_all_rounds(seconds, median):
    """One slow round changes nothing but the extreme."""
    assert RoundTimes(seconds=seconds).spread == {
        "seconds": median,
        "fastest": min(seconds),
        "slowest": max(seconds),
    }
