"""From a node to the canonical recurrence and back, on data small enough to check by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.tables import every
from support.valid_nodes import valid_node

from rnncli.errors import InvalidOperator, RnncliWarning
from rnncli.operators import OPERATORS, evaluate
from rnncli.operators.node import Node, checked
from rnncli.recurrence.recurrence import Direction, Result


def bound(operator, readings=None, outputs=("Y",), direction="reverse", **changes):
    """Return the recurrence of the valid node, with some attributes and inputs changed."""
    row = OPERATORS[operator]
    attributes, inputs = valid_node(operator, direction=direction)
    for name, value in changes.items():
        target = inputs if name in [tensor.name for tensor in row.inputs] else attributes
        target[name] = value
    inputs = {name: value for name, value in inputs.items() if value is not None}
    return Node(row, attributes, outputs, {**row.readings, **(readings or {})}).recurrence(
        inputs
    ), inputs


@every("operator", [name for name, row in OPERATORS.items() if row.cell.projects])
def test_canonical_shapes(operator):
    """Whatever the dialect and its layout: X [T, N, I], W [D, G, H, I], biases [D, G, H], ..."""
    recurrence, _ = bound(operator, direction="bidirectional")
    G = len(recurrence.cell.gates)
    T, D = (4, 2) if OPERATORS[operator].has("seq_length") else (1, 1)

    assert recurrence.X.shape == (T, 3, 2)
    assert recurrence.W.shape == (D, G, 5, 2)
    assert recurrence.R.shape == (D, G, 5, 5)
    assert recurrence.Wb.shape == (D, G, 5)
    if recurrence.lengths is not None:
        assert recurrence.lengths.tolist() == [4, 0, 2]
        assert recurrence.lengths.dtype == np.int64
    assert (recurrence.lengths is None) == (not OPERATORS[operator].lengths_dtypes)
    assert recurrence.directions == (Direction.FORWARD, Direction.REVERSE)[:D]
    assert [state.shape for state in recurrence.initial] == [(D, 3, 5)] * recurrence.cell.states
    assert recurrence.P is None or recurrence.P.shape == (D, 3, 5)
    assert recurrence.clip == math.inf


@pytest.mark.parametrize("operator", ["RNN-14", "GRU-14", "LSTM-14"])
def test_gates_are_cut_in_the_specifications_order(operator):
    """Gate k is rows kH to (k+1)H of W; B holds every Wb and then every Rb."""
    recurrence, inputs = bound(operator)

    for k in range(len(recurrence.cell.gates)):
        rows = slice(5 * k, 5 * (k + 1))
        assert np.array_equal(recurrence.W[0, k], inputs["W"][0, rows])
        assert np.array_equal(recurrence.R[0, k], inputs["R"][0, rows])
        assert np.array_equal(recurrence.Wb[0, k], inputs["B"][0, rows])
        later = slice(rows.start + inputs["B"].shape[1] // 2, rows.stop + inputs["B"].shape[1] // 2)
        assert np.array_equal(recurrence.Rb[0, k], inputs["B"][0, later])


@pytest.mark.parametrize("operator", ["RNNSequence-5", "GRUSequence-5", "GRUCell-3"])
def test_a_summed_bias_is_the_input_bias(operator):
    """OpenVINO's B is the sum of both."""
    recurrence, inputs = bound(operator)

    assert np.array_equal(recurrence.Wb.ravel(), inputs["B"].ravel())
    assert recurrence.Rb is None


@pytest.mark.parametrize("operator", ["GRUSequence-5", "GRUCell-3"])
def test_a_gru_that_resets_later_holds_two_biases_of_h(operator):
    """Z and r are sums; then comes the input's, then the recurrent one."""
    shape = (20,) if operator == "GRUCell-3" else (1, 20)
    B = np.arange(20, dtype=np.float32).reshape(shape)
    recurrence, _ = bound(operator, B=B, linear_before_reset=1)

    assert np.array_equal(recurrence.Wb.ravel(), np.arange(15))
    assert np.array_equal(recurrence.Rb.ravel(), [*[0] * 10, *range(15, 20)])


