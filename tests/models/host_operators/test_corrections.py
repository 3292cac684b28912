"""onnx's kernels, corrected at their edges."""

import copy

import ml_dtypes
import numpy as np
import onnx
import pytest

from rnncli.models.loading import model_from
from rnncli.models.sessions import evaluate_model


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_sigmoid(evaluate, dtype):
    """All 65,536 values of a 16-bit type are those of float32, rounded once."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    (got,) = evaluate("Sigmoid", 13, x)
    (wide,) = evaluate("Sigmoid", 13, x.astype(np.float32))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.float32), wide.astype(dtype).astype(np.float32))


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
