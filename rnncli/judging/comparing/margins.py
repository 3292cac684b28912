"""Margins: the errors of an output's elements relative to their tolerances.

An attempt at a vector is measured once: its verdict and the explanation read the same margins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.numerics import dtype_of, round_to, ulp_distance
from rnncli.numerics.profiles import PROFILES
from rnncli.packs.vector import BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile
    from rnncli.packs.vector import Answers, Vector

# Upper edges of the bins of margins; the last bin has the margins beyond 1000.
MARGIN_EDGES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 3.0, 10.0, 100.0, 1000.0)
_EDGES = np.array(MARGIN_EDGES)
# The most rows and columns of an error map.
LIMIT = 64
# So many steps of each case have an error over time.
MOST_STEPS = 256
# The rank of an output that has all steps.
STEPWISE = 4
DTYPE_IS = "dtype is "
MISSING = "is missing"


class Errors(NamedTuple):
    """Elementwise errors in float64, in the output's shape."""

    absolute: Array  # |got - wanted|; infinite if only one is NaN or an infinity is not matched
    margin: Array  # absolute / tolerance; 0 if equal, infinite if unequal and the tolerance is 0


@dataclass(frozen=True, eq=False)
class MeasuredOutput:
    """An output beside the expected one."""

    name: str  # its name
    got: Array | None  # the values of the implementation; None if the output is missing
    wanted: Array  # the expected values
    tolerance: Array  # the absolute tolerance of each element
    max_ulp: float = 0.0  # an alternative tolerance in units in the last place

    @cached_property
    def problem(self) -> str:
        """Why it cannot be compared: it is missing, or has another dtype or shape; or "".

        Of numbers in another floating-point type, it also says whether they are right in its own.
        """
        if self.got is None:
            return MISSING
        problem, dtype = problem_of(self.got, self.wanted), dtype_of(self.wanted)
        is_cast = problem and dtype.is_float and self.got.dtype.kind == "f"
        if not is_cast or self.got.shape != self.wanted.shape:
            return problem
        cast = round_to(self.got, dtype)
        differs = (errors_of(cast, self.wanted, self.tolerance, self.max_ulp).margin > 1).any()
        return f"{problem}; as {dtype}, {'values differ' if differs else 'all values are right'}"

    @cached_property
    def errors(self) -> Errors:
        """The errors of an output without a problem."""
        assert self.got is not None
        return errors_of(self.got, self.wanted, self.tolerance, self.max_ulp)

    @property
    def width(self) -> Array:
        """The larger of the two tolerances of each element, as an absolute one, rounded up."""
        if not self.max_ulp:
            return self.tolerance
        from rnncli.judging.tolerances.tolerance import ulp_width

        return np.maximum(self.tolerance, ulp_width(self.max_ulp, self.wanted))

    @property
    def differs(self) -> bool:
        """Whether it has a problem, or an element beyond its tolerance."""
        return bool(self.problem) or bool((self.errors.margin > 1).any())


@dataclass(frozen=True, eq=False)
class MeasuredAttempt:
    """The outputs of an implementation beside the answers of a vector."""

    vector: Vector  # the vector; it must run
    got: Tensors  # the outputs of the implementation
    rule: Rule = PACK_RULE  # the tolerances
    # `READING=CHOICE` of the alternative whose answers they are compared with, or "" for the
    # vector's own
    reading: str = ""

    @cached_property
    def outputs(self) -> Mapping[str, MeasuredOutput]:
        """The requested outputs by name."""
        return measured_outputs(self.got, self.rule.answers(self.vector, self.reading), self.rule)

    @property
    def profile(self) -> Profile:
        """The profile by which its steps are judged.

        That of its tolerances, but `standard` for an exact one, since an implementation whose
        states are already wrong cannot be exact, and for one unknown to this version.
        """
        standard = PROFILES["standard"]
        profile = PROFILES.get(self.rule.profile or self.vector.record.profile, standard)
        return standard if profile.is_exact else profile

    @property
    def extra(self) -> list[str]:
        """The names of outputs that were not requested."""
        return [name for name in self.got if name not in self.outputs]

    @property
    def is_complete(self) -> bool:
        """Whether every requested output can be compared: none is missing or of another shape."""
        return not any(output.problem for output in self.outputs.values())

    @property
    def agrees(self) -> bool:
        """Whether all outputs agree, and there are no others."""
        return not (self.extra or any(output.differs for output in self.outputs.values()))

    def under(self, reading: str) -> MeasuredAttempt:
        """Return the same outputs beside the answers under another reading."""
        return MeasuredAttempt(self.vector, self.got, self.rule, reading)


