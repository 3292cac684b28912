"""Claims about losses of precision, which the size of errors and the stored bits tell."""

from dataclasses import replace

import numpy as np
import pytest
from support.judged import core, outputs_of

from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.explaining.patterns import features_of, patterns_of, places_of
from rnncli.judging.explaining.single_steps import steps_of
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.mutant import Change, results, stepped
from rnncli.numerics import DTYPES, round_to


def in_bits(count, function=np.rint):
    """Keep so many significant bits."""

    def rounded(values):
        fractions, exponents = np.frexp(values)
        kept = np.ldexp(function(np.ldexp(fractions, count)), exponents - count)
        return kept.astype(values.dtype)

    return rounded


def bfloat16(values):
    """Round to bfloat16 and back."""
    return round_to(values, DTYPES["bfloat16"]).astype(values.dtype)


def fixed_point(values):
    """Keep 10 binary places of what is below."""
    return np.floor(values * 1024) / 1024


def states(function):
    """Store states so."""
    return Change(stepped(lambda right, p, x, states: tuple(map(function, right(p, x, states)))))


def read_states(function):
    """Read states so, which a step shows less, and write them in full."""
    return Change(stepped(lambda right, p, x, states: right(p, x, tuple(map(function, states)))))


def at_end(function):
    """Store results so, and no state."""
    return results(lambda _, Y, last: (function(Y), tuple(map(function, last))))


def given(function, *names):
    """Store inputs so."""
    return Change(lambda r: replace(r, **{name: function(getattr(r, name)) for name in names}))


SAID = {
    "Y and the states of every step, truncated to 12 significant bits": states(
        in_bits(12, np.trunc)
    ),
    "Y and the states of every step, rounded to 8 significant bits (bfloat16)": states(bfloat16),
    "the right Y, truncated to 11 significant bits (float16 or TensorFloat-32)": at_end(
        in_bits(11, np.trunc)
    ),
    "Y has multiples of 2^-10 alone, truncated: fixed point": states(fixed_point),
    "steps have errors near 2^-8 of the values, as of bfloat16": given(bfloat16, "W", "R"),
    "steps have errors near 2^-11 of the values, as of float16 or TensorFloat-32": MUTANTS[
        "operands-in-tf32"
    ].change,
    "steps have errors near 2^-15 of the values, but not at zero states: of R or of states": (
        read_states(in_bits(14))
    ),
}
LOGIC = ("recurrent-bias-dropped", "initial-h-ignored", "clip-ignored", "gates-z-r-swapped")


def patterns(change, cells=("RNN", "GRU", "LSTM")):
    """The patterns of the failures of every third case."""
    wrong, right, places = [], [], []
    for vector in list(core().values())[::3]:
        if vector.recurrence.cell.name not in cells:
            continue
        found = MeasuredAttempt(vector, outputs_of(vector, change.run(vector.recurrence)))
        (right if found.agrees else wrong).append(features_of(vector))
        if not found.agrees:
            places.append(places_of(found, steps_of(found)))
    return patterns_of(wrong, right, places)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("said", SAID)
def test_the_size_of_errors_is_said(said):
    """First, and not which dtypes are fine enough to show it."""
    first, *others = patterns(SAID[said])

    assert first.sentence.startswith(f"{said}, in ")
    assert not [each for each in others if each.topics == ("dtype",)]


@pytest.mark.parametrize("name", LOGIC)
def test_no_precision_is_said_of_errors_of_logic(name):
    """They are of any size."""
    row = MUTANTS[name]

    assert not [e for e in patterns(row.change, row.cells) if e.topics == ("precision",)]
