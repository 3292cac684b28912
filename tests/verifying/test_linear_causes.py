"""What runs of models say of linear recurrences: whose bug it is, and what was not tried."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from rnncli.judging.tolerances.tolerance import DATA_SET
from rnncli.models.evaluator import prepare
from rnncli.models.loading import model_from
from rnncli.mutants.catalogue import MUTANTS
from rnncli.running.execution import execute
from rnncli.running.request import Request
from rnncli.verifying.exercise import Exercise
from rnncli.verifying.expected_outputs import ExpectedOutputs

N, T, Q, K, DK, DV, C, W = 2, 6, 4, 2, 4, 3, 3, 4
NODES = {
    "LinearAttention": (
        {
            "query": (N, T, Q * DK),
            "key": (N, T, K * DK),
            "value": (N, T, K * DV),
            "past_state": (N, K, DK, DV),
            "decay": (N, T, K),
            "beta": (N, T, K),
        },
        {"Y": (N, T, Q * DV), "S": (N, K, DK, DV)},
        {"q_num_heads": Q, "kv_num_heads": K},
    ),
    "CausalConvWithState": (
        {"input": (N, C, T), "weight": (C, 1, W), "bias": (C,), "past_state": (N, C, W - 1)},
        {"Y": (N, C, T), "S": (N, C, W - 1)},
        {"activation": "silu"},
    ),
}


def model_of(kind):
    """A model of one node, all of whose inputs are the model's."""
    inputs, outputs, attributes = NODES[kind]
    node = helper.make_node(kind, [*inputs], [*outputs], name=kind, **attributes)
    infos = (
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, shape) for k, shape in shapes.items()]
        for shapes in (inputs, outputs)
    )
    graph = helper.make_graph([node], "one", *infos)
    opsets = [helper.make_opsetid("", 27)]
    return model_from(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def inputs_of(kind, **changes):
    """Random inputs; gates between 0 and 1, and below 0."""
    draw, shapes = np.random.default_rng(3), NODES[kind][0]
    found = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    if kind == "LinearAttention":
        found |= {"decay": -np.abs(found["decay"]), "beta": 1 / (1 + np.exp(found["beta"]))}
    return {name: values.astype(np.float32) for name, values in (found | changes).items()}


@pytest.mark.parametrize(
    ("kind", "bug"),
    [
        ("LinearAttention", "decay-after-write"),
        ("LinearAttention", "groups-tiled"),
        ("LinearAttention", "present-state-of-step-before"),
        ("LinearAttention", "state-in-float16"),
        ("CausalConvWithState", "taps-flipped"),
        ("CausalConvWithState", "present-window-off-by-one"),
        ("CausalConvWithState", "padding-right"),
    ],
)
def test_the_bug_of_wrong_outputs_is_named(kind, bug, tmp_path):
    """By all outputs of a model of one node."""
    model, inputs = model_of(kind), inputs_of(kind)

    def observe(occurrence):
        recurrence = occurrence.node.recurrence(occurrence.inputs)
        return occurrence.node.outputs_of(MUTANTS[bug].run(recurrence))

    np.savez(tmp_path / "in.npz", **inputs)
    np.savez(tmp_path / "out.npz", **prepare(model, observer=observe).outputs(inputs))
    files = {"inputs_from": str(tmp_path / "in.npz"), "expected_from": str(tmp_path / "out.npz")}
    request = Request(tolerance=DATA_SET, **files)
    (run,) = execute(model, request)
    cause = ExpectedOutputs().report(model, request, run).cause

    assert bug in cause.fits
    assert cause.explained == cause.wrong > 0


@pytest.mark.parametrize(
    ("kind", "changes", "missing"),
    [
        ("LinearAttention", {}, []),
        ("LinearAttention", {"decay": 0 * np.ones((N, T, K))}, ["decay"]),
        ("LinearAttention", {"beta": np.ones((N, T, K))}, ["beta"]),
        ("LinearAttention", {"past_state": np.zeros((N, K, DK, DV))}, ["past_state"]),
        ("CausalConvWithState", {}, []),
        ("CausalConvWithState", {"past_state": np.zeros((N, C, W - 1))}, ["past_state"]),
    ],
)
def test_what_was_not_put_to_the_test_is_said(kind, changes, missing):
    """A decay of 0, a rate of 1 and zeros before the first step are right in any kernel."""
    model = model_of(kind)
    exercise = Exercise(model)
    prepare(model, observer=exercise.add).outputs(inputs_of(kind, **changes))

    assert [sentence.partition(" of ")[0] for sentence in exercise.missing()] == missing
