"""The states a recurrence runs through, every direction in the order in which it processes them.

The directions of a stack of recurrences stand one after the other, as if they were those of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.recurrence import Recurrence


def in_order(values: Array, lengths: Array | None, direction: Direction, front: int = 0) -> Array:
    """Bring steps [..., T, N, ...] into processing order, padding last; its own inverse.

    Args:
        values: of every step.
        lengths: valid steps [..., N]; None means T.
        direction: which way the steps are processed.
        front: how many axes stand before T.
    """
    if direction is Direction.FORWARD:
        return values
    if lengths is None:
        return np.flip(values, front)
    ends = lengths[..., None, :]
    steps = np.arange(values.shape[front])[:, None]
    turned = np.where(steps < ends, ends - 1 - steps, steps)
    index = turned.reshape(*turned.shape, *[1] * (values.ndim - turned.ndim))
    return np.take_along_axis(values, index, front)


def put_back(recurrence: Recurrence, states: Array, Y: Array | None, last: Sequence[Array]) -> None:
    """Write what is known of every state of some recurrence to the places of its outputs.

    Args:
        recurrence: one, or a stack.
        states: before and after every step [D, T + 1, N, S, H], in processing order.
        Y: gets what is after each step [..., T, D, N, H], 0 in padding.
        last: get what is after the last valid step, [..., D, N, H].
    """
    lengths, front = recurrence.lengths, recurrence.X.shape[:-3]
    states = states.reshape(*front, len(recurrence.directions), *states.shape[1:])
    if Y is not None:
        for d, direction in enumerate(recurrence.directions):
            steps = states[..., d, 1:, :, 0, :]
            Y[..., d, :, :] = in_order(steps, lengths, direction, len(front))
        if lengths is not None:
            padding = np.arange(Y.shape[-4])[:, None] >= lengths[..., None, :]
            Y.swapaxes(-3, -2)[padding] = 0
    for k, state in enumerate(last):
        if lengths is None:
            state[...] = states[..., -1, :, k, :]
        else:
            index = lengths[..., None, None, :, None]
            state[...] = np.take_along_axis(states[..., k, :], index, -3)[..., 0, :, :]


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
        """Follow the states Y [..., T, D, N, H] that a backend found, zero in padding.

        Args:
            recurrence: one, or a stack.
            Y: of all steps.
            hostile: whether to look out for what is not finite.
        """
        path = cls.begun(recurrence, hostile=hostile)
        _follow(recurrence, Y, path.H)
        return path

    @classmethod
    def begun(cls, recurrence: Recurrence, *, hostile: bool) -> Trajectory:
        """Return what is known before the first step; H holds the initial states only."""
        T, N, _ = recurrence.X.shape[-3:]
        D, _, H, _ = recurrence.W.shape[-4:]
        D *= math.prod(recurrence.X.shape[:-3])
        states = np.empty((D, T + 1, N, H))
        states[:, 0] = _initial(recurrence.initial[0], (D, N, H))
        return cls(
            recurrence,
            hostile,
            X=_inputs(recurrence),
            H=states,
            W=_gates_first(recurrence.W),
            R=_gates_first(recurrence.R),
            Wb=_broadcast(recurrence.Wb),
            Rb=_broadcast(recurrence.Rb),
            P=_broadcast(recurrence.P),
            C0=_initial(recurrence.initial[-1] if len(recurrence.initial) > 1 else None, (D, N, H)),
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


def _gates_first(weights: Array) -> Array:
    """Return weights [..., D, G, H, K] as [G, D, H, K]."""
    G, H, K = weights.shape[-3:]
    directions = math.prod(weights.shape[:-3])
    return weights.reshape(directions, G, H, K).swapaxes(0, 1).astype(np.float64)


def _broadcast(values: Array | None) -> Array | None:
    """Return a row for each gate [..., D, G, H] as [G, D, 1, 1, H]."""
    return None if values is None else _gates_first(values[..., None, :])[:, :, None]


def _inputs(recurrence: Recurrence) -> Array:
    lengths, front = recurrence.lengths, recurrence.X.shape[:-3]
    X = recurrence.X.astype(np.float64)
    T, N, size = X.shape[-3:]
    if lengths is not None:
        live = np.arange(T)[:, None] < lengths[..., None, :]
        X = np.where(live[..., None], X, 0.0)
    D = len(recurrence.directions)
    found = np.empty((*front, D, T, N, size))
    for d, direction in enumerate(recurrence.directions):
        found[..., d, :, :, :] = in_order(X, lengths, direction, len(front))
    return found.reshape(math.prod(front) * D, T, N, size)


def _initial(state: Array | None, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape) if state is None else state.reshape(shape).astype(np.float64)


def _follow(recurrence: Recurrence, Y: Array, H: Array) -> None:
    """Write the states after every step Y [..., T, D, N, H] to H [D, T + 1, N, H]."""
    front = Y.shape[:-4]
    followed = H.reshape(*front, len(recurrence.directions), *H.shape[1:])  # a view
    for d, direction in enumerate(recurrence.directions):
        steps = in_order(Y[..., d, :, :], recurrence.lengths, direction, len(front))
        followed[..., d, 1:, :, :] = steps
