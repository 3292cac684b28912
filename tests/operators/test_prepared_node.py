"""Sessions of operators and models: what one call leaves behind never shows in the next."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.tables import every
from support.valid_nodes import valid_node

import rnncli
from rnncli.errors import InvalidOperator, InvalidRequest, RnncliError
from rnncli.operators.evaluation import PreparedNode
from rnncli.operators.operator_table import OPERATORS
from rnncli.recurrence.recurrence import Compute, Result, lock

N, I, H = 2, 3, 4  # noqa: E741 -- the specification's letters
BACKENDS = ("numpy", "numba", "reference")
GATES = {"LSTM-14": 4, "GRU-14": 3, "RNN-14": 1}


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Every backend that computes natively, as far as it is installed."""
    if request.param == "numba":
        pytest.importorskip("numba")
    return request.param


def weights(operator, directions=1, dtype="float32"):
    """Return weights of an operator, always the same ones."""
    random, rows = np.random.default_rng(5), GATES[operator] * H
    shapes = {"W": (rows, I), "R": (rows, H), "B": (2 * rows,)}
    return {k: random.normal(size=(directions, *s)).astype(dtype) for k, s in shapes.items()}


def numbers(*shape, seed=1, dtype="float32"):
    """Return numbers of a shape."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def strided(values):
    """Return the same values at every other place of memory."""
    wide = np.repeat(values, 2, axis=-1)
    return wide[..., ::2]


def unaligned(values):
    """Return the same values one byte off."""
    memory = np.zeros(values.nbytes + 1, np.uint8)
    found = memory[1:].view(values.dtype).reshape(values.shape)
    found[...] = values
    return found


def with_nan(values):
    """Return the same values but for one."""
    values = values.copy()
    values[1, 0, 1] = np.nan
    return values


STATE = numbers(1, N, H, seed=2)
# Each call after the others, and again in the other order: T, N, layout in memory, states, lengths.
CALLS = {
    "plain": {"X": numbers(5, N, I)},
    "again": {"X": numbers(5, N, I, seed=3)},
    "longer": {"X": numbers(9, N, I)},
    "wider": {"X": numbers(5, 3, I)},
    "empty": {"X": numbers(0, N, I)},
    "state": {"X": numbers(5, N, I), "initial_h": STATE},
    "strided": {"X": strided(numbers(5, N, I)), "initial_h": strided(STATE)},
    "unaligned": {"X": unaligned(numbers(5, N, I)), "initial_h": unaligned(STATE)},
    "swapped": {"X": numbers(5, N, I).astype(">f4")},
    "nan": {"X": with_nan(numbers(5, N, I))},
    "huge": {"X": numbers(5, N, I) * np.float32(1e30)},
    "full": {"X": numbers(5, N, I), "sequence_lens": np.int32([5, 5])},
    "ragged": {"X": numbers(5, N, I), "sequence_lens": np.int32([5, 2])},
    "other lengths": {"X": numbers(5, N, I), "sequence_lens": np.int32([0, 4]), "initial_h": STATE},
    "lengths of four": {"X": numbers(6, 4, I), "sequence_lens": np.int32([3, 6, 0, 3])},
    "none live": {"X": numbers(5, N, I), "sequence_lens": np.int32([0, 0])},
}
ORDER = [*CALLS, *reversed(CALLS), *CALLS]


def assert_same(found, expected):
    """The same names and the same bits."""
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("compute", ["native", "float64"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_calls_of_a_session_do_not_depend_on_earlier_ones(operator, direction, compute, backend):
    """Whatever came before, a call has the bits of an evaluation on its own."""
    directions = 1 + (direction == "bidirectional")
    held = weights(operator, directions)
    how = {"backend": backend, "compute": compute}
    session = rnncli.prepare(operator, direction=direction, **how, **held)
    expected = {}
    for name, call in CALLS.items():
        inputs = {
            k: np.repeat(v, directions, 0) if k == "initial_h" else v for k, v in call.items()
        }
        given = {**held, **inputs}
        alone = rnncli.evaluate(operator, given, direction=direction, **how)
        expected[name] = inputs, alone

    for name in ORDER:
        inputs, alone = expected[name]
        assert_same(session.run(inputs), alone)


WRONG = {
    "another dtype": ({"X": numbers(5, N, I, dtype="float64")}, "must be float64 like X"),
    "another rank": ({"X": numbers(5, N)}, "X must have 3 dimensions"),
    "another input size": ({"X": numbers(5, N, 9)}, "W must be"),
    "a state of another batch": (
        {"X": numbers(5, 3, I), "initial_h": STATE},
        "initial_h must be [1, 3, 4]",
    ),
    "lengths beyond T": (
        {"X": numbers(5, N, I), "sequence_lens": np.int32([5, 6])},
        "sequence_lens[1] must be between 0 and seq_length = 5, got 6",
    ),
    "lengths of another dtype": (
        {"X": numbers(5, N, I), "sequence_lens": np.float32([5, 5])},
        "sequence_lens must be int32",
    ),
    "no X": ({}, "input 'X' is required"),
    "an unknown input": ({"X": numbers(5, N, I), "x": STATE}, "has no input 'x'"),
    "weights of another shape": ({"X": numbers(5, N, I), "R": numbers(1, 16, 5)}, "R"),
}


@cache
def experienced(backend):
    """Return a session that has served right calls of every kind."""
    session = rnncli.prepare("LSTM-14", backend=backend, compute="native", **weights("LSTM-14"))
    for name in ORDER:
        session.run(CALLS[name])
    return session


@every("case", WRONG)
def test_a_wrong_call_is_refused_after_right_ones(case, backend):
    """What an earlier call was checked for does not let a later one pass."""
    inputs, sentence = WRONG[case]
    session = experienced(backend)

    with pytest.raises(InvalidOperator) as refusal:
        session.run(inputs)
    assert sentence in str(refusal.value)
    session.run(CALLS["plain"])


def test_weights_of_one_call_are_not_those_of_the_next(backend):
    """Where a call gives other weights than those held, it alone has them."""
    held = weights("LSTM-14")
    how = {"backend": backend, "compute": "native"}
    session = rnncli.prepare("LSTM-14", **how, **held)
    first = session.run(CALLS["plain"])
    other = {**CALLS["plain"], "W": held["W"] * 2}

    for _ in range(3):
        assert_same(session.run(other), rnncli.evaluate("LSTM-14", {**held, **other}, **how))
        assert_same(session.run(CALLS["plain"]), first)


class KeepingBackend:
    """A backend that notes what it may derive from the weights of each call."""

    name, summary = "keeping", ""

    def __init__(self):
        self.constants = []

    def supports(self, recurrence, compute):
        """Support everything."""

    def run(self, recurrence, compute):
        """Return zeros."""
        self.constants.append(recurrence.constants)
        (T, B, _), (D, _, units, _) = recurrence.X.shape, recurrence.W.shape
        return Result(np.zeros((T, D, B, units)), tuple([np.zeros((D, B, units))] * 2))


def test_weights_of_any_size_are_prepared_once():
    """Also those that an evaluation on its own would translate at every call."""
    large, spy = 1024, KeepingBackend()
    W, R = (np.zeros((1, 4 * large, size), np.float32) for size in (I, large))
    for values in (W, R):
        lock(values)
    node = PreparedNode(OPERATORS["LSTM-14"], {}, None, None, (spy, Compute.NATIVE))

    for T in (1, 2):
        node.run([numbers(T, N, I), W, R, *[None] * 5])
    assert R.nbytes + W.nbytes > 1 << 24
    assert spy.constants[0] is not None
    assert spy.constants[0] is spy.constants[1]


def test_results_stay_when_the_next_call_is_made(backend):
    """A result is the caller's: later calls do not write there."""
    session = rnncli.prepare("GRU-14", backend=backend, compute="native", **weights("GRU-14"))
    session.run(CALLS["plain"])
    found = session.run(CALLS["plain"])
    copies = {name: values.copy() for name, values in found.items()}
    session.run(CALLS["again"])

    assert_same(found, copies)


