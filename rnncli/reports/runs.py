"""The output of `rnncli run` and `rnncli compare`: a row and a sentence for each output."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Self

import click

from rnncli.errors import worst_code
from rnncli.numerics import dtype_named
from rnncli.reports.failures import differing, excerpt, fitting, located, unoptimised
from rnncli.reports.tables import draw_table, is_drawn, print_json_line, print_row, print_table
from rnncli.talk.terminal import say, say_text, show_text
from rnncli.talk.words import counted, index_text, listed, one_line, plural, shown, times

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.judging.comparing.comparison import OutputComparison
    from rnncli.running.request import (
        AgainstReport,
        ErrorSize,
        OutputsCause,
        RunReport,
        TargetReport,
    )


COLUMNS = (
    *("target", "data set", "output", "dtype", "shape"),
    *("min", "max", "mean", "nan", "inf", "seconds"),
)
COMPARED = (
    *("output", "dtype", "shape", "verdict", "differing"),
    *("max abs", "max rel", "max ulp", "mean abs", "worst at", "got", "wanted"),
)
# With measured tolerances, errors are told in parts of these.
OF_TOLERANCE = (*COMPARED[:6], "of tolerance", *COMPARED[8:])
AGAINST = ("target", "data set", "against", *OF_TOLERANCE)
TERMINAL_COLUMNS = 8
# Columns that a drawn table lacks if all is 0 there, by index.
ZERO_ALONE = (COLUMNS.index("nan"), COLUMNS.index("inf"))


# Errors that are more times as large as those of an arithmetic have nothing to do with it.
MOST_TIMES = 100
# The most bugs that the last line names.
MOST_NAMED = 2


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
                # Models call themselves by their path, in which `./` is dropped.
                is_named = message.startswith((report.target, str(Path(report.target))))
                say(f"warning: {'' if is_named else f'{report.target}: '}{message}")
            self._show_data(report)
            sys.stdout.flush()
            for sentence in _failures(report):
                say_text(sentence)
            is_told = not self.as_json and (is_drawn() or self.total == 1)
            for run in report.runs if is_told else ():
                if sentence := _conclusion(run):
                    (show_text if is_drawn() else say_text)(sentence)
            if traceback and report.traceback:
                click.echo(report.traceback, err=True)
        self.progress.advance()

    def _show_data(self, report: TargetReport) -> None:
        if self.as_json:
            print_json_line(report.record())
            return
        for run in report.runs:
            title = f"{report.target} {run.name}".rstrip()
            if against := run.against:
                if against.comparison:
                    place = (report.target, run.name or None, against.title)
                    compared = [(*place, *against_row(output)) for output in against.comparison]
                    columns = range(len(place), len(place) + TERMINAL_COLUMNS - 1)
                    self._show_rows(AGAINST, compared, columns, f"{title} against {against.title}")
                continue
            rows = [
                (
                    *(report.target, run.name or None, output.name, output.dtype),
                    f"[{', '.join(map(str, output.shape))}]",
                    *(output.min, output.max, output.mean, output.nan, output.inf),
                    round(run.seconds, 6),
                )
                for output in run.outputs
            ]
            idle = {k for k in ZERO_ALONE if not any(row[k] for row in rows)}
            drawn = [k for k in range(2, len(COLUMNS) - 1) if k not in idle]
            self._show_rows(COLUMNS, rows, drawn, f"{title}, {run.seconds:.3g} s")

    def _show_rows(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        drawn: Sequence[int],
        title: str,
    ) -> None:
        """Print rows; of those drawn on a terminal, the columns that have room, by index."""
        if is_drawn():
            cells = [[row[k] for k in drawn] for row in rows]
            draw_table([columns[k] for k in drawn], cells, title, whole={"shape"})
            return
        for row in rows if self.has_heading or not rows else (columns, *rows):
            print_row(row)
            self.has_heading = True

    @property
    def exit_code(self) -> int:
        """The worst exit code of the shown reports."""
        return worst_code(self.codes)


def _failures(report: TargetReport) -> Iterator[str]:
    if report.error:
        yield report.error
    for run in report.runs:
        wrong = [output for output in run.comparison if not output.agrees]
        if wrong:
            yield one_line(f"FAIL {report.target} {run.name}".rstrip())
            yield from (f"  {one_line(difference(output))}" for output in wrong)
            yield from _explained(run)
        if wrong and run.name:
            number = run.name.removeprefix("test_data_set_")
            yield f"  repeat: rnncli run {quote(one_line(report.target))} --data-set {number}"
        if run.against and run.against.unexercised:
            # What could not have differed in outputs that agree.
            agrees = f"{report.target} {run.name}".rstrip() + f" agrees with {run.against.title}"
            yield one_line(f"{agrees}, but not everything was put to the test:")
            yield from (f"  {one_line(each)}" for each in run.against.unexercised)
        elif run.against and run.against.exit_code:
            yield from _failures_against(f"{report.target} {run.name}".rstrip(), run.against)


def _explained(told: RunReport | AgainstReport) -> Iterator[str]:
    """Yield why outputs of a whole model differ."""
    if told.cause:
        yield from (f"  {one_line(line)}" for line in _caused(told.cause))
    yield from (f"  {one_line(line)}" for line in told.likeness)
    if told.error_size:
        yield f"  {_sized(told.error_size)}"


def _conclusion(run: RunReport) -> str:
    """Return whether outputs agree, by how much of which tolerance, and at which sizes; or ""."""
    told = run.against or run
    if not told.comparison:
        return ""
    count = counted(len(told.comparison), "output")
    wrong = [output for output in told.comparison if not output.agrees]
    some = f"{len(told.comparison)} of " if len(told.comparison) < len(run.outputs) else ""
    all_ = counted(len(run.outputs), "output") if some else count
    word = f"right: {some}{all_} as expected" if told is run else f"agrees: {some}{all_}"
    if wrong:
        word = f"differs: {len(wrong)} of {count}"
    elif run.against and run.against.exit_code:
        word = f"unproved: {count} {plural(len(told.comparison), 'agrees', 'agree')}"
    by = f" by {run.name}" if run.name and told is run else ""
    if told is run and not wrong:
        by += (
            f", with errors up to {shown(max(output.max_abs or 0.0 for output in run.comparison))}"
        )
    margins = [output.of_tolerance for output in wrong or told.comparison]
    of = max((margin for margin in margins if margin is not None), default=0.0)
    if of > 1:
        by += f", {times(of)} the tolerance ({one_line(told.tolerance)})"
    elif of:
        by += f", {of:.2g} of the tolerance ({one_line(told.tolerance)})"
    sizes = ", ".join(f"{symbol}={size}" for symbol, size in told.sizes.items())
    why = ""
    if told.cause and told.cause.nodes:
        explained, all_of = told.cause.explained, told.cause.wrong
        part = "" if explained == all_of else f", for {explained} of {all_of} wrong elements"
        fits = f"fits {listed([*told.cause.fits], MOST_NAMED)}"
        why = f"; {fits} in {listed([*told.cause.nodes], 1)}{part}"
    elif run.against and (node := run.against.node) and node.verdict.fits:
        why = f"; fits {listed([*node.verdict.fits], MOST_NAMED)} in {node.node}"
    return f"{word}{by}{f', at {sizes}' if sizes else ''}{one_line(why)}"


def _caused(cause: OutputsCause) -> Iterator[str]:
    """Yield which bug of which node gives what another program gave, and how much of it."""
    tried = counted(cause.tried, "hypothesis", "hypotheses")
    if not cause.nodes:
        left = ", and there was no time for more" if cause.stopped else ""
        yield f"no known bug of its recurrent nodes gives these outputs: {tried} tried{left}"
        return
    named = f"node {cause.nodes[0]} ({cause.operator})"
    if len(cause.nodes) > 1:
        named = f"{len(cause.nodes)} nodes, {listed([*cause.nodes])}"
    all_ = "all " if cause.explained == cause.wrong else f"{cause.explained} of "
    share = f"{all_}{counted(cause.wrong, 'wrong element')}"
    yield f"known bug in {named}, which gives {share}"
    from rnncli.judging.explaining.hypotheses import naming

    names = [*cause.fits]
    yield f"  fits {names[0]}: {cause.sentence}" if len(names) == 1 else f"  {naming(cause.fits)}"
    yield from (f"    {line}" for line in cause.edit)
    if cause.stopped:
        yield f"  there was no time for more than {tried}"


def _sized(size: ErrorSize) -> str:
    """Return how large errors are, and what makes such errors."""
    whole = f"errors up to {size.largest:.3g}, {size.rms:.2g} of the largest value on average"
    if size.numbers_of:
        whole += f", and all values are {size.numbers_of} numbers"
    if size.is_gross:
        return f"{whole}: larger than roundings or tables make; something else is computed"
    if not size.likes or size.likes[0].times > MOST_TIMES:
        return whole
    first = size.likes[0]
    if size.is_same:
        return (
            f"{whole}: those of {first.name}, with which they correlate by {first.correlation:.2f}"
        )
    if not first.is_near:
        return f"{whole}: {times(first.times)} those of {first.name}, the nearest arithmetic tried"
    named = [f"{each.name} ({times(each.times)})" for each in size.likes]
    return f"{whole}: as large as those of {' and of '.join(named)}"


def _failures_against(target: str, against: AgainstReport) -> Iterator[str]:
    """Yield what is wrong with a runtime's outputs, and the node where it begins."""
    said = f": {against.failure}" if against.failure else ""
    yield one_line(f"FAIL {target} against {against.title}{said}")
    for output in against.comparison:
        if not output.agrees:
            yield f"  {one_line(difference(output))}"
    if against.right_with:
        yield f"  {unoptimised(against.right_with)}"
    elif against.search:
        yield one_line(f"  {against.search}")
        yield from _explained(against)
    if node := against.node:
        nth = f", execution {node.execution}" if node.execution > 1 else ""
        yield one_line(
            f"  first recurrent node that is wrong by itself: {node.node} ({node.operator}){nth}"
        )
        verdict, message = node.verdict, excerpt(node.verdict.message)
        reason = [f"{verdict.verdict}: {message}"] if message else []
        wrong = (*reason, *located(verdict, node.dtype), *fitting(verdict))
        yield from (f"    {one_line(line)}" for line in wrong)
        yield one_line(f"  repeat: {' && '.join(node.repeat)}")


def print_comparison(outputs: Sequence[OutputComparison]) -> None:
    """Print a line for each output; on a terminal the widest columns become sentences below."""
    rows = [compared_row(output) for output in outputs]
    if not is_drawn():
        print_table(COMPARED, rows)
        return
    rows = [row[:TERMINAL_COLUMNS] for row in rows]
    draw_table(COMPARED[:TERMINAL_COLUMNS], rows, whole={"shape"})
    for output in outputs:
        if not output.agrees:
            show_text(one_line(difference(output)))


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


def against_row(output: OutputComparison) -> tuple[Any, ...]:
    """Return an output's line in the table of `rnncli run --against`, as `OF_TOLERANCE` says."""
    row = compared_row(output)
    of = None if output.problem or output.of_tolerance is None else f"{output.of_tolerance:.2g}"
    return (*row[:6], of, *row[8:])


def difference(output: OutputComparison) -> str:
    """Return the sentence for an output that differs."""
    if output.problem or output.worst is None:
        return f"{output.name}: {output.problem}"
    allowed = f" +- {shown(output.worst.allowed)}" if output.worst.allowed else ""
    return f"{differing(output, output.dtype)}{allowed}"
