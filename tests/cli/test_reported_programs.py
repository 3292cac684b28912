"""Public reports as who reported them begins: a model, and the outputs that a program gives.

The programs are written in NumPy here, with the bug that was reported, and share no line with the
mutants that name it. They give Y alone.
"""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

H, INPUTS, T, N = 5, 4, 7, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DRAW = np.random.default_rng(7).normal


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def lstm(x, h, c, w, bug, first):  # noqa: PLR0917 -- as kernels are called
    """A step of an LSTM, gates i, o, f, c."""
    W, R, b, r, p = w
    if bug == "torch order":
        W, R, b, r = (v.reshape(4, H, -1)[[0, 3, 1, 2]].reshape(v.shape) for v in (W, R, b, r))
    if bug == "bias twice":
        b = 2 * b
    if bug == "no forget bias":
        b, r = (np.where(np.arange(4 * H) // H == 2, 0, v) for v in (b, r))
    if bug == "second half of bias":
        r = b
    i, o, f, g = np.split(x @ W.T + h @ R.T + b + r, 4, axis=-1)
    pi, po, pf = np.split(p, 3)
    if bug == "peepholes i f o":
        po, pf = pf, po
    if bug == "no peepholes":
        pi, po, pf = (0 * v for v in (pi, po, pf))
    i, f = sigmoid(i + pi * c), sigmoid(f + pf * c)
    c = f * c + i * np.tanh(g)
    return sigmoid(o + po * c) * np.tanh(c), c


def gru(x, h, c, w, bug, first):  # noqa: PLR0917
    """A step of a GRU, gates z, r, h, that resets after the product."""
    W, R, b, r, _ = w
    if bug == "torch order":
        W, R, b, r = (v.reshape(3, H, -1)[[1, 0, 2]].reshape(v.shape) for v in (W, R, b, r))
    if bug == "no recurrent bias":
        r = 0 * r
    if bug == "no bias":
        b, r = 0 * b, 0 * r
    if bug == "no hidden bias of the candidate" or (bug == "first step" and first):
        r = np.where(np.arange(3 * H) // H == 2, 0, r)
    own, fed = np.split(x @ W.T + b, 3, axis=-1), np.split(h @ R.T, 3, axis=-1)
    rz, rr, rh = np.split(r, 3)
    z, s = sigmoid(own[0] + fed[0] + rz), sigmoid(own[1] + fed[1] + rr)
    n = np.tanh(own[2] + s * (fed[2] + rh))
    if bug == "reset before":
        n = np.tanh(own[2] + (s * h) @ R[2 * H :].T + rh)
    if bug == "bias outside":
        n = np.tanh(own[2] + s * fed[2] + rh)
    return (1 - z) * n + z * h, c


def rnn(x, h, c, w, bug, first):  # noqa: PLR0917
    """A step of an RNN."""
    W, R, b, r, _ = w
    if bug == "in place":
        h = h.copy()
        for k in range(H):
            h[:, k] = np.tanh(x @ W[k] + h @ R[k] + b[k] + r[k])
        return h, c
    return np.tanh(x @ W.T + h @ R.T + b + r), c


STEPS = {"LSTM": lstm, "GRU": gru, "RNN": rnn}


def layer(cell, X, weights, bug, lens=None, h0=None):  # noqa: PLR0917
    """The outputs of all directions, [T, N, D * H]."""
    made, last, lens = [], (), np.full(N, T) if lens is None else lens
    if bug == "no lengths":
        lens = np.full(N, T)
    for d, w in enumerate(weights):
        Y = np.zeros((T, N, H))
        for n in range(N):
            order = [*range(lens[n])]
            if d:
                order.reverse()
            if d and bug == "reverse of all steps":
                order = [*range(T)][::-1][: lens[n]]
            h, c = np.zeros((1, H)), np.zeros((1, H))
            if h0 is not None and bug != "no states" and not (bug == "no states behind" and d):
                h = h0[d, n][None]
            if bug == "sequences go on" and n:
                h, c = last
            for k, t in enumerate(order):
                x = X[t, 0 if bug == "first row" else n]
                new, c = STEPS[cell](x[None], h, c, w, bug, not k)
                if bug != "never advances":
                    h = new
                Y[k if d and bug == "as computed" else t, n] = new[0]
            last = h, c
            if bug == "padding repeats" and order:
                Y[lens[n] :, n] = Y[lens[n] - 1, n]
        made.append(Y)
    return np.concatenate(made, axis=-1)


def model_of(cell, directions, count, extra):
    """A model of layers, and its weights by layer and direction."""
    nodes, held, layers, below = [], [], [], "X"
    for k in range(count):
        size = INPUTS if k == 0 else directions * H
        rows = GATES[cell] * H
        W, R, B = (
            (DRAW(size=(directions, *s)) / 1.5).astype("f")
            for s in ((rows, size), (rows, H), (2 * rows,))
        )
        P = DRAW(size=(directions, 3 * H)).astype("f")
        tensors = {f"W{k}": W, f"R{k}": R, f"B{k}": B, f"s{k}": np.array([0, 0, directions * H])}
        inputs = [below, f"W{k}", f"R{k}", f"B{k}", "lens" if "lens" in extra else ""]
        inputs += ["h0" if "h0" in extra else ""]
        if "P" in extra:
            inputs += ["", f"P{k}"]
            tensors[f"P{k}"] = P
        attributes = {"linear_before_reset": 1} if cell == "GRU" else {}
        attributes["direction"] = "bidirectional" if directions == 2 else "forward"
        top = f"X{k + 1}" if k + 1 < count else "y"
        nodes += [
            helper.make_node(cell, inputs, [f"Y{k}"], f"{cell}_{k}", hidden_size=H, **attributes),
            helper.make_node("Transpose", [f"Y{k}"], [f"t{k}"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [f"t{k}", f"s{k}"], [top]),
        ]
        held += [numpy_helper.from_array(v, name) for name, v in tensors.items()]
        halves = [np.split(b, 2) for b in B]
        zero = np.zeros(3 * H)
        layers.append(
            [(W[d], R[d], *halves[d], P[d] if "P" in extra else zero) for d in range(directions)]
        )
        below = top
    given = {"X": [T, N, INPUTS], "h0": [directions, N, H]}
    values = [helper.make_tensor_value_info(n, 1, given[n]) for n in ("X", *extra) if n in given]
    if "lens" in extra:
        values.append(helper.make_tensor_value_info("lens", 6, [N]))
    y = [helper.make_tensor_value_info("y", 1, [T, N, directions * H])]
    graph = helper.make_graph(nodes, "g", values, y, held)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ), layers


# Report -> cell, directions, layers, other inputs, the bug of the program, in which layers, and the
# name that the tool has for it.
REPORTS = {
    "CrispStrobe/CrispASR#106": ("LSTM", 1, 2, (), "torch order", (0, 1), "gate-order-ifco"),
    "keras-team/keras#15915": ("GRU", 1, 2, (), "torch order", (0, 1), "gates-z-r-swapped"),
    "onnx/keras-onnx#98": (
        "LSTM",
        1,
        1,
        (),
        "second half of bias",
        (0,),
        "recurrent-bias-is-the-other",
    ),
    "PINTO0309/onnx2tf#291": (
        "GRU",
        2,
        2,
        (),
        "no recurrent bias",
        (0, 1),
        "recurrent-bias-dropped",
    ),
    "fastmachinelearning/hls4ml#594": (
        "GRU",
        1,
        1,
        (),
        "no recurrent bias",
        (0,),
        "recurrent-bias-dropped",
    ),
    "google/flax#5594": (
        "GRU",
        1,
        1,
        (),
        "no hidden bias of the candidate",
        (0,),
        "recurrent-bias-of-h-dropped",
    ),
    "lisa-lab/DeepLearningTutorials#81": (
        "LSTM",
        1,
        2,
        (),
        "bias twice",
        (1,),
        "input-bias-doubled",
    ),
    "oreilly-japan/deep-learning-from-scratch-2#13": (
        "GRU",
        1,
        1,
        (),
        "no bias",
        (0,),
        "biases-dropped",
    ),
    "apple/coremltools#309": ("LSTM", 1, 1, (), "no forget bias", (0,), "bias-of-f-dropped"),
    "tracel-ai/burn#2701": ("GRU", 1, 1, (), "never advances", (0,), "states-never-advance"),
    "onnx/onnx-mlir#367": ("RNN", 1, 2, (), "in place", (0, 1), "state-updated-in-place"),
    "microsoft/onnxscript#2852": (
        "GRU",
        1,
        2,
        (),
        "reset before",
        (0, 1),
        "linear-before-reset-ignored",
    ),
    "apple/coremltools#1124": (
        "GRU",
        1,
        1,
        (),
        "bias outside",
        (0,),
        "linear-before-reset-bias-outside",
    ),
    "ml-explore/mlx#3249": ("GRU", 1, 1, (), "first step", (0,), "first-step-lacks-hidden-bias"),
    "opencv/opencv#29931": (
        "LSTM",
        1,
        1,
        ("P",),
        "peepholes i f o",
        (0,),
        "peepholes-in-order-ifo",
    ),
    "apache/tvm#19634": ("LSTM", 1, 2, ("P",), "no peepholes", (0,), "peepholes-dropped"),
    "microsoft/onnxruntime#1607": (
        "RNN",
        2,
        1,
        ("h0",),
        "no states behind",
        (0,),
        "initial-states-of-second-direction-ignored",
    ),
    "ARM-software/CMSIS-NN#219": ("LSTM", 1, 1, ("h0",), "no states", (0,), "initial-h-ignored"),
    "alibaba/MNN#1573": ("GRU", 1, 1, (), "sequences go on", (0,), "sequences-continue"),
    "tensorflow/tensorflow#51561": ("LSTM", 1, 1, (), "first row", (0,), "batch-first-row-only"),
    "pytorch/pytorch#48460": ("RNN", 2, 1, ("lens",), "no lengths", (0,), "lengths-ignored"),
    "microsoft/onnxruntime#12492": (
        "LSTM",
        1,
        1,
        ("lens",),
        "padding repeats",
        (0,),
        "padding-repeats-last-state",
    ),
    "onnx/keras-onnx#523": (
        "LSTM",
        2,
        1,
        (),
        "as computed",
        (0,),
        "reverse-y-in-order-of-computation",
    ),
    "NervanaSystems/ngraph#3176": (
        "LSTM",
        2,
        1,
        ("lens",),
        "reverse of all steps",
        (0,),
        "padding-flipped",
    ),
}


@pytest.fixture
def begun(tmp_path):
    """Write the files of a report; return the first command on them."""

    def begin(report):
        cell, directions, count, extra, bug, where, _ = REPORTS[report]
        model, layers = model_of(cell, directions, count, extra)
        onnx.save(model, tmp_path / "model.onnx")
        X = DRAW(size=(T, N, INPUTS)).astype("f")
        more = {
            "lens": np.array([T, 4, 2], np.int32),
            "h0": DRAW(size=(directions, N, H)).astype("f"),
        }
        more = {name: more[name] for name in extra if name in more}
        np.savez(tmp_path / "in.npz", X=X, **more)
        for faulty, name in ((True, "theirs"), (False, "right")):
            y = X.astype(float)
            for k, weights in enumerate(layers):
                y = layer(cell, y, weights, bug if faulty and k in where else "", **more)
            np.savez(tmp_path / f"{name}.npz", output_0=y.astype("f"))
        files = ("--inputs", tmp_path / "in.npz", "--expected")
        return ("run", tmp_path / "model.onnx", *files, tmp_path / "theirs.npz")

    return begin


@pytest.mark.parametrize("report", REPORTS)
def test_the_first_command_says_which_node_has_which_bug(rnncli, begun, report):
    """And finds the same program right without it."""
    *asked, theirs = begun(report)
    found = rnncli(*asked, theirs)
    right = rnncli(*asked, theirs.with_name("right.npz"))
    cell, *_, where, name = REPORTS[report]

    assert (right.code, found.code) == (0, 1)
    assert "known bug in" in found.err
    assert name in found.err
    assert all(f"{cell}_{k}" in found.err for k in where)
