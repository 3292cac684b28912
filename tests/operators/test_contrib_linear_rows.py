"""ONNX Runtime's linear recurrences: what it declares and computes, and what is refused."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
from support import linear_specification
from support.linear_nodes import CONTRIB, DTYPES, PACKED, LinearNode, random_nodes
from support.tables import every

import rnncli
from rnncli.backends.reference import NumPyEngine
from rnncli.backends.reference import evaluate as run
from rnncli.errors import InvalidOperator, Unsupported
from rnncli.numerics import DTYPES as TYPES
from rnncli.numerics import FLOAT64
from rnncli.operators import evaluate, operator_for, operator_named, problems
from rnncli.operators.evaluation import OperatorSession
from rnncli.operators.node import checked

NODES = [*random_nodes(120, 5, (*CONTRIB,), DTYPES), *random_nodes(220, 7, (*PACKED,), DTYPES)]
SINGLE = [
    *random_nodes(160, 6, (*CONTRIB,), DTYPES[:1]),
    *random_nodes(160, 8, (*PACKED,), DTYPES[:1]),
]
ATTENTION, CONVOLUTION = map(operator_named, CONTRIB)
PACKED_CONVOLUTION, DELTA_NET = map(operator_named, PACKED)
HEADS = {"q_num_heads": 2, "kv_num_heads": 4, "update_rule": "linear"}
QUERY_KEY_VALUE = {
    "query": np.ones((1, 2, 6), np.float32),
    "key": np.ones((1, 2, 6), np.float32),
    "value": np.ones((1, 2, 20), np.float32),
}
STEPS = {"input": np.ones((1, 2, 5), np.float32), "weight": np.ones((2, 1, 3), np.float32)}


@every("row", [ATTENTION, CONVOLUTION, PACKED_CONVOLUTION, DELTA_NET], ids=str)
def test_the_row_is_what_onnxruntime_declares(row):
    """Inputs with optionality and types, outputs, what is not evaluated, attributes with types."""
    (schema,) = [
        each
        for each in get_all_operator_schema()
        if (each.domain, each.name) == (row.domain, row.type)
    ]
    types = {rule.type_param_str: rule.allowed_type_strs for rule in schema.type_constraints}
    for side, declared in (("inputs", schema.inputs), ("outputs", schema.outputs)):
        names = [tensor.name for tensor in getattr(row, side)] + [*row.beyond.get(side, ())]
        assert [each.name for each in declared] == names
    for each, tensor in zip(schema.inputs, row.inputs, strict=False):
        allowed = {t[7:-1] for t in types[each.typeStr]}
        assert {t.replace("float32", "float") for t in row.input_dtypes(tensor)} == allowed
        is_ours = row is DELTA_NET and tensor.name in {"key", "value"}  # query alone may have all
        assert (each.option.name == "Optional") == (tensor.optional or is_ours)
    assert {name: each.type.name.lower() for name, each in schema.attributes.items()} == {
        name: each.type for name, each in row.attributes.items()
    }


def test_it_is_found_by_its_domain():
    """Whatever opset of it a model imports; ONNX's own operators are others."""
    assert operator_for("com.microsoft", "LinearAttention", 1) is ATTENTION
    assert operator_for("", "LinearAttention", 27) is operator_named("LinearAttention-27")
    assert operator_for("", "CausalConvWithState", 26) is None


@every("node", NODES)
def test_float64_is_the_scalar_specification(node):
    """Before the last rounding, to 1e-12 of the largest number."""
    resolved = checked(operator_named(node.operator), node.attributes, node.inputs)
    recurrence = resolved.recurrence(node.inputs)
    wide = replace(recurrence, dtype=TYPES["float64"], states_dtype=TYPES["float64"])
    found = resolved.outputs_of(run(wide, NumPyEngine(FLOAT64)))
    wanted = linear_specification.evaluate(node.operator, node.inputs, node.attributes)

    linear_specification.assert_is(found, wanted)


@every("node", [*NODES[:40], *NODES[-20:]])
def test_certified_results_and_models_give_the_same(node):
    """As 60 digits give them, and as a prepared model of the node does."""
    try:
        found = evaluate(
            node.operator, node.inputs, attributes=node.attributes, backend="certified"
        )
    except Unsupported as error:
        assert "needs finite inputs" in str(error)  # noqa: PT017 -- a row may do either
        return
    wanted = linear_specification.golden(node.operator, node.inputs, node.attributes)
    model, feeds = node.model()
    whole = rnncli.prepare(model).run(feeds)
    for (name, values), of_model in zip(found.items(), whole.values(), strict=True):
        exact = wanted[name].astype(np.float64)
        unit = 2.0 ** (1 - TYPES[values.dtype.name].precision)
        differ = values.astype(np.float64) != exact  # of a tie, e^-200 may be left
        assert differ.mean() < 0.01 if values.size else not differ.any()
        for each in (values, of_model):
            np.testing.assert_allclose(each.astype(np.float64), exact, rtol=unit, atol=1e-30)


