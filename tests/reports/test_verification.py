"""Claims about what `rnncli verify` prints."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json

import jsonschema
import pytest
from msgspec import UNSET
from msgspec.structs import fields
from support.verifications import REPORTS, every_verdict, many

from rnncli.cases.library import specs_folder
from rnncli.cases.schemas import schema_text
from rnncli.errors import InvalidRequest
from rnncli.files.described import check
from rnncli.judging.comparing.verdict import (
    FAILURES,
    MEANINGS,
    CaseVerdict,
    Verdict,
)
from rnncli.judging.comparing.xfails import read_xfails
from rnncli.judging.report import Tally
from rnncli.reports import verification_schema as lines_of
from rnncli.reports.verification import (
    COLUMNS,
    WRITERS,
    check_reports,
    show_report,
    write_reports,
)

SCHEMA = lines_of.verification_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
AFTER_CASES = {
    "diagnosed": ["cause", "cause", "cause", "unexplained"],
    "nothing to explain": ["unexplained"],
}


def printed(capsys, name, **options):
    """What is printed of a report: on stdout, on stderr."""
    show_report(REPORTS[name], **options)
    return capsys.readouterr()


@pytest.mark.parametrize("name", REPORTS)
def test_json_is_a_run_then_its_cases_and_causes_then_a_summary(capsys, name):
    """Every line is as the schema has it, whatever is in it."""
    lines = [json.loads(line) for line in printed(capsys, name, as_json=True).out.splitlines()]

    for line in lines if name != "many" else lines[:50] + lines[-1:]:
        VALIDATOR.validate(line)
    assert [line["kind"] for line in lines] == [
        "run",
        *("case" for _ in REPORTS[name].cases),
        *AFTER_CASES.get(name, ()),
        "summary",
    ]


def test_json_keeps_what_a_message_says(capsys):
    """Bytes that are no text come back as they were."""
    lines = printed(capsys, "hostile", as_json=True).out.splitlines()

    assert json.loads(lines[1])["message"] == REPORTS["hostile"].cases[0].details.message


def test_the_summary_adds_up(capsys):
    """Every case is of one verdict and one operator."""
    summary = json.loads(printed(capsys, "many", as_json=True).out.splitlines()[-1])

    assert sum(summary["verdicts"].values()) == summary["cases"] == 2000
    for entry in ("cases", "fails", "expected"):
        assert sum(row[entry] for row in summary["operators"].values()) == summary[entry]
    assert summary["fails"] == sum(case.details.fails for case in many().cases)


def test_the_schema_knows_every_count():
    """A count that is added to a tally must be described; what is left out follows from others."""
    known = {field.name for field in dataclasses.fields(Tally)} - {"name", "counts", "excused"}

    assert set(lines_of.TallyLine.__struct_fields__) - {"cases", "verdicts", "allowed"} == known


@pytest.mark.parametrize(
    "name", [row.name for row in fields(CaseVerdict) if row.default is not UNSET]
)
def test_every_entry_of_a_verdict_is_printed_and_must_be_there(name, capsys):
    """Defaults are for our own code: a line without an entry is none of `rnncli verify`."""
    line = json.loads(printed(capsys, "one", as_json=True).out.splitlines()[1])
    check(line, lines_of.VerdictLine, "it")
    del line[name]

    assert not VALIDATOR.is_valid(line)
    with pytest.raises(InvalidRequest, match=f"it has no '{name}'"):
        check(line, lines_of.VerdictLine, "it")


def test_the_committed_schema_is_current():
    """`rnncli schema verification` writes it; nobody edits it."""
    VALIDATOR.check_schema(SCHEMA)
    path = specs_folder() / "schema/verification.schema.json"
    assert path.read_text(encoding="utf-8") == schema_text(SCHEMA)


@pytest.mark.parametrize("name", REPORTS)
def test_a_pipe_gets_one_line_a_row(capsys, name):
    """As many cells in each as the heading has, the last row being all cases."""
    rows = [line.split("\t") for line in printed(capsys, name).out.splitlines()]

    assert rows[0] == list(COLUMNS)
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert rows[-1][:3] == ["all", "all", str(len(REPORTS[name].cases))]


def test_a_terminal_gets_no_column_of_zeros(capsys, monkeypatch):
    """Nor a zero in a cell, where the eye looks for failures."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    out = printed(capsys, "one").out

    assert "operator" in out
    assert not [verdict for verdict in MEANINGS if verdict != Verdict.PASS and verdict in out]


def test_reports_go_where_they_are_wanted(tmp_path):
    """Only those that are."""
    files = {"junit": str(tmp_path / "a.xml"), "markdown": str(tmp_path / "a.md"), "html": None}
    write_reports(every_verdict(), files)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "a.xml"]


def test_failures_are_written_as_known_ones(tmp_path):
    """Each with its verdict and a reason, as `--xfails` reads them; what is allowed is none."""
    report, path = every_verdict(), tmp_path / "known.txt"
    write_reports(report, {"save_xfails": str(path)})
    known = read_xfails(path)

    failing = {case.id: case.verdict for case in report.cases if case.details.fails}
    expected = {case.id: case.verdict for case in report.cases if case.details.expected}
    assert failing
    assert {entry.pattern: entry.verdicts for entry in known.entries} == {
        name: {verdict} for name, verdict in (failing | expected).items() if verdict in FAILURES
    }


@pytest.mark.parametrize("kind", WRITERS)
def test_a_missing_folder_is_found_before_the_run(tmp_path, kind):
    """Not after an hour of judging."""
    with pytest.raises(InvalidRequest, match="there is no folder"):
        check_reports({kind: str(tmp_path / "none" / "report")})


def test_in_a_pipe_the_verdict_is_below_the_table():
    """Where both streams are one, the last lines are what failed, and all counts in words."""
    both = io.StringIO()
    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        show_report(REPORTS["every verdict"])
    lines = both.getvalue().splitlines()
    (table,) = (k for k, line in enumerate(lines) if line.startswith("all\t"))
    first = next(k for k, line in enumerate(lines) if line.startswith("FAIL"))

    assert lines[0].startswith("by\tname\t")
    assert table < first
    assert lines[-1].startswith("onnxruntime 1.31.1 against vectors/core")
