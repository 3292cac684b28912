"""Recurrent nodes in bodies of OpenVINO's loops and conditions, as they run in them.

What OpenVINO itself gives for every trip is the oracle: the state that one trip leaves is the state
that the next one reads.
"""

import subprocess
import sys

import numpy as np
import openvino
import pytest
from openvino import opset3, opset5, opset8

from rnncli.errors import InvalidRequest
from rnncli.judging.tolerances.tolerance import EXACT
from rnncli.models.ir_model import read_ir
from rnncli.models.loading import IR
from rnncli.running.ir_execution import openvino_core, run_ir
from rnncli.running.request import Request

N, I, H = 2, 4, 5  # noqa: E741 -- the specification's letter
DRAWN = np.random.default_rng(3)
W, R, B = (DRAWN.uniform(-1, 1, (1, *s)).astype("f") for s in ((H, I), (H, H), (H,)))


def parameter(shape, name, dtype=np.float32):
    """An input with a name."""
    node = opset5.parameter(shape, dtype, name)
    node.output(0).tensor.set_names({name})
    return node


def sequence(x, h, steps, weights=None, name="rnn"):
    """A node that walks some steps from a state."""
    lengths = opset5.constant(np.full(N, steps, np.int32))
    w, r, b = weights or map(opset5.constant, (W, R, B))
    return opset5.rnn_sequence(x, h, lengths, w, r, b, H, "forward", ["tanh"], [], [], name=name)


def iterator(steps, *, backward=False, weights=None):
    """A TensorIterator over 6 steps of X; its results are the states after each trip."""
    outer = parameter([N, 6, I], "X")
    x, h = opset5.parameter([N, steps, I], np.float32), opset5.parameter([N, 1, H], np.float32)
    inner = [opset5.parameter(v.shape, np.float32) for v in (W, R, B)] if weights else []
    state = opset5.result(sequence(x, h, steps, inner).output(1))
    body = openvino.Model([state], [x, h, *inner], "body")
    loop = opset5.tensor_iterator()
    loop.set_friendly_name("loop")
    loop.set_function(body)
    ends = (-1, -steps, steps, 0) if backward else (0, steps, steps, -1)
    loop.set_sliced_input(x, outer.output(0), *ends, 1)
    loop.set_merged_input(h, opset5.constant(np.zeros([N, 1, H], "f")).output(0), state.output(0))
    for each, values in zip(inner, (W, R, B), strict=bool(inner)):
        loop.set_invariant_input(each, weights(values).output(0))
    states = loop.get_concatenated_slices(state.output(0), 0, 1, 1, -1, 1)
    return openvino.Model([opset5.result(states)], [outer], "m")


def counting(*, is_conditional):
    """A Loop of at most `trips`, which reads its number; maybe its node is in a condition."""
    trips, last = (parameter([], name, np.int64) for name in ("trips", "last"))
    first = parameter([N, 1, H], "H")
    i, h = opset5.parameter([], np.int64), opset5.parameter([N, 1, H], np.float32)
    bound = opset5.parameter([], np.int64)
    shape = opset5.constant([N, 1, I])
    number = opset5.broadcast(opset5.convert(i, "f32"), shape)
    state = branch(i, number, h) if is_conditional else sequence(number, h, 1).output(1)
    results = [opset5.result(opset5.less(i, bound)), opset5.result(state)]
    body = openvino.Model(results, [i, h, bound], "body")
    loop = opset5.loop(trips, opset5.constant(True))
    loop.set_friendly_name("loop")
    loop.set_function(body)
    loop.set_special_body_ports([0, 0])
    loop.set_merged_input(h, first.output(0), results[1].output(0))
    loop.set_invariant_input(bound, last.output(0))
    states = loop.get_concatenated_slices(results[1].output(0), 0, 1, 1, -1, 1)
    return openvino.Model([opset5.result(states)], [trips, last, first], "m")


