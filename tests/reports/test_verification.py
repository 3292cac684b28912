"""Claims about what `rnncli verify` prints."""

from __future__ import annotations

import dataclasses
import json

import jsonschema
import pytest
from support.verifications import CASES, REPORTS, every_verdict, judged, many, report

from rnncli.cases.library import specs_folder
from rnncli.cases.schemas import schema_text
from rnncli.errors import InvalidRequest
from rnncli.files.described import check
from rnncli.judging.comparing.verdict import (
    MEANINGS,
    CaseVerdict,
    Verdict,
)
from rnncli.judging.report import Tally
from rnncli.reports import verification_schema as lines_of
from rnncli.reports.verification import (
    COLUMNS,
    WRITERS,
    check_reports,
    closing,
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


def test_a_diagnosis_is_told(capsys):
    """A line of JSON for each cause, which its cases name; sentences on stderr, before the last."""
    lines = [
        json.loads(line) for line in printed(capsys, "diagnosed", as_json=True).out.splitlines()
    ]
    causes = {line["hypothesis"]: line for line in lines if line["kind"] == "cause"}
    named = {line["id"]: line["cause"] for line in lines if line["kind"] == "case"}

    assert {case: cause for case, cause in named.items() if cause} == {
        case: name for name, line in causes.items() for case in line["explains"]
    }
    assert causes["clip-scope=gates"]["means"].startswith("Reads whether")
    told = printed(capsys, "diagnosed").err.splitlines()
    first = "LSTM: recurrent-bias-dropped + clip-ignored explains 1 of 3 failures"
    assert sum(line.startswith(first) for line in told) == 1
    assert "no known bug explains the rest: lstm_14_missing" in told
    assert "no case to compare with known bugs" in printed(capsys, "nothing to explain").err


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


@pytest.mark.parametrize("name", CaseVerdict.__struct_fields__)
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


def test_flags_stand_in_the_order_of_the_pack(capsys):
    """A case with two flags counts in both; a flag that no case has is left out."""
    rows = [line.split("\t") for line in printed(capsys, "every verdict").out.splitlines()]

    assert [row[1] for row in rows if row[0] == "flag"] == ["Reverse", "Ragged", "AlphaOrder"]


def test_failures_go_to_stderr_a_block_each(capsys):
    """Data and talk do not mix; what fails as expected is not told."""
    talk = printed(capsys, "every verdict").err
    failing = [case.id for case in every_verdict().cases if case.details.fails]

    assert [line[5:] for line in talk.splitlines() if line.startswith("FAIL ")] == failing
    assert talk.count("  repeat: ") == len(failing) == 10


def test_a_terminal_gets_no_column_of_zeros(capsys, monkeypatch):
    """Nor a zero in a cell, where the eye looks for failures."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    out = printed(capsys, "one").out

    assert "operator" in out
    assert not [verdict for verdict in MEANINGS if verdict != Verdict.PASS and verdict in out]


def test_the_last_line_counts():
    """After the readings of acceptable cases and the reasons why others were skipped."""
    assert closing(every_verdict()) == [
        "acceptable 1: as alpha-order=positional has it",
        "skipped 1: opset 22 is not required",
        (
            "onnxruntime 1.31.1 against vectors/core by the pack's tolerances: 15 cases (8"
            " answered) in 3.2 s: 2 pass, 1 acceptable, 2 refused, 4 differ, 1 stale, 1 accepted,"
            " 1 crashed, 1 timeout, 1 missing, 1 skipped. 10 fail; 1 more was expected to; 1"
            " allowed: refusals"
        ),
    ]
    assert closing(REPORTS["one"])[-1].endswith("1 case in 3.2 s: 1 pass. None fails")
    assert closing(REPORTS["empty"])[-2].endswith("0 cases in 3.2 s")


def test_what_skipped_cases_have_is_named_once():
    """Cases with one or several of the same attributes are counted, the attributes are listed."""
    needs = "requires attributes only hidden_size"
    messages = ("has clip, layout", "has layout", "has clip, input_forget")
    cases = [
        judged(f"gru_14_{k}", Verdict.SKIPPED, {"message": f"{needs}, {has}"})
        for k, has in enumerate(messages)
    ]

    assert closing(report(cases))[0] == f"skipped 3: {needs}, has clip, layout, input_forget"


def test_too_few_answers_have_the_last_word():
    """Although no case fails."""
    refused = judged("gru_14_double", *CASES["gru_14_double"])

    assert closing(report([refused]))[-2:] == [
        (
            "onnxruntime 1.31.1 against vectors/core by the pack's tolerances: 1 case (0 answered)"
            " in 3.2 s: 1 refused. None fails; 1 allowed: refusals"
        ),
        "no case was answered",
    ]


def test_known_failures_are_told_apart_from_those_that_an_option_allows():
    """Both are counted, and no case in both."""
    known = judged("lstm_14_known", *CASES["lstm_14_known"])
    refused = judged("gru_14_double", *CASES["gru_14_double"])

    assert closing(report([known, known, refused]))[-1].endswith(
        "1 refused, 2 differ. None fails but 2 that were expected to; 1 allowed: refusals"
    )


def test_reports_go_where_they_are_wanted(tmp_path):
    """Only those that are."""
    files = {"junit": str(tmp_path / "a.xml"), "markdown": str(tmp_path / "a.md"), "html": None}
    write_reports(every_verdict(), files)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "a.xml"]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_missing_folder_is_found_before_the_run(tmp_path, kind):
    """Not after an hour of judging."""
    with pytest.raises(InvalidRequest, match="there is no folder"):
        check_reports({kind: str(tmp_path / "none" / "report")})