@pytest.mark.parametrize("operator", ["LSTMSequence-5", "LSTMCell-4"])
def test_gates_come_in_the_order_of_the_cell(operator):
    """OpenVINO's f, i, c, o become i, o, f, c."""
    recurrence, inputs = bound(operator)
    W = inputs["W"].reshape(4, 5, 2)

    assert np.array_equal(recurrence.W[0], W[[1, 3, 0, 2]])
    assert np.array_equal(recurrence.Wb.reshape(4, 5), inputs["B"].reshape(4, 5)[[1, 3, 0, 2]])


def test_a_cell_is_a_step_of_one_direction():
    """The axes that its tensors lack are added as views, and taken away from its outputs."""
    recurrence, inputs = bound("LSTMCell-4")
    result = Result(None, tuple(np.full((1, 3, 5), k) for k in range(2)))
    attributes = {"hidden_size": 5}

    assert recurrence.X.shape == (1, 3, 2)
    assert recurrence.W.shape == (1, 4, 5, 2)
    assert [state.shape for state in recurrence.initial] == [(1, 3, 5)] * 2
    assert np.shares_memory(recurrence.X, inputs["X"])
    found = Node(OPERATORS["LSTMCell-4"], attributes).outputs_of(result)
    assert {name: (v.shape, v.min()) for name, v in found.items()} == {
        "Ho": ((3, 5), 0),
        "Co": ((3, 5), 1),
    }


def test_batch_first_is_a_view():
    """Layout 1 and OpenVINO: axes are renamed, nothing is copied."""
    X = np.zeros((3, 4, 2), np.float32)
    state = np.zeros((3, 1, 5), np.float32)
    recurrence, inputs = bound("GRU-14", layout=1, X=X, initial_h=state)

    assert recurrence.X.shape == (4, 3, 2)
    assert np.shares_memory(recurrence.X, inputs["X"])
    assert recurrence.initial[0].shape == (1, 3, 5)


def test_the_literal_reading_transposes_R():
    """The backends compute Ht-1*(R^T): as written in opset 1 that is with R^T for R."""
    as_corrected, inputs = bound("RNN-1")
    literal, _ = bound("RNN-1", {"recurrence": "literal"})

    assert np.array_equal(as_corrected.R[0, 0], inputs["R"][0])
    assert np.array_equal(literal.R[0, 0], inputs["R"][0].T)


@pytest.mark.parametrize(
    ("lengths", "wanted"), [(None, None), ([4, 4, 4], None), ([4, 4, 3], [4, 4, 3])]
)
def test_full_lengths_are_no_lengths(lengths, wanted):
    """All sequences as long as X is the same as no lengths."""
    given = None if lengths is None else np.array(lengths, np.int32)
    recurrence, _ = bound("RNN-14", sequence_lens=given)

    assert (None if recurrence.lengths is None else recurrence.lengths.tolist()) == wanted


def test_absent_inputs_stay_absent():
    """No zeros are made up for them."""
    recurrence, _ = bound("LSTM-14", B=None, P=None, initial_h=None, sequence_lens=None)

    assert (recurrence.Wb, recurrence.Rb, recurrence.P, recurrence.lengths) == (None,) * 4
    assert recurrence.initial[0] is None
    assert recurrence.initial[1] is not None


@pytest.mark.parametrize(("outputs", "wanted"), [(["Y"], True), (["Y_h"], False), ([], False)])
def test_y_is_wanted_when_named(outputs, wanted):
    """A backend need not keep every step when only the last is asked for."""
    assert bound("RNN-14", outputs=outputs)[0].wants_Y is wanted


@pytest.mark.parametrize(
    ("operator", "layout", "wanted"),
    [
        ("LSTM-14", 0, {"Y": (4, 2, 3, 5), "Y_h": (2, 3, 5), "Y_c": (2, 3, 5)}),
        ("LSTM-14", 1, {"Y": (3, 4, 2, 5), "Y_h": (3, 2, 5), "Y_c": (3, 2, 5)}),
        ("GRU-7", None, {"Y": (4, 2, 3, 5), "Y_h": (2, 3, 5)}),
        ("RNNSequence-5", None, {"Y": (3, 2, 4, 5), "Ho": (3, 2, 5)}),
    ],
)
def test_outputs_come_back_in_the_operators_layout(operator, layout, wanted):
    """[T, D, N, H] and [D, N, H] become what the specification says."""
    states = OPERATORS[operator].cell.states
    result = Result(np.zeros((4, 2, 3, 5)), tuple(np.full((2, 3, 5), k) for k in range(states)))
    attributes = {"direction": "bidirectional", "hidden_size": 5}
    attributes |= {} if layout is None else {"layout": layout}

    found = Node(OPERATORS[operator], attributes, list(wanted)).outputs_of(result)

    assert {name: values.shape for name, values in found.items()} == wanted
    assert states == 1 or (found["Y_h"].max(), found["Y_c"].min()) == (0, 1)


