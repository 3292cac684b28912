"""Bugs in reading weights and biases: order of gates, layout, transposes, terms left out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.equivalence import where
from rnncli.mutants.mutant import ALL, GATED, GRU, LSTM, Family, Variant, reading
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from rnncli.mutants.equivalence import Reason
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

BIASES = ("Wb", "Rb")
# Name in ids -> arrays, their name in sentences, and why they cannot be seen.
PARTS_OF_ORDER = {
    "": (("W", "R", *BIASES), "W, R and B", ()),
    "-in-w": (("W",), "W", ()),
    "-in-r": (("R",), "R", (unless.NO_RECURRENT_PRODUCT,)),
    "-in-b": (BIASES, "B", (unless.NO_BIAS,)),
}
# Orders of gates in use elsewhere: PyTorch, cuDNN and Keras; TensorFlow and OpenVINO.
ORDERS = {"GRU": ("rzh", "rhz"), "LSTM": ("ifco", "fico")}
GARBAGE = "Every value is far off."
LEFT_OUT = "Values are off by what is left out."


def _in_order(order: str, right: str, values: Array) -> Array:
    """Return the blocks of gates as read in another order."""
    return values[:, [order.index(gate) for gate in right]]


order_bug, finer_order_bug = Family("gate order", GARBAGE), Family("gate order", GARBAGE)


def _add_orders(cell: str, known: tuple[str, ...]) -> None:
    """Add gates in every order, and two gates that are swapped, in all tensors or in one."""
    right = CELLS[cell].gates

    def add(family: Family, name: str, sentence: str, order: str, part: str = "") -> None:
        names, tensors, reasons = PARTS_OF_ORDER[part]
        change = reading(*names)(partial(_in_order, order, right))
        family.row(f"{name}{part}", sentence.format(tensors), change, *reasons, of=(cell,))

    swaps = {right.translate({ord(a): b, ord(b): a}): (a, b) for a, b in combinations(right, 2)}
    for order, part in product(map("".join, permutations(right)), PARTS_OF_ORDER):
        if order not in (right, *known, *swaps):
            sentence = f"The gates of {{}} are read in the order {order}."
            add(finer_order_bug, f"gate-order-{order}", sentence, order, part)
    for (order, (a, b)), part in product(swaps.items(), PARTS_OF_ORDER):
        sentence = f"Gates {a} and {b} are each computed with the other's {{}}."
        if not part:
            add(order_bug, f"gates-{a}-{b}-swapped", sentence, order)
        elif order not in known:
            add(finer_order_bug, f"gates-{a}-{b}-swapped", sentence, order, part)
    for order, part in product(known, PARTS_OF_ORDER):
        if part or order not in swaps:  # which is there already
            sentence = f"The gates of {{}} are read in the order {order} instead of {right}."
            add(order_bug, f"gate-order-{order}", sentence, order, part)


for kind, orders in ORDERS.items():
    _add_orders(kind, orders)

layout_bug = Family("weight layout", GARBAGE, GATED)


def _interleaved(values: Array) -> Array:
    """Read rows that are gate by gate as unit by unit."""
    D, G, H, *K = values.shape
    return values.reshape(D, H, G, *K).swapaxes(1, 2)


for part, (names, spelled, reasons) in PARTS_OF_ORDER.items():
    sentence = f"The rows of {spelled} are read unit by unit instead of gate by gate."
    layout_bug.row(f"units-before-gates{part}", sentence, reading(*names)(_interleaved), *reasons)


def _columns_first(values: Array) -> Array:
    """Read the buffer of [G*H, K] as one of [K, G*H]."""
    D, G, H, K = values.shape
    return values.reshape(D, K, G * H).swapaxes(1, 2).reshape(D, G, H, K)


@layout_bug(changes=reading("W"), of=ALL)
def input_weights_columns_first(values: Array) -> Array:
    """The buffer of W is read as that of its transpose: columns first."""
    return _columns_first(values)


# For the one gate of an RNN, R read so is R transposed.
@layout_bug(unless.NO_RECURRENT_PRODUCT, changes=reading("R"))
def recurrent_weights_columns_first(values: Array) -> Array:
    """The buffer of R is read as that of its transpose: columns first."""
    return _columns_first(values)


NOT_SQUARE = where(lambda r: r.W.shape[2] != r.W.shape[3], "input and hidden size differ")
LATER = "The first step is right where the initial state is zero, every later one is wrong."

transpose_bug = Family("transposes", LATER)


def _transposed(values: Array) -> Array:
    """Transpose each gate's matrix, where it is square."""
    return values.swapaxes(2, 3) if values.shape[2] == values.shape[3] else values


@transpose_bug(unless.NO_RECURRENT_PRODUCT, changes=reading("R"))
def recurrent_weights_transposed(values: Array) -> Array:
    """Ht-1 is multiplied by R instead of R^T."""
    return _transposed(values)


@transpose_bug(NOT_SQUARE, changes=reading("W"), effect=GARBAGE)
def input_weights_transposed(values: Array) -> Array:
    """Xt is multiplied by W instead of W^T, where input and hidden size allow it."""
    return _transposed(values)


