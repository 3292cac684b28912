"""Every known bug is named from the wrong outputs of one case that shows it."""

import re

import pytest
from support.judged import core, outputs_of, vectors_of
from support.shipped import vectors
from support.sound_variants import EMULATED, NARROW

from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.explaining.hypotheses import evidence_of_failure, evidence_of_two
from rnncli.judging.scoring.adequacy import Fate, Trial
from rnncli.mutants.catalogue import MUTANTS, mutants_of
from rnncli.mutants.quantised_kernels import unit_bug

CELLS = ("RNN", "GRU", "LSTM")
SMALL = "sizes: {seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 4}, inputs: "
# What no case of core or quantised shows: large sums, other activations, many steps.
MORE = """
{op: CELL-14, SMALL{X: {normal: [0, 3]}, B: uniform}, attributes: {clip: 0.3}}
{op: CELL-14, SMALL{X: {uniform: [300, 400]}, B: uniform}, attributes: {activations: [SIGMOID]}}
{op: CELL-14, SMALL{B: uniform}, attributes: {activations: [SCALED]}}
{op: CELL-14, sizes: {seq_length: 70, batch_size: 1, input_size: 2, hidden_size: 3}, inputs: STATES}
"""
OWN = {
    "RNN": {"SIGMOID": "Sigmoid", "SCALED": "ScaledTanh"},
    "GRU": {"SIGMOID": "Sigmoid, Tanh", "SCALED": "Sigmoid, ScaledTanh"},
    "LSTM": {"SIGMOID": "Sigmoid, Tanh, Tanh", "SCALED": "Sigmoid, ScaledTanh, Tanh"},
}
STATES = dict.fromkeys(CELLS, "{B: uniform, initial_h: uniform}") | {
    "LSTM": "{B: uniform, initial_h: uniform, initial_c: normal}"
}
ALONE = {
    "RNN": (),
    "GRU": (
        f"{{op: GRU-14, {SMALL}{{B: uniform}}, attributes: {{linear_before_reset: 1}}}}",
        f"{{op: webnn.gru, {SMALL}{{bias: uniform}}, attributes: {{layout: rzn}}}}",
    ),
    "LSTM": (
        f"{{op: webnn.lstm, {SMALL}{{peepholeWeight: uniform}}}}",
        f"{{op: webnn.lstm, {SMALL}{{bias: uniform}}, attributes: {{layout: ifgo}}}}",
    ),
}
# A bug that no case shows -> the reading of the specification that it is.
READINGS = {
    "lengths-zero-last-state": "zero-length=initial",
    "alpha-beta-positional": "alpha-order=positional",
    "clip-of-h-activation-flipped": "clip-scope=gates",
    "peepholes-of-new-cell-for-o": "peephole-o=new",
}


def more_of(cell):
    """The cases that core and quantised lack."""
    words = {"CELL": cell, "SMALL": SMALL, "STATES": STATES[cell], **OWN[cell]}
    texts = re.sub("|".join(words), lambda found: words[found[0]], MORE).split("\n")
    return vectors_of(*filter(None, texts), *ALONE[cell])


def cases_of(cell):
    """The cases of a cell, small ones first."""
    found = [*core().values(), *vectors("quantised"), *more_of(cell)]
    own = [v for v in found if v.record.expect == "result" and v.recurrence.cell.name == cell]
    return sorted(own, key=lambda v: v.recurrence.X.size * v.recurrence.W.size)


def naming(mutant, cases, mutants):
    """What is said of the first case that shows a bug: its names; or the readings that it is."""
    readings = set()
    for vector in cases:
        if mutant.unseen(vector.recurrence):
            continue
        result = mutant.run(vector.recurrence)
        outcome = Trial(vector, PACK_RULE).outcome(result)
        if outcome.fate is Fate.KILLED:
            got = outputs_of(vector, result)
            return set(evidence_of_failure(MeasuredAttempt(vector, got), mutants).fits)
        if outcome.fate is Fate.ACCEPTABLE:
            readings.add(outcome.reason.split()[2])
    return readings


@pytest.mark.parametrize("cell", CELLS)
def test_every_bug_is_named_by_the_smallest_case_that_shows_it(cell):
    """Or by the reading that it is, where no case can show it; those of units need units."""
    cases = cases_of(cell)
    mutants = [mutant for mutant in mutants_of(cell) if mutant.family != unit_bug.name]

    found = {mutant.id: naming(mutant, cases, mutants) for mutant in mutants}

    assert [id_ for id_, names in found.items() if READINGS.get(id_, id_) not in names] == []


@pytest.mark.parametrize("cell", CELLS)
def test_every_bug_of_units_is_named_by_its_levels(cell):
    """By the first unit that shows it, among all bugs of the cell; and one unit shows each."""
    cases = [v for v in vectors("units") if v.recurrence.cell.name == cell]
    mutants = mutants_of(cell)
    found = {
        mutant.id: naming(mutant, cases, mutants)
        for mutant in mutants
        if mutant.family == unit_bug.name
    }

    assert [id_ for id_, names in found.items() if id_ not in names] == []


@pytest.mark.parametrize("case_id", ["gru_14_types_s8", "lstm_14_both"])
def test_a_bug_of_levels_is_named_in_coarse_arithmetic(case_id):
    """As of an NPU that computes in float16, truncates Y and rounds Y_h to nearest."""
    vector = next(v for v in vectors("units") if v.id == case_id)
    reals = EMULATED[NARROW].run(vector.recurrence)
    truncated = MUTANTS["y-truncated"].change.result(lambda _: reals, vector.recurrence)
    found = MeasuredAttempt(vector, outputs_of(vector, truncated))
    mutants = mutants_of(vector.recurrence.cell.name)

    fits = evidence_of_two(found, evidence_of_failure(found, mutants), mutants).fits

    assert {"y-truncated", "y-truncated + computed-in-float16"} & fits.keys()
    assert not fits.keys() & {"computed-in-float16", "y-rounded-away + computed-in-float16"}
