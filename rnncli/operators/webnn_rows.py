"""WebNN's recurrent operators, https://www.w3.org/TR/webnn/.

They differ from ONNX's: other names of inputs and outputs, the two biases apart and each optional,
`steps` and `hiddenSize` required, an attribute for the order of the gates (of weights and biases;
peephole weights are always i, o, f), three activations in lower case, the same ones for both
directions, reset after the linear transformation by default, an output gate that sees the previous
cell state through its peephole, no lengths and no clip, and no empty tensors. `returnSequence`
decides whether all steps are an output.

The specification numbers the outputs. They are named here as its emulation of the operators names
them. A cell is a forward sequence of one step, without the axes of time and direction, whose
initial states are required.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rnncli.operators.operator import Attribute, Input, Operator, Output, by_name, of_a_cell, shape
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST_DIMENSION = (1 << 31) - 1

_STEPS = Attribute(
    "steps",
    "int",
    "number of time steps, which is the first dimension of the input",
    required=True,
    role="seq_length",
)
_RETURN_SEQUENCE = Attribute(
    "returnSequence", "bool", "true: there is an output of all time steps", default=False
)
_DIRECTION = Attribute(
    "direction",
    "string",
    "which way time is walked; both does both",
    default="forward",
    choices=("forward", "backward", "both"),
    aliases={"backward": "reverse", "both": "bidirectional"},
)
_RESET_AFTER = Attribute(
    "resetAfter",
    "bool",
    "true: reset after the linear transformation of Ht-1; false: before it",
    default=True,
    role="linear_before_reset",
)


def _hidden_size(gates: int) -> Attribute:
    """Return the attribute, given the number of gates; both biases fit one dimension."""
    return Attribute(
        "hiddenSize",
        "int",
        f"number of units; {2 * gates}*hiddenSize must fit 31 bits",
        required=True,
        role="hidden_size",
        largest=LARGEST_DIMENSION // (2 * gates),
    )


def _layout(**orders: str) -> Attribute:
    """Return the attribute, given our letters of each order of gates, the default first."""
    return Attribute(
        "layout",
        "string",
        "order of the gates in weights and biases",
        default=next(iter(orders)),
        choices=tuple(orders),
        role="gates",
        aliases=orders,
    )


def _activations(summary: str, *default: str) -> Attribute:
    return Attribute(
        "activations",
        "strings",
        summary,
        default=list(default),
        choices=("relu", "sigmoid", "tanh"),
    )


def _optional(name: str, role: str, dims: str, summary: str) -> Input:
    return Input(name, role, (shape(dims),), f"{summary}; absent: 0", optional=True)


def _inputs(gates: int, *more: Input) -> tuple[Input, ...]:
    """Return the inputs of a sequence, given the number of gates."""
    rows = f"{gates}*H"
    return (
        Input("input", "X", (shape("T N I"),), "input sequences"),
        Input("weight", "W", (shape(f"D {rows} I"),), "input weights of each gate"),
        Input("recurrentWeight", "R", (shape(f"D {rows} H"),), "recurrent weights of each gate"),
        _optional("bias", "Wb", f"D {rows}", "input biases of each gate"),
        _optional("recurrentBias", "Rb", f"D {rows}", "recurrent biases of each gate"),
        *more,
    )


_INITIAL_H = _optional("initialHiddenState", "initial_h", "D N H", "initial hidden state")
_INITIAL_C = _optional("initialCellState", "initial_c", "D N H", "initial cell state")
_PEEPHOLES = _optional("peepholeWeight", "P", "D 3*H", "peephole weights, gates i, o, f")
_HIDDEN = Output(
    "outputHidden", "Y_h", (shape("D N H"),), "hidden state after the last step", optional=True
)
_CELL = _HIDDEN._replace(name="outputCell", role="Y_c", summary="cell state after the last step")
_SEQUENCE = Output(
    "outputSequence",
    "Y",
    (shape("T D N H"),),
    "hidden state after each step, if returnSequence is true",
    optional=True,
    condition="returnSequence",
)

_GRU = Operator(
    type="gru",
    version=1,
    versioned=False,
    domain="webnn",
    dialect="WebNN",
    cell=CELLS["GRU"],
    gates="zrh",
    inputs=_inputs(3, _INITIAL_H),
    outputs=(_HIDDEN, _SEQUENCE),
    attributes=by_name(
        *(_STEPS, _hidden_size(gates=3), _RESET_AFTER, _RETURN_SEQUENCE, _DIRECTION),
        _layout(zrn="zrh", rzn="rzh"),
        _activations("two: f (update and reset gate) and g (new gate)", "sigmoid", "tanh"),
    ),
    dtypes=("float16", "float32"),
    activations=("Relu", "Sigmoid", "Tanh"),
    default_activations=CELLS["GRU"].defaults,
    activation_lists="one",
    bias="two",
    empty_sizes=False,
    shapes_by="",
    fixed={"activation_alpha": None, "activation_beta": None, "clip": None},
    readings={},
)
_LSTM = replace(
    _GRU,
    type="lstm",
    cell=CELLS["LSTM"],
    gates="iofc",
    inputs=_inputs(4, _PEEPHOLES, _INITIAL_H, _INITIAL_C),
    outputs=(_HIDDEN, _CELL, _SEQUENCE),
    attributes=by_name(
        *(_STEPS, _hidden_size(gates=4), _RETURN_SEQUENCE, _DIRECTION),
        _layout(iofg="iofc", ifgo="ifco"),
        _activations("three: f (gates), g (cell) and h (hidden)", "sigmoid", "tanh", "tanh"),
    ),
    default_activations=CELLS["LSTM"].defaults,
    readings={"peephole-o": "previous"},
)


# What a cell says of its tensors, by role.
_OF_CELLS: Mapping[str, Mapping[str, Any]] = {
    "X": {"summary": "inputs"},
    "initial_h": {"name": "hiddenState", "optional": False, "summary": "hidden state before"},
    "initial_c": {"name": "cellState", "optional": False, "summary": "cell state before"},
    "Y_h": {"summary": "hidden state after"},
    "Y_c": {"summary": "cell state after"},
}


def _cell(row: Operator) -> Operator:
    """Return the cell of a sequence; its required inputs come first."""
    of_sequences = (_STEPS, _RETURN_SEQUENCE, _DIRECTION)
    inputs = (of_a_cell(tensor, **_OF_CELLS.get(tensor.role, {})) for tensor in row.inputs)
    outputs = (tensor for tensor in row.outputs if tensor is not _SEQUENCE)
    return replace(
        row,
        type=f"{row.type}Cell",
        inputs=tuple(sorted(inputs, key=lambda tensor: tensor.optional)),
        outputs=tuple(of_a_cell(tensor, **_OF_CELLS[tensor.role]) for tensor in outputs),
        attributes=by_name(*(a for a in row.attributes.values() if a not in of_sequences)),
        fixed={**row.fixed, "direction": "forward"},
    )


ROWS = (_GRU, _cell(_GRU), _LSTM, _cell(_LSTM))
