"""The output of `rnncli bench`: implementations side by side, start-up and generation."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Self

import click

from rnncli.bench.durations import records
from rnncli.bench.measurement import Key, RatioChange, changes, document
from rnncli.errors import NothingSelected
from rnncli.files.atomic import write_text
from rnncli.files.described import jsonable
from rnncli.reports.contest_tables import draw_contest, draw_means, draw_nodes
from rnncli.reports.progress import progress_bar
from rnncli.reports.tables import (
    is_drawn,
    print_json_line,
    print_records,
    print_row,
    print_table,
)
from rnncli.talk.terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.bench.durations import GenerationTimes, StartupTimes
    from rnncli.bench.measurement import WorkloadMeasurements


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


class ContestPrinter:
    """Prints contests as they finish, and the progress of their turns.

    Args:
        turns: the number of turns of all contests.
        terms: the conditions of the measurement, for JSON and files.
        facts: facts about the machine, for JSON and files.
        as_json: whether to print JSON lines.
    """

    def __init__(
        self, turns: int, terms: Mapping[str, Any], facts: Mapping[str, str], *, as_json: bool
    ) -> None:
        self.progress = progress_bar(turns, "turns", still=True)
        self.terms, self.facts, self.as_json = terms, facts, as_json
        self.records: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self.progress.__enter__()
        if not self.as_json and not is_drawn():
            print_row(COLUMNS)
        return self

    def __exit__(self, *failure: object) -> None:
        self.progress.__exit__(None, None, None)

    def show(self, contest: WorkloadMeasurements) -> None:
        """Print one contest: data to standard output, failures to standard error."""
        records = contest.records()
        self.records += records
        with self.progress.paused():
            if self.as_json:
                for record in records:
                    print_json_line({**record, "terms": self.terms, "machine": self.facts})
            elif is_drawn():
                self._draw(contest.workload.description, records)
            else:
                for record in records:
                    print_row([record[name] for name in COLUMNS])
            sys.stdout.flush()
            _say_failures(records)

    def _draw(self, description: str, records: Sequence[Mapping[str, Any]]) -> None:
        first = records[0]
        draw_contest(f"{first['workload']} {first['operator']}  {description}", records)
        if told := _told(records):
            draw_nodes(told)

    def close(self, notes: Sequence[str]) -> None:
        """Show what all contests have in common, and the conditions they depend on."""
        contests = {(record["workload"], record["operator"]) for record in self.records}
        if is_drawn() and not self.as_json and len(contests) > 1:
            draw_means(self.records)
        elif not (is_drawn() or self.as_json):
            _print_nodes(self.records)
        if not self.as_json:
            say(_listed(self.facts))
            told = {r["implementation"]: r["about"] for r in self.records if r["about"]}
            for name, about in told.items():
                say(f"{name}: {_listed(about)}")
        for note in notes:
            say(f"note: {note}")

    def store(self, path: Path) -> None:
        """Write all measurements to a file.

        Raises:
            InvalidRequest: the disk refuses.
        """
        written = jsonable(document(self.terms, self.facts, self.records))
        write_text(path, json.dumps(written, indent=1, allow_nan=False) + "\n")


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _told(records: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, float]]:
    return {record["implementation"]: record["nodes"] for record in records if record["nodes"]}


def _say_failures(records: Sequence[Mapping[str, Any]]) -> None:
    for record in records:
        if record["message"]:
            where = f"{record['workload']} {record['operator']}: {record['implementation']}"
            say(f"{where} {record['status']}: {record['message']}")


def _print_nodes(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the times of nodes as a second table, after an empty line."""
    rows = [
        (record["workload"], name, operator, seconds)
        for record in records
        for name, nodes in _told([record]).items()
        for operator, seconds in nodes.items()
    ]
    if rows:
        click.echo()
        print_table(("workload", "implementation", "operator", "seconds"), rows)


def show_changes(
    stored: Mapping[Key, float | None],
    records: Sequence[Mapping[str, Any]],
    most: float | None,
    *,
    as_json: bool,
) -> bool:
    """Print how ratios to the first runtime changed since a stored run.

    Args:
        stored: the result of `read_stored`.
        records: the measurements of this run.
        most: the allowed slowdown of our backends in percent; None for no limit.
        as_json: whether to print JSON lines.

    Returns:
        Whether a backend slowed down by more than that.

    Raises:
        NothingSelected: no measurement is in both runs.
    """
    found = changes(stored, records)
    if not found:
        raise NothingSelected("--against: nothing in the file was measured in this run")
    if not (is_drawn() or as_json):
        click.echo()
    print_records(CHANGES, [_change(each) for each in found], as_json=as_json)
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


def _change(change: RatioChange) -> dict[str, Any]:
    return {
        "workload": change.workload,
        "operator": change.operator,
        "implementation": change.implementation,
        "ratio before": change.before,
        "ratio now": change.now,
        "percent longer": change.slowdown,
    }


def show_generation(
    measured: Sequence[GenerationTimes],
    file_seconds: float,
    surroundings: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    """Print a row for each method, then the conditions outside our code."""
    records = [each.record(measured[0]) for each in measured]
    if as_json:
        for record in records:
            print_json_line({**record, "file_seconds": file_seconds, "environment": surroundings})
        return
    print_table(tuple(records[0]), [tuple(record.values()) for record in records])
    say(f"a file of 200 bytes takes {1e6 * file_seconds:.0f} us here")
    for name, value in surroundings.items():
        say(f"note: {name}={value} is set")


def show_startup(measured: Sequence[StartupTimes], notes: Sequence[str], *, as_json: bool) -> None:
    """Print a row for each kind of process, then the conditions outside our code."""
    found = records(measured)
    print_records(tuple(found[0]), found, as_json=as_json)
    for note in notes:
        say(f"note: {note}")
