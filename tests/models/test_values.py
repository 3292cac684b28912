"""Claims about values: how long they live, and that what is made of constants is made once."""

import tracemalloc

import numpy as np
import pytest
from onnx import numpy_helper
from support.real_models import run

from rnncli.errors import InvalidRequest
from rnncli.limits import Limits, OutOfMemory
from rnncli.models import evaluator
from rnncli.models.evaluator import prepare
from rnncli.models.sessions import evaluate_model
from rnncli.models.steps import Step

CUT = """g (float[2] x) => (float[2] y)
    <float[2,2] w = {1, 2, 3, 4}, int64[1] k = {1}, int64[1] two = {2}>
    { row = Gather (w, k)  flat = Reshape (row, two)  y = Add (x, flat) }"""


@pytest.fixture
def ran(monkeypatch):
    """The operators that ran."""
    seen, run_step = [], Step.run
    monkeypatch.setattr(
        Step,
        "run",
        lambda step, values: (seen.append(step.operator.op_type), run_step(step, values))[1],
    )
    return seen


def test_weights_are_cut_once(parse, ran):
    """By any number of nodes, one after the other."""
    prepared = prepare(parse(CUT))
    for x in ([0, 0], [1, 1], [2, 3]):
        (y,) = run(prepared, {"x": np.float32(x)})
        assert y.tolist() == [3 + x[0], 4 + x[1]]

    assert ran == ["Gather", "Reshape", "Add", "Add", "Add"]


def test_what_reads_an_input_is_a_step_of_every_run(parse):
    """It is known beforehand to vary, and so is all that is made of it."""
    prepared = prepare(parse(CUT.replace("y = Add (x, flat)", "z = Add (x, flat)  y = Neg (z)")))

    assert [step.operator.op_type for step in prepared._steps] == ["Add", "Neg"]


def test_initializers_that_are_replaced_are_no_constants(parse):
    """They are told by identity: a run with others is between two runs without."""
    prepared = prepare(parse(CUT))
    x, other = np.zeros(2, np.float32), np.float32([[5, 6], [7, 8]])

    found = [run(prepared, {"x": x, **fed})[0].tolist() for fed in ({}, {"w": other}, {})]

    assert found == [[3, 4], [7, 8], [3, 4]]


def test_an_input_is_no_constant_though_nobody_can_write_to_it(parse, ran):
    """A model would fold away, were it fed the same twice."""
    prepared = prepare(parse("g (float[2] x) => (float[2] y) { a = Neg (x)  y = Neg (a) }"))
    x = np.float32([1, 2])
    x.flags.writeable = False
    for _ in range(2):
        assert run(prepared, {"x": x})[0].tolist() == [1, 2]

    assert ran == ["Neg"] * 4


def test_bodies_read_the_constants_around_them(parse, ran):
    """A branch runs as often as it is taken; what it makes of outer weights is made once."""
    text = """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
        y = If (c) <then_branch = t () => (p) { n = Neg (w)  p = Add (x, n) },
                    else_branch = e () => (q) { q = Abs (x) }>
    }"""
    prepared, x = prepare(parse(text)), np.float32([1, 1])
    for taken in (True, False, True):
        wanted = [0, -1] if taken else [1, 1]
        assert run(prepared, {"x": x, "c": np.array(taken)})[0].tolist() == wanted

    assert ran.count("Neg") == 1


def test_random_numbers_are_drawn_at_each_run(parse, ran):
    """Also where only their shape is given."""
    text = "g () => (float[2] y) <float[2] w = {1, 2}> { y = RandomNormalLike (w) }"
    prepared = prepare(parse(text))
    for _ in range(3):
        run(prepared, {})

    assert ran == ["RandomNormalLike"] * 3


def test_what_is_large_is_made_again(parse, ran, monkeypatch):
    """Memory is bounded, and the answer the same."""
    monkeypatch.setattr(evaluator, "MOST_KEPT", 7)
    prepared = prepare(parse(CUT))
    for _ in range(2):
        assert run(prepared, {"x": np.zeros(2, np.float32)})[0].tolist() == [3, 4]

    assert ran == ["Gather", *["Gather", "Reshape", "Add"] * 2]


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
    prepared = prepare(parse(text))
    for count in (3, 1, 4, 0, 3):
        (y,) = run(prepared, {"n": np.int64(count), "yes": np.array(True)})
        assert y.tolist() == [1 + count, 2 + 2 * count]


