"""The errors of linear recurrences: of linear attentions, and of causal convolutions.

Their steps are linear in the state: an error of a step reaches a result through the product of all
later steps, exactly. Steps are computed in `Profile.step` of the tensors' dtype, and only results
are rounded to it. Variances are in units of lambda squared: their roots are tolerances.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.judging.tolerances.operation_errors import MATH, spread, stored, systematic
from rnncli.recurrence.lanes import lanes_of

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile, Rounding
    from rnncli.recurrence.cells import AttentionForm, TokenForm
    from rnncli.recurrence.lanes import Lanes
    from rnncli.recurrence.recurrence import Recurrence

# Columns and heads of up to this many numbers, in all steps, are processed together.
BLOCK_NUMBERS = 1 << 21


class LinearTolerances(NamedTuple):
    """The tolerances of lanes, in float64."""

    steps: Array  # of the outputs of all steps [L, T, N, H]
    state: Array  # of the last state [L, N, ...]


class Roundings(NamedTuple):
    """What a profile allows a linear recurrence."""

    step: Rounding  # to what its steps compute
    output: Rounding  # to what is stored in the tensors' dtype
    state: Rounding  # to what is stored in the states' dtype

    @classmethod
    def of(cls, recurrence: Recurrence, profile: Profile) -> Roundings:
        """Return those of a recurrence."""
        dtypes = profile.step(recurrence.dtype), *recurrence.dtypes
        return cls(*map(profile.rounding, dtypes))


def linear_tolerances(recurrence: Recurrence, profile: Profile) -> LinearTolerances:
    """Return the tolerances of a linear recurrence or a stack; NaN where values are NaN."""
    lanes, roundings = lanes_of(recurrence), Roundings.of(recurrence, profile)
    with np.errstate(all="ignore"):
        if lanes.options.attention is None:
            return _of_convolution(lanes, roundings)
        return _of_attentions(lanes, lanes.options.attention, roundings)


def _of_convolution(lanes: Lanes, roundings: Roundings) -> LinearTolerances:
    """Return the tolerances of y = a sigmoid(a), or a, where a = Wb + W0 (.) Xt-k+1 + ...

    The state has copies of inputs. Before silu, a is rounded to the tensors' dtype, or it is not: a
    tie may be rounded either way. |silu'(a)| is at most 1.1, |silu''(a)| 1/2 and (2 + |a|) e^-|a|.
    """
    inside, output, _ = roundings
    X, W, past = (v.astype(np.float64) for v in (lanes.X, lanes.W[..., 0], lanes.initial[1]))
    before = np.concatenate([np.moveaxis(past, -1, 1), X], axis=1)  # [L, (k - 1)d + T, N, H]
    taps, T, apart = len(W), X.shape[1], 1 + lanes.options.gap
    starts = range(0, taps * apart, apart)
    terms = np.stack([W[j, :, None, None] * before[:, t : t + T] for j, t in enumerate(starts)])
    if lanes.Wb is not None:
        bias = lanes.Wb.astype(np.float64)[0][:, None]
        terms = np.concatenate([terms, np.broadcast_to(bias, terms[:1].shape)])
    a, size = terms.sum(axis=0), np.abs(terms.sum(axis=0))
    found = spread(np.stack([a, (terms * terms).sum(axis=0), size]), taps + 1, inside) ** 2
    if lanes.options.silu:
        if not lanes.options.unrounded_sum:
            found += stored(size, output)
        s = MATH.sigmoid(a)
        y, slope = a * s, s * (1 + a * (1 - s))
        own = size * (inside.relative * s + inside.absolute + inside.floor)
        reach, half = np.sqrt(found), size / 2
        bend = np.where(reach > half, 0.5, np.minimum(0.5, (2 + half) * np.exp(-half)))
        beyond = reach * np.minimum(bend * reach / 2, 2.2)
        found = slope * slope * found + systematic(own + beyond, inside)
        found += stored(np.abs(y), output)  # sigmoid(a), which may be stored as well
        a, size = y, np.abs(y)
    found = np.sqrt(found + stored(size, output))
    return LinearTolerances(found, np.zeros(lanes.initial[1].shape))


class TokenErrors(NamedTuple):
    """Bounds of the errors of what a step makes of its token, in `TokenForm.activated`."""

    length: float = 0.0  # of q and k, relative
    decay: Any = 0.0  # absolute
    beta: Any = 0.0  # absolute
    gate: float = 0.0  # of a decay, relative, and the same in every step


def _token_errors(token: TokenForm, form: AttentionForm, x: Array, inside: Rounding) -> TokenErrors:
    """Return the errors of functions, of products, and of sums.

    Lengths are roots of sums of squares, and divide. Of a gate, decay + dt_bias is rounded, exp(A)
    has the error of a function, which every step shares, and softplus and sigmoid have theirs: in
    their usual formulas an absolute one where they are small.
    """
    unit = inside.unit
    *_, given, rate, a_log, dt_bias = token.parts(form, x)
    length = decay = beta = gate = 0.0
    if token.normalises:
        length = 2 * unit + inside.accumulator * math.sqrt(form.key_size)
    factor, z = np.exp(a_log), given + dt_bias
    if token.gate == "softplus":
        own = inside.relative * MATH.softplus(z) + inside.absolute
        decay = factor * (unit * np.abs(z) * MATH.sigmoid(z) + own)
    if token.gate == "sigmoid":
        s = MATH.sigmoid(factor * z)
        reach = factor * np.abs(z) * (inside.relative + 2 * unit)
        decay = abs(token.bound) * (s * (1 - s) * reach + inside.relative * s + inside.absolute)
    if token.gate != "none":
        gate = inside.relative + 2 * unit
    if token.activates_beta:
        beta = inside.relative * MATH.sigmoid(rate) + inside.absolute
    return TokenErrors(length, decay, beta, gate)


def _of_attentions(lanes: Lanes, form: AttentionForm, roundings: Roundings) -> LinearTolerances:
    """Return the tolerances of linear attentions; heads and columns of states are independent."""
    L, T, N, _ = lanes.X.shape
    X = np.moveaxis(lanes.X, 1, 0).reshape(T, L * N, lanes.X.shape[-1]).astype(np.float64)
    S = lanes.initial[1].astype(np.float64).reshape(L * N, form.key_size, form.value_size)
    found, state = np.zeros((T, L * N, form.group, form.value_size)), np.zeros(S.shape)
    of_column = max(1, T * form.key_size)
    columns = max(1, min(form.value_size, BLOCK_NUMBERS // of_column))
    heads = max(1, BLOCK_NUMBERS // (of_column * columns))
    for head, column in product(range(0, L * N, heads), range(0, form.value_size, columns)):
        some, part = slice(head, head + heads), slice(column, column + columns)
        token, errors, x = lanes.options.token, TokenErrors(), X[:, some]
        q, k, v, g, b = token.activated(form, MATH, x) if token else form.parts(x)
        if token:
            errors = _token_errors(token, form, x, roundings.step)
        if token and lanes.live is not None:  # what is made of padding moves no state
            live = np.moveaxis(lanes.live, 1, 0).reshape(T, L * N, 1)[:, some]
            k, v, g, b = (np.where(live, each, 0) for each in (k, v, g, b))
            errors = errors._replace(decay=errors.decay * live, beta=errors.beta * live)
        steps = _steps(S[some, :, part], (k, v[..., part], g, b), roundings.step, errors)
        if lanes.options.rounded_states:
            steps.of_S[...] += stored(np.abs(steps.new), roundings.state)
        of_outputs, of_state = _reaching(steps, q, roundings.step)

        # o = scale S^T q: a sum of terms q_i S_ij, and a product with a scale that is rounded
        scale = form.scale or 1 / math.sqrt(form.key_size)
        o = q @ steps.new
        sums = np.stack([o, q**2 @ steps.new**2, np.abs(o)])
        of_outputs += spread(sums, form.key_size, roundings.step) ** 2
        of_outputs += systematic(errors.length * np.abs(o), roundings.step)
        of_outputs += steps.adding * (q * q).sum(axis=-1, keepdims=True) * _in_all(steps.terms)
        size = np.abs(scale * o)
        of_outputs = scale**2 * of_outputs + systematic(roundings.step.unit * size, roundings.step)
        found[:, some, :, part] = np.sqrt(of_outputs + stored(size, roundings.output))
        if T:
            last = stored(np.abs(steps.new[-1]), roundings.state)
            state[some, :, part] = np.sqrt(of_state + last)
    in_lanes = np.moveaxis(found.reshape(T, L, N, math.prod(found.shape[2:])), 0, 1)
    return LinearTolerances(in_lanes, state.reshape(lanes.initial[1].shape))


class _LinearSteps(NamedTuple):
    """The steps of B heads, and the variances of the errors that each adds; see `_steps`."""

    k: Array  # [T, B, rows, 1]
    b: Array | None  # [T, B, 1, 1]
    e: Array | None  # [T, B, 1 or rows, 1]
    old: Array  # S before each step, of some columns [T, B, rows, columns]
    new: Array  # S after it
    of_e: Array | None
    of_D: Array
    of_u: Array  # [T, B, 1, columns]
    of_S: Array
    again: Array  # whether a step has the inputs of the one before [T, B, 1, 1]
    terms: Array  # sums of the squares of the terms of S, if it is a sum over steps
    adding: float  # the variance of such a sum, in these
    leaning: Array  # the relative error of e that every step may have alike [T, B, 1 or rows, 1]


def _steps(S: Array, x: tuple[Array, ...], inside: Rounding, errors: TokenErrors) -> _LinearSteps:
    """Take the steps of `attention_step`; return the errors of their operations.

    e = exp(g)         of the function
    D = diag(e) S      of products
    u = b (v - D^T k)  of a sum of terms k_i D_ij, the difference, and the product
    S = D + k u^T      of products and sums

    Heads that are computed in chunks of steps have other sums. Within a chunk, S is a sum of
    k_s u_s^T times the decays since s, which are exponentials of differences of cumulative sums of
    g; and u solves the triangular system of all D^T k. The errors of these, whatever the chunk's
    size, are those of sums with `terms`, times the length of k or q; and of cumulative sums of as
    many g as a chunk may have.

    Args:
        S: the states before the first step [B, rows, columns].
        x: k, v, g and b of all steps [T, B, ...]; the last two may be empty.
        inside: the arithmetic.
        errors: those of x itself.
    """
    again = np.ones(x[0].shape[:2], np.bool_)
    again[:1] = False
    for each in x:
        again[1:] &= (each[1:] == each[:-1]).all(axis=-1)
    k, v, g = x[0][..., None], x[1][..., None, :], x[2][..., None]
    kT, T = k.swapaxes(-1, -2), len(k)
    b = x[3][..., None] if x[3].size else None
    e = np.exp(g) if g.size else None
    old, D, new, terms = np.zeros((4, T, *S.shape))
    r, u, squares = np.zeros_like(v), v.copy(), S * S
    for t in range(T):
        old[t] = S
        D[t] = S if e is None else e[t] * S
        if b is not None:
            r[t] = kT[t] @ D[t]
            u[t] = b[t] * (v[t] - r[t])
        new[t] = S = D[t] + k[t] * u[t]
        squares = (squares if e is None else e[t] ** 2 * squares) + (k[t] * u[t]) ** 2
        terms[t] = squares

    in_chunks = min(T, inside.chunk) if inside.chunk > 1 else 0
    adding = 2 * inside.accumulator * math.sqrt((S.shape[1] + in_chunks) / 3)  # as in `spread`
    adding = (inside.deviations * adding) ** 2 * (in_chunks > 0)
    of_e, of_D, of_u = None, np.zeros_like(D), np.zeros_like(u)
    leaning = np.full_like(g, inside.relative)
    if e is not None:
        size = np.nan_to_num(np.abs(g), posinf=0.0)
        own = inside.relative + inside.unit * size  # also of 2^(g log2 e), whose product rounds
        of_e = systematic(e * own + inside.floor, inside)
        of_e += systematic(e * np.asarray(errors.decay)[..., None], inside)
        leaning += errors.gate * size
        if in_chunks:
            reach = np.cumsum(size, axis=0)
            reach[in_chunks:] -= reach[:-in_chunks].copy()
            of_e += 2 * stored(e * reach, inside)
        of_D = stored(np.abs(D), inside)
    if b is not None:
        of_r = systematic(errors.length * np.abs(r), inside)
        of_b = systematic(np.asarray(errors.beta)[..., None] * np.abs(v - r), inside)
        of_u = spread(np.stack([r, kT**2 @ D**2, np.abs(r)]), S.shape[1], inside) ** 2
        before = np.concatenate([old[:1] ** 2, terms[:-1]])
        of_u += adding * (kT @ k) * _in_all(before) + stored(np.abs(v - r), inside)
        of_u = b * b * (of_u + of_r) + of_b + stored(np.abs(u), inside)
    of_S = systematic(errors.length * np.abs(k * u), inside)
    of_S += stored(np.abs(k * u), inside) + stored(np.abs(new), inside) + adding * terms
    return _LinearSteps(
        k, b, e, old, new, of_e, of_D, of_u, of_S, again[..., None, None], terms, adding, leaning
    )


# The fields that are numbers, in which NaN and infinity are settled.
_NUMBERS = ("k", "b", "e", "old", "of_e", "of_D", "of_u", "of_S", "leaning")


def _in_all(of_rows: Array) -> Array:
    return np.asarray(of_rows.sum(axis=-2, keepdims=True))


def _reaching(steps: _LinearSteps, q: Array, inside: Rounding) -> tuple[Array, Array]:
    """Return the variances that errors of steps cause in S^T q [T, B, group, v], and in the last S.

    Readers w of the state after a step, the latest first, see its errors as w^T n, and those of u
    as w^T k n; w - b k^T w k are the readers of D, and these times e those of the state before.
    Errors are independent, but for two kinds. Those of steps with equal inputs may be equal, as
    soon as S is; and a function has the same error whenever its argument is the same, as that of a
    constant decay is, so that the derivatives by a relative error that e has in every step count as
    well: of each of its numbers, or of all alike.
    """
    T, B, group, rows = q.shape
    columns = steps.new.shape[-1]
    readers = T * group + rows  # q of all steps, and the rows of the last state
    w = np.empty((B, readers, rows))
    w[:, : T * group] = np.moveaxis(q, 1, 0).reshape(B, T * group, rows)
    w[:, T * group :] = np.eye(rows)
    found = np.zeros((B, readers, columns))
    # What reads S, and u, in the steps of a run that have been seen; and the largest errors of it.
    run_w, run_k, apart = np.zeros_like(w), np.zeros((B, readers, 1)), np.zeros_like(found)
    most_S, most_u = np.zeros((B, rows, columns)), np.zeros((B, 1, columns))
    # What depends on NaN is NaN; it must not affect others by products with 0.
    known = {name: getattr(steps, name) for name in _NUMBERS if getattr(steps, name) is not None}
    numbers = {n: np.nan_to_num(v, nan=0.0, posinf=0.0, neginf=0.0) for n, v in known.items()}
    k, b, e, old, _, of_e, of_D, of_u, of_S, *_, lean = steps._replace(**numbers)
    leaning = np.zeros((B, readers, 1 if e is None else e.shape[2], columns))
    again = np.concatenate([steps.again, np.zeros((1, B, 1, 1), np.bool_)])
    for t in reversed(range(T)):
        some = slice(t * group, None)
        by_S = w[:, some]
        by_u = by_S @ k[t]
        own = by_S**2 @ of_S[t] + by_u**2 * of_u[t]
        if again[t : t + 2].any():
            run_w[:, some] += by_S
            run_k[:, some] += by_u
            apart[:, some] += own
            most_S, most_u = np.maximum(most_S, of_S[t] + of_D[t]), np.maximum(most_u, of_u[t])
            begins = ~again[t]
            together = run_w[:, some] ** 2 @ most_S + run_k[:, some] ** 2 * most_u
            own = np.where(begins, np.maximum(apart[:, some], together), 0.0)
            for each in (run_w, run_k, apart, most_S, most_u):
                np.copyto(each, 0.0, where=begins)
        found[:, some] += own

        by_D = by_S if b is None else by_S - b[t] * by_u * k[t].swapaxes(1, 2)
        if e is not None and of_e is not None:
            found[:, some] += by_D**2 @ of_D[t]
            if e.shape[2] == 1:  # which all rows share
                by_e = by_D @ old[t]
                found[:, some] += of_e[t] * by_e**2
                leaning[:, some, 0] += lean[t] * e[t] * by_e
            else:
                found[:, some] += by_D**2 @ (of_e[t] * old[t] ** 2)
                leaning[:, some] += by_D[..., None] * (lean[t] * e[t] * old[t])[:, None]
            w[:, some] = by_D * e[t].swapaxes(1, 2)
        else:
            w[:, some] = by_D
    alike, apart = leaning.sum(axis=2) ** 2, (leaning**2).sum(axis=2)
    found += systematic(np.sqrt(np.maximum(alike, apart)), inside)
    of_outputs = found[:, : T * group].reshape(B, T, group, columns)
    return np.moveaxis(of_outputs, 1, 0), found[:, T * group :]
