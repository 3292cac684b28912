"""Claims about several mutants at once."""

from dataclasses import replace

import numpy as np
import pytest
from judged import core

from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.explaining.combinations import (
    AND,
    READING,
    are_compatible,
    engine_of,
    name_of,
    pairs,
    subsets,
    together,
)
from rnncli.judging.explaining.fitting import WrongOutputs
from rnncli.mutants.catalogue import MUTANTS, mutants_of
from rnncli.mutants.mutant import Change, Mutant
from rnncli.recurrence.recurrence import Result


def named(*ids):
    """Mutants by id."""
    return [MUTANTS[name] for name in ids]


def reading(recurrence):
    """A change of all that a recurrence is."""
    change = Change(recurrence=lambda _: recurrence)
    return Mutant("clip-scope=gates", ("LSTM",), READING, "Reads.", "", change)


def fits(vector, outputs, hypothesis):
    """Whether a hypothesis gives just these outputs."""
    (fit,) = WrongOutputs(MeasuredAttempt(vector, outputs)).tried([hypothesis])
    return fit.margin == 0


def outputs(result):
    """The outputs of a node that has them all."""
    return dict(zip(("Y", "Y_h", "Y_c"), (result.Y, *result.last), strict=False))


def test_each_does_its_part():
    """Dropping both biases one after the other is dropping both at once."""
    vector = core()["lstm_14_both"]
    both = together(named("input-bias-dropped", "recurrent-bias-dropped"))
    got = outputs(MUTANTS["biases-dropped"].run(vector.recurrence))

    assert name_of(both) == f"input-bias-dropped{AND}recurrent-bias-dropped"
    assert fits(vector, got, both)
    assert not fits(vector, got, both[:1])


def test_a_reading_comes_first():
    """It replaces the whole recurrence: after it a bug would be forgotten."""
    vector = core()["lstm_14_both"]
    other = replace(vector.recurrence, clip=0.5)
    both = together([*named("biases-dropped"), reading(other)])

    assert name_of(both).startswith("clip-scope=gates")
    assert fits(vector, outputs(MUTANTS["biases-dropped"].run(other)), both)


def test_results_are_changed_in_turn():
    """Each sees what the one before it made."""

    def times(name, factor, more):
        def result(run, recurrence):
            right = run(recurrence)
            return Result(right.Y * np.float32(factor) + np.float32(more), right.last)

        return Mutant(name, ("RNN",), name, "", "", Change(result=result))

    vector = core()["rnn_7_plain"]
    right = Change().run(vector.recurrence, Compute.FLOAT64)
    right.Y = right.Y * np.float32(2) + np.float32(1)

    assert fits(vector, outputs(right), (times("a", 2, 0), times("b", 1, 1)))


def test_pairs_are_all_that_can_be_at_work_together():
    """Of one family, too: a rule can be got wrong twice; but one arithmetic computes."""
    mutants = mutants_of("RNN")
    found = {name_of(pair) for pair in pairs(mutants)}

    assert f"padding-read-reversed{AND}padding-written-reversed" in found
    assert f"table-64{AND}table-1024" not in found
    engines = named("table-64", "computed-in-float16", "biases-dropped")
    assert {name_of(pair) for pair in pairs(engines)} == {
        f"table-64{AND}biases-dropped",
        f"computed-in-float16{AND}biases-dropped",
    }
    assert engine_of(tuple(engines[1:])) is engines[1].change.engine


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_subsets_are_all_of_two_and_more(count):
    """The fewest first."""
    some = [each for each in mutants_of("RNN") if each.change.engine is Change().engine][:count]
    sizes = [len(each) for each in subsets(some)]

    assert len(sizes) == max(0, 2**count - count - 1)
    assert sizes == sorted(sizes)


def test_two_readings_exclude_each_other():
    """Each replaces the whole recurrence."""
    recurrence = core()["lstm_14_both"].recurrence

    assert not are_compatible([reading(recurrence), reading(recurrence)])
    assert are_compatible([reading(recurrence), *named("biases-dropped")])
