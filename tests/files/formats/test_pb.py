"""Claims about serialized tensors: the bytes are protobuf's own, however they are made."""

import math

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from support.tables import every

from rnncli.files.formats.pb import SMALL, array_of, serialize, tensor_of
from rnncli.numerics import DTYPES

NUMBERS = [name for name in DTYPES if name != "string"]


def spelled_out(name, values):
    """What protobuf writes for the whole message."""
    return tensor_of(name, values).SerializeToString(deterministic=True)


@every("shape", [(), (0,), (3,), (2, 0, 5), (4, 3, 2), (300,), (1, 20_000)])
@every("dtype", NUMBERS)
def test_bytes_are_those_of_the_whole_message(dtype, shape):
    """Of every type and shape, small and large, the second time as well."""
    values = np.random.default_rng(1).integers(0, 2, shape).astype(DTYPES[dtype].numpy)

    for name in ("X", "", "sequence_lens", "\N{GREEK SMALL LETTER ALPHA}"):
        assert serialize(name, values) == serialize(name, values) == spelled_out(name, values)


def test_other_memory_orders_are_the_same_tensor():
    """Transposed, strided and big-endian arrays are written in C order, little-endian."""
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    for view in (values.T, values[:, ::2], values.astype(">f4"), np.asfortranarray(values)):
        plain = np.ascontiguousarray(view.astype(np.float32))
        assert serialize("X", view) == spelled_out("X", plain)


def test_nan_keeps_its_bits():
    """Payloads and signs are data."""
    values = np.array([0x7FC1, 0xFFC0, 0x8000, 1], np.uint16).view(ml_dtypes.bfloat16)

    assert serialize("X", values).endswith(values.tobytes())


def test_the_limit_of_what_is_remembered_cannot_be_seen():
    """One element below, at and above it."""
    for count in (SMALL // 8 - 1, SMALL // 8, SMALL // 8 + 1):
        values = np.arange(count, dtype=np.int64)
        assert serialize("X", values) == spelled_out("X", values)


@every("name", DTYPES)
@every("shape", [(), (0,), (3, 5)], ids=str)
def test_values_of_a_message_are_those_that_onnx_reads(name, shape):
    """Of every type, however they are kept in it."""
    values = np.arange(1, math.prod(shape) + 1).reshape(shape).astype(DTYPES[name].numpy)
    values = values.astype(str).astype(object) if name == "string" else values
    for tensor in (tensor_of("x", values), numpy_helper.from_array(values, "x")):
        found, wanted = array_of(tensor), numpy_helper.to_array(tensor)

        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert str(found.tolist()) == str(wanted.tolist()) == str(values.tolist())  # NaN, too


def test_what_is_wrong_with_a_message_onnx_says():
    """Fewer bytes than the shape takes, a segment, no type."""
    short = TensorProto(data_type=TensorProto.FLOAT, dims=[3], raw_data=b"1234")
    segment = TensorProto(data_type=TensorProto.FLOAT, dims=[1], raw_data=b"1234")
    segment.segment.begin = 0

    with pytest.raises(ValueError, match="cannot reshape array of size 1"):
        array_of(short)
    with pytest.raises(ValueError, match="segments"):
        array_of(segment)
    with pytest.raises(TypeError, match="UNDEFINED"):
        array_of(TensorProto())
