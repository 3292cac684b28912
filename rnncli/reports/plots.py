"""Plots of a verification: the margin of every case, and errors over time."""

from __future__ import annotations

import io
import math
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.files.atomic import write_bytes
from rnncli.files.seals import MARKUP, PDF, PNG
from rnncli.judging.comparing.verdict import MEANINGS, Verdict
from rnncli.judging.report import largest_margin
from rnncli.talk.words import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from rnncli.judging.report import JudgedCase, VerificationReport

# Legible on white and on black; shapes differ as well, so red and green need not be distinguished.
COLOURS = {
    Verdict.PASS: ("#2a9d4a", "o"),
    Verdict.ACCEPTABLE: ("#4c8fd0", "s"),
    Verdict.DIFFERS: ("#e0483e", "X"),
    Verdict.STALE: ("#b5529b", "D"),
    Verdict.UNEXERCISED: ("#8a8a2a", "^"),
    Verdict.ACCEPTED: ("#d07a00", "P"),
}
NO_VALUES = ("#8a8a8a", "|")
# The range of margins: exact elements are drawn below the smallest, infinite ones above the
# largest.
SMALLEST, LARGEST = 1e-3, 1e6
EXACT, INFINITE, UNCOMPARED = SMALLEST / 5, LARGEST * 5, LARGEST * 50
TICKS = {
    EXACT: "exact",
    **{10.0**k: f"{10.0**k:g}" if k < 4 else f"$10^{k}$" for k in range(-3, 6)},
    LARGEST: r"$\geq 10^6$",
    INFINITE: "infinite",
    UNCOMPARED: "no values",
}
# The least upper end of an axis of errors.
LEAST_TOP = 10.0
# The number of lines with a name; others are grey.
LINE_COLOURS = ("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C8")
MOST_LINES = len(LINE_COLOURS)
LONGEST_NAME, LONGEST_LABEL = 34, 24
# The number of steps up to which a line has a mark at each.
MOST_MARKS = 40
# The fraction of cases from which an operator has its own label.
WIDE = 0.06

# From Matplotlib's own defaults on: a `matplotlibrc` of the working folder changes no picture.
STYLE: list[Any] = [
    "default",
    {
        "svg.fonttype": "none",  # text stays text, in the page's font
        "svg.hashsalt": "rnncli",  # the same bytes each time
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
    },
]


class Line(NamedTuple):
    """A drawn line of errors over time."""

    steps: tuple[int, ...]  # the step of each error; of a run of steps, the first
    errors: tuple[float, ...]  # in units of the tolerance, within the limits of the axis


def plot_verification(report: VerificationReport, cases: Sequence[str] = ()) -> Figure:
    """Draw the margin of every case, and the errors over time of some.

    Args:
        report: the verification.
        cases: ids of the cases whose errors are drawn; by default the failing ones, in directions
            that go wrong, or without such those with the largest margins.

    Raises:
        rnncli.errors.InvalidRequest: an id is unknown, or no case was judged.
    """
    if not report.cases:
        raise InvalidRequest("no case was judged: there is nothing to draw")
    some_fail = any(map(_goes_wrong, report.cases))
    lines = _lines(_chosen(report, cases), least=1.0 if some_fail and not cases else -math.inf)
    which = "cases that fail" if some_fail else "cases with the largest margins"
    with style.context(STYLE):
        figure = NotebookFigure(figsize=(10, 7 if lines else 4), layout="constrained")
        figure.suptitle(_legible(report.title, 110), fontsize=11)
        axes = figure.subplots(2 if lines else 1, squeeze=False)[:, 0]
        _draw_margins(axes[0], report.cases)
        if lines:
            axes[1].set_title("cases that were chosen" if cases else which, fontsize=10)
            _draw_errors(axes[1], lines)
    return figure


SEALS = {"png": PNG, "svg": MARKUP, "pdf": PDF}


class NotebookFigure(Figure):
    """A figure that notebooks show with any backend."""

    def _repr_png_(self) -> bytes:
        return image(self, "png")


def write_plot(path: Path, report: VerificationReport) -> None:
    """Write the plot of a report as an image of the kind named by the path's suffix."""
    kind = path.suffix[1:].lower()
    write_bytes(path, image(plot_verification(report), kind), SEALS[kind])


