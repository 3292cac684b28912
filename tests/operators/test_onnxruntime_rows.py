"""The quantised LSTM does what ONNX Runtime declares and computes."""

import pickle
from functools import cache

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
from support.quantised_lstm import FORMS, LSTM, away_from_ties, node, of_runtime, specified
from support.tables import every

from rnncli.backends import backend_named
from rnncli.errors import InvalidOperator, Unsupported
from rnncli.operators import evaluate
from rnncli.operators.evaluation import PreparedNode
from rnncli.recurrence.recurrence import Compute

FULL = ("bidirectional", True, True, True)
found_away = cache(away_from_ties)


def worst(found, wanted):
    """Return the largest difference of any output."""
    return max(np.abs(a - b).max() for a, b in zip(found, wanted, strict=True))


def test_the_row_is_what_onnxruntime_declares():
    """Inputs with optionality and types, outputs, attributes with types."""
    (schema,) = [s for s in get_all_operator_schema() if s.name == LSTM.type]
    types = {rule.type_param_str: rule.allowed_type_strs for rule in schema.type_constraints}
    declared = [
        (
            each.name,
            each.option.name == "Optional",
            {t[7:-1].replace("float", "float32") for t in types[each.typeStr]},
        )
        for each in schema.inputs
    ]

    assert declared == [(t.name, t.optional, set(LSTM.input_dtypes(t))) for t in LSTM.inputs]
    assert [each.name for each in schema.outputs] == [each.name for each in LSTM.outputs]
    assert {name: each.type.name.lower() for name, each in schema.attributes.items()} == {
        name: each.type for name, each in LSTM.attributes.items()
    }


@every("compute", Compute)
@every("form", FORMS, ids=str)
def test_outputs_are_those_of_the_equations(form, compute):
    """Away from ties of rounding, only float32's own errors remain."""
    attributes, inputs, wanted = found_away(form)
    found = evaluate(LSTM, inputs, attributes=attributes, compute=compute).values()

    assert worst(found, wanted) < (1e-7 if compute is Compute.FLOAT64 else 1e-6)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_certified_outputs_are_those_of_the_equations(form):
    """Each state is proved to be the float32 that is quantised, so levels are exact."""
    attributes, inputs, wanted = found_away(form)
    found = evaluate(LSTM, inputs, attributes=attributes, backend="certified").values()

    assert worst(found, wanted) < 1e-7


@every("clip", [{}, {"clip": 0.5}], ids=str)
@every("form", FORMS, ids=str)
def test_outputs_are_those_of_onnxruntime(form, clip):
    """On one thread, for every direction, ragged or not, for all kinds of weights."""
    attributes, inputs, _ = found_away(form, **clip)
    found = evaluate(LSTM, inputs, attributes=attributes).values()

    assert worst(found, of_runtime(attributes, inputs)) < 1e-6


@every("compute", Compute)
@every("backend", ["numpy", "reference"])
def test_ties_are_even_and_ranges_include_zero(backend, compute):
    """Of inputs above zero, most of them between two levels of a scale that is a power of two."""
    X = (np.random.default_rng(0).integers(1, 255, (2, 4, 7)).astype(np.float32) + 0.5) / 128
    X[0, 0, 0] = 255 / 128
    attributes, inputs = node(("forward", False, True, True), sizes=(2, 4, 7, 8), X=X)
    wanted, nearest = specified(attributes, inputs)
    assert nearest == 0
    engine = {"backend": backend, "compute": compute}
    found = evaluate(LSTM, inputs, attributes=attributes, **engine).values()

    assert worst(found, wanted) < 1e-6
    assert worst(of_runtime(attributes, inputs), wanted) < 1e-6


@pytest.mark.parametrize("form", [form for form in FORMS if form[1]], ids=str)
def test_without_y_ended_sequences_keep_their_last_h_in_onnxruntime(form):
    """As the reading quant-ended=last has it; with Y they count as zero."""
    off = []
    for seed in range(8):
        attributes, inputs = node(form, seed % 2)
        inputs["X"] = np.random.default_rng(seed).normal(size=inputs["X"].shape).astype(np.float32)
        theirs = of_runtime(attributes, inputs, outputs=["", "Y_h", "Y_c"])
        for choice in ("last", "zero"):
            readings = {"quant-ended": choice}
            found = evaluate(
                LSTM, inputs, attributes=attributes, outputs=["Y_h", "Y_c"], readings=readings
            )
            off.append(worst(found.values(), theirs))

    assert max(off[::2]) < 1e-6
    assert max(off[1::2]) > 1e-4


