"""The output of `rnncli bench`: implementations side by side, start-up and generation."""

from __future__ import annotations

import json
import statistics
import sys
from typing import TYPE_CHECKING, Any, Self

import click

from rnncli.bench.durations import records
from rnncli.bench.measurement import Key, changes, document
from rnncli.errors import NothingSelected
from rnncli.files.atomic import write_text
from rnncli.files.described import jsonable
from rnncli.files.seals import JSON
from rnncli.reports.progress import progress_bar
from rnncli.reports.tables import (
    draw_table,
    is_drawn,
    print_json_line,
    print_records,
    print_row,
    print_table,
    terminal_width,
)
from rnncli.talk.terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.bench.durations import GenerationTimes, StartupTimes
    from rnncli.bench.measurement import MeasurementRecord, WorkloadMeasurements


# The columns in a pipe; long entries of the record are in the JSON only.
COLUMNS = (
    *("workload", "operator", "implementation", "status", "seconds"),
    *("lower_quartile", "upper_quartile", "ratio", "gflops", "of_peak", "gbytes", "of_bandwidth"),
    *("error", "memory", "memory_ratio"),
)
CHANGES = (
    *("workload", "operator", "implementation"),
    *("ratio before", "ratio now", "percent longer"),
)


NAME, BAR = "", " "
DRAWN = (
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


class ContestPrinter:
    """Prints contests as they finish, and the progress of their turns."""

    def __init__(
        self, turns: int, terms: Mapping[str, Any], facts: Mapping[str, str], *, as_json: bool
    ) -> None:
        self.progress = progress_bar(turns, "turns", still=True)
        self.terms, self.facts, self.as_json = terms, facts, as_json
        self.records: list[MeasurementRecord] = []

    def __enter__(self) -> Self:
        self.progress.__enter__()
        if not self.as_json and not is_drawn():
            print_row(COLUMNS)
        return self

    def __exit__(self, *failure: object) -> None:
        self.progress.__exit__(*failure)

    def show(self, contest: WorkloadMeasurements) -> None:
        """Print one contest: data to standard output, failures to standard error."""
        records = contest.records()
        self.records += records
        with self.progress.paused():
            if self.as_json:
                for record in records:
                    print_json_line(
                        {**record._asdict(), "terms": self.terms, "machine": self.facts}
                    )
            elif is_drawn():
                named = f"{records[0].workload} {records[0].operator}"
                draw_contest(f"{named}  {contest.workload.description}", records)
                if told := _told(records):
                    draw_nodes(told)
            else:
                for record in records:
                    print_row([getattr(record, name) for name in COLUMNS])
            sys.stdout.flush()
            for record in records:
                if record.message:
                    where = f"{record.workload} {record.operator}: {record.implementation}"
                    say(f"{where} {record.status}: {record.message}")

    def close(self, notes: Sequence[str]) -> None:
        """Show what all contests have in common, and the conditions they depend on."""
        contests = {(record.workload, record.operator) for record in self.records}
        if is_drawn() and not self.as_json and len(contests) > 1:
            draw_means(self.records)
        elif not (is_drawn() or self.as_json):
            # The times of nodes are a second table, after an empty line.
            rows = [
                (record.workload, name, operator, seconds)
                for record in self.records
                for name, nodes in _told([record]).items()
                for operator, seconds in nodes.items()
            ]
            if rows:
                click.echo()
                print_table(("workload", "implementation", "operator", "seconds"), rows)
        if not self.as_json:
            say(_listed(self.facts))
            told = {r.implementation: r.about for r in self.records if r.about}
            for name, about in told.items():
                say(f"{name}: {_listed(about)}")
        for note in notes:
            say(f"note: {note}")

    def store(self, path: Path) -> None:
        """Write all measurements to a file."""
        written = jsonable(document(self.terms, self.facts, self.records))
        write_text(path, json.dumps(written, indent=1, allow_nan=False) + "\n", JSON)


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _told(records: Sequence[MeasurementRecord]) -> dict[str, Mapping[str, float]]:
    return {record.implementation: record.nodes for record in records if record.nodes}


def show_changes(
    stored: Mapping[Key, float | None],
    records: Sequence[MeasurementRecord],
    most: float | None,
    *,
    as_json: bool,
) -> bool:
    """Print how ratios to the first runtime changed since the run that `read_stored` read.

    Returns:
        Whether one of our backends slowed down by more than `most` percent.

    Raises:
        NothingSelected: no measurement is in both runs.
    """
    found = changes(stored, records)
    if not found:
        raise NothingSelected("--against: nothing in the file was measured in this run")
    if not (is_drawn() or as_json):
        click.echo()
    rows = [
        (*(each.workload, each.operator, each.implementation, each.before, each.now), each.slowdown)
        for each in found
    ]
    print_records(CHANGES, [dict(zip(CHANGES, row, strict=True)) for row in rows], as_json=as_json)
    if most is None:
        return False
    judged = [each for each in found if each.is_own and each.before is not None]
    if not judged:
        raise NothingSelected(
            "--max-slowdown: no backend of rnncli ran in the file and in this run"
        )
    slower = [each for each in judged if each.exceeds(most)]
    for each in slower:
        what = f"{each.workload} {each.operator} {each.implementation}"
        how = "no longer runs" if each.slowdown is None else f"takes {each.slowdown:.1f} % longer"
        say(f"FAIL {what} {how}")
    return bool(slower)


def show_generation(
    measured: Sequence[GenerationTimes],
    file_seconds: float,
    surroundings: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    """Print a row for each method, then the conditions outside our code."""
    records = [each.record(measured[0]) for each in measured]
    around = {"file_seconds": file_seconds, "environment": surroundings} if as_json else {}
    print_records(tuple(records[0]), [{**each, **around} for each in records], as_json=as_json)
    if as_json:
        return
    say(f"a file of 200 bytes takes {1e6 * file_seconds:.0f} us here")
    for name, value in surroundings.items():
        say(f"note: {name}={value} is set")


def show_startup(measured: Sequence[StartupTimes], notes: Sequence[str], *, as_json: bool) -> None:
    """Print a row for each kind of process, then the conditions outside our code."""
    found = records(measured)
    print_records(tuple(found[0]), found, as_json=as_json)
    for note in notes:
        say(f"note: {note}")


def draw_contest(title: str, records: Sequence[MeasurementRecord]) -> None:
    """Draw the measurements of one workload, a line for each implementation."""
    fastest = max((record.ratio or 0 for record in records), default=0)
    rows = []
    for record in records:
        name, ratio, memory = record.implementation, record.ratio, record.memory
        if record.seconds is None:
            rows.append(dict.fromkeys(DRAWN, "") | {NAME: name, "time": record.status})
            continue
        # Two quartiles with one unit if they share it.
        quartiles = map(duration, (record.lower_quartile or 0.0, record.upper_quartile or 0.0))
        (low, unit), (high, other) = (quartile.split() for quartile in quartiles)
        cells = (
            name,
            duration(record.seconds),
            f"{low} - {high} {other}" if unit == other else f"{low} {unit} - {high} {other}",
            _written(ratio, ".2f"),
            bar(ratio / fastest) if ratio else "",
            _written(record.gflops, ".3g"),
            _written(record.of_peak, ".0%"),
            _written(record.gbytes, ".3g"),
            _written(record.of_bandwidth, ".0%"),
            _written(record.error, ".1e"),
            _written(None if memory is None else memory / MIB, ".1f"),
        )
        rows.append(dict(zip(DRAWN, cells, strict=True)))
    names = _fitting(rows)
    _draw([names, *([row[name] for name in names] for row in rows)], title)


def _fitting(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the columns that fit the terminal; all of them if the output is not a terminal."""
    names = list(DRAWN)
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) + PADDING for name in names}
    for name in SPARE:
        if sum(widths[each] for each in names) > terminal_width():
            names.remove(name)
    return names


def draw_nodes(times: dict[str, Mapping[str, float]]) -> None:
    """Draw the times of operators by implementation, of which the first is the reference."""
    first, *others = times
    names = dict.fromkeys(name for who in reversed(times) for name in times[who])
    heads = [NAME, first, "share", *(cell for who in others for cell in (who, "share", "times"))]
    rows = [[name, *_time_and_share(times[first], name)] for name in names]
    for name, row in zip(names, rows, strict=True):
        for who in others:
            row.extend(_time_and_share(times[who], name))
            # As a multiple of the reference's.
            known = name in times[who] and times[first].get(name)
            row.append(f"{times[who][name] / times[first][name]:.1f}" if known else "")
    _draw([heads, *rows])


def _time_and_share(nodes: Mapping[str, float], name: str) -> tuple[str, str]:
    if name not in nodes:
        return "", ""
    return duration(nodes[name]), f"{nodes[name] / sum(nodes.values()):.0%}"


def draw_means(records: Sequence[MeasurementRecord]) -> None:
    """Draw geometric means over all workloads: against the first runtime, and the best of each."""
    best: dict[tuple[str, str, str], float] = {}
    measured: dict[str, list[tuple[tuple[str, str, str], float]]] = {}
    for record in records:
        if record.ratio:
            workload = (record.workload, record.operator, record.sizes)
            measured.setdefault(record.implementation, []).append((workload, record.ratio))
            if not record.is_own:
                best[workload] = max(best.get(workload, 0), record.ratio)
    mean = statistics.geometric_mean
    speeds = {name: mean(ratio for _, ratio in some) for name, some in measured.items()}
    rows = []
    for name, some in measured.items():
        ratios = [ratio for _, ratio in some]
        rivals = [ratio / best[workload] for workload, ratio in some if workload in best]
        others = [min(ratios), max(ratios), mean(rivals) if rivals else None]
        speed = [f"{speeds[name]:.2f}", bar(speeds[name] / max(speeds.values()))]
        rows.append([name, str(len(ratios)), *speed, *(_written(each, ".2f") for each in others)])
    heads = [NAME, "workloads", "speed", BAR, "least", "most", "against the best runtime"]
    _draw([heads, *rows], "geometric means")


def _draw(table: Sequence[Sequence[str]], title: str = "") -> None:
    """Draw rows below their heading, with numbers aligned to the right."""
    columns = []
    for column in zip(*table, strict=True):
        width = 0 if column[0] in (NAME, BAR) else max(map(len, column))
        columns.append([cell.rjust(width) for cell in column])
    heading, *rows = zip(*columns, strict=True)
    draw_table(heading, rows, title)


def _written(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def duration(seconds: float) -> str:
    """Return a time with three digits and a unit."""
    size, unit = next(((s, u) for s, u in UNITS if seconds >= s), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def bar(share: float) -> str:
    """Draw a fraction of the longest bar, in eighths of a character."""
    whole, rest = divmod(round(8 * LENGTH * share), 8)
    return "█" * whole + EIGHTHS[rest].strip()
