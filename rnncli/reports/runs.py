"""The output of `rnncli run`: a row for each output, a sentence for each failure."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

import click

from rnncli.errors import worst_code
from rnncli.reports.comparisons import difference
from rnncli.reports.tables import draw_table, is_drawn, print_json_line, print_row
from rnncli.talk.terminal import one_line, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.running.request import RunReport, TargetReport, TensorSummary

COLUMNS = (
    *("target", "data set", "output", "dtype", "shape"),
    *("min", "max", "mean", "nan", "inf", "seconds"),
)


class RunPrinter:
    """Prints reports as they arrive, and the progress of a batch."""

    def __init__(self, *, as_json: bool, total: int) -> None:
        self.as_json = as_json
        self.total = total
        self.codes: set[int] = set()
        self.has_heading = False

    def __enter__(self) -> Self:
        from rnncli.reports.progress import progress_bar

        self.progress = progress_bar(self.total)
        self.progress.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.progress.__exit__(None, None, None)

    def show(self, report: TargetReport, *, traceback: bool) -> None:
        """Print the report on one target: data to stdout, messages to stderr."""
        self.codes.add(report.exit_code)
        with self.progress.paused():
            for message in report.warnings:
                place = "" if message.startswith(report.target) else f"{report.target}: "
                say(f"warning: {place}{message}")
            self._show_data(report)
            sys.stdout.flush()
            for sentence in _failures(report):
                click.echo(sentence, err=True)
            if traceback and report.traceback:
                click.echo(report.traceback, err=True)
        self.progress.advance()

    def _show_data(self, report: TargetReport) -> None:
        if self.as_json:
            print_json_line(report.record())
            return
        for run in report.runs:
            rows = [_row(report.target, run, output) for output in run.outputs]
            if is_drawn():
                title = f"{report.target} {run.name}".rstrip() + f", {run.seconds:.3g} s"
                draw_table(COLUMNS[2:-1], [row[2:-1] for row in rows], title)
            else:
                for row in rows:
                    self._print_row(row)

    def _print_row(self, row: Sequence[Any]) -> None:
        """Print a row, with a heading before the first."""
        if not self.has_heading:
            print_row(COLUMNS)
            self.has_heading = True
        print_row(row)

    @property
    def exit_code(self) -> int:
        """The worst exit code of the shown reports."""
        return worst_code(self.codes)


def _row(target: str, run: RunReport, output: TensorSummary) -> tuple[Any, ...]:
    shape = f"[{', '.join(map(str, output.shape))}]"
    statistics = (output.min, output.max, output.mean, output.nan, output.inf)
    name = run.name or None
    return (target, name, output.name, output.dtype, shape, *statistics, round(run.seconds, 6))


def _failures(report: TargetReport) -> Iterator[str]:
    """Yield a line for each failure."""
    if report.error:
        yield report.error
    for run in report.runs:
        wrong = [output for output in run.comparison if not output.agrees]
        if wrong:
            yield one_line(f"FAIL {report.target} {run.name}".rstrip())
            yield from (f"  {one_line(difference(output))}" for output in wrong)
            number = run.name.removeprefix("test_data_set_")
            yield f"  repeat: rnncli run {one_line(report.target)} --data-set {number}"
