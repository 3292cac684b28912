"""Bugs in reading weights and biases: order of gates, layout, transposes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import ALL, GATED, GRU, LSTM, arrays, family, row
from rnncli.mutants.equivalence import (
    COUPLED,
    NO_BIAS,
    NO_INPUT_BIAS,
    NO_RECURRENT_BIAS,
    NO_RECURRENT_PRODUCT,
    RESETS_BEFORE,
    where,
)
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

WEIGHTS = ("W", "R")
BIASES = ("Wb", "Rb")
EVERYTHING = (*WEIGHTS, *BIASES)
# Name in ids -> arrays, and their name in sentences.
PARTS = {"": (EVERYTHING, "W, R and B"), "-in-w": (("W",), "W"), "-in-r": (("R",), "R")}
PARTS_OF_ORDER = {**PARTS, "-in-b": (BIASES, "B")}
# Orders of gates in use elsewhere: PyTorch, cuDNN and Keras; TensorFlow and OpenVINO.
ORDERS = {"GRU": ("rzh", "rhz"), "LSTM": ("ifco", "fico")}

GARBAGE = "Every value is far off."


def gate_pairs(letters: str) -> Iterator[tuple[str, str]]:
    """Return all pairs of some gates."""
    return ((a, b) for k, a in enumerate(letters) for b in letters[k + 1 :])


def gates_swapped(letters: str, a: str, b: str) -> str:
    """Return the order of gates in which two have changed places."""
    return letters.translate(str.maketrans(a + b, b + a))


def _in_order(order: str, right: str, values: Array) -> Array:
    """Return the blocks of gates as read in another order."""
    return values[:, [order.index(gate) for gate in right]]


def gate_order(cell: str, id: str, order: str, part: str, sentence: str) -> Mutant:  # noqa: A002
    """Return the mutant of a cell that reads the gates of some tensors in another order."""
    names, _ = PARTS_OF_ORDER[part]
    change = arrays(names, partial(_in_order, order, CELLS[cell].gates))
    reasons = {"-in-r": (NO_RECURRENT_PRODUCT,), "-in-b": (NO_BIAS,)}.get(part, ())
    return row(f"{id}{part}", (cell,), sentence, GARBAGE, change, *reasons)


def _orders() -> Iterator[Mutant]:
    for cell, orders in ORDERS.items():
        right = CELLS[cell].gates
        for a, b in gate_pairs(right):
            sentence = f"Gates {a} and {b} are each computed with the other's W, R and B."
            yield gate_order(
                cell, f"gates-{a}-{b}-swapped", gates_swapped(right, a, b), "", sentence
            )
        for order in orders:
            is_swap = any(gates_swapped(right, *pair) == order for pair in gate_pairs(right))
            for part, (_, name) in PARTS_OF_ORDER.items():
                if is_swap and not part:
                    continue  # it is there already
                sentence = f"The gates of {name} are read in the order {order} instead of {right}."
                yield gate_order(cell, f"gate-order-{order}", order, part, sentence)


def _interleaved(values: Array) -> Array:
    """Read rows that are gate by gate as unit by unit."""
    D, G, H, *K = values.shape
    return values.reshape(D, H, G, *K).swapaxes(1, 2)


def _columns_first(values: Array) -> Array:
    """Read the buffer of [G*H, K] as one of [K, G*H]."""
    D, G, H, K = values.shape
    return values.reshape(D, K, G * H).swapaxes(1, 2).reshape(D, G, H, K)


def _transposed(values: Array) -> Array:
    """Transpose each gate's matrix, where it is square."""
    return values.swapaxes(2, 3) if values.shape[2] == values.shape[3] else values


def _hidden_transposed(values: Array) -> Array:
    return np.concatenate([values[:, :2], values[:, 2:].swapaxes(2, 3)], axis=1)


NOT_SQUARE = where(lambda r: r.W.shape[2] != r.W.shape[3], "input and hidden size differ")
RECURRENT = (NO_RECURRENT_PRODUCT,)


def _layouts() -> Iterator[Mutant]:
    for part, (names, spelled) in PARTS_OF_ORDER.items():
        yield row(
            f"units-before-gates{part}",
            GATED,
            f"The rows of {spelled} are read unit by unit instead of gate by gate.",
            GARBAGE,
            arrays(names, _interleaved),
            *({"-in-r": RECURRENT, "-in-b": (NO_BIAS,)}.get(part, ())),
        )
    # For the one gate of an RNN, R read so is R transposed.
    for name, array, cells, reasons in (
        ("input", "W", ALL, ()),
        ("recurrent", "R", GATED, RECURRENT),
    ):
        yield row(
            f"{name}-weights-columns-first",
            cells,
            f"The buffer of {array} is read as that of its transpose: columns first.",
            GARBAGE,
            arrays((array,), _columns_first),
            *reasons,
        )


