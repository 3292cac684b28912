"""Claims about JUnit files, as JUnit's own readers see them."""

from __future__ import annotations

from dataclasses import replace

import junitparser
import pytest
from msgspec import structs
from support.verifications import REPORTS, many

from rnncli.reports.ci import write_junit


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
    of_run = bool(REPORTS[name].shortfall) + bool(REPORTS[name].excesses)
    assert suites.tests == len(REPORTS[name].cases) + of_run


def test_the_message_of_a_failure_has_the_bug(written):
    """Servers list messages alone."""
    found = [
        (case, fails)
        for name, report in REPORTS.items()
        for case in report.cases
        if case.details.fits and case.details.fails and not report.diagnosis and name != "hostile"
        for fails in cases_of(written(report))[case.id].result
    ]

    assert found
    for case, failure in found:
        assert next(iter(case.details.fits)) in failure.message


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
