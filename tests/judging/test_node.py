"""A vector's node, read back from its record."""

import math

import numpy as np
from judged import core, vectors_of

from rnncli.judging.node import attributes_of, canonical, output_rows, readings_of, recurrence_of
from rnncli.operators import operator_named


def test_numbers_that_json_does_not_have_are_read_back():
    """On their own and in lists; text stays text."""
    given = {"clip": "inf", "activation_alpha": ["nan", 0.5, "-inf"], "direction": "reverse"}

    found = attributes_of({"attributes": given})

    assert found["clip"] == math.inf
    assert math.isnan(found["activation_alpha"][0])
    assert found["activation_alpha"][1:] == [0.5, -math.inf]
    assert found["direction"] == "reverse"


def test_a_reading_replaces_one_choice():
    """The others stay; the record is not changed."""
    record = core()["lstm_14_clip_scope"].record
    before = dict(record["readings"])

    assert readings_of(record, "clip-scope=gates") == {**before, "clip-scope": "gates"}
    assert readings_of(record, "") == before == record["readings"]


def test_surplus_values_warn_nobody():
    """Of those people were told when the vector was made; a warning here would fail this test."""
    (vector,) = vectors_of(
        "{op: RNN-14, sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 3},"
        " attributes: {activations: [LeakyRelu], activation_alpha: [0.5]}}"
    )
    attributes = {**vector.record["attributes"], "activation_alpha": [0.5, 7.0]}
    altered = type(vector)(
        vector.id,
        b"",
        vector.inputs,
        (),
        vector.answers,
        {},
        {**vector.record, "attributes": attributes},
    )

    assert recurrence_of(altered).activations == recurrence_of(vector).activations


def test_batch_first_outputs_are_brought_into_the_recurrences_order():
    """Y [N, T, D, H] becomes [T, D, N, H]; a view."""
    vector = core()["rnn_14_batch_first"]
    row = output_rows(operator_named(vector.record["operator"]))["Y"]
    Y = vector.answers.outputs["Y"]
    found = canonical(vector.record, row, Y)

    assert np.array_equal(found, Y.transpose(1, 2, 0, 3))
    assert np.shares_memory(found, Y)
