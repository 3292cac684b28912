"""Claims about the sentence for an output that differs."""

import numpy as np
import pytest

from rnncli.judging.comparing.comparison import compare
from rnncli.reports.runs import difference


@pytest.mark.parametrize(
    ("got", "said"),
    [
        (1 + 2**-23, "Y: 1 of 1 differ (up to 1 ulp), worst at [0]: got 1.00000012, expected 1"),
        (-1.0, "Y: 1 of 1 differ, worst at [0]: got -1, expected 1"),
        (np.nan, "Y: 1 of 1 differ, worst at [0]: got nan, expected 1"),
    ],
)
def test_ulp_are_said_where_they_tell_something(got, said):
    """A change of sign is 2 billion units in the last place, which nobody can use."""
    (output,) = compare({"Y": np.float32([got])}, {"Y": np.float32([1])})

    assert f"{said} +- 0" == difference(output)
