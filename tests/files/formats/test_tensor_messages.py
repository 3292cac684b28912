"""Claims about tensors in messages: they are read as onnx reads them."""

import math

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from rnncli.files.formats.tensor_messages import array_of, tensor_of
from rnncli.numerics import DTYPES


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)], ids=str)
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
