"""Every rule of the specifications, broken on purpose: refused before any arithmetic."""

import ml_dtypes
import numpy as np
import pytest
from support.tables import every
from support.valid_nodes import SIZES, named, valid_node

from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.errors import InvalidOperator
from rnncli.operators import OPERATORS, evaluate, problems

# Those of linear recurrences are in test_linear_rows.
GATED = {name: row for name, row in OPERATORS.items() if row.cell.projects}
ONNX = [name for name, row in GATED.items() if row.dialect == "ONNX"]
EARLY = [name for name in ONNX if OPERATORS[name].version < 7]
LATE = [name for name in ONNX if OPERATORS[name].version >= 7]
LSTM = [name for name in ONNX if name.startswith("LSTM")]
GRU = [name for name in ONNX if name.startswith("GRU")]
RNN = [name for name in ONNX if name.startswith("RNN-")]
ALL = list(GATED)
# By dialect and by what they have: lengths and directions, or neither.
OPENVINO = [name for name in ALL if OPERATORS[name].dialect == "OpenVINO"]
WEBNN = [name for name in ALL if OPERATORS[name].dialect == "WebNN"]
CLIPPED = [name for name in ALL if name not in WEBNN]
SEQUENCES = [name for name in ALL if OPERATORS[name].has("seq_length")]
RAGGED = [name for name in SEQUENCES if name not in WEBNN]
CELLS = [name for name in ALL if name not in SEQUENCES]


@pytest.fixture(autouse=True)
def _no_arithmetic(monkeypatch):
    """A backend that fails when it is asked for anything."""

    def run(*_):
        pytest.fail("a refused node was evaluated")

    monkeypatch.setattr(NumPyBackend, "run", run)
    monkeypatch.setattr(NumPyBackend, "supports", run)


def refusal(operator, attributes, inputs, **options):
    """Return the sentences with which a node is refused."""
    with pytest.raises(InvalidOperator) as caught:
        evaluate(operator, inputs, attributes=attributes, **options)
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith((f"{operator}: ", f"{operator} has no "))
    return str(caught.value)


def shaped_inputs():
    """Every input of every operator."""
    return [(name, tensor.name) for name, row in GATED.items() for tensor in row.inputs]


def dimensions():
    """Every dimension of every input of every operator."""
    return [
        (name, tensor.name, k)
        for name, row in GATED.items()
        for tensor in row.inputs
        for k in range(len(tensor.shape()))
    ]


@every("operator", ALL)
def test_the_valid_node_is_valid(operator):
    """What the rows below break one rule at a time breaks none itself."""
    assert [] == list(problems(OPERATORS[operator], *valid_node(operator)))


@every(("operator", "name"), shaped_inputs())
def test_wrong_rank_is_refused(operator, name):
    """A dimension too many: the sentence names the input, the dimensions wanted, those given."""
    attributes, inputs = valid_node(operator)
    row = OPERATORS[operator].inputs[list(inputs).index(name)]
    inputs[name] = inputs[name][(..., *[None] * len(row.shapes))]

    sentence = refusal(operator, attributes, inputs)

    wanted = row.shape()
    spelled = "[" + ", ".join(map(str, wanted)) + "]"
    given = list(inputs[name].shape)
    assert f"{name} must have {len(wanted)} dimensions, {spelled}, got {given}" in sentence


@every(("operator", "name", "k"), [row for row in dimensions() if row[1] not in {"X", "input"}])
@every("change", [-1, 1])
def test_wrong_size_is_refused(operator, name, k, change):
    """One dimension one too long or short: the sentence says what is wanted, why, and what came."""
    attributes, inputs = valid_node(operator)
    tensor = OPERATORS[operator].inputs[list(inputs).index(name)]
    shape = list(inputs[name].shape)
    shape[k] += change
    inputs[name] = np.zeros(shape, inputs[name].dtype)

    sentence = refusal(operator, attributes, inputs)

    wanted = [d.multiple * {**SIZES, "num_directions": 1}[d.symbol] for d in tensor.shape()]
    spelled = "[" + ", ".join(map(str, tensor.shape())) + "]"
    assert f"{name} must be {wanted} = {spelled}, got {shape}: " in sentence
    X = named(operator, "X")
    reason = {
        "num_directions": f"direction is {attributes.get('direction')}",
        "hidden_size": f"{named(operator, 'hidden_size')} is 5",
        "batch_size": f"batch_size is 3 in {X}",
        "input_size": f"input_size is 2 in {X}",
    }[tensor.shape()[k].symbol]
    assert reason in sentence


