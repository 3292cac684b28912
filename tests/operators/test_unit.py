"""Units between DequantizeLinear and QuantizeLinear: their levels, proved and allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support.random_units import case_of, expected, suite_of
from support.tables import every

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import InvalidOperator, InvalidRequest
from rnncli.generating.production import IllConditioned, make_vectors
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.comparing.verdict import RIGHT, Verdict
from rnncli.judging.judgement import judge
from rnncli.numerics import dtype_named, round_to
from rnncli.operators import OPERATORS, evaluate, operator_for
from rnncli.operators.checking import UNIT_READINGS, opset_of
from rnncli.packs.vector import attempt_of
from rnncli.recurrence.readings import READINGS
from rnncli.recurrence.unit import INNER, Dress, QuantisedUnit

SEEDS = range(300)
TOGETHER = 5


@pytest.fixture(scope="module")
def vectors():
    """Return a function that makes the vectors of random units, but those that show nothing."""

    def made(seeds):
        suite = parse_suite(suite_of(seeds), "random.yaml", Path())
        pairs = zip(seeds, make_vectors(suite.entries), strict=True)
        return {seed: each for seed, each in pairs if not is_of_one_level(each)}

    return made


def is_of_one_level(made):
    """Whether a unit is refused because each of its outputs is one level."""
    return isinstance(made, IllConditioned) and "one number throughout" in str(made)


def onnxruntime_outputs(vector):
    """What ONNX Runtime makes of the model without its optimisations, by name."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        vector.model, options, providers=["CPUExecutionProvider"]
    )
    return dict(zip(vector.record.outputs, session.run(None, vector.fed), strict=True))


def outputs_of(vector, backend):
    """What a backend makes of a vector's node, by name."""
    node = {"attributes": vector.attributes, "unit": vector.node.unit}
    asked = {"outputs": vector.record.outputs, "backend": backend}
    return evaluate(vector.record.operator, vector.inputs, **node, **asked)


@pytest.mark.parametrize("start", range(0, len(SEEDS), TOGETHER))
def test_random_units_are_what_40_digits_and_onnxruntime_say(vectors, start):
    """Every golden is the level of the number in 40 digits, as is what the backends compute.

    ONNX Runtime's is within tolerance, on 8 bits the same level. No unit of two levels is refused.
    """
    made = vectors(range(start, start + TOGETHER))
    assert made
    for seed, vector in made.items():
        assert not isinstance(vector, Exception), (seed, vector)
        quantise = case_of(seed)["quantise"]
        wanted, theirs = expected(vector, quantise), onnxruntime_outputs(vector)
        contested = {each.partition("=")[0] for each in vector.alternatives}
        assert judge(vector, attempt_of(vector, theirs)).verdict in RIGHT, seed
        ours = [outputs_of(vector, backend) for backend in ("numpy", "reference")]
        for name, golden in vector.answers.outputs.items():
            tolerance = vector.answers.tolerances[name]
            if name not in quantise:
                single = np.vectorize(float, otypes=[np.float64])(wanted[name])
                np.testing.assert_array_equal(golden, round_to(single, dtype_named("float32")))
                continue
            for levels in (golden, *(own[name] for own in ours)):
                np.testing.assert_array_equal(levels.astype(np.int64), wanted[name], (seed, name))
            assert golden.dtype == theirs[name].dtype == quantise[name]["type"]
            if contested - UNIT_READINGS.keys():  # ONNX Runtime may read the text otherwise
                continue
            off = np.abs(golden.astype(np.int64) - theirs[name].astype(np.int64))
            assert (off <= tolerance).all(), (seed, name, off.max())
            if golden.dtype.itemsize == 1:
                assert not off.any(), (seed, name)


