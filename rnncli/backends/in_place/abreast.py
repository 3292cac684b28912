"""Both directions of a small recurrence abreast: one of twice the units, half as many steps.

The weights of each stand on the diagonal, with zeros beside them; a step takes the inputs of both,
X[t] and X[T - 1 - t]. Where calls of NumPy cost more than what they compute, that is half the time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.in_place import tuning
from rnncli.recurrence.constants import Constants
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from rnncli.numerics import Array

KEY = "abreast"


def pays(recurrence: Recurrence) -> bool:
    """Return whether both directions can walk abreast, and faster so."""
    r = recurrence
    D, _, H, I = r.W.shape  # noqa: E741
    T, N, _ = r.X.shape
    return (
        D == 2
        and T >= tuning.ABREAST_STEPS
        and D * H * (I + H) * N <= tuning.ABREAST_ZEROS
        and r.lengths is None
        and r.activations[0] == r.activations[1]
    )


def abreast(recurrence: Recurrence) -> Recurrence:
    """Return the one recurrence that is both directions of another."""
    r = recurrence
    weights, constants = _weights(r)
    both = replace(
        r,
        X=np.concatenate((r.X, r.X[::-1]), axis=2),
        initial=tuple([_side_by_side(state) for state in r.initial]),
        directions=(Direction.FORWARD,),
        activations=r.activations[:1],
        **weights,
    )
    both.constants = constants
    return both


def apart(result: Result) -> Result:
    """Return the results of both directions."""
    _, N, units = result.last[0].shape
    H = units // 2
    last = tuple([state.reshape(N, 2, H).swapaxes(0, 1) for state in result.last])
    if result.Y is None:
        return Result(None, last)
    both = result.Y.reshape(-1, N, 2, H)
    Y = np.empty((len(both), 2, N, H), both.dtype)
    Y[:, 0], Y[:, 1] = both[:, :, 0], both[::-1, :, 1]
    return Result(Y, last)


def _weights(recurrence: Recurrence) -> tuple[dict[str, Any], Constants | None]:
    """Put weights abreast, by name, once for all calls where they are constants."""
    r, constants = recurrence, recurrence.constants
    found: Any = None if constants is None else constants.get(KEY)
    if found is None:
        matrices = {name: _on_diagonal(getattr(r, name)) for name in ("W", "R")}
        rows = {name: _side_by_side(getattr(r, name)) for name in ("Wb", "Rb", "P")}
        found = {**matrices, **rows}, None if constants is None else Constants()
        if constants is not None:
            constants.keep(KEY, found)
    return found  # type: ignore[no-any-return]


def _on_diagonal(weights: Array) -> Array:
    """Return weights [2, G, H, K] as [1, G, 2*H, 2*K]."""
    _, G, H, K = weights.shape
    both = np.zeros((1, G, 2, H, 2, K), weights.dtype)
    for d in range(2):
        both[0, :, d, :, d] = weights[d]
    return both.reshape(1, G, 2 * H, 2 * K)


def _side_by_side(values: Array | None) -> Array | None:
    """Return biases, peepholes or states [2, n, H] as [1, n, 2*H]."""
    return None if values is None else values.swapaxes(0, 1).reshape(1, values.shape[1], -1)
