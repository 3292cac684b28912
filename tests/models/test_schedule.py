"""Claims about how long values live, and about constants, which no node has to make."""

import tracemalloc

import numpy as np
import pytest

from rnncli.models.evaluator import prepare, run
from rnncli.models.sessions import evaluate_model


def test_values_are_forgotten_after_their_last_reader(parse):
    """Fifty additions of a megabyte keep a few megabytes, not fifty."""
    lines = "\n".join(f"x{i + 1} = Add (x{i}, one)" for i in range(50))
    text = f"g (float[N] x0) => (float[N] x50) <float one = {{1}}> {{ {lines} }}"
    evaluator = prepare(parse(text))
    inputs = {"x0": np.zeros(1 << 18, np.float32)}

    tracemalloc.start()
    (total,) = run(evaluator, inputs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (total == 50).all()
    assert peak < 5 << 20


def test_a_value_read_by_a_later_subgraph_is_kept(parse):
    """The last reader of x is inside a branch of the last node."""
    text = """g (float[2] x, bool c) => (float[2] y) {
        a = Neg (x)
        y = If (c) <then_branch = t () => (p) { p = Add (x, a) },
                    else_branch = e () => (x) {}>
    }"""
    model, x = parse(text), np.float32([1, 2])

    assert [0, 0] == evaluate_model(model, {"x": x, "c": np.array(True)})["y"].tolist()
    assert [1, 2] == evaluate_model(model, {"x": x, "c": np.array(False)})["y"].tolist()


SHADOWED = {
    "an outer value read before": (
        """y = If (c) <
            then_branch = t () => (p) {
                q = Neg (x)
                x = Constant <value = seven> ()
                p = Add (q, x)
            },
            else_branch = e () => (x) {}>""",
        {True: 5, False: 2},
    ),
    "an outer value the other branch reads": (
        """y = If (c) <
            then_branch = t () => (x) {},
            else_branch = e () => (p) { x = Constant <value = seven> () p = Neg (x) }>""",
        {True: 2, False: -7},
    ),
    "an outer value a branch inside reads before": (
        """y = If (c) <
            then_branch = t () => (p) {
                q = If (c) <then_branch = s () => (x) {}, else_branch = f () => (x) {}>
                x = Constant <value = seven> ()
                p = Mul (q, x)
            },
            else_branch = e () => (x) {}>""",
        {True: 14, False: 2},
    ),
    "an input": ("w = Neg (x) x = Constant <value = seven> () y = Add (w, x)", {True: 5}),
}


@pytest.mark.parametrize("of", SHADOWED)
def test_a_constant_may_take_the_name(parse, of):
    """A name means a constant from its node on, and what it meant outside before."""
    text, expected = SHADOWED[of]
    text = text.replace("seven", "float {7}")
    model = parse(f"g (float x, bool c) => (float y) {{ {text} }}")

    for chosen, y in expected.items():
        inputs = {"x": np.float32(2).reshape(()), "c": np.array(chosen)}
        assert evaluate_model(model, inputs)["y"] == y


def test_a_constant_may_be_an_output(parse):
    """Constants need no node to run, whoever reads them."""
    model = parse(
        "g (float x) => (float y, float z) { y = Constant <value_float = 3.0> () z = Neg (x) }"
    )

    outputs = evaluate_model(model, {"x": np.float32(2).reshape(())})

    assert [3, -2] == [outputs["y"], outputs["z"]]
