"""Claims about models in float64."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from support.real_models import PATHS, recorded

from rnncli.models.evaluator import prepare
from rnncli.models.loading import load_model, model_from
from rnncli.models.model import all_bodies
from rnncli.models.widened_model import widened, widened_model

HEADER = '<ir_version: 8, opset_import: ["" : 17, "pkg" : 1, "com.microsoft" : 1]>\n'


def model_of(text):
    """A model that is given as text."""
    return model_from(onnx.parser.parse_model(HEADER + text))


def wide_outputs(model, inputs, change=None):
    """What the widened model makes of widened inputs."""
    fed = {name: widened(values) for name, values in inputs.items()}
    return prepare(widened_model(model, change)).outputs(fed)


@pytest.mark.parametrize("name", PATHS)
def test_a_real_model_in_float64_is_near_its_recorded_outputs(name):
    """They are of another implementation, in float32; what is made is of 64 bits throughout."""
    inputs, recorded_outputs = recorded(PATHS[name])
    made = wide_outputs(load_model(PATHS[name]), inputs)

    assert made.keys() == recorded_outputs.keys()
    for output, values in made.items():
        assert values.dtype == (np.float64 if recorded_outputs[output].dtype.kind == "f" else bool)
        np.testing.assert_allclose(values, recorded_outputs[output], atol=2.5e-5)


def test_it_is_onnxruntimes_answer_to_the_same_model():
    """Casts, types by default, constants of each form, branches and functions, all in float64."""
    model = model_of(
        """g (float[2, 3] X, bool c) => (float[2, 3] out, float[3] zeros)
        <float[3, 3] W = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}> {
            y = MatMul (X, W)
            half = Cast <to = 10> (y)
            z = Cast <to = 1> (half)
            third = Constant <value_float = 0.333333333> ()
            three = Constant <value_ints = [3]> ()
            zeros = ConstantOfShape (three)
            shifted = Add (z, third)
            out = If (c) <
                then_branch = t () => (a) {
                    tenth = Constant <value = float {0.1}> ()
                    a = pkg.Scaled (shifted, tenth)
                },
                else_branch = e () => (b) { b = Neg (shifted) }
            >
        }
        <domain: "pkg", opset_import: ["" : 17]> Scaled (x, s) => (y) {
            t = Mul (x, s)
            y = Tanh (t)
        }"""
    )
    X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    wide = widened_model(model).proto
    session = onnxruntime.InferenceSession(
        wide.SerializeToString(), providers=["CPUExecutionProvider"]
    )

    for c in (np.array(True), np.array(False)):
        theirs = session.run(None, {"X": X.astype(np.float64), "c": c})
        ours = wide_outputs(model, {"X": X, "c": c})
        for one, other in zip(theirs, ours.values(), strict=True):
            assert one.dtype == other.dtype == np.float64
            np.testing.assert_allclose(one, other, rtol=1e-14)
    assert model.proto.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT


@pytest.mark.parametrize("domain", ["", "com.microsoft."])
def test_what_takes_no_float64_is_cast_for_its_node(domain):
    """QuantizeLinear rounds in float32 as it must; what follows is of 64 bits again."""
    model = model_of(
        """g (float[4] X) => (float[4] out) <float s = {0.1}, uint8 z = {128}> {
            q = DOMAINQuantizeLinear (X, s, z)
            d = DOMAINDequantizeLinear (q, s, z)
            out = Mul (d, X)
        }""".replace("DOMAIN", domain)
    )
    X = np.array([0.05, 0.33, -1, 99], np.float32)
    (out,) = wide_outputs(model, {"X": X}).values()

    level = np.float32(0.1) * np.array([0, 3, -10, 127], np.float32)
    assert out.tolist() == (level.astype(np.float64) * X.astype(np.float64)).tolist()


def test_matrices_alone_are_changed():
    """Scalars and lists may be sizes and scales, which say what is computed."""
    model = model_of(
        """g (float[2] X) => (float[2] out)
        <float[2, 2] W = {1, 2, 3, 4}, float[2] b = {5, 6}, int64[1, 1] n = {7}> {
            y = MatMul (X, W)
            out = Add (y, b)
        }"""
    )
    named = []

    def doubled(name, values):
        named.append(name)
        return values * 2

    (out,) = wide_outputs(model, {"X": np.ones(2, np.float32)}, doubled).values()

    assert (named, out.tolist()) == (["W"], [13, 18])


def test_every_body_is_widened():
    """Of GTCRN and of a model with a loop no float32 is left."""
    for name in ("gtcrn_simple", "loop_gru_script_ts"):
        proto = widened_model(load_model(PATHS[name])).proto
        held = [t for body in all_bodies(proto) for t in getattr(body, "initializer", ())]
        nodes = [node for body in all_bodies(proto) for node in body.node]
        held += [a.t for node in nodes for a in node.attribute if a.HasField("t")]

        assert held
        assert TensorProto.FLOAT not in {tensor.data_type for tensor in held}
