"""The output of `rnncli trace`: the matrix, one statement, or the page of all statements."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from rnncli.files.described import jsonable
from rnncli.reports.screen import TerminalRows
from rnncli.reports.tables import (
    drawn,
    is_drawn,
    markdown_row,
    print_json_line,
    print_table,
    terminal_width,
)
from rnncli.talk.terminal import say, show_text
from rnncli.talk.words import counted, one_line
from rnncli.verifying.tracing.conditions import violation_named
from rnncli.verifying.tracing.statements import STATEMENTS, CheckKind, families
from rnncli.verifying.tracing.tracing import MISSING, CoverageState, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rnncli.packs.pack import Pack
    from rnncli.verifying.tracing.statements import Statement
    from rnncli.verifying.tracing.tracing import Coverage, TraceMatrix

COLUMNS = ("statement", "state", "cases", "where", "first cases, or what is missing")
# The terminal width from which all columns are shown.
WIDE = 132
# The number of cases a table names per statement.
MOST_NAMED = 2
PAGE = """\
# Traceability

Every testable sentence of the specifications is a *statement* with an id, in our words. The
statements that a case checks are computed, not written by hand: a case checks a statement if it
meets the condition in the last column (computed from its node and its numbers) and would notice a
violation of the statement. A violation is an implementation that does something else, most often a
mutant (`rnncli mutants`); the case notices it if the wrong outputs are beyond its tolerances. A
pack checks a statement if its cases notice every violation of the statement.

```sh
rnncli trace vectors/core lstm.clip.bounds      # one statement, and every case that checks it
rnncli trace core --op LSTM -k reverse --json
```

```sh title="not run: each traces all of core, which takes five seconds"
rnncli trace vectors/core                       # the matrix
rnncli trace vectors/core --missing             # only what is unchecked or partly checked
rnncli trace vectors/core --complete            # exit code 1 if a statement is not checked
rnncli list vectors/core --json --statements    # what each case checks
```

| state | means |
|---|---|
| `checked` | cases check it, and every violation of it is noticed |
| `partly` | cases check it, and some violations would not be noticed |
| `unchecked` | no case checks it |
| `untestable` | no vector can check it, for the reason in the table |
| `beyond` | the pack has no case of that operator that runs, or none that must be refused |

Tracing runs every violation on the case; the kills in a manifest are not read. A statement without
violations is checked by any case that meets its condition.

This page is written by `rnncli trace --page`. Full ids begin with the operator: `lstm.clip.bounds`.
Sections are those of the pages https://onnx.ai/onnx/operators/onnx__RNN.html, `onnx__GRU.html` and
`onnx__LSTM.html`, all versions, of OpenVINO's sequences and cells at
https://docs.openvino.ai, of WebNN's operators at https://www.w3.org/TR/webnn/, and of ONNX
Runtime's quantised LSTM at
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
If versions are named, the statement applies to these only, and only their cases can check it.
"""


def show_matrix(
    matrix: TraceMatrix,
    covered: Sequence[Coverage],
    *,
    as_json: bool,
    only_missing: bool,
    verbose: bool = False,
) -> None:
    """Print a matrix: data to stdout, the totals in words to stderr.

    On a terminal that is a table of operators, and the statements that are not checked, as far as
    there is room, unless `verbose` asks for every statement.
    """
    shown = [each for each in covered if not only_missing or each.state in MISSING]
    last = closing(matrix, covered)
    if as_json:
        for each in shown:
            print_json_line(record(each))
    elif is_drawn() and not verbose:
        _show_brief(covered, last, only_missing=only_missing)
    elif shown:
        rows = [
            (each.statement.id, each.state, len(each.cases), each.statement.where, _note(each))
            for each in shown
        ]
        # A narrow terminal has no room for the places of statements.
        narrow = is_drawn() and terminal_width() < WIDE
        columns = [k for k, name in enumerate(COLUMNS) if not (narrow and name == "where")]
        kept = [[row[k] for k in columns] for row in rows]
        print_table([COLUMNS[k] for k in columns], kept, whole=COLUMNS[:1])
    sys.stdout.flush()
    say(last)


def _show_brief(covered: Sequence[Coverage], last: str, *, only_missing: bool) -> None:
    """Draw the states by operator, and say what is missing, in the rows of a terminal."""
    screen = TerminalRows()
    screen.take([last])
    counts: dict[str, Counter[CoverageState]] = {}
    for each in covered:
        counts.setdefault(each.statement.operator, Counter())[each.state] += 1
    states = [state for state in CoverageState if any(count[state] for count in counts.values())]
    rows = [
        (name, count.total(), *(drawn(count[state]) for state in states))
        for name, count in counts.items()
    ]
    if not only_missing and screen.has_table(len(rows)):
        print_table(("operator", "statements", *states), rows)
    lines = [
        one_line(f"{each.state} {each.statement.id}: {_note(each)}")
        for each in covered
        if each.state in MISSING
    ]

    def rest(count: int) -> str:
        return f"{counted(len(lines) - count, 'more statement')}; -v shows every one"

    for line in screen.fitted([[line] for line in lines], lines, rest):
        show_text(line)


def record(covered: Coverage) -> dict[str, Any]:
    """Return a statement's coverage as JSON values."""
    return {
        **statement_record(covered.statement),
        "state": covered.state,
        "noticed": covered.noticed,
        "unnoticed": covered.unnoticed,
        "cases": list(covered.cases),
        "versions_checked": list(covered.versions),
    }


def statement_record(row: Statement) -> dict[str, Any]:
    """Return a statement as JSON values."""
    return {
        "statement": row.id,
        "sentence": row.sentence,
        "where": row.where,
        "operator": row.operator,
        "versions": list(row.versions),
        "kind": row.kind,
        "when": row.when.words,
        "violations": list(row.against),
        "why_not": row.why_not,
    }


