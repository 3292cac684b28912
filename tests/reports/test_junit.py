"""Claims about JUnit files, as JUnit's own readers see them."""

from __future__ import annotations

from dataclasses import replace

import junitparser
import pytest
from msgspec import structs
from support.verifications import REPORTS, every_verdict, judged, many, output, report

from rnncli.judging.comparing.verdict import Verdict
from rnncli.reports.junit import write_junit


@pytest.fixture
def written(tmp_path):
    """Write a report and read it with a JUnit parser."""

    def write(verification):
        write_junit(tmp_path / "junit.xml", verification)
        return junitparser.JUnitXml.fromfile(tmp_path / "junit.xml")

    return write


def cases_of(suites):
    """Every test case by name."""
    return {case.name: case for suite in suites for case in suite}


@pytest.mark.parametrize("name", REPORTS)
def test_what_it_says_adds_up(written, name):
    """The counts that are written are those of a reader that counts for itself."""
    suites = written(REPORTS[name])
    said = [(s.tests, s.failures, s.errors, s.skipped) for s in (suites, *suites)]
    for each in (*suites, suites):
        each.update_statistics()

    assert said == [(s.tests, s.failures, s.errors, s.skipped) for s in (suites, *suites)]
    assert suites.tests == len(REPORTS[name].cases) + bool(REPORTS[name].shortfall)


def test_a_suite_says_why_its_cases_are_refused(written, tmp_path):
    """Each reason once, with the number of its cases, and what would skip them."""
    passes = judged("lstm_14_a", Verdict.PASS, {"outputs": (output(),)})
    refused = [
        judged(
            f"lstm_14_{k}", Verdict.REFUSED, {"message": f"no float16 in step {k}"}, dtype="float16"
        )
        for k in range(3)
    ]
    written(report([passes, *refused]))
    page = (tmp_path / "junit.xml").read_text("utf-8")
    told = page.partition("<system-out>")[2].partition("</system-out>")[0]

    assert told.splitlines()[0] == "refused 3: no float16 in step 0"
    written(report([passes]))
    assert "system-out" not in (tmp_path / "junit.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("case_id", "outcome", "kind"),
    [
        ("lstm_14_forward", None, None),
        ("lstm_14_alpha_order", None, None),
        ("gru_14_layout", junitparser.Failure, "refused"),
        ("lstm_14_reverse_float16_ragged", junitparser.Failure, "differs"),
        ("rnn_14_bad_shape", junitparser.Failure, "accepted"),
        ("gru_14_empty", junitparser.Error, "crashed"),
        ("gru_14_long", junitparser.Error, "timeout"),
        ("lstm_22_bfloat16", junitparser.Skipped, None),
        ("lstm_14_known", junitparser.Skipped, None),
        ("lstm_14_fixed", junitparser.Failure, "pass"),
    ],
)
def test_verdicts_have_junits_words(written, case_id, outcome, kind):
    """Being wrong fails, not getting that far is an error, a known failure is skipped."""
    result = cases_of(written(every_verdict()))[case_id].result

    assert [type(each) for each in result] == ([outcome] if outcome else [])
    assert [each.type for each in result] == ([kind] if outcome else [])


def test_every_operator_is_a_suite_that_knows_what_was_judged(written):
    """In order of appearance; a case tells its time."""
    suites = written(every_verdict())
    properties = {p.name: p.value for p in next(iter(suites)).properties()}

    assert [suite.name for suite in suites] == ["LSTM-14", "GRU-14", "RNN-14", "LSTM-22"]
    assert properties["subject.version"] == "1.31.1"
    assert properties["pack.digest"] == every_verdict().pack.digest
    assert cases_of(suites)["gru_14_long"].time == 60.0


def test_the_files_of_several_shards_do_not_share_a_name(written):
    """A server that joins them shows which is which."""
    suites = written(REPORTS["a shard"])

    assert suites.name.endswith(" 2/3")
    assert all(suite.name.endswith(" 2/3") for suite in suites)


def test_a_failure_says_all_that_the_terminal_says(written):
    """The first sentence as its message, all of them as its text."""
    failure = cases_of(written(every_verdict()))["lstm_14_reverse_float16_ragged"].result[0]

    assert failure.message.startswith("Y: 6 of 40 differ")
    assert "-k id:lstm_14_reverse_float16_ragged" in failure.text.splitlines()[-1]


def test_malice_stays_text(written):
    """Markup, control characters and halves of characters come back as what they show."""
    suites = written(REPORTS["hostile"])
    failures = [each for case in cases_of(suites).values() for each in case.result]

    assert len(cases_of(suites)) == len(REPORTS["hostile"].cases)
    assert any(r"</script><script>document.title='owned'" in each.message for each in failures)
    assert any(r"\x00\x1b[31m\ud800" in each.message for each in failures)


def test_a_name_is_one_line(written):
    """Viewers of JUnit show names as headings: a line of a stranger's would look like ours."""
    verification = many(3)
    pack = structs.replace(verification.pack, name="x\nrepeat: touch x")
    suites = written(replace(verification, pack=pack))

    assert r"x\nrepeat: touch x" in suites.name
    assert {case.classname for case in cases_of(suites).values()} == {
        r"x\nrepeat: touch x." + suite.name for suite in suites
    }


def test_the_same_report_gives_the_same_bytes(tmp_path):
    """No date, no name of a machine; what was there is replaced."""
    paths = [tmp_path / name for name in ("a.xml", "b.xml", "b.xml")]
    for path in paths:
        write_junit(path, many(50))

    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_too_few_answers_are_a_failure(written):
    """A CI server that reads nothing but this file must not see a green run."""
    suites = written(report())

    assert (suites.tests, suites.failures) == (1, 1)
    assert [case.result[0].message for suite in suites for case in suite] == [
        "no case was answered"
    ]
