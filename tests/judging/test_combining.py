"""Claims about several mutants at once."""

from dataclasses import replace

import numpy as np
import pytest
from judged import core

from rnncli.backends.backend import Compute
from rnncli.judging.combining import AND, READING, are_compatible, pairs, subsets, together
from rnncli.mutants.mutant import Change, Mutant
from rnncli.mutants.table import MUTANTS, mutants_of
from rnncli.recurrence.recurrence import Result


def named(*ids):
    """Mutants by id."""
    return [MUTANTS[name] for name in ids]


def reading(recurrence):
    """A change of all that a recurrence is."""
    change = Change(recurrence=lambda _: recurrence)
    return Mutant("clip-scope=gates", ("LSTM",), READING, "Reads.", "", change)


def test_each_does_its_part():
    """Dropping both biases one after the other is dropping both at once."""
    recurrence = core()["lstm_14_both"].recurrence
    both = together(named("input-bias-dropped", "recurrent-bias-dropped"))

    assert both.id == f"input-bias-dropped{AND}recurrent-bias-dropped"
    assert np.array_equal(both.run(recurrence).Y, MUTANTS["biases-dropped"].run(recurrence).Y)


def test_a_reading_comes_first():
    """It replaces the whole recurrence: after it a bug would be forgotten."""
    recurrence = core()["lstm_14_both"].recurrence
    other = replace(recurrence, clip=0.5)
    both = together([*named("biases-dropped"), reading(other)])

    assert both.id.startswith("clip-scope=gates")
    assert np.array_equal(both.run(recurrence).Y, MUTANTS["biases-dropped"].run(other).Y)


def test_results_are_changed_in_turn():
    """Each sees what the one before it made."""

    def times(name, factor, more):
        def result(run, recurrence):
            return Result(run(recurrence).Y * factor + more, ())

        return Mutant(name, ("RNN",), name, "", "", Change(result=result))

    recurrence = core()["rnn_7_plain"].recurrence
    right = Change().run(recurrence, Compute.FLOAT64).Y
    both = together([times("a", 2, 0), times("b", 1, 1)])

    assert np.array_equal(both.run(recurrence).Y, right * 2 + 1)


def test_pairs_are_of_different_families_and_parts():
    """Two of one family are rarely two bugs; one arithmetic computes."""
    mutants = mutants_of("RNN")
    families = {mutant.id: mutant.family for mutant in mutants}
    found = [pair.id.split(AND) for pair in pairs(mutants)]

    assert found
    assert all(families[a] != families[b] for a, b in found)
    assert len({frozenset(pair) for pair in found}) == len(found)
    engines = named("table-64", "h-stored-in-bfloat16", "biases-dropped")
    assert AND.join(("table-64", "biases-dropped")) in {each.id for each in pairs(engines)}


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_subsets_are_all_of_two_and_more(count):
    """The fewest first."""
    some = [each for each in mutants_of("RNN") if each.change.engine is Change().engine][:count]
    sizes = [len(each.id.split(AND)) for each in subsets(some)]

    assert len(sizes) == max(0, 2**count - count - 1)
    assert sizes == sorted(sizes)


def test_two_readings_exclude_each_other():
    """Each replaces the whole recurrence."""
    recurrence = core()["lstm_14_both"].recurrence

    assert not are_compatible([reading(recurrence), reading(recurrence)])
    assert are_compatible([reading(recurrence), *named("biases-dropped")])
