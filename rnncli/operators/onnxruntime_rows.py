"""ONNX Runtime's quantised LSTM, which `quantize_dynamic` makes of ONNX's LSTM.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md

Inputs and states are quantised while it runs, see `recurrence.quantisation`. Its weights are 8-bit
integers, transposed against ONNX's.
"""

from __future__ import annotations

from dataclasses import replace

from rnncli.operators.onnx_rows import LSTM_7
from rnncli.operators.operator import BYTES, Input, shape

_FACTORS = (shape("D"), shape("D 4*H"))  # one for each direction, or for each column as well


def _quantised(role: str, dims: str, summary: str) -> Input:
    return Input(role, role, (shape(dims),), f"{summary}, transposed", dtypes=BYTES)


def _factors(role: str) -> tuple[Input, Input]:
    """Return the scale and the zero point of a weight."""
    scale, point = f"{role}_scale", f"{role}_zero_point"
    return (
        Input(scale, scale, _FACTORS, f"scale of {role}", dtypes=("float32",), form="scales"),
        Input(point, point, _FACTORS, f"zero point of {role}", dtypes=BYTES, form="scales"),
    )


_X, _, _, *_REST = LSTM_7.inputs

_DYNAMIC_QUANTIZE_LSTM_1 = replace(
    LSTM_7,
    type="DynamicQuantizeLSTM",
    version=1,
    domain="com.microsoft",
    dialect="ONNX Runtime",
    inputs=(
        _X,
        _quantised("W", "D I 4*H", "input weights of each gate"),
        _quantised("R", "D H 4*H", "recurrent weights of each gate"),
        *_REST,
        *_factors("W"),
        *_factors("R"),
    ),
    dtypes=("float32",),
    # No text says which; ONNX Runtime, the only implementation, leaves Ct into h unclipped.
    # The scale of the batch is that of ONNX Runtime on one thread, of which it has no text either.
    readings={
        **LSTM_7.readings,
        "clip-scope": "gates",
        "quant-scope": "batch",
        "quant-ended": "zero",
    },
)

ROWS = (_DYNAMIC_QUANTIZE_LSTM_1,)
