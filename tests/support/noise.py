"""Rounding as random noise: each operation's result is off by up to its roundoff, uniformly.

Activations are exact: what they may be off is a profile's to say, and systematic.
"""

import math

import numpy as np

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.cells import Parameters

ROUNDED = {np.add, np.subtract, np.multiply, np.divide}


class Noisy(np.ndarray):
    """Float64 numbers; every result of arithmetic gets noise of its own."""

    roundoff = 0.0
    generator = np.random.default_rng(0)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        """Compute in float64, then add the noise."""
        plain = [np.asarray(value) for value in inputs]
        found = getattr(ufunc, method)(*plain, **options)
        if ufunc in ROUNDED:
            off = self.generator.uniform(-1, 1, np.shape(found))
            found = found * (1 + self.roundoff * off)
        found = np.asarray(found)
        if out is not None:
            out[0].view(np.ndarray)[...] = found
            return out[0]
        return found.view(Noisy) if found.dtype.kind == "f" else found


def noisy(values):
    """Make an array noisy."""
    return np.asarray(values, np.float64).view(Noisy)


def noisy_runs(recurrence, runs, roundoff):
    """Walk forward through one direction, every run with noise of its own: H [runs, T, N, H]."""
    Noisy.roundoff = roundoff
    T, N, _ = recurrence.X.shape
    p, bias = parameters(recurrence)
    states = tuple(noisy(np.tile(state[0], (runs, 1))) for state in recurrence.initial)
    found = []
    for t in range(T):
        x = summed(np.tile(recurrence.X[t], (runs, 1)), recurrence.W[0]) + bias
        states = recurrence.cell.step(p, x, states)
        found.append(np.asarray(states[0]).reshape(runs, N, -1))
    return np.stack(found, axis=1)


def summed(values, weights):
    """Sum values [n, K] times weights [G, H, K] term by term: [G, n, H]."""
    terms = [noisy(values[:, k, None]) * weights[:, None, :, k] for k in range(weights.shape[-1])]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def parameters(recurrence):
    """Return the cell's parameters, and the bias of each gate that is added to the inputs'."""
    clip = recurrence.clip
    names = dict(zip(recurrence.cell.activations, recurrence.activations[0], strict=True))
    bounds = {"f": clip, "g": clip, "h": clip if recurrence.clip_hidden else math.inf}

    def activation(letter):
        row = names.get(letter, names["f"])
        bound = bounds[letter]
        return lambda x: noisy(row(NumPyArithmetic(), np.clip(np.asarray(x), -bound, bound)))

    R, Wb, Rb = recurrence.R[0], noisy(recurrence.Wb[0]), noisy(recurrence.Rb[0])
    after = recurrence.options.linear_before_reset
    bias = Wb + Rb
    if after:
        bias[2] = Wb[2]
    p = Parameters(
        R=lambda H, gates=slice(None): summed(np.asarray(H), R[gates]),
        f=activation("f"),
        g=activation("g"),
        h=activation("h"),
        blend=NumPyArithmetic.blend,
        P=None if recurrence.P is None else noisy(recurrence.P[0]),
        Rbh=Rb[2] if after else 0,
        options=recurrence.options,
    )
    return p, bias[:, None]
