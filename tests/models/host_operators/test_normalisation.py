"""The softmax family and normalisations agree with ONNX Runtime at every opset."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.tables import every

from rnncli.errors import Unsupported

FAMILY = ("Softmax", "LogSoftmax", "Hardmax")


@every("axis", [None, 0, 1, 2, 3])
@every("opset", [7, 11, 12, 13, 21])
@every("op_type", FAMILY)
def test_softmax_family(agrees, normal, op_type, opset, axis):
    """Below 13 over the matrix that begins at `axis` (1), from 13 on along `axis` (-1)."""
    attributes = {} if axis is None else {"axis": axis}
    agrees(op_type, opset, normal(2, 3, 4, 5), **attributes)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("op_type", FAMILY)
def test_negative_axis(agrees, normal, op_type, opset):
    """Axes count from the end from opset 11 on."""
    agrees(op_type, opset, normal(2, 3, 4), axis=-2)


@every("opset", [7, 13])
@every("op_type", FAMILY)
@every("x", [[[1e30, -1e30, 0]], [[-np.inf, 0, 1]], [[88, 89, 90]], [[5, 5, 1]]])
def test_extremes(agrees, op_type, opset, x):
    """Nothing overflows, and of equal maxima Hardmax takes the first."""
    agrees(op_type, opset, np.array(x, np.float32))


@pytest.mark.parametrize("opset", [7, 13])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (3,)])
@pytest.mark.parametrize("op_type", FAMILY)
def test_small_shapes(evaluate, op_type, shape, opset):
    """Tensors without elements, and vectors, keep their shape."""
    axis = {"axis": 0} if len(shape) == 1 else {}
    (y,) = evaluate(op_type, opset, np.zeros(shape, np.float32), **axis)
    assert y.shape == shape


def test_softmax_rounds_once(evaluate):
    """A softmax in float16 adds up to what float64 would, rounded."""
    x = np.full((1, 3000), 0.5, np.float16)
    (y,) = evaluate("Softmax", 13, x)
    assert set(y.ravel().tolist()) == {float(np.float16(1 / 3000))}


@every("epsilon", [1e-5, 0.1])
@every("opset", [7, 8, 9, 13, 14, 15])
@every("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)])
def test_batch_normalization(agrees, normal, shape, opset, epsilon):
    """In inference the given statistics are used."""
    statistics = normal(3), normal(3), normal(3), abs(normal(3))
    agrees("BatchNormalization", opset, normal(*shape), *statistics, epsilon=epsilon, momentum=0.5)


@pytest.mark.parametrize("opset", [7, 8])
def test_batch_normalization_per_activation(agrees, normal, opset):
    """With spatial = 0 every activation has statistics of its own."""
    statistics = normal(3, 4), normal(3, 4), normal(3, 4), abs(normal(3, 4))
    agrees("BatchNormalization", opset, normal(2, 3, 4), *statistics, spatial=0)


@pytest.mark.parametrize("opset", [1, 6])
def test_batch_normalization_of_the_first_opsets(evaluate, normal, opset):
    """Opsets 1 and 6 say with an attribute that they do not train."""
    inputs = normal(2, 3, 4), normal(3), normal(3), normal(3), abs(normal(3))
    extra = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset == 1 else {}

    (y,) = evaluate("BatchNormalization", opset, *inputs, is_test=1, **extra)

    (ninth,) = evaluate("BatchNormalization", 9, *inputs)
    np.testing.assert_array_equal(y, ninth)


@pytest.mark.parametrize(("opset", "outputs"), [(1, 1), (6, 1), (7, 5), (9, 3)])
def test_training_is_refused(evaluate, normal, opset, outputs):
    """Training is told by an attribute, then by the number of outputs; neither is supported."""
    inputs = normal(2, 3, 4), normal(3), normal(3), normal(3), abs(normal(3))
    extra = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset == 1 else {}
    with pytest.raises(Unsupported, match="training mode"):
        evaluate("BatchNormalization", opset, *inputs, outputs=outputs, **extra)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_lp_normalization(agrees, normal, axis, p):
    """The norm is of absolute values, and a norm of 0 gives 0."""
    x = normal(2, 3, 4)
    x[0, 0], x[:, 1, 1] = 0, 0
    agrees("LpNormalization", 7, x, axis=axis, p=p)


@pytest.mark.parametrize("axis", [-1, 1, -2])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layer_normalization(agrees, normal, dtype, bias, axis):
    """All three outputs; the statistics are float32 whatever the tensor is."""
    x = normal(2, 3, 4).astype(dtype)
    shape = x.shape[axis:]
    vectors = [normal(*shape).astype(dtype) for _ in range(1 + bias)]
    agrees("LayerNormalization", 17, x, *vectors, axis=axis, epsilon=0.01)


def test_layer_normalization_statistics(agrees, evaluate, normal):
    """Mean and inverse deviation are of the stash type, float32."""
    agrees("LayerNormalization", 17, normal(2, 3, 4), normal(4), outputs=3)
    x = normal(2, 4).astype(np.float16)
    outputs = evaluate("LayerNormalization", 17, x, np.ones(4, np.float16), outputs=3)
    assert [y.dtype for y in outputs] == [np.float16, np.float32, np.float32]


@pytest.mark.parametrize("opset", [6, 22])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5)])
def test_instance_normalization(agrees, normal, opset, shape):
    """Each channel of each instance is normalised on its own."""
    agrees("InstanceNormalization", max(opset, 7), normal(*shape), normal(3), normal(3))


@pytest.mark.parametrize("axes", [None, [1, 2]])
@pytest.mark.parametrize("opset", [9, 13])
def test_mean_variance_normalization(agrees, normal, opset, axes):
    """Over batch and space unless told otherwise."""
    attributes = {} if axes is None else {"axes": axes}
    agrees("MeanVarianceNormalization", opset, normal(2, 3, 4, 5), **attributes)


@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_normalization(agrees, normal, axis):
    """RMSNormalization, over one axis and over two."""
    x = normal(2, 3, 4)
    agrees("RMSNormalization", 23, x, normal(*x.shape[axis:]), axis=axis)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("op_type", "vectors", "attributes"),
    [
        ("LayerNormalization", 2, {}),
        ("RMSNormalization", 1, {}),
        ("InstanceNormalization", 2, {}),
        ("GlobalAveragePool", 0, {}),
    ],
)
def test_narrow_types(evaluate, normal, *, op_type, vectors, attributes, dtype):
    """Statistics of 5,000 numbers are those of float64, rounded once."""
    length = 1 if op_type == "InstanceNormalization" else 5000
    x = (normal(1, 1, 5000) + 3).astype(dtype)
    rest = [np.ones(length, dtype), np.zeros(length, dtype)][:vectors]

    (y,) = evaluate(op_type, 23, x, *rest, **attributes)
    wide = [v.astype(np.float64) for v in (x, *rest)]
    (exact,) = evaluate(op_type, 23, *wide, **attributes)

    assert y.dtype == dtype
    error = np.abs(y.astype(np.float64) - exact).max()
    assert error <= np.abs(exact).max() * float(ml_dtypes.finfo(dtype).eps) / 2


@every("shape", [(2, 7, 3, 4), (5, 2, 3, 4), (1, 9, 2, 1)])
@every("size", [1, 3, 5, 9])
@every("opset", [7, 13])
def test_local_response_normalization(agrees, normal, opset, size, shape):
    """LRN looks at neighbouring channels, with weights that would show it if it did not."""
    weights = {"alpha": 0.5, "beta": 0.6, "bias": 1.3}
    agrees("LRN", opset, normal(*shape), size=size, **weights)


def test_local_response_normalization_of_even_size(evaluate):
    """Of an even number of channels one more lies after than before (ONNX Runtime has none)."""
    x = np.array([1, 2, 3], np.float32).reshape(1, 3, 1)
    (y,) = evaluate("LRN", 13, x, size=2, alpha=2.0, beta=1.0, bias=0.0)
    np.testing.assert_allclose(y.ravel(), [1 / 5, 2 / 13, 3 / 9], rtol=1e-6)
