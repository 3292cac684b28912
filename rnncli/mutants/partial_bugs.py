"""Finer variants of other mutants: of one tensor, gate, function or direction.

They name the bug of an implementation as precisely as possible. Suites are not scored by them: a
case that catches `biases-dropped` catches the biases of each gate, and gates in any order would
count two dozen times. Nor are they scored by the other choice of a reading, which is acceptable
wherever it is seen.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.approximations import NO_SIGMOID, SMOOTH
from rnncli.mutants.changes import (
    ALL,
    GATED,
    LSTM,
    RNN,
    arrays,
    computing,
    family,
    of_second_direction,
    results,
    row,
)
from rnncli.mutants.equivalence import (
    COUPLED,
    NO_CLIP,
    NO_INITIAL_C,
    NO_INITIAL_H,
    NO_INPUT_BIAS,
    NO_PEEPHOLES,
    NO_RECURRENT_BIAS,
    NO_RECURRENT_PRODUCT,
    NO_STEP,
    NOT_RAGGED,
    ONE_DIRECTION,
    ONE_STEP,
    uses_none_of,
    where,
)
from rnncli.mutants.functions import each_row, every_value
from rnncli.mutants.lengths import SORTED, longest_first, starts_unsorted
from rnncli.mutants.weights import (
    ORDERS,
    PARTS_OF_ORDER,
    gate_order,
    gate_pairs,
    gate_zeroed,
    gates_swapped,
)
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Mutant, Reason
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.recurrence import Recurrence

OFF = "Values are off by what is left out."


def _orders() -> Iterator[Mutant]:
    """Yield gates in every other order, and two that are swapped in one tensor."""
    for cell, known in ORDERS.items():
        right = CELLS[cell].gates
        swaps = {gates_swapped(right, *pair): pair for pair in gate_pairs(right)}
        for order in map("".join, permutations(right)):
            if order not in (right, *known, *swaps):
                sentence = f"The gates of W, R and B are read in the order {order}."
                yield gate_order(cell, f"gate-order-{order}", order, "", sentence)
        for (order, (a, b)), (part, (_, name)) in product(swaps.items(), PARTS_OF_ORDER.items()):
            if part and order not in known:
                sentence = f"Gates {a} and {b} are each computed with the other's {name}."
                yield gate_order(cell, f"gates-{a}-{b}-swapped", order, part, sentence)


# The terms of a gate's sum: id, array, term, reasons.
TERMS: tuple[tuple[str, str, str, tuple[Reason, ...]], ...] = (
    ("input-product", "W", "Xt*(W^T)", ()),
    ("recurrent-product", "R", "Ht-1*(R^T)", (NO_RECURRENT_PRODUCT,)),
    ("input-bias", "Wb", "Wb", (NO_INPUT_BIAS,)),
    ("recurrent-bias", "Rb", "Rb", (NO_RECURRENT_BIAS,)),
)


def _terms() -> Iterator[Mutant]:
    """Yield terms left out of one gate's sum, and products left out of every gate's."""
    for id_, array, term, reasons in TERMS[:2]:
        sentence, change = f"{term} is not added.", arrays((array,), np.zeros_like)
        yield row(f"{id_}-dropped", ALL, sentence, OFF, change, *reasons)
    for cell, (id_, array, term, reasons) in product(GATED, TERMS):
        for k, gate in enumerate(CELLS[cell].gates):
            yield row(
                f"{id_}-of-{gate}-dropped",
                (cell,),
                f"{term} is not added in gate {gate}.",
                OFF,
                arrays((array,), partial(gate_zeroed, k)),
                *reasons,
                *((COUPLED,) if gate == "f" else ()),
            )


def _functions() -> Iterator[Mutant]:
    """Yield functions applied in place of others, and other defaults of alpha and beta."""
    for cells, letter, names in (
        (RNN, "f", ("Sigmoid", "HardSigmoid")),
        (GATED, "f", ("Tanh",)),
        (ALL, "f", ("Relu",)),
        (GATED, "g", ("Sigmoid", "Relu", "HardSigmoid")),
        (LSTM, "h", ("Sigmoid", "Relu", "HardSigmoid")),
    ):
        for name in names:
            yield row(
                f"activation-{letter}-is-{name.lower()}",
                cells,
                f"{name} is applied in place of {letter}.",
                f"{name} as {letter} is right.",
                each_row(partial(_with, letter, name)),
            )
    yield from _defaults()
    for key in ("alpha", "beta"):
        yield row(
            f"{key}-zero",
            ALL,
            f"activation_{key} is taken as 0, whether it is given or not.",
            f"Functions that take no {key} are right.",
            every_value(key, lambda _, __: 0.0),
        )


# Function, alpha or beta, and the default of another library.
DEFAULTS: tuple[tuple[str, str, str, float], ...] = (
    ("LeakyRelu", "alpha", "0.1", 0.1),
    ("LeakyRelu", "alpha", "0.2", 0.2),
    ("LeakyRelu", "alpha", "0.3", 0.3),
    ("HardSigmoid", "alpha", "sixth", 1 / 6),
    ("ScaledTanh", "alpha", "1.7159", 1.7159),
    ("ScaledTanh", "beta", "two-thirds", 2 / 3),
)


def _defaults() -> Iterator[Mutant]:
    """Yield functions with another default of alpha or beta."""
    for name, key, spelled, value in DEFAULTS:
        own = getattr(ACTIVATIONS[name], key)
        yield row(
            f"{name.lower()}-{key}-{spelled}",
            ALL,
            f"{name} has {key} {value:.5g} by default, instead of {own:.5g}.",
            f"Right where {key} is given.",
            every_value(key, partial(_other_default, name, own, value)),
            uses_none_of(name),
        )


def _other_default(which: str, own: float, value: float, name: str, given: float) -> float:
    return value if (name, given) == (which, own) else given


def _with(
    letter: str, name: str, recurrence: Recurrence, given: tuple[Activation, ...]
) -> list[Activation]:
    own = zip(recurrence.cell.activations, given, strict=True)
    return [ACTIVATIONS[name] if each == letter else activation for each, activation in own]


def _second_activations(recurrence: Recurrence) -> Recurrence:
    second = recurrence.activations[-1]
    return replace(recurrence, activations=(second,) * len(recurrence.directions))


def _both_forward(recurrence: Recurrence) -> Recurrence:
    """Leave a lone direction as it is."""
    if len(recurrence.directions) == 1:
        return recurrence
    return replace(recurrence, directions=(Direction.FORWARD,) * len(recurrence.directions))


def _directions() -> Iterator[Mutant]:
    """Yield the first direction with parts of the second, and the second as another first."""
    changes: tuple[tuple[str, Callable[[Recurrence], Recurrence]], ...] = (
        ("weights and biases", arrays(("W", "R", "Wb", "Rb", "P"), of_second_direction)),
        ("activations", _second_activations),
    )
    for part, change in changes:
        yield row(
            f"first-direction-reuses-{part.replace(' ', '-')}",
            ALL,
            f"The first direction is computed with the second's {part}.",
            "Only the first direction is wrong.",
            change,
            ONE_DIRECTION,
        )
    yield row(
        "both-directions-run-forward",
        ALL,
        "Both directions of a bidirectional node walk forward; a lone reverse one is right.",
        "Only the second direction is wrong, unless T is 1.",
        _both_forward,
        ONE_DIRECTION,
        ONE_STEP,
    )


def _hard_sigmoid(x: Value) -> Value:
    """min(max(x/6 + 1/2, 0), 1), as PyTorch and ONNX's HardSwish have it."""
    return np.clip(x / 6 + 0.5, 0, 1)