@pytest.mark.parametrize("start", range(0, 100, TOGETHER))
def test_other_readings_of_random_units_are_what_40_digits_say(vectors, start):
    """Each one that the vector stores, and two at once; float32 kernels are right by them."""
    for seed, vector in vectors(range(start, start + TOGETHER)).items():
        quantise = case_of(seed)["quantise"]
        stored = [each.split("=") for each in vector.alternatives]
        declared = [{name: choice} for name, choice in stored if name in UNIT_READINGS]
        declared += [{"round": choice} for choice in READINGS["round"].unstored]
        for readings in (*declared, {"requantise": "state", "round": "truncate"}):
            rule = Rule(reading=readings)
            found = rule.declared(vector)
            wanted = expected(vector, quantise, {**UNIT_READINGS, **readings})
            for name, golden in found.answers.outputs.items():
                if name in quantise:
                    right = golden.astype(np.int64) == wanted[name]
                    tied = found.answers.tolerances[name] > 0
                    assert (right | tied).all(), (seed, readings, name)
            kernel = backend_named("reference").run(found.recurrence, Compute.NATIVE)
            attempt = attempt_of(found, found.node.outputs_of(kernel))
            verdict = judge(vector, attempt, rule).verdict  # skipped where tolerances are wide
            assert verdict in {*RIGHT, Verdict.SKIPPED}, (seed, readings)


def test_a_model_is_the_node_between_dequantizelinear_and_quantizelinear(vectors):
    """At opset 21, or 23 of LSTM-22, valid by onnx's own checks; scales are constants."""
    found = {}
    for vector in vectors(range(20)).values():
        model = onnx.ModelProto.FromString(vector.model)
        onnx.checker.check_model(model, full_check=True)
        found[vector.record.operator] = model.opset_import[0].version
        kinds = [node.op_type for node in model.graph.node]
        dressed = vector.record.quantise.keys() - {*INNER}
        inside = [name for name in vector.record.inputs if name in dressed]
        assert kinds[: len(inside)] == ["DequantizeLinear"] * len(inside)
        assert kinds.count("QuantizeLinear") == len(dressed) - len(inside)
        assert vector.record.opset == model.opset_import[0].version
    assert {name: 21 if name.endswith("14") else 23 for name in found} == found


@every("operator", OPERATORS.values(), ids=str)
def test_the_opset_of_a_model_has_the_operator(operator):
    """LSTM-14 is also the LSTM of opset 21, and LSTM-22 that of 23; others have no unit."""
    opset = opset_of(operator)
    newest = operator_for(operator.domain, operator.type, opset) if opset else None
    assert newest is (operator if opset else None)
    assert bool(opset) == (not operator.domain and operator.version in {14, 22})


X = np.array([[[128]], [[255]]], np.uint8)
TENSORS = {"X": X, "W": np.full((1, 1, 1), 64, np.int8), "R": np.zeros((1, 1, 1), np.int8)}
UNIT = QuantisedUnit.of(
    {
        "X": {"type": "uint8", "scale": 1 / 128, "zero_point": 128},
        "W": {"type": "int8", "scale": 1 / 64},
        "R": {"type": "int8", "scale": 1.0},
        "Y": {"type": "uint8", "scale": 1 / 128, "zero_point": 100},
    }
)


def test_evaluate_takes_and_gives_integers():
    """X is 0 and then 127/128; Y is its tanh on levels of 1/128, and Y_h, not dressed, is real."""
    made = evaluate("RNN-14", TENSORS, attributes={"hidden_size": 1}, unit=UNIT)

    exact = np.tanh(127 / 128)
    assert made["Y"].dtype == np.uint8
    assert made["Y"].ravel().tolist() == [100, 100 + round(exact * 128)]
    assert made["Y_h"].ravel().tolist() == [np.float32(exact)]


@every(
    ("change", "sentence"),
    [
        ({"X": X.astype(np.int8)}, "X must be uint8, got int8"),
        ({"X": X.astype(np.float32)}, "X must be uint8, got float32"),
        ({"initial_h": np.zeros((1, 1, 1), np.float16)}, "a unit is of float32"),
    ],
)
def test_tensors_of_other_types_are_refused(change, sentence):
    """By the names of types, as of any operator."""
    with pytest.raises(InvalidOperator, match=sentence):
        evaluate("RNN-14", {**TENSORS, **change}, attributes={"hidden_size": 1}, unit=UNIT)


