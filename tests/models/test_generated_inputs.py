"""Claims about inputs: given ones fit the graph, made ones are what its nodes can use."""

import numpy as np
import pytest
from support.real_models import PATHS

from rnncli.errors import InvalidRequest, RnncliWarning, Unsupported
from rnncli.models.generated_inputs import InputRecipe
from rnncli.models.loading import load_model, model_from
from rnncli.models.model import check_inputs
from rnncli.models.sessions import evaluate_model

BODY = "(float[batch,3] x, int64[2] n) => (float[batch,3] y) { y = Identity (x) }"
X, N = np.zeros((5, 3), np.float32), np.zeros(2, np.int64)


def generate_inputs(model, given=None, **asked):
    """Complete the inputs of a model; unknown sizes are 1."""
    return InputRecipe(model, given, **asked).make({})


def unknown_sizes(model):
    """The sizes that nothing gives, with the options that would."""
    sizes = InputRecipe(model).sizes
    return sizes.listed(sizes.free)


MISFITS = {
    "unknown": ({"x": X, "n": N, "xx": X}, "no input 'xx'; did you mean 'x'"),
    "far": ({"x": X, "n": N, "weights": X}, r"no input 'weights'; it has x float32 \[batch, 3\]"),
    "missing": ({"x": X}, r"missing inputs: n int64 \[2\]"),
    "dtype": (
        {"x": X.astype(float), "n": N},
        r"got float64 \[5, 3\]; `values.astype\('float32'\)` in NumPy gives that type",
    ),
    "list": ({"x": [[1.0, 2.0, 3.0]], "n": N}, "got a value of list, not an array"),
    "rank": ({"x": X[0], "n": N}, r"'x' must be float32 \[batch, 3\], got float32 \[3\]"),
    "size": ({"x": X.T, "n": N}, r"'x' must be float32 \[batch, 3\], got float32 \[3, 5\]"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_given_inputs_are_checked(parse, misfit):
    """Names, dtypes, ranks and fixed sizes, with what the graph declares."""
    inputs, sentence = MISFITS[misfit]

    with pytest.raises(InvalidRequest, match=f"m.onnx: .*{sentence}"):
        check_inputs(parse("g " + BODY), inputs)


def test_fitting_inputs_pass(parse):
    """A symbolic dimension takes any size, zero too."""
    check_inputs(parse("g " + BODY), {"x": X, "n": N})
    check_inputs(parse("g " + BODY), {"x": X[:0], "n": N})


def test_minus_one_is_any_size(parse):
    """Paddle declares -1 where it knows nothing."""
    proto = parse("g " + BODY).proto
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1

    check_inputs(model_from(proto), {"x": X, "n": N})


def test_sizes_that_nothing_gives_become_one(parse):
    """They are listed by every symbol, and the option that sets it."""
    model = parse("g (float[batch,?,3] x, float[seq,batch] z) => (y) { y = Add (x, z) }")

    inputs = generate_inputs(model)

    assert (inputs["x"].shape, inputs["z"].shape) == ((1, 1, 3), (1, 1))
    for words in ("--dim batch=N", "--dim seq=N", "--shape x="):
        assert words in unknown_sizes(model)


def test_sizes_come_from_options_and_given_inputs(parse):
    """A symbol has one size: that of --dim, of a given input, or of another --shape."""
    model = parse("g (float[N,3] x, float[N,M] z, float[K] k) => (y) { y = Add (x, z) }")

    by_dims = generate_inputs(model, dims={"N": 4, "M": 2, "K": 0})
    by_given = generate_inputs(model, {"x": X}, dims={"M": 2, "K": 1})
    by_shape = generate_inputs(model, shapes={"z": (7, 2)}, dims={"K": 1})

    assert [(4, 3), (4, 2), (0,)] == [values.shape for values in by_dims.values()]
    assert by_given["x"] is X
    assert by_given["z"].shape == (5, 2)
    assert by_shape["x"].shape == (7, 3)


TWICE = "g (float[N,3] x, float[N,3] z, float[N] w) => (y) { y = Identity (x) }"


def test_data_may_contradict_a_name(parse):
    """A name that stands twice is no more than a name: ONNX Runtime takes two sizes of it."""
    with pytest.warns(RnncliWarning, match=r"m\.onnx: dimension N is 4 in z and 5 elsewhere"):
        inputs = generate_inputs(parse(TWICE), {"x": X}, shapes={"z": (4, 3)})

    assert [(5, 3), (4, 3), (5,)] == [values.shape for values in inputs.values()]


@pytest.mark.parametrize("unknown", ["?", "None", "-1", "unk", "dynamic", " Unknown"])
def test_an_unknown_size_is_one_at_each_place(parse, unknown):
    """Exporters write a word for unknown wherever they know no size; each is a dimension."""
    proto = parse("g (float[a,b,3] x) => (y) { y = Identity (x) }").proto
    for dimension in proto.graph.input[0].type.tensor_type.shape.dim[:2]:
        dimension.dim_param = unknown
    model = model_from(proto, "m.onnx")

    assert generate_inputs(model, shapes={"x": (2, 5, 3)})["x"].shape == (2, 5, 3)
    assert generate_inputs(model)["x"].shape == (1, 1, 3)
    assert unknown_sizes(model) == "dimensions 0 and 1 of x (--shape x=N,N,3)"


def test_a_counted_unknown_size_is_a_symbol(parse):
    """Each number of tf2onnx is one dimension, so --dim can name it."""
    model = parse("g (float[unk__12, unk__13] x) => (y) { y = Identity (x) }")

    made = generate_inputs(model, dims={"unk__12": 3, "unk__13": 2})

    assert made["x"].shape == (3, 2)


WRONG = {
    "shape of nothing": ({"shapes": {"xx": (1, 3)}}, "no input 'xx'.*did you mean 'x'"),
    "rank": ({"shapes": {"x": (1, 2, 3)}}, r"cannot have the shape \[1, 2, 3\]"),
    "fixed size": ({"shapes": {"x": (1, 4)}}, r"must be float32 \[batch, 3\]"),
    "negative": ({"dims": {"batch": -1}}, "must not be negative"),
    "giant": ({"dims": {"batch": 10**12}}, r"takes .* TiB, and at most 768.0 MiB"),
    "symbol": ({"dims": {"bach": 2}}, "no symbolic dimension 'bach'; did you mean 'batch'"),
    "contradiction": ({"dims": {"batch": 2}, "shapes": {"x": (3, 3)}}, "batch is 3 .* by --dim"),
    "no name": ({"dims": {"?": 2}}, "'[?]': it only says that a size is unknown; give --shape"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_options_are_refused(parse, wrong):
    """Before anything is made."""
    options, sentence = WRONG[wrong]

    with pytest.raises(InvalidRequest, match=f"m.onnx: .*{sentence}"):
        generate_inputs(parse("g " + BODY), **options)


@pytest.mark.parametrize("text", ["string[1] x", "seq(float[1]) x", "float x"])
def test_what_cannot_be_made_is_named(parse, text):
    """Strings and sequences must be given; a scalar is made."""
    model = parse(f"g ({text}) => (y) {{ y = Identity (x) }}")
    if text == "float x":
        model.proto.graph.input[0].type.tensor_type.ClearField("shape")
        with pytest.raises(InvalidRequest, match=r"declares no shape; give --shape x=\.\.\."):
            generate_inputs(model)
        assert generate_inputs(model, shapes={"x": (2, 3)})["x"].shape == (2, 3)
    else:
        with pytest.raises(Unsupported, match=r"input 'x' is .*; pass it"):
            generate_inputs(model)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "double", "uint8", "int8", "bool"])
def test_made_values_have_the_declared_dtype(parse, dtype):
    """The same seed gives the same values, another seed others."""
    model = parse(f"g ({dtype}[40] x) => (y) {{ y = Identity (x) }}", opset=22)

    first, again, other = (generate_inputs(model, seed=seed)["x"] for seed in (1, 1, 2))

    check_inputs(model, {"x": first})
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


LENGTHS = """g (float[T,N,3] X, int64[N] lens, float[1,6,3] W, float[1,6,2] R) => (h) {
    a = Cast <to = 6> (lens)
    b = Identity (a)
    unused, h = GRU <hidden_size: int = 2> (X, W, R, "", b)
}"""


def test_lengths_are_valid(parse):
    """What feeds sequence_lens, also through Cast, is within 1..T and begins with T."""
    lens = generate_inputs(parse(LENGTHS), dims={"T": 9, "N": 40})["lens"]

    assert lens[0] == 9
    assert lens.min() >= 1
    assert sorted(lens, reverse=True) == lens.tolist()
    assert len(set(lens.tolist())) > 3


def test_lengths_of_openvino_nodes_and_of_layout_1(parse):
    """T is X's second dimension there."""
    text = """g (float[N,T,3] X, float[2,1,5] H, int64[N] lens, float[1,5,3] W, float[1,5,5] R,
                 float[1,5] B) => (Y) {
        Y, Ho = org.openvinotoolkit.RNNSequence
            <hidden_size: int = 5, direction: string = "forward"> (X, H, lens, W, R, B)
    }"""
    vino = parse(text, more=', "org.openvinotoolkit" : 5')
    onnx_model = parse(
        LENGTHS.replace("[T,N,3]", "[N,T,3]").replace("hidden_size", "layout: int = 1, hidden_size")
    )

    for model in (vino, onnx_model):
        assert generate_inputs(model, dims={"T": 7, "N": 2})["lens"][0] == 7


def test_packed_sequences_end_where_some_can(parse):
    """What feeds cumulative lengths rises from 0 to the number of tokens."""
    text = """g (float[P,2] X, float[2,1,3] W, int32[4] ends, float[3,2,2] S) => (Y) {
        Y, F = com.microsoft.VarlenCausalConvWithState (X, W, ends, "", S)
    }"""
    model = parse(text, more=', "com.microsoft" : 1')

    assert generate_inputs(model, dims={"P": 9})["ends"].tolist() == [0, 2, 5, 9]


INTEGERS = {
    "index": ("float[7,2] t, int64[50] i", "Gather (t, i)", (0, 6)),
    "index of an axis": ("float[2,5] t, int32[50] i", "Gather <axis: int = 1> (t, i)", (0, 4)),
    "index after reshape": (
        "float[3,2] t, int64[50] i",
        "Gather (t, j)",
        (0, 2),
        "m = Constant <value = int64[1] {-1}> () j = Reshape (i, m)",
    ),
    "compared": ("int64 i", "Equal (i, k)", (8000, 8000), "k = Constant <value = int64 {8000}> ()"),
    "class": (
        "int64[50] i",
        "OneHot (i, k, v)",
        (0, 3),
        "k = Constant <value = int64 {4}> () v = Constant <value = float[2] {0, 1}> ()",
    ),
    "sample rate": ("int64 sr", "Neg (sr)", (16000, 16000)),
    "any": ("int64[50] i", "Neg (i)", (0, 9)),
}


@pytest.mark.parametrize("use", INTEGERS)
def test_integers_are_what_their_readers_can_use(parse, use):
    """Indices exist, classes too, compared numbers are equal; others are small."""
    inputs, line, bounds, *before = INTEGERS[use]
    model = parse(f"g ({inputs}) => (y) {{ {' '.join(before)} y = {line} }}")

    made = list(generate_inputs(model).values())[-1]

    assert (made.min(), made.max()) == bounds


@pytest.mark.parametrize("name", PATHS)
def test_real_models_run_on_made_inputs(name):
    """With sizes for their symbols, every real model at hand runs, and no output is NaN."""
    sizes = {"batch": 3, "seq": 8, "sequence": 576, "src_len": 6, "unk__1206": 4, "unk__1207": 5}
    model = load_model(PATHS[name])
    symbols = {
        dim.dim_param for value in model.inputs for dim in value.type.tensor_type.shape.dim
    } - {""}

    outputs = evaluate_model(model, generate_inputs(model, dims={s: sizes[s] for s in symbols}))

    for values in outputs.values():
        assert np.isfinite(values.astype(float)).all()
