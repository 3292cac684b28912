"""Claims about the values of tensors in a model."""

import numpy as np
import pytest
from onnx import SparseTensorProto, numpy_helper

from rnncli.errors import InvalidRequest
from rnncli.models.tensor_values import sparse_tensor_values


def sparse(shape, indices, values):
    """Return a sparse tensor as models hold it."""
    tensor = SparseTensorProto(dims=shape)
    tensor.values.CopyFrom(numpy_helper.from_array(np.float32(values), "w"))
    tensor.indices.CopyFrom(numpy_helper.from_array(np.int64(indices), "i"))
    return tensor


@pytest.mark.parametrize(
    ("shape", "indices"), [([2, 2], [1, 2]), ([2, 2], [[0, 1], [1, 0]]), ([4], [1, 2])]
)
def test_sparse_values_stand_where_their_indices_say(shape, indices):
    """Counted through the whole tensor, or one for each axis."""
    dense = sparse_tensor_values(sparse(shape, indices, [5, 7]), None)

    assert (dense.shape, dense.ravel().tolist()) == (tuple(shape), [0, 5, 7, 0])


@pytest.mark.parametrize(
    ("shape", "indices", "reason"),
    [
        ([4], [-1, 2], "outside the shape"),
        ([4], [1, 4], "outside the shape"),
        ([2, 2], [[0, 0], [0, -1]], "outside the shape"),
        ([4], [1, 1], "given twice"),
        ([2, 2], [[1, 0], [1, 0]], "given twice"),
        ([4], [[1, 0], [1, 0]], "indices are int64"),
        ([2**40], [0, 1], "takes 4.0 TiB"),
        ([2**62, 4, 0], [], "sparse tensor 'w'"),
    ],
)
def test_sparse_nonsense_is_refused(shape, indices, reason):
    """NumPy would count a negative index from the end, and keep the last of two values."""
    with pytest.raises(InvalidRequest, match=reason):
        sparse_tensor_values(sparse(shape, indices, [5.0] * len(indices)), None)
