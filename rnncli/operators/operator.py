"""What a row of the operator tables holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.recurrence.cells import Cell

SYMBOLS = {
    "T": "seq_length",
    "N": "batch_size",
    "I": "input_size",
    "H": "hidden_size",
    "D": "num_directions",
}


class Dim(NamedTuple):
    """One dimension of a shape: a multiple of a named size."""

    symbol: str
    multiple: int = 1

    def __str__(self) -> str:
        return self.symbol if self.multiple == 1 else f"{self.multiple}*{self.symbol}"


def shape(text: str) -> tuple[Dim, ...]:
    """Read a shape such as ``"D 4*H I"``."""
    parts = (word.rpartition("*") for word in text.split())
    return tuple(Dim(SYMBOLS[letter], int(multiple or 1)) for multiple, _, letter in parts)


class Tensor(NamedTuple):
    """An input or output.

    Attributes:
        name: the specification's.
        role: what it is in the canonical recurrence: X, W, R, B, P, lengths, initial_h, initial_c,
            Y, Y_h, Y_c.
        shapes: its dimensions for layout 0 and, where the operator has that, layout 1.
        optional: whether a node may leave it out.
        dtypes: the element types it may have, or () for the operator's T.
        summary: what it holds.
    """

    name: str
    role: str
    shapes: tuple[tuple[Dim, ...], ...]
    summary: str
    optional: bool = False
    dtypes: tuple[str, ...] = ()

    def shape(self, layout: int = 0) -> tuple[Dim, ...]:
        """Return its dimensions in a layout."""
        return self.shapes[min(layout, len(self.shapes) - 1)]


class Input(Tensor):
    """An input."""

    __slots__ = ()


class Output(Tensor):
    """An output."""

    __slots__ = ()


class Attribute(NamedTuple):
    """An attribute of an operator.

    Attributes:
        name: the specification's.
        type: int, float, string, floats or strings.
        summary: what it does.
        default: its value when absent; None when it has no fixed one.
        required: whether a node must carry it.
        choices: the values it may have, or () for any.
        role: its name in ONNX, where another dialect spells it differently.
        aliases: spellings read as a choice: GRU-1's specification writes `foward`.
    """

    name: str
    type: str
    summary: str
    default: Any = None
    required: bool = False
    choices: tuple[Any, ...] = ()
    role: str = ""
    aliases: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operator:
    """One version of one operator; equal to itself alone, so that much can be remembered of it.

    Attributes:
        type: its op_type.
        version: the opset that introduced it.
        domain: of the node in a model.
        dialect: ONNX or OpenVINO.
        cell: the equations it evaluates.
        gates: the order of the gates in W, R and B.
        inputs, outputs: in the order of the node's.
        attributes: by name.
        dtypes: T, the element types of all its floating-point tensors.
        activations: those it may use, canonical names.
        default_activations: for one direction.
        spare_activation: one direction accepts the names of two (the RNN's schema default has two).
        equal_activations: both directions must use the same (see `openvino_rows`).
        bias: "split", B holds Wb then Rb; "sum", B holds their sum.
        readings: the contested points that matter to it, each with this dialect's default.
    """

    type: str
    version: int
    domain: str
    dialect: str
    cell: Cell
    gates: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    attributes: Mapping[str, Attribute]
    dtypes: tuple[str, ...]
    activations: tuple[str, ...]
    default_activations: tuple[str, ...]
    spare_activation: bool = False
    equal_activations: bool = False
    bias: str
    readings: Mapping[str, str]

    @property
    def name(self) -> str:
        """Type and version, as in `LSTM-14`."""
        return f"{self.type}-{self.version}"

    def __str__(self) -> str:
        return self.name

    def input_dtypes(self, row: Input) -> tuple[str, ...]:
        """Return the element types an input may have."""
        return row.dtypes or self.dtypes


def by_name(*rows: Attribute) -> dict[str, Attribute]:
    """Index attribute rows by their name."""
    return {row.name: row for row in rows}