def test_threads_share_a_session(backend):
    """Calls at the same time have the results that they have one after the other."""
    session = rnncli.prepare("LSTM-14", backend=backend, compute="native", **weights("LSTM-14"))
    names = ["plain", "again", "longer", "state", "nan", "ragged"]
    expected = {name: session.run(CALLS[name]) for name in names}
    with ThreadPoolExecutor(6) as pool:
        jobs = [(name, pool.submit(session.run, CALLS[name])) for name in names * 30]

    for name, job in jobs:
        assert_same(job.result(), expected[name])


def test_outputs_are_those_asked_for_in_their_order(backend):
    """Also at the calls after the first."""
    held = weights("LSTM-14")
    how = {"backend": backend, "compute": "native", "outputs": ["Y_c", "Y_h"]}
    session = rnncli.prepare("LSTM-14", **how, **held)

    for _ in range(3):
        found = session.run(CALLS["plain"])
        assert_same(found, rnncli.evaluate("LSTM-14", {**held, **CALLS["plain"]}, **how))


@pytest.mark.parametrize("layout", [0, 1])
def test_layouts_are_transposed_at_every_call(layout, backend):
    """Batches first or time first, in and out."""
    held = weights("GRU-14")
    attributes = {"layout": layout}
    inputs = {"X": numbers(5, N, I), "initial_h": STATE.swapaxes(0, 1) if layout else STATE}
    if layout:
        inputs["X"] = inputs["X"].swapaxes(0, 1)
    how = {"backend": backend, "compute": "native"}
    session = rnncli.prepare("GRU-14", **how, **held, **attributes)
    alone = rnncli.evaluate("GRU-14", {**held, **inputs}, **attributes, **how)

    for _ in range(3):
        assert_same(session.run(inputs), alone)


