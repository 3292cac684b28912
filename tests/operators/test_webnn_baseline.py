"""WebNN's operators against the working group's own implementation of them, in double precision."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from support import shipped
from support.examples import examples
from support.nodes import Limits, nodes
from support.webnn_baseline import Baseline, RefusedError, checkout

from rnncli.operators import OPERATORS, evaluate

# Relative to the value, and to the largest one of the tensor, from 1 up. The worst of 400 examples
# reaches a two-hundredth of this.
RELATIVE, ABSOLUTE = 1e-12, 1e-13
CELL_RANK = 2  # of a cell's input
WEBNN = [name for name, row in OPERATORS.items() if row.dialect == "WebNN"]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    """The implementation, started once."""
    checkout()
    with Baseline(tmp_path_factory.mktemp("baseline")) as running:
        yield running


def is_taken(inputs):
    """Whether it takes a node: its sequences drop the dimensions of size 1, which cells refuse."""
    sizes = {*inputs["input"].shape[1:], inputs["recurrentWeight"].shape[-1]}
    return inputs["input"].ndim == CELL_RANK or 1 not in sizes


def agrees(baseline, operator, inputs, attributes, outputs):
    """Compare the outputs of a node, whose operator gets the type that WebNN lacks.

    Return False if a tanh of theirs overflowed, which makes it NaN.
    """
    row = replace(OPERATORS[operator], dtypes=("float64",))
    wide = {name: values.astype(np.float64) for name, values in inputs.items()}
    ours = evaluate(row, wide, attributes=attributes, outputs=outputs)
    theirs = baseline(operator, wide, attributes, [*ours])
    if any(np.isnan(values).any() for values in theirs.values()):
        assert "tanh" in attributes.get("activations", ["tanh"])
        return False
    for name, values in ours.items():
        assert values.shape == theirs[name].shape
        largest = max(1.0, np.abs(values).max(initial=0.0))
        tolerance = RELATIVE * np.abs(values) + ABSOLUTE * largest
        assert (np.abs(values - theirs[name]) <= tolerance).all(), name
    return True


@pytest.mark.parametrize("operator", WEBNN)
def test_any_node_agrees(operator, baseline):
    """Every option and every optional input, given or not."""

    @examples(200)
    @given(nodes(operators=(operator,), dtypes=("float32",), limits=Limits(readings={})))
    def check(node):
        assume(is_taken(node.inputs))
        assume(agrees(baseline, operator, node.inputs, node.attributes, node.outputs))

    check()


@pytest.mark.parametrize("operator", WEBNN)
def test_every_case_of_the_suite_agrees(operator, baseline):
    """As they are, but in double precision."""
    calls = [
        call
        for vector in shipped.vectors("webnn")
        for call in vector.calls
        if call.record.operator == operator and call.record.expect == "result"
    ]
    compared = [
        agrees(baseline, operator, call.inputs, call.attributes, call.record.outputs)
        for call in calls
        if is_taken(call.inputs)
    ]

    assert sum(compared) > len(calls) / 2


@pytest.mark.parametrize("dimension", ["batch_size", "input_size", "hidden_size"])
@pytest.mark.parametrize("operator", ["webnn.gru", "webnn.lstm"])
def test_a_size_of_one_is_left_out_because_it_is_refused(operator, dimension, baseline):
    """Although the specification has no such rule."""
    sizes = {"seq_length": 2, "batch_size": 2, "input_size": 3, "hidden_size": 2, dimension: 1}
    dims = {**sizes, "num_directions": 1}
    inputs = {
        row.name: np.ones([dim.multiple * dims[dim.symbol] for dim in row.shape()])
        for row in OPERATORS[operator].inputs
        if not row.optional
    }
    attributes = {"steps": 2, "hiddenSize": sizes["hidden_size"]}

    assert not is_taken(inputs)
    with pytest.raises(RefusedError, match="is not a 2-D tensor"):
        baseline(operator, inputs, attributes, ["outputHidden"])


def test_a_large_tanh_is_left_out_because_it_is_nan(baseline):
    """Theirs divides one e^2x by another."""
    inputs = {
        "input": np.full((1, 1), 400.0),
        "weight": np.array([[0.0], [0.0], [1.0]]),
        "recurrentWeight": np.zeros((3, 1)),
        "hiddenState": np.zeros((1, 1)),
    }

    assert not agrees(baseline, "webnn.gruCell", inputs, {"hiddenSize": 1}, ["outputHidden"])
