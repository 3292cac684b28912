"""The scalar specification of ONNX's linear recurrences, against onnx and against itself."""

import warnings

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator
from support import linear_nodes
from support.linear_nodes import INPUTS, LinearNode, random_nodes
from support.linear_specification import evaluate, golden, nearest
from support.tables import every

UNIT = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
NODES = list(random_nodes(120, seed=1))


@every("node", NODES)
def test_it_agrees_with_onnx_on_random_nodes(node):
    """Outputs are those of onnx.reference, which adds a convolution's taps in 16 bits."""
    model, feeds = node.model()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ReferenceEvaluator(model).run(None, feeds)
    want = golden(node.operator, node.inputs, node.attributes)
    for got, (name, rounded) in zip(found, want.items(), strict=True):
        assert (got.dtype, got.shape) == (rounded.dtype, rounded.shape)
        unit, exact = UNIT[got.dtype.name], rounded.astype(np.float64)
        adds = unit if "weight" in node.inputs and name == "output" else UNIT["float32"]
        slack = 8 * adds * np.max(np.abs(exact[np.isfinite(exact)]), initial=0.1)
        np.testing.assert_allclose(got.astype(np.float64), exact, rtol=2 * unit, atol=slack)


def test_it_agrees_with_the_tests_that_onnx_publishes():
    """The outputs of onnx's own tests of both operators are within their tolerances."""
    operators, compared = {operator.split("-")[0]: operator for operator in INPUTS}, 0
    with np.errstate(all="ignore"):
        cases = collect_testcases(None)
    for case in cases:
        node = case.model.graph.node[0]
        if node.op_type not in operators:
            continue
        operator = operators[node.op_type]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
        given, published = case.data_sets[0]
        arrays = dict(zip([each.name for each in case.model.graph.input], given, strict=True))
        names = zip(INPUTS[operator], node.input, strict=False)
        inputs = {name: arrays[tensor] for name, tensor in names if tensor}
        want = golden(operator, inputs, attributes)
        for got, exact in zip(published, want.values(), strict=True):
            assert (got.dtype, got.shape) == (exact.dtype, exact.shape), case.name
            floats = got.astype(np.float64), exact.astype(np.float64)
            np.testing.assert_allclose(*floats, case.rtol, case.atol, err_msg=case.name)
        compared += 1
    assert compared >= 27


def test_floats_round_as_digits_do():
    """Nearly all float64 results round to those of 60 digits; none is further than a unit."""
    same = elements = 0
    for node in NODES:
        want = golden(node.operator, node.inputs, node.attributes)
        for name, numbers in evaluate(node.operator, node.inputs, node.attributes).items():
            dtype = want[name].dtype
            rounded = np.array([nearest(x, dtype.name) for x in numbers.ravel()], np.float64)
            exact = want[name].astype(np.float64).ravel()
            np.testing.assert_allclose(rounded, exact, rtol=UNIT[dtype.name], atol=1e-9)
            same += np.sum((rounded == exact) | np.isnan(exact))
            elements += exact.size
    assert same > 0.999 * elements


def test_two_tokens_by_hand():
    """S = 4 decays to 2, of which k = 1 finds 2: u = 0.5 (6 - 2), S = 4, and q = 3 reads 12."""
    inputs = {
        "query": np.float32([[[3], [1]]]),
        "key": np.float32([[[1], [2]]]),
        "value": np.float32([[[6], [4]]]),
        "past_state": np.float32([[[[4]]]]),
        "decay": np.full((1, 2, 1), np.log(0.5)),
        "beta": np.float32([[[0.5], [0]]]),
    }
    attributes = {"q_num_heads": 1, "kv_num_heads": 1, "scale": 2.0}
    found = evaluate("LinearAttention-27", inputs, attributes)
    np.testing.assert_allclose(found["output"].astype(float), [[[24], [4]]])
    np.testing.assert_allclose(found["present_state"].astype(float), [[[[2]]]])


def test_a_convolution_by_hand():
    """The last weight is of the newest position, and a short input leaves some of the past."""
    inputs = {
        "input": np.float32([[[10]]]),
        "weight": np.float32([[[1, 2, 3]]]),
        "bias": np.float32([0.5]),
        "past_state": np.float32([[[4, 5]]]),
    }
    found = golden("CausalConvWithState-27", inputs)
    assert found["output"].tolist() == [[[4 + 10 + 30 + 0.5]]]
    assert found["present_state"].tolist() == [[[5, 10]]]


@every("node", [node for node in NODES[::2] if node.inputs["key"].size])
def test_a_state_rounded_at_each_token_is_that_of_calls_of_one_token(node):
    """With state-round: step, one call gives the bits of as many calls as there are tokens."""
    whole = golden(node.operator, node.inputs, node.attributes, {"state-round": "step"})
    state = {name: x for name, x in node.inputs.items() if name == "past_state"}
    pieces = []
    for t in range(node.inputs["query"].shape[1]):
        step = {name: x[:, t : t + 1] for name, x in node.inputs.items()} | state
        output, present = golden(node.operator, step, node.attributes).values()
        state = {"past_state": present}
        pieces.append(output)
    for got, want in (
        (np.concatenate(pieces, 1), whole["output"]),
        (present, whole["present_state"]),
    ):
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def test_every_kind_of_node_is_drawn():
    """A few hundred nodes have each rule, dtype, length, group and optional input."""
    nodes = list(random_nodes(600))
    attention = [n for n in nodes if n.operator == "LinearAttention-27"]
    assert {n.attributes.get("update_rule") for n in attention} == {None, *linear_nodes.RULES}
    assert {n.inputs["query"].shape[1] for n in attention} == {*linear_nodes.LENGTHS}
    heads = [(n.attributes["q_num_heads"], n.attributes["kv_num_heads"]) for n in attention]
    assert {q // kv for q, kv in heads} == {1, 2, 4}
    for operator, names in INPUTS.items():
        given = [n.inputs for n in nodes if n.operator == operator]
        first, *_ = names
        assert {i[first].dtype.name for i in given} == {*UNIT}
        assert {len(i) for i in given} == {
            *range(len(names) - (3 if "query" in names else 2), len(names) + 1)
        }
    mixed = {
        (i.inputs["query"].dtype, i.inputs["past_state"].dtype)
        for i in attention
        if "past_state" in i.inputs
    }
    assert len(mixed) == 9


@every("node", [pytest.param(node, id=wrong) for wrong, node in linear_nodes.invalid_nodes()])
def test_what_is_invalid_onnx_refuses(node):
    """Its inference of types and shapes, or its reference, refuses each node of the table."""
    model, feeds = node.model()
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        with np.errstate(all="ignore"):
            ReferenceEvaluator(model).run(None, feeds)
    except Exception:  # noqa: BLE001 -- they raise what they meet
        return
    pytest.fail("onnx takes it")


def test_what_the_invalid_nodes_are_made_of_is_valid():
    """The nodes that the table breaks are right, so that one rule is broken in each."""
    valid = linear_nodes.ATTENTION, linear_nodes.CONVOLUTION
    for operator, shapes in zip(INPUTS, valid, strict=True):
        inputs = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        heads = {"q_num_heads": 4, "kv_num_heads": 2} if "query" in inputs else {}
        model, _ = LinearNode(operator, heads, inputs).model()
        onnx.checker.check_model(model, full_check=True)
        assert golden(operator, inputs, heads)
