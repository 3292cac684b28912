"""Evaluating one operator from Python: outputs, dtypes, refusals, NaN."""

import ml_dtypes
import numpy as np
import pytest
from support import scalar_specification
from support.tables import every
from support.valid_nodes import named, valid_node

import rnncli
from rnncli.backends.backend import Compute
from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.errors import InvalidOperator, InvalidRequest, Unsupported
from rnncli.operators import OPERATORS, evaluate

OPENVINO = [name for name, row in OPERATORS.items() if row.dialect == "OpenVINO"]


@every("operator", OPERATORS)
def test_all_outputs_by_default(operator):
    """In the specification's order, in the dtype of the inputs."""
    attributes, inputs = valid_node(operator)
    found = evaluate(operator, inputs, attributes=attributes)

    assert list(found) == [output.name for output in OPERATORS[operator].outputs]
    wanted = [output.types.get("int8", "float32") for output in OPERATORS[operator].outputs]
    assert [values.dtype.name for values in found.values()] == wanted


def test_whole_numbers_in_a_list_are_lengths():
    """They have no type of their own; an array has, and another one than the input's is refused."""
    attributes, inputs = valid_node("RNN-14")
    lengths = [1] * inputs["X"].shape[1]
    given = {**inputs, "sequence_lens": np.array(lengths, np.int32)}
    wanted = rnncli.evaluate("RNN-14", given, **attributes)["Y"]

    for listed in (lengths, tuple(lengths)):
        found = rnncli.evaluate("RNN-14", {**inputs, "sequence_lens": listed}, **attributes)["Y"]
        assert np.array_equal(wanted, found)
    for wrong in (np.array(lengths), [2**31, *lengths[1:]]):
        with pytest.raises(InvalidOperator, match=r"sequence_lens must be int32.*, got int64"):
            rnncli.evaluate("RNN-14", {**inputs, "sequence_lens": wrong}, **attributes)
    for wrong in ([1.0] * len(lengths), [True] * len(lengths)):
        with pytest.raises(InvalidOperator, match="sequence_lens must be int32"):
            rnncli.evaluate("RNN-14", {**inputs, "sequence_lens": wrong}, **attributes)


def test_no_lengths_in_a_list_are_lengths_of_no_sequence():
    """Which NumPy takes for floats."""
    attributes, inputs = valid_node("RNN-14")
    inputs = {"X": inputs["X"][:, :0], "W": inputs["W"], "R": inputs["R"], "sequence_lens": []}

    assert rnncli.evaluate("RNN-14", inputs, **attributes)["Y"].size == 0


@pytest.mark.parametrize("outputs", [[], ["Y_c"], ["Y_c", "Y"], ["Y_h", "Y_c", "Y"]])
def test_only_the_outputs_asked_for(outputs):
    """In the order asked for, with the values they have among all of them."""
    attributes, inputs = valid_node("LSTM-22")
    every = evaluate("LSTM-22", inputs, attributes=attributes)
    some = evaluate("LSTM-22", inputs, attributes=attributes, outputs=outputs)

    assert list(some) == outputs
    assert all(np.array_equal(some[name], every[name]) for name in outputs)


def test_the_library_call_takes_lists_and_keywords():
    """`rnncli.evaluate` is the same thing, attributes as keywords."""
    attributes, inputs = valid_node("GRU-14", np.float64)
    lists = {name: values.tolist() for name, values in inputs.items()}
    lists["sequence_lens"] = inputs["sequence_lens"]

    assert np.array_equal(
        rnncli.evaluate("GRU-14", lists, **attributes)["Y"],
        evaluate("GRU-14", inputs, attributes=attributes)["Y"],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "nunpy"}, "unknown backend 'nunpy'; did you mean 'numpy'?"),
        ({"compute": "float16"}, "compute must be float64 or native, got 'float16'"),
    ],
)
def test_unknown_requests_are_refused(options, message):
    """With the choices, or the nearest."""
    attributes, inputs = valid_node("RNN-14")

    with pytest.raises(InvalidRequest) as caught:
        evaluate("RNN-14", inputs, attributes=attributes, **options)
    assert message in str(caught.value)


def test_what_a_backend_cannot_do_is_said(monkeypatch):
    """Never skipped: the operator, the backend, its reason; exit code 3."""
    monkeypatch.setattr(NumPyBackend, "supports", lambda *_: "knows no peepholes")
    attributes, inputs = valid_node("LSTM-14")

    with pytest.raises(Unsupported) as caught:
        evaluate("LSTM-14", inputs, attributes=attributes)
    assert str(caught.value).startswith("LSTM-14: backend 'numpy' knows no peepholes;")
    assert caught.value.exit_code == 3


