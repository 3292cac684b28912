"""Bugs of activations: which are applied, with which alpha and beta, and how clip bounds them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.equivalence import uses_none_of
from rnncli.mutants.mutant import (
    ALL,
    GATED,
    LSTM,
    RNN,
    Family,
    Variant,
    directions,
    joined,
    parameters,
    running,
    stepped,
)
from rnncli.mutants.weights import LEFT_OUT
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.mutants.mutant import Right, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence, Result


def each_row(
    function: Callable[[Recurrence, tuple[Activation, ...]], Iterable[Activation]],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change (recurrence, activations) -> activations of each direction."""
    return lambda r: replace(
        r, activations=tuple(tuple(function(r, given)) for given in r.activations)
    )


def _default(letter: str, recurrence: Recurrence, given: tuple[Activation, ...]) -> Any:
    names = zip(recurrence.cell.activations, recurrence.cell.defaults, given, strict=True)
    return (
        ACTIVATIONS[name] if letter in ("", own) else activation for own, name, activation in names
    )


def _with_value(each: Activation, key: str, value: float) -> Activation:
    return replace(each, alpha=value) if key == "alpha" else replace(each, beta=value)


def every_value(
    key: str, value: Callable[[str, float], float]
) -> Callable[[Recurrence], Recurrence]:
    """Return the change (name, value) -> value of alpha or beta, where an activation takes it."""

    def new(each: Activation) -> Activation:
        given = getattr(each, key)
        return each if given is None else _with_value(each, key, value(each.name, given))

    return each_row(lambda _, given: map(new, given))


def _own_default(key: str, name: str, _: float) -> float:
    return float(getattr(ACTIVATIONS[name], key))


def _queue(recurrence: Recurrence, key: str) -> list[float]:
    """Return activation_alpha or activation_beta in full, as a node must write it."""
    flat = (getattr(each, key) for row in recurrence.activations for each in row)
    return [value for value in flat if value is not None]


def dealt(recurrence: Recurrence, key: str, *, restart: bool, positional: bool) -> Recurrence:
    """Return a recurrence whose activations take other elements of activation_alpha or _beta.

    Args:
        recurrence: the recurrence.
        key: alpha or beta.
        restart: whether each direction begins with the first element.
        positional: whether a function that takes none uses up an element.
    """
    queue, rows, k = _queue(recurrence, key), [], 0
    for given in recurrence.activations:
        k = 0 if restart else k
        new = []
        for each in given:
            takes = getattr(each, key) is not None
            value = queue[k] if k < len(queue) else getattr(ACTIVATIONS[each.name], key)
            new.append(_with_value(each, key, value) if takes else each)
            k += positional or takes
        rows.append(tuple(new))
    return replace(recurrence, activations=tuple(rows))


function_bug = Family("activations", "The default activations are right.")


@function_bug(changes=each_row)
def activations_ignored(recurrence: Recurrence, given: tuple[Activation, ...]) -> Any:
    """The default activations are applied, whichever the node names."""
    return _default("", recurrence, given)


@function_bug(
    changes=each_row,
    each=[Variant("f", "f", of=GATED), Variant("g", "g", of=GATED), Variant("h", "h", of=LSTM)],
)
def activation_X_ignored(letter: str, recurrence: Recurrence, given: tuple[Activation, ...]) -> Any:
    """The default is applied in place of {}."""
    return _default(letter, recurrence, given)


@function_bug(
    changes=each_row,
    each=[
        Variant(("f", "g"), (0, 1), of=GATED),
        Variant(("f", "h"), (0, 2), of=LSTM),
        Variant(("g", "h"), (1, 2), of=LSTM),
    ],
)
def activations_X_X_swapped(
    places: tuple[int, int], _: Recurrence, given: tuple[Activation, ...]
) -> list[Activation]:
    """{} and {} are exchanged.

    Right only where both are the same.
    """
    (a, b), new = places, list(given)
    new[a], new[b] = given[b], given[a]
    return new


@function_bug(
    unless.NO_STEP,
    each=[Variant("f", "f"), Variant("g", "g", of=GATED), Variant("h", "h", of=LSTM)],
)
def activation_X_missing(letter: str, recurrence: Recurrence) -> Recurrence:
    """{} is not applied at all.

    Values are larger than they should be, saturated ones most.
    """
    identity: dict[str, Any] = {letter: lambda v: v}
    return parameters(lambda p: replace(p, **identity))(recurrence)


KEYS = (Variant("alpha", "alpha"), Variant("beta", "beta"))


