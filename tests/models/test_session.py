"""Claims about evaluators that are kept with their model."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from real_models import PATHS, recorded

from rnncli.errors import InvalidRequest
from rnncli.models import evaluator
from rnncli.models.loading import load_model
from rnncli.models.session import MOST_KEPT, evaluate_model

TEXT = "g (float[n] x) => (y) <float[1] k = {2}> { y = Mul (x, k) }"
RNN = """g (float[T,1,2] x) => (y) <float[1,2,2] W = {1,2,3,4}, float[1,2,2] R = {1,2,3,4}> {
    y = RNN <hidden_size = 2> (x, W, R)
}"""
X = {"x": np.float32([1, 2, 3])}


@pytest.fixture
def prepared(monkeypatch):
    """A list that grows by the options of each preparation."""
    asked, original = [], evaluator.prepare

    def counted(model, **options):
        asked.append(options)
        return original(model, **options)

    monkeypatch.setattr(evaluator, "prepare", counted)
    return asked


def test_a_second_call_prepares_nothing(parse, prepared):
    """Of each arithmetic there is one evaluator, and of each model."""
    model, other = parse(TEXT), parse(TEXT)
    for _ in range(3):
        evaluate_model(model, X)
        evaluate_model(model, X, compute="native")
        evaluate_model(other, X)

    assert [options["compute"] for options in prepared] == ["float64", "native", "float64"]


def test_a_model_is_given_in_any_form(parse, tmp_path):
    """Loaded, as a protobuf, which is not changed, serialized, or by its path; nothing else."""
    proto = parse(TEXT).proto
    content, path = proto.SerializeToString(), tmp_path / "model.onnx"
    path.write_bytes(content)

    forms = [load_model(path), proto, content, path, str(path)]

    assert [evaluate_model(each, X)["y"].tolist() for each in forms] == [[2, 4, 6]] * len(forms)
    assert proto.SerializeToString() == content
    for wrong in (3, None, [path], X):
        with pytest.raises(
            InvalidRequest, match=f"model or the path of one, got a {type(wrong).__name__}"
        ):
            evaluate_model(wrong, X)
    with pytest.raises(InvalidRequest, match="bytes that were given are not a model"):
        evaluate_model(b"nothing", X)


@pytest.mark.parametrize("name", [n for n in ("silero_vad_16k_op15", "model_1") if n in PATHS])
@pytest.mark.parametrize("compute", ["float64", "native"])
def test_later_calls_give_the_bits_of_the_first(name, compute):
    """And outputs that were returned are nobody's scratch memory."""
    inputs, _ = recorded(PATHS[name])
    model, fresh = load_model(PATHS[name]), load_model(PATHS[name])
    others = {k: v[..., ::-1] if v.ndim else v for k, v in inputs.items()}

    first = evaluate_model(model, inputs, compute=compute)
    copies = {name: values.copy() for name, values in first.items()}
    evaluate_model(model, others, compute=compute)
    again = evaluate_model(model, inputs, compute=compute)
    anew = evaluate_model(fresh, others, compute=compute)
    repeated = evaluate_model(model, others, compute=compute)

    for output, values in copies.items():
        assert np.array_equal(first[output], values)
        assert np.array_equal(again[output], values)
        assert np.array_equal(anew[output], repeated[output])


def test_threads_do_not_share_an_evaluator():
    """Eight at a time give what one gives, each for its own inputs."""
    path = PATHS["silero_vad_16k_op15"]
    inputs, _ = recorded(path)
    several = [inputs | {"input": inputs["input"] / (k + 1)} for k in range(24)]
    model = load_model(path)
    alone = [evaluate_model(model, each) for each in several]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda each: evaluate_model(model, each), several))

    for one, other in zip(alone, together, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_is_kept_is_bounded_and_dies_with_the_model(parse, monkeypatch):
    """No more than a few arithmetics; a model that nobody holds leaves nothing behind."""
    model, seen, original = parse(RNN), [], evaluator.Evaluator.outputs

    def outputs(self, *args, **options):
        seen.append(weakref.ref(self))
        return original(self, *args, **options)

    monkeypatch.setattr(evaluator.Evaluator, "outputs", outputs)
    for compute, zero, order in product(
        ("float64", "native"), ("zero", "initial"), ("queue", "positional")
    ):
        readings = {"zero-length": zero, "alpha-order": order}
        evaluate_model(model, {"x": np.ones((3, 1, 2), "f")}, compute=compute, readings=readings)
    gc.collect()
    assert len(seen) == 8
    assert sum(each() is not None for each in seen) == MOST_KEPT

    del model
    assert not any(each() for each in seen)


def test_a_failed_call_leaves_the_next_one_sound(parse):
    """What failed halfway is not used again."""
    model = parse("g (float[n] x, float[m] z) => (y) { y = Add (x, z) }")
    good = {"x": X["x"], "z": X["x"]}
    for _ in range(2):
        assert evaluate_model(model, good)["y"].tolist() == [2, 4, 6]
        with pytest.raises(InvalidRequest):
            evaluate_model(model, good | {"z": np.float32([1, 2])})


def test_an_altered_model_is_made_anew(parse):
    """As the docstring says: what was prepared is of the protobuf as it was."""
    model = parse(TEXT)
    assert evaluate_model(model, X)["y"].tolist() == [2, 4, 6]
    model.proto.graph.node[0].op_type = "Add"

    assert evaluate_model(replace(model), X)["y"].tolist() == [3, 4, 5]


@pytest.mark.parametrize("opset", [17, 22])
def test_numbers_drawn_are_the_same_in_every_call(parse, opset):
    """Nodes without a seed draw the same whenever the model runs, and others in each step."""
    model = parse(
        """g (int64 n) => (ys, z) {
            yes = Constant <value = bool {1}> ()
            z = RandomNormal <shape = [3]> ()
            ys = Loop (n, yes) <body = b (int64 i, bool c) => (bool d, float[3] y) {
                d = Identity (c)  y = RandomUniform <shape = [3]> ()
            }>
        }""",
        opset=opset,
    )
    first, second = (evaluate_model(model, {"n": np.array(2)}) for _ in range(2))

    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["ys"][0], first["ys"][1])