@every(("operator", "name", "k"), dimensions())
def test_empty_instead_of_full_is_refused(operator, name, k):
    """A dimension of 0 where the others say more is no way around a check."""
    attributes, inputs = valid_node(operator)
    shape = list(inputs[name].shape)
    shape[k] = 0
    inputs[name] = np.zeros(shape, inputs[name].dtype)

    refusal(operator, attributes, inputs)


@every(
    ("operator", "symbol", "blamed"),
    [
        *((operator, "batch_size", "sequence_len") for operator in RAGGED),
        *((operator, "batch_size", f"{named(operator, 'initial_h')} must") for operator in ALL),
        *((operator, "input_size", f"{named(operator, 'W')} must be") for operator in ALL),
    ],
)
def test_sizes_of_X_bind_the_others(operator, symbol, blamed):
    """X one larger than the rest: the others are refused, each sentence giving X as the reason."""
    attributes, inputs = valid_node(operator)
    axis = [dim.symbol for dim in OPERATORS[operator].inputs[0].shape()].index(symbol)
    X = named(operator, "X")
    inputs[X] = np.repeat(inputs[X], 2, axis)

    sentence = refusal(operator, attributes, inputs)

    assert blamed in sentence
    assert f"{symbol} is {inputs[X].shape[axis]} in {X}" in sentence


@every("operator", SEQUENCES)
@every("direction", ["forward", "bidirectional"])
def test_direction_binds_the_weights(operator, direction):
    """Weights of one direction under bidirectional, and of two under forward."""
    other = {"forward": "bidirectional", "bidirectional": "reverse"}[direction]
    attributes, inputs = valid_node(operator, direction=other)
    attributes |= OPERATORS[operator].written("direction", direction)

    assert f"direction is {attributes['direction']}" in refusal(operator, attributes, inputs)
    found = [problem.sentence for problem in problems(OPERATORS[operator], attributes, inputs)]
    for tensor in OPERATORS[operator].inputs:
        if "num_directions" in [dim.symbol for dim in tensor.shape()]:
            assert any(sentence.startswith(f"{tensor.name} must be") for sentence in found)


@pytest.mark.parametrize("operator", ONNX)
def test_hidden_size_is_taken_from_R(operator):
    """Without the attribute the others must agree with R, and the sentence says so."""
    attributes, inputs = valid_node(operator)
    del attributes["hidden_size"]
    inputs["initial_h"] = inputs["initial_h"][..., :4]

    sentence = refusal(operator, attributes, inputs)

    assert "initial_h must be [1, 3, 5]" in sentence
    assert "hidden_size is 5, taken from R" in sentence


@every("operator", ALL)
def test_no_hidden_units_are_refused(operator):
    """H = 0, said by the weights or by the attribute."""
    attributes, inputs = valid_node(operator)
    sizes = {**SIZES, "hidden_size": 0, "num_directions": 1}
    for tensor in OPERATORS[operator].inputs:
        shape = [dim.multiple * sizes[dim.symbol] for dim in tensor.shape()]
        inputs[tensor.name] = np.zeros(shape, inputs[tensor.name].dtype)

    name = named(operator, "hidden_size")
    assert f"{name}' must be at least 1, got 0" in refusal(
        operator, {**attributes, name: 0}, inputs
    )
    del attributes[name]
    wanted = "hidden_size must be at least 1, got 0, taken from R"
    row = OPERATORS[operator].attributes[name]
    wanted = f"'{name}' is required" if row.required else wanted
    assert wanted in refusal(operator, attributes, inputs)


