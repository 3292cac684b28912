"""Models that `quantize_dynamic` makes of real ones run without an option."""

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic
from support.quantised_lstm import session
from support.real_models import PATHS, recorded

from rnncli.errors import RnncliWarning
from rnncli.models.evaluator import outputs, prepare
from rnncli.models.loading import load_model
from rnncli.models.node_listing import recurrent_nodes, unevaluated_nodes

NAMES = [name for name in ("lstm_packed_bi_ts", "tf_lstm_hardsig_op13", "model_1") if name in PATHS]


@pytest.mark.parametrize(
    "settings",
    [{}, {"per_channel": True}, {"weight_type": QuantType.QUInt8}],
    ids=["signed", "per channel", "unsigned"],
)
@pytest.mark.parametrize("name", NAMES)
def test_a_quantised_model_agrees_with_onnxruntime(tmp_path, name, settings):
    """On one thread, by far less than a level that is rounded another way would change.

    With weights of 7 bits, whose products ONNX Runtime adds exactly on every processor.
    """
    path = tmp_path / "int8.onnx"
    quantize_dynamic(PATHS[name], path, reduce_range=True, **settings)
    inputs, _ = recorded(PATHS[name])
    wanted = session(path).run(None, inputs)

    found = outputs(prepare(load_model(path)), inputs)

    assert "DynamicQuantizeLSTM" in {node.op_type for node in onnx.load(path).graph.node}
    for own, theirs in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-4)


def test_quantised_nodes_are_listed_as_evaluated(tmp_path):
    """With the operator's names and shapes, W transposed against ONNX's."""
    quantize_dynamic(PATHS["lstm_packed_bi_ts"], path := tmp_path / "int8.onnx")
    model = load_model(path)

    (node,) = recurrent_nodes(model)

    assert node.operator.name == "DynamicQuantizeLSTM-1"
    assert (node.inputs["W"], node.inputs["W_scale"]) == ((2, 10, 80), (2,))
    assert [*unevaluated_nodes(model)] == []


def test_nodes_that_quantize_dynamic_leaves_out_of_order_run(tmp_path):
    """Silero's, whose branches read what quantised nodes at the end of the file produce."""
    path = tmp_path / "int8.onnx"
    quantize_dynamic(PATHS["silero_vad_16k_op15"], path, reduce_range=True)
    inputs, _ = recorded(PATHS["silero_vad_16k_op15"])

    with pytest.warns(RnncliWarning, match="which a later node produces"):
        model = load_model(path)
    found = outputs(prepare(model), inputs)

    for own, theirs in zip(found.values(), session(path).run(None, inputs), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-5)