@every("node", SINGLE)
def test_onnxruntime_computes_the_same(node):
    """In float32, by kernels of its own, to 1e-5 of the largest number."""
    model, feeds = node.model()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    wanted = evaluate(node.operator, node.inputs, attributes=node.attributes)
    for got, exact in zip(session.run(None, feeds), wanted.values(), strict=True):
        assert got.shape == exact.shape
        assert np.array_equal(np.isfinite(got), np.isfinite(exact))
        finite = np.isfinite(exact)
        largest = np.max(np.abs(exact[finite]), initial=1e-30)
        np.testing.assert_allclose(got[finite], exact[finite], rtol=0, atol=1e-5 * largest)


def test_surplus_gates_change_nothing():
    """The text does not forbid them, and ONNX's own operator refuses them."""
    node = next(n for n in SINGLE if "linear" in n.attributes.values() and n.inputs["query"].size)
    bare = {name: node.inputs[name] for name in node.inputs if name not in {"decay", "beta"}}
    more = {**bare, "decay": np.ones((*bare["query"].shape[:2], node.attributes["kv_num_heads"]))}
    more["decay"] = more["decay"].astype(np.float32)
    of_each = (evaluate(ATTENTION, some, attributes=node.attributes) for some in (bare, more))
    without, with_them = of_each

    assert all(np.array_equal(without[n], with_them[n], equal_nan=True) for n in without)


@every(
    ("change", "sentence"),
    [
        ({"state_window": 2}, "attribute 'state_window' must be 0 here, got 2: ONNX Runtime's CPU"),
        ({"kv_num_heads": 3}, "one of q_num_heads and kv_num_heads must be a multiple of the oth"),
        ({"update_rule": "gated"}, "update_rule gated needs decay"),
        ({"key": np.ones((1, 2, 3), np.float32)}, "key must be [1, 2, 12]"),
        ({"value": np.ones((1, 2, 10), np.float32)}, "past_state must be [1, 4, 3, 2]"),
    ],
)
def test_wrong_attentions_are_refused(change, sentence):
    """With the rule, or the reason why it is not evaluated."""
    past = {"past_state": np.ones((1, 4, 3, 5), np.float32)}
    inputs = QUERY_KEY_VALUE | past | {k: v for k, v in change.items() if k in QUERY_KEY_VALUE}
    attributes = HEADS | {k: v for k, v in change.items() if k not in QUERY_KEY_VALUE}

    assert sentence in " ".join(p.sentence for p in problems(ATTENTION, attributes, inputs))


@every(
    ("attributes", "inputs", "sentence"),
    [
        ({"dilation": 0}, {}, "attribute 'dilation' must be at least 1, got 0"),
        ({"channels_last": 2}, {}, "attribute 'channels_last' must be one of 0, 1, got 2"),
        ({"ndim": 2}, {}, "attribute 'ndim' must be 1 here, got 2"),
        ({"state_length": 4}, {}, "attribute 'state_length' must be 0 here"),
        ({"state_channels_last": 1}, {}, "attribute 'state_channels_last' must be -1 here"),
        ({"channels_last": 1}, {}, "weight must be [5, 1, 3]"),
        ({"dilation": 2}, {"past_state": (1, 2, 2)}, "past_state must be [1, 2, 4]"),
        ({"channels_last": 1}, {"input": (1, 5, 1, 2)}, "input must have 3 dimensions"),
    ],
)
def test_wrong_convolutions_are_refused(attributes, inputs, sentence):
    """Likewise; channels of several axes are none of ours."""
    given = STEPS | {name: np.ones(shape, np.float32) for name, shape in inputs.items()}

    assert sentence in " ".join(p.sentence for p in problems(CONVOLUTION, attributes, given))


ENDS = "cumulative_sequence_length"
TOKENS = {
    "input": np.ones((6, 2), np.float32),
    "weight": np.ones((2, 1, 3), np.float32),
    ENDS: np.array([0, 2, 6], np.int32),
    "initial_state": np.ones((2, 2, 2), np.float32),
}