@every(("operator", "name"), shaped_inputs())
def test_missing_inputs_are_refused_unless_optional(operator, name):
    """The sentence names a required input; an optional one may be absent."""
    attributes, inputs = valid_node(operator)
    tensor = OPERATORS[operator].inputs[list(inputs).index(name)]
    del inputs[name]
    found = [problem.sentence for problem in problems(OPERATORS[operator], attributes, inputs)]

    assert bool(found) != tensor.optional
    assert tensor.optional or f"input '{name}' is required" in found[0]


@every(("operator", "name"), shaped_inputs())
@every("dtype", [np.float64, np.complex64, np.bool_, object, "U3", "M8[s]"])
def test_wrong_element_types_are_refused(operator, name, dtype):
    """Another element type than X's, or one no operator has: both are named."""
    attributes, inputs = valid_node(operator)
    inputs[name] = inputs[name].astype(dtype)
    others = [row.name for row in OPERATORS[operator].inputs if row.kind == "values"]
    is_possible = np.dtype(dtype).name in OPERATORS[operator].dtypes
    blamed = others[1] if name == "X" and is_possible else name

    assert f"{blamed} must be" in refusal(operator, attributes, inputs)


@every("operator", ALL)
@every("dtype", [np.int32, np.complex64, np.bool_, np.longdouble])
def test_dtypes_without_an_operator_are_refused(operator, dtype):
    """All tensors alike, in a type that is not T."""
    sentence = refusal(operator, *valid_node(operator, dtype))

    *others, last = OPERATORS[operator].dtypes
    listed = f"{', '.join(others)} or {last}" if others else last
    assert f"{named(operator, 'X')} must be {listed}" in sentence


@pytest.mark.parametrize("operator", [name for name in ONNX if OPERATORS[name].version < 22])
def test_bfloat16_before_22_is_refused(operator):
    """The sentence says where it exists."""
    sentence = refusal(operator, *valid_node(operator, ml_dtypes.bfloat16))

    assert f"bfloat16 exists from {OPERATORS[operator].type}-22 on" in sentence


@every("operator", ONNX)
@every("dtype", [np.int64, np.uint8, np.float32])
def test_onnx_lengths_are_int32(operator, dtype):
    """Other integer types belong to OpenVINO."""
    attributes, inputs = valid_node(operator)
    inputs["sequence_lens"] = inputs["sequence_lens"].astype(dtype)

    assert f"sequence_lens must be int32, got {np.dtype(dtype)}" in refusal(
        operator, attributes, inputs
    )


@every("operator", RAGGED)
@every("length", [-1, 5, 2**31 - 1, -(2**31)])
def test_lengths_out_of_range_are_refused(operator, length):
    """The sentence gives the element, the range and the value."""
    attributes, inputs = valid_node(operator)
    (name,) = (row.name for row in OPERATORS[operator].inputs if row.role == "lengths")
    inputs[name][1] = length

    assert f"{name}[1] must be between 0 and seq_length = 4, got {length}" in refusal(
        operator, attributes, inputs
    )


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
def test_huge_openvino_lengths_are_refused(dtype):
    """A length that would wrap around in a narrower type."""
    attributes, inputs = valid_node("RNNSequence-5")
    inputs["sequence_lengths"] = np.array([4, np.iinfo(dtype).max, 0], dtype)

    assert "sequence_lengths[1] must be between" in refusal("RNNSequence-5", attributes, inputs)


