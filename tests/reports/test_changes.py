"""Claims about what a run changed: nothing that broke is missed, and little is told."""

import json
import re
from dataclasses import replace

import pytest
from msgspec import structs
from support.tables import every
from support.verifications import CASES, REPORTS, differing, judged, many, output, report

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.judging.comparing.verdict import FAILURES, RIGHT, Verdict
from rnncli.reports.changes import (
    Effect,
    RunChanges,
    show_changes,
    write_html,
    write_markdown,
)

RIGHT_ONE = (Verdict.PASS, {"outputs": (output(),)})
WRONG = (Verdict.DIFFERS, differing())
OTHER_BUG = (Verdict.DIFFERS, differing(fits={"clip-ignored": 0.0}))
UNKNOWN_BUG = (Verdict.DIFFERS, differing(fits={}))
TWO_BUGS = (Verdict.DIFFERS, differing(fits={"clip-ignored": 0.0, "forget-bias-plus-one": 0.5}))
SKIPPED = (Verdict.SKIPPED, {"message": "requires layout 0, has 1"})
EXPECTED = (Verdict.DIFFERS, differing(expected="issue 12"))
GONE = None


def of_margin(margin):
    """A right case with this margin."""
    return Verdict.PASS, {"outputs": (output(margin=margin),)}


def run(*said):
    """A run with these verdicts on the cases in turn."""
    return report(judged(f"gru_14_{k}", *each) for k, each in enumerate(said) if each)


# A case before and after -> what became of it, and the exit code.
PAIRS = {
    "nothing": (RIGHT_ONE, RIGHT_ONE, None, 0),
    "broken": (RIGHT_ONE, WRONG, Effect.BROKEN, 1),
    "broken and excused": (RIGHT_ONE, EXPECTED, Effect.BROKEN, 1),
    "refused": (RIGHT_ONE, CASES["gru_14_layout"], Effect.BROKEN, 1),
    "crashes": (CASES["lstm_14_alpha_order"], CASES["gru_14_empty"], Effect.BROKEN, 1),
    "fixed": (WRONG, RIGHT_ONE, Effect.FIXED, 0),
    "an expected failure is fixed": (EXPECTED, CASES["lstm_14_fixed"], Effect.FIXED, 0),
    "fails as before": (WRONG, WRONG, None, 0),
    "may have one bug": (WRONG, TWO_BUGS, None, 0),
    "another bug": (WRONG, OTHER_BUG, Effect.OTHER, 0),
    "no known bug any more": (WRONG, UNKNOWN_BUG, Effect.OTHER, 0),
    "no known bug as before": (UNKNOWN_BUG, UNKNOWN_BUG, None, 0),
    "crashes instead": (UNKNOWN_BUG, CASES["gru_14_empty"], Effect.OTHER, 0),
    "twice the error": (of_margin(0.2), of_margin(0.4), Effect.MARGIN, 0),
    "half the error": (of_margin(0.4), of_margin(0.2), Effect.MARGIN, 0),
    "nearly twice the error": (of_margin(0.2), of_margin(0.399), None, 0),
    "from exact": (of_margin(0.0), of_margin(0.01), Effect.MARGIN, 0),
    "hardly any error": (of_margin(0.0), of_margin(0.009), None, 0),
    "skipped": (RIGHT_ONE, SKIPPED, Effect.LOST, 5),
    "a failure is skipped": (WRONG, SKIPPED, Effect.LOST, 5),
    "no line": (RIGHT_ONE, GONE, Effect.LOST, 5),
    "new and right": (GONE, RIGHT_ONE, Effect.ADDED, 0),
    "new and wrong": (SKIPPED, WRONG, Effect.ADDED, 0),
    "never judged": (SKIPPED, GONE, None, 0),
}


@every("before, after, change, code", PAIRS.values(), ids=[*PAIRS])
def test_a_case_changes_in_one_way(before, after, change, code):
    """By its verdicts, its bugs or its margins, whatever options excuse."""
    changes = RunChanges(run(RIGHT_ONE, before), run(RIGHT_ONE, after))
    found = [each for each, cases in changes.by_change.items() for _ in cases]

    assert found == ([change] if change else [])
    assert changes.exit_code == code
    assert [each.change for each in changes.findings] == found
    assert [each["change"] for each in changes.records] == found


def test_the_summary_counts_every_case(capsys):
    """The cases of each change, those that are broken first, and those that fail as before."""
    before = run(RIGHT_ONE, WRONG, WRONG, WRONG, GONE, of_margin(0.1))
    after = run(WRONG, RIGHT_ONE, OTHER_BUG, WRONG, WRONG, of_margin(0.5))
    show_changes(RunChanges(before, after))

    assert capsys.readouterr().err.splitlines()[-1] == (
        "onnxruntime 1.31.1 since onnxruntime 1.31.1, by core, digest 0123456789ab: 1 broken,"
        " 1 fails otherwise, 1 fixed, 1 margin changed by 2x or more, 1 judged for the first time;"
        " 1 fails as before"
    )


