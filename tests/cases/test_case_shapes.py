"""Claims about shapes from sizes."""

import pytest
from support.tables import every

from rnncli.cases.case import BYTES_PER_ELEMENT, frame_of, memory, size_names
from rnncli.operators import OPERATORS

SIZES = {"seq_length": 7, "batch_size": 2, "input_size": 3, "hidden_size": 5}


def shapes(operator, **attributes):
    """Every tensor's shape, by name."""
    row = OPERATORS[operator]
    frame = frame_of(row, SIZES, attributes)
    return {tensor.name: frame.shape(tensor) for tensor in (*row.inputs, *row.outputs)}


def test_shapes_are_the_specifications():
    """LSTM-14 with both directions and batch first, by hand."""
    assert shapes("LSTM-14", direction="bidirectional", layout=1) == {
        "X": (2, 7, 3),
        "W": (2, 20, 3),
        "R": (2, 20, 5),
        "B": (2, 40),
        "sequence_lens": (2,),
        "initial_h": (2, 2, 5),
        "initial_c": (2, 2, 5),
        "P": (2, 15),
        "Y": (2, 7, 2, 5),
        "Y_h": (2, 2, 5),
        "Y_c": (2, 2, 5),
    }


def test_openvino_is_batch_first():
    """RNNSequence-5 in one direction, by hand."""
    assert shapes("RNNSequence-5", direction="reverse") == {
        "X": (2, 7, 3),
        "H": (2, 1, 5),
        "sequence_lengths": (2,),
        "W": (1, 5, 3),
        "R": (1, 5, 5),
        "B": (1, 5),
        "Y": (2, 1, 7, 5),
        "Ho": (2, 1, 5),
    }


@every("row", [row for row in OPERATORS.values() if row.cell.projects], ids=str)
def test_a_config_gives_four_sizes(row):
    """A cell, which is one step, has no seq_length."""
    lacking = {"seq_length"} if row.type.endswith("Cell") else set()

    assert list(size_names(row)) == [name for name in SIZES if name not in lacking]


def test_a_bias_may_depend_on_an_attribute():
    """OpenVINO's GRU holds four blocks where it resets after the linear transformation."""
    for after, rows in ((0, 15), (1, 20)):
        attributes = {"direction": "forward", "linear_before_reset": after}
        assert shapes("GRUSequence-5", **attributes)["B"] == (1, rows)


@pytest.mark.parametrize(
    "attributes",
    [{"layout": 2}, {"layout": True}, {"layout": [1]}, {"direction": "up"}, {"direction": 1}],
)
def test_without_direction_and_layout_no_shape_is_known(attributes):
    """What cannot be understood is not guessed."""
    assert frame_of(OPERATORS["GRU-14"], SIZES, attributes) is None


def test_layout_is_unknown_to_old_versions():
    """Before opset 14 there is none."""
    assert frame_of(OPERATORS["GRU-7"], SIZES, {"layout": 0}) is None


def test_a_size_of_zero_hides_no_other():
    """A thousand million steps of an empty batch are as many steps."""
    row = OPERATORS["RNN-14"]
    frame = frame_of(row, {**SIZES, "seq_length": 10**9, "batch_size": 0}, {})

    assert frame.needed(row.inputs[:1]) >= 10**9


def test_need_is_counted_without_allocating():
    """Sizes of 2**31 in every direction are just a number."""
    row = OPERATORS["RNN-14"]
    frame = frame_of(row, dict.fromkeys(SIZES, 2**31), {})

    assert frame.needed(row.inputs[:1]) == BYTES_PER_ELEMENT * 2**93 > memory() > 2**28
