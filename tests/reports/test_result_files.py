"""Claims about reading results: what was printed comes back; anything else is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from verifications import REPORTS

from rnncli.errors import UnreadableFile
from rnncli.reports.result_files import read_results
from rnncli.reports.verification import show_report


def lines_of(capsys, report):
    """The lines of JSON of a report."""
    show_report(report, as_json=True)
    return capsys.readouterr().out.splitlines()


def kept(report):
    """What the lines say of a report: all but its diagnosis and its errors over time."""
    cases = tuple(
        case._replace(verdict=replace(case.verdict, error_over_time=())) for case in report.cases
    )
    return replace(report, cases=cases, diagnosis=None)


@pytest.mark.parametrize("name", REPORTS)
def test_what_verify_prints_is_read_back(tmp_path, capsys, name):
    """Twice in a file, too, whatever messages contain."""
    path = tmp_path / "results.jsonl"
    lines = lines_of(capsys, REPORTS[name])
    path.write_text("\n".join([*lines, *lines, ""]), "utf-8")

    first, second = read_results(path)

    assert repr(kept(REPORTS[name])) == repr(first) == repr(second)
    assert lines_of(capsys, first)[1] == lines[1] or REPORTS[name].diagnosis


def without(line, name):
    """A line of JSON without an entry."""
    record = json.loads(line)
    del record[name]
    return json.dumps(record)


DAMAGES = {
    "nothing": (lambda lines: [], "is empty"),
    "no JSON": (lambda lines: ["{", *lines], "line 1 is not JSON"),
    "text": (lambda lines: ['"run"', *lines], "line 1 is not one that"),
    "another command's": (lambda lines: ['{"kind": "relation"}'], "line 1 is not one that"),
    "no beginning": (lambda lines: lines[1:], "line 1 is a case, expected the first line"),
    "cut off": (lambda lines: lines[:-1], "at its end has no summary"),
    "two beginnings": (lambda lines: [lines[0], *lines], "line 2 is a run, expected the summary"),
    "a case fewer": (lambda lines: [lines[0], *lines[2:]], "does not count its cases"),
    "a case twice": (lambda lines: [lines[0], lines[1], *lines[1:]], "does not count its cases"),
    "no verdict": (
        lambda lines: [lines[0], without(lines[1], "verdict"), *lines[2:]],
        "line 2 has no 'verdict'",
    ),
    "another verdict": (
        lambda lines: [line.replace('"verdict": "differs"', '"verdict": "pass"') for line in lines],
        "does not count its cases",
    ),
    "a made-up verdict": (
        lambda lines: [line.replace('"verdict": "differs"', '"verdict": "fine"') for line in lines],
        "verdict must be one of",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_results_that_verify_did_not_print_are_refused(tmp_path, capsys, name):
    """With the line and the reason: a page made of half a run would say too little."""
    damage, reason = DAMAGES[name]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(damage(lines_of(capsys, REPORTS["every verdict"]))), "utf-8")

    with pytest.raises(UnreadableFile, match=reason) as raised:
        read_results(path)
    assert str(path) in str(raised.value)
