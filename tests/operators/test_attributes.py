"""Attributes as Python values: defaults, protobuf's spellings, float32."""

import numpy as np
import pytest

from rnncli.operators import OPERATORS
from rnncli.operators.attributes import TYPES, attribute_problems, complete, remember
from rnncli.operators.node import spelled


@pytest.mark.parametrize("name", OPERATORS)
def test_nothing_written_gives_every_default(name):
    """Each attribute is there by its role, with the row's default."""
    row = OPERATORS[name]

    assert complete(row, {}) == row.fixed | {
        attribute.role or attribute.name: attribute.canonical(attribute.default)
        for attribute in row.attributes.values()
    }


def test_openvino_names_are_known_by_role():
    """`activations_alpha` is what ONNX calls `activation_alpha`."""
    values = complete(OPERATORS["RNNSequence-5"], {"activations_alpha": [1], "hidden_size": 2})

    assert values["activation_alpha"] == [1.0]
    assert "activations_alpha" not in values


def test_floats_are_held_as_float32():
    """As a model file holds them: 0.1 is the float32 next to it, 1e39 is infinite."""
    values = complete(OPERATORS["LSTM-14"], {"clip": 0.1, "activation_alpha": (0.2, 1e39, 1)})

    assert values["clip"] == float(np.float32(0.1)) != 0.1
    assert values["activation_alpha"] == [float(np.float32(0.2)), float("inf"), 1.0]


def test_protobuf_and_numpy_spellings_are_read():
    """Bytes for text, NumPy scalars and arrays for numbers."""
    given = {
        "direction": b"reverse",
        "hidden_size": np.int64(5),
        "clip": np.float64(2),
        "activations": np.array(["tanh"]),
        "activation_alpha": np.array([0.5], np.float32),
    }
    row = OPERATORS["RNN-14"]

    assert [] == list(attribute_problems(row, given))
    values = complete(row, given)
    assert (values["direction"], values["hidden_size"], values["clip"]) == ("reverse", 5, 2.0)
    assert (values["activations"], values["activation_alpha"]) == (["tanh"], [0.5])


def test_none_is_absent():
    """An attribute that is None has its default, and breaks no rule."""
    row = OPERATORS["RNN-14"]

    assert [] == list(attribute_problems(row, {"clip": None, "direction": None}))
    assert complete(row, {"direction": None})["direction"] == "forward"


def test_gru_1_reads_foward():
    """The specification of GRU-1 spells its default that way."""
    row = OPERATORS["GRU-1"]

    assert [] == list(attribute_problems(row, {"direction": "foward"}))
    assert complete(row, {"direction": b"foward"})["direction"] == "forward"


@pytest.mark.parametrize(
    ("name", "attribute", "hint"),
    [
        ("GRU-1", "linear_before_reset", "(GRU-3, GRU-7, GRU-14, GRU-22 have it)"),
        ("LSTM-7", "layout", "(LSTM-14, LSTM-22 have it)"),
        ("LSTM-7", "output_sequence", "(LSTM-1 has it)"),
        ("LSTM-7", "clop", "; did you mean 'clip'?"),
        ("LSTM-7", "zzzzzz", "LSTM-7 has no attribute 'zzzzzz'"),
    ],
)
def test_unknown_attributes_are_told_where_they_exist(name, attribute, hint):
    """Versions that have it, else the nearest name."""
    (problem,) = attribute_problems(OPERATORS[name], {attribute: 1})

    assert problem.subject == ("attributes", attribute)
    assert problem.sentence.endswith(hint)


@pytest.mark.parametrize(
    "value", [None, True, 1, 1.5, "x", b"x", [], [1], [1.5], ["x"], [None], {}, set(), object()]
)
@pytest.mark.parametrize("kind", TYPES)
def test_types_judge_any_value(kind, value):
    """Whatever YAML or a caller gives is judged without failing; what passes converts."""
    _, test, convert = TYPES[kind]

    if test(value):
        convert(value)


def test_long_values_are_cut():
    """A sentence stays a line however long the value."""
    (problem,) = attribute_problems(OPERATORS["RNN-14"], {"clip": "x" * 10_000})

    assert len(problem.sentence) < 200


def test_values_are_told_apart_by_type_and_bits():
    """What is remembered of one spelling is never given for another that only looks equal."""
    values = [1, 1.0, True, "1", b"1", [1], (1,), 0.0, -0.0, np.float32(1), np.array([1.0])]
    values += [np.array([1]), np.arange(2000), np.concatenate([np.arange(1999), [5]])]

    assert len({spelled({"a": value}) for value in values}) == len(values)


def test_memories_forget_when_they_are_full(monkeypatch):
    """They never grow beyond a bound."""
    monkeypatch.setattr("rnncli.operators.attributes.MOST_REMEMBERED", 10)
    memory = {}
    for k in range(25):
        remember(memory, k, str(k))

    assert len(memory) <= 10
    assert memory[24] == "24"