def image(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a png, svg or pdf, the same for the same figure."""
    stream = io.BytesIO()
    date = {"svg": "Date", "pdf": "CreationDate"}.get(kind)
    with style.context(STYLE):
        figure.savefig(stream, format=kind, dpi=120, metadata={date: None} if date else {})
    return stream.getvalue()


def _chosen(report: VerificationReport, ids: Sequence[str]) -> list[JudgedCase]:
    """Return the cases whose errors are drawn, the worst first."""
    known = {case.id: case for case in report.cases}
    for name in ids:
        if name not in known:
            raise InvalidRequest(f"no case '{name}'{did_you_mean(name, known)}")
    drawable = [case for case in report.cases if case.error_over_time]
    failing = [case for case in drawable if _goes_wrong(case)]
    by_margin = sorted(
        failing or drawable, key=lambda case: -(largest_margin(case.details.outputs) or 0.0)
    )
    return [known[name] for name in ids] or (by_margin if failing else by_margin[:MOST_LINES])


def _goes_wrong(case: JudgedCase) -> bool:
    """Whether a case fails and shows it over time, not in its last states alone."""
    return case.details.fails and any(_exceeds(errors, 1) for errors in case.error_over_time)


def _exceeds(errors: Sequence[float], least: float) -> bool:
    """Whether any error is above a limit, or not a number."""
    return not all(error <= least for error in errors)


def _lines(cases: Iterable[JudgedCase], least: float) -> dict[Line, list[str]]:
    """Return the lines of some cases, one per direction, with the cases they belong to.

    Directions without an error above `least` are left out.
    """
    lines: dict[Line, list[str]] = {}
    for case in cases:
        directions = case.error_over_time
        steps = case.record.sizes.get("seq_length", 0)
        for number, errors in enumerate(directions):
            if not _exceeds(errors, least):
                continue
            count = max(steps, len(errors))
            at = tuple(k * count // len(errors) for k in range(len(errors)))
            word = f", {'reverse' if number else 'forward'}" if len(directions) > 1 else ""
            line = Line(at, tuple(map(_drawn, errors)))
            name = _legible(case.id, LONGEST_NAME)
            lines.setdefault(line, []).append(f"{name}{word}")
    return lines


def _draw_margins(axes: Axes, cases: Sequence[JudgedCase]) -> None:
    """Draw a mark for each case, those of an operator side by side, with versions in order."""
    types = list(dict.fromkeys(_operator(case)[0] for case in cases))
    ordered = sorted(cases, key=lambda c: (types.index(_operator(c)[0]), _operator(c)[1]))
    heights = [_drawn(largest_margin(case.details.outputs)) for case in ordered]
    for verdict in MEANINGS:
        places = [k for k, case in enumerate(ordered) if case.verdict is verdict]
        if places:
            colour, marker = COLOURS.get(verdict, NO_VALUES)
            axes.scatter(
                places,
                [heights[k] for k in places],
                s=20,
                c=colour,
                marker=marker,
                linewidths=0.8,
                label=f"{verdict} ({len(places)})",
            )
    _scale(axes, heights)
    axes.set_title("all cases", fontsize=10)
    axes.set_ylabel("margin = error / tolerance")
    axes.set_xlim(-1, len(cases))
    _name_operators(axes, ordered)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)


def _operator(case: JudgedCase) -> tuple[str, int]:
    name, _, version = str(case.record.operator).rpartition("-")
    return (name, int(version)) if version.isascii() and version.isdecimal() else (version, 0)


def _drawn(margin: float | None) -> float:
    """Return a margin's position on the axis."""
    if margin is None:
        return UNCOMPARED
    if math.isnan(margin) or math.isinf(margin):
        return INFINITE
    return min(max(margin, SMALLEST), LARGEST) if margin > 0 else EXACT


def _name_operators(axes: Axes, cases: Sequence[JudgedCase]) -> None:
    """Label versions of operators below their cases, and operators below those."""
    operators = [*map(_operator, cases)]
    types = [name for name, _ in operators]
    # Neighbouring versions with few cases share a label.
    counts, few = Counter(operators), WIDE * len(cases)
    versions: list[str] = []
    for _, alike in groupby(operators, lambda each: (each[0], counts[each] < few or each)):
        numbers = [version for _, version in alike]
        ends = dict.fromkeys((numbers[0], numbers[-1]))
        versions += [" to ".join(f"{end or ''}" for end in ends)] * len(numbers)

    for labels, is_minor in ((versions, False), (types, True)):
        ticks: dict[float, str] = {}
        start = 0
        for (_, label), run in groupby(zip(types, labels, strict=True)):
            length = len([*run])
            ticks[start + (length - 1) / 2] = _legible(label, LONGEST_LABEL)
            start += length
            if start < len(cases):
                axes.axvline(start - 0.5, color="#8a8a8a", lw=0.8 if is_minor else 0.3)
        axes.set_xticks([*ticks], [*ticks.values()], minor=is_minor)
    axes.xaxis.remove_overlapping_locs = False
    axes.tick_params(axis="x", length=0, labelsize=8)
    axes.tick_params(axis="x", which="minor", length=0, pad=16)


def _draw_errors(axes: Axes, lines: Mapping[Line, Sequence[str]]) -> None:
    """Draw errors over time; the first few lines are named, the others grey below them."""
    every = [*lines.items()]
    others = every[MOST_LINES:]
    for number, (line, _) in enumerate(others):
        label = "" if number else counted(sum(len(names) for _, names in others), "other line")
        axes.plot(*line, color="#8a8a8a", lw=0.6, alpha=0.6, label=label or None)
    for colour, (line, names) in zip(LINE_COLOURS, every, strict=False):
        marker = "o" if len(line.steps) <= MOST_MARKS else ""
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        axes.plot(*line, color=colour, marker=marker, ms=3, lw=1.2, label=f"{names[0]}{more}")
    _scale(axes, [error for line in lines for error in line.errors])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("step t")
    axes.set_ylabel("largest error / tolerance")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)


def _scale(axes: Axes, heights: Iterable[float]) -> None:
    """Scale an axis of margins, from exact to the largest value."""
    top = max(LEAST_TOP, *heights)
    ticks = {at: text for at, text in TICKS.items() if at <= top}
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_ylim(EXACT / 2, top * 3)
    axes.axhline(1, linestyle="--", linewidth=1, color="#8a8a8a", zorder=0)


def _legible(text: str, longest: int) -> str:
    """Return shortened text that Matplotlib does not interpret."""
    line = one_line(text)
    kept = line if len(line) <= longest else f"{line[: longest - 3]}..."
    return kept.replace("$", r"\$")
