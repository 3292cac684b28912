"""Claims about writing a bug of the equations: a function with a docstring is enough."""

from dataclasses import replace

import numpy as np
from support.recurrences import recurrence_of

from rnncli.backends.backend import Compute
from rnncli.mutants.equivalence import NO_INITIAL_H, NO_Y, UNTOUCHED
from rnncli.mutants.mutant import RIGHT, Family, Variant, reading, results, running

bug = Family("tests", "Everything is wrong.", ("GRU", "LSTM"))


@bug()
def always_clipped(recurrence):
    """Pre-activations are clipped to 1.

    Right where all of them are smaller.
    """
    return replace(recurrence, clip=min(recurrence.clip, 1.0))


@bug(changes=reading("W", "R"), of=("LSTM",), effect="Seen everywhere.")
def weights_negated(values):
    """W and R are subtracted."""
    return -values


@bug(NO_Y, changes=results)
def y_negated(_, Y, last):
    """Y is negated."""
    return -Y, last


@bug(changes=running, unreached="the last state is at most 1")
def last_at_most_one(run, recurrence):
    """Last states are at most 1."""
    right = run(recurrence)
    return replace(right, last=tuple(np.minimum(state, 1) for state in right.last))


def test_name_and_docstring_say_what_it_is():
    """Its first paragraph is the sentence; its second one the effect, else that of the family."""
    clipped, weights, y, _ = bug.rows

    assert (clipped.id, clipped.family) == ("always-clipped", "tests")
    assert clipped.sentence == "Pre-activations are clipped to 1."
    assert clipped.effect == "Right where all of them are smaller."
    assert (weights.cells, weights.effect) == (("LSTM",), "Seen everywhere.")
    assert (y.cells, y.effect) == (("GRU", "LSTM"), "Everything is wrong.")


def test_it_changes_a_recurrence_its_arrays_or_its_results():
    """A function outside the package is a mutant like those inside."""
    r = recurrence_of("LSTM")
    right = RIGHT.run(r, Compute.FLOAT64)
    negated = RIGHT.run(replace(r, W=-r.W, R=-r.R), Compute.FLOAT64)
    _, weights, y, _ = bug.rows

    np.testing.assert_array_equal(weights.run(r).Y, negated.Y)
    np.testing.assert_array_equal(y.run(r).Y, -right.Y)


def test_it_says_why_it_stays_unseen():
    """By a reason, or because it leaves the recurrence or the results as they are."""
    clipped, _, y, last = bug.rows

    assert clipped.equivalent_when(recurrence_of("GRU", clip=0.5)) == UNTOUCHED
    assert y.equivalent_when(replace(recurrence_of("GRU"), wants_Y=False)) == "Y is not asked for"
    assert last.equivalent_when(recurrence_of("GRU")) == "the last state is at most 1"


several_bug = Family("tests", "Only {} is wrong.")
STATES = (Variant("h", 0, NO_INITIAL_H), Variant(("c", "C"), 1, of=("LSTM",)))


@several_bug(each=STATES)
def initial_X_negated(k, recurrence):
    """initial_{} has the other sign."""
    states = (-s if k == which else s for which, s in enumerate(recurrence.initial))
    return replace(recurrence, initial=tuple(states))


@several_bug(changes=results, each=STATES, effect="Y is right.")
def last_X_negated(k, _, Y, last):
    """The last {} has the other sign."""
    return Y, tuple(-s if k == which else s for which, s in enumerate(last))


def test_one_function_is_several_bugs():
    """Their words stand in the id and in the sentence; they are listed variant by variant."""
    ids = ["initial-h-negated", "last-h-negated", "initial-c-negated", "last-c-negated"]
    h, _, c, last = several_bug.rows

    assert [row.id for row in several_bug.rows] == ids
    assert (h.sentence, h.effect) == ("initial_h has the other sign.", "Only h is wrong.")
    assert (c.cells, last.effect) == (("LSTM",), "Y is right.")
    assert h.equivalent_when(replace(recurrence_of("RNN"), initial=(None,)))
    r = recurrence_of("LSTM")
    np.testing.assert_array_equal(last.run(r).last[1], -RIGHT.run(r, Compute.FLOAT64).last[1])