def gru(*, outputs=("Y",), readings=None, direction="forward", **changes):
    """Return the valid GRU, some attributes changed, and its inputs."""
    row = OPERATORS["GRU-14"]
    attributes, inputs = valid_node("GRU-14", direction=direction)
    attributes |= changes
    return checked(row, attributes, inputs, outputs, {**row.readings, **(readings or {})}), inputs


def test_nodes_alike_are_resolved_once():
    """By attributes, outputs and readings that are equal."""
    assert gru()[0] is gru()[0]
    others = [
        gru(),
        gru(outputs=["Y_h"]),
        gru(clip=3.0),
        gru(direction="reverse"),
        *(gru(readings={"zero-length": choice}) for choice in ("zero", "initial")),
    ]
    assert len({id(node) for node, _ in others}) == len(others) - 1  # one choice is the default


def test_each_node_is_warned_of():
    """Also of one that is like another."""
    for _ in range(2):
        node, inputs = gru(activation_alpha=[0.5])
        with pytest.warns(RnncliWarning, match="used by no activation"):
            node.recurrence(inputs)


@pytest.mark.parametrize("given", [2, -1, 7])
def test_another_input_forget_than_0_and_1_is_1_with_a_warning(given):
    """The text says "if 1"."""
    X, W, R = (np.full(shape, 0.5, "f") for shape in ((3, 1, 2), (1, 8, 2), (1, 8, 2)))
    inputs = {"X": X, "W": W, "R": R}
    wanted = evaluate("LSTM-14", inputs, attributes={"hidden_size": 2, "input_forget": 1})
    with pytest.warns(RnncliWarning, match=f"input_forget {given} is taken as 1"):
        found = evaluate("LSTM-14", inputs, attributes={"hidden_size": 2, "input_forget": given})

    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_what_a_node_accepts_is_like_what_it_took():
    """Other values of the same dtypes and shapes; lengths are looked at each time."""
    node, inputs = gru()
    longer = {**inputs, "sequence_lens": inputs["sequence_lens"] + 1}

    assert node.accepts({**inputs, "X": 2 * inputs["X"]})
    assert not node.accepts(longer)
    assert not node.accepts({**inputs, "X": inputs["X"].astype(np.float64)})
    with pytest.raises(InvalidOperator, match="must be between 0 and seq_length"):
        checked(node.operator, node.attributes, longer, node.outputs)


def test_other_readings_of_a_node():
    """One choice is replaced, the others and the node itself stay."""
    node, _ = gru()
    other = node.under({"zero-length": "initial"})

    assert other.readings == {**node.readings, "zero-length": "initial"}
    assert node.readings["zero-length"] == "zero"
    assert other.values == node.values


def test_a_reading_says_which_cell_state_the_output_gate_sees():
    """The new one, unless the operator has the reading and another choice."""
    assert not bound("LSTM-14")[0].options.peephole_previous
    assert not bound("LSTM-14", {"peephole-o": "new"})[0].options.peephole_previous
    assert bound("LSTM-14", {"peephole-o": "previous"})[0].options.peephole_previous


def test_onnx_has_no_reading_of_the_output_gates_peephole():
    """Its text says Ct."""
    attributes, inputs = valid_node("LSTM-14")

    with pytest.raises(InvalidOperator, match="peephole-o"):
        checked(OPERATORS["LSTM-14"], attributes, inputs, None, {"peephole-o": "previous"})


def test_axes_of_the_recurrence_and_back():
    """Y [N, T, D, H] is [T, D, N, H] there; both are views."""
    node = Node(OPERATORS["GRU-14"], {"hidden_size": 5, "layout": 1})
    Y = np.zeros((3, 4, 1, 5))
    canonical = node.canonical("Y", Y)

    assert canonical.shape == (4, 1, 3, 5)
    assert node.in_layout("Y", canonical).shape == Y.shape
    assert np.shares_memory(node.in_layout("Y", canonical), Y)
