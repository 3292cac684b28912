"""Linear attentions in NumPy, a chunk of steps at a time, by products of matrices.

The equations, and why they are safe, are those of `rnncli.backends.compiled.attention`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.in_place.prepared_calls import NotFiniteError
from rnncli.limits import check_clock
from rnncli.numerics import FLOAT64, round_to
from rnncli.recurrence.cells import CELLS
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# The steps of a chunk, and the least numbers in a state for which chunks pay: 65 steps of one of
# 32 by 32 take 1.8 ms, not 3.5, and 256 steps of 32 heads of 128 by 128 take 95 ms, not 316, on an
# AMD EPYC with AVX-512 on 2026-11-28.
CHUNK, LEAST_STATE = 16, 1 << 10


def attends_in_chunks(recurrence: Recurrence, dtype: np.dtype[Any]) -> bool:
    """Return whether it pays to evaluate a recurrence in chunks: an attention of several steps.

    In float64 alone, whose errors are lost when outputs are rounded.
    """
    r, form = recurrence, recurrence.options.attention
    if form is None or r.cell != CELLS["LinearAttention"] or r.options.rounded_states:
        return False
    is_large = form.key_size * form.value_size >= LEAST_STATE and r.X.size > 0
    return is_large and len(r.X) > 1 and dtype == FLOAT64


def attend_in_chunks(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Evaluate a recurrence for which `attends_in_chunks` holds.

    Raises:
        NotFiniteError: an output is not finite, or a decay is above 0.
    """
    r, form, (T, N, _) = recurrence.plain, recurrence.options.attention, recurrence.X.shape
    assert form is not None
    group, K, V, past = form.group, form.key_size, form.value_size, r.initial[1]
    S = np.zeros((N, K, V), dtype) if past is None else past[0].astype(dtype)
    Y = np.empty((T, 1, N, group * V), r.dtype.numpy)
    scale = dtype.type(form.scale or 1 / np.sqrt(K))
    with np.errstate(all="ignore"):
        for start in range(0, T, CHUNK):
            check_clock()
            steps = r.X[start : start + CHUNK].astype(dtype).swapaxes(0, 1)
            q, k, v, decay, beta = form.parts(steps)
            if not (decay <= 0).all():
                raise NotFiniteError
            o, S = _chunk(S, (scale * q, k, v, np.exp(decay), beta))
            own = o.swapaxes(0, 1).reshape(-1, 1, N, group * V)
            Y[start : start + CHUNK] = round_to(own, r.dtype)
    if not (np.isfinite(S).all() and np.isfinite(Y.astype(dtype)).all()):
        raise NotFiniteError
    return Result(Y if r.wants_Y else None, (Y[-1], round_to(S, r.dtypes[1])[None]))


def _chunk(S: Array, parts: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return o [N, C, group, V] and the state [N, K, V] after C steps.

    Args:
        S: the state before them.
        parts: the scaled q [N, C, group, K], k [N, C, K], v [N, C, V], what decays leave, [N, C, 0,
            1 or K], and beta [N, C, 0 or 1].
    """
    q, k, v, e, beta = parts
    N, C, group, K = q.shape
    readers = np.concatenate([q, k[:, :, None]], axis=2)  # all that reads the state, step by step
    inner, decayed = np.zeros((N, C, group + 1, C), S.dtype), np.empty_like(k)
    left = np.ones((N, 1, K), S.dtype)
    for t in range(C):
        decayed[:, t] = k[:, t]
        if e.shape[-1]:
            decayed[:, :t] *= e[:, t, None]
            left *= e[:, t, None]
        np.matmul(readers[:, t], decayed[:, : t + 1].swapaxes(1, 2), out=inner[:, t, :, : t + 1])
        readers[:, t] *= left
    read = (readers.reshape(N, -1, K) @ S).reshape(N, C, group + 1, -1)
    u = v
    if beta.shape[-1]:
        u = v - read[:, :, group]
        for t in range(C):
            if t:
                u[:, t] -= (inner[:, t, group, None, :t] @ u[:, :t])[:, 0]
            u[:, t] *= beta[:, t]
    o = inner[:, :, :group].reshape(N, -1, C) @ u
    o = read[:, :, :group] + o.reshape(N, C, group, -1)
    return o, left.swapaxes(1, 2) * S + decayed.swapaxes(1, 2) @ u
