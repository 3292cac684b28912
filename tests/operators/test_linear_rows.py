"""ONNX's linear recurrences: what the scalar specification computes, and what is refused."""

import warnings
from dataclasses import replace

import mpmath
import numpy as np
import onnx
import pytest
from support import linear_specification
from support.linear_nodes import invalid_nodes, random_nodes
from support.tables import every

import rnncli
from rnncli.backends.reference import NumPyEngine
from rnncli.backends.reference import evaluate as run
from rnncli.errors import Unsupported
from rnncli.numerics import DTYPES, FLOAT64
from rnncli.operators import evaluate, operator_named, problems
from rnncli.operators.node import checked

NODES = list(random_nodes(150, seed=3))
FEW = NODES[:60]


def recurrence_of(node, **readings):
    """Return a node and its canonical recurrence."""
    row = operator_named(node.operator)
    resolved = checked(row, node.attributes, node.inputs, None, readings)
    return resolved, resolved.recurrence(node.inputs)


def same(one, other):
    """Whether two tensors have the same numbers and type; NaN equals NaN."""
    wide = (values.astype(np.float64) for values in (one, other))
    return one.dtype == other.dtype and np.array_equal(*wide, equal_nan=True)


@every("node", NODES)
def test_float64_is_the_scalar_specification(node):
    """Before the last rounding, to 1e-12 of the largest number."""
    resolved, recurrence = recurrence_of(node, **without_rounding(node))
    wide = replace(recurrence, dtype=DTYPES["float64"], states_dtype=DTYPES["float64"])
    found = resolved.outputs_of(run(wide, NumPyEngine(FLOAT64)))
    wanted = linear_specification.evaluate(
        node.operator, node.inputs, node.attributes, without_rounding(node)
    )

    linear_specification.assert_is(found, wanted)


def without_rounding(node):
    """The readings under which nothing is rounded but the results."""
    return {"conv-round": "none"} if node.operator.startswith("Causal") else {}


@every("node", FEW)
def test_certified_results_are_the_exact_ones_rounded_once(node):
    """As 60 digits give them; of what they take for a tie, e^-200 may be left."""
    try:
        found = evaluate(
            node.operator, node.inputs, attributes=node.attributes, backend="certified"
        )
    except Unsupported as error:
        assert "needs finite inputs" in str(error)  # noqa: PT017 -- a row may do either
        return
    wanted = linear_specification.golden(node.operator, node.inputs, node.attributes)
    for name, values in found.items():
        if not same(values, wanted[name]):
            exact = linear_specification.evaluate(
                node.operator, node.inputs, node.attributes, real=linear_specification.DIGITS
            )[name]
            for index in np.argwhere(values != wanted[name]):
                ends = [float(each[tuple(index)]) for each in (values, wanted[name])]
                with mpmath.workdps(60):
                    assert exact[tuple(index)] == sum(map(mpmath.mpf, ends)) / 2


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@every("node", FEW)
def test_backends_and_models_give_the_reference(backend, node):
    """Evaluated once, and as a prepared model of the node."""
    wanted = evaluate(node.operator, node.inputs, attributes=node.attributes, backend="reference")
    found = evaluate(node.operator, node.inputs, attributes=node.attributes, backend=backend)
    model, feeds = node.model()
    session = rnncli.prepare(model, backend=backend)

    assert all(same(found[name], wanted[name]) for name in wanted)
    for outputs in (session.run(feeds), session.run(feeds)):
        assert all(map(same, outputs.values(), wanted.values()))


@every("node", FEW)
@every("reading", ["state-round=step", "conv-round=none"])
def test_other_readings_are_those_of_the_scalar_specification(node, reading):
    """In the type of the tensors, where they differ."""
    name, _, choice = reading.partition("=")
    if name not in operator_named(node.operator).readings:
        return
    found = evaluate(
        node.operator, node.inputs, attributes=node.attributes, readings={name: choice}
    )
    wanted = linear_specification.golden(
        node.operator, node.inputs, node.attributes, {name: choice}
    )
    for output, values in found.items():
        exact = wanted[output].astype(np.float64)
        unit = float(2.0 ** (1 - DTYPES[values.dtype.name].precision))
        largest = np.max(np.abs(exact[np.isfinite(exact)]), initial=1e-300)
        np.testing.assert_allclose(
            values.astype(np.float64), exact, rtol=unit, atol=1e-2 * unit * largest
        )


@every(("wrong", "node"), list(invalid_nodes()))
def test_what_the_text_does_not_allow_is_refused(wrong, node):
    """Each of its rules, broken alone."""
    assert [*problems(operator_named(node.operator), node.attributes, node.inputs)], wrong


def test_a_stack_is_its_recurrences_one_by_one():
    """To the last bit."""
    node = next(n for n in NODES if n.operator.startswith("Linear") and n.inputs["query"].size)
    resolved, _ = recurrence_of(node)
    stacked = {name: np.stack([values, values * 0.5]) for name, values in node.inputs.items()}
    stack = run(resolved.recurrence(stacked), NumPyEngine(FLOAT64))
    for k in range(2):
        alone = {name: values[k] for name, values in stacked.items()}
        own = run(resolved.recurrence(alone), NumPyEngine(FLOAT64))
        assert same(stack.Y[k], own.Y)
        assert same(stack.last[1][k], own.last[1])


def test_an_empty_call_leaves_the_state_as_it_is():
    """Zero without one, in the type of the queries."""
    past = np.float32([[[[1, 2]]]])
    empty = np.zeros((1, 0, 1), np.float16)
    inputs = {"query": empty, "key": empty, "value": np.zeros((1, 0, 2), np.float16)}
    attributes = {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "linear"}
    kept = evaluate("LinearAttention-27", {**inputs, "past_state": past}, attributes=attributes)
    fresh = evaluate("LinearAttention-27", inputs, attributes=attributes)

    assert same(kept["present_state"], past)
    assert same(fresh["present_state"], np.zeros((1, 1, 1, 2), np.float16))
    assert kept["output"].shape == (1, 0, 2)


def test_onnxruntime_computes_the_same():
    """Of float32, where it takes the node; it runs the body of the function."""
    onnxruntime = pytest.importorskip("onnxruntime")
    compared = 0
    for node in NODES:
        finite = all(np.isfinite(each.astype(np.float64)).all() for each in node.inputs.values())
        if not finite or {each.dtype.name for each in node.inputs.values()} != {"float32"}:
            continue
        model, feeds = node.model()
        try:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            found = session.run(None, feeds)
        except Exception:  # noqa: BLE001, S112 -- empty sequences, which its Reshape refuses
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = evaluate(node.operator, node.inputs, attributes=node.attributes)
        for got, exact in zip(found, wanted.values(), strict=True):
            largest = np.max(np.abs(exact), initial=1e-30)
            np.testing.assert_allclose(got, exact, rtol=1e-4, atol=2e-5 * largest)
        compared += 1
    assert compared > 20
    assert onnx.defs.onnx_opset_version() >= 27
