"""The states a recurrence runs through, every direction in the order in which it processes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.recurrence import Recurrence


def in_order(values: Array, lengths: Array | None, direction: Direction) -> Array:
    """Bring steps [T, N, ...] into processing order, padding last; its own inverse."""
    if direction is Direction.FORWARD:
        return values
    if lengths is None:
        return values[::-1]
    T, N = values.shape[:2]
    steps = np.arange(T)[:, None]
    turned = np.where(steps < lengths, lengths - 1 - steps, steps)
    return np.asarray(values[turned, np.arange(N)])


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """Everything in float64, D directions at once, in processing order.

    Attributes:
        recurrence: where it, or the first that was joined, comes from; all activations are alike.
        hostile: something is NaN or infinite.
        X: inputs [D, T, N, I], zero in padding.
        H: hidden states [D, T + 1, N, H], from the initial one on.
        W: input weights [G, D, H, I].
        R: recurrent weights [G, D, H, H].
        Wb: input bias [G, D, 1, 1, H], or None.
        Rb: recurrent bias, likewise.
        P: peephole weights [3, D, 1, 1, H], or None.
        C0: initial cell states [D, N, H]; zero for a cell without.
    """

    recurrence: Recurrence
    hostile: bool
    X: Array
    H: Array
    W: Array
    R: Array
    Wb: Array | None
    Rb: Array | None
    P: Array | None
    C0: Array

    @classmethod
    def of(cls, recurrence: Recurrence, Y: Array, *, hostile: bool) -> Trajectory:
        """Follow the states Y [T, D, N, H] that a backend found, zero in padding."""
        bias = (slice(None), slice(None), None, None)
        Wb, Rb = (_gates_first(b) for b in (recurrence.Wb, recurrence.Rb))
        P = _gates_first(recurrence.P)
        return cls(
            recurrence,
            hostile,
            X=_inputs(recurrence),
            H=_hidden_states(recurrence, Y),
            W=recurrence.W.swapaxes(0, 1).astype(np.float64),
            R=recurrence.R.swapaxes(0, 1).astype(np.float64),
            Wb=None if Wb is None else Wb[bias],
            Rb=None if Rb is None else Rb[bias],
            P=None if P is None else P[bias],
            C0=_initial_cells(recurrence),
        )

    @classmethod
    def joined(cls, paths: Sequence[Trajectory]) -> Trajectory:
        """Return trajectories of the same kind and sizes as the directions of one."""
        first = paths[0]
        if len(paths) == 1:
            return first
        return replace(
            first,
            X=np.concatenate([path.X for path in paths]),
            H=np.concatenate([path.H for path in paths]),
            W=np.concatenate([path.W for path in paths], axis=1),
            R=np.concatenate([path.R for path in paths], axis=1),
            Wb=_side_by_side([path.Wb for path in paths]),
            Rb=_side_by_side([path.Rb for path in paths]),
            P=_side_by_side([path.P for path in paths]),
            C0=np.concatenate([path.C0 for path in paths]),
        )

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """D, T, N, H."""
        D, after, N, H = map(int, self.H.shape)
        return D, after - 1, N, H

    @property
    def terms(self) -> int:
        """How many terms a gate sums up: inputs, states, two biases, and a peephole if any."""
        return int(self.X.shape[-1] + self.H.shape[-1]) + 2 + (self.P is not None)

    def activation(self, letter: str) -> Activation:
        """Return the activation of a letter of the cell."""
        return self.recurrence.activations[0][self.recurrence.cell.activations.index(letter)]

    def settled(self, values: Array) -> Array:
        """Return values with zero for what is NaN or infinite.

        What depends on those is NaN or infinite itself, or saturated: either way no error of it is
        tolerated, and none must be computed for the rest.
        """
        return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0) if self.hostile else values


def _side_by_side(tensors: Sequence[Array | None]) -> Array | None:
    """Join optional tensors [G, D, ...] along D; all are there or none is."""
    given = [tensor for tensor in tensors if tensor is not None]
    return np.concatenate(given, axis=1) if given else None


def _gates_first(values: Array | None) -> Array | None:
    return None if values is None else values.swapaxes(0, 1).astype(np.float64)


def _inputs(recurrence: Recurrence) -> Array:
    X = recurrence.X.astype(np.float64)
    if recurrence.lengths is not None:
        steps = np.arange(len(X))[:, None]
        X = np.where((steps < recurrence.lengths)[:, :, None], X, 0.0)
    found = np.empty((len(recurrence.directions), *X.shape))
    for d, direction in enumerate(recurrence.directions):
        found[d] = in_order(X, recurrence.lengths, direction)
    return found


def _initial_cells(recurrence: Recurrence) -> Array:
    state = recurrence.initial[-1] if recurrence.cell.states > 1 else None
    if state is None:
        D, _, H, _ = recurrence.W.shape
        return np.zeros((D, recurrence.X.shape[1], H))
    return state.astype(np.float64)


def _hidden_states(recurrence: Recurrence, Y: Array) -> Array:
    T, D, N, size = Y.shape
    H = np.empty((D, T + 1, N, size))
    first = recurrence.initial[0]
    H[:, 0] = 0.0 if first is None else first
    for d, direction in enumerate(recurrence.directions):
        H[d, 1:] = in_order(Y[:, d], recurrence.lengths, direction)
    return H
