"""Claims about moved inputs and states that start anew, each against arithmetic written here."""

from dataclasses import replace

import numpy as np
import pytest
from recurrences import recurrence_of

from rnncli.backends.backend import Compute
from rnncli.mutants.catalogue import MUTANTS, is_scored
from rnncli.mutants.equivalence import RIGHT
from rnncli.mutants.shifted import CHUNKS

LONG = {"T": 11, "N": 3, "D": 2, "lengths": [11, 0, 9], "dtype": "float64"}


def run(name, recurrence):
    """What a mutant gives."""
    return MUTANTS[name].run(recurrence)


def right(recurrence):
    """What is right, by the walk that mutants take."""
    return RIGHT.run(recurrence, Compute.FLOAT64)


def test_no_suite_is_scored_by_them():
    """They name what is wrong, as finer variants do."""
    assert not any(is_scored(f"h-reset-every-{every}-steps") for every in CHUNKS)
    assert not is_scored("x-one-step-late")


@pytest.mark.parametrize(
    ("name", "kept"), [("h-reset", (1,)), ("c-reset", (0,)), ("states-reset", ())]
)
def test_a_state_is_zero_again_after_four_steps(name, kept):
    """Steps 4 to 7 are those of a sequence of their own; reverse counts from a sequence's end."""
    r = recurrence_of("LSTM", **LONG)
    found = run(f"{name}-every-4-steps", r)
    four = right(replace(r, X=r.X[:4], lengths=np.minimum(r.lengths, 4)))
    start = tuple(s if k in kept else np.zeros_like(s) for k, s in enumerate(four.last))
    next_four = right(replace(r, X=r.X[4:8], lengths=None, initial=start))

    np.testing.assert_allclose(found.Y[:4, 0], four.Y[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found.Y[4:8, 0, 0], next_four.Y[:, 0, 0], rtol=1e-12)
    last = right(replace(r, X=r.X[7:11], lengths=None, directions=r.directions))
    np.testing.assert_allclose(found.Y[7:11, 1, 0], last.Y[:, 1, 0], rtol=1e-12)


@pytest.mark.parametrize("keeps", [False, True])
def test_sequences_of_length_zero_end_as_they_should(keeps):
    """With zero states, or with the initial ones where the reading has it so."""
    r = replace(recurrence_of("LSTM", **LONG), keep_initial=keeps)
    found, wanted = run("states-reset-to-initial-every-4-steps", r), right(r)

    for state, other in zip(found.last, wanted.last, strict=True):
        np.testing.assert_array_equal(state[:, 1], other[:, 1])
    np.testing.assert_array_equal(found.Y[9:, 0, 2], 0)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("x-one-step-late", [-1, 0, 1, 2]),
        ("x-first-step-twice", [0, 0, 1, 2]),
        ("x-one-step-early", [1, 2, 3, -1]),
        ("x-last-step-twice", [1, 2, 3, 3]),
    ],
)
def test_each_step_reads_the_x_of_another(name, steps):
    """-1 stands for zeros."""
    r = recurrence_of("GRU", T=4, dtype="float64")
    X = np.concatenate([r.X, np.zeros_like(r.X[:1])])[steps]

    np.testing.assert_array_equal(run(name, r).Y, right(replace(r, X=X)).Y)


def test_another_default_is_right_where_the_value_is_given():
    """LeakyRelu's 0.01 is another library's 0.3; a given 0.5 is 0.5."""
    default = recurrence_of("RNN", activations=["LeakyRelu"])
    given = recurrence_of("RNN", activations=["LeakyRelu"], activation_alpha=[0.5])
    third = recurrence_of("RNN", activations=["LeakyRelu"], activation_alpha=[0.3])
    name = "leakyrelu-alpha-0.3"

    np.testing.assert_allclose(run(name, default).Y, right(third).Y, rtol=1e-6)
    np.testing.assert_array_equal(run(name, given).Y, right(given).Y)
