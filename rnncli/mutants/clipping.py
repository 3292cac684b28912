"""Bugs of clip: ignored, at another place, or of another size."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import GATED, LSTM, Family, directions, joined, running, stepped
from rnncli.mutants.equivalence import NO_BIAS, NO_CLIP, ONE_DIRECTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.changes import Right
    from rnncli.mutants.mutant import Run
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence, Result

bug = Family("clip", "Without clip, or where nothing reaches it, everything is right.")


def bound(function: Callable[[float], float]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that clips to another bound."""
    return lambda r: replace(r, clip=function(r.clip))


def steps(function: Callable[..., States]) -> Callable[[Recurrence], Recurrence]:
    """Return the change to function(step, p, x, states, bound), activations not clipped."""
    change = stepped(function, bound=lambda r: r.clip)
    return lambda r: replace(change(r), clip=math.inf)


def _clip(values: Value, bound: float) -> Value:
    return np.clip(values, -bound, bound)


@bug(NO_CLIP, changes=bound)
def clip_ignored(_: float) -> float:
    """clip is not applied."""
    return math.inf


@bug(NO_CLIP, changes=bound)
def clip_doubled(clip: float) -> float:
    """Pre-activations are clipped to 2*clip."""
    return 2 * clip


@bug(NO_CLIP, changes=bound)
def clip_halved(clip: float) -> float:
    """Pre-activations are clipped to clip/2."""
    return clip / 2


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

    return steps(step)


def arguments(clip: Callable[[Value, float], Value]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that clips what is clipped by another function."""
    return lambda r: _clipped_by("fgh" if r.clip_hidden else "fg", clip)(r)


@bug(NO_CLIP, changes=arguments)
def clip_from_above_only(values: Value, bound: float) -> Value:
    """There is no lower bound."""
    return np.minimum(values, bound)


@bug(NO_CLIP, changes=lambda f: lambda r: r if math.isinf(r.clip) else arguments(f)(r))
def clip_of_magnitude(values: Value, bound: float) -> Value:
    """Pre-activations become min(|x|, clip)."""
    return np.minimum(np.abs(values), bound)


@bug(NO_CLIP, ONE_DIRECTION, changes=running)
def clip_of_first_direction_only(run: Run, recurrence: Recurrence) -> Result:
    """Pre-activations of the second direction are not clipped."""
    first, *others = directions(recurrence)
    return joined([run(first), *(run(replace(each, clip=math.inf)) for each in others)])


@bug(NO_CLIP, NO_BIAS, changes=running)
def clip_before_bias(run: Run, recurrence: Recurrence) -> Result:
    """The biases are added after clipping."""
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


@bug(NO_CLIP, changes=steps)
def clip_of_input_product(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """Only Xt*(W^T) and the biases are clipped."""
    return right(p, _clip(x, bound), states)


@bug(NO_CLIP, changes=steps)
def clip_of_recurrent_product(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """Only Ht-1*(R^T) is clipped."""
    return right(replace(p, R=lambda *given: _clip(p.R(*given), bound)), x, states)


@bug(NO_CLIP, changes=steps, of=GATED)  # of an RNN that is clip-of-h
def clip_of_values(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """The values of activations are clipped, not their arguments."""
    own: dict[str, Any] = {letter: getattr(p, letter) for letter in "fgh"}
    clipped: dict[str, Any] = {
        k: lambda v, own=function: _clip(own(v), bound) for k, function in own.items()
    }
    return right(replace(p, **clipped), x, states)


def _state_clipped(
    which: int, right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    new = list(right(p, x, states))
    new[which] = _clip(new[which], bound)
    return tuple(new)


for k, name, cells in ((0, "h", bug.of), (1, "c", LSTM)):
    bug.row(
        f"clip-of-{name}",
        f"{name.upper()}t is clipped, not the pre-activations.",
        steps(partial(_state_clipped, k)),
        NO_CLIP,
        of=cells,
    )


@bug(NO_CLIP, of=LSTM)
def clip_of_h_activation_flipped(recurrence: Recurrence) -> Recurrence:
    """The argument of h is not clipped although it should be, or the other way round."""
    return replace(recurrence, clip_hidden=not recurrence.clip_hidden)


for letter in "fg":
    bug.row(
        f"clip-of-{letter}-only",
        f"Only the argument of {letter} is clipped.",
        _clipped_by(letter, _clip),
        NO_CLIP,
        of=GATED,
    )

ROWS = bug.rows
