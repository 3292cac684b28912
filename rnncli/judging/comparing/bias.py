"""Bias: errors within every tolerance that lean one way over a whole pack.

Correct roundings err up as often as down. A kernel that truncates, or whose functions are always
too large, leans one way in nearly every call, although no element is beyond its tolerance.
docs/results/tolerances.md derives the numbers here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np

from rnncli.files.described import AtLeast0, Described, Number, Whole
from rnncli.judging.comparing.verdict import MeanError
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rnncli.judging.comparing.margins import MeasuredAttempt

# The fewest calls of a dtype that a bias is judged by.
FEWEST_CALLS = 20
# Of the calls that lean most, and of those that lean least, one in so many counts as the next one.
CLIPPED = 20
# Functions of sound kernels lean, too: by so much of the tolerance in the mean over the calls.
OF_FUNCTIONS = 0.004
# The mean of sound kernels exceeds that by so many standard errors at most, unless an option says
# more.
MOST_DEVIATIONS = 5
# For each entry of a `MeanError`, the name of its direction if negative, and if positive.
DIRECTIONS = {"outward": ("toward zero", "away from zero"), "upward": ("down", "up")}


class PackBias(Described):
    """How the errors of a pack's calls of one dtype lean."""

    dtype: Annotated[str, "element type of the outputs"]
    toward: Annotated[str, "the direction: toward zero, away from zero, down or up"]
    mean: Annotated[Number, "of the calls' mean error / tolerance, without outliers"]
    z: Annotated[Number, "the mean divided by its standard error"]
    excess: Annotated[AtLeast0, "standard errors by which it exceeds what sound functions cause"]
    calls: Annotated[Whole, "the number of calls that lean in this direction"]
    of: Annotated[Whole, "the number of calls"]

    @property
    def sentence(self) -> str:
        """All of it in words."""
        return (
            f"biased: errors in {self.dtype} lean {self.toward}, by {abs(self.mean):.2g} of the"
            f" tolerance in the mean, in {self.calls} of {self.of} calls (z = {self.z:.1f},"
            f" {self.excess:.1f} of it beyond what sound functions cause)"
        )


def mean_error(found: MeasuredAttempt) -> MeanError | None:
    """Return the mean errors of a call's elements with a tolerance; None if no float has one.

    Where products are sums of integers, tolerances are those of functions alone, which may lean by
    more of them; such calls have none.
    """
    if found.vector.recurrence.quantiser is not None:
        return None
    outward, upward = [], []
    for output in found.outputs.values():
        if dtype_of(output.wanted).is_float and output.got is not None:
            wanted, tolerance = output.wanted.astype(np.float64), output.tolerance
            judged = np.isfinite(wanted) & np.isfinite(tolerance) & (tolerance > 0)
            off = output.got.astype(np.float64)[judged] - wanted[judged]
            upward.append(off / tolerance[judged])
            outward.append(upward[-1] * np.sign(wanted[judged]))
    count = sum(map(len, upward))
    if not count:
        return None
    return MeanError(*(math.fsum(np.concatenate(each)) / count for each in (outward, upward)))


def biases_of(means: Iterable[tuple[str, MeanError]]) -> Iterator[PackBias]:
    """Yield how the calls of each dtype lean, if they are enough: outward, then upward.

    Args:
        means: the dtype and the mean errors of each call.
    """
    by_dtype: dict[str, list[MeanError]] = {}
    for dtype, each in means:
        by_dtype.setdefault(dtype, []).append(each)
    for dtype, calls in by_dtype.items():
        if len(calls) < FEWEST_CALLS:
            continue
        for entry, names in DIRECTIONS.items():
            values = sorted(getattr(each, entry) for each in calls)
            most = len(values) // CLIPPED
            low, high = values[most], values[-1 - most]
            clipped = [min(max(value, low), high) for value in values]
            mean = math.fsum(clipped) / len(clipped)
            squares = math.fsum((value - mean) ** 2 for value in clipped)
            error = math.sqrt(squares / (len(clipped) - 1) / len(clipped))
            beyond = max(abs(mean) - OF_FUNCTIONS, 0.0)
            # Without a spread, what is not 0 is beyond all deviations.
            z, excess = (
                value / error if error else math.copysign(math.inf, value) if value else 0.0
                for value in (mean, beyond)
            )
            leaning = sum(value * mean > 0 for value in values)
            yield PackBias(dtype, names[mean > 0], mean, z, excess, leaning, len(values))
