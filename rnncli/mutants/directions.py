"""Bugs of directions: their order of steps, what they share, where their outputs go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import (
    ALL,
    GATED,
    LSTM,
    arrays,
    directions,
    family,
    joined,
    of_first_direction,
    padding_of,
    results,
    rolled,
    row,
    second_zeroed,
)
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_FORWARD,
    NO_PEEPHOLES,
    NO_RECURRENT_PRODUCT,
    NO_REVERSE,
    NO_Y,
    ONE_DIRECTION,
    ONE_SEQUENCE,
    ONE_STEP,
)
from rnncli.mutants.mutant import Change
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result


SECOND = "Only the second direction is wrong."


def _walk(*, forward: Direction, reverse: Direction) -> Callable[[Recurrence], Recurrence]:
    walked = {Direction.FORWARD: forward, Direction.REVERSE: reverse}
    return lambda r: replace(r, directions=tuple(walked[each] for each in r.directions))


def _first_activations(recurrence: Recurrence) -> Recurrence:
    first = recurrence.activations[0]
    return replace(recurrence, activations=(first,) * len(recurrence.directions))


def _interleaved_activations(recurrence: Recurrence) -> Recurrence:
    """Read f, f, g, g ... instead of f, g ..., f, g ..."""
    D = len(recurrence.directions)
    flat = [each for row in recurrence.activations for each in row]
    return replace(recurrence, activations=tuple(tuple(flat[d::D]) for d in range(D)))


def _directions_interleaved(values: Array) -> Array:
    """Read the buffer of [D, rows, K] as one of [rows, D, K]."""
    D, G, H, K = values.shape
    return values.reshape(G * H, D, K).swapaxes(0, 1).reshape(D, G, H, K)


def _swapped_directions(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    del recurrence
    return Y[:, ::-1], tuple(state[::-1] for state in last)


def _second_missing(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    del recurrence
    return second_zeroed(Y.swapaxes(0, 1)).swapaxes(0, 1), tuple(map(second_zeroed, last))


def _left_reversed(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Leave the valid steps of a reverse direction in their order of computation."""
    Y = Y.copy()
    for d, direction in enumerate(recurrence.directions):
        if direction is Direction.REVERSE:
            Y[:, d] = rolled(Y[::-1, d], -padding_of(recurrence))
    return Y, last


def _beside_units(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Write [T, N, D, H], as PyTorch returns it, to the buffer of [T, D, N, H]."""
    del recurrence
    return Y.swapaxes(1, 2).reshape(Y.shape), last


def _second_biases_too_early(recurrence: Recurrence) -> Recurrence:
    """Read the second direction's Wb and Rb from half a direction before them."""
    Wb, Rb = recurrence.Wb, recurrence.Rb
    if Wb is None or Rb is None or len(Wb) == 1:
        return recurrence
    return replace(recurrence, Wb=np.stack([Wb[0], Rb[0]]), Rb=np.stack([Rb[0], Wb[1]]))


def _second_continues(run: Run, recurrence: Recurrence) -> Result:
    """Start the second direction from the last states of the first."""
    first, *others = directions(recurrence)
    result = run(first)
    return joined([result, *(run(replace(each, initial=result.last)) for each in others)])


def _walks() -> Iterator[Mutant]:
    F, R = Direction.FORWARD, Direction.REVERSE
    yield row(
        "reverse-runs-forward",
        ALL,
        "The reverse direction is computed as forward.",
        "Forward is right, reverse is wrong unless T is 1.",
        _walk(forward=F, reverse=F),
        NO_REVERSE,
        ONE_STEP,
    )
    yield row(
        "forward-runs-reverse",
        ALL,
        "The forward direction is computed as reverse.",
        "Reverse is right, forward is wrong unless T is 1.",
        _walk(forward=R, reverse=R),
        NO_FORWARD,
        ONE_STEP,
    )
    yield row(
        "directions-walked-the-other-way",
        ALL,
        "Forward walks backwards and reverse forwards.",
        "Everything is wrong unless T is 1.",
        _walk(forward=R, reverse=F),
        ONE_STEP,
    )


def _sharing() -> Iterator[Mutant]:
    for part, names, cells, reasons in (
        ("w", ("W",), ALL, ()),
        ("r", ("R",), ALL, (NO_RECURRENT_PRODUCT,)),
        ("biases", ("Wb", "Rb"), ALL, (NO_BIAS,)),
        ("peepholes", ("P",), LSTM, (NO_PEEPHOLES,)),
        ("weights-and-biases", ("W", "R", "Wb", "Rb", "P"), ALL, ()),
    ):
        spelled = {"w": "W", "r": "R"}.get(part, part.replace("-", " "))
        yield row(
            f"second-direction-reuses-{part}",
            cells,
            f"The second direction is computed with the first's {spelled}.",
            SECOND,
            arrays(names, of_first_direction),
            ONE_DIRECTION,
            *reasons,
        )
    yield row(
        "second-direction-reuses-activations",
        ALL,
        "The second direction applies the first's activations.",
        SECOND,
        _first_activations,
        ONE_DIRECTION,
    )
    yield row(
        "second-direction-biases-at-half",
        ALL,
        "The second direction's biases are read at half their offset: the first's Rb is its Wb.",
        SECOND,
        _second_biases_too_early,
        ONE_DIRECTION,
        NO_BIAS,
    )
    yield row(
        "second-direction-continues",
        ALL,
        "The second direction starts from the last states of the first.",
        SECOND,
        Change(result=_second_continues),
        ONE_DIRECTION,
    )
    yield row(
        "activations-by-letter",
        GATED,
        "The list of activations is read f, f, g, g instead of f, g, f, g.",
        "With two directions, only lists of one function are right.",
        _interleaved_activations,
        ONE_DIRECTION,
    )
    for id_, sentence, misread in (
        (
            "weights-of-directions-swapped",
            "Each direction is computed with the other's W, R, B and P.",
            arrays(("W", "R", "Wb", "Rb", "P"), np.flipud),
        ),
        (
            "weights-of-directions-interleaved",
            "W and R are read row by row of both directions.",
            arrays(("W", "R"), _directions_interleaved),
        ),
    ):
        yield row(id_, ALL, sentence, "Both directions are wrong.", misread, ONE_DIRECTION)


def _placing() -> Iterator[Mutant]:
    for id_, sentence, effect, function, reasons in (
        (
            "outputs-of-directions-swapped",
            "The outputs of the directions are written to each other's place.",
            "Both directions are wrong, and each is right in the other's place.",
            _swapped_directions,
            (),
        ),
        (
            "second-direction-missing",
            "The second direction is never computed: zeros.",
            SECOND,
            _second_missing,
            (),
        ),
        (
            "y-directions-beside-units",
            "Y is written as [T, N, D, H] instead of [T, D, N, H].",
            "Values of Y are right and in the wrong places.",
            _beside_units,
            (ONE_SEQUENCE, NO_Y),
        ),
    ):
        yield row(id_, ALL, sentence, effect, results(function), ONE_DIRECTION, *reasons)
    yield row(
        "reverse-y-in-order-of-computation",
        ALL,
        "Y of a reverse direction is not put back into the order of X.",
        "Y of reverse is right and in the wrong places.",
        results(_left_reversed),
        NO_REVERSE,
        ONE_STEP,
        NO_Y,
    )


ROWS = family("directions", (*_walks(), *_sharing(), *_placing()))
