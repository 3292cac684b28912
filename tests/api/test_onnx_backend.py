"""Claims about ONNX's backend interface, against ONNX's own test cases."""

import unittest
import warnings
from importlib import import_module

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test import BackendTest
from onnx.backend.test.case import node
from onnx.backend.test.runner import Runner
from support.one_node import CONTESTED

import rnncli.api.onnx_backend
from rnncli.api.onnx_backend import is_compatible, prepare, run_model, run_node, supports_device
from rnncli.errors import InvalidRequest, Unsupported

# onnx's cases that do not pass, and why. No specification says which numbers are drawn: these pass
# or fail by chance.
DRAWN = {
    f"test_bernoulli{given}{form}"
    for given in ("", "_double", "_seed")
    for form in ("", "_expanded")
}
# The runner asks a scalar within a sequence for its length; the values are compared below.
UNCOMPARED = {"test_loop16_seq_none"}
# Gradients are for training.
UNSUPPORTED = {"test_gradient_of_add", "test_gradient_of_add_and_mul"}
# Kinds of cases that onnx's package holds; those of kind Real are downloaded.
KINDS = ("Node", "Simple", "PyTorchConverted", "PyTorchOperator")


@pytest.fixture(scope="module")
def node_cases():
    """Return ONNX's node cases of loops and recurrences; to make all would take seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("gru", "loop", "lstm", "rnn"):
            import_module(f"{node.__name__}.{name}")
        return node._NodeTestCases


def array(value):
    """Return a tensor of a case as what a backend is given."""
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return value


def failure(runner, case):
    """Return why a case fails, or None when all its outputs are as expected."""
    try:
        for inputs, expected in case.data_sets:
            outputs = runner(case.model)([array(value) for value in inputs])
            Runner.assert_similar_outputs(
                [array(value) for value in expected], outputs, rtol=case.rtol, atol=case.atol
            )
    except Exception as error:  # noqa: BLE001 -- any failure is what is asked about
        return f"{case.name}: {type(error).__name__} {error}"
    return None


def ours(model):
    """Return the prepared model's run."""
    return prepare(model).run


@pytest.mark.filterwarnings("ignore")  # of onnx, making its cases
def test_onnx_own_runner_passes_all_cases():
    """`BackendTest` runs against the module: all cases pass but those that are listed above."""
    tests = BackendTest(rnncli.api.onnx_backend, __name__)
    tests.exclude("_cuda$")
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromTestCase(
            tests.test_cases[f"OnnxBackend{kind}ModelTest"]
        )
        for kind in KINDS
    )
    result = unittest.TestResult()

    suite.run(result)

    failed = {name_of(test): trace for test, trace in result.failures + result.errors}
    skipped = {name_of(test) for test, why in result.skipped if "exclude" not in why}
    unexplained = {*failed} - DRAWN
    assert unexplained == {*CONTESTED} | UNCOMPARED, [failed[name] for name in unexplained]
    assert skipped == UNSUPPORTED
    assert result.testsRun - len(result.skipped) > 2000


def name_of(test):
    """Return the name of a case, given a test of onnx's runner."""
    return test.id().rpartition(".")[2].removesuffix("_cpu")


def test_sequences_that_hold_scalars_are_right(node_cases):
    """Compared here, as onnx's runner cannot."""
    cases = [case for case in node_cases if case.name in UNCOMPARED]

    assert len(cases) == len(UNCOMPARED)
    for case in cases:
        for inputs, (expected,) in case.data_sets:
            (made,) = ours(case.model)(list(inputs))
            assert [each.tolist() for each in made] == [each.tolist() for each in expected]


@pytest.mark.parametrize(("empty", "wanted"), [(False, [1, 2]), (True, [-1, -2])])
def test_an_optional_value_is_the_value_or_none(empty, wanted):
    """Not a list of it; without a value it has no element."""
    there, y = run_model(optional_model(), [np.array(empty)])

    assert there == (not empty)
    assert y.tolist() == wanted


