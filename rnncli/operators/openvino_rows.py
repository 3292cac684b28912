"""OpenVINO's recurrent operators, https://docs.openvino.ai (operation sets).

They differ from ONNX's: always batch first, other input names, all inputs required, lengths of any
integer type, one summed bias, three activations (in upper or lower case), alpha and beta positional
and without effect on those three, only gates clipped. A bidirectional RNNSequence has one
activation for both directions: OpenVINO silently ignores a second one, so two are accepted only if
they are equal.
"""

from __future__ import annotations

from rnncli.numerics import INTEGERS
from rnncli.operators.operator import Attribute, Input, Operator, Output, by_name, shape
from rnncli.recurrence.cells import CELLS

DOMAIN = "org.openvinotoolkit"

_RNN_SEQUENCE_5 = Operator(
    type="RNNSequence",
    version=5,
    domain=DOMAIN,
    dialect="OpenVINO",
    cell=CELLS["RNN"],
    gates="i",
    inputs=(
        Input("X", "X", (shape("N T I"),), "input sequences, padded"),
        Input("H", "initial_h", (shape("N D H"),), "initial hidden state"),
        Input(
            "sequence_lengths",
            "lengths",
            (shape("N"),),
            "valid steps of each sequence",
            dtypes=INTEGERS,
        ),
        Input("W", "W", (shape("D H I"),), "input weights"),
        Input("R", "R", (shape("D H H"),), "recurrent weights"),
        Input("B", "B", (shape("D H"),), "bias: the sum of the input and the recurrent one"),
    ),
    outputs=(
        Output("Y", "Y", (shape("N D T H"),), "hidden state after each step", optional=True),
        Output("Ho", "Y_h", (shape("N D H"),), "hidden state after the last", optional=True),
    ),
    attributes=by_name(
        Attribute("hidden_size", "int", "number of units", required=True),
        Attribute(
            "activations",
            "strings",
            "the activation of the cell: relu, sigmoid or tanh, in any case",
            default=["tanh"],
        ),
        Attribute(
            "activations_alpha",
            "floats",
            "positional; relu, sigmoid and tanh take none",
            role="activation_alpha",
        ),
        Attribute(
            "activations_beta",
            "floats",
            "positional; relu, sigmoid and tanh take none",
            role="activation_beta",
        ),
        Attribute("clip", "float", "bound pre-activations to [-clip, +clip]; absent: none"),
        Attribute(
            "direction",
            "string",
            "which way time is walked; bidirectional does both",
            required=True,
            choices=("forward", "reverse", "bidirectional"),
        ),
    ),
    dtypes=("float16", "float32", "float64", "bfloat16"),
    activations=("Relu", "Sigmoid", "Tanh"),
    default_activations=("Tanh",),
    equal_activations=True,
    bias="sum",
    readings={"alpha-order": "positional", "clip-scope": "gates", "zero-length": "zero"},
)

ROWS = (_RNN_SEQUENCE_5,)
