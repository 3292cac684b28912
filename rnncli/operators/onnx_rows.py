"""ONNX's RNN, GRU and LSTM, every version: https://onnx.ai/onnx/operators/."""

from __future__ import annotations

from dataclasses import replace

from rnncli.operators.operator import Attribute, Input, Operator, Output, by_name, shape
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS

_ACTIVATION_ALPHA = Attribute(
    "activation_alpha",
    "floats",
    "alpha values, consumed in order by the activations that take one; missing ones take the"
    " function's default",
)
_ACTIVATION_BETA = _ACTIVATION_ALPHA._replace(
    name="activation_beta", summary=_ACTIVATION_ALPHA.summary.replace("alpha", "beta")
)
_CLIP = Attribute("clip", "float", "bound the input of activations to [-clip, +clip]; absent: none")
_DIRECTION = Attribute(
    "direction",
    "string",
    "which way time is walked; bidirectional does both",
    default="forward",
    choices=("forward", "reverse", "bidirectional"),
)
_HIDDEN_SIZE = Attribute("hidden_size", "int", "number of units; absent: taken from R")
_INPUT_FORGET = Attribute("input_forget", "int", "not 0: the forget gate is 1 - it", default=0)
_LINEAR_BEFORE_RESET = Attribute(
    "linear_before_reset", "int", "not 0: reset after the linear transformation of Ht-1", default=0
)
_LAYOUT = Attribute(
    "layout",
    "int",
    "0: X [T, N, I], Y [T, D, N, H], states [D, N, H]; 1: batch first in all of them",
    default=0,
    choices=(0, 1),
)
_OUTPUT_SEQUENCE = Attribute(
    "output_sequence",
    "int",
    "a hint that Y is wanted; Y is produced when the node names it, whatever this says",
    default=0,
)


def _activations(count: str, default: list[str] | None = None) -> Attribute:
    return Attribute("activations", "strings", f"{count} for each direction", default=default)


def _inputs(gates: int, *more: Input) -> tuple[Input, ...]:
    """Return the inputs that all three operators share, given the number of gates."""
    state = (shape("D N H"), shape("N D H"))
    return (
        Input("X", "X", (shape("T N I"), shape("N T I")), "input sequences, padded"),
        Input("W", "W", (shape(f"D {gates}*H I"),), "input weights of each gate"),
        Input("R", "R", (shape(f"D {gates}*H H"),), "recurrent weights of each gate"),
        Input(
            "B",
            "B",
            (shape(f"D {2 * gates}*H"),),
            "input biases Wb of each gate, then recurrent biases Rb; absent: 0",
            optional=True,
        ),
        Input(
            "sequence_lens",
            "lengths",
            (shape("N"),),
            "valid steps of each sequence; absent: all",
            optional=True,
            dtypes=("int32",),
        ),
        Input("initial_h", "initial_h", state, "initial hidden state; absent: 0", optional=True),
        *more,
    )


_Y = Output(
    "Y", "Y", (shape("T D N H"), shape("N T D H")), "hidden state after each step", optional=True
)
_STATE = (shape("D N H"), shape("N D H"))
_Y_H = Output("Y_h", "Y_h", _STATE, "hidden state after the last", optional=True)
_Y_C = Output("Y_c", "Y_c", _STATE, "cell state after the last", optional=True)
_INITIAL_C = Input("initial_c", "initial_c", _STATE, "initial cell state; absent: 0", optional=True)
_P = Input("P", "P", (shape("D 3*H"),), "peephole weights, gates i, o, f; absent: 0", optional=True)

_READINGS = {"alpha-order": "queue", "zero-length": "zero", "threshold-tie": "ge"}
_UNTRANSPOSED = {**_READINGS, "recurrence": "transposed"}

_RNN_1 = Operator(
    type="RNN",
    version=1,
    domain="",
    dialect="ONNX",
    cell=CELLS["RNN"],
    gates="i",
    inputs=_inputs(1),
    outputs=(_Y, _Y_H),
    attributes=by_name(
        *(_ACTIVATION_ALPHA, _ACTIVATION_BETA),
        _activations("one activation, f,", ["Tanh", "Tanh"]),
        *(_CLIP, _DIRECTION, _HIDDEN_SIZE, _OUTPUT_SEQUENCE),
    ),
    dtypes=("float16", "float32", "float64"),
    activations=tuple(ACTIVATIONS),
    default_activations=CELLS["RNN"].defaults,
    spare_activation=True,
    bias="split",
    readings=_UNTRANSPOSED,
)
_GRU_1 = replace(
    _RNN_1,
    type="GRU",
    cell=CELLS["GRU"],
    gates="zrh",
    inputs=_inputs(3),
    attributes=by_name(
        *(_ACTIVATION_ALPHA, _ACTIVATION_BETA),
        _activations("two activations, f (update and reset gate) and g (hidden gate),"),
        _CLIP,
        # The specification of GRU-1 spells the default `foward`.
        _DIRECTION._replace(
            summary=f"{_DIRECTION.summary}; the specification's `foward` is read as forward",
            aliases={"foward": "forward"},
        ),
        *(_HIDDEN_SIZE, _OUTPUT_SEQUENCE),
    ),
    default_activations=CELLS["GRU"].defaults,
    spare_activation=False,
)
_LSTM_1 = replace(
    _RNN_1,
    type="LSTM",
    cell=CELLS["LSTM"],
    gates="iofc",
    inputs=_inputs(4, _INITIAL_C, _P),
    outputs=(_Y, _Y_H, _Y_C),
    attributes=by_name(
        *(_ACTIVATION_ALPHA, _ACTIVATION_BETA),
        _activations("three activations, f (gates), g (cell) and h (hidden),"),
        *(_CLIP, _DIRECTION, _HIDDEN_SIZE, _INPUT_FORGET, _OUTPUT_SEQUENCE),
    ),
    default_activations=CELLS["LSTM"].defaults,
    spare_activation=False,
    readings={**_UNTRANSPOSED, "clip-scope": "activations"},
)


def _version(row: Operator, number: int, *more: Attribute, without: str = "") -> Operator:
    """Return the operator in a later opset, with attributes added or one removed."""
    remaining = [attribute for name, attribute in row.attributes.items() if name != without]
    return replace(row, version=number, attributes=by_name(*remaining, *more))


def _corrected(row: Operator, *more: Attribute) -> Operator:
    """Return the operator of opset 7, with the transpose written and without output_sequence."""
    readings = {name: value for name, value in row.readings.items() if name != "recurrence"}
    return replace(_version(row, 7, *more, without="output_sequence"), readings=readings)


_GRU_3 = replace(
    _version(_GRU_1, 3, _LINEAR_BEFORE_RESET),
    attributes=by_name(
        *{**_GRU_1.attributes, "direction": _DIRECTION}.values(), _LINEAR_BEFORE_RESET
    ),
)
_RNN_7, _GRU_7, LSTM_7 = map(_corrected, (_RNN_1, _GRU_3, _LSTM_1))
_RNN_14, _GRU_14, _LSTM_14 = (_version(row, 14, _LAYOUT) for row in (_RNN_7, _GRU_7, LSTM_7))
_RNN_22, _GRU_22, _LSTM_22 = (
    replace(_version(row, 22), dtypes=(*row.dtypes, "bfloat16"))
    for row in (_RNN_14, _GRU_14, _LSTM_14)
)

ROWS = (
    *(_RNN_1, _RNN_7, _RNN_14, _RNN_22),
    *(_GRU_1, _GRU_3, _GRU_7, _GRU_14, _GRU_22),
    *(_LSTM_1, LSTM_7, _LSTM_14, _LSTM_22),
)
