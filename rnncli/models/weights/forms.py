"""How each library stores the weights of a cell: the one table of gate orders and biases.

The rows of ONNX and WebNN are their operators'. The others are what PyTorch's `nn.LSTM`, `nn.GRU`
and `nn.RNN`, the `LSTM`, `GRU` and `SimpleRNN` of Keras 3 and the specifications of OpenVINO's
LSTMSequence-5, GRUSequence-5 and RNNSequence-5 say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import Array

CELLS_BY_GATES = {1: "RNN", 3: "GRU", 4: "LSTM"}

# A form of bias -> the blocks of H that a cell of G gates has, in words.
BIASES: Mapping[str, str] = {
    "split": "all Wb, then all Rb",
    "sum": "Wb + Rb",
    "apart": "Wb + Rb of z, r; Wb, Rb of h",
    "two": "Wb and Rb, a tensor each",
}


class WeightForm(NamedTuple):
    """How a library stores the weights of a cell.

    Attributes:
        library: ONNX, PyTorch, Keras, OpenVINO or WebNN.
        cell: LSTM, GRU or RNN.
        linear_before_reset: of a GRU: whether the reset gate multiplies the linear transformation
            of the state (1) or the state (0).
        gates: the order of the gates, in ONNX's letters.
        spelled: the same in the library's own letters.
        bias: split, sum, apart or two, see `BIASES`.
        transposed: whether weights are [I, G*H] instead of [G*H, I].
    """

    library: str
    cell: str
    linear_before_reset: int
    gates: str
    spelled: str
    bias: str
    transposed: bool = False

    @property
    def name(self) -> str:
        """The library and the cell, for messages."""
        variant = f", linear_before_reset {self.linear_before_reset}" if self.cell == "GRU" else ""
        return f"{self.library} {self.cell}{variant}"

    @property
    def biases(self) -> int:
        """The number of blocks of H in a bias, or in both."""
        G = len(self.gates)
        return {"split": 2 * G, "sum": G, "apart": 4, "two": 2 * G}[self.bias]

    @property
    def row(self) -> tuple[str, str, str, str, str, str, str]:
        """The row as texts, in the order of `HEADER`."""
        rows = "H" if len(self.gates) == 1 else f"{len(self.gates)}H"
        return (
            self.library,
            self.cell,
            RESETS[self.linear_before_reset] if self.cell == "GRU" else "",
            self.gates,
            self.spelled,
            BIASES[self.bias],
            f"[I,{rows}]" if self.transposed else f"[{rows},I]",
        )


HEADER = ("library", "cell", "reset", "gates", "own", "bias", "W")
# By linear_before_reset: when the reset gate is applied, seen from the product with R.
RESETS = ("before", "after")

_ONNX = [
    WeightForm("ONNX", row.type, reset, row.gates, row.gates, row.bias)
    for row in (OPERATORS["LSTM-14"], OPERATORS["GRU-14"], OPERATORS["RNN-14"])
    for reset in ((0, 1) if row.type == "GRU" else (0,))
]
_RNN_SEQUENCE = OPERATORS["RNNSequence-5"]
# A row for each of its layouts, whose names are the orders in its own letters.
_WEBNN = [
    WeightForm("WebNN", row.cell.name, reset, gates, layout, row.bias)
    for row in (OPERATORS["webnn.lstm"], OPERATORS["webnn.gru"])
    for reset in ((0, 1) if row.cell.name == "GRU" else (0,))
    for layout, gates in row.attributes["layout"].aliases.items()
]

FORMS: tuple[WeightForm, ...] = (
    *_ONNX,
    WeightForm("PyTorch", "LSTM", 0, "ifco", "ifgo", "split"),
    WeightForm("PyTorch", "GRU", 1, "rzh", "rzn", "split"),
    WeightForm("PyTorch", "RNN", 0, "i", "h", "split"),
    WeightForm("Keras", "LSTM", 0, "ifco", "ifco", "sum", transposed=True),
    WeightForm("Keras", "GRU", 0, "zrh", "zrh", "sum", transposed=True),
    WeightForm("Keras", "GRU", 1, "zrh", "zrh", "split", transposed=True),
    WeightForm("Keras", "RNN", 0, "i", "h", "sum", transposed=True),
    WeightForm("OpenVINO", "LSTM", 0, "fico", "fico", "sum"),
    WeightForm("OpenVINO", "GRU", 0, "zrh", "zrh", "sum"),
    WeightForm("OpenVINO", "GRU", 1, "zrh", "zrh", "apart"),
    WeightForm("OpenVINO", "RNN", 0, _RNN_SEQUENCE.gates, "i", _RNN_SEQUENCE.bias),
    *_WEBNN,
)
_BY_NAME = {(row.library, row.cell, row.linear_before_reset): row for row in FORMS}


def form_of(library: str, cell: str, linear_before_reset: int) -> WeightForm:
    """Return the row of a cell.

    Raises:
        InvalidRequest: the library has no such cell.
    """
    row = _BY_NAME.get((library, cell, linear_before_reset))
    if row is None:
        raise InvalidRequest(
            f"{library} has no {cell} with linear_before_reset {linear_before_reset}"
        )
    return row


def cell_of(recurrent: Array, rows: int, units: int, wanted: str, where: str) -> str:
    """Return the cell that recurrent weights of G*H rows and H units belong to: G is 1, 3 or 4.

    Args:
        recurrent: the weights, for the message.
        rows: G*H.
        units: H.
        wanted: the cell that they must belong to, or "" for any.
        where: the key of the weights, for the message.

    Raises:
        InvalidRequest: no cell has this shape, or another one than wanted.
    """
    cells = {name: gates for gates, name in CELLS_BY_GATES.items()}
    if wanted and wanted not in cells:
        raise InvalidRequest(f"no cell is named '{wanted}': there are {', '.join(cells)}")
    found = CELLS_BY_GATES.get(rows // units) if units and rows % units == 0 else None
    if found is None or wanted not in {"", found}:
        named = [wanted] if wanted else [*cells]
        multiples = " or ".join(f"{cells[name]} for {name}" for name in named)
        raise InvalidRequest(
            f"{where}: G*H and H must have the ratio {multiples}, got {_shape(recurrent)}"
        )
    return found


def expect_shape(where: str, values: Array, wanted: tuple[int, ...], meaning: str) -> None:
    """Require a shape.

    Raises:
        InvalidRequest: it is another one.
    """
    if values.shape != wanted:
        raise InvalidRequest(
            f"{where} must be [{', '.join(map(str, wanted))}] = {meaning}, got {_shape(values)}"
        )


def expect_rank(where: str, values: Array, meaning: str) -> None:
    """Require as many dimensions as a meaning such as `[G*H, H]` has.

    Raises:
        InvalidRequest: there are more or fewer.
    """
    if values.ndim != meaning.count(",") + 1:
        raise InvalidRequest(f"{where} must be {meaning}, got {_shape(values)}")


def to_onnx(
    form: WeightForm, W: Array, R: Array, bias: Array | None
) -> tuple[Array, Array, Array | None]:
    """Return ONNX's W [G*H, I], R [G*H, H] and B [2*G*H] of a direction.

    Args:
        form: how it is stored.
        W: input weights, [G*H, I] or transposed.
        R: recurrent weights, [G*H, H] or transposed.
        bias: all biases in a row, or None. A sum becomes Wb, with an Rb of zeros.
    """
    onnx = form_of("ONNX", form.cell, form.linear_before_reset)
    kernels = [np.ascontiguousarray(_ordered(_straight(form, each), form, onnx)) for each in (W, R)]
    B = (
        None
        if bias is None
        else _packed(onnx, [_ordered(b, form, onnx) for b in _pair(form, bias)])
    )
    return kernels[0], kernels[1], B


def from_onnx(
    form: WeightForm, W: Array, R: Array, B: Array | None
) -> tuple[Array, Array, Array | None]:
    """Return what a library stores for ONNX's W, R and B of a direction.

    Two biases become their sum, rounded once, where the library has only that.
    """
    onnx = form_of("ONNX", form.cell, form.linear_before_reset)
    kernels = [np.ascontiguousarray(_straight(form, _ordered(each, onnx, form))) for each in (W, R)]
    bias = None if B is None else _packed(form, [_ordered(b, onnx, form) for b in _pair(onnx, B)])
    return kernels[0], kernels[1], bias


def _straight(form: WeightForm, weights: Array) -> Array:
    return weights.T if form.transposed else weights


def _ordered(values: Array, source: WeightForm, target: WeightForm) -> Array:
    """Bring blocks of H rows from one order of gates into another."""
    G = len(source.gates)
    blocks = values.reshape(G, len(values) // G, *values.shape[1:])
    return blocks[[source.gates.index(gate) for gate in target.gates]].reshape(values.shape)


def _pair(form: WeightForm, bias: Array) -> tuple[Array, Array]:
    """Return the input and the recurrent bias [G*H]; gate h is the last where biases are apart."""
    rows = len(bias) // form.biases * len(form.gates)
    Wb, rest = bias[:rows], bias[rows:]
    return Wb, np.concatenate([np.zeros(rows - len(rest), bias.dtype), rest])


def _packed(form: WeightForm, biases: list[Array]) -> Array:
    """Return the biases of a form from the input and the recurrent bias [G*H]."""
    Wb, Rb = biases
    if form.bias == "split":
        return np.concatenate([Wb, Rb])
    total = np.where(Rb == 0, Wb, Wb + Rb)  # x + 0 would turn -0 into 0
    if form.bias == "sum":
        return total
    H = len(Wb) // len(form.gates)
    return np.concatenate([total[:-H], Wb[-H:], Rb[-H:]])


def _shape(values: Array) -> str:
    return f"[{', '.join(map(str, values.shape))}]"