def test_what_is_broken_is_told_by_its_bug_and_can_be_repeated(capsys):
    """Cases of one bug are one finding."""
    show_changes(RunChanges(run(*[RIGHT_ONE] * 9), run(*[WRONG] * 9)))
    first, second, _ = capsys.readouterr().err.splitlines()

    assert first.startswith("BROKEN 9 cases of GRU, such as gru_14_0: fits forget-bias-plus-one: ")
    assert second.strip().startswith("repeat: rnncli verify vectors/core --runtime onnxruntime -k")


def test_runs_that_were_not_judged_alike_say_so(capsys):
    """Another digest, another rule and other options can be what changed the verdicts."""
    before = run(RIGHT_ONE)
    pack = structs.replace(before.pack, digest="f" * 64)
    after = replace(before, pack=pack, rule="atol 1", concessions=("--atol",))
    show_changes(RunChanges(before, after))
    told = capsys.readouterr().err

    assert f"warning: other pack: {before.pack.digest} before, {'f' * 64} after" in told
    assert "warning: other rule: the pack's tolerances before, atol 1 after" in told
    assert "warning: other options: none before, --atol after" in told


@every("other", ["relations", "hostile"])
def test_runs_of_other_packs_are_not_compared(other):
    """Cases of one id are others there."""
    with pytest.raises(InvalidRequest, match="cannot be compared: `rnncli verify` by core and"):
        RunChanges(REPORTS["one"], REPORTS[other])


def all_fail(count):
    """Many cases, each with a failure of its own, after a run in which all were right."""
    after = many(count)
    cases = [
        case._replace(details=structs.replace(case.details, message=f"{chr(97 + k)} " * 20))
        for k, case in enumerate(after.cases)
    ]
    before = [
        judged(case.id, *RIGHT_ONE) if case.verdict in {*FAILURES, *RIGHT} else case
        for case in after.cases
    ]
    return RunChanges(report(before), replace(after, cases=cases))


@pytest.mark.parametrize("columns", [None, 80])
def test_no_more_than_forty_lines_are_told(capsys, monkeypatch, columns, tmp_path):
    """On a terminal, in a pipe besides the table, and in Markdown; the others are counted."""
    changes = all_fail(200)
    assert len([*changes.findings]) > 60
    if columns:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", f"{columns}")
    show_changes(changes)
    write_markdown(tmp_path / "comment.md", changes)
    told = capsys.readouterr().err.splitlines()
    text = (tmp_path / "comment.md").read_text("utf-8")

    assert len(told) <= 40
    assert any(re.match(r"(and \d+ more; )?-v, ", line) for line in told)
    assert len(text.splitlines()) <= 40
    assert re.search(r"\.\.\. and \d+ more\.", text)


def test_a_pipe_and_json_have_a_row_of_each_case(capsys):
    """By the same names."""
    changes = all_fail(50)
    show_changes(changes)
    heading, *rows = capsys.readouterr().out.splitlines()
    show_changes(changes, as_json=True)
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [row.split("\t")[1] for row in rows] == [each["case"] for each in records]
    assert [*records[0]] == heading.replace(" ", "_").split("\t")
    assert len(rows) == sum(map(len, changes.by_change.values()))


ANSWERED = [name for name, each in REPORTS.items() if any(c.is_answered for c in each.cases)]


@every("name", ANSWERED)
def test_malice_stays_text(tmp_path, capsys, name):
    """In lines, in Markdown and in HTML, whatever a report has; nothing changes beside itself."""
    whole = REPORTS[name]
    right = [
        case._replace(details=structs.replace(case.details, verdict=Verdict.PASS))
        for case in whole.cases
    ]
    for changes in (RunChanges(whole, whole), RunChanges(replace(whole, cases=right), whole)):
        show_changes(changes)
        write_markdown(tmp_path / "comment.md", changes)
        write_html(tmp_path / "page.html", changes)
        told = capsys.readouterr()
        text = (tmp_path / "comment.md").read_text("utf-8")
        page = (tmp_path / "page.html").read_text("utf-8")

        assert not set("\x00\x1b\u202e") & {*told.out, *told.err, *text, *page}
        assert {*re.findall(r"<[^>!]*>", re.sub("`[^`]*`", "", text))} <= {"<br>"}
        assert "<script>document" not in page
    assert RunChanges(whole, whole).exit_code == 0


def test_runs_that_answered_nothing_tell_nothing():
    """Of two runs that skip or refuse all, a comparison would otherwise be green."""
    refused = CASES["gru_14_layout"]
    for before, after in ((SKIPPED, SKIPPED), (refused, refused), (refused, SKIPPED)):
        with pytest.raises(NothingSelected, match="neither run answered a case"):
            RunChanges(run(before), run(after))