@function_bug(each=KEYS)
def X_default_zero(key: str, recurrence: Recurrence) -> Recurrence:
    """An absent activation_{} is 0 instead of the function's default.

    Functions that take no {} are right, and so are given values.
    """
    zero = every_value(key, lambda name, v: 0.0 if v == _own_default(key, name, v) else v)
    return zero(recurrence)


@function_bug(each=KEYS)
def X_ignored(key: str, recurrence: Recurrence) -> Recurrence:
    """activation_{} is not read: the function's default is taken.

    Functions that take no {} are right.
    """
    return every_value(key, partial(_own_default, key))(recurrence)


@function_bug()
def undefined_defaults_zero(recurrence: Recurrence) -> Recurrence:
    """Affine, ScaledTanh and ThresholdedRelu take 0 for absent values, whose defaults few runtimes
    know.

    Other functions are right, and so are given values.
    """
    undefined = ("Affine", "ScaledTanh", "ThresholdedRelu")  # in ONNX Runtime

    def zero(key: str, name: str, value: float) -> float:
        return 0.0 if name in undefined and value == _own_default(key, name, value) else value

    changes = [every_value(key, partial(zero, key)) for key in ("alpha", "beta")]
    return changes[1](changes[0](recurrence))


@function_bug(changes=lambda function: each_row(lambda _, given: map(function, given)))
def alpha_beta_exchanged(each: Activation) -> Activation:
    """alpha and beta are exchanged in functions that take both.

    Only Affine, ScaledTanh and HardSigmoid are wrong.
    """
    if each.alpha is None or each.beta is None:
        return each
    return replace(each, alpha=each.beta, beta=each.alpha)


@function_bug()
def alpha_beta_positional(recurrence: Recurrence) -> Recurrence:
    """Element k of activation_alpha and activation_beta is given to activation k, whether it takes
    one or not; lists are taken as written in full.

    Right where the functions that take values come first.
    """
    for key in ("alpha", "beta"):
        recurrence = dealt(recurrence, key, restart=False, positional=True)
    return recurrence


@function_bug(unless.ONE_DIRECTION)
def alpha_beta_restarted(recurrence: Recurrence) -> Recurrence:
    """The second direction reads activation_alpha and activation_beta from their start.

    Only the second direction is wrong.
    """
    for key in ("alpha", "beta"):
        recurrence = dealt(recurrence, key, restart=True, positional=False)
    return recurrence


finer_function_bug = Family("activations")


@finer_function_bug(
    changes=each_row,
    each=[
        Variant((letter, name), (letter, name), of=cells)
        for cells, letter, names in (
            (RNN, "f", ("Sigmoid", "HardSigmoid")),
            (GATED, "f", ("Tanh",)),
            (ALL, "f", ("Relu",)),
            (GATED, "g", ("Sigmoid", "Relu", "HardSigmoid")),
            (LSTM, "h", ("Sigmoid", "Relu", "HardSigmoid")),
        )
        for name in names
    ],
)
def activation_X_is_X(
    replaced: tuple[str, str], recurrence: Recurrence, given: tuple[Activation, ...]
) -> list[Activation]:
    """{1} is applied in place of {0}.

    {1} as {0} is right.
    """
    letter, name = replaced
    own = zip(recurrence.cell.activations, given, strict=True)
    return [ACTIVATIONS[name] if each == letter else activation for each, activation in own]


def _of_another_library(name: str, key: str, spelled: str, value: float) -> Variant:
    own = getattr(ACTIVATIONS[name], key)

    def default(which: str, given: float) -> float:
        return value if (which, given) == (name, own) else given

    words = (name, key, spelled, f"{value:.5g}", f"{own:.5g}")
    return Variant(words, every_value(key, default), uses_none_of(name))


@finer_function_bug(
    each=[
        *(_of_another_library("LeakyRelu", "alpha", f"0.{k}", k / 10) for k in (1, 2, 3)),
        _of_another_library("HardSigmoid", "alpha", "sixth", 1 / 6),
        _of_another_library("ScaledTanh", "alpha", "1.7159", 1.7159),
        _of_another_library("ScaledTanh", "beta", "two-thirds", 2 / 3),
    ],
)
def X_X_X(change: Callable[[Recurrence], Recurrence], recurrence: Recurrence) -> Recurrence:
    """{0} has {1} {3} by default, instead of {4}.

    Right where {1} is given.
    """
    return change(recurrence)


