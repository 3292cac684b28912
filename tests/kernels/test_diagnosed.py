"""Claims about the measure of diagnoses: what it calls right, sensible, none and misleading."""

import pytest
from kernels import diagnosed
from kernels.bug import HELD_OUT, TUNING
from kernels.switch_table import BUGS
from kernels.thresholds import OTHERS
from support.judged import CORE

from rnncli.judging.explaining import diagnosis
from rnncli.judging.explaining.diagnosis import Cause, Diagnosis

INVERTED = "units:blend-inverted"
MISSING = "tiles:peephole-of-o-missing"


def named(*hypotheses, as_good=()):
    """A diagnosis with those causes."""
    return Diagnosis(
        tuple(Cause(name, "LSTM", ("a",), 1, 0, (), 0.5, tuple(as_good)) for name in hypotheses)
    )


def test_every_bug_has_names():
    """The rows of the table, in its order."""
    assert list(diagnosed.expected()) == list(BUGS)


@pytest.mark.parametrize(
    ("bug", "names", "kind"),
    [
        (INVERTED, ["z-inverted"], "right"),
        (MISSING, ["peepholes-dropped-from-o", "peepholes-dropped"], "right"),
        (MISSING, ["peepholes-dropped"], "sensible"),
        (MISSING, [], "none"),
        (MISSING, ["peepholes-dropped-from-o", "clip-ignored"], "misleading"),
        (MISSING, ["peepholes-dropped-from-o + clip-ignored"], "misleading"),
    ],
)
def test_one_other_cause_misleads(bug, names, kind):
    """However right the rest is."""
    assert diagnosed.classify(named(*names), bug) == kind


def test_what_is_as_good_counts_only_among_the_first():
    """A right name that stands after many others is not found by a reader."""
    others = ["a", "peepholes-dropped-from-o"]

    assert diagnosed.classify(named("z", as_good=others), MISSING) == "right"
    assert diagnosed.classify(named("z", as_good=["b", *others]), MISSING) == "misleading"


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["z-inverted", "peepholes-dropped-from-o"], "both"),
        (["z-inverted + peepholes-dropped-from-o"], "both"),
        (["z-inverted"], "one"),
        ([], "none"),
        (["z-inverted", "clip-ignored"], "misleading"),
    ],
)
def test_of_two_bugs_both_may_be_named(names, kind):
    """By two causes, or by one that is both."""
    assert diagnosed.classify_pair(named(*names), (INVERTED, MISSING)) == kind


@pytest.mark.parametrize("half", [TUNING, HELD_OUT])
def test_pairs_are_of_one_half_and_one_kernel(half):
    """And the same each time."""
    found = diagnosed.pairs(half)

    assert found == diagnosed.pairs(half)
    assert len(found) == diagnosed.PAIRS
    assert all({BUGS[a].half, BUGS[b].half} == {half} for a, b in found)
    assert all(BUGS[a].kernel == BUGS[b].kernel for a, b in found)
    assert len(set(found)) == len(found)


def test_a_planted_bug_is_diagnosed_as_verify_would():
    """From its kernel's outputs to its name."""
    _, kind, said = diagnosed.measured(CORE, ("tiles:forget-bias-plus-one",))

    assert kind == "right"
    assert said[0].startswith("LSTM: forget-bias-plus-one explains ")


def test_one_output_that_is_left_sorted_is_named():
    """Not all outputs, as a mutant that is scored leaves them."""
    _, kind, said = diagnosed.measured(CORE, ("units:y-not-unsorted",))

    assert kind == "right"
    assert "y-left-sorted-by-length" in said[0]


def test_held_out_bugs_are_not_printed(capsys, monkeypatch):
    """Nothing but how many there are of each kind."""
    monkeypatch.setattr(diagnosed, "measured", lambda _, bugs: (bugs, "none", ("said",)))
    diagnosed.main(["pack", "--half", HELD_OUT])
    printed = capsys.readouterr().out

    assert printed.count("\n") == 1
    assert not any(bug.name in printed for bug in BUGS.values())


def test_every_constant_of_diagnosis_is_measured():
    """What is tuned has other values to be compared with, none of which is its own."""
    tuned = {
        name
        for name, value in vars(diagnosis).items()
        if name.isupper() and type(value) in {int, float, set}
    }

    assert tuned == {name for module, name in OTHERS if module is diagnosis}
    assert all(getattr(*row) not in values for row, values in OTHERS.items())
