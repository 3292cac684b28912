"""Attributes as Python values: defaults, protobuf's spellings, float32."""

import math
import re
import warnings

import numpy as np
import pytest
from support.tables import every

from rnncli.errors import RnncliWarning, UndefinedDefault
from rnncli.operators import OPERATORS
from rnncli.operators.attributes import (
    TYPES,
    attribute_problems,
    complete,
    remember,
    resolve_activations,
)
from rnncli.operators.node import spelled
from rnncli.recurrence.activations import ACTIVATIONS


@every("name", OPERATORS)
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


@every("value", [None, True, 1, 1.5, "x", b"x", [], [1], [1.5], ["x"], [None], {}, set(), object()])
@every("kind", TYPES)
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


def bound(name, directions=1, order=None, **attributes):
    """List (name, alpha, beta) of each direction's functions, values to 6 digits."""
    row = OPERATORS[name]
    readings = {**row.readings, **({"alpha-order": order} if order else {})}
    resolved = resolve_activations(row, complete(row, attributes), directions, readings)
    return [[(f.name, short(f.alpha), short(f.beta)) for f in functions] for functions in resolved]


def short(value):
    """Round what was a decimal before it became a float32."""
    return value if value is None or math.isinf(value) else round(value, 6)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("RNN-14", ["Tanh"]),
        ("GRU-14", ["Sigmoid", "Tanh"]),
        ("LSTM-14", ["Sigmoid", "Tanh", "Tanh"]),
        ("RNNSequence-5", ["Tanh"]),
    ],
)
@pytest.mark.parametrize("directions", [1, 2])
def test_defaults(name, wanted, directions):
    """Nothing written: the specification's functions, in each direction."""
    assert bound(name, directions) == [[(f, None, None) for f in wanted]] * directions


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_function_has_the_defaults_of_its_onnx_operator(name):
    """Alpha and beta as in ONNX's own schemas, to the bit; Affine and ScaledTanh have no schema."""
    import onnx

    row = ACTIVATIONS[name]
    if name in {"Affine", "ScaledTanh"}:
        assert (row.alpha, row.beta) == (1.0, {"Affine": 0.0, "ScaledTanh": 1.0}[name])
        return
    attributes = onnx.defs.get_schema(name, 22).attributes
    for parameter in ("alpha", "beta"):
        given = getattr(row, parameter)
        assert (given is None) == (parameter not in attributes)
        if given is not None:
            assert given == attributes[parameter].default_value.f


def test_the_queue_skips_functions_that_take_none():
    """Forward then backward, one queue."""
    assert bound(
        "GRU-14",
        2,
        activations=["leakyrelu", "TANH", "HardSigmoid", "Elu"],
        activation_alpha=[0.5, 0.25],
        activation_beta=[0.75],
    ) == [
        [("LeakyRelu", 0.5, None), ("Tanh", None, None)],
        [("HardSigmoid", 0.25, 0.75), ("Elu", 1.0, None)],
    ]


def test_positions_count_every_function():
    """Element k belongs to function k; what lands on one that takes none is unused, and said."""
    with pytest.warns(RnncliWarning, match=r"alpha value 0\.25 used by no activation"):
        found = bound(
            "GRU-14",
            2,
            "positional",
            activations=["LeakyRelu", "Tanh", "HardSigmoid", "Elu"],
            activation_alpha=[0.5, 0.25, 0.125],
        )

    assert found == [
        [("LeakyRelu", 0.5, None), ("Tanh", None, None)],
        [("HardSigmoid", 0.125, 0.5), ("Elu", 1.0, None)],
    ]


@pytest.mark.parametrize("order", ["queue", "positional"])
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activation_alpha": [0.5]}, "alpha value 0.5 used by no activation"),
        ({"activation_beta": [1, 2.5]}, "beta values 1, 2.5 used by no activation"),
        (
            {"activations": ["Elu"], "activation_alpha": [1, 2, 3]},
            "alpha values 2, 3 used by no activation",
        ),
        (
            {"activation_alpha": [1] * 900},
            "alpha values 1, 1, 1, 1, 1, 1, 1, 1, ... (900 in all) used by no activation",
        ),
    ],
)
def test_surplus_values_warn(order, attributes, message):
    """They change nothing, and the warning says so, each time."""
    for _ in range(2):
        with pytest.warns(RnncliWarning, match=re.escape(message)):
            bound("RNN-14", 1, order, **attributes)


@pytest.mark.parametrize("order", ["queue", "positional"])
def test_exact_and_missing_values_do_not_warn(order):
    """Missing ones take the function's default."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bound("RNN-14", 1, order, activations=["Elu"]) == [[("Elu", 1.0, None)]]


@pytest.mark.parametrize("order", ["queue", "positional"])
@pytest.mark.parametrize("name", ["Affine", "ScaledTanh"])
def test_a_value_that_no_specification_gives_warns(order, name):
    """ONNX Runtime takes 0: no case of a pack that ships leaves it out."""
    row = ACTIVATIONS[name]
    with pytest.warns(UndefinedDefault, match=f"{name} without beta: .*; ONNX Runtime takes 0"):
        found = bound("RNN-14", 1, order, activations=[name], activation_alpha=[2.0])
    with pytest.warns(UndefinedDefault, match=f"{name} without alpha"):
        bound("RNN-14", 1, order, activations=[name], activation_beta=[2.0])

    assert found == [[(name, 2.0, row.beta)]]


def test_one_direction_uses_the_first_of_two_names():
    """RNN's schema default has two names whatever the direction."""
    assert bound("RNN-14", 1, activations=["Relu", "Elu"]) == [[("Relu", None, None)]]


def test_openvino_uses_one_function_for_both_directions():
    """One name, or two equal ones; alpha and beta have no effect."""
    with pytest.warns(RnncliWarning):
        assert (
            bound("RNNSequence-5", 2, activations=["relu"], activations_alpha=[9.0])
            == [[("Relu", None, None)]] * 2
        )


def test_a_zero_alpha_is_a_value():
    """0 and -0 are given values, not missing ones."""
    assert bound("RNN-14", activations=["Elu"], activation_alpha=[0.0]) == [[("Elu", 0.0, None)]]
    ((elu,),) = resolve_activations(
        OPERATORS["RNN-14"],
        complete(OPERATORS["RNN-14"], {"activations": ["Elu"], "activation_alpha": [np.nan]}),
        1,
        OPERATORS["RNN-14"].readings,
    )
    assert elu.alpha is not None
    assert math.isnan(elu.alpha)