@finer_function_bug(each=KEYS)
def X_zero(key: str, recurrence: Recurrence) -> Recurrence:
    """activation_{} is taken as 0, whether it is given or not.

    Functions that take no {} are right.
    """
    return every_value(key, lambda _, __: 0.0)(recurrence)


clip_bug = Family(
    "clip", "Without clip, or where nothing reaches it, everything is right.", ALL, unless.NO_CLIP
)


def bound(function: Callable[[float], float]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that clips to another bound."""
    return lambda r: replace(r, clip=function(r.clip))


def clipping(function: Callable[..., States]) -> Callable[[Recurrence], Recurrence]:
    """Return the change to function(step, p, x, states, bound), activations not clipped."""
    change = stepped(function, bound=lambda r: r.clip)
    return lambda r: replace(change(r), clip=math.inf)


def _clip(values: Value, bound: float) -> Value:
    return np.clip(values, -bound, bound)


@clip_bug(changes=bound)
def clip_ignored(_: float) -> float:
    """clip is not applied."""
    return math.inf


@clip_bug(changes=bound)
def clip_doubled(clip: float) -> float:
    """Pre-activations are clipped to 2*clip."""
    return 2 * clip


@clip_bug(changes=bound)
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

    return clipping(step)


def arguments(clip: Callable[[Value, float], Value]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that clips what is clipped by another function."""
    return lambda r: _clipped_by("fgh" if r.clip_hidden else "fg", clip)(r)


@clip_bug(changes=arguments)
def clip_from_above_only(values: Value, bound: float) -> Value:
    """There is no lower bound."""
    return np.minimum(values, bound)


@clip_bug(changes=lambda f: lambda r: r if math.isinf(r.clip) else arguments(f)(r))
def clip_of_magnitude(values: Value, bound: float) -> Value:
    """Pre-activations become min(|x|, clip)."""
    return np.minimum(np.abs(values), bound)


@clip_bug(unless.ONE_DIRECTION, changes=running)
def clip_of_first_direction_only(run: Run, recurrence: Recurrence) -> Result:
    """Pre-activations of the second direction are not clipped."""
    first, *others = directions(recurrence)
    return joined([run(first), *(run(replace(each, clip=math.inf)) for each in others)])


@clip_bug(unless.NO_BIAS, changes=running)
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


@clip_bug(changes=clipping)
def clip_of_input_product(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """Only Xt*(W^T) and the biases are clipped."""
    return right(p, _clip(x, bound), states)


@clip_bug(changes=clipping)
def clip_of_recurrent_product(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """Only Ht-1*(R^T) is clipped."""
    return right(replace(p, R=lambda *given: _clip(p.R(*given), bound)), x, states)


@clip_bug(changes=clipping, of=GATED)  # of an RNN that is clip-of-h
def clip_of_values(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """The values of activations are clipped, not their arguments."""
    own: dict[str, Any] = {letter: getattr(p, letter) for letter in "fgh"}
    clipped: dict[str, Any] = {
        k: lambda v, own=function: _clip(own(v), bound) for k, function in own.items()
    }
    return right(replace(p, **clipped), x, states)


@clip_bug(changes=clipping, each=[Variant(("h", "H"), 0), Variant(("c", "C"), 1, of=LSTM)])
def clip_of_X(
    which: int, right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """{1}t is clipped, not the pre-activations."""
    new = list(right(p, x, states))
    new[which] = _clip(new[which], bound)
    return tuple(new)


@clip_bug(of=LSTM)
def clip_of_h_activation_flipped(recurrence: Recurrence) -> Recurrence:
    """The argument of h is not clipped although it should be, or the other way round."""
    return replace(recurrence, clip_hidden=not recurrence.clip_hidden)


@clip_bug(of=GATED, each=[Variant("f", "f"), Variant("g", "g")])
def clip_of_X_only(letter: str, recurrence: Recurrence) -> Recurrence:
    """Only the argument of {} is clipped."""
    return _clipped_by(letter, _clip)(recurrence)


finer_clip_bug = Family("clip", LEFT_OUT, ALL, unless.NO_CLIP)


@finer_clip_bug(changes=bound)
def clip_rounded(clip: float) -> float:
    """clip is rounded to an integer."""
    return float(np.rint(clip))


@finer_clip_bug(changes=bound)
def clip_truncated(clip: float) -> float:
    """clip is cut to an integer."""
    return float(np.trunc(clip))


@finer_clip_bug(changes=bound)
def clip_in_float16(clip: float) -> float:
    """clip is rounded to float16."""
    return float(np.float16(clip))
