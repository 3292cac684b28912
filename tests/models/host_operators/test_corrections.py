"""onnx's kernels, corrected at their edges."""

from __future__ import annotations

import copy

import ml_dtypes
import numpy as np
import onnx
import pytest

from rnncli.models.loading import model_from
from rnncli.models.sessions import evaluate_model


@pytest.mark.parametrize("opset", [10, 16])
def test_roi_align(agrees, normal, opset):
    """RoiAlign-10 has no half pixel, which onnx's reference always subtracts."""
    rois = np.array([[0, 0, 4, 9], [1.5, 1, 13, 7.2]], np.float32)
    size = {"output_height": 2, "output_width": 5, "sampling_ratio": 2}
    agrees("RoiAlign", opset, normal(3, 2, 9, 14), rois, np.array([0, 2]), **size)


@pytest.mark.parametrize(
    "limits",
    [
        (),
        (np.array([3]),),
        (np.array([3]), np.array([0.3], np.float32)),
        (np.array([3]), None, np.array([0.5], np.float32)),
        (np.array([3]), np.array([0.3], np.float32), np.array([0.5], np.float32)),
    ],
    ids=len,
)
@pytest.mark.parametrize("opset", [10, 11])
def test_non_max_suppression(agrees, normal, opset, limits):
    """Every limit may be omitted."""
    corners = np.sort(abs(normal(2, 9, 2, 2)), axis=2).reshape(2, 9, 4)
    agrees("NonMaxSuppression", opset, corners, abs(normal(2, 3, 9)), *limits)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_attention_in_narrow_types(evaluate, normal, dtype):
    """The softmax over 2,000 keys is added up in float32."""
    shapes = (1, 2, 4, 64), (1, 2, 2000, 64), (1, 2, 2000, 64)
    query, key, value = (normal(*shape).astype(dtype) for shape in shapes)

    (y,) = evaluate("Attention", 23, query, key, value + dtype(2))
    wide = [x.astype(np.float64) for x in (query, key, value + dtype(2))]
    (exact,) = evaluate("Attention", 23, *wide)

    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(float), exact, rtol=float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize(
    ("heads", "extra"),
    [((3, 3), 0), ((6, 2), 0), ((3, 3), 300)],
)
def test_attention(agrees, normal, heads, extra):
    """Attention, with grouped heads, and of few keys and many."""
    query, key = heads
    shapes = (2, 4, query * 8), (2, 6 + extra, key * 8), (2, 6 + extra, key * 4)
    numbers = {"q_num_heads": query, "kv_num_heads": key}
    agrees("Attention", 23, *(normal(*shape) for shape in shapes), **numbers)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_losses(evaluate, agrees, normal, dtype, reduction):
    """Losses are added up in float32, too; in float32 they are ONNX Runtime's."""
    scores, labels = normal(600, 4).astype(dtype), np.arange(600) % 4
    for op_type in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
        if dtype == np.float32:
            agrees(op_type, 13, scores, labels, reduction=reduction, tolerance=1e-4)
        (y,) = evaluate(op_type, 13, scores, labels, reduction=reduction)
        (exact,) = evaluate(op_type, 13, scores.astype(np.float64), labels, reduction=reduction)
        assert y.dtype == dtype
        tolerance = max(float(ml_dtypes.finfo(dtype).eps), 1e-5)
        np.testing.assert_allclose(y.astype(float), exact, rtol=tolerance, atol=tolerance / 10)


DRAWS = {
    "RandomNormal": ((), {"shape": [50]}),
    "RandomNormalLike": ((np.zeros(50, np.float32),), {}),
    "RandomUniform": ((), {"shape": [50]}),
    "RandomUniformLike": ((np.zeros(50, np.float32),), {}),
    "Bernoulli": ((np.full(50, 0.5, np.float32),), {}),
    "Dropout": ((np.ones(50, np.float32), np.float32(0.5), np.array(True)), {}),
}


@pytest.mark.parametrize("op_type", DRAWS)
def test_random_numbers_are_the_same_in_every_run(evaluate, op_type):
    """A node without a seed draws what it drew before; with a seed, what that seed gives."""
    inputs, attributes = DRAWS[op_type]
    seed = 3 if op_type == "Dropout" else 3.0

    first, again = (evaluate(op_type, 17, *inputs, **attributes)[0] for _ in range(2))
    seeded, reseeded = (
        evaluate(op_type, 17, *inputs, **attributes, seed=seed)[0] for _ in range(2)
    )

    assert len(set(first.tolist())) > 1
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(seeded, reseeded)
    assert not np.array_equal(first, seeded)


def test_steps_of_a_loop_draw_different_numbers():
    """The noise of one step is not that of the next."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g () => (float[n, 4] noise) {
            steps = Constant <value = int64 {3}> ()
            yes = Constant <value = bool {1}> ()
            noise = Loop (steps, yes) <body = b (int64 i, bool c) => (bool go, float[4] x) {
                go = Identity (c)
                x = RandomNormal <shape: ints = [4]> ()
            }>
        }"""
    )
    first, again = (evaluate_model(model_from(copy.deepcopy(model)), {})["noise"] for _ in range(2))

    assert len(np.unique(first)) == 12
    np.testing.assert_array_equal(first, again)
