"""Claims about hypotheses, several mutants at once among them, and how near they come."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.judged import core, outputs_of, vectors_of

from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.explaining.fitting import (
    AND,
    READING,
    WrongOutputs,
    are_compatible,
    name_of,
    subsets,
    together,
)
from rnncli.mutants.catalogue import MUTANTS, mutants_of
from rnncli.mutants.mutant import Change, Mutant
from rnncli.mutants.runs import engine_of
from rnncli.recurrence.recurrence import Result

SIZES = "sizes: {seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 5}"


def wrong(vector, name, spoil=lambda _: None):
    """The outputs of a mutant, spoilt, ready to be held against hypotheses."""
    got = outputs_of(vector, MUTANTS[name].run(vector.recurrence))
    got = {output: values.copy() for output, values in got.items()}
    spoil(got)
    return WrongOutputs(MeasuredAttempt(vector, got))


def tried(held, mutant):
    """How near one mutant comes."""
    (fit,) = held.tried([(mutant,)])
    return fit


@pytest.mark.parametrize("name", ["lstm_14_both", "gru_14_batch_first_constants", "rnn_14_clip"])
def test_its_own_outputs_are_at_no_distance(name):
    """And another bug's are far."""
    vector = core()[name]
    held = wrong(vector, "recurrent-bias-dropped")
    own, other = (
        tried(held, MUTANTS[name]) for name in ("recurrent-bias-dropped", "biases-dropped")
    )

    assert (own.margin, own.error) == (0, 0)
    assert other.margin > 1
    assert other.error > 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda got: got.pop("Y_h"),
        lambda got: got.update(Y=got["Y"][:-1]),
        lambda got: got.update(Y=got["Y"].astype(np.float64)),
    ],
)
def test_what_cannot_be_compared_fits_nothing(spoil):
    """A missing output, another shape, another dtype."""
    held = wrong(core()["lstm_14_both"], "biases-dropped", spoil)

    assert not held.is_comparable


def test_a_lost_number_is_far_but_ranked():
    """NaN where a hypothesis has numbers counts as a large error, not as none."""
    vector = core()["lstm_14_both"]

    def lose(got):
        got["Y"][0, 0, 0, 0] = np.nan

    fit = tried(wrong(vector, "biases-dropped", lose), MUTANTS["biases-dropped"])

    assert fit.margin == math.inf
    assert 0 < fit.error < math.inf


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("layout", [0, 1])
def test_what_follows_from_a_lost_number_does_not_count(direction, layout):
    """Where Softplus has overflowed, the next steps of that sequence are anybody's."""
    vector = vectors_of(
        f"{{op: GRU-22, {SIZES}, inputs: {{X: {{normal: [0, 256]}}}}, attributes: {{direction:"
        f" {direction}, layout: {layout}, activations: {ACTIVATIONS[direction]}}}}}"
    )[0]
    row = MUTANTS["softplus-overflows"]
    outputs = outputs_of(vector, row.run(vector.recurrence))
    Y = outputs["Y"] if not layout else outputs["Y"].transpose(1, 2, 0, 3)
    bad = ~np.isfinite(Y).all(axis=-1)  # [T, D, N]
    assert bad.any()
    d, n = (int(k[0]) for k in np.nonzero(bad.any(axis=0)))
    steps = np.nonzero(bad[:, d, n])[0]
    backward = direction == "reverse" or d == 1
    first = steps.max() if backward else steps.min()
    after = first - 1 if backward else first + 1

    def at(t):
        def spoil(got):
            got["Y"][(t, d, n) if not layout else (n, t, d)] = 12345.0

        return tried(wrong(vector, "softplus-overflows", spoil), row).margin

    assert at(first) > 1
    if 0 <= after < len(Y):
        assert at(after) == 0


ACTIVATIONS = {
    "forward": "[Sigmoid, Softplus]",
    "reverse": "[Sigmoid, Softplus]",
    "bidirectional": "[Sigmoid, Softplus, Sigmoid, Softplus]",
}


def test_large_numbers_of_a_hypothesis_have_their_own_tolerance():
    """Where the right result is tiny, a wrong one of size 1 is still rounded like any other."""
    vector = core()["rnn_14_closed"]

    def last_bit(got):
        got["Y"] = np.nextafter(got["Y"], np.float32(0))

    held = wrong(vector, "activations-ignored", last_bit)

    assert tried(held, MUTANTS["activations-ignored"]).margin <= 1


def test_hypotheses_in_stacks_give_what_each_gives_alone():
    """Bit for bit: those that are alike are lanes of one walk."""
    for name in ("lstm_14_both", "gru_14_batch_first_constants", "rnn_14_clip"):
        vector = core()[name]
        held = wrong(vector, "biases-dropped")
        mutants = mutants_of(held.recurrence.cell.name)

        together = held.tried((mutant,) for mutant in mutants)

        assert [fit.hypothesis[0] for fit in together] == list(mutants)
        for fit in together[::5]:
            assert fit == tried(wrong(vector, "biases-dropped"), fit.hypothesis[0])


def test_what_is_not_remembered_fits_as_well(monkeypatch):
    """Of large cases hundreds of changed recurrences are not kept."""
    vector = core()["lstm_14_both"]
    singles = [(mutant,) for mutant in mutants_of("LSTM")[::9]]
    kept = wrong(vector, "biases-dropped").tried(singles)
    monkeypatch.setattr("rnncli.mutants.runs.LARGEST_CACHED", 0)

    assert wrong(vector, "biases-dropped").tried(singles) == kept


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
    found = {name_of(pair) for pair in subsets(mutants, 2)}

    assert f"padding-read-reversed{AND}padding-written-reversed" in found
    assert f"table-64{AND}table-1024" not in found
    engines = named("table-64", "computed-in-float16", "biases-dropped")
    assert {name_of(pair) for pair in subsets(engines, 2)} == {
        f"table-64{AND}biases-dropped",
        f"computed-in-float16{AND}biases-dropped",
    }
    assert engine_of(tuple(engines[1:])) is engines[1].change.engine


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_subsets_are_all_of_two_and_more(count):
    """The fewest first."""
    some = [each for each in mutants_of("RNN") if each.change.engine is Change().engine][:count]
    sizes = [len(each) for each in subsets(some, len(some))]

    assert len(sizes) == max(0, 2**count - count - 1)
    assert sizes == sorted(sizes)


def test_two_readings_exclude_each_other():
    """Each replaces the whole recurrence."""
    recurrence = core()["lstm_14_both"].recurrence

    assert not are_compatible([reading(recurrence), reading(recurrence)])
    assert are_compatible([reading(recurrence), *named("biases-dropped")])


@pytest.mark.parametrize(("distance", "fits"), [(0.9, True), (1.1, False), (1.9, False)])
def test_a_hypothesis_fits_up_to_its_tolerance(distance, fits):
    """One element is off by so many tolerances."""
    vector, name = core()["lstm_14_both"], "biases-dropped"

    def off_by(error):
        def spoil(got):
            got["Y"] = got["Y"].astype(np.float64)
            got["Y"][0, 0, 0, 0] += error
            got["Y"] = got["Y"].astype(np.float32)

        return wrong(vector, name, spoil)

    tolerance = 1e-3 / tried(off_by(1e-3), MUTANTS[name]).margin
    held = off_by(distance * tolerance)

    assert bool(held.fitting([(MUTANTS[name],)])) is fits
