"""Losses of precision: how many significant bits an implementation seems to compute or store.

Bugs of logic differ by what they compute, losses of precision by the size of their errors alone: in
nearly every step, and of one size in all cases, if it is measured in tolerances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.judging.explaining.single_steps import predicted
from rnncli.numerics.grids import ELEMENTS, FIXED, binary_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rnncli.judging.explaining.single_steps import Steps
    from rnncli.numerics import Array

# Least precision in bits of the dtype of a case: coarser dtypes have larger errors of their own.
FINE = 20
# An error of one tolerance is that of a dtype whose sums and functions are off by several ulp; the
# rms error of a state rounded to p bits is that of a tolerance for so many bits more.
# Measured: 6.2 and 6.6 where states have 10 and 12 bits; 6.9 weights of 11 bits, 6.4 sums of 11
# (vectors/core, every fourth case, 2026-11-28).
SPARE = 6.5
# Fewer bits than that are those of another function: errors of logic have the size of 0 to 4 bits.
FEWEST = 6
# Least number of cases that tell the size of errors; the cases may differ by so many bits, and the
# median of a case's errors from their rms.
CASES, SPREAD, EVEN = 3, 2.0, 4.0
# The part of elements that are what the name says.
NEARLY_ALL = 0.9
# Number of significant bits -> the dtypes that have it.
FORMATS = {8: "bfloat16", 11: "float16 or TensorFloat-32", 24: "float32"}


class Precision(NamedTuple):
    """The precision of a case, as the values of its Y and the errors of its steps show it."""

    own: int  # the significant bits of its dtype
    stored: int  # the most significant bits of an element of Y
    place: int  # all elements of Y are multiples of 2^-place
    size: float  # the significant bits that give errors of the size of those of its steps
    is_even: bool  # whether most elements have errors of about that size
    is_cut: bool  # whether nearly all errors of steps are toward zero, or nearly all downward
    is_late: bool | None  # whether first steps without an initial state are right; None: no such
    # how nearly all of Y is the expected one, to the stored bits: "rounded" or "truncated"; or ""
    at_end: str

    @classmethod
    def of(cls, steps: Steps, got: Array, wanted: Array) -> Precision | None:
        """Measure the Y of a case and its steps; None if they say nothing."""
        own = steps.recurrence.dtype.precision
        live = np.broadcast_to(steps.live[None, :, :, None], steps.margin.shape)
        margin = np.where(live & np.isfinite(steps.margin), steps.margin, 0.0)
        values = got[np.isfinite(got) & (got != 0)].astype(np.float64)
        if own < FINE or np.count_nonzero(margin) < ELEMENTS or len(values) < ELEMENTS:
            return None

        places, exponents = binary_places(values)
        stored = int((places + exponents).max())
        rms = float(np.sqrt(np.mean(margin[live] ** 2)))
        median = float(np.median(margin[live]))

        late, first = margin[:, 1:][live[:, 1:]], []
        errors = []
        parts = np.split(margin, np.cumsum([len(path.H) for path in steps.paths])[:-1])
        for path, part in zip(steps.paths, parts, strict=True):
            starts = ~(path.H[:, 0].any(axis=-1) | path.C0.any(axis=-1))
            first.append(part[:, 0][starts])
            right = predicted(path)
            is_off = part > rms / 4  # where both are finite
            off = np.subtract(path.H[:, 1:], right, where=is_off, out=np.zeros_like(right))
            errors.append(np.stack([np.sign(off), np.sign(off) * np.sign(right)]).reshape(2, -1))
        signs = np.concatenate(errors, axis=1)
        begin = np.concatenate([each.ravel() for each in first])
        is_late = None
        if begin.size and late.size:
            is_late = float(np.mean(begin**2)) < (rms / 8) ** 2

        if is_late:
            rms, median = float(np.sqrt(np.mean(late**2))), float(np.median(late))
        with np.errstate(all="ignore"):  # to so many significant bits
            fractions, powers = np.frexp(wanted.astype(np.float64))
            scaled = np.ldexp(fractions, stored)
            near = [
                how
                for how, function in (("rounded", np.rint), ("truncated", np.trunc))
                if np.mean(np.ldexp(function(scaled), powers - stored) == got) >= NEARLY_ALL
            ]
        return cls(
            *(own, stored, int(places.max())),
            own - float(np.log2(rms)) - SPARE,
            median * 2**EVEN > rms,
            bool(((signs < 0).sum(axis=1) >= NEARLY_ALL * (signs != 0).sum(axis=1)).any()),
            is_late,
            next(iter(near), ""),
        )


def precision_in_words(cases: Sequence[Precision]) -> str:
    """Return the loss of precision that cases show, or "" if they show none."""
    if not cases:
        return ""

    def nearly_all(facts: Iterable[bool]) -> bool:
        return sum(facts) >= NEARLY_ALL * len(cases)

    how = "truncated" if nearly_all(case.is_cut for case in cases) else "rounded"
    stored, places = ([getattr(case, name) for case in cases] for name in ("stored", "place"))
    own, few = min(case.own for case in cases), max(stored)
    if max(places) < FIXED and max(places) - min(places) <= 1 and min(stored) < few:
        return f"Y has multiples of 2^-{max(places)} alone, {how}: fixed point"
    if few < own and min(stored) >= few - 1:
        format_of = f" ({FORMATS[few]})" if few in FORMATS else ""
        what = "Y and the states of every step"
        for end in ("rounded", "truncated"):
            if nearly_all(case.at_end == end for case in cases):
                what, how = "the right Y", end
        return f"{what}, {how} to {few} significant bits{format_of}"
    sizes = np.array([case.size for case in cases])
    if len(cases) < CASES or not nearly_all(case.is_even for case in cases):
        return ""
    low, middle, high = np.quantile(sizes, [1 - NEARLY_ALL, 0.5, NEARLY_ALL])
    if high - low > SPREAD or middle < FEWEST:
        return ""
    late = [case.is_late for case in cases if case.is_late is not None]
    is_late = late and sum(late) >= NEARLY_ALL * len(late)
    where = ", but not at zero states: of R or of states" if is_late else ""
    near = [f", as of {name}" for bits, name in FORMATS.items() if abs(bits - middle) <= 1]
    size = f"near 2^-{middle:.0f} of the values{''.join(near)}"
    return f"steps have errors {size}{where}"
