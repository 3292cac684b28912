"""Claims about counting the cases of a verification."""

from __future__ import annotations

import math

import pytest
from verifications import CASES, HOSTILE, REPORTS, every_verdict, judged, output, report

from rnncli.judging.verdict import MEANINGS, OutputVerdict, Verdict
from rnncli.judging.verification import largest_margin, tally


def test_every_verdict_is_counted_once():
    """Those that nobody has, too, in the order of tables."""
    total = every_verdict().total

    assert list(total.counts) == list(MEANINGS)
    assert total.cases == len(CASES) == sum(total.counts.values())
    assert (total.fails, total.expected) == (8, 2)
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
    assert every_verdict().repeat("a_1") == f"{every_verdict().command} -k a_1"
    assert every_verdict().repeat(HOSTILE).endswith("]]>'")
    assert type(report())(report().pack, report().subject, "").repeat("x") == "rnncli verify -k x"
