"""Linear recurrences of ONNX Runtime whose sequences are packed: all tokens one after the other.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md

Cumulative lengths say where sequences end. In the recurrence the sequences of a batch are side by
side, each with its length, so that the axes of a node depend on the numbers of an input.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.numerics import dtype_named
from rnncli.operators.linear_rows import CONTRIB_ATTENTION, CONTRIB_CONV, gates, only
from rnncli.operators.operator import Attribute, Input, Output, by_name, shape
from rnncli.operators.translation import Translation
from rnncli.recurrence.cells import TokenForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.numerics import Array
    from rnncli.operators.translation import Moves


class Packing(NamedTuple):
    """Where the tokens of packed sequences are in the steps of a batch."""

    steps: Array  # of each token, that of its sequence [P]
    sequences: Array  # of each token [P]
    shape: tuple[int, int]  # T and N

    @classmethod
    def of(cls, offsets: tuple[int, ...]) -> Packing:
        """Return that of cumulative lengths, from 0 to the number of tokens."""
        lengths = np.diff(offsets)
        sequences = np.repeat(np.arange(len(lengths)), lengths)
        steps = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return cls(steps, sequences, (int(lengths.max(initial=0)), len(lengths)))

    def apart(self, tokens: Array) -> Array:
        """Return tokens [..., P, C] as steps [..., T, N, C], zero behind the end of a sequence."""
        *front, _, width = tokens.shape
        steps = np.zeros((*front, *self.shape, width), tokens.dtype)
        steps[..., self.steps, self.sequences, :] = tokens
        return steps

    def packed(self, steps: Array) -> Array:
        """Return steps [..., T, N, C] as tokens [..., P, C]."""
        return np.asarray(steps[..., self.steps, self.sequences, :])


def packed_ends(count: int, total: int) -> Array:
    """Return where packed sequences begin and end, `count` numbers from 0 to `total`.

    Each sequence has a token, and the n-th n shares of the others.
    """
    N, n = count - 1, np.arange(count, dtype=np.int64)
    return np.asarray(n + n * (n + 1) * (total - N) // max(N * (N + 1), 1))


_LENGTHS: Moves = (np.diff, lambda lengths: np.insert(np.cumsum(lengths, -1), 0, 0, -1))


def _convolution_moves(values: Mapping[str, Any]) -> dict[str, Moves]:
    assert CONTRIB_CONV.translation is not None
    dense = CONTRIB_CONV.translation.moves(values)

    def packing() -> Packing:
        return Packing.of(values["ends"])

    return {
        "input": (lambda tokens: packing().apart(tokens), lambda steps: packing().packed(steps)),
        "output": (
            lambda tokens: packing().apart(tokens)[..., None, :, :],
            lambda steps: packing().packed(steps[..., 0, :, :]),
        ),
        "cumulative_sequence_length": _LENGTHS,
        **{name: dense[name] for name in ("weight", "bias")},
        **dict.fromkeys(("initial_state", "final_state"), dense["past_state"]),
    }


def _convolution_fields(
    values: Mapping[str, Any], tensors: Mapping[str, Array], readings: Mapping[str, str]
) -> dict[str, Any]:
    assert CONTRIB_CONV.translation is not None
    found = CONTRIB_CONV.translation.fields(values, tensors, readings)
    return {**found, "lengths": tensors["offsets"].astype(np.int64)}


def _facts(inputs: Mapping[str, Array]) -> dict[str, Any]:
    ends = inputs.get("cumulative_sequence_length")
    return {} if ends is None else {"ends": tuple(ends.ravel().tolist())}


_TOKENS, _WINDOW = (shape("P C"),), (shape("N C (w-1)*d"),)
_COPIES = "what a third output would have are copies of inputs"
_DYNAMIC = "ONNX Runtime's CPU evaluates no kernel_delta, either"
_VARLEN_CONV = replace(
    CONTRIB_CONV,
    type="VarlenCausalConvWithState",
    inputs=(
        Input("input", "X", _TOKENS, "channels of each token, sequence after sequence"),
        CONTRIB_CONV.inputs[1],
        Input(
            "cumulative_sequence_length",
            "offsets",
            (shape("N+1"),),
            "where each sequence begins, and where the last one ends",
            dtypes=("int32",),
        ),
        CONTRIB_CONV.inputs[2],
        Input("initial_state", "initial_c", _WINDOW, "the steps before the first"),
    ),
    outputs=(
        Output("output", "Y", _TOKENS, "convolution, activated"),
        Output("final_state", "Y_c", _WINDOW, "the last steps of each sequence"),
    ),
    attributes=by_name(
        *(CONTRIB_CONV.attributes[name] for name in ("activation", "dilation")),
        only("state_update_capacity", 0, "tokens of each sequence that an output has", _COPIES),
        only("group_size", 1, "channels that share a kernel_delta", _DYNAMIC),
        only("delta_offset", 0, "tap of the current token's kernel_delta", _DYNAMIC),
    ),
    shapes_by="",
    beyond={
        "inputs": ("capture_count", "kernel_delta", "previous_mask"),
        "outputs": ("state_update",),
    },
    empty_sizes=False,
    translation=Translation(_convolution_moves, _convolution_fields, _facts),
)


def _dense(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of the LinearAttention that a GatedDeltaNet is, given its facts."""
    of_queries, of_values = values["heads"]
    return {**values, "q_num_heads": of_queries, "kv_num_heads": of_values}


