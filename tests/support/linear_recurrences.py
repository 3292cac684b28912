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
    scale=0.0,
    decay=(-1.5, 0.5),
    beta=(0.0, 2.0),
    change=lambda inputs: None,
    seed=0,
    readings=None,
):
    """Bind a LinearAttention with random inputs, some of which `change` changes in place."""
    row, draw = OPERATORS["LinearAttention-27"], np.random.default_rng(seed)
    inputs = {
        "query": draw.normal(0, 1, (N, T, K * group * dk)),
        "key": draw.normal(0, 0.6, (N, T, K * dk)),
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
    attributes = {"q_num_heads": K * group, "kv_num_heads": K, "update_rule": rule, "scale": scale}
    outputs = [output.name for output in row.outputs]
    return Node(row, attributes, outputs, {**row.readings, **(readings or {})}).recurrence(typed)


def convolution_of(
    *,
    N=2,
    C=3,
    T=7,
    w=4,
    dtype="float32",
    bias=True,
    past=True,
    activation="silu",
    change=lambda inputs: None,
    seed=0,
    readings=None,
):
    """Bind a CausalConvWithState with random inputs, some of which `change` changes in place."""
    row, draw = OPERATORS["CausalConvWithState-27"], np.random.default_rng(seed)
    inputs = {"input": draw.normal(0, 1, (N, C, T)), "weight": draw.normal(0, 1, (C, 1, w))}
    if bias:
        inputs["bias"] = draw.normal(0, 1, C)
    if past:
        inputs["past_state"] = draw.normal(0, 1, (N, C, w - 1))
    change(inputs)
    typed = {name: values.astype(DTYPES[dtype].numpy) for name, values in inputs.items()}
    outputs = [output.name for output in row.outputs]
    attributes = {"activation": activation}
    return Node(row, attributes, outputs, {**row.readings, **(readings or {})}).recurrence(typed)
