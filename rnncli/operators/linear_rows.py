"""ONNX's linear recurrences: LinearAttention and CausalConvWithState.

https://onnx.ai/onnx/operators/onnx__LinearAttention.html
https://onnx.ai/onnx/operators/onnx__CausalConvWithState.html

The state of each head of keys and values is a sequence of its own: N is batch_size * kv_num_heads,
and X has all that a step of it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.numerics import Array, dtype_of
from rnncli.operators.operator import Attribute, Input, Operator, Output, by_name, shape
from rnncli.operators.translation import Translation
from rnncli.recurrence.cells import CELLS, AttentionForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.operators.translation import Moves

FLOATS = ("float16", "bfloat16", "float32")
# The update rules that decay the state, and those that correct what it holds.
DECAYING = frozenset({"gated", "gated_delta"})
CORRECTING = frozenset({"delta", "gated_delta"})
# Attributes of gated cells that these lack.
FIXED = {
    "direction": "forward",
    "clip": None,
    "activations": None,
    "activation_alpha": None,
    "activation_beta": None,
}


def _attention_moves(values: Mapping[str, Any]) -> dict[str, Moves]:
    heads = values["kv_num_heads"]

    def tokens(packed: Array) -> Array:  # [N, T, K*w] -> [T, N*K, w]
        *front, N, T, width = packed.shape
        of_heads = packed.reshape(*front, N, T, heads, width // heads)
        return np.moveaxis(of_heads, -4, -3).reshape(*front, T, N * heads, width // heads)

    def packed(steps: Array) -> Array:
        *front, T, total, width = steps.shape
        of_heads = steps.reshape(*front, T, total // heads, heads, width)
        swapped = np.moveaxis(of_heads, -3, -4)
        return swapped.reshape(*front, total // heads, T, heads * width)

    def rates(beta: Array) -> Array:  # [N, T, 1 or K] -> [T, N or N*K, 1]
        return np.moveaxis(beta, -2, -3) if beta.shape[-1] == 1 else tokens(beta)

    def state(of_heads: Array) -> Array:  # [N, K, k, v] -> [1, N*K, k, v]
        *front, N, _, rows, columns = of_heads.shape
        return of_heads.reshape(*front, 1, N * heads, rows, columns)

    def of_heads(state: Array) -> Array:
        *front, _, total, rows, columns = state.shape
        return state.reshape(*front, total // heads, heads, rows, columns)

    def output(steps: Array) -> Array:
        return np.expand_dims(tokens(steps), -3)

    return {
        **dict.fromkeys(("query", "key", "value", "decay"), (tokens, packed)),
        "beta": (rates, packed),
        **dict.fromkeys(("past_state", "present_state"), (state, of_heads)),
        "output": (output, lambda steps: packed(steps[..., 0, :, :])),
    }


def _attention_fields(values: Mapping[str, Any], tensors: Mapping[str, Array]) -> dict[str, Any]:
    q, past = tensors["X"], tensors.get("initial_c")
    group = values["q_num_heads"] // values["kv_num_heads"]
    some = [tensors[role] for role in ("X", "key", "value", "decay", "beta") if role in tensors]
    shares_beta = some[-1].shape[-2] < q.shape[-2]
    if shares_beta:
        some[-1] = np.repeat(some[-1], values["kv_num_heads"], -2)
    front, dtype = q.shape[:-3], q.dtype
    return {
        "X": np.concatenate(some, axis=-1),
        "W": np.zeros((*front, 1, 0, 1, 1), dtype),
        "R": np.zeros((*front, 1, 0, 1, 1), dtype),
        "Wb": None,
        "initial": (None, past),
        "states_dtype": None if past is None else dtype_of(past),
        "attention": AttentionForm(
            group=group,
            key_size=q.shape[-1] // group,
            value_size=tensors["value"].shape[-1],
            decays=tensors["decay"].shape[-1] if "decay" in tensors else 0,
            has_beta="beta" in tensors,
            scale=values["scale"],
            heads=values["kv_num_heads"],
            shares_beta=shares_beta,
        ),
    }


def _attention_rules(values: Mapping[str, Any]) -> Iterator[str]:
    of_q, of_kv = values["q_num_heads"], values["kv_num_heads"]
    if of_q % of_kv:
        yield f"q_num_heads must be a multiple of kv_num_heads, got {of_q} and {of_kv}"


def _gates(values: Mapping[str, Any]) -> Mapping[str, bool]:
    rule = values["update_rule"]
    return {"decay": rule in DECAYING, "beta": rule in CORRECTING}


_STATE = (shape("N K k v"),)
_LINEAR_ATTENTION_27 = Operator(
    type="LinearAttention",
    version=27,
    domain="",
    dialect="ONNX",
    cell=CELLS["LinearAttention"],
    gates="",
    inputs=(
        Input("query", "X", (shape("N T Q*k"),), "queries, heads side by side"),
        Input("key", "key", (shape("N T K*k"),), "keys"),
        Input("value", "value", (shape("N T K*v"),), "values"),
        Input(
            "past_state",
            "initial_c",
            _STATE,
            "state before the first step; absent: 0",
            optional=True,
            dtypes=FLOATS,
        ),
        Input(
            "decay",
            "decay",
            (shape("N T K"), shape("N T K*k")),
            "logarithm of what is left of a state, or of each of its rows",
            optional=True,
            form="decay_form",
        ),
        Input(
            "beta",
            "beta",
            (shape("N T K"), shape("N T 1")),
            "update rate",
            optional=True,
            form="beta_form",
        ),
    ),
    outputs=(
        Output("output", "Y", (shape("N T Q*v"),), "what each query reads"),
        Output(
            "present_state",
            "Y_c",
            _STATE,
            "state after the last step",
            dtypes=FLOATS,
        ),
    ),
    attributes=by_name(
        Attribute(
            "q_num_heads", "int", "heads of query, a multiple of kv_num_heads", required=True
        ),
        Attribute("kv_num_heads", "int", "heads of key and value", required=True),
        Attribute(
            "update_rule",
            "string",
            "which terms the update has: a decay (gated), a correction by beta (delta), or both",
            default="gated_delta",
            choices=("linear", "gated", "delta", "gated_delta"),
        ),
        Attribute("scale", "float", "factor of the output; 0: 1/sqrt(key_size)", default=0.0),
        Attribute("chunk_size", "int", "a hint, which changes no result", default=64),
    ),
    dtypes=FLOATS,
    activations=(),
    default_activations=(),
    bias="sum",
    shapes_by="",
    fixed=FIXED,
    readings={"state-round": "end"},
    translation=Translation(_attention_moves, _attention_fields),
    demanding="update_rule",
    demands=_gates,
    rules=_attention_rules,
)


def _convolution_moves(_: Mapping[str, Any]) -> dict[str, Moves]:
    def steps(channels: Array) -> Array:  # [N, C, T] -> [T, N, C]
        return np.moveaxis(channels, -1, -3)

    def channels(steps: Array) -> Array:
        return np.moveaxis(steps, -3, -1)

    return {
        "input": (steps, channels),
        "weight": (lambda w: np.moveaxis(w, -1, -3)[..., None, :, :, :], lambda w: w),
        "bias": (lambda b: b[..., None, None, :], lambda b: b[..., 0, 0, :]),
        **dict.fromkeys(
            ("past_state", "present_state"),
            (lambda s: s[..., None, :, :, :], lambda s: s[..., 0, :, :, :]),
        ),
        "output": (
            lambda values: steps(values)[..., None, :, :],
            lambda values: channels(values[..., 0, :, :]),
        ),
    }


def _convolution_fields(values: Mapping[str, Any], tensors: Mapping[str, Array]) -> dict[str, Any]:
    X, W = tensors["X"], tensors["W"]
    return {
        "X": X,
        "W": W,
        "R": np.zeros((*X.shape[:-3], 1, 0, 1, 1), X.dtype),
        "Wb": tensors.get("Wb"),
        "initial": (None, tensors.get("initial_c")),
        "silu": values["activation"] != "none",
    }


_WINDOW = (shape("N C w-1"),)
_CAUSAL_CONV_27 = Operator(
    type="CausalConvWithState",
    version=27,
    domain="",
    dialect="ONNX",
    cell=CELLS["CausalConv"],
    gates="",
    inputs=(
        Input("input", "X", (shape("N C T"),), "channels of each sequence"),
        Input(
            "weight", "W", (shape("C 1 w"),), "taps of each channel, that of the newest step last"
        ),
        Input("bias", "Wb", (shape("C"),), "bias of each channel; absent: 0", optional=True),
        Input(
            "past_state",
            "initial_c",
            _WINDOW,
            "the steps before the first; absent: 0",
            optional=True,
        ),
    ),
    outputs=(
        Output("output", "Y", (shape("N C T"),), "convolution, activated"),
        Output("present_state", "Y_c", _WINDOW, "the last steps"),
    ),
    attributes=by_name(
        Attribute(
            "activation",
            "string",
            "function of the sum: x sigmoid(x), which has both names, or none",
            default="none",
            choices=("silu", "swish", "none"),
        ),
    ),
    dtypes=FLOATS,
    activations=(),
    default_activations=(),
    bias="sum",
    shapes_by="",
    fixed=FIXED,
    readings={"conv-round": "output"},
    translation=Translation(_convolution_moves, _convolution_fields),
)

ROWS = (_LINEAR_ATTENTION_27, _CAUSAL_CONV_27)
