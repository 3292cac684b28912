"""Claims about weights of PyTorch, Keras and OpenVINO, asked of them where they are installed."""

import numpy as np
import pytest

from rnncli import evaluate
from rnncli.errors import InvalidRequest
from rnncli.models import weights
from rnncli.running.weight_conversion import read_weights

T, N, I, H = 5, 2, 3, 4  # noqa: E741 -- the specification's letter
X = np.random.default_rng(5).normal(size=(T, N, I)).astype("f")


def evaluated(layers, values):
    """What a stack of nodes computes: [T, N, D*H]."""
    for layer in layers:
        Y = evaluate(f"{layer.cell}-14", {"X": values, **layer.tensors}, **layer.attributes)["Y"]
        values = Y.transpose(0, 2, 1, 3).reshape(T, N, -1)
    return values


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "bidirectional"])
@pytest.mark.parametrize(
    ("name", "more"), [("LSTM", {}), ("GRU", {}), ("RNN", {}), ("RNN", {"nonlinearity": "relu"})]
)
def test_torch_agrees_both_ways(name, more, bidirectional, bias):
    """Two layers: its weights in our nodes, and ours in its layers."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    kwargs = {"num_layers": 2, "bidirectional": bidirectional, "bias": bias, **more}
    theirs = getattr(torch.nn, name)(I, H, **kwargs)
    state = {key: values.numpy() for key, values in theirs.state_dict().items()}
    layers = weights.from_torch(state, name, activation=more.get("nonlinearity", "tanh"))

    with torch.no_grad():
        np.testing.assert_allclose(
            evaluated(layers, X), theirs(torch.from_numpy(X))[0], rtol=0, atol=1e-6
        )
    again = getattr(torch.nn, name)(I, H, **kwargs)
    made = weights.to_torch(layers)
    again.load_state_dict({key: torch.from_numpy(values) for key, values in made.items()})
    for key, values in again.state_dict().items():
        assert np.array_equal(values, state[key])


def test_the_layer_of_a_larger_module_of_torch_is_found():
    """By the keys of its checkpoint."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    rnn = torch.nn.ModuleDict({"lstm": torch.nn.LSTM(I, H, 2, bidirectional=True)})
    whole = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(9, I), "encoder": rnn})
    whole["norm"] = torch.nn.BatchNorm1d(H)
    state = {key: values.numpy() for key, values in whole.state_dict().items()}

    with torch.no_grad():
        expected = rnn["lstm"](torch.from_numpy(X))[0]
    for layers in (weights.from_torch(state), weights.from_torch(state, module="encoder.lstm")):
        np.testing.assert_allclose(evaluated(layers, X), expected, rtol=0, atol=1e-6)


def test_the_layers_of_a_larger_model_of_keras_are_found():
    """By the paths of its variables; an encoder and a decoder are two models."""
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(1)
    cells = keras.layers
    encoder = [cells.Bidirectional(cells.GRU(H, return_sequences=True)), cells.LSTM(H)]
    encoder = keras.Sequential([keras.Input((T, I)), *encoder], name="encoder")
    decoder = keras.Sequential([cells.RepeatVector(T), cells.SimpleRNN(H)], name="decoder")
    whole = keras.Sequential([encoder, decoder, cells.Dense(2)])
    whole.build((None, T, I))
    variables = {v.path: v.numpy() for v in whole.weights}
    expected = keras.ops.convert_to_numpy(encoder(X.swapaxes(0, 1)))

    with pytest.raises(InvalidRequest, match="2 recurrent modules"):
        weights.from_keras(variables)
    (module,) = {path[: path.index("encoder") + 7] for path in variables if "encoder" in path}
    found = evaluated(weights.from_keras(variables, module=module), X)
    np.testing.assert_allclose(found[-1], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "bidirectional"])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("LSTM", {}),
        ("GRU", {"reset_after": True}),
        ("GRU", {"reset_after": False}),
        ("SimpleRNN", {}),
    ],
)
def test_keras_agrees_both_ways(name, more, bidirectional, bias, tmp_path):
    """Two layers with biases that are not 0: its weights in our nodes, and ours in its layers."""
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(1)

    def model():
        layers = [
            getattr(keras.layers, name)(
                H, return_sequences=True, use_bias=bias, bias_initializer="random_normal", **more
            )
            for _ in range(2)
        ]
        if bidirectional:
            layers = [keras.layers.Bidirectional(layer) for layer in layers]
        return keras.Sequential([keras.Input((T, I)), *layers])

    theirs = model()
    variables = {v.path: v.numpy() for v in theirs.weights}
    if more and not bias:  # nothing tells
        with pytest.raises(InvalidRequest, match="--reset-after"):
            weights.from_keras(variables)
    layers = weights.from_keras(variables, **({} if bias else more))
    expected = keras.ops.convert_to_numpy(theirs(X.swapaxes(0, 1))).swapaxes(0, 1)

    np.testing.assert_allclose(evaluated(layers, X), expected, rtol=0, atol=1e-6)
    theirs.save(tmp_path / "m.keras")
    read, told = read_weights(tmp_path / "m.keras", "keras")
    kept = evaluated(weights.from_keras(read, **told), X)
    np.testing.assert_allclose(kept, expected, rtol=0, atol=1e-6)
    theirs.save_weights(tmp_path / "m.weights.h5")
    read, _ = read_weights(tmp_path / "m.weights.h5", "keras")
    kept = evaluated(weights.from_keras(read, **({} if bias else more)), X)
    np.testing.assert_allclose(kept, expected, rtol=0, atol=1e-6)
    again = model()
    again.set_weights([*weights.to_keras(layers).values()])
    for ours, given in zip(again.get_weights(), theirs.get_weights(), strict=True):
        assert np.array_equal(ours, given)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("cell", "reset"), [("LSTM", 0), ("GRU", 0), ("GRU", 1), ("RNN", 0)])
def test_openvino_agrees(cell, reset, direction):
    """Its sequence operators, fed with what we make of ONNX's weights that have two biases."""
    openvino = pytest.importorskip("openvino")
    from openvino import opset13 as ops

    from rnncli.running.ir_execution import openvino_core

    D, G = 1 + (direction == "bidirectional"), {"LSTM": 4, "GRU": 3, "RNN": 1}[cell]
    generator = np.random.default_rng(9)
    W, R, B = (
        generator.uniform(-1, 1, (D, *shape)).astype("f")
        for shape in ((G * H, I), (G * H, H), (2 * G * H,))
    )
    layer = weights.RecurrentLayer(W=W, R=R, B=B, direction=direction, linear_before_reset=reset)
    given = weights.to_openvino([layer])
    states = [np.zeros((N, D, H), "f")] * (1 + (cell == "LSTM"))
    build = getattr(ops, f"{cell.lower()}_sequence")
    more = {"linear_before_reset": bool(reset)} if cell == "GRU" else {}
    x = ops.parameter([N, T, I], np.float32)
    node = build(
        x,
        *map(ops.constant, [*states, np.full(N, T), *given.values()]),
        H,
        direction,
        **more,
    )
    model = openvino.Model([ops.result(node.output(0))], [x])
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino_core().compile_model(model, "CPU", settings)
    (Y,) = compiled([np.ascontiguousarray(X.swapaxes(0, 1))]).values()  # [N, D, T, H]

    found = Y.transpose(2, 0, 1, 3).reshape(T, N, -1)
    np.testing.assert_allclose(evaluated([layer], X), found, rtol=0, atol=1e-6)
    again = weights.from_openvino(given, cell)
    np.testing.assert_allclose(evaluated(again, X), found, rtol=0, atol=1e-6)
