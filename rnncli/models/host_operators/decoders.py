"""Layers of decoders that ONNX Runtime has operators for, beside linear recurrences.

What is narrower than float32 is computed in float32 and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.host_operators.arithmetic import at_least_float32, product, rounded
from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array


def simplified_layer_norm(
    X: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5
) -> tuple[Array, Array]:
    """``X / sqrt(mean(X^2) + epsilon) * scale``, the mean over `axis` and all axes behind it."""
    x = at_least_float32(X)
    inverse = _inverse_norm(x, tuple(range(axis % x.ndim, x.ndim)), epsilon)
    return rounded(x * inverse * at_least_float32(scale), X), inverse


def skip_simplified_layer_norm(
    X: Array, skip: Array, gamma: Array, bias: Array | None = None, *, epsilon: float = 1e-12
) -> tuple[Array, None, Array, Array]:
    """Normalise ``X + skip + bias`` along the last axis; return the sum, too."""
    total = at_least_float32(X) + at_least_float32(skip)
    if bias is not None:
        total += at_least_float32(bias)
    inverse = _inverse_norm(total, (-1,), epsilon)
    made = total * inverse * at_least_float32(gamma)
    return rounded(made, X), None, inverse, rounded(total, X)


def gated_rms_norm(
    X: Array, scale: Array, gate: Array, *, activation: str = "silu", epsilon: float = 1e-5
) -> Array:
    """``X / sqrt(mean(X^2) + epsilon) * scale * activation(gate)``, for each head of channels."""
    if activation not in {"silu", "swish", "sigmoid"}:
        raise InvalidRequest(f"activation must be silu, swish or sigmoid, got {activation}")
    if gate.shape != X.shape:
        raise InvalidRequest(f"gate must be {[*X.shape]} as X is, got {[*gate.shape]}")
    heads = at_least_float32(X).reshape(*X.shape[:-1], -1, scale.size)
    made = heads * _inverse_norm(heads, (-1,), epsilon) * at_least_float32(scale)
    z = at_least_float32(gate)
    opened = _sigmoid(z) if activation == "sigmoid" else z * _sigmoid(z)
    return rounded(made.reshape(X.shape) * opened, X)


def linear_attention_gate(
    a: Array, dt_bias: Array, decay_scale: Array, b: Array | None = None
) -> tuple[Array, Array | None]:
    """``decay_scale * softplus(a + dt_bias)``, and ``sigmoid(b)``."""
    decay = decay_scale * np.logaddexp(0, at_least_float32(a) + dt_bias)
    return rounded(decay, a), None if b is None else rounded(_sigmoid(at_least_float32(b)), b)


def rotary_embedding(
    X: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    *,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    interleaved: int = 0,
    mrope_section: Sequence[int] | None = None,
    mrope_layout: int = 0,
    **more: Any,
) -> Array:
    """Turn pairs of the first values of each head by the angles of its token's position.

    With `mrope_section` a token has three positions, and each angle is of one of them: of sections
    side by side, or interleaved, where all that the last two leave is of the first.
    """
    _refuse(more, scale=1.0, is_packed_batching=0)
    half = cos_cache.shape[-1]
    if X.ndim == 4:  # [N, heads, T, k]
        heads = X
    else:
        width = X.shape[-1] // num_heads if rotary_embedding_dim else 2 * half
        heads = _heads(X, X.shape[-1] // width)
    if position_ids.shape == (1,):  # that of the first token
        T = heads.shape[2]
        position_ids = np.broadcast_to(position_ids + np.arange(T), (len(X), T))
    cos, sin = cos_cache[position_ids], sin_cache[position_ids]
    if mrope_section is not None:
        if sum(mrope_section) != half:
            raise InvalidRequest(f"mrope_section must add up to {half}, got {[*mrope_section]}")
        stream = np.repeat(range(3), mrope_section)
        if mrope_layout:
            stream[:] = 0
            for k in (1, 2):
                stream[k : 3 * mrope_section[k] : 3] = k
        cos, sin = (
            np.stack([each[s, ..., k] for k, s in enumerate(stream)], -1) for each in (cos, sin)
        )
    turned = rounded(_rotated(at_least_float32(heads), cos, sin, interleaved), X)
    return turned if X.ndim == 4 else _side_by_side(turned)


def group_query_attention(  # noqa: PLR0917 -- the operator has as many
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    seqlens_k: Array,
    total_sequence_length: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    position_ids: Array | None = None,
    attention_bias: Array | None = None,
    head_sink: Array | None = None,
    *others: Array | None,
    num_heads: int,
    kv_num_heads: int,
    scale: float = 0.0,
    softcap: float = 0.0,
    causal: int = 1,
    local_window_size: int = -1,
    smooth_softmax: int = -1,
    do_rotary: int = 0,
    rotary_interleaved: int = 0,
    **more: Any,
) -> tuple[Array, Array, Array]:
    """Attend to the cached and the new tokens of each sequence; return keys and values of both.

    A sequence has ``seqlens_k + 1`` tokens, of which the new ones are the last. What a cache has
    behind them is 0, and what rows of padding give is not specified.

    Raises:
        InvalidRequest: caches or lengths do not fit the tokens.
        Unsupported: a quantised or sliding cache, norms, or padding of queries is asked for.
    """
    _refuse(more, sliding_window_cache=0, qk_output=0, k_quant_type="NONE", v_quant_type="NONE")
    if any(each is not None for each in others):
        raise Unsupported(
            "k_scale, v_scale, q_norm_weight, k_norm_weight and query_seqlens are not supported"
        )
    if key is None or value is None:
        width = query.shape[-1] // (num_heads + 2 * kv_num_heads)
        query, key, value = np.split(
            query, [num_heads * width, (num_heads + kv_num_heads) * width], axis=-1
        )
    q, k, v = _heads(query, num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    T = q.shape[2]
    lengths = seqlens_k.reshape(-1).astype(np.int64) + 1
    before = np.maximum(lengths - T, 0)
    places = before[:, None] + np.arange(T)  # of each query among the keys
    if do_rotary:
        assert cos_cache is not None
        assert sin_cache is not None
        positions = places if position_ids is None else position_ids
        # Rows of padding may lie beyond the cache of angles.
        cos, sin = (each[positions.clip(max=len(each) - 1)] for each in (cos_cache, sin_cache))
        q, k = (
            rounded(_rotated(at_least_float32(each), cos, sin, rotary_interleaved), query)
            for each in (q, k)
        )

    longest, held = int(total_sequence_length.item()), int(before.max(initial=0))
    if lengths.max(initial=0) > longest:
        raise InvalidRequest(
            f"total_sequence_length is {longest}, seqlens_k + 1 is {lengths.tolist()}"
        )
    present = []
    for past, new in ((past_key, k), (past_value, v)):
        needed = (*new.shape[:2], held, new.shape[-1])
        if held if past is None else (*past.shape[:2], held, past.shape[3]) != needed:
            given = None if past is None else [*past.shape]
            raise InvalidRequest(f"a cache must be {[*needed]}, got {given}")
        if past is not None and past.shape[2] < held:
            raise InvalidRequest(
                f"a cache has {past.shape[2]} tokens, of which seqlens_k continues {held}"
            )
        size = longest if past is None else max(longest, past.shape[2])
        kept = np.zeros((*new.shape[:2], size, new.shape[-1]), new.dtype)
        for n, (first, length) in enumerate(zip(before, lengths, strict=True)):
            if past is not None:
                kept[n, :, :first] = past[n, :, :first]
            kept[n, :, first:length] = new[n, :, : length - first]
        present.append(kept)

    keys, values = (
        np.repeat(at_least_float32(each[:, :, :longest]), num_heads // kv_num_heads, axis=1)
        for each in present
    )
    scores = product(at_least_float32(q), keys.swapaxes(-1, -2)) * np.asarray(
        scale or q.shape[-1] ** -0.5, keys.dtype
    )
    if softcap:
        scores = softcap * np.tanh(scores / np.asarray(softcap, scores.dtype))
    if attention_bias is not None:
        scores = scores + at_least_float32(attention_bias[..., :longest])
    of_keys = np.arange(longest)
    ends = places[..., None] if causal else lengths[:, None, None] - 1
    seen = of_keys <= ends
    if local_window_size >= 0:
        seen &= of_keys > ends - local_window_size
    scores = np.where(seen[:, None], scores, -np.inf)

    largest = scores.max(axis=-1, keepdims=True)
    if smooth_softmax == 1 and head_sink is None:
        head_sink = np.zeros(num_heads, scores.dtype)
    if head_sink is not None:
        sink = at_least_float32(head_sink)[:, None, None]
        largest = np.maximum(largest, sink)
    weights = np.exp(scores - largest)
    total = weights.sum(axis=-1, keepdims=True)
    if head_sink is not None:
        total = total + np.exp(sink - largest)
    read = product(weights / total, values)
    return rounded(_side_by_side(read), query), present[0], present[1]


def _inverse_norm(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    mean = np.mean(x * x, axis=axes, keepdims=True)
    return np.asarray(1 / np.sqrt(mean + np.asarray(epsilon, x.dtype)))


def _sigmoid(x: Array) -> Array:
    return np.asarray(ACTIVATIONS["Sigmoid"].with_values(None, None)(NumPyArithmetic(), x))


def _heads(packed: Array, heads: int) -> Array:
    """[N, T, heads*k] as [N, heads, T, k]."""
    return packed.reshape(*packed.shape[:2], heads, packed.shape[-1] // heads).swapaxes(1, 2)


def _side_by_side(heads: Array) -> Array:
    return heads.swapaxes(1, 2).reshape(heads.shape[0], heads.shape[2], -1)


def _rotated(heads: Array, cosines: Array, sines: Array, interleaved: int) -> Array:
    """Turn pairs of the first values of [N, heads, T, k] by angles [N, T, pairs]."""
    cos, sin = (at_least_float32(each)[:, None] for each in (cosines, sines))
    pairs = cos.shape[-1]
    made = heads.copy()
    first, second = (
        (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))
        if interleaved
        else (slice(0, pairs), slice(pairs, 2 * pairs))
    )
    x, y = heads[..., first], heads[..., second]
    made[..., first], made[..., second] = cos * x - sin * y, sin * x + cos * y
    return made


def _refuse(given: dict[str, Any], **allowed: Any) -> None:
    """Raise if an attribute has a value other than the one allowed."""
    for name, value in given.items():
        if name in allowed and value != allowed[name]:
            raise Unsupported(f"{name} {value} is not supported")
