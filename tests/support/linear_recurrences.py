"""Linear recurrences of a size to look at."""

import numpy as np

from rnncli.numerics import DTYPES
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node, checked

RULES = {"linear": "", "gated": "g", "delta": "b", "gated_delta": "gb"}


def attention_of(
    rule="gated_delta",
    *,
    N=2,
    T=5,
    K=2,
    group=2,
    dk=4,
    dv=3,
    dtype="float32",
    states_dtype=None,
    per_key=False,
    shared_beta=False,
    past=True,
    share=1,
    shares_key=False,
    scale=0.0,
    decay=(-1.5, 0.5),
    beta=(0.0, 2.0),
    change=lambda inputs: None,
    seed=0,
    readings=None,
):
    """Bind a LinearAttention with random inputs, some of which `change` changes in place.

    It is ONNX Runtime's where heads of values share a head of queries.
    """
    row = OPERATORS["LinearAttention-27" if share == 1 else "com.microsoft.LinearAttention"]
    draw, Q = np.random.default_rng(seed), K * group // share
    inputs = {
        "query": draw.normal(0, 1, (N, T, Q * dk)),
        "key": draw.normal(0, 0.6, (N, T, (Q if shares_key else K) * dk)),
        "value": draw.normal(0, 1, (N, T, K * dv)),
    }
    if past:
        inputs["past_state"] = draw.normal(0, 1, (N, K, dk, dv))
    if "g" in RULES[rule]:
        inputs["decay"] = draw.uniform(*decay, (N, T, K * dk if per_key else K))
    if "b" in RULES[rule]:
        inputs["beta"] = draw.uniform(*beta, (N, T, 1 if shared_beta else K))
    change(inputs)
    typed = {
        name: values.astype(DTYPES[(name == "past_state" and states_dtype) or dtype].numpy)
        for name, values in inputs.items()
    }
    attributes = {"q_num_heads": Q, "kv_num_heads": K, "update_rule": rule, "scale": scale}
    outputs = [output.name for output in row.outputs]
    return Node(row, attributes, outputs, {**row.readings, **(readings or {})}).recurrence(typed)


def convolution_of(
    *,
    N=2,
    C=3,
    T=7,
    w=4,
    dilation=1,
    dtype="float32",
    bias=True,
    past=True,
    activation="silu",
    change=lambda inputs: None,
    seed=0,
    readings=None,
):
    """Bind a CausalConvWithState with random inputs, some of which `change` changes in place.

    It is ONNX Runtime's where taps are apart.
    """
    row = OPERATORS[
        "CausalConvWithState-27" if dilation == 1 else "com.microsoft.CausalConvWithState"
    ]
    draw, apart = np.random.default_rng(seed), {"dilation": dilation} if dilation > 1 else {}
    inputs = {"input": draw.normal(0, 1, (N, C, T)), "weight": draw.normal(0, 1, (C, 1, w))}
    if bias:
        inputs["bias"] = draw.normal(0, 1, C)
    if past:
        inputs["past_state"] = draw.normal(0, 1, (N, C, (w - 1) * dilation))
    change(inputs)
    typed = {name: values.astype(DTYPES[dtype].numpy) for name, values in inputs.items()}
    outputs = [output.name for output in row.outputs]
    attributes = {"activation": activation, **apart}
    return Node(row, attributes, outputs, {**row.readings, **(readings or {})}).recurrence(typed)


def packed_convolution_of(ends=(2, 9, 10, 14), *, C=3, w=4, dilation=1, activation="silu", seed=0):
    """Bind a VarlenCausalConvWithState of sequences that end there, with random inputs."""
    row = OPERATORS["com.microsoft.VarlenCausalConvWithState"]
    draw, N = np.random.default_rng(seed), len(ends)
    inputs = {
        "input": draw.normal(0, 1, (ends[-1], C)),
        "weight": draw.normal(0, 1, (C, 1, w)),
        "cumulative_sequence_length": np.array([0, *ends], np.int32),
        "bias": draw.normal(0, 1, C),
        "initial_state": draw.normal(0, 1, (N, C, (w - 1) * dilation)),
    }
    typed = {k: v if v.dtype == np.int32 else v.astype(np.float32) for k, v in inputs.items()}
    attributes = {"activation": activation, "dilation": dilation}
    return checked(row, attributes, typed).recurrence(typed)


def packed_attention_of(
    rule="gated_delta",
    *,
    ends=(2, 9, 10, 14),
    per_key=False,
    past=True,
    K=4,
    share=2,
    **made,
):
    """Bind a GatedDeltaNet of sequences that end there, with random inputs."""
    row = OPERATORS["com.microsoft.GatedDeltaNet"]
    draw, N, P, dk, dv = np.random.default_rng(0), len(ends), ends[-1], 3, 2
    inputs = {
        "query": draw.normal(0, 1, (P, K // share, dk)),
        "key": draw.normal(0, 0.6, (P, K // share, dk)),
        "value": draw.normal(0, 1, (P, K, dv)),
        "cu_seqlens": np.array([0, *ends], np.int32),
    }
    if "g" in RULES[rule]:
        inputs["decay"] = draw.uniform(-2, 0, (P, K, dk) if per_key else (P, K))
    if "b" in RULES[rule]:
        inputs["beta"] = draw.uniform(0, 1, (P, K))
    if past:
        inputs["initial_state"] = draw.normal(0, 1, (N, K, dv, dk))
    if made.get("gate_activation", "none") != "none":
        inputs["a_log"], inputs["dt_bias"] = draw.normal(0, 0.5, K), draw.normal(0, 1, K)
    typed = {k: v if v.dtype == np.int32 else v.astype(np.float32) for k, v in inputs.items()}
    return checked(row, {"update_rule": rule, **made}, typed).recurrence(typed)
