"""OpenVINO's recurrent operators, https://docs.openvino.ai (operation sets).

They differ from ONNX's: always batch first, other input names, nearly all inputs required, lengths
of any integer type, one summed bias, three activations (in upper or lower case), alpha and beta
positional and without effect on those three, only gates clipped, LSTM gates in the order f, i, c,
o. A bidirectional sequence has the same activations in both directions: OpenVINO silently ignores a
second list, so two are accepted only if they are equal. A GRU that resets after the linear
transformation holds the hidden gate's two biases apart, the input's first.

A cell is a forward sequence of one step, without the axes of time and direction.
"""

from __future__ import annotations

from dataclasses import replace

from rnncli.numerics import INTEGERS
from rnncli.operators.operator import (
    AnyTensor,
    Attribute,
    Input,
    Operator,
    Output,
    by_name,
    of_a_cell,
    shape,
)
from rnncli.recurrence.cells import CELLS

DOMAIN = "org.openvinotoolkit"

_HIDDEN_SIZE = Attribute("hidden_size", "int", "number of units", required=True)
_ALPHA = Attribute(
    "activations_alpha",
    "floats",
    "positional; relu, sigmoid and tanh take none",
    role="activation_alpha",
)
_BETA = _ALPHA._replace(name="activations_beta", role="activation_beta")
_CLIP = Attribute("clip", "float", "bound pre-activations to [-clip, +clip]; absent: none")
_DIRECTION = Attribute(
    "direction",
    "string",
    "which way time is walked; bidirectional does both",
    required=True,
    choices=("forward", "reverse", "bidirectional"),
)
_OF_ALL = (_ALPHA, _BETA, _CLIP, _DIRECTION)
_LINEAR_BEFORE_RESET = Attribute(
    "linear_before_reset",
    "int",
    "1 (true): reset after the linear transformation of Ht-1; 0: false",
    default=0,
    choices=(0, 1),
)


def _activations(summary: str, *default: str) -> Attribute:
    return Attribute("activations", "strings", summary, default=list(default))


def _inputs(gates: int, bias: Input, *states: Input) -> tuple[Input, ...]:
    """Return the inputs of a sequence, given the number of gates."""
    summed = "" if gates == 1 else " of each gate"
    return (
        Input("X", "X", (shape("N T I"),), "input sequences, padded"),
        *states,
        Input(
            "sequence_lengths",
            "lengths",
            (shape("N"),),
            "valid steps of each sequence",
            dtypes=INTEGERS,
        ),
        Input("W", "W", (shape(f"D {gates}*H I"),), f"input weights{summed}"),
        Input("R", "R", (shape(f"D {gates}*H H"),), f"recurrent weights{summed}"),
        bias,
    )


_H = Input("H", "initial_h", (shape("N D H"),), "initial hidden state")
_INITIAL_H = _H._replace(name="initial_hidden_state")
_INITIAL_C = Input("initial_cell_state", "initial_c", _H.shapes, "initial cell state")
_B = Input("B", "B", (shape("D H"),), "bias: the sum of the input and the recurrent one")
_B_OF_GATES = "biases of each gate: the sum of the input and the recurrent one"
_Y = Output("Y", "Y", (shape("N D T H"),), "hidden state after each step", optional=True)
_HO = Output("Ho", "Y_h", (shape("N D H"),), "hidden state after the last", optional=True)
_CO = Output("Co", "Y_c", (shape("N D H"),), "cell state after the last", optional=True)