def _transposes() -> Iterator[Mutant]:
    yield row(
        "recurrent-weights-transposed",
        ALL,
        "Ht-1 is multiplied by R instead of R^T.",
        "The first step is right where the initial state is zero, every later one is wrong.",
        arrays(("R",), _transposed),
        *RECURRENT,
    )
    yield row(
        "input-weights-transposed",
        ALL,
        "Xt is multiplied by W instead of W^T, where input and hidden size allow it.",
        GARBAGE,
        arrays(("W",), _transposed),
        NOT_SQUARE,
    )
    yield row(
        "hidden-recurrent-weights-transposed",
        GRU,
        "The product of the hidden gate alone is with Rh instead of Rh^T.",
        "The first step is right where the initial state is zero, every later one is wrong.",
        arrays(("R",), _hidden_transposed),
        *RECURRENT,
    )


def gate_zeroed(gate: int, values: Array) -> Array:
    """Return values with zeros for one gate."""
    values = values.copy()
    values[:, gate] = 0
    return values


def _doubled(values: Array) -> Array:
    return values + values


def _instead(wrong: str, right: str, recurrence: Recurrence) -> Recurrence:
    """Read one bias where the other belongs."""
    return arrays((right,), lambda _: getattr(recurrence, wrong))(recurrence)


def _bias_each_way() -> Iterator[Mutant]:
    """Rows that input and recurrent bias both have."""
    for name, own, other, reason in (
        ("input", "Wb", "Rb", NO_INPUT_BIAS),
        ("recurrent", "Rb", "Wb", NO_RECURRENT_BIAS),
    ):
        bias = f"{name} bias"
        off = f"Values are off by what the {bias} contributes; the error is constant in Xt."
        yield row(
            f"{name}-bias-dropped",
            ALL,
            f"The {bias} {own} is not added.",
            off,
            arrays((own,), np.zeros_like),
            reason,
        )
        yield row(
            f"{name}-bias-doubled",
            ALL,
            f"The {bias} {own} is added twice.",
            off,
            arrays((own,), _doubled),
            reason,
        )
        yield row(
            f"{name}-bias-is-the-other",
            ALL,
            f"{other} is added where {own} belongs, so that it counts twice.",
            off,
            partial(_instead, other, own),
            reason,
        )


def _bias_rows() -> Iterator[Mutant]:
    off = "Values are off by a constant; without B everything is right."
    changes = {
        "biases-dropped": ("B is not added.", np.zeros_like),
        "biases-negated": ("B is subtracted.", np.negative),
        "biases-shifted-by-a-unit": (
            "Each unit takes the biases of the one before it.",
            partial(np.roll, shift=1, axis=2),
        ),
        "biases-of-first-unit": (
            "Every unit takes the biases of the first.",
            lambda values: np.broadcast_to(values[:, :, :1], values.shape),
        ),
    }
    for id_, (sentence, function) in changes.items():
        yield row(id_, ALL, sentence, off, arrays(BIASES, function), NO_BIAS)  # type: ignore[arg-type]
    yield row(
        "biases-shifted-by-a-gate",
        LSTM,  # of a GRU that is the order rhz
        "Each gate takes the biases of the one before it.",
        off,
        arrays(BIASES, partial(np.roll, shift=1, axis=1)),
        NO_BIAS,
    )
    for cell in GATED:
        for k, gate in enumerate(CELLS[cell].gates):
            yield row(
                f"bias-of-{gate}-dropped",
                (cell,),
                f"The biases of gate {gate} are not added.",
                off,
                arrays(BIASES, partial(gate_zeroed, k)),
                NO_BIAS,
                *((COUPLED,) if gate == "f" else ()),
            )


def _biases_swapped(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, Wb=recurrence.Rb, Rb=recurrence.Wb)


SWAPPED = row(
    "biases-swapped",
    GRU,
    "Wb and Rb are exchanged, which shows where Rbh is reset apart from Wbh.",
    "Only the hidden gate with linear_before_reset is wrong.",
    _biases_swapped,
    NO_BIAS,
    RESETS_BEFORE,
)

ROWS = (
    *family("gate order", _orders()),
    *family("weight layout", _layouts()),
    *family("transposes", _transposes()),
    *family("biases", (*_bias_each_way(), *_bias_rows(), SWAPPED)),
)
