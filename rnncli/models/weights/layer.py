"""Recurrent layers as ONNX has their weights, and the forms in which libraries store them.

`FORMS` is the one table of gate orders and biases. The rows of ONNX and WebNN are their operators'.
The others are what PyTorch's `nn.LSTM`, `nn.GRU` and `nn.RNN`, the `LSTM`, `GRU` and `SimpleRNN` of
Keras 3 and the specifications of OpenVINO's LSTMSequence-5, GRUSequence-5 and RNNSequence-5 say.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.numerics import dtype_of
from rnncli.operators import OPERATORS

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
    """How a library stores the weights of a cell."""

    library: str  # ONNX, PyTorch, Keras, OpenVINO or WebNN
    cell: str  # LSTM, GRU or RNN
    # of a GRU: 1 if the reset gate multiplies the state's linear transformation, 0 if the state
    linear_before_reset: int
    gates: str  # the order of the gates, in ONNX's letters
    spelled: str  # the same in the library's own letters
    bias: str  # split, sum, apart or two, see `BIASES`
    transposed: bool = False  # whether weights are [I, G*H] instead of [G*H, I]

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


# The activations of an RNN that all the libraries have; LSTM and GRU have one set each.
ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu"}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@dataclass(frozen=True, kw_only=True, eq=False)
class RecurrentLayer:
    """A layer: D directions, I inputs, H units, and G = 4 (LSTM), 3 (GRU) or 1 (RNN) gates.

    Raises:
        rnncli.errors.InvalidRequest: shapes, dtypes or attributes do not fit.
    """

    W: Array  # input weights [D, G*H, I], gates in ONNX's order
    R: Array  # recurrent weights [D, G*H, H]
    B: Array | None = None  # biases [D, 2*G*H], Wb then Rb; or None
    direction: str = "forward"  # forward, reverse or bidirectional
    # of a GRU: 1 if the reset gate multiplies what R and Rb make of the state, 0 if it multiplies
    # the state
    linear_before_reset: int = 0
    activation: str = "tanh"  # of an RNN: tanh or relu

    def __post_init__(self) -> None:
        expect_rank("W", self.W, "[D, G*H, I]")
        expect_rank("R", self.R, "[D, G*H, H]")
        D, rows, H = self.R.shape
        cell = cell_of(self.R, rows, H, "", "R")
        if DIRECTIONS.get(self.direction) != D:
            raise InvalidRequest(f"direction {self.direction} does not fit R, which has D = {D}")
        expect_shape("W", self.W, (D, rows, self.input_size), "[D, G*H, I]")
        if self.B is not None:
            expect_shape("B", self.B, (D, 2 * rows), "[D, 2*G*H]")
        if self.linear_before_reset not in {0, cell == "GRU"}:
            raise InvalidRequest(
                f"linear_before_reset {self.linear_before_reset}: it is 0, or 1 of a GRU"
            )
        if self.activation not in ACTIVATIONS or (self.activation != "tanh" and cell != "RNN"):
            raise InvalidRequest(f"activation {self.activation}: it is tanh, or relu of an RNN")
        dtypes = {dtype_of(values) for values in (self.W, self.R, self.B) if values is not None}
        if len(dtypes) > 1 or not all(dtype.is_float for dtype in dtypes):
            listed = ", ".join(sorted(map(str, dtypes)))
            raise InvalidRequest(f"W, R and B must be of one floating-point dtype, got {listed}")

    @property
    def cell(self) -> str:
        """LSTM, GRU or RNN, by the shape of R."""
        return CELLS_BY_GATES[self.R.shape[1] // self.R.shape[2]]

    @property
    def input_size(self) -> int:
        """The number of inputs, I."""
        return int(self.W.shape[2])

    @property
    def hidden_size(self) -> int:
        """The number of units, H."""
        return int(self.R.shape[2])

    def form_in(self, library: str) -> WeightForm:
        """Return how a library stores the weights of such a layer.

        Raises:
            rnncli.errors.InvalidRequest: it has no such cell.
        """
        return form_of(library, self.cell, self.linear_before_reset)

    @property
    def tensors(self) -> dict[str, Array]:
        """W, R and, if there is one, B: inputs of `rnncli.evaluate`."""
        named = {"W": self.W, "R": self.R, "B": self.B}
        return {name: values for name, values in named.items() if values is not None}

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of an ONNX node with these weights."""
        found: dict[str, Any] = {"direction": self.direction, "hidden_size": self.hidden_size}
        if self.cell == "GRU":
            found["linear_before_reset"] = self.linear_before_reset
        if self.activation != "tanh":
            found["activations"] = [ACTIVATIONS[self.activation]] * len(self.R)
        return found


