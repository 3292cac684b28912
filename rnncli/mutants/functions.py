"""Bugs in reading activations and their alpha and beta."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rnncli.mutants.changes import GATED, LSTM, Family, parameters
from rnncli.mutants.equivalence import NO_STEP, ONE_DIRECTION
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.recurrence import Recurrence


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


def _swapped(a: int, b: int, _: Recurrence, given: tuple[Activation, ...]) -> list[Activation]:
    new = list(given)
    new[a], new[b] = given[b], given[a]
    return new


def _replaced_by_letter(letter: str) -> Callable[[Recurrence], Recurrence]:
    identity: dict[str, Any] = {letter: lambda v: v}
    return parameters(lambda p: replace(p, **identity))


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


def _zero_default(key: str) -> Callable[[Recurrence], Recurrence]:
    return every_value(key, lambda name, v: 0.0 if v == getattr(ACTIVATIONS[name], key) else v)


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


bug = Family("activations", "The default activations are right.")


@bug(changes=each_row)
def activations_ignored(recurrence: Recurrence, given: tuple[Activation, ...]) -> Any:
    """The default activations are applied, whichever the node names."""
    return _default("", recurrence, given)


for letter, cells in (("f", GATED), ("g", GATED), ("h", LSTM)):
    bug.row(
        f"activation-{letter}-ignored",
        f"The default is applied in place of {letter}.",
        each_row(partial(_default, letter)),
        of=cells,
    )
for a, b, cells in ((0, 1, GATED), (0, 2, LSTM), (1, 2, LSTM)):
    one, other = "fgh"[a], "fgh"[b]
    bug.row(
        f"activations-{one}-{other}-swapped",
        f"{one} and {other} are exchanged.",
        each_row(partial(_swapped, a, b)),
        of=cells,
        effect="Right only where both are the same.",
    )
for letter, cells in (("f", bug.of), ("g", GATED), ("h", LSTM)):
    bug.row(
        f"activation-{letter}-missing",
        f"{letter} is not applied at all.",
        _replaced_by_letter(letter),
        NO_STEP,
        of=cells,
        effect="Values are larger than they should be, saturated ones most.",
    )
for key in ("alpha", "beta"):
    bug.row(
        f"{key}-default-zero",
        f"An absent activation_{key} is 0 instead of the function's default.",
        _zero_default(key),
        effect=f"Functions that take no {key} are right, and so are given values.",
    )
    bug.row(
        f"{key}-ignored",
        f"activation_{key} is not read: the function's default is taken.",
        every_value(key, partial(_own_default, key)),
        effect=f"Functions that take no {key} are right.",
    )


@bug()
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


@bug(changes=lambda function: each_row(lambda _, given: map(function, given)))
def alpha_beta_exchanged(each: Activation) -> Activation:
    """alpha and beta are exchanged in functions that take both.

    Only Affine, ScaledTanh and HardSigmoid are wrong.
    """
    if each.alpha is None or each.beta is None:
        return each
    return replace(each, alpha=each.beta, beta=each.alpha)


@bug()
def alpha_beta_positional(recurrence: Recurrence) -> Recurrence:
    """Element k of activation_alpha and activation_beta is given to activation k, whether it takes
    one or not; lists are taken as written in full.

    Right where the functions that take values come first.
    """
    for key in ("alpha", "beta"):
        recurrence = dealt(recurrence, key, restart=False, positional=True)
    return recurrence


@bug(ONE_DIRECTION)
def alpha_beta_restarted(recurrence: Recurrence) -> Recurrence:
    """The second direction reads activation_alpha and activation_beta from their start.

    Only the second direction is wrong.
    """
    for key in ("alpha", "beta"):
        recurrence = dealt(recurrence, key, restart=True, positional=False)
    return recurrence


ROWS = bug.rows