@every(
    ("attributes", "ends", "sentence"),
    [
        ({}, [1, 2, 6], f"{ENDS} must go from 0 to total_tokens = 6, got 1 to 6"),
        ({}, [0, 2, 5], f"{ENDS} must go from 0 to total_tokens = 6, got 0 to 5"),
        ({}, [0, 6, 6], f"{ENDS} must rise, since every sequence has a token; sequence 1 goes fro"),
        ({}, [0, 7, 6], "sequence 1 goes from 7 to 6"),
        ({}, [0, 6], "initial_state must be"),
        ({"dilation": 2}, [0, 2, 6], "initial_state must be [2, 2, 4]"),
        ({"state_update_capacity": 2}, [0, 2, 6], "'state_update_capacity' must be 0 here, got 2"),
        ({"group_size": 2}, [0, 2, 6], "attribute 'group_size' must be 1 here, got 2: ONNX Runti"),
    ],
)
def test_wrong_packed_convolutions_are_refused(attributes, ends, sentence):
    """Also where the numbers of the cumulative lengths are wrong."""
    given = TOKENS | {ENDS: np.array(ends, np.int32)}

    found = " ".join(p.sentence for p in problems(PACKED_CONVOLUTION, attributes, given))
    assert sentence in found


WRONG_TOKENS = [
    ({"cu_seqlens": []}, "cu_seqlens must have no empty dimension"),
    ({"cu_seqlens": [0]}, "cu_seqlens must go from 0 to total_tokens = 5, got 0 to 0"),
    ({"cu_seqlens": [0, -3, 5]}, "sequence 0 goes from 0 to -3"),
    ({"cu_seqlens": [[0, 5]]}, "cu_seqlens must have 1 dimensions"),
    ({}, "initial_state is needed where cu_seqlens is absent"),
    ({"initial_state": 2}, "total_tokens 5 must be a multiple of batch_size"),
    ({"initial_state": 0}, "total_tokens 5 must be a multiple of batch_size"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG_TOKENS)
def test_wrong_packed_attentions_are_refused(given, sentence):
    """Whatever a stranger's numbers say of the sequences, also that there are none."""
    tokens = {
        "query": (5, 1, 4),
        "key": (5, 1, 4),
        "value": (5, 2, 3),
        "decay": (5, 2),
        "beta": (5, 2),
    }
    inputs = {name: np.ones(shape, np.float32) for name, shape in tokens.items()}
    if "cu_seqlens" in given:
        inputs["cu_seqlens"] = np.array(given["cu_seqlens"], np.int32)
    if "initial_state" in given:
        inputs["initial_state"] = np.zeros((given["initial_state"], 2, 3, 4), np.float32)

    with pytest.raises(InvalidOperator) as told:
        evaluate("com.microsoft.GatedDeltaNet", inputs)
    assert sentence in str(told.value)


def test_equal_shapes_may_have_other_ends():
    """A prepared node of one batch answers the next, packed otherwise."""
    prepared = OperatorSession(PACKED_CONVOLUTION, {}, attributes={})
    for ends in ([0, 2, 6], [0, 5, 6], [0, 2, 6]):
        given = TOKENS | {ENDS: np.array(ends, np.int32)}
        found = prepared.run(given)
        wanted = linear_specification.evaluate(str(PACKED_CONVOLUTION), given, {})
        linear_specification.assert_is(found, wanted)


def test_inputs_of_cuda_are_refused_by_name():
    """A model that gives them is right, and is not evaluated."""
    node = LinearNode(str(PACKED_CONVOLUTION), {}, TOKENS)
    model, _ = node.model()
    model.graph.node[0].input.extend(["", "i0", "i0"])

    with pytest.raises(Unsupported, match="not evaluated here: kernel_delta, previous_mask"):
        rnncli.prepare(model)


def test_what_is_right_but_not_evaluated_is_unsupported():
    """A node of CUDA exits with 3; one that breaks a rule as well exits with 2."""
    with pytest.raises(Unsupported, match="state_window"):
        evaluate(ATTENTION, QUERY_KEY_VALUE, attributes={**HEADS, "state_window": 2})
    with pytest.raises(InvalidOperator, match="state_window"):
        evaluate(ATTENTION, {}, attributes={**HEADS, "state_window": 2})


@every(
    ("given", "sentence"),
    [
        (dict.fromkeys(("query", "key", "value"), (2, 3, 1, 4)), "sequences side by side, [batch_"),
        ({"query": (6, 12), "key": None, "value": None}, "queries, keys and values in one tensor"),
        ({"query": (6, 1, 4)}, "float32 'decay' and 'beta' beside a query of 16 bits"),
    ],
)
def test_forms_of_attentions_that_onnxruntime_has_besides_are_unsupported(given, sentence):
    """They break no rule, and so no rule of the form that is evaluated is quoted."""
    inputs = dict.fromkeys(("query", "key", "value"), np.ones((6, 1, 4), np.float16))
    inputs |= dict.fromkeys(("decay", "beta"), np.ones((6, 1), np.float32))
    for name, shape in given.items():
        inputs |= {name: np.ones(shape or 0, np.float16)}
    found = {name: values for name, values in inputs.items() if given.get(name, True) is not None}

    with pytest.raises(Unsupported) as told:
        evaluate("com.microsoft.GatedDeltaNet", found)
    assert sentence in str(told.value)
    assert "must" not in str(told.value)