WEBNN_GRUS, WEBNN_LSTMS = ([name for name in WEBNN if kind in name] for kind in ("gru", "lstm"))
WEBNN_SEQUENCES = [name for name in WEBNN if name in SEQUENCES]
# operators, attributes, what the sentence must say
ATTRIBUTES = [
    (CLIPPED, {"clip": 0.0}, "'clip' must be greater than 0, got 0.0"),
    (CLIPPED, {"clip": -1.0}, "'clip' must be greater than 0, got -1.0"),
    (CLIPPED, {"clip": float("nan")}, "'clip' must be greater than 0, got nan"),
    (CLIPPED, {"clip": float("-inf")}, "'clip' must be greater than 0, got -inf"),
    (CLIPPED, {"clip": 1e-60}, "0 in float32"),
    (CLIPPED, {"clip": "3"}, "'clip' must be a number, got '3'"),
    (CLIPPED, {"clip": [1.0]}, "'clip' must be a number, got [1.0]"),
    (CLIPPED, {"clip": True}, "'clip' must be a number, got True"),
    (CLIPPED, {"hidden_size": -5}, "'hidden_size' must be at least 1, got -5"),
    (CLIPPED, {"hidden_size": 5.0}, "'hidden_size' must be an integer, got 5.0"),
    (CLIPPED, {"hidden_size": 6}, "hidden_size is 6"),
    (RAGGED, {"direction": "Forward"}, "must be one of forward, reverse, bidirectional"),
    (SEQUENCES, {"direction": 1}, "'direction' must be a string, got 1"),
    (LATE, {"direction": "foward"}, "must be one of forward, reverse, bidirectional"),
    (LATE, {"direction": "backwards"}, "got 'backwards'; did you mean 'reverse'?"),
    (LATE, {"direction": "both"}, "got 'both'; did you mean 'bidirectional'?"),
    (["RNN-1", "LSTM-1", "GRU-3"], {"direction": "foward"}, "must be one of forward, reverse"),
    (EARLY, {"layout": 0}, "has no attribute 'layout'"),
    (["RNN-7", "GRU-7", "LSTM-7"], {"layout": 0}, "has no attribute 'layout'"),
    (OPENVINO, {"layout": 0}, "has no attribute 'layout'"),
    (["RNN-14", "GRU-22", "LSTM-14"], {"layout": 2}, "'layout' must be one of 0, 1, got 2"),
    (["RNN-14", "GRU-22", "LSTM-14"], {"layout": -1}, "'layout' must be one of 0, 1, got -1"),
    (LATE, {"output_sequence": 0}, "has no attribute 'output_sequence'"),
    (["GRU-1"], {"linear_before_reset": 0}, "GRU-1 has no attribute 'linear_before_reset'"),
    ([*RNN, *LSTM], {"linear_before_reset": 0}, "has no attribute 'linear_before_reset'"),
    ([*RNN, *GRU], {"input_forget": 0}, "has no attribute 'input_forget'"),
    (LSTM, {"input_forget": 0.5}, "'input_forget' must be an integer, got 0.5"),
    (ONNX, {"hiden_size": 5}, "has no attribute 'hiden_size'; did you mean 'hidden_size'?"),
    (ONNX, {"activations_alpha": [0.1]}, "did you mean 'activation_alpha'?"),
    (OPENVINO, {"activation_alpha": [0.1]}, "did you mean 'activations_alpha'?"),
    (ONNX, {"activation_alpha": 0.1}, "'activation_alpha' must be a list of numbers, got 0.1"),
    (ONNX, {"activation_beta": ["x"]}, "'activation_beta' must be a list of numbers"),
    (ALL, {"activations": "Tanh"}, "'activations' must be a list of strings, got 'Tanh'"),
    (ALL, {"activations": []}, "activations must name"),
    (ALL, {"activations": ["Tahn"]}, "unknown activation 'Tahn' for"),
    (CLIPPED, {"activations": ["Tahn"]}, "did you mean 'Tanh'?"),
    (ALL, {"activations": ["Gelu"]}, "unknown activation 'Gelu' for"),
    (ALL, {"activations": ["Tanh"] * 7}, "got 7"),
    ([*GRU, *LSTM], {"activations": ["Tanh"]}, "got 1"),
    (GRU, {"activations": ["Tanh"] * 3}, "activations must name 2 functions"),
    (LSTM, {"activations": ["Tanh"] * 2}, "activations must name 3 functions"),
    (RNN, {"activations": ["Tanh"] * 3}, "activations must name 1 or 2 functions"),
    (
        ["RNNSequence-5"],
        {"activations": ["tanh"] * 2},
        "name 1 function (f for each of 1 direction), got 2",
    ),
    (OPENVINO, {"activations": ["Elu"]}, "unknown activation 'Elu'"),
    (
        [name for name in OPENVINO if name in SEQUENCES],
        {"direction": None},
        "attribute 'direction' is required",
    ),
    (OPENVINO, {"hidden_size": None}, "attribute 'hidden_size' is required"),
    (
        ["GRUSequence-5", "GRUCell-3"],
        {"linear_before_reset": -1},
        "'linear_before_reset' must be one of 0, 1, got -1",
    ),
    (WEBNN, {"hiddenSize": None}, "attribute 'hiddenSize' is required"),
    (WEBNN, {"hiddenSize": 0}, "'hiddenSize' must be at least 1, got 0"),
    (WEBNN, {"hiddenSize": True}, "'hiddenSize' must be an integer, got True"),
    (WEBNN, {"hidden_size": 5}, "has no attribute 'hidden_size'; did you mean 'hiddenSize'?"),
    (WEBNN_GRUS, {"hiddenSize": 357913942}, "must be at most 357913941, got 357913942"),
    (WEBNN_LSTMS, {"hiddenSize": 268435456}, "must be at most 268435455, got 268435456"),
    (WEBNN_SEQUENCES, {"steps": None}, "attribute 'steps' is required"),
    (WEBNN_SEQUENCES, {"steps": 0}, "'steps' must be at least 1, got 0"),
    (WEBNN_SEQUENCES, {"steps": 3}, "got [4, 3, 2]: steps is 3"),
    (WEBNN_SEQUENCES, {"direction": "reverse"}, "got 'reverse'; did you mean 'backward'?"),
    (WEBNN_SEQUENCES, {"direction": "Backward"}, "must be one of forward, backward, both"),
    (WEBNN_SEQUENCES, {"returnSequence": "yes"}, "must be true or false, got 'yes'"),
    (WEBNN_GRUS, {"resetAfter": 2}, "must be true or false, got 2"),
    (WEBNN_GRUS, {"layout": "zrh"}, "must be one of zrn, rzn, got 'zrh'"),
    (WEBNN_LSTMS, {"layout": "zrn"}, "must be one of iofg, ifgo, got 'zrn'"),
    (WEBNN_LSTMS, {"resetAfter": True}, "has no attribute 'resetAfter'"),
    (WEBNN, {"activations": ["Tanh"] * 3}, "unknown activation 'Tanh'"),
    (WEBNN, {"activations": ["softsign"]}, "(there are relu, sigmoid, tanh)"),
    (WEBNN_GRUS, {"activations": ["tanh"] * 3}, "must name 2 functions (f, g"),
    (WEBNN_LSTMS, {"activations": ["tanh"] * 2}, "must name 3 functions (f, g, h"),
    (WEBNN, {"clip": 1.0}, "has no attribute 'clip'"),
]


