"""Conversion between arrays and ONNX's tensor messages."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from rnncli.files.formats.stored import NARROW, encode, text_bytes, texts_of
from rnncli.numerics import dtype_numbered, dtype_of

if TYPE_CHECKING:
    from rnncli.numerics import Array, DType

RAW = "raw_data"


@cache
def plain_row(dtype: np.dtype[Any]) -> DType | None:
    """Return the row of a type whose values are stored in messages as in memory, or None."""
    row = dtype_of(dtype)
    packed = row.name in ("string", *NARROW) or sys.byteorder != "little"
    return None if packed or dtype != row.numpy else row


def tensor_of(name: str, values: Array) -> TensorProto:
    """Return a tensor's message.

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
    """Return the values of a message, as a read-only view if possible.

    Raises:
        InvalidRequest: the type is unknown.
        Exception: any error of numpy_helper: the message is malformed.
    """
    elsewhere = tensor.data_location == TensorProto.EXTERNAL or tensor.HasField("segment")
    if tensor.HasField(RAW) and tensor.data_type and not elsewhere:
        dtype = dtype_numbered(tensor.data_type).numpy
        if plain_row(dtype):
            return np.frombuffer(tensor.raw_data, dtype).reshape(tensor.dims)
    from onnx import numpy_helper

    return np.asarray(numpy_helper.to_array(tensor))