def branch(i, x, h):
    """The state of one node in odd trips, and of another in even ones."""
    odd = opset5.equal(opset5.mod(i, opset5.constant(np.int64(2))), opset5.constant(np.int64(1)))
    node = opset8.if_op(odd.output(0))
    node.set_friendly_name("turn")
    bodies = []
    for scale in (1, 0.5):
        inner = [opset5.parameter([N, 1, size], np.float32) for size in (I, H)]
        scaled = opset5.multiply(inner[0], opset5.constant(np.float32(scale)))
        name = "odd" if scale == 1 else "even"
        bodies.append((inner, opset5.result(sequence(scaled, inner[1], 1, name=name).output(1))))
    node.set_then_body(openvino.Model([bodies[0][1]], bodies[0][0], "then"))
    node.set_else_body(openvino.Model([bodies[1][1]], bodies[1][0], "else"))
    for outer, k in ((x, 0), (h, 1)):
        node.set_input(outer.output(0), bodies[0][0][k], bodies[1][0][k])
    return node.set_output(bodies[0][1], bodies[1][1])


def ran(net, folder, **inputs):
    """Every execution of a recurrent node, and OpenVINO's own results."""
    openvino.save_model(net, folder / f"m{IR}", compress_to_fp16=False)
    np.savez(folder / "in.npz", **inputs)
    seen = []
    request = Request(tolerance=EXACT, inputs_from=str(folder / "in.npz"))
    run_ir(read_ir(folder / f"m{IR}"), request, seen.append)
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino_core().compile_model(net, "CPU", settings)
    return seen, compiled({port.any_name: inputs[port.any_name] for port in compiled.inputs})[0]


