"""What a vector asks, and what a pack may hold as its answers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as with_entries
from support.judged import core, vectors_of

from rnncli.errors import UnreadableFile
from rnncli.packs.record import UNKNOWN
from rnncli.packs.vector import stored_answers

RECORD = with_entries(UNKNOWN, id="a", outputs=["Y", "Y_h"])
REJECTED = with_entries(RECORD, expect="rejection")
ONES = np.ones(2, np.float32)
BOTH = {"Y": ONES, "Y_h": ONES}


def test_answers_are_those_that_the_case_asks_for():
    """Outputs and tolerances by the record's names, in its order; none of a case to be refused."""
    narrow = {name: values / 100 for name, values in BOTH.items()}

    assert BOTH == stored_answers(RECORD, BOTH, narrow).outputs
    assert {} == stored_answers(REJECTED, {}, {}).outputs


FOREIGN = {
    "an output of another name": ({"Y": ONES, "Z": ONES}, BOTH, "has outputs Y, Z"),
    "a tolerance of another name": (BOTH, {"Y": ONES, "Z": ONES}, "has tolerances Y, Z"),
    "no tolerances": (BOTH, {}, "has tolerances none instead of Y, Y_h"),
    "another shape": (BOTH, {**BOTH, "Y": ONES[:1]}, r"output 'Y' has shape \[1\]"),
    "a tolerance of integers": (BOTH, {**BOTH, "Y": np.ones(2, int)}, "is int64"),
    "a tolerance by which NaN passes": (BOTH, {**BOTH, "Y": ONES * np.nan}, "or NaN"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_answers_that_judge_nothing_are_refused(name):
    """Neither a KeyError nor a pass comes of names, shapes and types that do not fit."""
    outputs, tolerances, reason = FOREIGN[name]

    with pytest.raises(UnreadableFile, match=f"a: .*{reason}"):
        stored_answers(RECORD, outputs, tolerances)


def test_a_case_to_be_refused_has_no_answers():
    """Outputs beside a case that must be refused are another case's."""
    with pytest.raises(UnreadableFile, match="has outputs Y, Y_h instead of none"):
        stored_answers(REJECTED, BOTH, BOTH)


def altered(vector, **attributes):
    """Return a vector whose record has other attributes."""
    record = with_entries(vector.record, attributes={**vector.record.attributes, **attributes})
    return replace(vector, record=record)


def leaky():
    """A vector of one activation with an alpha."""
    (vector,) = vectors_of(
        "{op: RNN-14, sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 3},"
        " attributes: {activations: [LeakyRelu], activation_alpha: [0.5]}}"
    )
    return vector


def test_numbers_that_json_does_not_have_are_read_back():
    """On their own and in lists; text stays text."""
    found = altered(leaky(), clip="inf", activation_alpha=["nan", 0.5, "-inf"]).attributes

    assert found["clip"] == math.inf
    assert math.isnan(found["activation_alpha"][0])
    assert found["activation_alpha"][1:] == [0.5, -math.inf]
    assert found["activations"] == ["LeakyRelu"]


def test_a_reading_replaces_one_choice():
    """The others stay; the record is not changed."""
    vector = core()["lstm_14_clip_scope"]
    before = dict(vector.record.readings)

    assert vector.recurrence.clip_hidden
    assert not vector.recurrence_under("clip-scope=gates").clip_hidden
    assert before == vector.record.readings == vector.node.readings


def test_surplus_values_warn_nobody():
    """Of those people were told when the vector was made; a warning here would fail this test."""
    vector = leaky()
    found = altered(vector, activation_alpha=[0.5, 7.0]).recurrence

    assert found.activations == vector.recurrence.activations


def test_a_vector_is_resolved_once():
    """However often it is judged, tried by mutants and explained."""
    vector = leaky()

    assert vector.node is vector.node
    assert vector.recurrence is vector.recurrence
