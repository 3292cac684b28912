"""Claims about the states of models, and their axes of time and batch."""

from collections import Counter

import pytest
from onnx import TensorProto, helper
from support.real_models import PATHS
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.models.loading import load_model, model_from
from rnncli.models.streams import DataFlow, streams_of

# Model -> its states, the axes of time, and those of the batch.
REAL = {
    "gtcrn_simple": (
        {
            "conv_cache": "conv_cache_out",
            "tra_cache": "tra_cache_out",
            "inter_cache": "inter_cache_out",
        },
        {},
        {},
    ),
    "silero_vad_16k_op15": ({"state": "stateN"}, {"input": 1}, {"input": 0, "state": 1}),
    "lstm_packed_bi_ts": ({}, {"x": 1}, {"x": 0, "lens": 0}),
    "loop_gru_script_ts": ({}, {}, {"h": 1}),
    # only where RNNCLI_TEST_MODELS has them
    "model_1": ({"input_3": "tf_op_layer_stack_2"}, {}, {}),
    "encoder": ({}, {"src": 1, "src_mask": 1}, {"src": 0, "src_mask": 0}),
    "rnn_relu_ts": ({}, {"x": 0}, {"x": 1}),
    "gru_bi2_bf_ts": ({}, {"x": 1}, {"x": 0}),
    "tf_lstm_hardsig_op13": ({}, {"x": 1}, {"x": 0}),
}
ANEW = {"rnn_relu_ts": "/m/RNN", "tf_lstm_hardsig_op13": "LSTM__1166"}
WEIGHTS = "float[1,6,3] W, float[1,6,2] R"


@every("name", sorted(REAL.keys() & PATHS.keys()), ids=str)
def test_states_and_axes_of_real_models_are_found_without_options(name):
    """Pairs of silero-vad and GTCRN; none in models that keep their states to themselves."""
    found = streams_of(load_model(PATHS[name]))

    pairs = {pair.input: pair.output for pair in found.pairs}
    axes = ({n: a.axis for n, a in each.items()} for each in (found.time, found.batch))
    assert (pairs, *axes) == REAL[name]
    anew = [f"not streamable: node '{node}' begins anew at each call" for node in [ANEW.get(name)]]
    assert found.warnings == (tuple(anew) if name in ANEW else ())


@every(
    "begin, end",
    [
        ("h_in", "h_out"),
        ("h0", "hn"),
        ("h", "new_h"),
        ("prev.h", "next.h"),
        ("past_state", "present_state"),
        ("state", "stateN"),
        ("encoder_h_0", "encoder_h_n"),
    ],
    ids=str,
)
def test_names_pair_up_to_words_for_the_ends_of_a_step(begin, end):
    """The other input, of the same shape, is not paired."""
    nodes = [
        helper.make_node("Add", ["input", begin], ["output"]),
        helper.make_node("Mul", ["input", begin], [end]),
    ]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in names]
        for names in (("input", begin), ("output", end))
    )
    proto = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs))

    pairs = streams_of(model_from(proto, "m.onnx")).pairs

    assert [(pair.input, pair.output) for pair in pairs] == [(begin, end)]


def test_the_graph_pairs_states_that_no_name_tells(parse):
    """A hidden state by way of the node; a window of past inputs by way of a concatenation."""
    text = f"""g (float[1,1,3] a, float[1,1,2] b, float[2,1,3] c, {WEIGHTS})
        => (float[1,1,2] d, float[2,1,3] e) {{
        y, d = GRU <hidden_size = 2> (a, W, R, , , b)
        all = Concat <axis = 0> (c, a)
        one = Constant <value = int64[1] {{1}}> ()
        three = Constant <value = int64[1] {{3}}> ()
        zero = Constant <value = int64[1] {{0}}> ()
        e = Slice (all, one, three, zero)
    }}"""

    pairs = streams_of(parse(text)).pairs

    assert [(pair.input, pair.output) for pair in pairs] == [("b", "d"), ("c", "e")]


def test_a_mask_or_tensor_passed_through_is_not_a_state(parse):
    """What leaves as it entered carries nothing from step to step, unless a name says so."""
    text = """g (float[1,4] a, bool[1,4] mask) => (float[1,4] b, bool[1,4] mask_out) {
        b = Identity (a)
        mask_out = Identity (mask)
    }"""

    assert streams_of(parse(text)).pairs == ()


def test_pairs_by_the_user_replace_those_found(parse):
    """They must be an input and an output of one shape, each refused in a sentence."""
    text = """g (float[1,4] a, float[1,4] h_in) => (float[1,4] b, float[1,4] h_out, float[1,5] y) {
        b = Add (a, h_in)
        h_out = Mul (a, h_in)
        y = Concat <axis = 1> (a, h_in)
    }"""
    model = parse(text)

    (pair,) = streams_of(model, {"a": "b"}).pairs
    assert pair == ("a", "b", "by --state")
    for given, sentence in (
        ({"h_inn": "h_out"}, "no input 'h_inn'; did you mean 'h_in'"),
        ({"h_in": "h_ou"}, "no output 'h_ou'; did you mean 'h_out'"),
        ({"h_in": "y"}, r"h_in=y: the input is float32 \[1, 4\], the output float32 \[1, 5\]"),
    ):
        with pytest.raises(InvalidRequest, match=sentence):
            streams_of(model, given)


