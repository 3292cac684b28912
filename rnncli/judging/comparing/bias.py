"""Bias: errors within every tolerance that lean one way over a whole pack.

Correct roundings err up as often as down. A kernel that truncates, or whose functions are always
too large, leans one way in nearly every call, although no element is beyond its tolerance.
docs/explanation/numerics.md derives the numbers here.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Annotated

import numpy as np

from rnncli.files.described import Described, Number, Whole
from rnncli.judging.comparing.verdict import MeanError
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rnncli.judging.comparing.margins import MeasuredAttempt

# The fewest calls of a dtype that a bias is judged by.
FEWEST_CALLS = 20
# The mean of sound kernels is so many standard errors from 0 at most, unless an option says more.
MOST_DEVIATIONS = 5
# Functions of sound kernels lean, too: in the median call by so much of the tolerance at most.
LARGEST_LEAN = 0.005
# For each entry of a `MeanError`, the name of its direction if negative, and if positive.
DIRECTIONS = {"outward": ("toward zero", "away from zero"), "upward": ("down", "up")}


class PackBias(Described):
    """How the errors of a pack's calls of one dtype lean."""

    dtype: Annotated[str, "element type of the outputs"]
    toward: Annotated[str, "the direction: toward zero, away from zero, down or up"]
    z: Annotated[Number, "mean over the calls, divided by its standard error; negative: down"]
    lean: Annotated[Number, "the median of the calls' mean error / tolerance"]
    calls: Annotated[Whole, "the number of calls that lean in this direction"]
    of: Annotated[Whole, "the number of calls"]

    def exceeds(self, deviations: float) -> bool:
        """Whether it is beyond so many standard errors, and beyond what sound functions cause."""
        lean = math.copysign(self.lean, self.lean * self.z)  # opposite to z if negative
        return abs(self.z) > deviations and lean > LARGEST_LEAN

    @property
    def sentence(self) -> str:
        """All of it in words."""
        return (
            f"biased: errors in {self.dtype} lean {self.toward}, by {abs(self.lean):.2g} of the"
            f" tolerance in the median call, in {self.calls} of {self.of} calls (z = {self.z:.1f})"
        )


def mean_error(found: MeasuredAttempt) -> MeanError | None:
    """Return the mean errors of a call's elements with a tolerance; None if no float has one."""
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
    for dtype, mean in means:
        by_dtype.setdefault(dtype, []).append(mean)
    for dtype, calls in by_dtype.items():
        if len(calls) < FEWEST_CALLS:
            continue
        for entry, names in DIRECTIONS.items():
            values: list[float] = [getattr(each, entry) for each in calls]
            middle = math.fsum(values) / len(values)
            squares = math.fsum((value - middle) ** 2 for value in values)
            error = math.sqrt(squares / (len(values) - 1) / len(values))
            z = middle / error if error else math.copysign(math.inf, middle) if middle else 0.0
            leaning = sum(value * middle > 0 for value in values)
            yield PackBias(dtype, names[middle > 0], z, median(values), leaning, len(values))
