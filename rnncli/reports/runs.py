"""What `rnncli run` shows: a row for each output, a sentence for each failure."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

import click

from rnncli.reports.comparisons import difference
from rnncli.reports.tables import is_drawn, print_json_line, print_row, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.running.request import RunReport, TargetReport
    from rnncli.running.summary import TensorSummary

COLUMNS = (
    *("target", "data set", "output", "dtype", "shape"),
    *("min", "max", "mean", "nan", "inf", "seconds"),
)
# The exit code of a batch is that of its worst target, worst first.
SEVERITY = (70, 2, 3, 1)


class RunPrinter:
    """Prints reports as they come; on a terminal one table at the end, progress until then."""

    def __init__(self, *, as_json: bool, total: int) -> None:
        self.as_json = as_json
        self.total = total
        self.codes: set[int] = set()
        self.rows: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        from rnncli.reports.progress import progress_bar

        self.progress = progress_bar(self.total)
        self.progress.__enter__()
        if not self.as_json and not is_drawn():
            print_row(COLUMNS)
        return self

    def __exit__(self, *failure: object) -> None:
        self.progress.__exit__(None, None, None)
        if not self.as_json and is_drawn() and self.rows:
            print_table(COLUMNS, self.rows)

    def show(self, report: TargetReport, *, traceback: bool) -> None:
        """Print what came of one target: data to stdout, talk to stderr."""
        self.codes.add(report.exit_code)
        self.progress.advance()
        for message in report.warnings:
            click.echo(f"warning: {report.target}: {message}", err=True)
        if self.as_json:
            print_json_line(report.record())
        else:
            self._show_rows(report)
        for sentence in _failures(report):
            click.echo(sentence, err=True)
        if traceback and report.traceback:
            click.echo(report.traceback, err=True)

    @property
    def exit_code(self) -> int:
        """The worst of what was shown."""
        return next((code for code in (*SEVERITY, *self.codes) if code in self.codes), 0)

    def _show_rows(self, report: TargetReport) -> None:
        for run in report.runs:
            for output in run.outputs:
                row = _row(report.target, run, output)
                self.rows.append(row)
                if not is_drawn():
                    print_row(row)
        sys.stdout.flush()


def _row(target: str, run: RunReport, output: TensorSummary) -> tuple[Any, ...]:
    shape = f"[{', '.join(map(str, output.shape))}]"
    statistics = (output.min, output.max, output.mean, output.nan, output.inf)
    name = run.name or None
    return (target, name, output.name, output.dtype, shape, *statistics, round(run.seconds, 6))


def _failures(report: TargetReport) -> Iterator[str]:
    """Yield a line for each thing that went wrong."""
    if report.error:
        yield f"error: {report.error}"
    for run in report.runs:
        wrong = [output for output in run.comparison if not output.agrees]
        if wrong:
            yield f"FAIL {report.target} {run.name}".rstrip()
            yield from (f"  {difference(output)}" for output in wrong)
            number = run.name.removeprefix("test_data_set_")
            yield f"  repeat: rnncli run {report.target} --data-set {number}"
