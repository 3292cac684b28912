"""Finding the row of a name, and of a node in a model."""

import onnx
import pytest
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.operators import OPERATORS, operator_for, operator_named

NEWEST = onnx.defs.onnx_opset_version()


@every("name", OPERATORS)
def test_rows_are_found_by_their_name(name):
    """And print as it."""
    assert str(operator_named(name)) == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("LTSM-14", "did you mean 'LSTM-14'?"),
        ("lstm-14", "did you mean 'LSTM-14'?"),
        ("LSTM-15", "there are LSTM-1, LSTM-7, LSTM-14, LSTM-22; opset 15 uses LSTM-14"),
        ("GRU-2", "opset 2 uses GRU-1"),
        ("LSTM", "there are LSTM-1, LSTM-7, LSTM-14, LSTM-22"),
        ("lstm", "unknown operator 'lstm': there are LSTM-1, LSTM-7, LSTM-14, LSTM-22"),
        ("rnnsequence", "unknown operator 'rnnsequence': there are RNNSequence-5"),
        ("LSTM-0", "there are LSTM-1"),
        ("LSTM--14", "there are LSTM-1"),
        ("LSTM-" + "9" * 5000, "there are LSTM-1"),
        ("RNNSequence-4", "there are RNNSequence-5"),
        ("Conv-1", "unknown operator 'Conv-1'"),
        ("", "unknown operator ''"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(name, hint):
    """The sentence says what there is, and which row serves an opset in between."""
    with pytest.raises(InvalidRequest) as caught:
        operator_named(name)

    assert hint in str(caught.value)


@every("opset", range(1, NEWEST + 1))
@every("op_type", ["RNN", "GRU", "LSTM"])
@every("domain", ["", "ai.onnx"])
def test_every_opset_is_served_as_onnx_serves_it(domain, op_type, opset):
    """The row is the version ONNX itself picks."""
    row = operator_for(domain, op_type, opset)

    assert row is not None
    assert row.version == onnx.defs.get_schema(op_type, opset).since_version


@pytest.mark.parametrize(
    ("domain", "op_type", "opset"),
    [
        ("", "Conv", 14),
        ("", "lstm", 14),
        ("", "LSTM", 0),
        ("", "RNNSequence", 14),
        ("com.microsoft", "LSTM", 14),
        ("org.openvinotoolkit", "LSTM", 14),
        ("org.openvinotoolkit", "RNNSequence", 4),
    ],
)
def test_other_nodes_have_no_row(domain, op_type, opset):
    """Other operators, other domains, opsets before the first version."""
    assert operator_for(domain, op_type, opset) is None


def test_openvino_rows_serve_later_opsets():
    """RNNSequence-5 is that of opset 5 and later."""
    assert operator_for("org.openvinotoolkit", "RNNSequence", 16) is OPERATORS["RNNSequence-5"]
