"""Random valid nodes of linear recurrences, and a table of invalid ones of ONNX's.

Numbers stay where a kernel's order of sums matters little: a delta rule whose rate times the square
of the key's norm is above 2 grows without bound, so such keys are in short sequences only.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from support.one_node import model_of

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
INPUTS = {
    "LinearAttention-27": ("query", "key", "value", "past_state", "decay", "beta"),
    "CausalConvWithState-27": ("input", "weight", "bias", "past_state"),
}
# ONNX Runtime's have the inputs of ONNX's.
CONTRIB = {f"com.microsoft.{name.split('-')[0]}": names for name, names in INPUTS.items()}
PACKED = {
    "com.microsoft.VarlenCausalConvWithState": (
        *("input", "weight", "cumulative_sequence_length", "bias", "initial_state"),
    ),
    "com.microsoft.GatedDeltaNet": (
        *("query", "key", "value", "cu_seqlens", "decay", "beta", "initial_state"),
        *("a_log", "dt_bias"),
    ),
}
CONTRIB_OR_PACKED = CONTRIB | PACKED
RULES = ("linear", "gated", "delta", "gated_delta")
LENGTHS = (0, 1, 2, 3, 7, 15, 16, 17, 63, 64, 65)
MOST = 40000  # cells of the state times tokens: a quarter of a second with 60 digits


@dataclass
class LinearNode:
    """A node with its inputs by name; absent ones are not there."""

    operator: str
    attributes: dict[str, Any]
    inputs: dict[str, Any]

    def model(self):
        """Return an ONNX model of this node alone, and its feeds."""
        given = [self.inputs.get(name) for name in (INPUTS | CONTRIB_OR_PACKED)[self.operator]]
        if self.operator in CONTRIB_OR_PACKED:
            domain, _, op_type = self.operator.rpartition(".")
            return model_of(op_type, 21, given, self.attributes, 2, domain=domain)
        op_type, version = self.operator.split("-")
        model, feeds = model_of(op_type, int(version), given, self.attributes, 2)
        for output, x in zip(
            model.graph.output, (given[0], self.inputs.get("past_state", given[0])), strict=True
        ):
            dtype = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
            output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, dtype, None))
        return onnx.shape_inference.infer_shapes(model), feeds


def random_nodes(count, seed=0, operators=tuple(INPUTS), dtypes=DTYPES):
    """Yield so many valid nodes, of the operators in turn; a longer row begins as a shorter one."""
    makers = {
        "LinearAttention-27": attention_node,
        "CausalConvWithState-27": convolution_node,
        "com.microsoft.LinearAttention": contrib_attention,
        "com.microsoft.CausalConvWithState": contrib_convolution,
        "com.microsoft.VarlenCausalConvWithState": packed_convolution,
        "com.microsoft.GatedDeltaNet": gated_delta_net,
    }
    for k in range(count):
        generator = np.random.default_rng([seed, k])
        yield makers[operators[k % len(operators)]](generator, dtypes)


def attention_node(generator, dtypes=DTYPES):
    """Draw a LinearAttention of any form."""
    r = generator
    T, B = r.choice(LENGTHS), r.choice([0, 1, 1, 1, 2, 2, 2, 2, 3, 3])
    while True:
        Hkv, group = r.integers(1, 5), r.choice([1, 2, 4])
        dk, dv = r.choice([1, 2, 3, 4, 5, 8, 9, 16, 20]), r.choice([1, 2, 3, 4, 5, 7, 8, 9, 17])
        if T * B * Hkv * dk * dv <= MOST:
            break
    rule = r.choice(RULES)
    attributes = {
        "q_num_heads": int(Hkv * group),
        "kv_num_heads": int(Hkv),
        "update_rule": str(rule),
        "scale": float(r.choice([0.0, 1.0, 0.37, -1.5])),
        "chunk_size": int(r.choice([1, 16, 32, 64, 100])),
    }
    defaults = {"update_rule": "gated_delta", "scale": 0.0, "chunk_size": 64}
    for name, default in defaults.items():
        if (attributes[name] == default or name == "chunk_size") and r.random() < 0.5:
            del attributes[name]

    beta = _rates(r, (B, T, Hkv if r.random() < 0.6 else 1))
    key = _values(r, (B, T, Hkv, dk))
    norms = np.sqrt((key**2).sum(-1, keepdims=True)) + 1e-9
    if T > 7 or r.random() < 0.5:
        longest = np.sqrt(1.9 / max(1.0, beta.max(initial=0.0)))
        key *= np.minimum(1.0, r.uniform(0.3, 1.0, norms.shape) * longest / norms)
    inputs = {
        "query": _values(r, (B, T, Hkv * group * dk)),
        "key": key.reshape(B, T, Hkv * dk),
        "value": _values(r, (B, T, Hkv * dv)),
    }
    S = dtypes[r.integers(len(dtypes))]
    if r.random() < 0.6:
        inputs["past_state"] = _values(r, (B, Hkv, dk, dv))
    if "gated" in rule:
        inputs["decay"] = _decays(r, (B, T, Hkv * dk if r.random() < 0.5 else Hkv))
    if "delta" in rule:
        inputs["beta"] = beta
    if r.random() < 0.1 and B * T:  # NaN in one head
        name = str(r.choice(["query", "key", "value"]))
        inputs[name][r.integers(B), r.integers(T), r.integers(inputs[name].shape[2])] = np.nan
    T = dtypes[r.integers(len(dtypes))]
    typed = {name: x.astype(S if name == "past_state" else T) for name, x in inputs.items()}
    return LinearNode("LinearAttention-27", attributes, typed)


def convolution_node(generator, dtypes=DTYPES):
    """Draw a CausalConvWithState of any form."""
    r = generator
    B, C = r.choice([0, 1, 1, 2, 3]), r.integers(1, 10)
    L, k = r.choice([0, 1, 1, 2, 3, 5, 7, 8, 9, 16, 17, 33]), r.integers(1, 7)
    activation = r.choice([None, "none", "silu", "swish"])
    inputs = {
        "input": _values(r, (B, C, L)) * r.choice([1, 1, 1, 20]),
        "weight": _values(r, (C, 1, k)),
        "bias": _values(r, (C,)),
        "past_state": _values(r, (B, C, k - 1)),
    }
    for name in ("bias", "past_state"):
        if r.random() < 0.4:
            del inputs[name]
    if r.random() < 0.1 and B * L:  # NaN in one channel
        inputs["input"][r.integers(B), r.integers(C), r.integers(L)] = np.nan
    dtype = dtypes[r.integers(len(dtypes))]
    return LinearNode(
        "CausalConvWithState-27",
        {} if activation is None else {"activation": str(activation)},
        {name: x.astype(dtype) for name, x in inputs.items()},
    )


def contrib_attention(generator, dtypes=DTYPES):
    """Draw ONNX Runtime's LinearAttention: also with shared queries and keys, or surplus gates."""
    r, node = generator, attention_node(generator, dtypes)
    inputs, attributes = node.inputs, dict(node.attributes)
    B, T, _ = inputs["query"].shape
    q, kv = attributes["q_num_heads"], attributes["kv_num_heads"]
    if q == kv and r.random() < 0.7:
        q = attributes["q_num_heads"] = int(r.choice([n for n in range(1, kv + 1) if kv % n == 0]))
        for name in ("query", "key") if r.random() < 0.5 else ("query",):
            width = inputs[name].shape[2] // kv
            of_heads = inputs[name].reshape(B, T, q, kv // q, width)
            inputs[name] = of_heads[:, :, :, 0].reshape(B, T, q * width)
    for name in ("decay", "beta"):
        if name not in inputs and r.random() < 0.3:
            inputs[name] = r.normal(0, 1, (B, T, kv)).astype(inputs["query"].dtype)
    return LinearNode("com.microsoft.LinearAttention", attributes, inputs)


def contrib_convolution(generator, dtypes=DTYPES):
    """Draw ONNX Runtime's CausalConvWithState: also with taps apart, or channels last."""
    r, node = generator, convolution_node(generator, dtypes)
    inputs, attributes = node.inputs, dict(node.attributes)
    is_last, dilation = r.random() < 0.5, int(r.choice([1, 1, 2, 3, 5]))
    if "past_state" in inputs:
        B, C, width = inputs["past_state"].shape
        past = _values(r, (B, C, width * dilation))
        inputs["past_state"] = past.astype(inputs["input"].dtype)
    if dilation > 1 or r.random() < 0.3:
        attributes["dilation"] = dilation
    if is_last or r.random() < 0.3:
        attributes["channels_last"] = int(is_last)
    for name in ("input", "past_state") if is_last else ():
        if name in inputs:
            inputs[name] = np.ascontiguousarray(inputs[name].swapaxes(1, 2))
    return LinearNode("com.microsoft.CausalConvWithState", attributes, inputs)


def packed_convolution(generator, dtypes=DTYPES):
    """Draw a VarlenCausalConvWithState: up to 5 sequences of up to 17 tokens."""
    r = generator
    lengths = r.choice([1, 1, 2, 3, 5, 8, 17], r.integers(1, 6))
    P, N, C, k = lengths.sum(), len(lengths), r.integers(1, 10), r.integers(1, 7)
    apart, activation = int(r.choice([1, 1, 2, 3])), r.choice([None, "none", "silu", "swish"])
    inputs = {
        "input": _values(r, (P, C)) * r.choice([1, 1, 1, 20]),
        "weight": _values(r, (C, 1, k)),
        "bias": _values(r, (C,)),
        "initial_state": _values(r, (N, C, (k - 1) * apart)),
    }
    if r.random() < 0.4:
        del inputs["bias"]
    if r.random() < 0.1:  # NaN in one channel
        inputs["input"][r.integers(P), r.integers(C)] = np.nan
    dtype = dtypes[r.integers(len(dtypes))]
    typed = {name: x.astype(dtype) for name, x in inputs.items()}
    typed["cumulative_sequence_length"] = np.cumsum([0, *lengths]).astype(np.int32)
    attributes = {"dilation": apart} if apart > 1 or r.random() < 0.3 else {}
    if activation is not None:
        attributes["activation"] = str(activation)
    return LinearNode("com.microsoft.VarlenCausalConvWithState", attributes, typed)


def gated_delta_net(generator, dtypes=DTYPES):
    """Draw a GatedDeltaNet: packed sequences, or equally long ones; gates of every kind."""
    r = generator
    lengths = r.choice([1, 1, 2, 3, 5, 9], r.integers(1, 5))
    P, N, Q = int(lengths.sum()), len(lengths), int(r.integers(1, 4))
    K, k, v = Q * int(r.choice([1, 1, 2, 3])), int(r.integers(1, 7)), int(r.integers(1, 7))
    rule, is_short = str(r.choice(RULES)), r.random() < 0.5
    attributes = {"update_rule": rule, "scale": float(r.choice([0.0, 1.0, 0.3, -1.5]))}
    key = r.normal(0, 1 if is_short else 0.4 / np.sqrt(k), (P, Q, k))
    inputs = {"query": _values(r, (P, Q, k)), "key": key, "value": _values(r, (P, K, v))}
    if is_short:
        attributes["qk_l2_norm"] = 1
    is_packed = r.random() < 0.6
    if not is_packed:
        N = int(r.choice([n for n in range(1, P + 1) if P % n == 0]))
    if not is_packed or r.random() < 0.7:
        inputs["initial_state"] = _values(r, (N, K, v, k))
    if "gated" in rule:
        has_rows = r.random() < 0.5
        inputs["decay"] = _decays(r, (P, K, k) if has_rows else (P, K))
        gate = str(r.choice(["none", "softplus", "qwen", "sigmoid", "kda"]))
        if gate != "none":
            attributes |= {"gate_activation": gate, "gate_lower_bound": -float(r.choice([5, 0.1]))}
            inputs["decay"] = r.normal(0, 3, inputs["decay"].shape)
            inputs["a_log"] = r.normal(0, 0.5, K)
            inputs["dt_bias"] = r.normal(0, 1, (K, k) if has_rows and r.random() < 0.5 else K)
    if "delta" in rule:
        inputs["beta"] = r.random((P, K))
        if r.random() < 0.5:
            attributes["beta_activation"] = "sigmoid"
            inputs["beta"] = r.normal(0, 3, (P, K))
    dtype = dtypes[r.integers(len(dtypes))]
    of_float32 = {"initial_state", "a_log", "dt_bias"}
    typed = {n: x.astype(np.float32 if n in of_float32 else dtype) for n, x in inputs.items()}
    if is_packed:
        typed["cu_seqlens"] = np.cumsum([0, *lengths]).astype(np.int32)
    return LinearNode("com.microsoft.GatedDeltaNet", attributes, typed)


def _values(r, shape):
    """Draw normal numbers, or quarters, whose sums are exact and hit ties."""
    return r.integers(-4, 5, shape) / 4 if r.random() < 0.2 else r.normal(0, 1, shape)


def _decays(r, shape):
    """Draw decays of one kind: as of trained models, 0, strong, growing, or clearing the state."""
    mild = -0.1 * np.abs(r.normal(0, 1, shape))
    clears = np.where(r.random(shape) < 0.2, -np.inf, mild)
    growing = -mild * 40 / max(40, 10 * shape[1])
    return [mild, 0 * mild, 60 * mild, 900 * mild, growing, clears][r.integers(6)]


def _rates(r, shape):
    """Draw rates of one kind: between 0 and 1, each of the bounds, 2, and all of them."""
    mixed = r.choice([0.0, 0.5, 1.0, 2.0], shape)
    return [r.random(shape), 0 * mixed, 0 * mixed + 1, 0 * mixed + 2, mixed][r.integers(5)]


# What is wrong, and how a valid node becomes that: attributes, and shapes or dtypes of inputs; None
# leaves an attribute or an input out.
ATTENTION = {
    "query": (2, 4, 12),
    "key": (2, 4, 6),
    "value": (2, 4, 10),
    "past_state": (2, 2, 3, 5),
    "decay": (2, 4, 2),
    "beta": (2, 4, 2),
}
CONVOLUTION = {"input": (2, 3, 5), "weight": (3, 1, 4), "bias": (3,), "past_state": (2, 3, 3)}
INVALID_ATTENTION = {
    "q_num_heads is missing": {"q_num_heads": None},
    "kv_num_heads is missing": {"kv_num_heads": None},
    "q_num_heads is 0": {"q_num_heads": 0},
    "kv_num_heads is 0": {"kv_num_heads": 0},
    "q_num_heads is negative": {"q_num_heads": -4},
    "both numbers of heads are negative": {"q_num_heads": -4, "kv_num_heads": -2},
    "q_num_heads 3 is not a multiple of kv_num_heads 2": {"q_num_heads": 3, "query": (2, 4, 9)},
    "q_num_heads 1 is less than kv_num_heads 2": {"q_num_heads": 1, "query": (2, 4, 3)},
    "update_rule is unknown": {"update_rule": "rwkv"},
    "update_rule is empty": {"update_rule": ""},
    "update_rule is spelled in capitals": {"update_rule": "GATED_DELTA"},
    "key is missing": {"key": None},
    "value is missing": {"value": None},
    "query has rank 2": {"query": (4, 12)},
    "query has rank 4": {"query": (2, 4, 4, 3)},
    "key has rank 4": {"key": (2, 4, 2, 3)},
    "value has rank 4": {"value": (2, 4, 2, 5)},
    "past_state has rank 3": {"past_state": (2, 6, 5)},
    "decay has rank 2": {"decay": (4, 2)},
    "decay has rank 4": {"decay": (2, 4, 2, 1)},
    "beta has rank 2": {"beta": (2, 4)},
    "beta has rank 4": {"beta": (2, 4, 2, 1)},
    "key has another batch size": {"key": (1, 4, 6)},
    "value has another batch size": {"value": (3, 4, 10)},
    "past_state has another batch size": {"past_state": (1, 2, 3, 5)},
    "decay has another batch size": {"decay": (1, 4, 2)},
    "beta has another batch size": {"beta": (1, 4, 2)},
    "key has another number of tokens": {"key": (2, 5, 6)},
    "key has one token": {"key": (2, 1, 6)},
    "value has more tokens": {"value": (2, 5, 10)},
    "value has one token": {"value": (2, 1, 10)},
    "decay has more tokens": {"decay": (2, 5, 2)},
    "decay has one token": {"decay": (2, 1, 2)},
    "beta has more tokens": {"beta": (2, 5, 2)},
    "beta has one token": {"beta": (2, 1, 2)},
    "query's last dimension is not a multiple of q_num_heads": {"query": (2, 4, 13)},
    "key's last dimension is not a multiple of kv_num_heads": {"key": (2, 4, 7)},
    "value's last dimension is not a multiple of kv_num_heads": {"value": (2, 4, 11)},
    "key has another d_k than query": {"key": (2, 4, 8), "past_state": None},
    "key has q_num_heads heads": {"key": (2, 4, 12)},
    "past_state has q_num_heads heads": {"past_state": (2, 4, 3, 5)},
    "past_state is transposed": {"past_state": (2, 2, 5, 3)},
    "past_state has another d_k": {"past_state": (2, 2, 1, 5)},
    "past_state has another d_v": {"past_state": (2, 2, 3, 1)},
    "decay is missing for gated_delta": {"decay": None},
    "decay is missing for gated": {"update_rule": "gated", "decay": None, "beta": None},
    "beta is missing for gated_delta": {"beta": None},
    "beta is missing for delta": {"update_rule": "delta", "decay": None, "beta": None},
    "decay is surplus for linear": {"update_rule": "linear", "beta": None},
    "decay is surplus for delta": {"update_rule": "delta"},
    "beta is surplus for linear": {"update_rule": "linear", "decay": None},
    "beta is surplus for gated": {"update_rule": "gated"},
    "decay's last dimension is 1": {"decay": (2, 4, 1)},
    "decay's last dimension is d_k": {"decay": (2, 4, 3)},
    "decay has q_num_heads heads": {"decay": (2, 4, 4)},
    "decay has d_k for each of q_num_heads": {"decay": (2, 4, 12)},
    "decay has d_v for each of kv_num_heads": {"decay": (2, 4, 10)},
    "beta has q_num_heads heads": {"beta": (2, 4, 4)},
    "beta has d_k for each of kv_num_heads": {"beta": (2, 4, 6)},
    "query is float64": {"query": np.float64},
    "all but past_state are float64": dict.fromkeys(
        ("query", "key", "value", "decay", "beta"), np.float64
    ),
    "key has another dtype": {"key": np.float16},
    "value has another dtype": {"value": np.float16},
    "decay has another dtype": {"decay": np.float16},
    "beta has another dtype": {"beta": ml_dtypes.bfloat16},
    "past_state is float64": {"past_state": np.float64},
    "past_state holds integers": {"past_state": np.int32},
}
INVALID_CONVOLUTION = {
    "activation is unknown": {"activation": "relu"},
    "activation is empty": {"activation": ""},
    "activation is spelled in capitals": {"activation": "SiLU"},
    "weight is missing": {"weight": None},
    "input has rank 2": {"input": (3, 5)},
    "input has rank 4": {"input": (2, 3, 1, 5)},
    "weight has rank 2": {"weight": (3, 4)},
    "weight has rank 4": {"weight": (3, 1, 1, 4)},
    "bias has rank 2": {"bias": (3, 1)},
    "bias is a scalar": {"bias": ()},
    "past_state has rank 2": {"past_state": (3, 3)},
    "past_state has rank 4": {"past_state": (2, 3, 1, 3)},
    "weight is not depthwise": {"weight": (3, 3, 4)},
    "weight has its channels in the middle": {"weight": (1, 3, 4)},
    "weight has other channels": {"weight": (2, 1, 4)},
    "weight has one channel for all": {"weight": (1, 1, 4)},
    "k is 0": {"weight": (3, 1, 0), "past_state": None},
    "bias has other channels": {"bias": (4,)},
    "bias has one element for all channels": {"bias": (1,)},
    "past_state has another batch size": {"past_state": (1, 3, 3)},
    "past_state has other channels": {"past_state": (2, 1, 3)},
    "past_state has k positions": {"past_state": (2, 3, 4)},
    "past_state has k - 2 positions": {"past_state": (2, 3, 2)},
    "past_state is channels-last": {"past_state": (2, 4, 3), "weight": (3, 1, 5)},
    "input is float64": {"input": np.float64},
    "all are float64": dict.fromkeys(CONVOLUTION, np.float64),
    "weight has another dtype": {"weight": np.float16},
    "bias has another dtype": {"bias": np.float16},
    "past_state has another dtype": {"past_state": np.float16},
}


def invalid_nodes():
    """Yield what is wrong, and the node that breaks that rule and no other, as far as it can."""
    heads = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": "gated_delta"}
    tables = (
        ("LinearAttention-27", ATTENTION, heads, INVALID_ATTENTION),
        ("CausalConvWithState-27", CONVOLUTION, {"activation": "silu"}, INVALID_CONVOLUTION),
    )
    for operator, shapes, attributes, table in tables:
        for wrong, changes in table.items():
            r = np.random.default_rng(0)
            changed = {**shapes, **{name: v for name, v in changes.items() if name in shapes}}
            inputs = {}
            for name, value in changed.items():
                if value is not None:
                    shape, dtype = (
                        (value, np.float32) if isinstance(value, tuple) else (shapes[name], value)
                    )
                    inputs[name] = r.uniform(-1, 1, shape).astype(dtype)
            written = {
                **attributes,
                **{name: v for name, v in changes.items() if name not in shapes},
            }
            written = {name: v for name, v in written.items() if v is not None}
            yield wrong, LinearNode(operator, written, inputs)