def lstm_model(outputs=("Y", "", "Y_c"), W=None):
    """Return a model of one LSTM that holds its weights and takes a state and lengths."""
    held = weights("LSTM-14") | ({} if W is None else {"W": W})
    names = ["X", "W", "R", "B", "sequence_lens", "initial_h"]
    node = helper.make_node("LSTM", names, outputs, hidden_size=H, name="lstm")
    FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
    inputs = [
        helper.make_tensor_value_info("X", FLOAT, ["T", "N", I]),
        helper.make_tensor_value_info("sequence_lens", INT32, ["N"]),
        helper.make_tensor_value_info("initial_h", FLOAT, [1, "N", H]),
        helper.make_tensor_value_info("R", FLOAT, None),
    ]
    made = [helper.make_tensor_value_info(n, FLOAT, None) for n in outputs if n]
    initializers = [numpy_helper.from_array(values, name) for name, values in held.items()]
    graph = helper.make_graph([node], "g", inputs, made, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def test_calls_of_a_model_do_not_depend_on_earlier_ones(backend):
    """One node as a model: the bits of the operator alone, whatever came before."""
    how = {"backend": backend, "compute": "native"}
    session = rnncli.prepare(lstm_model(), **how)
    held, expected = weights("LSTM-14"), []
    for name, call in CALLS.items():
        rows = call["X"].shape[1]
        full = {
            "sequence_lens": np.full(rows, len(call["X"]), np.int32),
            "initial_h": np.zeros((1, rows, H), np.float32),
            **call,
        }
        for given in (full, {**full, "R": held["R"] / 2}):
            alone = rnncli.evaluate("LSTM-14", {**held, **given}, outputs=["Y", "Y_c"], **how)
            expected.append((name, given, alone))

    for name in ORDER:
        for given, alone in (each[1:] for each in expected if each[0] == name):
            assert_same(session.run(given), alone)


def test_a_wrong_call_of_a_model_is_refused_after_right_ones(backend):
    """By the declarations of the graph or by the node; and then right ones pass again."""
    session = rnncli.prepare(lstm_model(), backend=backend, compute="native")
    right = {**CALLS["full"], "initial_h": STATE}
    first = session.run(right)
    session.run(right)
    wrong = [
        right | {"X": right["X"].astype(np.float64)},
        right | {"X": right["X"][0]},
        right | {"X": right["X"].tolist()},
        right | {"initial_h": numbers(1, 3, H)},
        right | {"sequence_lens": np.int32([9, 5])},
        right | {"R": numbers(1, 16, 5)},
        right | {"nothing": right["X"]},
        {"X": right["X"]},
    ]
    for inputs in wrong:
        with pytest.raises(RnncliError) as refusal:
            session.run(inputs)
        assert isinstance(refusal.value, InvalidRequest | InvalidOperator)
        assert_same(session.run(right), first)


@every("operator", [n for n, r in OPERATORS.items() if r.dialect == "OpenVINO"])
def test_every_operator_of_openvino_is_prepared(operator, backend):
    """Sequences and cells, which have other axes: later calls say what the first one would."""
    attributes, inputs = valid_node(operator)
    held = {name: inputs[name] for name in ("W", "R", "B")}
    session = rnncli.prepare(operator, **held, **attributes, backend=backend, compute="native")
    varying = {name: values for name, values in inputs.items() if name not in held}

    for scale in (1, 2, 3):
        fed = {**varying, "X": np.float32(scale) * varying["X"]}
        wanted = rnncli.evaluate(operator, {**inputs, **fed}, **attributes)
        for name, values in session.run(fed).items():
            assert values.shape == wanted[name].shape
            assert np.allclose(values, wanted[name], rtol=1e-5, atol=1e-6)