@every("compute", Compute)
@every("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@every("operator", ["RNN-22", "GRU-22", "LSTM-22", *OPENVINO])
def test_every_dtype_in_either_arithmetic(operator, dtype, compute):
    """The outputs have the inputs' dtype and agree with float64 to its precision."""
    attributes, inputs = valid_node(operator, dtype)
    found = evaluate(operator, inputs, attributes=attributes, compute=compute)
    wanted = scalar_specification.evaluate(operator, inputs, attributes)

    for name, values in found.items():
        assert values.dtype == dtype
        roundoff = float(ml_dtypes.finfo(dtype).eps)
        assert np.abs(values.astype(np.float64) - wanted[name]).max() <= 4 * roundoff


@pytest.mark.parametrize(
    "operator",
    [name for name, row in OPERATORS.items() if "Cell" not in name and row.cell.projects],
)
def test_nan_in_a_valid_step_reaches_the_output(operator):
    """From that step on in the direction walked, and in that sequence only, or in its scale."""
    attributes, inputs = valid_node(operator, direction="forward")
    inputs[named(operator, "X")][0, 0, 0] = np.nan
    found = evaluate(operator, inputs, attributes=attributes)
    time_first = operator not in OPENVINO
    (name,) = (row.name for row in OPERATORS[operator].outputs if row.role == "Y")
    Y = found[name][:, 0] if time_first else found[name][:, 0].swapaxes(0, 1)

    assert np.isnan(Y[:, 0]).all()
    assert np.isnan(Y[:, 1:]).any() == OPERATORS[operator].quantised


@pytest.mark.parametrize("name", ["W", "R", "B", "P", "initial_h", "initial_c"])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_are_what_the_scalar_specification_has(name, special):
    """NaN and infinity in any operand propagate as IEEE says, element by element."""
    attributes, inputs = valid_node("LSTM-14", np.float64)
    inputs[name][0, 1] = special
    found = evaluate("LSTM-14", inputs, attributes=attributes)
    wanted = scalar_specification.evaluate("LSTM-14", inputs, attributes)

    for output, values in found.items():
        assert np.allclose(values, wanted[output], 1e-12, 1e-13, equal_nan=True)


@every("activation", OPERATORS["RNN-14"].activations)
@every("special", [np.nan, np.inf, -np.inf])
@every("clip", [None, 2.0])
def test_special_pre_activations_are_what_the_scalar_specification_has(activation, special, clip):
    """Every function of NaN and infinity, clipped or not; clipping keeps NaN."""
    attributes = {"activations": [activation], "clip": clip}
    inputs = {"X": [[[special]]], "W": [[[1.0]]], "R": [[[0.0]]]}
    inputs = {name: np.array(values) for name, values in inputs.items()}
    found = evaluate("RNN-14", inputs, attributes=attributes)
    wanted = scalar_specification.evaluate("RNN-14", inputs, attributes)

    assert np.allclose(found["Y"], wanted["Y"], 1e-15, equal_nan=True)
    assert not np.isnan(special) or np.isnan(found["Y"]).all()


@every("compute", Compute)
@every("backend", ["numpy", "reference"])
@every("clip", [0.1, 0.3, 1 / 3])
def test_a_bound_is_the_float32_that_clip_is(clip, backend, compute):
    """And nothing narrower: Relu leaves what meets the bound as it is."""
    attributes = {"activations": ["Relu"], "clip": clip}
    inputs = {"X": [[[9.0]]], "W": [[[1.0]]], "R": [[[0.0]]]}
    inputs = {name: np.array(values, np.float32) for name, values in inputs.items()}
    made = evaluate("RNN-14", inputs, attributes=attributes, backend=backend, compute=compute)

    assert made["Y"].item() == np.float32(clip)


@every("compute", Compute)
@every("backend", ["numpy", "reference"])
@every("name", ["X", "W", "R", "initial_h"])
def test_a_subnormal_is_no_zero(name, backend, compute):
    """Times 2^127 it is 2^-13, in any operand."""
    partner = {"X": "W", "W": "X", "R": "initial_h", "initial_h": "R"}[name]
    inputs = dict.fromkeys(("X", "W", "R", "initial_h"), 0.0) | {name: 2.0**-140, partner: 2.0**127}
    inputs = {name: np.full((1, 1, 1), value, np.float32) for name, value in inputs.items()}
    attributes = {"activations": ["Relu"]}
    made = evaluate("RNN-14", inputs, attributes=attributes, backend=backend, compute=compute)

    assert made["Y"].item() == 2.0**-13


def test_inputs_without_names_are_asked_for_by_name():
    """The required ones are shown."""
    X = np.zeros((1, 1, 1), np.float32)
    with pytest.raises(InvalidRequest, match=r"{'X': X, 'W': W, 'R': R}, not as a list"):
        rnncli.evaluate("RNN-14", [X, X, X])
