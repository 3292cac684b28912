"""Products of matrices agree with ONNX Runtime, and half precision is added up in single."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from support.tables import every


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3, 4), (4, 5)), ((4,), (4, 5)), ((2, 4), (4,)), ((4,), (4,)), ((0, 4), (4, 2))],
)
@pytest.mark.parametrize("opset", [7, 9, 13])
def test_matmul(agrees, normal, opset, a, b):
    """MatMul of stacks, matrices and vectors."""
    agrees("MatMul", opset, normal(*a), normal(*b))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_exact(agrees, dtype):
    """Integers are not multiplied as floats."""
    large = np.array([[2**30 + 1, 3], [1, 1]], dtype)
    agrees("MatMul", 13, large, np.array([[1, 1], [1, 0]], dtype))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("op_type", ["MatMul", "Gemm"])
def test_half_precision(evaluate, op_type, dtype):
    """A sum of 4,096 products is not lost on the way."""
    ones = np.ones((1, 4096), dtype)
    (y,) = evaluate(op_type, 13, ones, ones.T)
    assert (y.dtype, y.astype(float).tolist()) == (dtype, [[4096]])


@every(("transA", "transB"), list(itertools.product((0, 1), (0, 1))))
@every("c", [(5,), (3, 1), (1,), (3, 5), (), None])
@every("opset", [7, 9, 11, 13])
def test_gemm(agrees, normal, *, opset, c, transA, transB):
    """Gemm with every form of C."""
    a, b = normal(4, 3) if transA else normal(3, 4), normal(5, 4) if transB else normal(4, 5)
    rest = [normal(*c)] if c is not None else [] if opset >= 11 else [normal(5)]
    agrees("Gemm", opset, a, b, *rest, transA=transA, transB=transB, alpha=0.5, beta=2.0)


@pytest.mark.parametrize("opset", [1, 6])
def test_gemm_of_the_first_opsets(evaluate, normal, opset):
    """Opsets 1 and 6 need an attribute to broadcast C."""
    inputs = normal(3, 4), normal(4, 5), normal(5)
    (y,) = evaluate("Gemm", opset, *inputs, broadcast=1, beta=3.0)
    (seventh,) = evaluate("Gemm", 7, *inputs, beta=3.0)
    np.testing.assert_array_equal(y, seventh)
