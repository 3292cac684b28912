"""The shorter way around a kernel gives what onnx's own way gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

from rnncli.host_operators.table import host_operator
from rnncli.models.calls import call_of

NEWEST = onnx.defs.onnx_opset_version()


def operator_of(model):
    """Make onnx's operator for the only node of a model."""
    (operator,) = ReferenceEvaluator(model).rt_nodes_
    return operator


def one(op_type, *types, opset=17, **attributes):
    """Make onnx's operator for a node with inputs of some types."""
    names = [f"i{n}" for n in range(len(types))]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(t)), None)
        for name, t in zip(names, types, strict=True)
    ]
    graph = helper.make_graph([node], "g", values, [helper.make_empty_tensor_value_info("y")])
    return operator_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))


def published():
    """Yield an operator and its inputs from each case of one node that onnx publishes."""
    with np.errstate(all="ignore"):
        for case in collect_testcases(None):
            node, *more = case.model.graph.node
            if more or host_operator(node.domain, node.op_type, NEWEST):
                continue  # ours are not called through onnx's `run`
            try:
                operator = operator_of(case.model)
            except (NotImplementedError, RuntimeError):
                continue  # no implementation, or one that depends on the inputs
            for inputs, _ in case.data_sets:
                arrays = [
                    numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x
                    for x in inputs
                ]
                names = [value.name for value in case.model.graph.input]
                yield operator, dict(zip(names, arrays, strict=True))


def content(y):
    """Say what a result is, to the bit."""
    if not isinstance(y, np.ndarray) or y.dtype == object:
        return repr(y)
    return y.dtype, y.shape, y.tobytes()


def test_published_cases():
    """On every case that onnx publishes for one node, call and `run` return the same."""
    shorter = 0
    for operator, named in published():
        call, inputs = call_of(operator), [named.get(name) for name in operator.input]
        if call == operator.run or "Random" in operator.op_type or "Bernoulli" in operator.op_type:
            continue
        with np.errstate(all="ignore"):
            got, wanted = call(*inputs), operator.run(*inputs)
        shorter += 1
        assert [*map(content, got)] == [*map(content, wanted)]

    assert shorter > 300


def test_an_operator_that_sees_outer_values_is_run_as_onnx_does():
    """If and Loop take the values around them by name."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (bool c, float x) => (float y) {
        y = If (c) <then_branch = t () => (x) {}, else_branch = e () => (x) {}>
    }"""
    operator = operator_of(onnx.parser.parse_model(text))

    assert call_of(operator) == operator.run


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Less"])
def test_two_types_are_refused(op_type):
    """NumPy would promote one of them."""
    call = call_of(one(op_type, np.float32, np.float64))

    with pytest.raises(RuntimeError, match="second input is float64, first is float32"):
        call(np.ones(2, np.float32), np.ones(2))


def test_another_type_than_that_of_the_input_is_refused(monkeypatch):
    """A kernel that promotes is not believed."""
    operator = one("Neg", np.float32)
    monkeypatch.setattr(operator, "_run", lambda x: (x.astype(float),))

    with pytest.raises(RuntimeError, match="output is float64, input is float32"):
        call_of(operator)(np.ones(2, np.float32))


def test_a_scalar_becomes_a_tensor(monkeypatch):
    """NumPy's functions return scalars of shape []."""
    operator = one("Transpose", np.float32)
    monkeypatch.setattr(operator, "_run", lambda x, perm: (np.float32(3),))

    (y,) = call_of(operator)(np.ones(()))

    assert isinstance(y, np.ndarray)
    assert (y.dtype, y.shape) == (np.float32, ())


@pytest.mark.parametrize("results", [(), [np.ones(2)], (3,), ((np.ones(1),),), ("text", {1})])
def test_what_is_no_tensor_is_judged_by_onnx(monkeypatch, results):
    """A kernel that returns nothing, a list or a tuple in place of a tensor fails as before."""
    operator = one("Transpose", np.float32)
    monkeypatch.setattr(operator, "_run", lambda x, perm: results)

    def outcome(call):
        try:
            return call(np.ones(2))
        except (TypeError, ValueError) as error:
            return type(error), str(error)

    assert outcome(call_of(operator)) == outcome(operator.run)
