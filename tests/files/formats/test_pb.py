"""Claims about serialized tensors: the bytes are protobuf's own, however they are made."""

import ml_dtypes
import numpy as np
import pytest

from rnncli.files.formats.pb import SMALL, serialize
from rnncli.files.formats.tensor_messages import tensor_of
from rnncli.numerics import DTYPES

NUMBERS = [name for name in DTYPES if name != "string"]


def spelled_out(name, values):
    """What protobuf writes for the whole message."""
    return tensor_of(name, values).SerializeToString(deterministic=True)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (4, 3, 2), (300,), (1, 20_000)])
@pytest.mark.parametrize("dtype", NUMBERS)
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
