"""Claims about the sizes that nobody gave: the smallest at which a model's nodes run."""

import warnings

import numpy as np
import pytest
from onnx import parser

from rnncli.errors import Exhausted, InvalidRequest, RnncliWarning
from rnncli.judging.tolerances.tolerance import EXACT
from rnncli.limits import OutOfMemory
from rnncli.models.generated_inputs import InputRecipe
from rnncli.models.loading import model_from
from rnncli.running import sizing
from rnncli.running.execution import execute, run_model
from rnncli.running.request import Request
from rnncli.running.sizing import LARGEST_TRY, MOST_ELEMENTS, MOST_TRIES

HEADER = '<ir_version: 8, opset_import: ["" : 17, "pkg" : 1]>\n'


def model_of(text):
    """Return a model that messages call m.onnx."""
    return model_from(parser.parse_model(HEADER + text), "m.onnx")


def ran(text, **asked):
    """Run a model as `rnncli run` does; return its inputs' shapes and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (run,) = run_model(model_of(text), Request(tolerance=EXACT, **asked))
    shapes = {name: values.shape for name, values in run.inputs.items()}
    return shapes, [str(warning.message) for warning in caught]


WINDOW = """g (float[batch, 1, seq] x) => (y) <float[1] one = {1}, int64[3] sizes = {1, 1, 25}> {
    k = Expand (one, sizes)
    y = Conv <dilations = [3], pads = [1, 1]> (x, k)
}"""


def test_a_window_is_filled():
    """25 taps, 3 apart, are 73 steps of which the padding gives 2; the batch stays 1."""
    shapes, (ones, found) = ran(WINDOW)

    assert shapes == {"x": (1, 1, 71)}
    assert ones == "m.onnx: assumed to be 1: batch (--dim batch=N)"
    assert found == (
        "m.onnx: assumed to be 71: seq (--dim seq=N), the smallest found at which "
        "node 'Conv_1' (Conv) runs"
    )


def test_what_was_asked_for_is_left_alone():
    """A size of --dim that does not run is an error, which names one that does."""
    sentence = r"node 'Conv_1' .*inputs were generated for x .*; it runs with --dim seq=128$"
    with pytest.raises(InvalidRequest, match=sentence):
        ran(WINDOW, dims={"seq": 9})
    with pytest.raises(InvalidRequest, match=r"; try --dim batch=N or --dim seq=N or --shape x="):
        ran(WINDOW, shapes={"x": (1, 1, 9)})

    assert ran(WINDOW, dims={"seq": 80, "batch": 2}) == ({"x": (2, 1, 80)}, [])


FUNCTION = """<domain: "pkg", opset_import: ["" : 17]> f (a) => (b) {
    s = Constant <value = int64[2] {-1, 12}> () b = Reshape (a, s)
}"""
SIZED = {
    "both sides of an image": (
        "g (float[n, 1, ?, ?] x) => (y) { y = MaxPool <kernel_shape = [5, 5]> (x) }",
        (1, 1, 5, 5),
    ),
    "an image behind strides": (
        """g (float[n, 1, ?, ?] x) => (y) <float[1] one = {1}, int64[4] s = {1, 1, 3, 3}> {
            k = Expand (one, s)
            a = Conv <strides = [4, 4], pads = [1, 1, 1, 1]> (x, k)
            y = MaxPool <kernel_shape = [2, 2]> (a)
        }""",
        (1, 1, 5, 5),
    ),
    "as many as there are weights": (
        """g (float[n, k] x) => (y) <float[1] a = {1}, int64[2] s = {37, 2}> {
            w = Expand (a, s) y = MatMul (x, w)
        }""",
        (1, 37),
    ),
    "as many as there are weights behind strides": (
        """g (float[n, 1, ?, ?] x) => (y) <float[1] a = {1}, int64[2] s = {81, 2}> {
            p = MaxPool <kernel_shape = [4, 4], strides = [4, 4]> (x)
            f = Flatten (p)  w = Expand (a, s)  y = MatMul (f, w)
        }""",
        (1, 1, 36, 36),
    ),
    "parts": (
        """g (float[n] x) => (y, z) <int64[2] s = {50, 70}> { y, z = Split (x, s) }""",
        (120,),
    ),
    "others beside it": (
        """g (float[n, 3] x) => (y) <float[1] a = {1}, int64[2] s = {41, 2}> {
            w = Expand (a, s)  y = Concat <axis = 1> (x, w)
        }""",
        (41, 3),
    ),
    "a multiple": (
        "g (float[n] x) => (y) <int64[2] s = {-1, 90}> { y = Reshape (x, s) }",
        (90,),
    ),
    "an index": (
        "g (float[n, 2] x) => (y) <int64[1] i = {40}> { y = Gather (x, i) }",
        (41, 2),
    ),
    "in a function": (
        "g (float[n] x) => (y) { y = pkg.f (x) }\n" + FUNCTION,
        (12,),
    ),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_size_is_found_for(name):
    """Whatever the node is: its own numbers, small ones and powers of two are tried."""
    text, shape = SIZED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ran(text)[0]["x"] == shape


def test_one_node_after_the_other():
    """The sizes of one node are kept for the next; the larger one is told of."""
    shapes, said = (
        ran("""g (float[n] x, float[m] z) => (v, w) <int64[2] p = {-1, 6}, int64[2] q = {-1, 4}> {
        a = Reshape (x, p)  v = Reshape (x, q)  w = Reshape (z, q)
    }""")
    )

    assert shapes == {"x": (12,), "z": (4,)}
    assert [text.split(",")[0] for text in said] == [
        "m.onnx: assumed to be 12: n (--dim n=N)",
        "m.onnx: assumed to be 4: m (--dim m=N)",
    ]


def test_where_nothing_helps_the_telling_dimension_comes_first():
    """A batch of another size fails in the same way, a longer sequence in another."""
    text = """g (float[a_batch, seq] x, float[other] z) => (y, v) {
        t = Constant <value = int64[1] {70001}> ()  c = ConstantOfShape (t)
        s = Shape <start = 1> (x)  y = Reshape (c, s)  v = Neg (z)
    }"""
    with pytest.raises(InvalidRequest) as caught:
        ran(text)

    assert "inputs were generated for x float32 [a_batch, seq]; try --dim seq=N or" in str(
        caught.value
    )
    assert "other" not in str(caught.value)


def test_inputs_that_are_given_are_told_where_a_node_does_not_run():
    """Their sizes may be the fault, which no option of generated ones mends."""
    text = """g (float[T] x, float[N, 2] z) => (y) {
        y = MatMul (z, x)
    }"""
    with pytest.raises(InvalidRequest, match=r"x is given as \[3\], which may not be a size that"):
        ran(text, input_files={"x": "[0, 0, 0]"})


@pytest.mark.parametrize(
    ("shape", "dims", "advice"),
    [
        ([1, 2], {}, "no other size that was tried mends it"),
        ([1, 2], {"N": 3}, "no other size that was tried mends it"),
        ([1, 1, 2], {"T": 4, "N": 3}, "it runs with --dim N=1"),
        ([1, 1, 3], {"N": 1}, "no other size that was tried mends it"),
    ],
)
def test_only_sizes_that_could_mend_a_failure_are_named(shape, dims, advice):
    """A constant of a wrong rank or width is of no other size in a longer or wider stream."""
    text = f"""g (float[T, N, 3] x) => (y) <float[1] one = {{1}}, int64[3] w = {{1, 6, 3}},
        int64[3] r = {{1, 6, 2}}, int64[{len(shape)}] k = {{{", ".join(map(str, shape))}}}> {{
        W = Expand (one, w)  R = Expand (one, r)  h = ConstantOfShape (k)
        y = GRU <hidden_size = 2> (x, W, R, "", "", h)
    }}"""
    with pytest.raises(InvalidRequest) as caught:
        ran(text, dims=dims)

    assert str(caught.value).endswith(f"inputs were generated for x float32 [T, N, 3]; {advice}")


def test_a_size_that_only_moves_what_is_wrong_is_not_named():
    """A state of the batch of X but of another width is so at any batch."""
    text = """g (float[T, N, 3] x) => (y) <float[1] one = {1}, int64[3] w = {1, 6, 3},
        int64[3] r = {1, 6, 2}, int64[1] D = {1}, int64[1] H = {5}> {
        W = Expand (one, w)  R = Expand (one, r)  n = Shape <start = 1, end = 2> (x)
        k = Concat <axis = 0> (D, n, H)  h = ConstantOfShape (k)
        y = GRU <hidden_size = 2> (x, W, R, "", "", h)
    }"""
    with pytest.raises(InvalidRequest, match="no other size that was tried mends it"):
        ran(text)


def test_the_search_is_bounded(monkeypatch):
    """What no size mends ends after so many runs, none of them on many elements."""
    sizes = []
    original = InputRecipe.make

    def make(self, *args, **options):
        inputs = original(self, *args, **options)
        sizes.append(sum(values.size for values in inputs.values()))
        return inputs

    monkeypatch.setattr(InputRecipe, "make", make)
    text = """g (float[n, 3, ?, ?] x) => (y) <int64[1] s = {-2}> {
        t = Shape (x)  u = Mul (t, s)  y = ConstantOfShape (u)
    }"""
    with pytest.raises(InvalidRequest, match=r"negative dimensions .*; no other size that"):
        ran(text)

    assert len(sizes) < MOST_TRIES + 20
    assert max(sizes) <= LARGEST_TRY
    assert sum(sizes) < MOST_ELEMENTS + LARGEST_TRY


@pytest.mark.parametrize(("kind", "most"), [(OutOfMemory, 12), (Exhausted, 3)])
def test_a_run_that_has_used_up_what_it_may_take_is_over(monkeypatch, kind, most):
    """No larger size is tried after memory has run out, and nothing at all after time has."""
    ran_on, original = [], sizing.prepare

    def prepared(*asked, **settings):
        evaluator = original(*asked, **settings)
        outputs = evaluator.outputs

        def spent(inputs):
            ran_on.append(inputs)
            if len(ran_on) >= 3:
                raise kind("spent")
            return outputs(inputs)

        evaluator.outputs = spent
        return evaluator

    monkeypatch.setattr(sizing, "prepare", prepared)
    with pytest.raises(InvalidRequest, match="spent" if kind is Exhausted else "window of"):
        ran(WINDOW)

    assert len(ran_on) <= most


def test_an_observer_sees_the_run_that_succeeds():
    """`extract` captures no node of a run on sizes that did not do."""
    text = """g (float[T,1,2] x) => (y) <int64[2] p = {-1, 12}, float[1,3,2] W = {1,2,3,4,5,6},
            float[1,3,3] R = {1,2,3,4,5,6,7,8,9}> {
        h = RNN <hidden_size = 3> (x, W, R)
        y = Reshape (h, p)
    }"""
    seen = []
    with pytest.warns(RnncliWarning, match="assumed to be 4: T"):
        (run,) = run_model(model_of(text), Request(tolerance=EXACT), seen.append)

    assert [occurrence.inputs["X"].shape for occurrence in seen] == [(4, 1, 2)]
    assert np.shape(run.outputs["y"]) == (1, 12)


def test_errors_of_no_node_get_no_advice_on_shapes(tmp_path):
    """An unknown input is found before the model runs, and shapes have no part in it."""
    np.save(tmp_path / "c.npy", np.zeros(3, np.float32))
    request = Request(tolerance=EXACT, input_files={"xx": str(tmp_path / "c.npy")})
    with pytest.raises(InvalidRequest, match=r"no input 'xx'; did you mean 'x'\?$"):
        list(run_model(model_of(WINDOW), request))


STREAM = """g (float[seq, batch, 2] x, float[1, batch, 2] h) => (y)
<float[1, 2, 2] w = {1, 2, 3, 4}> { y = RNN <hidden_size = 2> (x, w, w, "", "", h) }"""
FROZEN = STREAM.replace("h) }", "k) }").replace("4}>", "4}, float[1, 1, 2] k = {1, 2}>")


@pytest.mark.parametrize(
    ("text", "shape", "told"),
    [
        (STREAM, (16, 3, 2), []),
        (FROZEN, (16, 1, 2), ["is not judged at 'seq' = 16 and 'batch' = 3, where it"]),
        (
            WINDOW.replace("float[1] one", "float[1] two = {2}, float[1] one"),
            (3, 1, 71),
            ["is not"],
        ),
    ],
    ids=["free", "frozen batch", "window"],
)
def test_what_is_judged_has_steps_and_sequences(text, shape, told):
    """At one step of one sequence a recurrent product, a length or a direction cannot be wrong."""
    shapes, warned = ran(text, judged=True)

    assert shapes["x"] == shape
    assert [text in message for text, message in zip(told, warned, strict=False)] == [True] * len(
        told
    )
    assert all("--dim" in message for message in warned[len(told) :])


def test_sizes_that_are_given_stay():
    """Also where a model is judged."""
    shapes, _ = ran(STREAM, judged=True, dims={"seq": 2})

    assert shapes["x"] == (2, 3, 2)


def test_expected_outputs_say_sizes(tmp_path):
    """Inputs that are made have those of the outputs, by the names of dimensions."""
    text = STREAM.replace("=> (y)", "=> (float[seq, 1, batch, 2] y)")
    np.savez(tmp_path / "y.npz", y=np.zeros((5, 1, 2, 2), np.float32))
    request = Request(tolerance=EXACT, expected_from=f"{tmp_path}/y.npz")
    with pytest.warns(RnncliWarning, match="inputs are generated, and .* must come from the same"):
        (run,) = execute(model_of(text), request)

    assert run.outputs["y"].shape == (5, 1, 2, 2)


def test_a_step_of_a_sequence_that_is_expected_is_told(tmp_path):
    """No state, direction or other sequence can be wrong in it; sizes of the model are its own."""
    text = STREAM.replace("=> (y)", "=> (float[seq, 1, batch, 2] y)")
    np.savez(tmp_path / "y.npz", y=np.zeros((1, 1, 1, 2), np.float32))
    request = Request(tolerance=EXACT, expected_from=f"{tmp_path}/y.npz", seed=0)
    with pytest.warns(RnncliWarning) as caught:
        (run,) = execute(model_of(text), request)
    fixed = text.replace("[seq, ", "[1, ").replace("batch, ", "1, ")

    assert run.outputs["y"].shape == (1, 1, 1, 2)
    assert [str(each.message).partition(" at ")[2] for each in caught] == [
        "seq = 1: one step shows nothing of states, directions and lengths",
        "batch = 1: one sequence shows nothing of another",
    ]
    assert [*execute(model_of(fixed), request)]