def test_branches_without_nodes_read_what_is_around_them(parse):
    """Their condition is a constant, what they return is not."""
    text = """g (float[2] x) => (float[2] y) <bool c = {1}> {
        y = If (c) <then_branch = t () => (x) {}, else_branch = e () => (x) {}>
    }"""
    prepared = prepare(parse(text))
    for x in ([1, 2], [3, 4]):
        assert run(prepared, {"x": np.float32(x)})[0].tolist() == x


def test_the_size_of_what_is_made_is_of_this_run(parse):
    """It depends on a value, whatever the shapes of the inputs."""
    text = """g (float[N] x, int64[1] k) => (float y) <int64[1] zero = {0}> {
        a = Neg (x)  part = Slice (a, zero, k)  n = Size (part)  f = Cast <to = 1> (n)
        y = ReduceSum <keepdims = 0> (f)  }"""
    prepared = prepare(parse(text))
    for k in (1, 1, 2, 2, 0, 1):
        fed = {"x": np.float32([1, 2, 3]), "k": np.int64([k])}
        assert run(prepared, fed)[0] == k


@pytest.mark.parametrize(
    "text",
    [
        # Constants that only nodes read which read shapes.
        """g (float[N, K] x) => (int64[1] u, float[M] y) <int64[1] w = {3}> {
            v = Neg (w)  s = Shape <start = 1> (x)  t = Constant <value = int64[1] {2}> ()
            u = Mul (s, t)  a = Sub (u, v)  y = ConstantOfShape (a)  }""",
        """g (float[N, K] x) => (int64[1] u) <int64[1] w = {3}, bool yes = {1}> {
            s = Shape <start = 1> (x)  q = Abs (x)  r = Shape <start = 1> (q)
            u = If (yes) <then_branch = b () => (int64[1] p) { z = Neg (w)  p = Sub (r, z) },
                          else_branch = c () => (int64[1] o) { o = Add (s, w) }>  }""",
    ],
)
def test_other_shapes_find_every_constant(parse, text):
    """Those, too, that only nodes need which read shapes."""
    prepared = prepare(parse(text))
    for shape in ((1, 1), (1, 1), (2, 1), (1, 3), (1, 3), (4, 5), (1, 1), (1, 3)):
        fed = {"x": np.ones(shape, np.float32)}
        wanted = [value.tolist() for value in run(prepare(parse(text)), fed)]
        assert [value.tolist() for value in run(prepared, fed)] == wanted


def test_a_body_reads_shapes_that_grow(parse):
    """Each trip of a loop appends; the size is that of this trip."""
    text = """g (int64 n, bool yes) => (float[N] y, int64[M] sizes) <float[1] w = {1}> {
        y, sizes = Loop (n, yes, w) <body = b (int64 i, bool c, float[K] s)
                                     => (bool c2, float[L] t, int64 size) {
            c2 = Identity (c)  size = Size (s)  t = Concat <axis = 0> (s, w) }>
    }"""
    prepared = prepare(parse(text))
    for count in (20, 3, 5):
        _, sizes = run(prepared, {"n": np.int64(count), "yes": np.array(True)})
        assert sizes.tolist() == [*range(1, count + 1)]


CONV = """g (float[1,1,4] x) => (float[1,1,4] y)
    <float[1,1,3] w = {1, 2, 3}, float[1] b = {10}> { y = Conv <pads = [1, 1]> (x, w, b) }"""


def test_weights_are_laid_out_once_and_may_be_replaced(parse):
    """A kernel's first stage is that of the initializers, not of what is fed for them."""
    prepared, x = prepare(parse(CONV)), np.float32([[[1, 0, 0, 1]]])
    fed = {"w": np.float32([[[0, 1, 0]]])}

    found = [run(prepared, {"x": x, **more})[0] for more in ({}, {}, fed, {}, {})]

    replaced = found.pop(2)
    assert replaced.tolist() == [[[11, 10, 10, 11]]]
    assert {y.tobytes() for y in found} == {np.float32([12, 11, 13, 12]).tobytes()}


