"""Claims about the runs of many mutants on one recurrence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.judged import core

from rnncli.mutants.catalogue import MUTANTS, mutants_of
from rnncli.mutants.equivalence import same_results
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.runs import Runs, alone, joined, part_of
from rnncli.recurrence.recurrence import Result


def test_an_evaluation_is_done_once():
    """Mutants that change what comes out of the right evaluation share it."""
    r = core()["lstm_14_both"].recurrence
    runs = Runs(r)
    run = runs.of(RIGHT.engine)

    assert run(r) is run(replace(r)) is not run(replace(r, lengths=None))
    assert run(r) is not runs.of(MUTANTS["table-64"].change.engine)(r)


def test_a_mutant_in_a_stack_gives_what_it_gives_alone():
    """Bit for bit, of ragged and of quantised cases, too."""
    names = ("lstm_14_ragged", "gru_14_batch_first_constants", "rnn_14_clip")
    for r in (core()[name].recurrence for name in names):
        mutants = mutants_of(r.cell.name)
        found = joined(Runs(r).results((mutant,) for mutant in mutants))
        results = {
            each.id: part_of(stack, k) for some, stack in found for k, (each,) in enumerate(some)
        }

        assert results.keys() == {mutant.id for mutant in mutants}
        for mutant in mutants[::7]:
            assert same_results(results[mutant.id], mutant.run(r)), mutant.id


def test_results_of_other_shapes_are_apart():
    """One that lacks a step is not joined with those that have all."""
    whole, cut = (alone(Result(np.zeros((T, 1, 2, 3)), (np.zeros((1, 2, 3)),))) for T in (4, 3))

    found = list(joined([(["a"], whole), (["b"], cut), (["c"], whole)]))

    assert [names for names, _ in found] == [["a", "c"], ["b"]]
    assert [stack.Y.shape for _, stack in found] == [(2, 4, 1, 2, 3), (1, 3, 1, 2, 3)]
