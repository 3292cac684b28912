"""Claims about reading results: what was printed comes back; anything else is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from msgspec import structs
from support.verifications import PACK, REPORTS, differing, histogram, judged, output, report

from rnncli.errors import RnncliWarning, UnreadableFile
from rnncli.judging.comparing.verdict import Element, Verdict
from rnncli.judging.report import Shard
from rnncli.reports.result_files import UNCOUNTED, UNRECORDED, read_results
from rnncli.reports.verification import show_report


def lines_of(capsys, report):
    """The lines of JSON of a report."""
    show_report(report, as_json=True)
    return capsys.readouterr().out.splitlines()


def kept(report):
    """What the lines say of a report: all but its errors over time."""
    return replace(report, cases=tuple(case._replace(error_over_time=()) for case in report.cases))


@pytest.mark.parametrize("name", REPORTS)
def test_what_verify_prints_is_read_back(tmp_path, capsys, name):
    """Twice in a file, too, whatever messages contain."""
    path = tmp_path / "results.jsonl"
    lines = lines_of(capsys, REPORTS[name])
    path.write_text("\n".join([*lines, *lines, ""]), "utf-8")

    first, second = read_results(path)

    assert repr(kept(REPORTS[name])) == repr(first) == repr(second)
    assert lines_of(capsys, first) == lines


def test_a_run_of_an_older_rnncli_is_read(tmp_path, capsys):
    """It does not say its options, so it is not taken for the whole pack by its own rule."""
    path = tmp_path / "results.jsonl"
    first, *rest = lines_of(capsys, REPORTS["one"])
    path.write_text("\n".join([without(first, "concessions"), *rest]), "utf-8")

    assert read_results(path)[0].concessions == UNRECORDED


def test_what_a_run_of_an_older_rnncli_lacks_is_said(tmp_path, capsys):
    """It does not say how many cases are due, so a line may be gone unseen."""
    path = tmp_path / "results.jsonl"
    first, *rest = lines_of(capsys, REPORTS["one"])
    path.write_text("\n".join([without(first, "due"), *rest]), "utf-8")

    with pytest.warns(RnncliWarning, match=UNCOUNTED):
        (older,) = read_results(path)
    assert older.total == REPORTS["one"].total


def without(line, name):
    """A line of JSON without an entry."""
    record = json.loads(line)
    del record[name]
    return json.dumps(record)


def altered(**entries):
    """Alter entries of every case."""

    def damage(lines):
        cases = (json.dumps(json.loads(line) | entries) for line in lines[1:-1])
        return [lines[0], *cases, lines[-1]]

    return damage


DAMAGES = {
    "nothing": (lambda lines: [], "is empty"),
    "no JSON": (lambda lines: ["{", *lines], "line 1 is not JSON"),
    "text": (lambda lines: ['"run"', *lines], "line 1 is not one that"),
    "another command's": (lambda lines: ['{"kind": "relation"}'], "line 1 is not one that"),
    "no dtype of ours": (altered(dtype="float33"), "line 2.dtype must be one of"),
    "a list for a kind": (lambda lines: ['{"kind": ["run"]}'], "line 1 is not one that"),
    "an object for a kind": (lambda lines: ['{"kind": {}}'], "line 1 is not one that"),
    "no beginning": (lambda lines: lines[1:], "line 1 is a case, expected the first line"),
    "cut off": (lambda lines: lines[:-1], "line 1 begins the run of .* which is incomplete"),
    "cut off in a line": (lambda lines: [*lines[:-1], lines[-1][:9]], "line 17 is not JSON"),
    "another cause": (altered(cause="x"), "has cause 'x', but its other entries make it ''"),
    "two beginnings": (lambda lines: [lines[0], *lines], "line 2 is a run, expected the summary"),
    "a case fewer": (lambda lines: [lines[0], *lines[2:]], "does not count its cases"),
    "a case twice": (lambda lines: [lines[0], lines[1], *lines[1:]], "does not count its cases"),
    "no verdict": (
        lambda lines: [lines[0], without(lines[1], "verdict"), *lines[2:]],
        "line 2 has no 'verdict'",
    ),
    "another verdict": (
        lambda lines: [line.replace('"verdict": "differs"', '"verdict": "pass"') for line in lines],
        "Y: 6 of 40 elements differ, which is not 'pass'",
    ),
    "allowed what no option allows": (altered(allowed="--allow-refused"), "has allowed '--allow-"),
    "no failure": (altered(fails=False), "has fails False, but its other entries make it True"),
    "unanswered": (altered(answered=False), "has answered False, but its other entries"),
    "another margin": (altered(margin=0.5), "has margin 0.5, but its other entries make it"),
    "a command of another program": (
        lambda lines: [lines[0].replace('"rnncli verify', '"rm -rf x; verify'), *lines[1:]],
        "line 1.command must match",
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


def case(verdict, *outputs, **more):
    """A run of one case."""
    return report([judged("gru_14_clip", verdict, {"outputs": outputs, **more})])


WRONG = output(verdict=Verdict.DIFFERS, margin=9.0)
FEW = replace(REPORTS["one"], pack=structs.replace(PACK, cases=3))
# What a run says of itself -> the run, whose summary counts its cases as they are.
CONTRADICTIONS = {
    "Y: 6 of 40 elements differ, which is not 'pass'": case(
        Verdict.PASS, structs.replace(WRONG, verdict=Verdict.PASS)
    ),
    "is 'pass', with Y 'differs'": case(Verdict.PASS, WRONG),
    "is 'pass', with no output": case(Verdict.PASS),
    "is 'skipped', with Y 'differs'": case(Verdict.SKIPPED, WRONG),
    "is 'refused', with Y 'differs'": case(Verdict.REFUSED, WRONG),
    "is 'differs', with Y 'pass'": case(Verdict.DIFFERS, output()),
    "is 'acceptable', with Y 'pass'": case(Verdict.ACCEPTABLE, output(), reading="a=b"),
    "and must give a rejection": report(
        [judged("gru_14_bad", Verdict.PASS, {"outputs": (output(),)}, expect="rejection")]
    ),
    "Y: 0 of 40 elements differ, with a margin of 1.5": case(Verdict.PASS, output(margin=1.5)),
    "Y: 1000000000 of 1 elements differ": case(
        Verdict.DIFFERS, structs.replace(WRONG, size=1, differing=10**9, histogram=())
    ),
    "Y: 0 of 40 elements differ, 0 by its histogram": case(
        Verdict.PASS, output(histogram=histogram(3, 3))
    ),
    "Y: 0 of 40 elements differ, 1 by its histogram": case(
        Verdict.PASS, output(histogram=histogram(*[3] * 39, 11))
    ),
    "has a worst element beyond its tolerance in 'gru_14_clip': 'Y'": case(
        Verdict.PASS, output(worst=Element((0,), 5.0, 0.0, 1e-9))
    ),
    "Y: its largest error is 1000000000.0, and no element is its worst": case(
        Verdict.PASS, output(margin=0.0, max_abs=1e9, max_ulp=1e9, worst=None, histogram=())
    ),
    **{
        f"is 'pass', and has {name} of a failure": case(Verdict.PASS, output(), **{name: entry})
        for name, entry in {
            **{k: v for k, v in differing().items() if k != "outputs"},
            "after": ("gru_14_before",),
            "right_with": "optimization=none",
            "narrowed": ("--steps", "2"),
        }.items()
    },
    "excuses cases by --xfails": replace(
        case(Verdict.DIFFERS, **differing(expected="known")), concessions=()
    ),
    "excuses cases by --allow-refused": replace(
        case(Verdict.REFUSED, allowed="--allow-refused"), concessions=("--xfails",)
    ),
    "is by 'atol 1', which its concessions do not say": replace(REPORTS["one"], rule="atol 1"),
    'is by "the pack\'s tolerances", which its': replace(REPORTS["one"], concessions=("--atol",)),
    "has 1 case, and 2 are due": replace(REPORTS["one"], due=2),
    "has 1 case, and 0 are due": replace(REPORTS["one"], due=0),
    "has 1 of 3 cases of the pack, without --select": FEW,
    "has 1 of 2 cases of the pack": replace(FEW, shard=Shard(1, 2), concessions=("--shard",)),
}


@pytest.mark.parametrize("sentence", CONTRADICTIONS)
def test_a_run_that_contradicts_itself_is_refused(tmp_path, capsys, sentence):
    """Whoever wrote its lines: a verdict follows from its outputs, a count from the pack."""
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(lines_of(capsys, CONTRADICTIONS[sentence])), "utf-8")

    with pytest.raises(UnreadableFile) as raised:
        read_results(path)
    assert sentence in str(raised.value)


def test_a_run_that_stopped_at_a_failure_is_read(tmp_path, capsys):
    """It has fewer cases than are due, and fails."""
    path = tmp_path / "results.jsonl"
    stopped = replace(case(Verdict.DIFFERS, WRONG), due=7)
    path.write_text("\n".join(lines_of(capsys, stopped)), "utf-8")

    assert read_results(path)[0].exit_code == 1
