"""Claims about workloads: what every implementation is given, and what must come out."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from rnncli.bench.workloads import (
    ENOUGH,
    LINEAR,
    OPERATORS,
    OPSETS,
    UNKNOWN,
    WORKLOADS,
    built_in,
    planned,
)
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.operators import evaluate


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_built_in_workload_has_the_sizes_of_its_row(name, operator):
    """T, B, I, H, in this order."""
    case = built_in(name, operator)

    assert tuple(case.sizes.values()) == WORKLOADS[name]
    assert case.operator.name == f"{operator}-14"
    assert set(case.blanks) == {"X", "W", "R", "B"}


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_workload_has_its_own_operator_and_every_input(name):
    """Whatever operators the others have; runtimes are given a valid model of it."""
    _, T, B = LINEAR[name]
    (plan,) = planned([name], ["LSTM", "GRU"], "float16", {})
    case = plan.loaded

    assert (case.sizes["seq_length"], case.sizes["batch_size"], case.dtype.name) == (
        T,
        B,
        "float16",
    )
    assert set(case.blanks) == {row.name for row in case.operator.inputs}


def test_a_token_is_measured_with_a_valid_model():
    """Its state is an input, as it is at every call."""
    (plan,) = planned(["decode"], ["LSTM"], "float32", {})
    workload = plan.workload()

    onnx.checker.check_model(onnx.load_model_from_string(workload.vector.model), full_check=True)
    assert workload.description == "T 1, B 1, Q 32, K 32, k 128, v 128, float32"
    assert {*workload.vector.fed} == {*workload.vector.inputs}


def test_the_gru_is_of_the_form_that_all_have():
    """PyTorch has no other."""
    assert built_in("tiny", "GRU").attributes["linear_before_reset"] == 1


@pytest.mark.parametrize("dtype", OPSETS)
def test_a_workload_has_the_dtype_asked_for(dtype):
    """Inputs and exact outputs alike."""
    (plan,) = planned(["tiny"], ["LSTM"], dtype, {})
    workload = plan.workload()

    tensors = [*workload.vector.inputs.values(), *workload.exact.values()]
    assert {values.dtype.name for values in tensors} == {dtype}
    assert workload.description == f"T 5, B 2, I 3, H 4, {dtype}"


def test_runtimes_are_given_a_valid_model_that_holds_the_weights():
    """As they would be given any model, so that they may prepare the weights."""
    (plan,) = planned(["tiny"], ["LSTM"], "float32", {})
    vector = plan.workload().vector
    model = onnx.load_model_from_string(vector.model)

    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.input] == list(vector.fed) == ["X"]
    assert {tensor.name for tensor in model.graph.initializer} == {"W", "R", "B"}


def test_what_must_come_out_is_computed_in_float64():
    """Whatever backends compute in."""
    (plan,) = planned(["small"], ["GRU"], "float32", {})
    workload = plan.workload()
    wide = {name: values.astype(np.float64) for name, values in workload.vector.inputs.items()}
    wanted = evaluate("GRU-14", wide, attributes=workload.vector.record.attributes)

    assert set(workload.exact) == set(wanted)
    for name, values in wanted.items():
        assert np.array_equal(workload.exact[name], values.astype(np.float32))


def test_few_outputs_are_made_of_more_data():
    """Each with inputs and weights of its own; no outputs are few in `medium`."""
    (small,) = planned(["small"], ["RNN"], "float32", {})
    workload = small.workload()
    seen = {vector.inputs["X"].tobytes() for vector, _ in workload.others}
    outputs = [workload.exact, *(exact for _, exact in workload.others)]

    assert len(seen | {workload.vector.inputs["X"].tobytes()}) == len(outputs)
    total = sum(values.size for each in outputs for values in each.values())
    assert ENOUGH // 2 < total <= ENOUGH
    (medium,) = planned(["medium"], ["RNN"], "float32", {})
    assert not medium.workload().others


def test_all_built_in_workloads_are_meant_when_none_is_named():
    """Of each operator asked for."""
    names = [(each.name, each.loaded.operator.type) for each in planned([], ["RNN"], "float32", {})]

    assert names == [(name, "RNN") for name in WORKLOADS]


def test_whatever_can_be_run_can_be_measured():
    """A config that ships, and every valid case of a suite."""
    (config,) = planned(["lstm_14_peepholes"], ["RNN"], "float32", {})
    suite = planned(["smoke"], ["RNN"], "float32", {})

    assert config.workload().operator == "LSTM"
    assert len({each.name for each in suite}) == len(suite) > 3


def test_a_target_that_is_not_there_is_an_error():
    """Before anything is measured."""
    with pytest.raises(InvalidRequest, match="no such file"):
        planned(["tiny", "no_such_thing"], ["RNN"], "float32", {})


def test_a_slip_in_a_workload_is_told_its_name():
    """A target that is none is one of a workload's name, most likely."""
    with pytest.raises(InvalidRequest, match="did you mean 'prefill'"):
        planned(["prefil"], ["RNN"], "float32", {})


def saved(tmp_path, *, text=False):
    """A model X + S, S an initializer; or one of strings."""
    kind = TensorProto.STRING if text else TensorProto.FLOAT
    X, Y = (helper.make_tensor_value_info(name, kind, ["N", 4]) for name in "XY")
    weights = np.arange(4, dtype=np.float32)
    held = [] if text else [numpy_helper.from_array(weights, "S")]
    node = helper.make_node(*(("Identity", "X", "Y") if text else ("Add", "XS", "Y")))
    graph = helper.make_graph([node], "g", [X], [Y], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.save_model(model, tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")


def test_a_model_is_measured_on_inputs_of_the_sizes_asked_for(tmp_path):
    """They are generated, and its outputs are those of `rnncli run`."""
    (plan,) = planned([saved(tmp_path)], ["RNN"], "float32", {"N": 3})
    workload = plan.workload()

    assert (plan.is_model, workload.is_model, workload.cost) == (True, True, UNKNOWN)
    assert workload.description == "X [3, 4]"
    X = workload.vector.inputs["X"]
    assert np.array_equal(workload.exact["Y"], X + np.arange(4, dtype=np.float32))


def test_dimensions_are_for_models(tmp_path):
    """A workload has its sizes."""
    (plan,) = planned(["tiny"], ["RNN"], "float32", {"N": 3})

    with pytest.raises(InvalidRequest, match="--dim is for models"):
        plan.workload()


def test_a_model_of_strings_is_not_measured(tmp_path):
    """They do not pass between processes."""
    (plan,) = planned([saved(tmp_path, text=True)], ["RNN"], "float32", {"N": 3})

    with pytest.raises((Unsupported, InvalidRequest)):
        plan.workload()
