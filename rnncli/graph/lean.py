"""Leaving the large weights of a model in its file until a node wants them.

A parsed protobuf holds a copy of the file's bytes, and hands out another to whoever asks: so a
model takes three times its size in memory, at addresses that NumPy has to align once more. External
data is read into place once; so the weights become external data, of the model's own file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto, TensorProto

from rnncli.graph.wire import BYTES, field_of_bytes, fields

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bytes of values that are left behind: shapes and axes, which decide what a graph is, have fewer.
LEAST = 1 << 16
# Where they are: fields of messages in messages.
RAW_DATA = (
    ModelProto.GRAPH_FIELD_NUMBER,
    GraphProto.INITIALIZER_FIELD_NUMBER,
    TensorProto.RAW_DATA_FIELD_NUMBER,
)


def without_weights(data: bytes, location: str) -> bytes:
    """Return a model whose large initializers of the graph lie in a file at a location.

    What is malformed stays as it is, for the parser to find.

    Args:
        data: the model, as the file has it.
        location: of the file, as external data names it.
    """
    return _lightened(data, 0, len(data), RAW_DATA, location)


def _lightened(data: bytes, start: int, end: int, path: Sequence[int], location: str) -> bytes:
    """Return the message between two places, with what is at the end of a path left behind."""
    first, *rest = path
    pieces, done = [], start
    for field in fields(data, start, end):
        is_large = field.kind == BYTES and LEAST <= field.end - field.start <= end - field.start
        if field.number != first or not is_large:
            continue
        pieces.append(data[done : field.begin])
        if rest:
            inner = _lightened(data, field.start, field.end, rest, location)
            pieces.append(field_of_bytes(first, inner))
        else:
            pieces.append(_elsewhere(location, field.start, field.end - field.start))
        done = field.end
    return b"".join([*pieces, data[done:end]])


def _elsewhere(location: str, offset: int, length: int) -> bytes:
    """Return the fields of a tensor that say where its values are."""
    told = TensorProto(data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        told.external_data.add(key=key, value=str(value))
    return bytes(told.SerializeToString())
