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
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import (
    ALL,
    GATED,
    LSTM,
    RNN,
    Family,
    arrays,
    of_second_direction,
    reading,
    results,
)
from rnncli.mutants.clipping import bound
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
from rnncli.mutants.imprecision import NO_SIGMOID, SMOOTH, sigmoid
from rnncli.mutants.ragged import LONGEST_FIRST, SORTED, longest_first, starts_unsorted
from rnncli.mutants.weights import (
    ORDERS,
    PARTS_OF_ORDER,
    add_order,
    gate_pairs,
    gate_zeroed,
    gates_swapped,
)
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Reason
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.recurrence import Recurrence

OFF = "Values are off by what is left out."

order_bug = Family("gate order")


def _add_orders(cell: str, right: str, known: tuple[str, ...]) -> None:
    """Add gates in every other order, and two that are swapped in one tensor."""
    swaps = {gates_swapped(right, *pair): pair for pair in gate_pairs(right)}
    for order in map("".join, permutations(right)):
        if order not in (right, *known, *swaps):
            sentence = f"The gates of W, R and B are read in the order {order}."
            add_order(order_bug, cell, f"gate-order-{order}", sentence, order=order)
    for (order, (a, b)), part in product(swaps.items(), PARTS_OF_ORDER):
        if part and order not in known:
            tensors = PARTS_OF_ORDER[part][1]
            sentence = f"Gates {a} and {b} are each computed with the other's {tensors}."
            name = f"gates-{a}-{b}-swapped"
            add_order(order_bug, cell, name, sentence, order=order, part=part)


for kind, orders in ORDERS.items():
    _add_orders(kind, CELLS[kind].gates, orders)

term_bug = Family("terms of gates", OFF)
# The terms of a gate's sum: id, array, term, reasons.
TERMS: tuple[tuple[str, str, str, tuple[Reason, ...]], ...] = (
    ("input-product", "W", "Xt*(W^T)", ()),
    ("recurrent-product", "R", "Ht-1*(R^T)", (NO_RECURRENT_PRODUCT,)),
    ("input-bias", "Wb", "Wb", (NO_INPUT_BIAS,)),
    ("recurrent-bias", "Rb", "Rb", (NO_RECURRENT_BIAS,)),
)
for name, array, term, reasons in TERMS[:2]:
    change = arrays((array,), np.zeros_like)
    term_bug.row(f"{name}-dropped", f"{term} is not added.", change, *reasons)
for kind, (name, array, term, reasons) in product(GATED, TERMS):
    for k, gate in enumerate(CELLS[kind].gates):
        term_bug.row(
            f"{name}-of-{gate}-dropped",
            f"{term} is not added in gate {gate}.",
            arrays((array,), partial(gate_zeroed, k)),
            *reasons,
            *((COUPLED,) if gate == "f" else ()),
            of=(kind,),
        )

function_bug = Family("activations")


def _with(
    letter: str, name: str, recurrence: Recurrence, given: tuple[Activation, ...]
) -> list[Activation]:
    own = zip(recurrence.cell.activations, given, strict=True)
    return [ACTIVATIONS[name] if each == letter else activation for each, activation in own]


for cells, letter, names in (
    (RNN, "f", ("Sigmoid", "HardSigmoid")),
    (GATED, "f", ("Tanh",)),
    (ALL, "f", ("Relu",)),
    (GATED, "g", ("Sigmoid", "Relu", "HardSigmoid")),
    (LSTM, "h", ("Sigmoid", "Relu", "HardSigmoid")),
):
    for name in names:
        function_bug.row(
            f"activation-{letter}-is-{name.lower()}",
            f"{name} is applied in place of {letter}.",
            each_row(partial(_with, letter, name)),
            of=cells,
            effect=f"{name} as {letter} is right.",
        )


def _other_default(which: str, own: float, value: float, name: str, given: float) -> float:
    return value if (name, given) == (which, own) else given


# Function, alpha or beta, and the default of another library.
for name, key, spelled, value in (
    ("LeakyRelu", "alpha", "0.1", 0.1),
    ("LeakyRelu", "alpha", "0.2", 0.2),
    ("LeakyRelu", "alpha", "0.3", 0.3),
    ("HardSigmoid", "alpha", "sixth", 1 / 6),
    ("ScaledTanh", "alpha", "1.7159", 1.7159),
    ("ScaledTanh", "beta", "two-thirds", 2 / 3),
):
    own = getattr(ACTIVATIONS[name], key)
    function_bug.row(
        f"{name.lower()}-{key}-{spelled}",
        f"{name} has {key} {value:.5g} by default, instead of {own:.5g}.",
        every_value(key, partial(_other_default, name, own, value)),
        uses_none_of(name),
        effect=f"Right where {key} is given.",
    )