_RNN_SEQUENCE_5 = Operator(
    type="RNNSequence",
    version=5,
    domain=DOMAIN,
    dialect="OpenVINO",
    cell=CELLS["RNN"],
    gates="i",
    inputs=_inputs(1, _B, _H),
    outputs=(_Y, _HO),
    attributes=by_name(
        _HIDDEN_SIZE,
        _activations("the activation of the cell: relu, sigmoid or tanh, in any case", "tanh"),
        *_OF_ALL,
    ),
    dtypes=("float16", "float32", "float64", "bfloat16"),
    activations=("Relu", "Sigmoid", "Tanh"),
    default_activations=("Tanh",),
    activation_lists="equal",
    bias="sum",
    readings={"alpha-order": "positional", "clip-scope": "gates", "zero-length": "zero"},
)
_GRU_SEQUENCE_5 = replace(
    _RNN_SEQUENCE_5,
    type="GRUSequence",
    cell=CELLS["GRU"],
    gates="zrh",
    inputs=_inputs(
        3,
        _B._replace(
            shapes=(shape("D 3*H"), shape("D 4*H")),
            summary=f"{_B_OF_GATES}; linear_before_reset 1: those of z and r, then Wbh and Rbh",
        ),
        _INITIAL_H,
    ),
    attributes=by_name(
        _HIDDEN_SIZE,
        _activations("two: f (gates z and r) and g (hidden gate)", "sigmoid", "tanh"),
        *(*_OF_ALL, _LINEAR_BEFORE_RESET),
    ),
    default_activations=CELLS["GRU"].defaults,
    shapes_by="linear_before_reset",
)
_LSTM_SEQUENCE_1 = replace(
    _RNN_SEQUENCE_5,
    type="LSTMSequence",
    version=1,
    cell=CELLS["LSTM"],
    gates="fico",
    inputs=_inputs(
        4, _B._replace(shapes=(shape("D 4*H"),), summary=_B_OF_GATES), _INITIAL_H, _INITIAL_C
    ),
    outputs=(_Y, _HO, _CO),
    attributes=by_name(
        _HIDDEN_SIZE,
        _activations("three: f (gates), g (cell) and h (hidden)", "sigmoid", "tanh", "tanh"),
        *_OF_ALL,
    ),
    default_activations=CELLS["LSTM"].defaults,
)
# The texts of both versions are the same.
_LSTM_SEQUENCE_5 = replace(_LSTM_SEQUENCE_1, version=5)


def _cell(row: Operator, version: int, *optional: str) -> Operator:
    """Return the cell of a sequence, given the names of its optional inputs."""
    inputs = [tensor for tensor in row.inputs if tensor.role != "lengths"]
    outputs = [tensor for tensor in row.outputs if tensor.role != "Y"]
    attributes = [each for each in row.attributes.values() if each is not _DIRECTION]
    return replace(
        row,
        type=row.type.replace("Sequence", "Cell"),
        version=version,
        inputs=tuple(
            each._replace(optional=True, summary=f"{each.summary}; absent: 0")
            if each.name in optional
            else each
            for each in map(_of_a_cell, inputs)
        ),
        outputs=tuple(map(_of_a_cell, outputs)),
        attributes=by_name(*attributes),
        fixed={"direction": "forward"},
        readings={name: row.readings[name] for name in ("alpha-order", "clip-scope")},
    )


def _of_a_cell(tensor: AnyTensor) -> AnyTensor:
    """Return a tensor of a cell, with its own summary."""
    return of_a_cell(tensor, summary=_CELL_SUMMARIES.get(tensor.role, tensor.summary))


_CELL_SUMMARIES = {"X": "inputs", "Y_h": "hidden state", "Y_c": "cell state"}
_RNN_CELL_3 = _cell(_RNN_SEQUENCE_5, 3)
_GRU_CELL_3 = _cell(_GRU_SEQUENCE_5, 3, "B")
_LSTM_CELL_1 = _cell(_LSTM_SEQUENCE_1, 1, "B")
# The operation set lists it with the text of version 1.
_LSTM_CELL_4 = replace(_LSTM_CELL_1, version=4)

ROWS = (
    *(_RNN_SEQUENCE_5, _GRU_SEQUENCE_5, _LSTM_SEQUENCE_1, _LSTM_SEQUENCE_5),
    *(_RNN_CELL_3, _GRU_CELL_3, _LSTM_CELL_1, _LSTM_CELL_4),
)