def array_with(tensors: Mapping[str, Array], key: str, wanted: Sequence[str]) -> Array:
    """Return the array with a key.

    Raises:
        InvalidRequest: there is none.
    """
    if key not in tensors:
        raise InvalidRequest(f"no '{key}': wanted {', '.join(wanted)}, given {_listed(tensors)}")
    return np.asarray(tensors[key])


def only_module(names: Iterable[str], wanted: str | None) -> str:
    """Return the module to take: the wanted one, or the only one.

    Args:
        names: of the modules with recurrent weights; "" is the whole.
        wanted: one of them, or None.

    Raises:
        InvalidRequest: there is no such module, or there are several and none is wanted.
    """
    found = sorted({*names})
    listed = _listed([f"'{name}'" if name else "one without a path" for name in found])
    if wanted is None and len(found) > 1:
        raise InvalidRequest(f"{len(found)} recurrent modules, choose one (--module): {listed}")
    if wanted is not None and wanted not in found:
        hint = did_you_mean(wanted, found) or f"; there are {listed}"
        if found == [""]:
            hint = "; the weights are those of one module, without its path: leave out --module"
        raise InvalidRequest(f"no recurrent module '{wanted}'{hint}")
    return found[0] if wanted is None else wanted


def module_of(
    tensors: Mapping[str, Array], pattern: re.Pattern[str], wanted: str | None
) -> tuple[str, Mapping[str, Array]]:
    """Return what is before the keys of a module, its path with a dot or nothing, and its tensors.

    Args:
        tensors: of the module and others.
        pattern: of the names of recurrent weights, without what is before them.
        wanted: the module's path, or None for the only one.

    Raises:
        InvalidRequest: there is no such module, or there are several and none is wanted.
    """
    split = {key: key.rpartition(".") for key in tensors}
    modules = [path for path, _, name in split.values() if pattern.fullmatch(name)]
    if not modules and not wanted:
        return "", tensors  # whose keys are unknown
    chosen = only_module(modules, wanted)
    own = {key: tensors[key] for key, (path, _, _) in split.items() if path == chosen}
    return chosen and f"{chosen}.", own


def expect_stacked(layers: Sequence[RecurrentLayer]) -> None:
    """Require that each layer takes what the one below makes, D*H.

    Raises:
        InvalidRequest: one takes another number of inputs.
    """
    for number, (below, above) in enumerate(pairwise(layers), 1):
        if above.input_size != len(below.R) * below.hidden_size:
            raise InvalidRequest(
                f"layer {number} takes {above.input_size} inputs, the one below makes"
                f" {len(below.R)}*{below.hidden_size}"
            )


def _listed(keys: Collection[str]) -> str:
    """Return the first keys, for a message."""
    most = 12
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(f"{key:.80}" for key in [*keys][:most]) + more or "none"


def for_each_direction(
    layer: RecurrentLayer,
    form: WeightForm,
    convert: Callable[..., tuple[Array, Array, Array | None]],
) -> list[tuple[Array, Array, Array | None]]:
    """Return a conversion of W, R and B for each direction."""
    biases = [None] * len(layer.W) if layer.B is None else layer.B
    return [convert(form, *each) for each in zip(layer.W, layer.R, biases, strict=True)]


def joined(
    directions: Sequence[tuple[Array, Array, Array | None]],
    form: WeightForm,
    *,
    direction: str = "",
    activation: str = "tanh",
) -> RecurrentLayer:
    """Return the layer of one or two directions, each with ONNX's W, R and B.

    Raises:
        InvalidRequest: the directions differ in shape or dtype.
    """
    stacked: list[Array | None] = []
    for name, values in zip("WRB", zip(*directions, strict=True), strict=True):
        kinds = {None if each is None else (each.shape, each.dtype) for each in values}
        if len(kinds) > 1:
            raise InvalidRequest(f"{form.name}: the directions' {name} differ in shape or dtype")
        stacked.append(None if None in kinds else np.stack(values))
    W, R, B = stacked
    assert W is not None
    assert R is not None
    return RecurrentLayer(
        W=W,
        R=R,
        B=B,
        direction=direction or ("bidirectional" if len(directions) > 1 else "forward"),
        linear_before_reset=form.linear_before_reset,
        activation=activation,
    )
