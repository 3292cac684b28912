"""Tensors as ONNX's messages hold them, and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from rnncli.formats.stored import NARROW, encode, text_bytes, texts_of
from rnncli.numerics import DTYPES, dtype_of
from rnncli.protos import TensorProto

if TYPE_CHECKING:
    from rnncli.numerics import Array

RAW = "raw_data"

# Types whose values are the message's last bytes, as they lie in memory.
_ROWS = [
    row
    for row in DTYPES.values()
    if sys.byteorder == "little" and row.name not in ("string", *NARROW)
]
PLAIN = {row.numpy: row for row in _ROWS}
_NUMBERED = {row.onnx: row for row in _ROWS}


def tensor_of(name: str, values: Array) -> TensorProto:
    """Return the message that holds a tensor.

    Raises:
        InvalidRequest: no tensor can hold the values.
    """
    row = dtype_of(values)
    if row.name == "string":
        texts = [text_bytes(text) for text in texts_of(values)]
        return TensorProto(name=name, data_type=row.onnx, dims=values.shape, string_data=texts)
    stored, _ = encode(values)
    if row.name in NARROW:
        from onnx import numpy_helper  # packs them

        return numpy_helper.from_array(stored.view(row.numpy), name)
    raw = stored.tobytes()
    return TensorProto(name=name, data_type=row.onnx, dims=values.shape, raw_data=raw)


def array_of(tensor: TensorProto) -> Array:
    """Return the values in a message, read-only where they lie there as they do in memory.

    Args:
        tensor: of any type; what is wrong with it numpy_helper says, in exceptions of many kinds.
    """
    row = _NUMBERED.get(tensor.data_type)
    elsewhere = tensor.data_location == TensorProto.EXTERNAL or tensor.HasField("segment")
    if row and tensor.HasField(RAW) and not elsewhere:
        return np.frombuffer(tensor.raw_data, row.numpy).reshape(tensor.dims)
    from onnx import numpy_helper

    return np.asarray(numpy_helper.to_array(tensor))