@every(
    ("operator", "given", "piece"),
    [(name, given, piece) for names, given, piece in ATTRIBUTES for name in names],
)
def test_attributes_are_refused(operator, given, piece):
    """Each wrong attribute, in a sentence that says what is wanted and what came."""
    attributes, inputs = valid_node(operator)

    assert piece in refusal(operator, {**attributes, **given}, inputs)


@pytest.mark.parametrize("operator", SEQUENCES)
def test_bidirectional_counts_names_twice(operator):
    """Names for one direction do not serve two, except where a dialect takes one for both."""
    attributes, inputs = valid_node(operator, direction="bidirectional")
    attributes["activations"] = [*map(str.lower, OPERATORS[operator].default_activations)]
    found = [problem.sentence for problem in problems(OPERATORS[operator], attributes, inputs)]

    each = OPERATORS[operator].activation_lists == "each"
    assert bool(found) == each
    assert not each or "of 2 directions" in found[0]


@pytest.mark.parametrize("operator", WEBNN_SEQUENCES)
def test_webnn_takes_no_activations_for_each_direction(operator):
    """As many as for one direction, whatever the direction."""
    attributes, inputs = valid_node(operator, direction="bidirectional")
    names = ["tanh"] * len(OPERATORS[operator].default_activations)

    assert [] == list(problems(OPERATORS[operator], {**attributes, "activations": names}, inputs))
    assert f"activations must name {len(names)} functions" in refusal(
        operator, {**attributes, "activations": names * 2}, inputs
    )


