"""Claims about the suite onnx-node: ONNX's own recurrent node cases, frozen, and their worth."""

from functools import cache
from importlib import import_module

import numpy as np
import pytest
from onnx.backend.test.case import node as cases_of_nodes
from support.shipped import suite, vectors

from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.verifying.scoring import ONNX_RULE, ScoringPlan, score_all, select

RECURRENT = {"RNN", "GRU", "LSTM"}


def published():
    """Return the cases that the installed onnx publishes, by the ids that ours have.

    Its own function makes those of all operators, in five seconds of each process that collects.
    """
    for name in RECURRENT:
        import_module(f"{cases_of_nodes.__name__}.{name.lower()}")
    cases = cases_of_nodes._NodeTestCases
    return {id_of(case): case for case in cases if RECURRENT & set(operators_of(case.model))}


def operators_of(model):
    """Return the operators of a model's nodes."""
    return [node.op_type for node in model.graph.node] if model else []


def id_of(case):
    """Return lstm_22_reverse for test_lstm_reverse."""
    op = case.model.graph.node[0].op_type.lower()
    return f"{op}_22_{case.name.split(f'{op}_', 1)[1]}"


PUBLISHED = published()


@cache
def ours():
    """Return our vectors by id."""
    return {vector.id: vector for vector in vectors("onnx-node")}


def test_they_are_the_eighteen_that_onnx_publishes():
    """Six of each operator."""
    assert len(PUBLISHED) == 18
    assert sorted(ours()) == sorted(PUBLISHED)


@pytest.mark.parametrize("id_", sorted(PUBLISHED))
def test_each_has_the_inputs_that_onnx_gives_it(id_):
    """Bit by bit, and its outputs, attributes and types."""
    case, vector = PUBLISHED[id_], ours()[id_]
    (node,), (given, _) = case.model.graph.node, case.data_sets[0]

    assert {a.name for a in node.attribute} == set(vector.record.attributes)
    assert vector.record.outputs == [name for name in node.output if name]
    assert list(vector.inputs) == list(node.input)
    for name, values in zip(node.input, given, strict=True):
        assert vector.inputs[name].dtype == values.dtype
        assert vector.inputs[name].tobytes() == values.tobytes()


@pytest.mark.parametrize("id_", sorted(PUBLISHED))
def test_what_onnx_expects_is_right(id_):
    """Within a sixth of the tolerance of each element; rounding, and nothing else, differs."""
    _, expected = PUBLISHED[id_].data_sets[0]
    answers = ours()[id_].answers

    for name, values in zip(answers.outputs, expected, strict=True):
        errors = np.abs(values.astype(np.float64) - answers.outputs[name])
        assert np.all(errors <= answers.tolerances[name] / 6), name


@pytest.mark.parametrize(("rule", "most"), [(PACK_RULE, 50), (ONNX_RULE, 45)])
def test_half_of_the_bugs_pass_them(rule, most):
    """Constant weights, zero states, one step: by derived tolerances and by ONNX's own."""
    plan = ScoringPlan(suite="onnx-node", rule=rule)
    matrix = score_all(plan, select(plan), lambda _: None)

    assert len(matrix.rows) == len(suite("onnx-node").entries)
    assert 35 < matrix.total.percent < most
