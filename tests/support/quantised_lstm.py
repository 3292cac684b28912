"""Nodes of com.microsoft::DynamicQuantizeLSTM, their equations, and ONNX Runtime's answers."""

from itertools import product

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper
from support.one_node import EXACT_INT8

from rnncli.operators import operator_for

LSTM = operator_for("com.microsoft", "DynamicQuantizeLSTM", 1)
NAMES = [row.name for row in LSTM.inputs]
CONSTANTS = {name for name in NAMES if name[0] in "WRBP"}
FORMS = [
    (direction, ragged, per_channel, signed)
    for direction, ragged, per_channel, signed in product(
        ("forward", "reverse", "bidirectional"), (False, True), (False, True), (False, True)
    )
    # ONNX Runtime takes one zero point for all columns of unsigned weights, even of two directions.
    if not (direction == "bidirectional" and per_channel and not signed)
]


def node(form, seed=0, sizes=(6, 4, 7, 8), **more):
    """Return the attributes and inputs of a node with everything, whose padding is large.

    Args:
        form: one of `FORMS`.
        seed: of the values.
        sizes: T, N, I, H.
        more: attributes, and inputs to replace, or to leave out as None.
    """
    direction, ragged, per_channel, signed = form
    T, N, width, H = sizes
    D = 2 if direction == "bidirectional" else 1
    draws = np.random.default_rng(seed)
    dtype, (low, high) = (np.int8, EXACT_INT8) if signed else (np.uint8, (0, 256))
    factors = (D, 4 * H) if per_channel else (D,)
    zero = np.zeros(factors, dtype) if signed else np.full(factors, 128 + seed, dtype)
    lengths = draws.integers(1, T, N).astype(np.int32)
    X = draws.standard_normal((T, N, width)).astype(np.float32)
    inputs = {
        "X": np.where(np.arange(T)[:, None, None] < lengths[:, None], X, 3 * X) if ragged else X,
        "W": draws.integers(low, high, (D, width, 4 * H)).astype(dtype),
        "R": draws.integers(low, high, (D, H, 4 * H)).astype(dtype),
        "B": draws.uniform(-0.5, 0.5, (D, 8 * H)).astype(np.float32),
        "sequence_lens": lengths if ragged else None,
        "initial_h": draws.uniform(-1, 1, (D, N, H)).astype(np.float32),
        "initial_c": draws.uniform(-1, 1, (D, N, H)).astype(np.float32),
        "P": draws.uniform(-0.5, 0.5, (D, 3 * H)).astype(np.float32),
        "W_scale": draws.uniform(0.002, 0.006, factors).astype(np.float32),
        "W_zero_point": zero,
        "R_scale": draws.uniform(0.002, 0.006, factors).astype(np.float32),
        "R_zero_point": zero,
    }
    inputs |= {name: value for name, value in more.items() if name in inputs}
    attributes = {name: value for name, value in more.items() if name not in inputs}
    given = {name: value for name, value in inputs.items() if value is not None}
    return {"direction": direction, "hidden_size": H, **attributes}, given


def of_runtime(attributes, inputs, threads=1, outputs=("Y", "Y_h", "Y_c")):
    """Return what ONNX Runtime computes, with weights as initializers."""
    names = [name if name in inputs else "" for name in NAMES]
    made = helper.make_node("DynamicQuantizeLSTM", names, outputs, **attributes)
    made.domain = "com.microsoft"
    fed = {name: values for name, values in inputs.items() if name not in CONSTANTS}
    held = [numpy_helper.from_array(inputs[n], n) for n in inputs if n in CONSTANTS]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in fed.items()
    ]
    asked = [helper.make_tensor_value_info(name, 1, None) for name in outputs if name]
    graph = helper.make_graph([made], "g", infos, asked, held)
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return session(model.SerializeToString(), threads).run(None, fed)


def session(model, threads=1):
    """Return a session of ONNX Runtime, whose answer depends on the number of threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Quantiser:
    """DynamicQuantizeLinear by its text, which remembers how near to a tie a number came."""

    def __init__(self):
        self.nearest = 0.5

    def __call__(self, values, scope):
        """Return the numbers that the levels of some values stand for."""
        values, scope = np.float32(values), np.float32(scope)
        low, high = min(scope.min(), np.float32(0)), max(scope.max(), np.float32(0))
        scale = (high - low) / np.float32(255) if high > low else np.float32(1)
        ratio = np.append(values.ravel(), -low) / scale
        self.nearest = min(self.nearest, np.abs(ratio - np.floor(ratio) - np.float32(0.5)).min())
        zero = min(max(np.rint(-low / scale), 0), 255)
        level = np.clip(np.rint(values / scale) + zero, 0, 255)
        return (level - zero) * np.float64(scale)


def specified(attributes, inputs):
    """Return Y, Y_h, Y_c of a node with everything, by loops, and the distance to the nearest tie.

    The distance is in levels: with one above what float32 loses, no correct kernel rounds another
    way.
    """
    X, (T, N, _), H = inputs["X"], inputs["X"].shape, attributes["hidden_size"]
    clip, quantise, D = attributes.get("clip", np.inf), Quantiser(), len(inputs["W"])
    lengths = inputs.get("sequence_lens", np.full(N, T))
    Y, last_h, last_c = np.zeros((T, D, N, H)), np.zeros((D, N, H)), np.zeros((D, N, H))
    x = quantise(X, X[: lengths.max()])
    for d in range(D):
        W, R = (
            (inputs[w][d] - np.float64(inputs[f"{w}_zero_point"][d]))
            * np.float64(inputs[f"{w}_scale"][d])
            for w in "WR"
        )
        bias, (Pi, Po, Pf) = inputs["B"][d].reshape(2, -1).sum(0), inputs["P"][d].reshape(3, H)
        h, c = (np.float64(inputs[name][d]) for name in ("initial_h", "initial_c"))
        is_reverse = d == 1 or attributes["direction"] == "reverse"
        for t in range(lengths.max()):
            states, h = quantise(h, h), np.zeros((N, H))
            for n in np.flatnonzero(t < lengths):
                k = lengths[n] - 1 - t if is_reverse else t
                i, o, f, g = (x[k, n] @ W + states[n] @ R + bias).reshape(4, H)
                i, f = (_sigmoid(z.clip(-clip, clip)) for z in (i + Pi * c[n], f + Pf * c[n]))
                c[n] = f * c[n] + i * np.tanh(g.clip(-clip, clip))
                h[n] = _sigmoid((o + Po * c[n]).clip(-clip, clip)) * np.tanh(c[n])
                Y[k, d, n] = last_h[d, n] = h[n]
        last_c[d] = c
    return (Y, last_h, last_c), quantise.nearest


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def away_from_ties(form, least=1e-4, **more):
    """Return the first node of a form whose roundings stay away from ties."""
    for seed in range(100):
        attributes, inputs = node(form, seed, **more)
        wanted, nearest = specified(attributes, inputs)
        if nearest > least:
            return attributes, inputs, wanted
    raise AssertionError(f"every node of {form} comes near to a tie")