@pytest.mark.parametrize("operator", WEBNN_SEQUENCES)
def test_a_sequence_is_an_output_only_on_request(operator):
    """`returnSequence` decides, false by default; what it gives need not be asked for."""
    attributes, inputs = valid_node(operator)
    row = OPERATORS[operator]

    assert [] == list(problems(row, attributes, inputs, ["outputSequence"]))
    assert [] == list(problems(row, attributes, inputs, ["outputHidden"]))
    del attributes["returnSequence"]
    assert "an output 'outputSequence' only if 'returnSequence' is true" in refusal(
        operator, attributes, inputs, outputs=["outputSequence"]
    )


@pytest.mark.parametrize("operator", WEBNN)
@pytest.mark.parametrize("symbol", ["seq_length", "batch_size", "input_size"])
def test_webnn_has_no_empty_tensors(operator, symbol):
    """Where all inputs agree on a size of 0, it is refused all the same."""
    attributes, inputs = valid_node(operator)
    for tensor in OPERATORS[operator].inputs:
        for axis, dim in enumerate(tensor.shape()):
            if dim.symbol == symbol:
                inputs[tensor.name] = np.take(inputs[tensor.name], [], axis)
    if symbol == "seq_length" and operator in CELLS:
        pytest.skip("a cell has no time")

    assert "must have no empty dimension" in refusal(operator, attributes, inputs)


@pytest.mark.parametrize("operator", [name for name in SEQUENCES if name in OPENVINO])
def test_openvino_refuses_other_activations_backward(operator):
    """The runtime drops them in silence: they are accepted only when equal, in any case."""
    attributes, inputs = valid_node(operator, direction="bidirectional")
    names = ["relu", "tanh", "relu"][: len(OPERATORS[operator].default_activations)]
    other = ["sigmoid", *names[1:]]

    assert f"have the same activations, got {' '.join(names)} and {' '.join(other)}: " in refusal(
        operator, {**attributes, "activations": names + other}, inputs
    )
    same = {**attributes, "activations": [*names, *map(str.upper, names)]}
    assert [] == list(problems(OPERATORS[operator], same, inputs))


def test_a_bias_with_h_apart_has_a_block_more():
    """OpenVINO's GRU holds z, r, Wbh and Rbh where it resets after the linear transformation."""
    for operator in ("GRUSequence-5", "GRUCell-3"):
        attributes, inputs = valid_node(operator)
        dims = OPERATORS[operator].inputs[-1].shape(1)

        sentence = refusal(operator, {**attributes, "linear_before_reset": 1}, inputs)

        assert f"B must be {[1, 20][-len(dims) :]} = " in sentence
        assert f"4*hidden_size], got {list(inputs['B'].shape)}: hidden_size is 5" in sentence


@pytest.mark.parametrize("operator", CELLS)
@pytest.mark.parametrize("given", [{"direction": "forward"}, {"layout": 0}, {"steps": 1}])
def test_a_cell_has_no_direction_and_no_time(operator, given):
    """It is one step, so neither has a meaning; WebNN's layout is that of the gates."""
    attributes, inputs = valid_node(operator)
    if "layout" in given and operator in WEBNN:
        pytest.skip("the layout of gates")

    assert f"{operator} has no attribute '{next(iter(given))}'" in refusal(
        operator, {**attributes, **given}, inputs
    )


