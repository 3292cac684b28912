"""Sound kernels of linear recurrences in float32, and kernels with bugs that users reported.

They read X of the canonical recurrence and share nothing with the package's equations. Sums are in
several orders, with fused multiplications or without; exponentials by several formulas; and steps
one by one, or in chunks by a triangular system (WY form), as training kernels do it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rnncli.numerics import round_to
from rnncli.recurrence.recurrence import Result

F = np.float32
LOG2_E = F(1.4426950408889634)


def in_order(a, b):
    """Sum products over the last axis of a and the last but one of b, one after another."""
    total = np.zeros(
        (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), F
    )
    for k in range(a.shape[-1]):
        total = total + a[..., k, None] * b[..., k, None, :]
    return total


def backwards(a, b):
    """Sum from the last term to the first."""
    return in_order(a[..., ::-1], b[..., ::-1, :])


def shuffled(a, b):
    """Sum in a random order, the same at each call."""
    order = np.random.default_rng(a.shape[-1]).permutation(a.shape[-1])
    return in_order(a[..., order], b[..., order, :])


def fused(a, b):
    """Every product enters its sum unrounded: that of two float32 is exact in float64."""
    total = np.zeros(
        (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), F
    )
    for k in range(a.shape[-1]):
        product = a[..., k, None].astype(np.float64) * b[..., k, None, :]
        total = (total + product).astype(F)
    return total


def in_pairs(a, b):
    """Sum neighbours, then their sums, as vector units do."""
    left = [a[..., k, None] * b[..., k, None, :] for k in range(a.shape[-1])]
    while len(left) > 1:
        odd = left[-1:] if len(left) % 2 else []
        left = [x + y for x, y in zip(left[::2], left[1::2], strict=False)] + odd
    return left[0]


def by_blas(a, b):
    """Leave the order to the library."""
    return np.matmul(a, b)


def exp(g):
    """The library's."""
    return np.exp(g)


def by_exp2(g):
    """2^(g log2 e), in which the product rounds: the fast instruction of graphics processors."""
    return np.exp2(g * LOG2_E)


def faithful(g):
    """One of the two numbers next to the exact value, by chance, the same at each call."""
    exact = np.exp(g.astype(np.float64))
    near = exact.astype(F)
    other = np.nextafter(near, np.where(near < exact, F(np.inf), F(0)))
    return np.where(np.random.default_rng(g.size).integers(0, 2, g.shape), near, other)


@dataclass(frozen=True)
class Kernel:
    """A way to compute a linear attention in float32.

    Attributes:
        sums: how sums of products are formed.
        exp: the exponential.
        fuses: whether a product and a sum after it round once.
        scales_q: whether q is scaled, not the output.
        folds_beta: whether k is multiplied by beta, not the correction.
        late: whether what is read of a state of one decay is decayed, not the state.
        chunk: how many steps at once; 0: one by one.
        inverts: in chunks, whether the triangular matrix is inverted, not solved with.
        bug: the name of a bug, or "".
    """

    sums: object = in_order
    exp: object = exp
    fuses: bool = False
    scales_q: bool = False
    folds_beta: bool = False
    late: bool = False
    chunk: int = 0
    inverts: bool = False
    bug: str = ""

    def run(self, recurrence):
        """Return the result of a recurrence without a stack."""
        form = recurrence.options.attention
        X, past = recurrence.X.astype(F), recurrence.initial[1]
        T, N, _ = X.shape
        S = np.zeros((N, form.key_size, form.value_size), F)
        if past is not None:
            S = past[0].astype(F)
        scale = F(form.scale or 1 / np.sqrt(form.key_size))
        if self.bug == "scale by sqrt(dv)":
            scale = F(1 / np.sqrt(form.value_size))
        q, k, v, g, b = (np.moveaxis(part, 0, 1) for part in form.parts(X))  # [N, T, ...]
        if self.bug == "beta of head 0":
            b = np.broadcast_to(b[:1], b.shape)
        if self.scales_q:
            q, scale = q * scale, F(1)
        with np.errstate(all="ignore"):
            if self.chunk:
                steps = range(0, T, self.chunk)
                cut = [[part[:, t : t + self.chunk] for part in (q, k, v, g, b)] for t in steps]
                found = []
                for parts in cut:
                    o, S = self._at_once(form, S, parts)
                    found.append(o)
                o = np.concatenate(found, 1) if found else np.zeros((N, 0, form.group, v.shape[-1]))
            else:
                o = np.zeros((N, T, form.group, form.value_size), F)
                for t in range(T):
                    o[:, t], S = self._step(form, S, [part[:, t] for part in (q, k, v, g, b)])
        o = np.moveaxis(o * scale, 1, 0).reshape(T, 1, N, -1)
        Y = round_to(o, recurrence.dtype)
        end = Y[-1] if T else np.zeros((1, N, form.group * form.value_size), Y.dtype)
        return Result(Y, (end, round_to(S[None], recurrence.dtypes[1])))

    def _step(self, form, S, parts):
        q, k, v, g, b = parts
        old, k = S, k[..., None]
        kT = k.swapaxes(1, 2)
        if form.decays:
            e = (np.exp2 if self.bug == "exp2" else self.exp)(g)[..., None]
            S = e * S
        u = v[:, None]
        if form.has_beta:
            b = b[..., None]
            if self.bug == "undecayed retrieval":
                r = self.sums(kT, old)
            elif self.late and form.decays == 1:
                r = e * self.sums(kT, old)
            else:
                r = self.sums(kT, S)
            u = b * u - self.sums(kT * b, S) if self.folds_beta else b * (u - r)
        if self.fuses and form.decays:
            S = (S.astype(np.float64) + k.astype(np.float64) * u).astype(F)
        else:
            S = S + k * u
        return self.sums(q, old if self.bug == "output of the old state" else S), S

    def _at_once(self, form, S, parts):
        """Return outputs and the state after a chunk: U = (I + A)^-1 b (V - e^s K S)."""
        q, k, v, g, b = parts
        N, C, _ = k.shape
        s = np.zeros((N, C, 1), F)
        if form.decays:
            s = np.cumsum(g, 1, dtype=F)
        after = self.exp(s)
        between = self.exp(np.minimum(s[:, :, None] - s[:, None], 0 if (g <= 0).all() else np.inf))
        before = np.tril(np.ones((C, C), F))
        if s.shape[-1] == 1:
            kk = self.sums(k, k.swapaxes(1, 2)) * between[..., 0]
            qk = self.sums(q.swapaxes(1, 2), k.swapaxes(1, 2)[:, None]) * between[:, None, ..., 0]
        else:
            kk = (k[:, :, None] * k[:, None] * between).sum(-1)
            qk = (q.swapaxes(1, 2)[:, :, :, None] * k[:, None, None] * between[:, None]).sum(-1)
        qk = np.where(before, qk, F(0))
        U = v
        if form.has_beta:
            A = np.where(before - np.eye(C), b * kk, F(0))
            if self.inverts:
                inverse = np.broadcast_to(np.eye(C, dtype=F), A.shape).copy()
                for i in range(1, C):
                    row = self.sums(A[:, i, None, :i], inverse[:, :i])[:, 0]
                    inverse[:, i] -= row
                U = self.sums(inverse, b * v) - self.sums(self.sums(inverse, b * k * after), S)
            else:
                U = b * (v - self.sums(k * after, S))
                for i in range(1, C):
                    U[:, i] -= self.sums(A[:, i, None, :i], U[:, :i])[:, 0]
        o = self.sums((q * after[:, :, None]).swapaxes(1, 2), S[:, None]) + self.sums(
            qk, U[:, None]
        )
        left = self.exp(s[:, -1:] - s)
        S = after[:, -1, :, None] * S + self.sums((k * left).swapaxes(1, 2), U)
        return o.swapaxes(1, 2), S


