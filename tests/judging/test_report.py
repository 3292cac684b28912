"""Claims about counting the cases of a verification."""

import math
from dataclasses import replace

import pytest
from support.verifications import CASES, HOSTILE, REPORTS, every_verdict, judged, output, report

from rnncli.judging.comparing.verdict import FAILURES, MEANINGS, CaseVerdict, OutputVerdict, Verdict
from rnncli.judging.report import largest_margin, tally


def test_every_verdict_is_counted_once():
    """Those that nobody has, too, in the order of tables."""
    total = every_verdict().total

    assert list(total.counts) == list(MEANINGS)
    assert total.cases == len(CASES) == sum(total.counts.values())
    assert (total.fails, total.expected, total.allowed) == (10, 1, 1)
    assert total.answered == 8
    assert tally("none", []).counts == dict.fromkeys(MEANINGS, 0)


def test_a_case_counts_for_its_operator_and_each_of_its_flags():
    """Operators as they appear, flags as the pack explains them, others after those."""
    both = judged("b_1", Verdict.PASS, {}, operator="B", flags=["New", "Ragged", "Reverse"])
    found = report([both, judged("a_1", Verdict.PASS, {}, operator="A", flags=["Ragged"])])

    assert [(row.name, row.cases) for row in found.by_operator] == [("B", 1), ("A", 1)]
    assert [(row.name, row.cases) for row in found.by_flag] == [
        ("Reverse", 1),
        ("Ragged", 2),
        ("New", 1),
    ]


@pytest.mark.parametrize(
    ("verdict", "record", "more", "is_answered"),
    [
        (Verdict.PASS, {}, {"outputs": (output(),)}, True),
        (Verdict.DIFFERS, {}, {"outputs": (output(verdict=Verdict.DIFFERS),)}, True),
        (Verdict.PASS, {"expect": "rejection"}, {}, True),
        (Verdict.ACCEPTED, {"expect": "rejection"}, {}, True),
        (Verdict.PASS, {}, {}, False),
        (Verdict.PASS, {}, {"outputs": (output(size=0),)}, False),
        (
            Verdict.DIFFERS,
            {},
            {"outputs": (OutputVerdict("Y", Verdict.DIFFERS, "no", size=3),)},
            False,
        ),
        (Verdict.SKIPPED, {}, {"outputs": (output(),)}, False),
        *((verdict, {}, {}, False) for verdict in sorted(FAILURES - {Verdict.ACCEPTED})),
    ],
)
def test_an_answer_is_something_computed_that_was_judged(verdict, record, more, is_answered):
    """No element compared is no answer, whatever the verdict."""
    assert judged("x_1", verdict, more, **record).is_answered is is_answered


@pytest.mark.parametrize(
    ("min_cases", "cases", "shortfall"),
    [
        (1, [], "no case was answered"),
        (1, ["lstm_14_forward"], ""),
        (2, ["lstm_14_forward"], "only 1 case answered; --min-cases requires 2"),
        (1, ["gru_14_layout", "gru_14_absent"], "no case was answered"),
        (60, [*CASES], "only 8 cases answered; --min-cases requires 60"),
    ],
)
def test_too_few_answers_are_not_green(min_cases, cases, shortfall):
    """Cases that were refused, skipped or missing are none."""
    found = replace(report(judged(name, *CASES[name]) for name in cases), min_cases=min_cases)

    assert found.shortfall == shortfall
    assert not (found.passed and shortfall)


@pytest.mark.parametrize(
    ("margins", "wanted"),
    [
        ([], None),
        ([0.0], 0.0),
        ([0.5, 3.0, 0.1], 3.0),
        ([0.5, math.nan], math.inf),
        ([math.nan, 0.5], math.inf),
        ([math.inf, 2.0], math.inf),
    ],
)
def test_the_largest_margin_is_the_worst(margins, wanted):
    """NaN is worse than any number; nothing at all is not the same as exact."""
    assert largest_margin(output(margin=margin) for margin in margins) == wanted


def test_what_could_not_be_compared_has_no_margin():
    """A missing output is not an exact one."""
    missing = OutputVerdict("Y", Verdict.DIFFERS, "is missing")

    assert largest_margin([missing]) is None
    assert largest_margin([missing, output(margin=0.5)]) == 0.5


@pytest.mark.parametrize(("name", "fails"), [("empty", False), ("one", False), ("hostile", True)])
def test_a_run_fails_if_a_case_does(name, fails):
    """The exit code follows from it."""
    assert REPORTS[name].fails is fails


def test_the_command_that_repeats_a_case_is_one_for_a_shell():
    """Whatever the id holds; without a command it is the least that can be said."""

    def repeat(found, case_id):
        return found.repeat(CaseVerdict(case_id, Verdict.DIFFERS))

    assert repeat(every_verdict(), "a_1") == f"{every_verdict().command} -k id:a_1"
    assert repeat(every_verdict(), HOSTILE).endswith("]]>'")
    bare = type(report())(report().pack, report().subject, "")
    assert repeat(bare, "x") == "rnncli.verify(..., cases=rnncli.Selected(select='id:x'))"