def test_a_missing_direction_is_the_only_complaint():
    """What follows from the direction is not judged while nobody knows it."""
    attributes, inputs = valid_node("RNNSequence-5", direction="bidirectional")
    del attributes["direction"]

    assert "None" not in refusal("RNNSequence-5", attributes, inputs)


@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"outputs": ["Y_x"]}, "LSTM-14 has no output 'Y_x'; did you mean 'Y_"),
        ({"outputs": ["Y", "Y"]}, "output 'Y' is named twice"),
        ({"outputs": ["Ho"]}, "LSTM-14 has no output 'Ho'"),
        ({"readings": {"clip-scop": "gates"}}, "did you mean 'clip-scope'?"),
        ({"readings": {"clip-scope": "gate"}}, "must be activations or gates, got 'gate'"),
        ({"readings": {"recurrence": "literal"}}, "makes no difference to LSTM-14"),
    ],
)
def test_outputs_and_readings_are_refused(options, piece):
    """Unknown ones, repeated ones, and readings without effect."""
    attributes, inputs = valid_node("LSTM-14")

    assert piece in refusal("LSTM-14", attributes, inputs, **options)


def test_unknown_inputs_are_refused():
    """A misspelt input is not taken for an absent optional one."""
    attributes, inputs = valid_node("LSTM-14")
    inputs["inital_h"] = inputs.pop("initial_h")

    assert "LSTM-14 has no input 'inital_h'; did you mean 'initial_h'?" in refusal(
        "LSTM-14", attributes, inputs
    )


def test_all_problems_are_told_at_once():
    """In one line, of attributes, inputs, outputs and readings, in that order."""
    attributes, inputs = valid_node("LSTM-14")
    inputs["P"] = inputs["P"][:, :5]
    inputs["B"] = inputs["B"].astype(np.float64)

    sentence = refusal(
        "LSTM-14",
        {**attributes, "clip": -1, "activations": ["Tanh"]},
        inputs,
        outputs=["Z"],
        readings={"no": "no"},
    )

    subjects = ["'clip'", "activations must", "B must", "P must", "output 'Z'", "reading 'no'"]
    assert [sentence.count(subject) for subject in subjects] == [1] * len(subjects)
    assert subjects == sorted(subjects, key=sentence.index)
    assert "\n" not in sentence


@every("operator", ALL)
def test_problems_name_their_subject(operator):
    """A YAML reader finds the line from the subject: a kind, and a name of that kind."""
    attributes, inputs = valid_node(operator)
    X = named(operator, "X")
    inputs[X] = inputs[X].astype(np.int8)
    found = list(problems(OPERATORS[operator], {**attributes, "clip": 0}, inputs, ["Q"], {"q": ""}))

    assert {("attributes", "clip"), ("inputs", X), ("outputs", "Q"), ("readings", "q")} <= {
        problem.subject for problem in found
    }


@every("operator", ALL)
def test_a_sound_node_vouches_only_for_its_like(operator):
    """After a node without problems, one that differs in anything that is judged is judged anew."""
    row = OPERATORS[operator]
    attributes, inputs = valid_node(operator)
    lengths = [tensor.name for tensor in row.inputs if tensor.role == "lengths"]
    hidden_size, W, R = (named(operator, role) for role in ("hidden_size", "W", "R"))
    wrong = {
        "an attribute's type": ({**attributes, hidden_size: float(SIZES["hidden_size"])}, inputs),
        "an attribute's value": ({**attributes, "clip": 0.0}, inputs),
        "a shape": (attributes, {**inputs, R: inputs[R][..., :-1]}),
        "a dtype": (attributes, {**inputs, W: inputs[W].astype(np.float64)}),
        **{
            f"a length in {name}": (attributes, {**inputs, name: inputs[name] + 100})
            for name in lengths
        },
        "an input too few": (attributes, {k: v for k, v in inputs.items() if k != W}),
    }
    for changed in wrong.values():
        assert [] == list(problems(row, attributes, inputs))
        assert list(problems(row, *changed))
    assert list(problems(row, attributes, inputs, ["no"]))
    assert list(problems(row, attributes, inputs, None, {"no": "no"}))
