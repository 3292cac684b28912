"""What is made of constants alone is made once; what is fed, or drawn, never is."""

import numpy as np
import pytest

from rnncli.models import constant_folding
from rnncli.models.evaluator import prepare, run
from rnncli.models.schedule import Step
from rnncli.models.session import evaluate_model

CUT = """g (float[2] x) => (float[2] y)
    <float[2,2] w = {1, 2, 3, 4}, int64[1] k = {1}, int64[1] two = {2}>
    { row = Gather (w, k)  flat = Reshape (row, two)  y = Add (x, flat) }"""


@pytest.fixture
def ran(monkeypatch):
    """The operators that ran."""
    seen = []
    step = Step.run
    monkeypatch.setattr(Step, "run", lambda s, v: (seen.append(s.operator.op_type), step(s, v))[1])
    return seen


def test_weights_are_cut_once(parse, ran):
    """By any number of nodes, one after the other."""
    evaluator = prepare(parse(CUT))
    for x in ([0, 0], [1, 1], [2, 3]):
        (y,) = run(evaluator, {"x": np.float32(x)})
        assert y.tolist() == [3 + x[0], 4 + x[1]]

    assert ran == ["Gather", "Reshape", "Add", "Add", "Add"]


def test_what_reads_an_input_is_never_compared(parse):
    """It is known beforehand to vary, and so is all that is made of it."""
    evaluator = prepare(parse(CUT.replace("y = Add (x, flat)", "z = Add (x, flat)  y = Neg (z)")))
    run(evaluator, {"x": np.zeros(2, np.float32)})

    assert len(evaluator._library.folding._made) == 2


def test_initializers_that_are_replaced_are_no_constants(parse):
    """They are told by identity: a run with others is between two runs without."""
    evaluator = prepare(parse(CUT))
    x, other = np.zeros(2, np.float32), np.float32([[5, 6], [7, 8]])

    found = [run(evaluator, {"x": x, **fed})[0].tolist() for fed in ({}, {"w": other}, {})]

    assert found == [[3, 4], [7, 8], [3, 4]]


def test_an_input_is_no_constant_though_nobody_can_write_to_it(parse, ran):
    """A model would fold away, were it fed the same twice."""
    evaluator = prepare(parse("g (float[2] x) => (float[2] y) { a = Neg (x)  y = Neg (a) }"))
    x = np.float32([1, 2])
    x.flags.writeable = False
    for _ in range(2):
        assert run(evaluator, {"x": x})[0].tolist() == [1, 2]

    assert ran == ["Neg"] * 4


def test_bodies_read_the_constants_around_them(parse, ran):
    """A branch runs as often as it is taken; what it makes of outer weights is made once."""
    text = """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
        y = If (c) <then_branch = t () => (p) { n = Neg (w)  p = Add (x, n) },
                    else_branch = e () => (q) { q = Abs (x) }>
    }"""
    evaluator, x = prepare(parse(text)), np.float32([1, 1])
    for taken in (True, False, True):
        wanted = [0, -1] if taken else [1, 1]
        assert run(evaluator, {"x": x, "c": np.array(taken)})[0].tolist() == wanted

    assert ran.count("Neg") == 1


def test_random_numbers_are_drawn_at_each_run(parse, ran):
    """Also where only their shape is given."""
    text = "g () => (float[2] y) <float[2] w = {1, 2}> { y = RandomNormalLike (w) }"
    evaluator = prepare(parse(text))
    for _ in range(3):
        run(evaluator, {})

    assert ran == ["RandomNormalLike"] * 3


def test_what_is_large_is_made_again(parse, ran, monkeypatch):
    """Memory is bounded, and the answer the same."""
    monkeypatch.setattr(constant_folding, "MOST", 7)
    evaluator = prepare(parse(CUT))
    for _ in range(2):
        assert run(evaluator, {"x": np.zeros(2, np.float32)})[0].tolist() == [3, 4]

    assert ran == ["Gather", "Reshape", "Add"] * 2


def test_nobody_writes_to_what_is_kept(parse):
    """An output that was made of constants is locked."""
    text = "g () => (float[2] y) <float[2] w = {1, 2}> { y = Neg (w) }"
    y = evaluate_model(parse(text), {})["y"]

    with pytest.raises(ValueError, match="read-only"):
        y += 1


def test_what_a_loop_carries_varies(parse):
    """Constants at first, then what was made of them: nothing piles up."""
    text = """g (int64 n, bool yes) => (float[2] y) <float[2] w = {1, 2}> {
        y = Loop (n, yes, w) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] t) {
            c2 = Identity (c)  t = Add (s, w) }>
    }"""
    evaluator = prepare(parse(text))
    for count in (3, 1, 4, 0, 3):
        (y,) = run(evaluator, {"n": np.int64(count), "yes": np.array(True)})
        assert y.tolist() == [1 + count, 2 + 2 * count]

    assert len(evaluator._library.folding._constants) <= 4


def test_branches_without_nodes_read_what_is_around_them(parse):
    """Their condition is a constant, what they return is not."""
    text = """g (float[2] x) => (float[2] y) <bool c = {1}> {
        y = If (c) <then_branch = t () => (x) {}, else_branch = e () => (x) {}>
    }"""
    evaluator = prepare(parse(text))
    for x in ([1, 2], [3, 4]):
        assert run(evaluator, {"x": np.float32(x)})[0].tolist() == x
