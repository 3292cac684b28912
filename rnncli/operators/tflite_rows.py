"""TFLite's UNIDIRECTIONAL_SEQUENCE_LSTM, in its integer form.

https://ai.google.dev/edge/litert/conversion/tensorflow/operation_fusion
https://github.com/tensorflow/tflite-micro/blob/main/tensorflow/lite/micro/kernels/lstm_eval.cc

Each gate has weights and a bias of its own, time comes first or the batch does, and the states are
tensors that a call reads and writes. T is int8 or int16, the type of inputs and hidden states;
weights are int8 with zero point 0, cell states int16 with zero point 0, and biases int32, or int64
where T is int16. What a .tflite file says of its tensors, scales and zero points, are attributes
here. A node of it has no text to be right by: the readings say which of three implementations is
meant, see `integers`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import Unsupported
from rnncli.numerics import dtype_named
from rnncli.operators.operator import Attribute, Input, Operator, Output, by_name, shape
from rnncli.operators.translation import Translation
from rnncli.recurrence.cells import CELLS
from rnncli.recurrence.integers import IntegerForm, Scaled
from rnncli.recurrence.readings import PRESETS, READINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rnncli.numerics import Array
    from rnncli.operators.translation import Moves

GATES = ("input", "forget", "cell", "output")
VALUES = {"int8": "int8", "int16": "int16"}
LEVELS = {"int8": "int8", "int16": "int8"}
BIASES = {"int8": "int32", "int16": "int64"}
CELL_STATES = {"int8": "int16", "int16": "int16"}
POINTS = {"int8": (-128, 127), "int16": (0, 0)}


def moves(values: Mapping[str, Any], parameters: Iterable[str]) -> dict[str, Moves]:
    """Return the moves of the tensors of an LSTM, whose parameters stay as they are."""
    is_first = values["time_major"]

    def steps(x: Array) -> Array:  # [T, N, I] or [N, T, I] -> [T, N, I]
        return x if is_first else np.moveaxis(x, -2, -3)

    def gate(x: Array) -> Array:
        return x

    def state(x: Array) -> Array:  # [N, H] -> [1, N, H]
        return x[..., None, :, :]

    def final(x: Array) -> Array:
        return x[..., 0, :, :]

    def output(x: Array) -> Array:  # -> [T, 1, N, H]
        return steps(x)[..., None, :, :]

    def of_output(x: Array) -> Array:
        return steps(x[..., 0, :, :])

    return {
        "input": (steps, steps),
        **dict.fromkeys(parameters, (gate, gate)),
        **dict.fromkeys(("output_state", "cell_state"), (state, final)),
        "output": (output, of_output),
        **dict.fromkeys(("final_output_state", "final_cell_state"), (state, final)),
    }


def _fields(
    values: Mapping[str, Any], tensors: Mapping[str, Array], readings: Mapping[str, str]
) -> dict[str, Any]:
    X, read = tensors["X"], {**readings, **PRESETS[readings["preset"]]}
    if readings["preset"] == "litert" and X.dtype == np.int16:
        raise Unsupported("LiteRT has no LSTM with int16 activations")
    *front, _, N, _ = X.shape
    W, R, bias = (
        np.stack([tensors[f"{role}_{gate}"] for gate in GATES], axis=-1 - rank)[
            ..., None, *[slice(None)] * (1 + rank)
        ]
        for role, rank in (("W", 2), ("R", 2), ("bias", 1))
    )
    hidden = Scaled(values["output_state_scale"], values["output_state_zero_point"])
    product = values["hidden_scale"], values["hidden_zero_point"]
    initial_h, initial_c = tensors.get("initial_h"), tensors.get("initial_c")
    if read["state"] == "fresh":
        initial_h = initial_c = None
    if initial_h is None:
        initial_h = np.full((*front, 1, N, R.shape[-1]), hidden.zero_point, X.dtype)
    return {
        "X": X.astype(np.int32) - values["input_zero_point"],
        "W": W,
        "R": R,
        "Wb": bias,
        "initial": (initial_h, initial_c),
        "states_dtype": dtype_named("int16"),
        "integers": IntegerForm(
            bits=8 * X.dtype.itemsize,
            inputs=Scaled(values["input_scale"], values["input_zero_point"]),
            hidden=hidden,
            product=hidden if product[0] is None else Scaled(product[0], product[1] or 0),
            cell_scale=values["cell_state_scale"],
            input_scales=tuple(values["input_weight_scales"]),
            recurrent_scales=tuple(values["recurrent_weight_scales"]),
            clip=values["cell_clip"],
            readings=tuple(read.items()),
        ),
    }


def _rules(values: Mapping[str, Any], dtype: str) -> Iterator[str]:
    names = [name for name in values if name.endswith(("_scale", "_scales"))]
    for name in names:
        given = values[name] if isinstance(values[name], list) else [values[name]]
        if name.endswith("_scales") and len(given) != len(GATES):
            yield f"{name} must have one of each gate, input, forget, cell, output, got {given}"
        elif any(n is not None and not 0 < n < math.inf for n in given):
            yield f"{name} must be positive and finite, got {values[name]}"
    if values["hidden_zero_point"] is not None and values["hidden_scale"] is None:
        yield "hidden_zero_point needs hidden_scale"
    low, high = POINTS.get(dtype, POINTS["int8"])
    for name in ("input_zero_point", "output_state_zero_point", "hidden_zero_point"):
        if values[name] is not None and not low <= values[name] <= high:
            wanted = f"{low} to {high}" if high else "0"
            yield f"{name} must be {wanted} of {dtype or 'int8'}, got {values[name]}"


def weights(
    role: str, of: str, columns: str, types: Mapping[str, str], optional: Collection[str] = ()
) -> tuple[Input, ...]:
    """Return the rows of input or recurrent weights, those of some gates optional."""
    return tuple(
        Input(
            f"{of}_to_{gate}_weights",
            f"{role}_{gate}",
            (shape(f"H {columns}"),),
            f"{of} weights of the {gate} gate",
            optional=gate in optional,
            types=types,
        )
        for gate in GATES
    )


_PARAMETERS = (
    *weights("W", "input", "I", LEVELS),
    *weights("R", "recurrent", "H", LEVELS),
    *(
        Input(
            f"{gate}_gate_bias",
            f"bias_{gate}",
            (shape("H"),),
            f"bias of the {gate} gate, in units of input_scale times the scale of its weights",
            types=BIASES,
        )
        for gate in GATES
    ),
)
SETTINGS = (
    Attribute("time_major", "bool", "true: time comes first; false: the batch does", default=False),
    Attribute("cell_clip", "float", "bound of the cell state; 0: none", default=0.0),
    Attribute(
        "fused_activation_function",
        "string",
        "activation of the cell gate and of the new cell state",
        default="TANH",
        choices=("TANH",),
    ),
)
FIXED: Mapping[str, Any] = {
    "direction": "forward",
    "clip": None,
    "activations": None,
    "activation_alpha": None,
    "activation_beta": None,
}
_STEPS, _STATE = (shape("N T I"), shape("T N I")), (shape("N H"),)


def _scale(name: str, summary: str) -> Attribute:
    return Attribute(name, "float", f"scale of {summary}", required=True)


def _zero_point(name: str, of: str) -> Attribute:
    return Attribute(name, "int", f"integer that stands for 0 in {of}; 0 of int16", default=0)


_LSTM = Operator(
    type="UNIDIRECTIONAL_SEQUENCE_LSTM",
    version=1,
    versioned=False,
    domain="tflite",
    dialect="TFLite",
    cell=CELLS["IntegerLSTM"],
    gates="",
    inputs=(
        Input("input", "X", _STEPS, "input sequences", types=VALUES),
        *_PARAMETERS,
        Input(
            "output_state",
            "initial_h",
            _STATE,
            "hidden state before the first step; absent: its zero point",
            optional=True,
            types=VALUES,
        ),
        Input(
            "cell_state",
            "initial_c",
            _STATE,
            "cell state before the first step; absent: 0",
            optional=True,
            types=CELL_STATES,
        ),
    ),
    outputs=(
        Output(
            "output",
            "Y",
            (shape("N T H"), shape("T N H")),
            "hidden state after each step",
            types=VALUES,
        ),
        Output(
            "final_output_state", "Y_h", _STATE, "hidden state after the last step", types=VALUES
        ),
        Output(
            "final_cell_state", "Y_c", _STATE, "cell state after the last step", types=CELL_STATES
        ),
    ),
    attributes=by_name(
        *SETTINGS,
        _scale("input_scale", "input"),
        _zero_point("input_zero_point", "input"),
        _scale("output_state_scale", "output and output_state"),
        _zero_point("output_state_zero_point", "output and output_state"),
        _scale("cell_state_scale", "cell_state"),
        *(
            Attribute(
                f"{of}_weight_scales",
                "floats",
                f"scales of the {of} weights: of the gates input, forget, cell, output",
                required=True,
            )
            for of in ("input", "recurrent")
        ),
        Attribute(
            "hidden_scale",
            "float",
            "scale of the intermediate tensor 4, which LiteRT takes for output; absent: output's",
        ),
        Attribute("hidden_zero_point", "int", "its zero point"),
    ),
    dtypes=("int8", "int16"),
    activations=(),
    default_activations=(),
    bias="sum",
    empty_sizes=False,
    shapes_by="time_major",
    fixed=FIXED,
    readings={
        "preset": "tflm",
        **{name: READINGS[name].choices[0] for name in PRESETS["litert"]},
    },
    translation=Translation(lambda values: moves(values, (r.name for r in _PARAMETERS)), _fields),
    rules=_rules,
)

ROWS = (_LSTM,)