@every("backend", ["numpy", "certified"])
@every("form", FORMS, ids=str)
def test_of_weights_only_it_is_the_lstm_of_their_real_numbers(form, backend):
    """Transposed as ONNX has them, each rounded to float32 once."""
    attributes, inputs = node(form)
    real = {name: values for name, values in inputs.items() if name[:2] not in {"W_", "R_"}}
    for name in ("W", "R"):
        factors = (inputs[f"{name}_{each}"] for each in ("scale", "zero_point"))
        scale, point = (np.float64(each).reshape(len(each), 1, -1) for each in factors)
        real[name] = np.float32((inputs[name] - point) * scale).swapaxes(1, 2)
    wanted = evaluate(
        *("LSTM-14", real), attributes=attributes, backend=backend, readings={"clip-scope": "gates"}
    )
    declared = {"quant-scope": "weights-only"}
    found = evaluate(LSTM, inputs, attributes=attributes, backend=backend, readings=declared)

    assert worst(found.values(), wanted.values()) == 0


def test_padding_up_to_the_longest_sequence_counts():
    """It changes the scale of X; what lies behind the longest sequence does not."""
    attributes, inputs = node(FULL)
    lengths = inputs["sequence_lens"]
    outputs = []
    for step in (lengths.max(), lengths.max() - 1):
        X = inputs["X"].copy()
        X[step, lengths.argmin()] = 100
        made = evaluate(LSTM, {**inputs, "X": X}, attributes=attributes)
        outputs.append(worst(made.values(), evaluate(LSTM, inputs, attributes=attributes).values()))

    assert outputs[0] == 0 < outputs[1]


def test_a_prepared_node_follows_its_weights():
    """A scale that is another array is not taken for the former one."""
    attributes, inputs = node(FULL)
    for values in inputs.values():
        values.flags.writeable = False
    engine = backend_named("numpy"), Compute.FLOAT64
    prepared = PreparedNode(LSTM, attributes, None, None, engine)
    for scale in (inputs["R_scale"], inputs["R_scale"] * 2):
        scale.flags.writeable = False
        given = {**inputs, "R_scale": scale}
        wanted = evaluate(LSTM, given, attributes=attributes, backend="reference").values()
        for _ in range(2):
            found = prepared.run([given.get(row.name) for row in LSTM.inputs])
            assert worst(found, wanted) == 0


@pytest.mark.parametrize("backend", ["numba", "mutant:tiles-x-of-first-4"])
def test_backends_without_quantised_states_refuse(backend):
    """None computes the products of unquantised states instead."""
    if backend == "numba":
        pytest.importorskip("numba")
    attributes, inputs = node(FULL)

    with pytest.raises(Unsupported, match="does not evaluate quantised states"):
        evaluate(LSTM, inputs, attributes=attributes, backend=backend)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"W": np.zeros((2, 32, 7), np.int8)}, "W must be [2, 7, 32] = [num_directions, input_siz"),
        ({"R": np.zeros((2, 9, 32), np.int8)}, "R must be [2, 8, 32]"),
        ({"W": np.zeros((2, 7, 32), np.float32)}, "W must be int8 or uint8, got float32"),
        ({"W_scale": np.ones((2, 8), np.float32)}, "W_scale must be [2, 32]"),
        ({"R_zero_point": np.zeros(3, np.int8)}, "R_zero_point must be [2]"),
        ({"W_scale": None}, "input 'W_scale' is required"),
    ],
)
def test_wrong_inputs_are_refused(change, sentence):
    """With the shape that the operator has, transposed against ONNX's."""
    attributes, inputs = node(FULL, **change)

    with pytest.raises(InvalidOperator) as raised:
        evaluate(LSTM, inputs, attributes=attributes)
    assert sentence in str(raised.value)


def test_hidden_size_is_taken_from_the_middle_of_r():
    """R is [D, H, 4*H]."""
    attributes, inputs = node(FULL)
    del attributes["hidden_size"]

    assert evaluate(LSTM, inputs, attributes=attributes)["Y"].shape[-1] == 8


def test_it_travels_to_other_processes():
    """By name, as every row."""
    assert pickle.loads(pickle.dumps(LSTM)) is LSTM  # noqa: S301 -- our own bytes