@every(
    ("operator", "name", "written", "sentence"),
    [
        ("RNN-7", "X", {}, "RNN-7 is not an operator of opset 21 or 23"),
        ("RNN-14", "Z", {}, "has no tensor 'Z' of real numbers"),
        ("RNN-14", "B", {}, "B is absent"),
        ("RNN-14", "Y", {"type": "int32"}, "type of Y must be one of uint8, int8, uint16, int16"),
        ("RNN-14", "Y", {"scale": 0.0}, "positive float32"),
        ("RNN-14", "Y", {"scale": []}, "positive float32"),
        ("RNN-14", "Y", {"scale": 1e-60}, "positive float32"),
        ("RNN-14", "Y", {"zero_point": 256}, "must be 0 to 255"),
        ("RNN-14", "Y", {"scale": [1.0, 2.0]}, "needs an axis"),
        ("RNN-14", "Y", {"axis": -5}, "the axis of Y must be -4 to 3"),
    ],
)
def test_what_cannot_be_dressed_is_refused(operator, name, written, sentence):
    """The operator, the tensor, its type, scale, zero point or axis is named."""
    unit = QuantisedUnit.of({name: {"type": "uint8", "scale": 1.0, **written}})
    inputs = {key: np.zeros((1, 1, 1), np.float32) for key in "XWR"}
    if name == "X":
        inputs["X"] = inputs["X"].astype(np.uint8)

    with pytest.raises(InvalidOperator, match=sentence):
        evaluate(operator, inputs, attributes={"hidden_size": 1}, unit=unit)


def test_scales_are_repeated_along_their_axis():
    """A list of two for the three rows of W [1, 3, 2]: the third has the first's."""
    dress = Dress("int8", (1.0, 0.5), (0, 1), axis=-2)
    levels = np.array([[[2, 4], [3, 5], [6, 8]]], np.int8)

    assert dress.reals(levels).tolist() == [[[2, 4], [1, 2], [6, 8]]]
    assert dress.levels(dress.reals(levels)).tolist() == levels.tolist()


def test_a_tie_has_no_proved_level():
    """Half a level is 0 or 1 by the last bit of a sum, so the case is refused with its place."""
    unit = QuantisedUnit.of({"Y": {"type": "int8", "scale": 1.0}})

    with pytest.raises(InvalidRequest, match=r"Y is 2.5 at \[1\], a tie between .* 2 and 3"):
        unit.proved({"Y": np.array([0.25, 2.5])})


def test_a_tie_beyond_the_ends_is_saturated():
    """Both its neighbours are the last level."""
    unit = QuantisedUnit.of({"Y": {"type": "int8", "scale": 1.0}})

    assert unit.proved({"Y": np.array([300.5, -128.5])})["Y"].tolist() == [127, -128]


def test_tolerances_are_the_levels_that_real_numbers_reach():
    """0 within a cell, 1 near its edge, 0 again beyond the last level."""
    unit = QuantisedUnit.of({"Y": {"type": "uint8", "scale": 0.5, "zero_point": 128}})
    reals = np.array([1.0, 1.2499999, 1.25000001, 90.0])
    allowed = unit.tolerances({"Y": reals}, {"Y": np.full(4, 1e-6, np.float32)})

    assert allowed["Y"].tolist() == [0, 1, 1, 0]


def test_no_level_of_int32_is_rounded_by_float32():
    """Beyond 2**24 a level becomes float32 before it is multiplied, or it does not."""
    unit = QuantisedUnit.of({"B": {"type": "int32", "scale": 1e-9}})

    with pytest.raises(InvalidRequest, match=r"B has levels beyond 2\*\*24"):
        unit.inputs({"B": np.ones((1, 2), np.float32)})
