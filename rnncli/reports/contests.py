"""What `rnncli bench` shows of implementations that were measured against each other."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Self

import click

from rnncli.benchmarks.store import Change, changes, document
from rnncli.errors import NothingSelected
from rnncli.formats.atomic import atomic_file
from rnncli.reports.progress import progress_bar
from rnncli.reports.tables import (
    draw_table,
    is_drawn,
    jsonable,
    print_json_line,
    print_records,
    print_row,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.benchmarks.machine import Limits
    from rnncli.benchmarks.measurement import Contest

# Columns in a pipe are entries of the record; what is long is in the JSON only.
COLUMNS = (
    *("workload", "operator", "implementation", "status", "seconds"),
    *("lower_quartile", "upper_quartile", "ratio", "gflops", "of_peak", "gbytes", "of_bandwidth"),
    *("error", "memory", "least_memory"),
)
CHANGES = (
    *("workload", "operator", "implementation"),
    *("ratio before", "ratio now", "percent longer"),
)
DRAWN = (
    "time",
    "quartiles",
    "speed",
    "",
    "GFLOP/s",
    "peak",
    "GB/s",
    "memory speed",
    "error",
    "MiB",
)
BAR = 16
EIGHTHS = " ▏▎▍▌▋▊▉"
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


class ContestPrinter:
    """Prints contests as they end, and how far the turns have got.

    Args:
        turns: of all contests together.
        terms: under which is measured, for JSON and files.
        facts: of the machine, likewise.
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

    def show(self, contest: Contest) -> None:
        """Print one contest: data to standard output, why something failed to standard error."""
        records = contest.records()
        self.records += records
        with self.progress.paused():
            if self.as_json:
                self._print_json(records, contest.limits)
            elif is_drawn():
                draw(contest, records)
            else:
                for record in records:
                    print_row([record[name] for name in COLUMNS])
            sys.stdout.flush()
            for record in records:
                if record["message"]:
                    where = f"{record['workload']} {record['operator']}"
                    said = f"{record['implementation']} {record['status']}: {record['message']}"
                    click.echo(f"{where}: {said}", err=True)

    def _print_json(self, records: Sequence[Mapping[str, Any]], limits: Limits) -> None:
        for record in records:
            print_json_line(
                {**record, "limits": limits._asdict(), "terms": self.terms, "machine": self.facts}
            )

    def close(self, notes: Sequence[str]) -> None:
        """Say what measurements depend on besides the code."""
        if not self.as_json:
            click.echo(", ".join(f"{k} {v}" for k, v in self.facts.items()), err=True)
        for note in notes:
            click.echo(f"note: {note}", err=True)

    def store(self, path: Path) -> None:
        """Write everything to a file.

        Raises:
            InvalidRequest: the disk refuses.
        """
        written = jsonable(document(self.terms, self.facts, self.records))
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps(written, indent=1, allow_nan=False) + "\n", "utf-8")


def draw(contest: Contest, records: Sequence[Mapping[str, Any]]) -> None:
    """Draw the table of one contest."""
    fastest = max((record["ratio"] or 0 for record in records), default=0)
    rows = [(record["implementation"], *_cells(record, fastest)) for record in records]
    workload = contest.workload
    title = f"{workload.name} {workload.operator}  {workload.description}"
    columns = ("", *DRAWN)
    widths = [max(len(row[k]) for row in rows) for k in range(len(columns))]
    aligned = [
        (row[0], *(_aligned(cell, k, widths) for k, cell in enumerate(row) if k)) for row in rows
    ]
    draw_table(columns, aligned, title)


def _aligned(cell: str, column: int, widths: Sequence[int]) -> str:
    return cell if DRAWN[column - 1] == "" else cell.rjust(widths[column])


def _cells(record: Mapping[str, Any], fastest: float) -> tuple[str, ...]:
    if record["seconds"] is None:
        return (record["status"], *[""] * (len(DRAWN) - 1))
    ratio = record["ratio"]
    return (
        duration(record["seconds"]),
        _range(record["lower_quartile"], record["upper_quartile"]),
        _written(ratio, ".2f"),
        bar(ratio / fastest) if ratio else "",
        _written(record["gflops"], ".3g"),
        _written(record["of_peak"], ".0%"),
        _written(record["gbytes"], ".3g"),
        _written(record["of_bandwidth"], ".0%"),
        _written(record["error"], ".1e"),
        _written(record["memory"] and record["memory"] / (1 << 20), ".1f"),
    )


def _written(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def duration(seconds: float) -> str:
    """Write a time with three digits and a unit."""
    size, unit = next(((s, u) for s, u in UNITS if seconds >= s), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def _range(low: float, high: float) -> str:
    """Write two times, the unit once where it is the same."""
    (a, unit), (b, other) = duration(low).split(), duration(high).split()
    return f"{a} - {b} {other}" if unit == other else f"{a} {unit} - {b} {other}"


def bar(share: float) -> str:
    """Draw a share of the longest bar, in eighths of a character."""
    whole, rest = divmod(round(8 * BAR * share), 8)
    return "█" * whole + EIGHTHS[rest].strip()


def show_changes(
    stored: Mapping[tuple[str, str, str], float | None],
    records: Sequence[Mapping[str, Any]],
    most: float | None,
    *,
    as_json: bool,
) -> bool:
    """Print how ratios to the first runtime changed since a stored run.

    Args:
        stored: from `read_stored`.
        records: of this run.
        most: percent that a backend of ours may take longer; None for any.
        as_json: whether to print JSON lines.

    Returns:
        Whether one takes longer by more.

    Raises:
        NothingSelected: nothing was measured both times.
    """
    found = changes(stored, records)
    if not found:
        raise NothingSelected("--against: nothing in the file was measured in this run")
    print_records(CHANGES, [_change(each) for each in found], as_json=as_json)
    slower = [each for each in found if most is not None and each.is_own and each.exceeds(most)]
    for each in slower:
        what = f"{each.workload} {each.operator} {each.implementation}"
        how = (
            "does not run any more"
            if each.slowdown is None
            else f"takes {each.slowdown:.1f} % longer"
        )
        click.echo(f"FAIL {what} {how}", err=True)
    return bool(slower)


def _change(change: Change) -> dict[str, Any]:
    return {
        "workload": change.workload,
        "operator": change.operator,
        "implementation": change.implementation,
        "ratio before": change.before,
        "ratio now": change.now,
        "percent longer": change.slowdown,
    }