FAULTS = {
    "h_out: depends on no input but states": f"""g (float[T,1,3] x, float[1,1,2] h_in, {WEIGHTS})
        => (float[T,1,1,2] y, float[1,1,2] h_out) {{
        y = GRU <hidden_size = 2> (x, W, R, , , h_in)
        h_out = Identity (h_in) }}""",
    "h_out: does not depend on the state h_in": f"""g (float[T,1,3] x, float[1,1,2] h_in, {WEIGHTS})
        => (float[T,1,1,2] y, float[1,1,2] h_out) {{
        y = GRU <hidden_size = 2> (x, W, R, , , h_in)
        z, h_out = GRU <hidden_size = 2> (x, W, R) }}""",
    "h_in: is paired with h_out, but the graph carries it into c_out": """
        g (float[T,1,3] x, float[1,1,2] h_in, float[1,1,2] c_in, float[1,8,3] W, float[1,8,2] R)
        => (float[T,1,1,2] y, float[1,1,2] h_out, float[1,1,2] c_out) {
        y, c_out, h_out = LSTM <hidden_size = 2> (x, W, R, , , h_in, c_in) }""",
    "not streamable: no output continues h, the initial_h of node 'GRU_1'": f"""
        g (float[T,N,3] x, float[1,N,2] h, {WEIGHTS}) => (float[T,1,N,2] y) {{
        start = Identity (h)
        y = GRU <hidden_size = 2> (x, W, R, , , start) }}""",
    "x: its axis of time, 0, is frozen to 37 steps": f"""g (float[37,1,3] x, {WEIGHTS})
        => (float[37,1,1,2] y) {{ y = GRU <hidden_size = 2> (x, W, R) }}""",
}


@every("sentence, text", FAULTS.items(), ids=str)
def test_what_makes_streaming_wrong_is_warned_of(parse, sentence, text):
    """Each fault by itself, in a sentence that names the tensor or the node."""
    warnings = streams_of(parse(text)).warnings

    assert any(each.startswith(sentence) for each in warnings), warnings


def test_a_size_like_the_length_is_not_time(parse):
    """Of an axis of 37 that a longer one does not make the sequence longer."""
    text = """g (float[37,1,3] x, float[1,1,37] h, float[1,111,3] W, float[1,111,37] R)
        => (float[37,1,1,37] y) { y = GRU <hidden_size = 37> (x, W, R, , , h) }"""

    (told,) = streams_of(parse(text)).warnings

    assert told.startswith("x: its axis of time, 0, is frozen to 37 steps")


def test_a_batch_that_an_initial_state_fixes_is_not_free(parse):
    """Even if the shape of X is said to be free there; an axis that is named S is time."""
    found = streams_of(
        parse(f"""
        g (float[1,S,3] x, float[1,1,2] h_in, {WEIGHTS})
        => (float[1,1,S,2] y, float[1,1,2] h_out) {{
        y, h_out = GRU <hidden_size = 2> (x, W, R, , , h_in) }}""")
    )

    assert found.batch == {}
    assert {name: (axis.axis, axis.reason) for name, axis in found.time.items()} == {
        "x": (1, "its name")
    }


@every("symbol", ["s77", "s0", "u3", "unk__1", "unk_3", "dim_3", "2*s77 + 1", "Max(1, s5)"])
def test_automatic_names_tell_nothing(parse, symbol):
    """Symbols that exporters make up are neither time nor batch; a recurrent node says it."""
    model = parse(
        "g (float[time,batch,3] x, float[1,A] z) => (float[time,batch,3] y) {y = Relu(x)}"
    )
    for value, axis in (("x", 0), ("z", 1)):
        (found,) = (each for each in model.proto.graph.input if each.name == value)
        found.type.tensor_type.shape.dim[axis].dim_param = symbol

    found = streams_of(model)

    assert found.time == {}
    assert [*found.batch] == ["x"]


@every("is_named", [False, True], ids=["underscores", "names"])
def test_many_states_are_not_compared_each_with_each(parse, monkeypatch, is_named):
    """200 inputs and outputs of one shape: a comparison or two for each."""
    names = [
        (f"s{k}_in", f"s{k}_out") if is_named else ("_" * k, "_" * (k + 200)) for k in range(1, 201)
    ]
    count = Counter()
    is_alike = DataFlow._is_alike

    def counted(flow, begin, end):
        count[begin] += 1
        return is_alike(flow, begin, end)

    monkeypatch.setattr(DataFlow, "_is_alike", counted)
    begins, ends = (
        ", ".join(f"float[1] {name}" for name in each) for each in zip(*names, strict=True)
    )
    nodes = "\n".join(f"{end} = Add (x, {begin})" for begin, end in names)

    found = streams_of(parse(f"g (float[1] x, {begins}) => ({ends}) {{ {nodes} }}"))

    assert [(pair.input, pair.output) for pair in found.pairs] == (names if is_named else [])
    assert count.total() <= 2 * len(names)
