"""Models that ONNX Runtime's quantisers make run without an option."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize, quantize_dynamic
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config
from support.quantised_lstm import session
from support.real_models import PATHS, recorded

from rnncli.errors import RnncliWarning
from rnncli.files.described import jsonable
from rnncli.generating.extraction import Captures, ExtractionPlan, vectors_of
from rnncli.judging.comparing.verdict import RIGHT
from rnncli.judging.judgement import judge
from rnncli.models.evaluator import prepare
from rnncli.models.loading import load_model, model_from
from rnncli.models.node_listing import recurrent_nodes, unevaluated_nodes
from rnncli.packs.vector import attempt_of

UNITS = ("lstm_packed_bi_ts", "gtcrn_simple")
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

    found = prepare(load_model(path)).outputs(inputs)

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
    found = prepare(model).outputs(inputs)

    for own, theirs in zip(found.values(), session(path).run(None, inputs), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-5)


class OneReading(CalibrationDataReader):
    """Calibration on one input."""

    def __init__(self, inputs):
        self._left = [inputs]

    def get_next(self):
        """Return the input, then None."""
        return self._left.pop() if self._left else None


def recurrent_layer(kind, gates):
    """A float model of opset 17: one layer with constant weights, and its input."""
    draw = np.random.default_rng(3).standard_normal
    shapes = {"W": (1, gates * 4, 3), "R": (1, gates * 4, 4), "B": (1, gates * 8)}
    tensors = [numpy_helper.from_array(draw(s).astype("f") / 2, n) for n, s in shapes.items()]
    node = helper.make_node(kind, ["X", "W", "R", "B"], ["Y", "Y_h"], hidden_size=4)
    shown = [("X", [5, 2, 3]), ("Y", [5, 1, 2, 4]), ("Y_h", [1, 2, 4])]
    X, *made = (helper.make_tensor_value_info(name, 1, shape) for name, shape in shown)
    graph = helper.make_graph([node], "layer", [X], made, tensors)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), draw((5, 2, 3)).astype("f")


@pytest.mark.parametrize("activation", [QuantType.QUInt8, QuantType.QUInt16, QuantType.QInt16])
@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_unit_of_the_qnn_quantiser_agrees_with_onnxruntime(tmp_path, kind, gates, activation):
    """On 8 bits to the level, on 16 within one: float32 errors cross ties here and there."""
    model, X = recurrent_layer(kind, gates)
    onnx.save(model, tmp_path / "float.onnx")
    path = tmp_path / "unit.onnx"
    config = get_qnn_qdq_config(
        tmp_path / "float.onnx", OneReading({"X": X}), activation_type=activation
    )
    quantize(tmp_path / "float.onnx", path, config)
    domains = {(n.domain, n.op_type) for n in onnx.load(path).graph.node}
    has_16_bits = activation is not QuantType.QUInt8
    assert ("com.microsoft" if has_16_bits else "", "QuantizeLinear") in domains

    found = prepare(load_model(path)).outputs({"X": X})

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    allowed = 2 / 65535 * 1.01 if has_16_bits else 1e-5
    for own, wanted in zip(found.values(), theirs.run(None, {"X": X}), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=0, atol=allowed)


def quantised(name, opset, activation, folder):
    """A real model at an opset, quantised for QNN; its path and inputs."""
    model, (inputs, _) = onnx.load(PATHS[name]), recorded(PATHS[name])
    onnx.save(version_converter.convert_version(model, opset), folder / "float.onnx")
    config = get_qnn_qdq_config(
        folder / "float.onnx", OneReading(dict(inputs)), activation_type=activation
    )
    quantize(folder / "float.onnx", folder / "units.onnx", config)
    return folder / "units.onnx", inputs


@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize("activation", [QuantType.QUInt8, QuantType.QUInt16])
@pytest.mark.parametrize("name", UNITS)
def test_units_of_real_models_are_listed_and_become_cases(tmp_path, name, opset, activation):
    """With the levels that the model holds; the case's model gives the golden levels."""
    path, inputs = quantised(name, opset, activation, tmp_path)
    model = load_model(path)
    nodes = [*recurrent_nodes(model)]
    captures = Captures(model, (), units=True)
    prepare(model, observer=captures.add).outputs(inputs)
    held = {each.name: numpy_helper.to_array(each) for each in model.proto.graph.initializer}

    vectors = [made for made, _ in vectors_of(ExtractionPlan("units"), captures.chosen())]

    assert len(vectors) == len(nodes)
    for node, vector in zip(nodes, vectors, strict=True):
        assert jsonable(vector.record.quantise) == node.unit.written
        assert {*"XWR"} <= {*node.unit}
        assert any(np.array_equal(vector.inputs["W"], each) for each in held.values())
        made = prepare(model_from(onnx.ModelProto.FromString(vector.model))).outputs(vector.fed)
        assert judge(vector, attempt_of(vector, made)).verdict in RIGHT