def _delta_moves(values: Mapping[str, Any]) -> dict[str, Moves]:
    assert CONTRIB_ATTENTION.translation is not None
    make = CONTRIB_ATTENTION.translation.moves

    def tokens(name: str, *, of_numbers: bool = True) -> Moves:
        """Return the moves of a tensor of tokens, whose heads have several numbers, or one."""
        axes = 1 + of_numbers  # of a token

        def there(packed: Array) -> Array:
            flat = packed.reshape(*packed.shape[:-axes], math.prod(packed.shape[-axes:]))
            steps = Packing.of(values["ends"]).apart(flat)
            return make(_dense(values))[name][0](np.swapaxes(steps, -2, -3))

        def back(steps: Array) -> Array:
            dense = make(_dense(values))[name][1](steps)
            flat = Packing.of(values["ends"]).packed(np.swapaxes(dense, -2, -3))
            *front, width = flat.shape
            heads = values["heads"][name not in {"query", "key"}]
            return flat.reshape(*front, heads, width // heads) if of_numbers else flat

        return there, back

    def state(of_heads: Array) -> Array:  # [N, K, v, k], V-major
        return make(_dense(values))["past_state"][0](np.swapaxes(of_heads, -1, -2))

    def of_state(state: Array) -> Array:
        return np.swapaxes(make(_dense(values))["past_state"][1](state), -1, -2)

    as_is: Moves = (lambda parameter: parameter, lambda parameter: parameter)
    return {
        **{name: tokens(name) for name in ("query", "key", "value", "output")},
        "decay": tokens("decay", of_numbers=values.get("has_rows", False)),
        "beta": tokens("beta", of_numbers=False),
        "cu_seqlens": _LENGTHS,
        **dict.fromkeys(("initial_state", "final_state"), (state, of_state)),
        **dict.fromkeys(("a_log", "dt_bias"), as_is),
    }


def _delta_fields(
    values: Mapping[str, Any], tensors: Mapping[str, Array], readings: Mapping[str, str]
) -> dict[str, Any]:
    assert CONTRIB_ATTENTION.translation is not None
    found = CONTRIB_ATTENTION.translation.fields(_dense(values), tensors, readings)
    lengths = np.diff(values["ends"])
    X, heads = found["X"], values["heads"][1]
    token = TokenForm(
        normalises=bool(values["qk_l2_norm"]),
        gate=values["gate_activation"],
        bound=values["gate_lower_bound"],
        activates_beta=values["beta_activation"] == "sigmoid",
    )
    if token.gate != "none":
        *front, T, states, _ = X.shape
        for name in ("a_log", "dt_bias"):
            of_heads = tensors[name].reshape(*front, 1, heads, -1)
            each = np.tile(of_heads, (*[1] * len(front), T, states // heads, 1))
            X = np.concatenate([X, each], axis=-1)
    return {
        **found,
        "X": X,
        "states_dtype": dtype_named("float32"),
        "token": None if token == TokenForm(bound=token.bound) else token,
        "lengths": np.broadcast_to(lengths, (*X.shape[:-3], len(lengths))).repeat(heads, -1),
    }


def _delta_facts(inputs: Mapping[str, Array]) -> dict[str, Any]:
    """Return where sequences end, the numbers of heads, and whether each row has a decay."""
    query, value, state = (inputs.get(n) for n in ("query", "value", "initial_state"))
    if query is None or value is None or (query.ndim, value.ndim) != (3, 3):
        return {}
    ends = inputs.get("cu_seqlens")
    P, N = query.shape[-3], state.shape[-4] if state is not None and state.ndim > 3 else 1
    alike = P // max(N, 1) * np.arange(N + 1)
    return {
        "ends": tuple((alike if ends is None else ends.ravel()).tolist()),
        "tokens": P,
        "batch_size": N if ends is None else ends.size - 1,
        "uneven": ends is None and (P % N if N else P) != 0,
        "lacks_batch": ends is None and state is None,
        "heads": (query.shape[-2], value.shape[-2]),
        "has_rows": "decay" in inputs and inputs["decay"].ndim > 2,
    }


def _delta_others(inputs: Mapping[str, Array]) -> Iterator[str]:
    query, gates = inputs.get("query"), [inputs[n] for n in ("decay", "beta") if n in inputs]
    if query is None:
        return
    if not {"key", "value"} & {*inputs}:
        yield "queries, keys and values in one tensor, without 'key' and 'value', are"
    elif query.ndim == 4:
        yield "sequences side by side, [batch_size, seq_length, q_num_heads, key_size], are"
    if query.itemsize == 2 and any(gate.dtype == np.float32 for gate in gates):
        yield "float32 'decay' and 'beta' beside a query of 16 bits are"


def _delta_rules(values: Mapping[str, Any], _: str) -> Iterator[str]:
    if not values["gate_lower_bound"] < 0:
        yield f"gate_lower_bound must be below 0, got {values['gate_lower_bound']}"
    if "heads" in values:
        queries, states = values["heads"]
        if not queries or states % queries:
            yield f"num_heads_v must be a multiple of num_heads_q, got {states} and {queries}"
        if values["uneven"]:
            yield (
                f"total_tokens {values['tokens']} must be a multiple of batch_size, taken from"
                " initial_state, where cu_seqlens is absent"
            )
        if values["lacks_batch"]:
            yield "initial_state is needed where cu_seqlens is absent: it has the batch size"


def _delta_demands(values: Mapping[str, Any]) -> dict[str, bool]:
    has_gate = values["gate_activation"] != "none"
    return {**gates(values), "a_log": has_gate, "dt_bias": has_gate}


_COPY = "a third output would have the factors of each step"
_SINGLE = dict.fromkeys(("float16", "bfloat16", "float32"), "float32")
_DELTA = replace(
    CONTRIB_ATTENTION,
    type="GatedDeltaNet",
    inputs=(
        Input("query", "X", (shape("P Q k"),), "queries of each token, sequence after sequence"),
        Input("key", "key", (shape("P Q k"),), "keys"),
        Input("value", "value", (shape("P K v"),), "values; K is a multiple of Q"),
        Input(
            "cu_seqlens",
            "offsets",
            (shape("N+1"),),
            "where each sequence begins, and where the last one ends; absent: all are as long",
            optional=True,
            dtypes=("int32",),
        ),
        Input(
            "decay",
            "decay",
            (shape("P K"), shape("P K k")),
            "logarithm of what is left of a state, or of each of its rows; or what the gate takes",
            optional=True,
            form="decay_form",
        ),
        Input(
            "beta", "beta", (shape("P K"),), "update rate, or what a sigmoid takes", optional=True
        ),
        Input(
            "initial_state",
            "initial_c",
            (shape("N K v k"),),
            "state before the first token; absent: 0",
            optional=True,
            dtypes=("float32",),
        ),
        Input(
            "a_log",
            "a_log",
            (shape("K"),),
            "logarithm of the gate's factor",
            optional=True,
            types=_SINGLE,
        ),
        Input(
            "dt_bias",
            "dt_bias",
            (shape("K"), shape("K k")),
            "what the gate adds to the decay",
            optional=True,
            types=_SINGLE,
            form="bias_form",
        ),
    ),
    outputs=(
        Output("output", "Y", (shape("P K v"),), "what each query reads"),
        Output(
            "final_state",
            "Y_c",
            (shape("N K v k"),),
            "state after the last token of each sequence",
            dtypes=("float32",),
        ),
    ),
    attributes=by_name(
        *(CONTRIB_ATTENTION.attributes[name] for name in ("update_rule", "scale", "chunk_size")),
        Attribute("qk_l2_norm", "int", "1: queries and keys are normalised", 0, choices=(0, 1)),
        Attribute(
            "beta_activation",
            "string",
            "what is made of beta",
            default="none",
            choices=("none", "sigmoid"),
        ),
        Attribute(
            "gate_activation",
            "string",
            "what makes the decay",
            default="none",
            choices=("none", "softplus", "sigmoid"),
            aliases={"qwen": "softplus", "kda": "sigmoid"},
        ),
        Attribute("gate_lower_bound", "float", "factor of the gate's sigmoid, below 0", -5.0),
        only("state_update_capacity", 0, "tokens of each sequence that an output has", _COPY),
    ),
    beyond={
        "inputs": ("capture_count", "state_update_active"),
        "outputs": ("state_update",),
    },
    empty_sizes=False,
    translation=Translation(_delta_moves, _delta_fields, _delta_facts),
    demands=_delta_demands,
    rules=_delta_rules,
    unsupported=_delta_others,
)

ROWS = (_VARLEN_CONV, _DELTA)