def optional_model():
    """Return a model whose branches make an optional value, or an empty one."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (bool empty) => (bool there, float[n] y) {'
        " x = Constant <value = float[2] {1.0, 2.0}> ()"
        " value = If (empty) <then_branch = a () => (p) { p = Optional () },"
        " else_branch = b () => (q) { q = Optional (x) }>"
        " there = OptionalHasElement (value)"
        " y = If (there) <then_branch = c () => (float[n] r) { r = OptionalGetElement (value) },"
        " else_branch = d () => (float[n] s) { s = Neg (x) }> }"
    )
    of_floats = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    (empty,) = model.graph.node[1].attribute[0].g.node
    empty.attribute.append(helper.make_attribute("type", of_floats))
    return model


def test_recurrent_cases_are_not_onnx_own_kernels(node_cases, monkeypatch):
    """The recurrent cases pass although onnx's kernels for them are broken."""
    kinds = {"RNN", "GRU", "LSTM"}
    cases = [case for case in node_cases if {n.op_type for n in case.model.graph.node} & kinds]
    for kind in kinds:
        module = __import__(f"onnx.reference.ops.op_{kind.lower()}", fromlist=["x"])
        monkeypatch.setattr(getattr(module, f"Common{kind}"), "_run", None)

    assert len(cases) == 18
    assert [] == [found for case in cases if (found := failure(ours, case))]


def add_model():
    """Return a model of one addition."""
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["ai.onnx": 17]> g (float[2] a, float[2] b) => (float[2] c)'
        " { c = Add(a, b) }"
    )


def test_inputs_by_position_and_by_name():
    """A list follows the graph's inputs, a dict names them."""
    a, b = np.float32([1, 2]), np.float32([3, 5])

    (by_position,) = run_model(add_model(), [a, b])
    (by_name,) = run_model(add_model(), {"b": b, "a": a})

    assert [4, 7] == by_position.tolist() == by_name.tolist()


def test_the_given_model_is_not_changed():
    """Normalising works on a copy: the long name of ONNX's domain is still there."""
    model = add_model()
    model.opset_import[0].domain = "ai.onnx"
    before = model.SerializeToString()

    run_model(model, [np.float32([1, 2]), np.float32([3, 5])])

    assert model.SerializeToString() == before


def test_too_many_inputs_are_an_error():
    """An input more than the graph has is not ignored."""
    with pytest.raises(InvalidRequest, match="2 inputs, 3 were given"):
        run_model(add_model(), [np.float32([1, 2])] * 3)


def test_only_the_cpu_is_a_device():
    """CUDA is refused, not ignored."""
    assert supports_device("CPU")
    assert supports_device("CPU:0")
    assert not supports_device("CUDA")
    with pytest.raises(Unsupported, match="CUDA"):
        prepare(add_model(), "CUDA:1")


def test_run_node_runs_a_node_of_any_opset():
    """GRU-1 and GRU-22 alike; outputs the node omits are not returned."""
    X, W, R = np.ones((2, 1, 3)), np.ones((1, 6, 3)), np.ones((1, 6, 2))
    node = helper.make_node("GRU", ["X", "W", "R"], ["", "Y_h"], hidden_size=2)
    inputs = [value.astype(np.float32) for value in (X, W, R)]

    old, new = (run_node(node, inputs, opset_version=opset) for opset in (1, 22))

    assert len(old) == len(new) == 1
    assert np.array_equal(old[0], new[0])
    assert old[0].shape == (1, 1, 2)


def test_compatibility_is_whether_every_node_can_run():
    """A model with a foreign operator is not compatible."""
    model = add_model()
    assert is_compatible(model)
    model.graph.node[0].domain = "com.microsoft"
    assert not is_compatible(model)


def test_readings_reach_the_nodes():
    """A reading changes the result of the nodes that have it; an unknown one is an error."""
    node = helper.make_node(
        "RNN", ["X", "W", "R", "", "lens", "h"], ["", "Y_h"], hidden_size=1, activations=["Relu"]
    )
    X, W, R = (np.ones(shape, np.float32) for shape in ((2, 1, 1), (1, 1, 1), (1, 1, 1)))
    inputs = [X, W, R, np.int32([0]), np.full((1, 1, 1), 7, np.float32)]

    zero = run_node(node, inputs)
    initial = run_node(node, inputs, readings={"zero-length": "initial"})

    assert [0] == zero[0].ravel().tolist()
    assert [7] == initial[0].ravel().tolist()
    with pytest.raises(InvalidRequest, match="did you mean 'zero-length'"):
        run_node(node, inputs, readings={"zero_length": "initial"})