@dataclass(frozen=True)
class Convolution:
    """A way to compute a causal convolution in float32.

    Attributes:
        sums: how sums of products are formed.
        silu: the activation.
        rounds: whether the sum is rounded to the tensors' dtype before it.
        bug: the name of a bug, or "".
    """

    sums: object = in_order
    silu: object = lambda a: a / (1 + np.exp(-a))
    rounds: bool = False
    bug: str = ""

    def run(self, recurrence):
        """Return the result of a recurrence without a stack."""
        X, past = recurrence.X.astype(F), recurrence.initial[1]
        taps, (T, N, H) = recurrence.W.shape[1], X.shape
        before = np.zeros((N, H, taps - 1), F) if past is None else past[0].astype(F)
        whole = np.concatenate([np.moveaxis(before, -1, 0), X])
        windows = np.stack([whole[j : j + T] for j in range(taps)], -1)  # [T, N, H, taps]
        weights = recurrence.W[0, :, :, 0].astype(F).T  # [H, taps]
        if self.bug == "flipped":
            weights = weights[:, ::-1]
        bias = 0 if recurrence.Wb is None else recurrence.Wb[0, 0].astype(F)
        sums = self.sums(windows[..., None, :], weights[..., None])[..., 0, 0]
        a = sums if self.bug == "bias after silu" else sums + bias
        if recurrence.options.silu and self.bug != "no silu":
            a = self.silu(round_to(a, recurrence.dtype).astype(F) if self.rounds else a)
        if self.bug == "bias after silu":
            a += bias
        Y = round_to(a, recurrence.dtype)[:, None]
        last = round_to(np.moveaxis(whole[T:], 0, -1), recurrence.dtype)[None]
        return Result(Y, (Y[-1], last))


CONVOLUTIONS = {
    "in order": Convolution(),
    "sum rounded": Convolution(backwards, rounds=True),
    "by tanh": Convolution(fused, lambda a: F(0.5) * a * (1 + np.tanh(F(0.5) * a))),
    "by exp2, sum rounded": Convolution(in_pairs, lambda a: a / (1 + by_exp2(-a)), rounds=True),
}
CONVOLUTION_BUGS = ("flipped", "bias after silu", "no silu")
SEQUENTIAL = {
    "one by one": Kernel(),
    "backwards": Kernel(backwards, by_exp2),
    "shuffled": Kernel(shuffled, scales_q=True),
    "fused": Kernel(fused, fuses=True),
    "in pairs, beta in k": Kernel(in_pairs, faithful, folds_beta=True),
    "late decay": Kernel(by_blas, late=True),
    "exp2, fused": Kernel(fused, by_exp2, fuses=True, scales_q=True),
    "faithful": Kernel(by_blas, faithful),
}
CHUNKED = {
    f"chunks of {size}, {name}": replace(kernel, chunk=size)
    for size in (16, 32, 64, 128)
    for name, kernel in {
        "solved": Kernel(by_blas),
        "inverted": Kernel(by_blas, inverts=True),
        "inverted, exp2": Kernel(in_pairs, by_exp2, inverts=True, scales_q=True),
    }.items()
}
ATTENTION_BUGS = (
    "scale by sqrt(dv)",
    "beta of head 0",
    "undecayed retrieval",
    "exp2",
    "output of the old state",
)
