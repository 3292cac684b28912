"""Nodes of linear recurrences drawn by number: a generator, not chosen to be easy.

Decays are mild, strong, constant, positive or mixed; beta reaches 2; keys are normalised or not,
all the same, a few, or all different; states, heads and types of any kind.
"""

import numpy as np

from rnncli.numerics import DTYPES
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node

ATTENTION, CONVOLUTION = OPERATORS["LinearAttention-27"], OPERATORS["CausalConvWithState-27"]
STEPS = (1, 2, 5, 17, 33, 64, 65, 130)
DECAYS = {
    "mild": lambda u: -0.1 * u,
    "strong": lambda u: -8 * u,
    "mixed": lambda u: np.where(u < 0.1, -200 * u, -0.05 * u),
    "positive": lambda u: 0.05 * u - 0.02,
    "constant": lambda u: np.broadcast_to(-0.02 * u[:, :1], u.shape),
    "nearly none": lambda u: -1e-3 * u,
}
BETAS = {
    "one": np.ones_like,
    "up to two": lambda u: 2 * u,
    "up to one": lambda u: u,
    "one or none": np.round,
}
KEYS = {
    "all": lambda k, _: k,
    "one": lambda k, _: np.broadcast_to(k[:, :1], k.shape),
    "few": lambda k, chance: k[:, chance.integers(0, min(k.shape[1], 3), k.shape[1])],
}


def recurrence_of(row, attributes, inputs, dtypes, readings):
    """Bind a node; its inputs are cast to the type of tensors, the past state to that of states."""
    dtype, states = dtypes
    cast = {
        name: values.astype(DTYPES[states or dtype if name == "past_state" else dtype].numpy)
        for name, values in inputs.items()
    }
    readings = {**row.readings, **(readings or {})}
    return Node(row, attributes, [o.name for o in row.outputs], readings).recurrence(cast)


def attention(seed, dtype="float32", states=None, readings=None, **given):
    """Draw an attention; T, dk, dv, K and rule may be given, and inputs by name be replaced."""
    chance = np.random.default_rng(seed)
    drawn = {
        "T": int(chance.choice(STEPS)),
        "dk": int(chance.choice([1, 2, 4, 8, 16])),
        "dv": int(chance.choice([1, 2, 3, 8])),
        "K": int(chance.integers(1, 3)),
        "rule": str(chance.choice(["linear", "gated", "delta", "gated_delta", "gated_delta"])),
    }
    T, dk, dv, K, rule = ({**drawn, **given}[name] for name in drawn)
    N, group = (int(chance.integers(1, 3)) for _ in range(2))

    k = KEYS[chance.choice([*KEYS])](chance.normal(0, 1, (N, T, K, dk)), chance)
    is_normal = chance.random() < 0.6
    size = np.linalg.norm(k, axis=-1, keepdims=True) if is_normal else np.sqrt(dk)
    k = k / size * (1 if is_normal else chance.choice([0.7, 1, 1.5]))
    inputs = {
        "query": chance.normal(0, 1, (N, T, K * group * dk)),
        "key": k.reshape(N, T, K * dk),
        "value": chance.normal(0, 1, (N, T, K * dv)),
    }
    if rule.startswith("gated"):
        u = chance.random((N, T, K * dk if chance.random() < 0.4 else K))
        inputs["decay"] = DECAYS[chance.choice([*DECAYS])](u)
    if rule.endswith("delta"):
        u = chance.random((N, T, K if chance.random() < 0.7 else 1))
        inputs["beta"] = BETAS[chance.choice([*BETAS])](u)
    if states or chance.random() < 0.6:
        inputs["past_state"] = chance.normal(0, 1, (N, K, dk, dv))
    attributes = {
        "q_num_heads": K * group,
        "kv_num_heads": K,
        "update_rule": rule,
        "scale": float(chance.choice([0.0, 1.0, 0.3])),
    }
    inputs |= given.get("inputs", {})
    return recurrence_of(ATTENTION, attributes, inputs, (dtype, states), readings)


def convolution(seed, dtype="float32", readings=None, **given):
    """Draw a convolution; inputs and its activation may be given."""
    chance = np.random.default_rng(seed)
    N, C, T, taps = (int(chance.choice(s)) for s in ([1, 3], [1, 4], [1, 2, 9], [1, 2, 4, 5]))
    inputs = {"input": chance.normal(0, 2, (N, C, T)), "weight": chance.normal(0, 1, (C, 1, taps))}
    if chance.random() < 0.7:
        inputs["bias"] = chance.normal(0, 1, C)
    if chance.random() < 0.7:
        inputs["past_state"] = chance.normal(0, 2, (N, C, taps - 1))
    activation = given.get("activation") or str(chance.choice(["silu", "none"]))
    attributes = {"activation": activation}
    return recurrence_of(CONVOLUTION, attributes, inputs, (dtype, None), readings)
