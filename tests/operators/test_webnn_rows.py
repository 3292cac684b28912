"""WebNN's rows: names, the order of gates, biases of their own, and models that hold a node."""

import numpy as np
import onnx
import pytest
from support.valid_nodes import valid_node

import rnncli
from rnncli.errors import InvalidRequest
from rnncli.models.single_node import single_node_model
from rnncli.operators import OPERATORS, evaluate, operator_for, operator_named

WEBNN = [name for name, row in OPERATORS.items() if row.dialect == "WebNN"]
ROWS = ("weight", "recurrentWeight", "bias", "recurrentBias")
# The default layout of each, the other one, and where its gates stand in the default one.
LAYOUTS = [("gru", "zrn", "rzn", [1, 0, 2]), ("lstm", "iofg", "ifgo", [0, 2, 3, 1])]


def in_other_order(inputs, order):
    """Return inputs whose weights and biases have their gates in another order."""

    def moved(values):
        blocks = np.split(values, len(order), axis=1)
        return np.concatenate([blocks[k] for k in order], axis=1)

    return {name: moved(values) if name in ROWS else values for name, values in inputs.items()}


def test_a_name_without_a_version_has_its_domain():
    """So that `GRU-14` and `webnn.gru` cannot be taken for each other in files and ids."""
    assert WEBNN == ["webnn.gru", "webnn.gruCell", "webnn.lstm", "webnn.lstmCell"]
    assert [OPERATORS[name].slug for name in WEBNN] == [
        name.lower().replace(".", "_") for name in WEBNN
    ]
    slugs = [row.slug for row in OPERATORS.values()]
    assert len(slugs) == len(set(slugs))


@pytest.mark.parametrize("name", ["gru", "webnn.gru-1", "webnn.GRU", "webnn.gruCel"])
def test_near_names_are_answered_with_the_name(name):
    """A type alone, a version, another case, a slip."""
    with pytest.raises(InvalidRequest, match=r"webnn\.gru"):
        operator_named(name)


def test_a_model_finds_them_by_domain():
    """At any version of the domain; ONNX's are other operators."""
    assert operator_for("webnn", "gru", 1) is OPERATORS["webnn.gru"]
    assert operator_for("webnn", "lstmCell", 7) is OPERATORS["webnn.lstmCell"]
    assert operator_for("", "gru", 14) is None
    assert operator_for("webnn", "GRU", 14) is None


@pytest.mark.parametrize(("kind", "default", "other", "order"), LAYOUTS)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_layout_orders_the_gates_of_weights_and_biases(kind, default, other, order, direction):
    """And of nothing else: peephole weights stay where they are."""
    attributes, inputs = valid_node(f"webnn.{kind}", direction=direction)
    wanted = evaluate(f"webnn.{kind}", inputs, attributes=attributes)
    spelled = evaluate(f"webnn.{kind}", inputs, attributes={**attributes, "layout": default})
    moved = evaluate(
        f"webnn.{kind}", in_other_order(inputs, order), attributes={**attributes, "layout": other}
    )

    for name, values in wanted.items():
        assert np.array_equal(values, spelled[name])
        assert np.array_equal(values, moved[name])


@pytest.mark.parametrize("operator", WEBNN)
def test_each_bias_may_stand_alone(operator):
    """The one that is absent counts as zeros."""
    attributes, inputs = valid_node(operator)
    for absent in ("bias", "recurrentBias"):
        zeros = {**inputs, absent: np.zeros_like(inputs[absent])}
        without = {name: values for name, values in inputs.items() if name != absent}
        found, wanted = (
            evaluate(operator, given, attributes=attributes) for given in (without, zeros)
        )
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("operator", ["webnn.gru", "webnn.gruCell"])
def test_the_reset_gate_comes_after_the_product_by_default(operator):
    """As in resetAfter's default, and unlike ONNX."""
    attributes, inputs = valid_node(operator)
    default, after, before = (
        evaluate(operator, inputs, attributes={**attributes, **more})["outputHidden"]
        for more in ({}, {"resetAfter": True}, {"resetAfter": False})
    )

    assert np.array_equal(default, after)
    assert not np.array_equal(default, before)


@pytest.mark.parametrize("operator", WEBNN)
def test_a_cell_is_one_step_of_its_sequence(operator):
    """The same numbers, with axes of length 1."""
    cell = operator if operator.endswith("Cell") else f"{operator}Cell"
    attributes, inputs = valid_node(cell)
    given = {
        {
            "hiddenState": "initialHiddenState",
            "cellState": "initialCellState",
        }.get(name, name): values[None]
        for name, values in inputs.items()
    }
    whole = evaluate(cell.removesuffix("Cell"), given, attributes={**attributes, "steps": 1})

    for name, values in evaluate(cell, inputs, attributes=attributes).items():
        assert np.array_equal(values, whole[name][0])


@pytest.mark.parametrize("operator", WEBNN)
def test_a_model_of_one_node_computes_the_same(operator, tmp_path):
    """Truth values are stored as integers; the node is of the domain webnn, version 1."""
    row = OPERATORS[operator]
    attributes, inputs = valid_node(operator)
    wanted = evaluate(operator, inputs, attributes=attributes)
    model = single_node_model(row, attributes, inputs, wanted)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)

    found = rnncli.prepare(path).run(inputs)

    assert [(o.domain, o.version) for o in model.opset_import] == [("webnn", 1)]
    assert all(np.array_equal(found[name], values) for name, values in wanted.items())