def test_a_second_stage_keeps_nothing_of_a_call(parse):
    """Outputs of earlier calls stay as they were, whatever their length."""
    prepared = prepare(parse(CONV.replace("1,1,4", "N,1,L")))
    shapes = [(1, 1, 4), (1, 1, 4), (2, 1, 4), (1, 1, 6), (1, 1, 4)]
    found = [
        run(prepared, {"x": np.full(shape, k, np.float32)})[0] for k, shape in enumerate(shapes)
    ]

    for k, (y, shape) in enumerate(zip(found, shapes, strict=True)):
        inner = [10 + 6 * k] * (shape[-1] - 2)
        assert y.tolist() == [[[10 + 5 * k, *inner, 10 + 3 * k]]] * len(y)


def test_a_prepared_node_makes_nothing_giant(parse):
    """The size of the output is asked for at each call: another call may have less memory."""
    text = "g (float[N] x) => (float[M] y) <int64[2] p = {0, 1000000}> { y = Pad (x, p) }"
    model, inputs = parse(text), {"x": np.ones(3, np.float32)}
    for _ in range(3):
        assert evaluate_model(model, inputs)["y"].size == 1_000_003

    with pytest.raises(OutOfMemory, match=r"node 'Pad_0' \(Pad\): its output takes 3.8 MiB"):
        evaluate_model(model, inputs, limits=Limits(max_memory=2 << 20))


def test_a_first_stage_that_fails_is_the_nodes_error(parse):
    """An initializer that no node can use may be replaced in every call; used, it is refused."""
    text = "g (float[4] x) => (float[N,M] y) <int64 shape = {4}> { y = Reshape (x, shape) }"
    prepared, x = prepare(parse(text)), np.arange(4, dtype=np.float32)
    for _ in range(3):
        (y,) = run(prepared, {"x": x, "shape": np.int64([2, 2])})
        assert y.shape == (2, 2)

    with pytest.raises(InvalidRequest, match=r"node 'Reshape_0' \(Reshape\)"):
        run(prepared, {"x": x})


def test_an_initializer_that_is_replaced_folds_no_more(parse, ran):
    """What does not read it still does, once for the runs that replace it and once for others."""
    text = CUT.replace(
        "y = Add (x, flat)",
        "m = Neg (two)  n = Cast <to = 1> (m)  z = Add (x, flat)  y = Mul (z, n)",
    )
    prepared, x = prepare(parse(text)), np.zeros(2, np.float32)
    for k in range(5):
        (y,) = run(prepared, {"x": x, "w": np.float32([[0, 0], [k, 1]])})
        assert y.tolist() == [-2 * k, -2]
        assert run(prepared, {"x": x})[0].tolist() == [-6, -8]

    assert [ran.count(name) for name in ("Neg", "Cast", "Gather")] == [2, 2, 6]


@pytest.mark.parametrize("fixed", ["x", "scale"])
def test_functions_of_types_read_constants(parse, fixed):
    """ONNX makes such a function when its inputs are known; sizes may differ between calls."""
    text = """g (float[N,C,L] x, float[C] scale) => (float[N,C,L] y)
        <float[4] bias = {0, 1, 2, 3}>
        { y = GroupNormalization <num_groups = 2> (x, scale, bias) }"""
    numbers = np.random.default_rng(0)
    x, scale = (numbers.standard_normal(n, dtype=np.float32) for n in ((2, 4, 3), 4))
    model = parse(text, opset=21)
    for name, values in (("x", x), ("scale", scale)):
        if name == fixed:
            model.proto.graph.initializer.append(numpy_helper.from_array(values, name))
    prepared = prepare(model)
    for rows in (2, 2, 2, 1, 1, 2) if fixed == "scale" else (2,) * 5:
        fed = {"x": x[:rows], "scale": scale}
        (y,) = run(prepared, {name: fed[name] for name in fed if name != fixed})
        grouped = x[:rows].reshape(rows, 2, -1).astype(np.float64)
        grouped -= grouped.mean(-1, keepdims=True)
        grouped /= np.sqrt((grouped**2).mean(-1, keepdims=True) + 1e-5)
        wanted = grouped.reshape(rows, 4, 3) * scale[:, None] + np.arange(4)[:, None]
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


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
