"""The output of `rnncli run` and `rnncli compare`: a row and a sentence for each output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

import click

from rnncli.errors import worst_code
from rnncli.numerics import dtype_named
from rnncli.reports.tables import draw_table, is_drawn, print_json_line, print_row, print_table
from rnncli.talk.terminal import say
from rnncli.talk.words import counted, index_text, one_line, shown, up_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.judging.comparing.comparison import OutputComparison
    from rnncli.running.request import RunReport, TargetReport, TensorSummary


COLUMNS = (
    *("target", "data set", "output", "dtype", "shape"),
    *("min", "max", "mean", "nan", "inf", "seconds"),
)
COMPARED = (
    *("output", "dtype", "shape", "verdict", "differing"),
    *("max abs", "max rel", "max ulp", "mean abs", "worst at", "got", "wanted"),
)
TERMINAL_COLUMNS = 8


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
        self.progress.__exit__(*failure)

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
                if sentence := _agreement(run):
                    click.echo(sentence)
            else:
                for row in rows if self.has_heading or not rows else (COLUMNS, *rows):
                    print_row(row)
                    self.has_heading = True

    @property
    def exit_code(self) -> int:
        """The worst exit code of the shown reports."""
        return worst_code(self.codes)


def _row(target: str, run: RunReport, output: TensorSummary) -> tuple[Any, ...]:
    shape = f"[{', '.join(map(str, output.shape))}]"
    statistics = (output.min, output.max, output.mean, output.nan, output.inf)
    name = run.name or None
    return (target, name, output.name, output.dtype, shape, *statistics, round(run.seconds, 6))


def _agreement(run: RunReport) -> str:
    """Return the sentence for outputs that all are as expected, or ""."""
    if not run.comparison or not all(output.agrees for output in run.comparison):
        return ""
    error = max(output.max_abs or 0.0 for output in run.comparison)
    outputs = counted(len(run.comparison), "output")
    return f"right: {outputs} as expected by {run.name}, with errors up to {shown(error)}"


def _failures(report: TargetReport) -> Iterator[str]:
    if report.error:
        yield report.error
    for run in report.runs:
        wrong = [output for output in run.comparison if not output.agrees]
        if wrong:
            yield one_line(f"FAIL {report.target} {run.name}".rstrip())
            yield from (f"  {one_line(difference(output))}" for output in wrong)
            number = run.name.removeprefix("test_data_set_")
            yield f"  repeat: rnncli run {one_line(report.target)} --data-set {number}"


def print_comparison(outputs: Sequence[OutputComparison]) -> None:
    """Print a line for each output; on a terminal the widest columns become sentences below."""
    rows = [compared_row(output) for output in outputs]
    if not is_drawn():
        print_table(COMPARED, rows)
        return
    draw_table(COMPARED[:TERMINAL_COLUMNS], [row[:TERMINAL_COLUMNS] for row in rows])
    for output in outputs:
        if not output.agrees:
            click.echo(one_line(difference(output)))


def compared_row(output: OutputComparison) -> tuple[Any, ...]:
    """Return an output's line in the table of `rnncli compare`."""
    verdict = output.problem or ("agrees" if output.agrees else "differs")
    worst: tuple[str | None, ...] = (None, None, None)
    if output.worst:
        got, wanted = map(dtype_named(output.dtype).text, (output.worst.got, output.worst.wanted))
        worst = (index_text(output.worst.index), got, wanted)
    return (
        output.name,
        output.dtype,
        f"[{', '.join(map(str, output.shape))}]",
        verdict,
        None if output.problem else f"{output.differing} of {output.size}",
        output.max_abs,
        output.max_rel,
        output.max_ulp,
        output.mean_abs,
        *worst,
    )


def difference(output: OutputComparison) -> str:
    """Return the sentence for an output that differs."""
    if output.problem or output.worst is None:
        return f"{output.name}: {output.problem}"
    worst = output.worst
    text = dtype_named(output.dtype).text
    return (
        f"{output.name}: {output.differing} of {output.size} differ{up_to(output.max_ulp)},"
        f" worst at {index_text(worst.index)}: got {text(worst.got)},"
        f" expected {text(worst.wanted)} +- {shown(worst.allowed)}"
    )