def _left_sorted(which: int | None, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Leave Y, or one of the last states, in the order of the lengths."""
    order = longest_first(recurrence)
    if which is None:
        return Y[:, :, order], last
    return Y, tuple(s[:, order] if k == which else s for k, s in enumerate(last))


SORTED_OUTPUTS: tuple[tuple[str, tuple[str, ...], int | None], ...] = (
    ("y", ALL, None),
    ("last-h", ALL, 0),
    ("last-c", LSTM, 1),
)


def _sorted() -> Iterator[Mutant]:
    """Yield sequences sorted by length, with one tensor that is not sorted alike."""
    effect = "Right where the longest sequences come first."
    for id_, cells, which in SORTED_OUTPUTS:
        yield row(
            f"{id_}-left-sorted-by-length",
            cells,
            f"Sequences are computed longest first, and {id_} is not put back.",
            effect,
            results(partial(_left_sorted, which)),
            NOT_RAGGED,
            SORTED,
        )
    for id_, cells, which, reason in (
        ("initial-h", ALL, 0, NO_INITIAL_H),
        ("initial-c", LSTM, 1, NO_INITIAL_C),
    ):
        yield row(
            f"{id_}-not-sorted-by-length",
            cells,
            f"Sequences are computed longest first, and {id_} is not sorted with them.",
            effect,
            partial(starts_unsorted, which=(which,)),
            NOT_RAGGED,
            SORTED,
            reason,
        )


def _clips() -> Iterator[Mutant]:
    """Yield clip in a narrower type."""
    for id_, spelled, function in (
        ("rounded", "rounded to an integer", np.rint),
        ("truncated", "cut to an integer", np.trunc),
        ("in-float16", "rounded to float16", np.float16),
    ):

        def change(recurrence: Recurrence, function: Any = function) -> Recurrence:
            return replace(recurrence, clip=float(function(recurrence.clip)))

        yield row(f"clip-{id_}", ALL, f"clip is {spelled}.", OFF, change, NO_CLIP)


NEW_CELL_FOR_O = row(
    "peepholes-of-new-cell-for-o",
    LSTM,
    "Po is multiplied by Ct, although the reading peephole-o says Ct-1.",
    "Without P, and where Ct is right, everything is right.",
    lambda r: replace(r, peephole_previous=False),
    where(lambda r: not r.peephole_previous, "Ct is right: peephole-o is new"),
    NO_PEEPHOLES,
    NO_STEP,
)
HARD_SIGMOID = row(
    "hard-sigmoid-of-a-sixth",
    ALL,
    "Sigmoid is min(max(x/6 + 1/2, 0), 1).",
    SMOOTH,
    computing(sigmoid=_hard_sigmoid),
    NO_SIGMOID,
    NO_STEP,
)

ROWS = (
    *family("gate order", _orders()),
    *family("terms of gates", _terms()),
    *family("activations", _functions()),
    *family("directions", _directions()),
    *family("approximations", (HARD_SIGMOID,)),
    *family("lengths", _sorted()),
    *family("clip", _clips()),
    *family("peepholes", (NEW_CELL_FOR_O,)),
)