def check_states(seen, states, first):
    """Each trip begins with the state that OpenVINO has after the one before."""
    assert len(seen) == states.shape[1]
    for k, each in enumerate(seen):
        wanted = states[:, k - 1 : k] if k else first
        np.testing.assert_allclose(each.inputs["H"], wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_every_trip_of_an_iterator_is_seen(steps, backward, tmp_path):
    """On its part of X, and the state that OpenVINO has there; the weights are constants."""
    X = DRAWN.normal(size=(N, 6, I)).astype("f")
    seen, states = ran(iterator(steps, backward=backward), tmp_path, X=X)
    parts = np.split(X, 6 // steps, axis=1)

    check_states(seen, states, np.zeros((N, 1, H)))
    for each, part in zip(seen, parts[::-1] if backward else parts, strict=True):
        assert np.array_equal(each.inputs["X"], part)
        assert each.path == ("loop.body", "rnn")
        assert each.constants == {"W", "R", "B", "sequence_lengths"}
    assert len({each.key for each in seen}) == 1


def test_weights_around_a_loop_are_constants_of_its_nodes(tmp_path):
    """If they are constants there; computed ones are inputs."""
    X = DRAWN.normal(size=(N, 6, I)).astype("f")
    held, _ = ran(iterator(1, weights=opset5.constant), tmp_path, X=X)
    made, _ = ran(iterator(1, weights=doubled_half), tmp_path, X=X)

    assert {"W", "R", "B"} <= held[0].constants
    assert not {"W", "R", "B"} & made[0].constants
    for name, values in (("W", W), ("R", R), ("B", B)):
        assert np.array_equal(held[3].inputs[name], values)
        assert np.array_equal(made[3].inputs[name], values)


def doubled_half(values):
    """The values, as a node that is not folded while it is read."""
    return opset5.multiply(opset5.constant(values / 2), opset5.constant(np.float32(2)))


@pytest.mark.parametrize("is_conditional", [False, True], ids=["plain", "conditional"])
@pytest.mark.parametrize(("trips", "last", "made"), [(4, 9, 4), (-1, 2, 3), (9, 1, 2), (0, 9, 0)])
def test_a_loop_ends_as_openvino_ends_it(trips, last, made, is_conditional, tmp_path):
    """By its number of trips or its condition; a condition in it takes one branch a trip."""
    first = DRAWN.normal(size=(N, 1, H)).astype("f")
    inputs = {"trips": np.int64(trips), "last": np.int64(last), "H": first}
    seen, states = ran(counting(is_conditional=is_conditional), tmp_path, **inputs)

    assert len(seen) == made
    if made:
        check_states(seen, states, first)
    for k, each in enumerate(seen):
        turn = ("turn.else_body", "even") if k % 2 == 0 else ("turn.then_body", "odd")
        assert each.path == ("loop.body", *(turn if is_conditional else ("rnn",)))
        scale = 0.5 if is_conditional and k % 2 == 0 else 1
        assert np.array_equal(each.inputs["X"], np.full((N, 1, I), k * scale, "f"))


def test_a_body_that_openvino_refuses_is_one_sentence(tmp_path):
    """With the file's name."""
    net = iterator(1)
    openvino.save_model(net, tmp_path / f"m{IR}")
    request = Request(tolerance=EXACT, shapes={"X": (N, 7, I)})

    with pytest.raises(InvalidRequest, match=f"m{IR}"):
        run_ir(read_ir(tmp_path / f"m{IR}"), request, lambda _: None)


def test_a_cell_in_an_iterator_is_listed_and_run(tmp_path):
    """RNNCell of a loop that OpenVINO would turn into a sequence."""
    outer = parameter([N, 3, I], "X")
    x, h = opset5.parameter([N, 1, I], np.float32), opset5.parameter([N, H], np.float32)
    step = opset5.squeeze(x, opset5.constant([1]))
    cell = opset3.rnn_cell(step, h, *map(opset5.constant, (W[0], R[0], B[0])), H, ["tanh"], [], [])
    state = opset5.result(cell.output(0))
    loop = opset5.tensor_iterator()
    loop.set_function(openvino.Model([state], [x, h], "body"))
    loop.set_sliced_input(x, outer.output(0), 0, 1, 1, -1, 1)
    loop.set_merged_input(h, opset5.constant(np.zeros([N, H], "f")).output(0), state.output(0))
    last = loop.get_iter_value(state.output(0), -1)
    net = openvino.Model([opset5.result(last)], [outer], "m")
    X = DRAWN.normal(size=(N, 3, I)).astype("f")
    seen, final = ran(net, tmp_path, X=X)

    assert [each.node.operator.name for each in seen] == ["RNNCell-3"] * 3
    assert [np.array_equal(each.inputs["X"], X[:, k]) for k, each in enumerate(seen)] == [True] * 3
    h3 = np.tanh(X[:, 2] @ W[0].T + seen[2].inputs["H"] @ R[0].T + B[0])
    np.testing.assert_allclose(h3, final, rtol=0, atol=1e-6)


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_branch_is_seen_if_it_is_taken(is_taken, tmp_path):
    """The other one has no recurrent node."""
    asked = parameter([], "asked", np.bool_)
    x, h = parameter([N, 1, I], "X"), parameter([N, 1, H], "H")
    inner = [opset5.parameter([N, 1, size], np.float32) for size in (I, H)]
    kept = opset5.parameter([N, 1, H], np.float32)
    results = [opset5.result(sequence(*inner, 1).output(1)), opset5.result(opset5.relu(kept))]
    node = opset8.if_op(asked.output(0))
    node.set_friendly_name("if")
    node.set_then_body(openvino.Model([results[0]], inner, "then"))
    node.set_else_body(openvino.Model([results[1]], [kept], "else"))
    node.set_input(x.output(0), inner[0], None)
    node.set_input(h.output(0), inner[1], kept)
    net = openvino.Model([opset5.result(node.set_output(*results))], [asked, x, h], "m")
    X, first = (DRAWN.normal(size=(N, 1, size)).astype("f") for size in (I, H))
    seen, states = ran(net, tmp_path, asked=np.bool_(is_taken), X=X, H=first)

    assert [each.path for each in seen] == [("if.then_body", "rnn")] * is_taken
    for each in seen:
        wanted = np.tanh(X[:, 0] @ W[0].T + each.inputs["H"][:, 0] @ R[0].T + B[0])
        np.testing.assert_allclose(states[:, 0], wanted, rtol=0, atol=1e-6)


def test_a_signal_after_an_execution_finds_its_handler(tmp_path):
    """Ctrl-C and alarms: OpenVINO gives and takes the stack that their handlers run on."""
    openvino.save_model(iterator(2), tmp_path / f"m{IR}")
    np.savez(tmp_path / "in.npz", X=np.zeros([N, 6, I], "f"))
    program = (
        "import gc, signal, sys\n"
        "from rnncli.cli import main\n"
        "signal.signal(signal.SIGALRM, lambda *_: print('handled'))\n"
        "for name in 'ab':\n"
        "    sys.argv = ['rnncli', 'extract', 'm.xml', '--inputs', 'in.npz', '-o', name]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        assert not end.code\n"
        "    gc.collect()\n"
        "signal.raise_signal(signal.SIGALRM)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, "", "handled")
