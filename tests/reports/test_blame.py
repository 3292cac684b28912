"""Claims about the cells of tables: a feature is wrong only if it is what fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_entries
from support.judged import core
from support.tables import every
from support.verifications import judged, output, report

from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.diagnosis import Cause, Diagnosis
from rnncli.reports.blame import QUALITY, WORDS, blames, cell


def case(name, flags, verdict="differs", fits=()):
    """A case with flags, and the bugs that fit it."""
    known = dict.fromkeys(fits, 0.5)
    found = judged(f"lstm_14_{name}", Verdict(verdict), {"outputs": (output(),), "fits": known})
    return found._replace(record=with_entries(found.record, flags=flags))


# Name -> cases as (flags, verdict, bugs that fit), and what the first one is blamed on.
BLAMED = {
    "no case of one passes": (
        [(["Bias", "Clip"], "differs", ()), (["Bias"], "pass", ())],
        ["Clip"],
    ),
    "another reading passes": (
        [(["Bias", "Clip"], "differs", ()), (["Bias"], "acceptable", ())],
        ["Clip"],
    ),
    "a refusal does not": (
        [(["Bias", "Clip"], "differs", ()), (["Bias"], "refused", ())],
        ["Bias", "Clip"],
    ),
    "the same bug fails elsewhere": (
        [
            (["One"], "differs", ["peepholes-dropped"]),
            (["One"], "pass", ()),
            (["Peepholes"], "differs", ["peepholes-dropped"]),
        ],
        ["Peepholes"],
    ),
    "the bug's most frequent feature": (
        [
            (["One"], "differs", ["lengths-ignored"]),
            (["One"], "pass", ()),
            (["Ragged", "Layout"], "differs", ["lengths-ignored"]),
            (["Ragged"], "differs", ["lengths-ignored"]),
        ],
        ["Ragged"],
    ),
    "a feature that never passes need not be to blame": (
        [
            (["Constants"], "differs", ["lengths-ignored"]),
            *[(["Ragged"], "differs", ["lengths-ignored"])] * 5,
        ],
        ["Ragged"],
    ),
    "both may be to blame if they have much of its cases": (
        [
            (["BackwardActivations"], "differs", ["second-direction-reuses-activations"]),
            *[(["AlphaOrder"], "differs", ["second-direction-reuses-activations"])] * 4,
        ],
        ["BackwardActivations"],
    ),
    "many bugs say nothing": (
        [
            (["One"], "differs", ["a", "b", "c", "d"]),
            (["One"], "pass", ()),
            (["Peepholes"], "differs", ["a", "b", "c", "d"]),
        ],
        ["One"],
    ),
    "what asks for more than ordinary numbers": (
        [
            (["NaN", "Edges"], "differs", ()),
            (["NaN"], "pass", ()),
            (["Edges"], "pass", ()),
        ],
        ["NaN"],
    ),
    "what one bug's cases have in common": (
        [
            (["Bias", "Clip"], "differs", ["clip-ignored"]),
            (["Wide", "Clip"], "differs", ["clip-ignored"]),
            (["Bias"], "pass", ()),
            (["Wide"], "pass", ()),
            (["Clip"], "pass", ()),
        ],
        ["Clip"],
    ),
    "nothing tells": (
        [(["Bias", "Clip"], "differs", ()), (["Bias"], "pass", ()), (["Clip"], "pass", ())],
        ["Bias", "Clip"],
    ),
}


def run(rows):
    """A report of cases."""
    return report([case(f"c{k}", *row) for k, row in enumerate(rows)])


@every("name", BLAMED)
def test_what_fails_in_a_case(name):
    """By what else passes and fails in the run."""
    rows, wanted = BLAMED[name]

    assert list(blames(run(rows))["lstm_14_c0"].features) == wanted


def test_a_diagnosis_goes_before_what_fits():
    """It has seen all the cases."""
    rows, _ = BLAMED["many bugs say nothing"]
    cause = Cause("peepholes-dropped", "LSTM", ("lstm_14_c0", "lstm_14_c2"), 2, 1, (), 0.5)
    found = blames(replace(run(rows), diagnosis=Diagnosis((cause,))))

    assert found["lstm_14_c0"].features == ("Peepholes",)


def test_only_cases_that_differ_are_blamed():
    """The others have a word of their own."""
    assert not blames(report([case(f"c{v}", ["Clip"], v) for v in Verdict if v != "differs"]))


CELLS = {
    "its own": ([(["Clip"], "differs", ())], "Clip", "wrong", "differs"),
    "another's": (BLAMED["no case of one passes"][0], "Bias", "1 wrong by Clip", "elsewhere"),
    "its own first": (
        [
            (["Bias"], "differs", ["bias-dropped"]),
            (["Bias", "Clip"], "differs", ()),
            (["Bias"], "pass", ()),
        ],
        "Bias",
        "1 wrong, 1 wrong by Clip",
        "differs",
    ),
    "quality": ([(["Softplus"], "differs", ())], "Softplus", "lossy", "lossy"),
    "quality of another": (
        [(["Softplus", "Float16"], "differs", ()), (["Float16"], "pass", ())],
        "Float16",
        "1 lossy by Softplus",
        "elsewhere",
    ),
    "a bug of ordinary numbers": (
        [(["Softplus"], "differs", ["x"]), (["Activations"], "differs", ["x"])],
        "Softplus",
        "wrong",
        "differs",
    ),
}


@every("rows, flag, words, colour", CELLS.values(), CELLS)
def test_a_cell_is_red_only_where_its_feature_fails(rows, flag, words, colour):
    """Elsewhere it says which feature does."""
    found = run(rows)
    cases = [each for each in found.cases if flag in each.record.flags]

    assert cell(cases, blames(found), flag)[:2] == (words, colour)


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (["pass"] * 3, "ok"),
        (["refused"] * 3, "refused"),
        (["pass", "differs", "differs"], "2 wrong"),
        (["refused", "differs", "acceptable"], "1 wrong, 1 refused, 1 other reading"),
        ([], "-"),
    ],
)
def test_a_cell_says_what_became_of_the_cases(verdicts, words):
    """All of them in a word; some of them with their number."""
    found = run([(["Clip"], each, ()) for each in verdicts])

    assert cell(found.cases, blames(found)).words == words


def test_a_cell_has_a_word_for_every_verdict_but_pass():
    """A verdict without one would look like a pass."""
    assert {*WORDS} == {*Verdict} - {Verdict.PASS}


def test_quality_is_a_matter_of_flags_that_core_has():
    """A name that no case has would change nothing."""
    assert {flag for vector in core().values() for flag in vector.record.flags} >= QUALITY
