"""Claims about what a session kept from the call before, found from what a later call gives."""

from dataclasses import replace

import numpy as np
import pytest
from support.judged import outputs_of
from support.second_calls import twice

from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.explaining.hypotheses import LEAKS, leak_fits, sentence_of
from rnncli.mutants.mutant import RIGHT

FIRST = twice()["lstm_14_given"]
(SECOND,) = FIRST.later


def last_states():
    """Where the first call ends."""
    return RIGHT.run(FIRST.recurrence, Compute.FLOAT64).last


def given(**fields):
    """What the second call gives where some of what it reads is another call's."""
    changed = replace(SECOND.recurrence, **fields)
    return outputs_of(SECOND, RIGHT.run(changed, Compute.FLOAT64))


def mixed(other, *which):
    """The second call's initial states, some of them replaced."""
    own = SECOND.recurrence.initial
    return tuple(theirs if k in which else own[k] for k, theirs in enumerate(other))


BEFORE = FIRST.recurrence


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("x-of-call-before", {"X": BEFORE.X}),
        ("initial-h-of-call-before", {"initial": mixed(BEFORE.initial, 0)}),
        ("starts-from-last-h-of-call-before", {"initial": mixed(last_states(), 0)}),
        ("starts-from-last-c-of-call-before", {"initial": mixed(last_states(), 1)}),
        ("starts-from-last-states-of-call-before", {"initial": last_states()}),
    ],
)
def test_what_was_kept_is_named(name, fields):
    """By value, and alone."""
    assert list(leak_fits(MeasuredAttempt(SECOND, given(**fields)), FIRST)) == [name]


def test_outputs_may_be_those_of_the_call_before():
    """A call that is answered from memory."""
    found = leak_fits(MeasuredAttempt(SECOND, FIRST.answers.outputs), FIRST)

    assert next(iter(found)) == "outputs-of-call-before"


def test_what_was_not_kept_is_not_named():
    """Another wrong start, and outputs of other shapes."""
    wrong = given(initial=mixed((np.ones_like(last_states()[0]), None), 0))

    assert leak_fits(MeasuredAttempt(SECOND, wrong), FIRST) == {}
    assert leak_fits(MeasuredAttempt(SECOND, {}), FIRST) == {}


@pytest.mark.parametrize("name", LEAKS)
def test_it_is_said(name):
    """In a sentence, as of a mutant."""
    assert sentence_of(name) == LEAKS[name].sentence
