"""The tables of `rnncli bench` on a terminal."""

from __future__ import annotations

import shutil
import statistics
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.reports.tables import draw_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NAME, BAR = "", " "
COLUMNS = (
    *(NAME, "time", "quartiles", "speed", BAR, "GFLOP/s", "of peak", "GB/s", "of copying"),
    *("error", "MiB"),
)
# Columns omitted on narrow terminals, in this order.
SPARE = ("of copying", "GB/s", "quartiles", "of peak", "GFLOP/s", BAR)
PADDING = 3

LENGTH = 16
EIGHTHS = " ▏▎▍▌▋▊▉"
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
MIB = 1 << 20


def draw_contest(title: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Draw the measurements of one workload, a line for each implementation."""
    fastest = max((record["ratio"] or 0 for record in records), default=0)
    rows = [dict(zip(COLUMNS, _cells(record, fastest), strict=True)) for record in records]
    names = _fitting(rows)
    _draw([names, *([row[name] for name in names] for row in rows)], title)


def _cells(record: Mapping[str, Any], fastest: float) -> tuple[str, ...]:
    name, ratio = record["implementation"], record["ratio"]
    if record["seconds"] is None:
        return (name, record["status"], *[""] * (len(COLUMNS) - 2))
    return (
        name,
        duration(record["seconds"]),
        _range(record["lower_quartile"], record["upper_quartile"]),
        _written(ratio, ".2f"),
        bar(ratio / fastest) if ratio else "",
        _written(record["gflops"], ".3g"),
        _written(record["of_peak"], ".0%"),
        _written(record["gbytes"], ".3g"),
        _written(record["of_bandwidth"], ".0%"),
        _written(record["error"], ".1e"),
        _written(None if record["memory"] is None else record["memory"] / MIB, ".1f"),
    )


def _fitting(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the columns that fit the terminal; all of them if the output is not a terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    names = list(COLUMNS)
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) + PADDING for name in names}
    for name in SPARE:
        if sum(widths[each] for each in names) > width:
            names.remove(name)
    return names


def draw_nodes(times: dict[str, Mapping[str, float]]) -> None:
    """Draw the times of a model's operators for each implementation that measures them.

    Args:
        times: implementation -> operator -> seconds; the first is the reference.
    """
    first, *others = times
    names = dict.fromkeys(name for who in reversed(times) for name in times[who])
    heads = [NAME, first, "share", *(cell for who in others for cell in (who, "share", "times"))]
    rows = [[name, *_time_and_share(times[first], name)] for name in names]
    for row in rows:
        for who in others:
            row += [*_time_and_share(times[who], row[0]), _times(times[who], times[first], row[0])]
    _draw([heads, *rows])


def _time_and_share(nodes: Mapping[str, float], name: str) -> tuple[str, str]:
    if name not in nodes:
        return "", ""
    return duration(nodes[name]), f"{nodes[name] / sum(nodes.values()):.0%}"


def _times(nodes: Mapping[str, float], reference: Mapping[str, float], name: str) -> str:
    """Return an operator's time as a multiple of the reference's."""
    known = name in nodes and reference.get(name)
    return f"{nodes[name] / reference[name]:.1f}" if known else ""


def draw_means(records: Sequence[Mapping[str, Any]]) -> None:
    """Draw geometric means over all workloads: against the first runtime, and the best of each."""
    best: dict[Any, float] = {}
    for record in records:
        if not record["is_own"] and record["ratio"]:
            key = _workload(record)
            best[key] = max(best.get(key, 0), record["ratio"])
    means = {
        name: _means([r for r in records if r["implementation"] == name and r["ratio"]], best)
        for name in dict.fromkeys(r["implementation"] for r in records if r["ratio"])
    }
    fastest = max((mean.speed for mean in means.values()), default=0)
    rows = [
        [name, str(mean.workloads), f"{mean.speed:.2f}", bar(mean.speed / fastest)]
        + [_written(each, ".2f") for each in (mean.least, mean.most, mean.against_best)]
        for name, mean in means.items()
    ]
    heads = [NAME, "workloads", "speed", BAR, "least", "most", "against the best runtime"]
    _draw([heads, *rows], "geometric means")


class _Means(NamedTuple):
    """The geometric means of one implementation."""

    workloads: int
    speed: float
    least: float
    most: float
    against_best: float | None


def _means(records: Sequence[Mapping[str, Any]], best: Mapping[Any, float]) -> _Means:
    ratios = [record["ratio"] for record in records]
    rivals = [r["ratio"] / best[_workload(r)] for r in records if _workload(r) in best]
    mean = statistics.geometric_mean
    return _Means(
        len(ratios), mean(ratios), min(ratios), max(ratios), mean(rivals) if rivals else None
    )


def _workload(record: Mapping[str, Any]) -> tuple[str, str, str]:
    return record["workload"], record["operator"], record["sizes"]


def _draw(table: Sequence[Sequence[str]], title: str = "") -> None:
    """Draw rows below their heading, with numbers aligned to the right."""
    aligned = list(zip(*map(_aligned, zip(*table, strict=True)), strict=True))
    draw_table(aligned[0], aligned[1:], title)


def _aligned(column: Sequence[str]) -> Iterable[str]:
    width = max(map(len, column))
    return column if column[0] in (NAME, BAR) else [cell.rjust(width) for cell in column]


def _written(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def duration(seconds: float) -> str:
    """Return a time with three digits and a unit."""
    size, unit = next(((s, u) for s, u in UNITS if seconds >= s), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def _range(low: float, high: float) -> str:
    """Return two times, with one unit if they share it."""
    (a, unit), (b, other) = duration(low).split(), duration(high).split()
    return f"{a} - {b} {other}" if unit == other else f"{a} {unit} - {b} {other}"


def bar(share: float) -> str:
    """Draw a fraction of the longest bar, in eighths of a character."""
    whole, rest = divmod(round(8 * LENGTH * share), 8)
    return "█" * whole + EIGHTHS[rest].strip()
