"""Linear recurrences, LinearAttention and CausalConvWithState, of ONNX and of ONNX Runtime.

https://onnx.ai/onnx/operators/onnx__LinearAttention.html
https://onnx.ai/onnx/operators/onnx__CausalConvWithState.html
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md

The state of each head of keys and values is a sequence of its own: N is batch_size * kv_num_heads,
and X has all that a step of it reads. ONNX Runtime's are called by their domain, since a version
would be taken for an opset of ONNX's. They are those of ONNX, and besides: heads of values may
share a head of queries, and one of keys; a decay or a beta that the update rule lacks is ignored;
taps may be apart; and channels may be last.
"""

from __future__ import annotations

from dataclasses import replace
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
    groups = min(heads, values["q_num_heads"])  # of heads that share a head

    def tokens(packed: Array) -> Array:  # [N, T, groups*w] -> [T, N*groups, w]
        *front, N, T, width = packed.shape
        of_groups = packed.reshape(*front, N, T, groups, width // groups)
        return of_groups.swapaxes(-4, -3).reshape(*front, T, N * groups, width // groups)

    def packed(steps: Array) -> Array:
        *front, T, total, width = steps.shape
        of_groups = steps.reshape(*front, T, total // groups, groups, width)
        return of_groups.swapaxes(-4, -3).reshape(*front, total // groups, T, groups * width)

    def rates(beta: Array) -> Array:  # [N, T, 1 or K] -> [T, N, 1] or [T, N*groups, K/groups]
        return beta.swapaxes(-3, -2) if beta.shape[-1] == 1 else tokens(beta)

    def state(of_heads: Array) -> Array:  # [N, K, k, v] -> [1, N*K, k, v]
        *front, N, _, rows, columns = of_heads.shape
        return of_heads.reshape(*front, 1, N * heads, rows, columns)

    def of_heads(state: Array) -> Array:
        *front, _, total, rows, columns = state.shape
        return state.reshape(*front, total // heads, heads, rows, columns)

    def output(steps: Array) -> Array:  # [N, T, K*w] -> [T, 1, N*K, w]
        return np.expand_dims(_apart(tokens(steps), heads // groups), -3)

    def of_output(steps: Array) -> Array:
        *front, T, _, total, width = steps.shape
        together = heads // groups
        return packed(steps.reshape(*front, T, total // together, together * width))

    return {
        **dict.fromkeys(("query", "key", "value", "decay"), (tokens, packed)),
        "beta": (rates, packed),
        **dict.fromkeys(("past_state", "present_state"), (state, of_heads)),
        "output": (output, of_output),
    }


def _apart(steps: Array, heads: int) -> Array:
    """Return the values of groups of heads, [T, N*groups, heads*w], as [T, N*groups*heads, w]."""
    *front, total, width = steps.shape
    return steps.reshape(*front, total * heads, width // heads)


def _attention_fields(
    values: Mapping[str, Any], tensors: Mapping[str, Array], _: Mapping[str, str]
) -> dict[str, Any]:
    queries, heads = values["q_num_heads"], values["kv_num_heads"]
    q, past = tensors["X"], tensors.get("initial_c")
    group, share = max(queries // heads, 1), max(heads // queries, 1)
    needed = gates(values)
    roles = (r for r in ("key", "value", "decay", "beta") if needed.get(r, r in tensors))
    given = {role: tensors[role] for role in roles}
    shares_key = share > 1 and given["key"].shape[-1] * group == q.shape[-1]
    shares_beta = False
    if (beta := given.get("beta")) is not None:
        shares_beta = beta.shape[-2] < q.shape[-2] or beta.shape[-1] < share
    readers = {"key": shares_key * share, "beta": shares_beta * heads}
    some = [np.repeat(q, share, -2)]
    for role, of_groups in given.items():
        of_one = readers.get(role)
        some.append(np.repeat(of_groups, of_one, -2) if of_one else _apart(of_groups, share))
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
            value_size=given["value"].shape[-1] // share,
            decays=given["decay"].shape[-1] // share if "decay" in given else 0,
            has_beta="beta" in given,
            scale=values["scale"],
            heads=heads,
            shares_beta=shares_beta,
            share=share,
            shares_key=shares_key,
        ),
    }


def _attention_rules(values: Mapping[str, Any], _: str) -> Iterator[str]:
    of_q, of_kv = values["q_num_heads"], values["kv_num_heads"]
    if of_q % of_kv:
        yield f"q_num_heads must be a multiple of kv_num_heads, got {of_q} and {of_kv}"


def gates(values: Mapping[str, Any]) -> Mapping[str, bool]:
    """Return the inputs that depend on the update rule, and whether it needs each."""
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
    demands=gates,
    rules=_attention_rules,
)


def _convolution_moves(values: Mapping[str, Any]) -> dict[str, Moves]:
    is_last = bool(values.get("channels_last"))

    def steps(channels: Array) -> Array:  # [N, C, T], or [N, T, C], -> [T, N, C]
        return np.moveaxis(channels, -2 if is_last else -1, -3)

    def channels(steps: Array) -> Array:
        return np.moveaxis(steps, -3, -2 if is_last else -1)

    def window(state: Array) -> Array:  # [N, C, w-1], or [N, w-1, C], -> [1, N, C, w-1]
        return (state.swapaxes(-1, -2) if is_last else state)[..., None, :, :, :]

    def state(window: Array) -> Array:
        first = window[..., 0, :, :, :]
        return first.swapaxes(-1, -2) if is_last else first

    return {
        "input": (steps, channels),
        "weight": (lambda w: np.moveaxis(w, -1, -3)[..., None, :, :, :], lambda w: w),
        "bias": (lambda b: b[..., None, None, :], lambda b: b[..., 0, 0, :]),
        **dict.fromkeys(("past_state", "present_state"), (window, state)),
        "output": (
            lambda values: steps(values)[..., None, :, :],
            lambda values: channels(values[..., 0, :, :]),
        ),
    }


def _convolution_fields(
    values: Mapping[str, Any], tensors: Mapping[str, Array], _: Mapping[str, str]
) -> dict[str, Any]:
    X, W = tensors["X"], tensors["W"]
    return {
        "X": X,
        "W": W,
        "R": np.zeros((*X.shape[:-3], 1, 0, 1, 1), X.dtype),
        "Wb": tensors.get("Wb"),
        "initial": (None, tensors.get("initial_c")),
        "silu": values["activation"] != "none",
        "gap": values.get("dilation", 1) - 1,
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


def only(
    name: str,
    default: int,
    summary: str,
    reason: str = "ONNX Runtime's CPU evaluates no other, either",
) -> Attribute:
    """Return the row of an integer of which the default alone is evaluated, for a reason."""
    return Attribute(name, "int", summary, default=default, unsupported=reason)


def _grouping(values: Mapping[str, Any], _: str) -> Iterator[str]:
    of_q, of_kv = values["q_num_heads"], values["kv_num_heads"]
    if of_q % of_kv and of_kv % of_q:
        sentence = "one of q_num_heads and kv_num_heads must be a multiple of the other"
        yield f"{sentence}, got {of_q} and {of_kv}"


_QUERY, _KEY, *_OTHERS = _LINEAR_ATTENTION_27.inputs
_READ, *_STATES = _LINEAR_ATTENTION_27.outputs
_WINDOWS = only("state_window", 0, "states of the last steps that past and present have")
CONTRIB: dict[str, Any] = {
    "version": 1,
    "versioned": False,
    "domain": "com.microsoft",
    "dialect": "ONNX Runtime",
}
CONTRIB_ATTENTION = replace(
    _LINEAR_ATTENTION_27,
    **CONTRIB,
    inputs=(
        _QUERY,
        _KEY._replace(shapes=(*_KEY.shapes, shape("N T min(Q,K)*k")), form="key_form"),
        *_OTHERS,
    ),
    outputs=(_READ._replace(shapes=(shape("N T max(Q,K)*v"),)), *_STATES),
    attributes={**_LINEAR_ATTENTION_27.attributes}
    | by_name(
        Attribute(
            "q_num_heads",
            "int",
            "heads of query, a multiple or divisor of kv_num_heads",
            required=True,
        ),
        _WINDOWS,
    ),
    demands=lambda values: {name: True for name, needed in gates(values).items() if needed},
    rules=_grouping,
)
_BOTH_STEPS = (shape("N C T"), shape("N T C"))
_BOTH_WINDOWS = (shape("N C (w-1)*d"), shape("N (w-1)*d C"))
CONTRIB_CONV = replace(
    _CAUSAL_CONV_27,
    **CONTRIB,
    inputs=tuple(
        row._replace(
            shapes={"X": _BOTH_STEPS, "initial_c": _BOTH_WINDOWS}.get(row.role, row.shapes)
        )
        for row in _CAUSAL_CONV_27.inputs
    ),
    outputs=tuple(
        row._replace(shapes=_BOTH_STEPS if row.role == "Y" else _BOTH_WINDOWS)
        for row in _CAUSAL_CONV_27.outputs
    ),
    attributes={**_CAUSAL_CONV_27.attributes}
    | by_name(
        Attribute("dilation", "int", "steps from one tap to the next", default=1),
        Attribute(
            "channels_last",
            "int",
            "1: input, output and states have channels last, behind the steps",
            default=0,
            choices=(0, 1),
        ),
        only("ndim", 1, "axes of a sequence, of which the last is of the steps"),
        _WINDOWS,
        only("state_length", 0, "steps that a state has; 0: those that taps read"),
        only("state_channels_last", -1, "1: channels are last in states; -1: see channels_last"),
        only("state_update_capacity", 0, "steps of which an output has the inputs"),
        only("input_channels", 0, "channels of input that are read; 0: all"),
        only("input_channel_offset", 0, "first channel of input that is read"),
    ),
    shapes_by="channels_last",
    beyond={"outputs": ("state_update",)},
    readings={"conv-round": "none"},  # the text has one fused operation, which rounds once
)

ROWS = (_LINEAR_ATTENTION_27, _CAUSAL_CONV_27, CONTRIB_ATTENTION, CONTRIB_CONV)
