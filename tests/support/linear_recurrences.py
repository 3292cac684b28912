"""Linear recurrences of a size to look at."""

import numpy as np

from rnncli.numerics import DTYPES
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node

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