@transpose_bug(unless.NO_RECURRENT_PRODUCT, changes=reading("R"), of=GRU)
def hidden_recurrent_weights_transposed(values: Array) -> Array:
    """The product of the hidden gate alone is with Rh instead of Rh^T."""
    return np.concatenate([values[:, :2], values[:, 2:].swapaxes(2, 3)], axis=1)


bias_bug = Family("biases", "Values are off by a constant; without B everything is right.")


def gate_zeroed(gate: int, values: Array) -> Array:
    """Return values with zeros for one gate."""
    values = values.copy()
    values[:, gate] = 0
    return values


# In ids, and the names of the bias and of the other one.
ONE_BIAS = (
    Variant(("input", "Wb", "Rb"), ("Wb", "Rb"), unless.NO_INPUT_BIAS),
    Variant(("recurrent", "Rb", "Wb"), ("Rb", "Wb"), unless.NO_RECURRENT_BIAS),
)
one_bias_bug = partial(
    bias_bug,
    each=ONE_BIAS,
    effect="Values are off by what the {} bias contributes; the error is constant in Xt.",
)


@one_bias_bug()
def X_bias_dropped(names: tuple[str, str], recurrence: Recurrence) -> Recurrence:
    """The {} bias {} is not added."""
    return reading(names[0])(np.zeros_like)(recurrence)


@one_bias_bug()
def X_bias_doubled(names: tuple[str, str], recurrence: Recurrence) -> Recurrence:
    """The {} bias {} is added twice."""
    return reading(names[0])(lambda bias: bias + bias)(recurrence)


@one_bias_bug()
def X_bias_is_the_other(names: tuple[str, str], recurrence: Recurrence) -> Recurrence:
    """{2} is added where {1} belongs, so that it counts twice."""
    return reading(names[0])(lambda _: getattr(recurrence, names[1]))(recurrence)


@bias_bug(unless.NO_BIAS, changes=reading(*BIASES))
def biases_dropped(values: Array) -> Array:
    """B is not added."""
    return np.zeros_like(values)


@bias_bug(unless.NO_BIAS, changes=reading(*BIASES))
def biases_negated(values: Array) -> Array:
    """B is subtracted."""
    return np.negative(values)


@bias_bug(unless.NO_BIAS, changes=reading(*BIASES))
def biases_shifted_by_a_unit(values: Array) -> Array:
    """Each unit takes the biases of the one before it."""
    return np.roll(values, 1, axis=2)


@bias_bug(unless.NO_BIAS, changes=reading(*BIASES))
def biases_of_first_unit(values: Array) -> Array:
    """Every unit takes the biases of the first."""
    return np.broadcast_to(values[:, :, :1], values.shape)


@bias_bug(unless.NO_BIAS, changes=reading(*BIASES), of=LSTM)  # of a GRU that is the order rhz
def biases_shifted_by_a_gate(values: Array) -> Array:
    """Each gate takes the biases of the one before it."""
    return np.roll(values, 1, axis=1)


GATES = [
    (cell, k, gate, (unless.COUPLED,) if gate == "f" else ())
    for cell in GATED
    for k, gate in enumerate(CELLS[cell].gates)
]


@bias_bug(
    unless.NO_BIAS,
    changes=reading(*BIASES),
    each=[Variant(gate, k, *coupled, of=(cell,)) for cell, k, gate, coupled in GATES],
)
def bias_of_X_dropped(k: int, values: Array) -> Array:
    """The biases of gate {} are not added."""
    return gate_zeroed(k, values)


@bias_bug(unless.NO_BIAS, unless.RESETS_BEFORE, of=GRU)
def biases_swapped(recurrence: Recurrence) -> Recurrence:
    """Wb and Rb are exchanged, which shows where Rbh is reset apart from Wbh.

    Only a hidden gate that is reset after the linear transformation is wrong.
    """
    return replace(recurrence, Wb=recurrence.Rb, Rb=recurrence.Wb)


term_bug = Family("terms of gates", LEFT_OUT)
# The terms of a gate's sum: id, array, term, reasons.
TERMS: tuple[tuple[str, str, str, tuple[Reason, ...]], ...] = (
    ("input-product", "W", "Xt*(W^T)", ()),
    ("recurrent-product", "R", "Ht-1*(R^T)", (unless.NO_RECURRENT_PRODUCT,)),
    ("input-bias", "Wb", "Wb", (unless.NO_INPUT_BIAS,)),
    ("recurrent-bias", "Rb", "Rb", (unless.NO_RECURRENT_BIAS,)),
)


@term_bug(each=[Variant((name, term), array, *why) for name, array, term, why in TERMS[:2]])
def X_dropped(array: str, recurrence: Recurrence) -> Recurrence:
    """{1} is not added."""
    return reading(array)(np.zeros_like)(recurrence)


@term_bug(
    each=[
        Variant((name, gate, term), (array, k), *why, *coupled, of=(cell,))
        for kind in GATED
        for name, array, term, why in TERMS
        for cell, k, gate, coupled in GATES
        if cell == kind
    ]
)
def X_of_X_dropped(place: tuple[str, int], recurrence: Recurrence) -> Recurrence:
    """{2} is not added in gate {1}."""
    array, k = place
    return reading(array)(partial(gate_zeroed, k))(recurrence)