for key in ("alpha", "beta"):
    function_bug.row(
        f"{key}-zero",
        f"activation_{key} is taken as 0, whether it is given or not.",
        every_value(key, lambda _, __: 0.0),
        effect=f"Functions that take no {key} are right.",
    )

direction_bug = Family("directions", "Only the first direction is wrong.")


@direction_bug(ONE_DIRECTION, changes=reading("W", "R", "Wb", "Rb", "P"))
def first_direction_reuses_weights_and_biases(values: Array) -> Array:
    """The first direction is computed with the second's weights and biases."""
    return of_second_direction(values)


@direction_bug(ONE_DIRECTION)
def first_direction_reuses_activations(recurrence: Recurrence) -> Recurrence:
    """The first direction is computed with the second's activations."""
    second = recurrence.activations[-1]
    return replace(recurrence, activations=(second,) * len(recurrence.directions))


@direction_bug(ONE_DIRECTION, ONE_STEP)
def both_directions_run_forward(recurrence: Recurrence) -> Recurrence:
    """Both directions of a bidirectional node walk forward; a lone reverse one is right.

    Only the second direction is wrong, unless T is 1.
    """
    if len(recurrence.directions) == 1:
        return recurrence
    return replace(recurrence, directions=(Direction.FORWARD,) * len(recurrence.directions))


approximation_bug = Family("approximations", SMOOTH)


@approximation_bug(NO_SIGMOID, NO_STEP, changes=sigmoid)
def hard_sigmoid_of_a_sixth(x: Value) -> Value:
    """Sigmoid is min(max(x/6 + 1/2, 0), 1)."""
    return np.clip(x / 6 + 0.5, 0, 1)  # as PyTorch and ONNX's HardSwish have it


length_bug = Family("lengths", LONGEST_FIRST)


def _left_sorted(which: int | None, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Leave Y, or one of the last states, in the order of the lengths."""
    order = longest_first(recurrence)
    if which is None:
        return Y[:, :, order], last
    return Y, tuple(s[:, order] if k == which else s for k, s in enumerate(last))


OUTPUTS: tuple[tuple[str, tuple[str, ...], int | None], ...] = (
    ("y", ALL, None),
    ("last-h", ALL, 0),
    ("last-c", LSTM, 1),
)
for name, cells, which in OUTPUTS:
    length_bug.row(
        f"{name}-left-sorted-by-length",
        f"Sequences are computed longest first, and {name} is not put back.",
        results(partial(_left_sorted, which)),
        NOT_RAGGED,
        SORTED,
        of=cells,
    )
for name, cells, k, reason in (
    ("initial-h", ALL, 0, NO_INITIAL_H),
    ("initial-c", LSTM, 1, NO_INITIAL_C),
):
    length_bug.row(
        f"{name}-not-sorted-by-length",
        f"Sequences are computed longest first, and {name} is not sorted with them.",
        partial(starts_unsorted, which=(k,)),
        NOT_RAGGED,
        SORTED,
        reason,
        of=cells,
    )

clip_bug = Family("clip", OFF)


@clip_bug(NO_CLIP, changes=bound)
def clip_rounded(clip: float) -> float:
    """clip is rounded to an integer."""
    return float(np.rint(clip))


@clip_bug(NO_CLIP, changes=bound)
def clip_truncated(clip: float) -> float:
    """clip is cut to an integer."""
    return float(np.trunc(clip))


@clip_bug(NO_CLIP, changes=bound)
def clip_in_float16(clip: float) -> float:
    """clip is rounded to float16."""
    return float(np.float16(clip))


peephole_bug = Family("peepholes", "Without P, and where Ct is right, everything is right.", LSTM)
NEW_CELL = where(lambda r: not r.options.peephole_previous, "Ct is right: peephole-o is new")


@peephole_bug(NEW_CELL, NO_PEEPHOLES, NO_STEP)
def peepholes_of_new_cell_for_o(recurrence: Recurrence) -> Recurrence:
    """Po is multiplied by Ct, although the reading peephole-o says Ct-1."""
    return recurrence.opting(peephole_previous=False)


ROWS = (
    *order_bug.rows,
    *term_bug.rows,
    *function_bug.rows,
    *direction_bug.rows,
    *approximation_bug.rows,
    *length_bug.rows,
    *clip_bug.rows,
    *peephole_bug.rows,
)
