"""Trajectories: the states of a recurrence, each direction in its order of processing.

The directions of a stack of recurrences follow one another, like those of a single recurrence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.tolerances.operation_errors import input_errors
from rnncli.recurrence.lanes import (
    after_last_step,
    assemble,
    in_lanes,
    in_order,
    lanes_of,
    per_gate,
)
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.recurrence import Recurrence


def put_back(recurrence: Recurrence, states: Array, Y: Array | None, last: Sequence[Array]) -> None:
    """Write values of every state to the corresponding places of the outputs.

    The last state of a sequence of length 0 is its initial state.

    Args:
        recurrence: a recurrence, or a stack.
        states: values before and after every step [D, T + 1, N, S, H], in processing order.
        Y: receives the values after each step [..., T, D, N, H], 0 in padding.
        last: receive the values after the last valid step, [..., D, N, H].
    """
    front = recurrence.X.shape[:-3]
    whole = states.reshape(*front, len(recurrence.directions), *states.shape[1:])
    ends = [after_last_step(whole[..., k, :], recurrence.lengths) for k in range(len(last))]
    assemble(recurrence, states[:, 1:, :, 0], ends, Result(Y, tuple(last)))


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """The inputs, states and weights of D directions in float64, in processing order."""

    # the recurrence, or the first of those joined; all activations are the same
    recurrence: Recurrence
    hostile: bool  # whether anything is NaN or infinite
    X: Array  # inputs [D, T, N, I], zero in padding
    H: Array  # hidden states [D, T + 1, N, H], from the initial one on
    W: Array  # input weights [G, D, H, I]
    R: Array  # recurrent weights [G, D, H, H]
    Wb: Array | None  # input bias [G, D, 1, 1, H], or None
    Rb: Array | None  # recurrent bias, likewise
    P: Array | None  # peephole weights [3, D, 1, 1, H], or None
    C0: Array  # initial cell states [D, N, H]; zero for a cell without C
    # how far quantised inputs may be rounded to other levels [D, T, N, I], or None
    X_errors: Array | None = None
    # mask of the steps that are not padding [D, T, N], if sequences that have ended keep their last
    # states; else None
    live: Array | None = None

    @classmethod
    def of(cls, recurrence: Recurrence, Y: Array, *, hostile: bool) -> Trajectory:
        """Return the trajectory through the states Y [..., T, D, N, H] of a backend.

        Args:
            recurrence: a recurrence, or a stack.
            Y: the hidden states of all steps, zero in padding.
            hostile: whether to handle NaN and infinity.
        """
        lanes = lanes_of(recurrence)
        X, W, R = (values.astype(np.float64) for values in (lanes.X, lanes.W, lanes.R))
        first, *others = (state.astype(np.float64) for state in lanes.initial)
        L, T, N, _ = X.shape
        H = np.empty((L, T + 1, N, R.shape[-1]))
        H[:, 0] = first
        front = Y.shape[:-4]
        followed = H.reshape(*front, len(recurrence.directions), T + 1, N, R.shape[-1])  # a view
        for d, direction in enumerate(recurrence.directions):
            steps = in_order(Y[..., d, :, :], recurrence.lengths, direction, len(front))
            followed[..., d, 1:, :, :] = steps
        rows = (per_gate(v) for v in (recurrence.Wb, recurrence.Rb, recurrence.P))
        Wb, Rb, P = (None if v is None else v.astype(np.float64)[:, :, None] for v in rows)
        C0 = others[0] if others else np.zeros_like(first)
        errors = input_errors(recurrence)
        X_errors = None if errors is None else in_lanes(recurrence, errors).reshape(X.shape)
        quantiser, live = recurrence.quantiser, lanes.live
        if quantiser is None or not quantiser.keeps_ended:
            live = None
        if live is not None:
            for t in range(T):
                H[:, t + 1] = np.where(live[:, t, :, None], H[:, t + 1], H[:, t])
        return cls(recurrence, hostile, X, H, W, R, Wb, Rb, P, C0, X_errors, live)

    @classmethod
    def joined(cls, paths: Sequence[Trajectory]) -> Trajectory:
        """Join trajectories of the same kind and sizes as the directions of one."""
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
            X_errors=_joined([path.X_errors for path in paths], 0.0, paths),
            live=_joined([path.live for path in paths], True, paths),
        )

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """D, T, N, H."""
        D, after, N, H = map(int, self.H.shape)
        return D, after - 1, N, H

    @property
    def terms(self) -> int:
        """The number of terms of a gate: inputs, states, two biases, and a peephole if any."""
        return int(self.X.shape[-1] + self.H.shape[-1]) + 2 + (self.P is not None)

    def activation(self, letter: str) -> Activation:
        """Return the activation of a letter of the cell."""
        return self.recurrence.activations[0][self.recurrence.cell.activations.index(letter)]

    def settled(self, values: Array) -> Array:
        """Return values with zeros for NaN and infinity.

        Results that depend on those are NaN, infinite or saturated: they must match exactly, and
        must not affect the tolerances of other elements.
        """
        return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0) if self.hostile else values


def _joined(
    values: Sequence[Array | None], otherwise: float, paths: Sequence[Trajectory]
) -> Array | None:
    """Join values [D, T, N, ...] of some trajectories; the others have one number everywhere."""
    known = next((each for each in values if each is not None), None)
    if known is None:
        return None
    shapes = (path.X.shape[: known.ndim] for path in paths)
    return np.concatenate(
        [
            np.full(shape, otherwise, known.dtype) if each is None else each
            for each, shape in zip(values, shapes, strict=True)
        ]
    )


def _side_by_side(tensors: Sequence[Array | None]) -> Array | None:
    """Join optional tensors [G, D, ...] along D; either all or none are None."""
    present = [tensor for tensor in tensors if tensor is not None]
    return np.concatenate(present, axis=1) if present else None