def closing(matrix: TraceMatrix, covered: Iterable[Coverage]) -> str:
    """Return the matrix in one sentence."""
    counts = Counter(each.state for each in covered)
    listed = ", ".join(f"{counts[state]} {state}" for state in CoverageState if counts[state])
    statements = counted(counts.total(), "statement")
    return f"{matrix.name}: {statements}, {counted(len(matrix.cases), 'case')}: {listed}"


def show_statement(covered: Coverage, *, as_json: bool) -> None:
    """Print a statement: its sentence, its violations and all cases that check it."""
    if as_json:
        print_json_line(record(covered))
        return
    row = covered.statement
    click.echo(f"{row.id}: {row.sentence}")
    click.echo(f"  where:    {row.where}; true of versions {_numbers(row.versions)}")
    click.echo(f"  state:    {covered.state}, in versions {_numbers(covered.versions)}")
    click.echo(f"  checks:   {_checks(row)}")
    for name, count in covered.noticed.items():
        click.echo(f"  violated: {violation_named(name).sentence}")
        click.echo(f"            {name}, noticed by {count} of these cases")
    if covered.cases:
        click.echo("")
        rows = [(case, " ".join(names)) for case, names in covered.cases.items()]
        print_table(("case", "violations noticed"), rows)


def _note(covered: Coverage) -> str:
    """Return the first cases, the reason that there are none, or the unnoticed violations."""
    row = covered.statement
    if covered.state is CoverageState.UNTESTABLE:
        return row.why_not
    if covered.state is CoverageState.PARTLY:
        return f"not noticed: {', '.join(covered.unnoticed)}"
    if covered.state is CoverageState.BEYOND:
        return f"the pack does not have {row.kind.case}"
    if not covered.cases:
        return f"needs {_checks(row)}"
    return ", ".join([*covered.cases][:MOST_NAMED])


def _checks(row: Statement) -> str:
    """Return the condition on cases that check a statement, in words."""
    if row.why_not:
        return f"nothing: {row.why_not}"
    parts = filter(None, (row.when.words, "notices a violation" if row.against else ""))
    condition = " and ".join(parts)
    if row.kind is CheckKind.REJECTION:
        return f"{row.kind.case}, because it {condition}"
    return f"a case that {condition or 'runs'}"


def _numbers(versions: Iterable[int]) -> str:
    return ", ".join(map(str, versions)) or "-"


def packed_case_record(pack: Pack, case_id: str) -> dict[str, Any]:
    """Return a case's record in the manifest, without files but with checked statements.

    Raises:
        InvalidRequest: the case does not exist.
        UnreadableFile: one of its files is missing or damaged.
    """
    record = pack.case(case_id)
    return {
        **{name: value for name, value in jsonable(record).items() if name != "files"},
        "statements": list(trace_of(pack.read(record)).found),
    }


def page() -> str:
    """Return the page of all statements, in Markdown."""
    by_operator: dict[str, list[Statement]] = {}
    for row in STATEMENTS.values():
        by_operator.setdefault(row.operator, []).append(row)
    lines = [
        PAGE,
        "| operator | statements | tied to violations | refusals | untestable |",
        "|---|---:|---:|---:|---:|",
    ]
    dialects: dict[str, list[Statement]] = {}
    for operator, rows in by_operator.items():
        counts = Counter(row.kind for row in rows)
        tied = sum(bool(row.against) for row in rows)
        refusals, untestable = counts[CheckKind.REJECTION], counts[CheckKind.NONE]
        lines.append(markdown_row((operator, len(rows), tied, refusals, untestable)))
        for row in rows:
            dialects.setdefault(row.dialect, []).append(row)
    lines.append("")

    # A table for each dialect, with one row for a statement of one operator, or of several alike.
    for title, rows in dialects.items():
        lines += [
            f"## {title}\n",
            "| statement | says | section | versions | a case that |",
            "|---|---|---|---|---|",
        ]
        grouped: dict[tuple[str, str, str], list[Statement]] = {}
        for row in rows:
            grouped.setdefault((row.name, row.sentence, row.section), []).append(row)
        for (name, sentence, section), same in grouped.items():
            spans: dict[str, list[str]] = {}
            for row in same:
                spans.setdefault(_span(row), []).append(row.operator)
            # `RNN, LSTM; GRU from 3 on`
            true_of = "; ".join(f"{', '.join(names)}{span}" for span, names in spans.items())
            cells = (f"`{name}`", sentence, section, true_of, _told(same))
            lines.append(markdown_row(cell.replace("|", r"\|") for cell in cells))
        lines.append("")
    return "\n".join(lines)


def _span(row: Statement) -> str:
    """Say which versions of its operator a statement is true of; nothing for all."""
    known = tuple(each.version for each in families()[row.operator])
    first, last = row.versions[0], row.versions[-1]
    if len(row.versions) == len(known):
        return ""
    if first == last != known[-1]:
        return f" {first}"
    if row.versions == known[-len(row.versions) :]:
        return f" from {first} on"
    return f" up to {last}" if first == known[0] else f" {first} to {last}"


def _told(same: Sequence[Statement]) -> str:
    """Say what checks a statement, with the violations."""
    first = same[0]
    if first.why_not:
        return f"*none: {first.why_not}*"
    names = dict.fromkeys(name for row in same for name in row.against)
    refused = "must be refused" if first.kind is CheckKind.REJECTION else ""
    noticed = f"notices {', '.join(f'`{name}`' for name in names)}" if names else ""
    return "; ".join(filter(None, (refused, first.when.words, noticed))) or "runs"
