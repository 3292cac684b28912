"""What ONNX Runtime's optimiser writes is evaluated as ONNX Runtime does."""

import itertools

import numpy as np
import onnxruntime
import pytest
from support.real_models import PATHS, recorded
from support.tables import every

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.loading import load_model
from rnncli.models.sessions import evaluate_model

CONTRIB = {"domain": "com.microsoft"}
FUSED = {
    "": {},
    "Relu": {},
    "Sigmoid": {},
    "Tanh": {},
    "LeakyRelu": {"activation_params": [0.1]},
    "Clip": {"activation_params": [-0.5, 0.5]},
    "HardSigmoid": {"activation_params": [0.2, 0.5]},
}
FLAGS = ("transA", "transB", "transBatchA", "transBatchB")


@every("activation", FUSED)
def test_convolutions(agrees, normal, activation):
    """With and without biases, and a sum."""
    more = {"activation": activation, **FUSED[activation]} if activation else {}
    agrees("FusedConv", 17, normal(2, 3, 8), normal(4, 3, 3), pads=[1, 1], **more, **CONTRIB)
    inputs = normal(2, 3, 8, 5), normal(4, 3, 3, 3), normal(4), normal(2, 4, 6, 3)
    agrees("FusedConv", 17, *inputs, **more, **CONTRIB)


@every("flags", list(itertools.product([0, 1], repeat=4)))
def test_products(agrees, normal, flags):
    """Transposed in any way, and scaled."""
    given = dict(zip(FLAGS, flags, strict=True))
    agrees("FusedMatMul", 17, normal(3, 3, 3, 3), normal(3, 3, 3, 3), **given, **CONTRIB)
    agrees("FusedMatMul", 17, normal(4, 4), normal(4, 4), alpha=0.3, **CONTRIB)


@every("activation", ["Relu", "Sigmoid", "Tanh", "LeakyRelu"])
def test_products_and_sums(agrees, normal, activation):
    """As Gemm has them."""
    more = {"activation_alpha": 0.2} if activation == "LeakyRelu" else {}
    inputs = normal(3, 4), normal(5, 4), normal(5)
    more |= {"transB": 1, "alpha": 0.5, "activation": activation}
    agrees("FusedGemm", 17, *inputs, **more, **CONTRIB)


@pytest.mark.parametrize(
    ("node", "kind", "sentence"),
    [
        ("FusedMatMul <more = 1> (x, x)", InvalidRequest, "Unrecognized attribute: more"),
        ("FusedMatMul (x, x, x)", InvalidRequest, "FusedMatMul|MatMul"),
        ('FusedGemm <activation = "Mish"> (x, x)', Unsupported, "activation Mish is not supported"),
        ("QuickGelu (x)", Unsupported, "--host onnxruntime evaluates those it has"),
    ],
)
def test_what_is_not_known_is_refused(parse, node, kind, sentence):
    """An attribute, an input, an activation; another operator with the way out."""
    text = f"g (float[2,2] x) => (float[2,2] y) {{ y = com.microsoft.{node} }}"
    with pytest.raises(kind, match=sentence):
        evaluate_model(parse(text, more=', "com.microsoft": 1'), {"x": np.ones((2, 2), np.float32)})


@pytest.mark.parametrize("level", ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED"])
@pytest.mark.parametrize("name", PATHS)
def test_models_that_onnx_runtime_saved_run(tmp_path, name, level):
    """With the outputs of the models that they were."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(PATHS[name]), options, providers=["CPUExecutionProvider"])
    inputs, wanted = recorded(PATHS[name])
    got = evaluate_model(load_model(tmp_path / "saved.onnx"), inputs)

    for output, values in wanted.items():
        np.testing.assert_allclose(got[output], values, rtol=1e-4, atol=2.5e-5)
