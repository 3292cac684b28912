"""Bugs of clip: ignored, at another place, or of another size."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, GATED, LSTM, directions, family, joined, row, stepped
from rnncli.mutants.equivalence import NO_BIAS, NO_CLIP, ONE_DIRECTION
from rnncli.mutants.mutant import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Right
    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence, Result


def _bound(recurrence: Recurrence) -> float:
    return recurrence.clip


def _clip_set(function: Callable[[float], float]) -> Callable[[Recurrence], Recurrence]:
    return lambda r: replace(r, clip=function(r.clip))


def _unclipped(
    function: Callable[..., States],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change to function(step, p, x, states, bound), activations not clipped."""
    change = stepped(function, bound=_bound)
    return lambda r: replace(change(r), clip=math.inf)


def _clip(values: Value, bound: float) -> Value:
    return np.clip(values, -bound, bound)


def _input_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    return right(p, _clip(x, bound), states)


def _product_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    product = replace(p, R=lambda *given: _clip(p.R(*given), bound))
    return right(product, x, states)


def _state_clipped(
    which: int, right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    new = list(right(p, x, states))
    new[which] = _clip(new[which], bound)
    return tuple(new)


def _values_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """Clip the values of activations instead of their arguments."""
    own: dict[str, Any] = {letter: getattr(p, letter) for letter in "fgh"}
    clipped: dict[str, Any] = {
        k: lambda v, own=function: _clip(own(v), bound) for k, function in own.items()
    }
    return right(replace(p, **clipped), x, states)


def _clipped_by(
    letters: str, clip: Callable[[Value, float], Value]
) -> Callable[[Recurrence], Recurrence]:
    """Return the change that clips the arguments of some activations by a function."""

    def step(right: Right, p: Parameters, x: Value, states: States, *, bound: float) -> States:
        own: dict[str, Any] = {letter: getattr(p, letter) for letter in letters}
        clipped: dict[str, Any] = {
            k: lambda v, own=function: own(clip(v, bound)) for k, function in own.items()
        }
        return right(replace(p, **clipped), x, states)

    return _unclipped(step)


def _magnitude(values: Value, bound: float) -> Value:
    return np.minimum(np.abs(values), bound)


def _sign_lost(recurrence: Recurrence) -> Recurrence:
    if math.isinf(recurrence.clip):
        return recurrence
    return _clipped_by("fgh" if recurrence.clip_hidden else "fg", _magnitude)(recurrence)


def _first_direction_only(run: Run, recurrence: Recurrence) -> Result:
    first, *others = directions(recurrence)
    return joined([run(first), *(run(replace(each, clip=math.inf)) for each in others)])


def _no_lower_bound(recurrence: Recurrence) -> Recurrence:
    return _clipped_by("fgh" if recurrence.clip_hidden else "fg", np.minimum)(recurrence)


def _bias_after_clip(run: Run, recurrence: Recurrence) -> Result:
    """Clip Xt*(W^T) + Ht-1*(R^T), then add the biases, for each direction."""
    return joined([run(_biased_late(each)) for each in directions(recurrence)])


def _biased_late(recurrence: Recurrence) -> Recurrence:
    parts = [b[0].astype(np.float64) for b in (recurrence.Wb, recurrence.Rb) if b is not None]
    if not parts or math.isinf(recurrence.clip):
        return recurrence
    bias = np.sum(parts, axis=0)[:, None, None, :]
    bare = replace(recurrence, Wb=None, Rb=None, clip=math.inf)
    return stepped(_summed_clipped, bound=lambda _: recurrence.clip, bias=lambda _: bias)(bare)


def _summed_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float, bias: Array
) -> States:
    """Compute a step from sums that are clipped first and biased then."""

    def product(state: Value, gates: slice = slice(None)) -> Value:
        return (_clip(x[gates] + p.R(state, gates), bound) + bias[gates]).astype(x.dtype)

    return right(replace(p, R=product), np.zeros_like(x), states)


def _clips() -> Iterator[Mutant]:
    effect = "Without clip, or where nothing reaches it, everything is right."

    def clip_row(
        id_: str,
        sentence: str,
        change: Change | Callable[[Recurrence], Recurrence],
        cells: tuple[str, ...] = ALL,
        *reasons: Any,
    ) -> Mutant:
        return row(f"clip-{id_}", cells, sentence, effect, change, NO_CLIP, *reasons)

    yield clip_row("ignored", "clip is not applied.", _clip_set(lambda _: math.inf))
    yield clip_row("doubled", "Pre-activations are clipped to 2*clip.", _clip_set(lambda c: 2 * c))
    yield clip_row("halved", "Pre-activations are clipped to clip/2.", _clip_set(lambda c: c / 2))
    yield clip_row("from-above-only", "There is no lower bound.", _no_lower_bound)
    yield clip_row("of-magnitude", "Pre-activations become min(|x|, clip).", _sign_lost)
    yield clip_row(
        "of-first-direction-only",
        "Pre-activations of the second direction are not clipped.",
        Change(result=_first_direction_only),
        ALL,
        ONE_DIRECTION,
    )
    yield clip_row(
        "before-bias",
        "The biases are added after clipping.",
        Change(result=_bias_after_clip),
        ALL,
        NO_BIAS,
    )
    yield clip_row(
        "of-input-product", "Only Xt*(W^T) and the biases are clipped.", _unclipped(_input_clipped)
    )
    yield clip_row(
        "of-recurrent-product", "Only Ht-1*(R^T) is clipped.", _unclipped(_product_clipped)
    )
    yield clip_row(
        "of-values",
        "The values of activations are clipped, not their arguments.",
        _unclipped(_values_clipped),
        GATED,  # of an RNN that is clip-of-h
    )
    yield clip_row(
        "of-h", "Ht is clipped, not the pre-activations.", _unclipped(partial(_state_clipped, 0))
    )
    yield clip_row(
        "of-c",
        "Ct is clipped, not the pre-activations.",
        _unclipped(partial(_state_clipped, 1)),
        LSTM,
    )
    yield clip_row(
        "of-h-activation-flipped",
        "The argument of h is not clipped although it should be, or the other way round.",
        lambda r: replace(r, clip_hidden=not r.clip_hidden),
        LSTM,
    )
    for letters, cells in (("f", GATED), ("g", GATED)):
        yield clip_row(
            f"of-{letters}-only",
            f"Only the argument of {letters} is clipped.",
            _clipped_by(letters, _clip),
            cells,
        )


ROWS = family("clip", _clips())
