"""Claims about weights that go to a library and back, without the library.

What a library computes is written out here from its documentation, a unit at a time.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import every

from rnncli import evaluate
from rnncli.errors import InvalidRequest
from rnncli.models import weights

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
T = 3


def random(seed, *shape):
    """Numbers in [-1, 1), float64."""
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def torch_state(seed, cell, *, layers=1, D=1, I=2, H=3, bias=True):  # noqa: E741
    """A state as `nn.LSTM` would have it."""
    rows, state = GATES[cell] * H, {}
    for number in range(layers):
        for suffix in ("", "_reverse")[:D]:
            end = f"l{number}{suffix}"
            state[f"weight_ih_{end}"] = random((seed, 0), rows, D * H if number else I)
            state[f"weight_hh_{end}"] = random((seed, 1), rows, H)
            if bias:
                state[f"bias_ih_{end}"] = random((seed, 2), rows)
                state[f"bias_hh_{end}"] = random((seed, 3), rows)
            seed += 1
    return state


def keras_variables(seed, cell, after=True, *, D=1, I=2, H=3):  # noqa: E741
    """Variables as a Keras layer would have them."""
    rows, found = GATES[cell] * H, {}
    for owner in ("forward_a/", "backward_a/") if D == 2 else ("",):
        found |= {
            f"{owner}kernel": random((seed, 0), I, rows),
            f"{owner}recurrent_kernel": random((seed, 1), H, rows),
            f"{owner}bias": random((seed, 2), *((2, rows) if cell == "GRU" and after else (rows,))),
        }
        seed += 1
    return found


def openvino_inputs(seed, cell, after=False, *, D=1, I=2, H=3):  # noqa: E741
    """Inputs as a sequence operator of OpenVINO has them."""
    blocks = 4 if after and cell == "GRU" else GATES[cell]
    return {
        "W": random((seed, 0), D, GATES[cell] * H, I),
        "R": random((seed, 1), D, GATES[cell] * H, H),
        "B": random((seed, 2), D, blocks * H),
    }


def same(given, found):
    """Whether two mappings hold the same bits, in the same order."""
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(given.values(), found.values(), strict=True)
    )


@pytest.mark.parametrize(
    ("variables", "given", "sentence"),
    [
        (keras_variables(0, "GRU", after=False), True, "bias is of a GRU with reset_after=False"),
        (keras_variables(0, "GRU", after=True), False, "bias is of a GRU with reset_after=True"),
        (keras_variables(0, "LSTM"), True, "reset_after is of a GRU, and no layer is one"),
    ],
)
def test_what_the_weights_contradict_is_refused(variables, given, sentence):
    """What a GRU resets is said once."""
    with pytest.raises(InvalidRequest, match=sentence):
        weights.from_keras(variables, reset_after=given)


SIZES = {
    "seed": st.integers(0, 2**32),
    "cell": st.sampled_from([*GATES]),
    "D": st.integers(1, 2),
    "I": st.integers(1, 5),
    "H": st.integers(1, 5),
}


@given(**SIZES, layers=st.integers(1, 3), bias=st.booleans())
def test_a_state_of_torch_comes_back_bit_for_bit(**sizes):
    """With its keys."""
    state = torch_state(**sizes)
    found = weights.to_torch(weights.from_torch(state))

    assert {*state} == {*found}
    assert same(state, {key: found[key] for key in state})


@given(**SIZES, after=st.booleans())
def test_variables_of_keras_come_back_bit_for_bit(**sizes):
    """In the order of `set_weights`."""
    variables = keras_variables(**sizes)

    assert same(variables, weights.to_keras(weights.from_keras(variables)))


@given(**SIZES, after=st.booleans())
def test_inputs_of_openvino_come_back_bit_for_bit(**sizes):
    """A sum is Wb, and Rb is 0."""
    inputs = openvino_inputs(**sizes)
    (layer,) = weights.from_openvino(inputs)

    assert same(inputs, weights.to_openvino([layer]))
    if not layer.linear_before_reset:
        assert not layer.B[:, layer.B.shape[1] // 2 :].any()


@given(**SIZES)
def test_the_sign_of_a_zero_is_kept(**sizes):
    """Where a sum goes there and back."""
    variables = {key: -0.0 * abs(v) for key, v in keras_variables(**sizes, after=False).items()}

    assert same(variables, weights.to_keras(weights.from_keras(variables)))


@given(**SIZES, layers=st.integers(2, 3))
def test_layers_come_back_from_openvino(**sizes):
    """By number; two operators of one direction each are those of both."""
    layers = weights.from_torch(torch_state(**sizes, bias=False))
    inputs = weights.to_openvino(layers)
    apart = {
        f"{name}{suffix}": values[k : k + 1]
        for name, values in inputs.items()
        for k, suffix in enumerate(("", "_reverse")[: sizes["D"]])
    }

    assert len(inputs) == 3 * sizes["layers"]
    for operators in (inputs, apart):
        assert same(inputs, weights.to_openvino(weights.from_openvino(operators)))


def test_a_layer_of_openvino_that_is_reverse_only_stays_so():
    """Its names say so."""
    inputs = openvino_inputs(1, "LSTM")
    (layer,) = weights.from_openvino(inputs, direction="reverse")
    found = weights.to_openvino([layer])

    assert [*found] == ["W_reverse", "R_reverse", "B_reverse"]
    assert weights.from_openvino(found)[0].direction == "reverse"


# A library, a path as it is in a larger model, and what else such a model has.
PREFIXED = [
    ("torch", torch_state, "encoder.lstm", ".", {"fc.weight": 1, "encoder.norm.bias": 1}),
    ("keras", keras_variables, "encoder/lstm/lstm_cell", "/", {"dense/kernel": 1, "dense/bias": 1}),
    ("openvino", openvino_inputs, "encoder", ".", {"bias": 1, "other.scale": 1}),
]


@pytest.mark.parametrize(("library", "made", "path", "mark", "others"), PREFIXED)
def test_the_recurrent_module_of_a_larger_model_is_found(library, made, path, mark, others):
    """If it is the only one; of several one is chosen, and the message says how."""
    read = getattr(weights, f"from_{library}")
    own = made(1, "LSTM")
    inside = {f"{path}{mark}{name}": values for name, values in own.items()}
    whole = {name: random(1, size) for name, size in others.items()} | inside
    second = {name.replace("encoder", "decoder"): values + 1 for name, values in inside.items()}

    assert same(read(own)[0].tensors, read(whole)[0].tensors)
    with pytest.raises(InvalidRequest, match=r"2 recurrent modules.*--module.*'decoder.*'encoder"):
        read(whole | second)
    module = path.partition("/")[0]
    assert same(read(own)[0].tensors, read(whole | second, module=module)[0].tensors)
    with pytest.raises(InvalidRequest, match=f"no recurrent module '{module}s'; did you mean"):
        read(whole | second, module=f"{module}s")
    with pytest.raises(InvalidRequest, match=path):
        read(whole | {f"{path}{mark}{[*own][1]}": random(1, 7, 3)})


def test_one_of_two_layers_of_keras_is_taken_by_its_path():
    """Both stack; each alone is a layer of its own."""
    first, second = keras_variables(1, "LSTM"), keras_variables(2, "GRU", I=3)
    both = {f"m/lstm/lstm_cell/{name}": values for name, values in first.items()}
    both |= {f"m/gru/gru_cell/{name}": values for name, values in second.items()}

    assert [layer.cell for layer in weights.from_keras(both)] == ["LSTM", "GRU"]
    assert [layer.cell for layer in weights.from_keras(both, module="m/gru")] == ["GRU"]


def s(x):
    """The logistic function."""
    return 1 / (1 + math.exp(-x))


def dots(weights_of_unit, x):
    """A scalar product."""
    return sum(a * b for a, b in zip(weights_of_unit, x, strict=True))


def torch_step(p, x, h, c, cell):
    """`nn.LSTM`, `nn.GRU`, `nn.RNN`: their documented equations, rows i f g o or r z n."""
    H = len(h)

    def a(gate, unit):
        row = gate * H + unit
        from_x = dots(p["weight_ih_l0"][row], x) + p["bias_ih_l0"][row]
        return from_x, dots(p["weight_hh_l0"][row], h) + p["bias_hh_l0"][row]

    new_h, new_c = [], []
    for u in range(H):
        if cell == "LSTM":
            i, f, g, o = (sum(a(k, u)) for k in range(4))
            new_c.append(s(f) * c[u] + s(i) * math.tanh(g))
            new_h.append(s(o) * math.tanh(new_c[-1]))
        elif cell == "GRU":
            r, z = s(sum(a(0, u))), s(sum(a(1, u)))
            n = math.tanh(a(2, u)[0] + r * a(2, u)[1])
            new_h.append((1 - z) * n + z * h[u])
        else:
            new_h.append(math.tanh(sum(a(0, u))))
    return new_h, new_c


def columns(p, gate, unit, H):
    """The kernels of a unit in Keras: columns."""
    return p["kernel"][:, gate * H + unit], p["recurrent_kernel"][:, gate * H + unit]


def keras_step(p, x, h, c, cell):
    """`LSTM` i f c o, `GRU` z r h with either reset, `SimpleRNN`, as keras/src/layers/rnn says."""
    H, bias = len(h), p["bias"]
    b = bias if bias.ndim == 2 else np.stack([bias, 0 * bias])

    def a(gate, unit, state):
        k, r = columns(p, gate, unit, H)
        row = gate * H + unit
        return dots(k, x) + b[0][row], dots(r, state) + b[1][row]

    new_h, new_c = [], []
    reset = [s(sum(a(1, u, h))) for u in range(H)] if cell == "GRU" else []
    for u in range(H):
        if cell == "LSTM":
            i, f, g, o = (sum(a(k, u, h)) for k in range(4))
            new_c.append(s(f) * c[u] + s(i) * math.tanh(g))
            new_h.append(s(o) * math.tanh(new_c[-1]))
        elif cell == "GRU":
            z = s(sum(a(0, u, h)))
            if bias.ndim == 2:
                inner, outer = a(2, u, h)
                hh = math.tanh(inner + reset[u] * outer)
            else:
                hh = math.tanh(sum(a(2, u, [r * v for r, v in zip(reset, h, strict=True)])))
            new_h.append(z * h[u] + (1 - z) * hh)
        else:
            new_h.append(math.tanh(sum(a(0, u, h))))
    return new_h, new_c


def openvino_step(p, x, h, c, cell):
    """The pseudocode of LSTMCell (f i c o), GRUCell (z r h, and 4H) and RNNCell."""
    H = len(h)
    W, R, B = p["W"][0], p["R"][0], p["B"][0]

    def a(gate, unit, state):
        row = gate * H + unit
        return dots(W[row], x) + dots(R[row], state) + B[row]

    new_h, new_c = [], []
    reset = [s(a(1, u, h)) for u in range(H)] if cell == "GRU" else []
    for u in range(H):
        if cell == "LSTM":
            f, i, g, o = (a(k, u, h) for k in range(4))
            new_c.append(s(f) * c[u] + s(i) * math.tanh(g))
            new_h.append(s(o) * math.tanh(new_c[-1]))
        elif cell == "GRU":
            z, row = s(a(0, u, h)), 2 * H + u
            if len(B) == 4 * H:
                inner = dots(W[row], x) + B[row]
                hh = math.tanh(inner + reset[u] * (dots(R[row], h) + B[row + H]))
            else:
                hh = math.tanh(a(2, u, [r * v for r, v in zip(reset, h, strict=True)]))
            new_h.append((1 - z) * hh + z * h[u])
        else:
            new_h.append(math.tanh(a(0, u, h)))
    return new_h, new_c


def walked(step, given, X, H, cell):
    """The states of every step [T, H], from zeros."""
    h, c, found = [0.0] * H, [0.0] * H, []
    for x in X:
        h, c = step(given, x, h, c, cell)
        found.append(h)
    return found


def evaluated(layer, X):
    """What rnncli computes with converted weights."""
    name = f"{layer.cell}-14"
    return evaluate(name, {"X": X[:, None], **layer.tensors}, **layer.attributes)["Y"][:, 0, 0]


SCALAR = [
    ("torch", torch_step, lambda k, cell, _: torch_state(k, cell)),
    ("keras", keras_step, keras_variables),
    ("openvino", openvino_step, openvino_inputs),
]


@pytest.mark.parametrize("after", [False, True], ids=["reset-before", "reset-after"])
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize(("library", "step", "parameters"), SCALAR, ids=[row[0] for row in SCALAR])
def test_converted_weights_mean_what_the_library_says(library, step, parameters, cell, after):
    """The library's equations with its weights give what ONNX's give with ours."""
    parameters, X = parameters(7, cell, after), random(8, T, 2)
    (layer,) = getattr(weights, f"from_{library}")(parameters)

    np.testing.assert_allclose(
        evaluated(layer, X), walked(step, parameters, X, 3, cell), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("cell", GATES)
def test_two_biases_become_their_sum(cell):
    """In OpenVINO and Keras, where the cell has one; the values stay."""
    (layer,) = weights.from_torch(torch_state(3, cell, D=2))
    X = random(4, T, 2)
    for there, back in (("to_openvino", "from_openvino"), ("to_keras", "from_keras")):
        (again,) = getattr(weights, back)(getattr(weights, there)([layer]))

        np.testing.assert_allclose(evaluated(again, X), evaluated(layer, X), rtol=0, atol=1e-14)


STATE = torch_state(1, "LSTM")
VARIABLES = keras_variables(1, "GRU")
INPUTS = openvino_inputs(1, "LSTM")


def ends(mapping, end):
    """The same with other names."""
    return {f"{name}{end}": values for name, values in mapping.items()}


def without(mapping, key):
    """All but one."""
    return {name: values for name, values in mapping.items() if name != key}


@every(
    ("function", "given", "sentence"),
    [
        ("torch", without(STATE, "bias_hh_l0"), "no 'bias_hh_l0': wanted weight_ih_l0, .*, given "),
        ("torch", {}, "no 'weight_ih_l0': wanted .*, given none"),
        ("torch", {"fc.weight": STATE["bias_ih_l0"]}, "unknown 'fc.weight': wanted weight_"),
        ("torch", STATE | {"gate": STATE["bias_ih_l0"]}, "unknown 'gate': wanted weight_"),
        ("torch", STATE | {"weight_hr_l0": random(1, 2, 3)}, "a layer with proj_size projects"),
        ("torch", STATE | {"weight_hh_l0": random(1, 10, 3)}, "weight_hh_l0: G.H and H must have"),
        ("torch", STATE | {"weight_ih_l0": random(1, 9, 2)}, r"weight_ih_l0 must be \[12, 2\]"),
        ("torch", STATE | {"bias_ih_l0": random(1, 9)}, r"bias_ih_l0 must be \[12\] = .*got \[9\]"),
        (
            "torch",
            STATE | {key.replace("l0", "l2"): values for key, values in STATE.items()},
            "no 'weight_ih_l1'",
        ),
        (
            "torch",
            STATE | {key.replace("l0", "l1"): values for key, values in STATE.items()},
            r"weight_ih_l1 must be \[12, 3\] = \[G\*H, D\*H\] of the layer below, got \[12, 2\]",
        ),
        (
            "torch",
            {k: v.astype(int) for k, v in STATE.items()},
            "one floating-point dtype, got int",
        ),
        ("keras", without(VARIABLES, "kernel"), "no 'kernel': wanted kernel, recurrent_kernel"),
        ("keras", {}, "no 'recurrent_kernel': wanted kernel, .*, given none"),
        (
            "keras",
            {"dense/kernel": random(1, 2, 3)},
            "no 'recurrent_kernel': .* given dense/kernel",
        ),
        ("keras", VARIABLES | {"gamma": random(1, 3)}, "unknown 'gamma'"),
        ("keras", VARIABLES | {"bias": random(1, 2, 8)}, r"bias must be \[2, 9\]"),
        ("keras", VARIABLES | {"kernel": random(1, 2, 8)}, r"kernel must be \[2, 9\]"),
        (
            "keras",
            {f"backward_a/{key}": values for key, values in VARIABLES.items()},
            "Bidirectional has a forward_ and a backward_ layer",
        ),
        ("openvino", without(INPUTS, "B"), "no 'B': wanted W, R, B, given W, R"),
        ("openvino", INPUTS | {"W_l0": random(1, 1, 12, 2)}, "unknown 'W': wanted W, R, B"),
        ("openvino", ends(INPUTS, "_l1"), "no 'W_l0': wanted W_l0, R_l0, B_l0"),
        (
            "openvino",
            INPUTS | ends(openvino_inputs(1, "GRU"), "_reverse"),
            "W and W_reverse must be of one cell, and one direction each",
        ),
        (
            "openvino",
            ends(INPUTS, "_l0") | ends(INPUTS, "_l1"),
            "layer 1 takes 2 inputs, the one below makes 1.3",
        ),
        ("openvino", INPUTS | {"X": random(1, 3)}, "unknown 'X': wanted W, R, B"),
        ("openvino", INPUTS | {"B": random(1, 1, 24)}, r"B must be \[1, 12\]"),
        ("openvino", INPUTS | {"W": random(1, 12, 2)}, r"W must be \[D, G\*H, I\], got \[12, 2\]"),
    ],
)
def test_what_does_not_fit_is_named(function, given, sentence):
    """The key, what was wanted, and what was given."""
    with pytest.raises(InvalidRequest, match=sentence):
        getattr(weights, f"from_{function}")(given)


@pytest.mark.parametrize("cell", GATES)
def test_a_cell_that_is_not_there_is_refused(cell):
    """Shapes decide; a name checks them."""
    state = torch_state(1, cell)
    other = "GRU" if cell == "LSTM" else "LSTM"

    assert weights.from_torch(state, cell)[0].cell == cell
    with pytest.raises(InvalidRequest, match=f"ratio {GATES[other]} for {other}, got"):
        weights.from_torch(state, other)
    with pytest.raises(InvalidRequest, match="no cell is named 'lstm'"):
        weights.from_torch(state, "lstm")


@pytest.mark.parametrize("more", [{"direction": "reverse"}, {"linear_before_reset": 0}], ids=str)
def test_what_torch_lacks_is_refused(more):
    """A layer that is reverse only, and the other reset."""
    inputs = openvino_inputs(1, "GRU")
    layers = weights.from_openvino(inputs, **more)

    with pytest.raises(InvalidRequest, match="PyTorch has no"):
        weights.to_torch(layers)


@pytest.mark.parametrize(
    ("cell", "more", "sentence"),
    [
        ("LSTM", {"linear_before_reset": 1}, "linear_before_reset 1"),
        ("LSTM", {"activation": "relu"}, "activation relu: it is tanh, or relu of an RNN"),
        ("RNN", {"activation": "elu"}, "activation elu"),
        ("RNN", {"direction": "bidirectional"}, "direction bidirectional does not fit R"),
    ],
)
def test_attributes_must_fit_the_weights(cell, more, sentence):
    """A layer that no node could be is not made."""
    (layer,) = weights.from_torch(torch_state(1, cell))

    with pytest.raises(InvalidRequest, match=sentence):
        weights.RecurrentLayer(**layer.tensors, **more)