def measured_outputs(got: Tensors, answers: Answers, rule: Rule) -> dict[str, MeasuredOutput]:
    """Return the outputs that have answers, in the order of those."""
    return {
        name: MeasuredOutput(name, got.get(name), wanted, answers.tolerances[name], rule.ulps(name))
        for name, wanted in answers.outputs.items()
    }


def problem_of(got: Array, wanted: Array) -> str:
    """Return why an output cannot be compared, its size, its dtype or its shape, or ""."""
    if got.dtype == BYTES:
        return f"has {got.nbytes} bytes, wanted {wanted.nbytes}"
    if got.dtype != wanted.dtype and (dtype := _dtype(got)) != _dtype(wanted):
        return f"{DTYPE_IS}{dtype}, wanted {_dtype(wanted)}"
    if got.shape != wanted.shape:
        return f"shape is {list(got.shape)}, wanted {list(wanted.shape)}"
    return ""


def _dtype(values: Array) -> str:
    try:
        return dtype_of(values).name
    except InvalidRequest:  # not a dtype of tensors
        return str(values.dtype)


def errors_of(got: Array, wanted: Array, tolerance: Array, max_ulp: float = 0.0) -> Errors:
    """Measure an output of the right shape and dtype.

    An element is within its tolerance exactly when its margin is at most 1: no quotient of two
    different numbers rounds to 1. Differences are taken in float64, into which every narrower float
    widens exactly. A tolerance that is not finite allows every finite value. If a tolerance in
    units in the last place is given, the margin is the smaller of the two.
    """
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        absolute = np.asarray(np.abs(g - w))  # numbers of outputs without axes are arrays, too
        margin = np.asarray(absolute / tolerance)
        unsettled = np.isnan(margin)
        if unsettled.any():  # 0/0, NaN and infinities: 0 if the values match, else infinite
            g, w, off = g[unsettled], w[unsettled], absolute[unsettled]
            equal = (g == w) | (np.isnan(g) & np.isnan(w))
            finite = np.isfinite(g) & np.isfinite(w)
            margin[unsettled] = np.where(equal | finite, 0.0, np.inf)
            absolute[unsettled] = np.where(equal, 0.0, np.where(finite, off, np.inf))
        if max_ulp:
            margin = np.minimum(margin, ulp_distance(got, wanted) / max_ulp)
    return Errors(absolute, margin)


def histogram(margin: Array) -> tuple[int, ...]:
    """Count the margins up to each of `MARGIN_EDGES`, and those beyond."""
    bins = _EDGES.searchsorted(margin.reshape(-1))
    return tuple(np.bincount(bins, minlength=len(_EDGES) + 1).tolist())


def error_map(found: MeasuredAttempt) -> tuple[tuple[float, ...], ...] | None:
    """Return the largest margin at each step and hidden unit of the first output that differs.

    Returns:
        The largest margin over the batch, by (row, unit). Rows of Y, which comes first, are all
        steps of the first direction in the order of time, then those of the second; the last states
        have a row for each direction. More than 64 rows or units are merged, with the largest
        margin of each group. None if no output that could be compared differs.
    """
    for output in found.outputs.values():
        if not output.problem and output.differs:
            margin = found.vector.node.canonical(output.name, output.errors.margin)
            by_row = margin.max(axis=-2)  # [T, D, H] or [D, H]
            if by_row.ndim > 2:
                by_row = by_row.swapaxes(0, 1).reshape(-1, margin.shape[-1])
            return _condensed(np.asarray(by_row))
    return None


def error_over_time(found: MeasuredAttempt) -> tuple[tuple[float, ...], ...]:
    """Return the largest margin at each step, by direction, of the output that has all steps.

    More than 256 steps are put together. () where no such output was asked for, or it could not be
    compared.
    """
    for output in found.outputs.values():
        if output.wanted.ndim == STEPWISE and output.wanted.size and not output.problem:
            margin = found.vector.node.canonical(output.name, output.errors.margin)
            by_step = margin.max(axis=(2, 3)).T  # of [T, D, N, H]
            return _condensed(by_step, MOST_STEPS)
    return ()


def _condensed(values: Array, limit: int = LIMIT) -> tuple[tuple[float, ...], ...]:
    """Return a table with at most so many rows and columns: the largest of those put together."""
    for axis in (0, 1):
        size = values.shape[axis]
        if size > limit:
            starts = np.arange(limit) * size // limit
            values = np.maximum.reduceat(values, starts, axis=axis)
    return tuple(map(tuple, values.tolist()))
