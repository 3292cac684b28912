"""Quantisation while a recurrence runs is ONNX's DynamicQuantizeLinear."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from rnncli.recurrence.quantisation import dequantised, quantised, quantised_inputs

VALUES = {
    "both signs": np.linspace(-1, 2, 24),
    "positive": np.linspace(0.5, 2, 24),
    "negative": np.linspace(-2, -0.5, 24),
    "zero": np.zeros(24),
    "tiny": np.linspace(-1e-38, 1e-38, 24),
    "random": np.random.default_rng(0).standard_normal(24),
}


@pytest.mark.parametrize("name", VALUES)
def test_levels_are_those_of_dynamic_quantize_linear(name):
    """And stand for (a - zp) * s."""
    values = VALUES[name].astype(np.float32)
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "s", "zp"])
    a, s, zp = ReferenceEvaluator(node).run(None, {"x": values})
    wanted = (a.astype(np.float64) - zp) * np.float64(s if values.any() else 1)

    assert quantised(values, (0,)).tolist() == wanted.tolist()


def test_each_row_has_its_own_scale():
    """Only the named axes share one."""
    rows = np.stack([VALUES["random"], 100 * VALUES["positive"]])

    both = quantised(rows, (1,))

    assert both.tolist() == [quantised(row, (0,)).tolist() for row in rows]


def test_a_value_beyond_its_scope_saturates():
    """As padding behind the longest sequence would; the scope [0, 2.55] has levels of 0.01."""
    found = quantised(np.array([-1, 0.014, 9]), (0,), np.array([0, 2.55]))

    assert found == pytest.approx([0, 0.01, 2.55], abs=1e-6)


def test_inputs_are_quantised_up_to_the_longest_sequence():
    """The padding at step 1 is among them, the one at step 2 is not."""
    X = np.array([[1.0, 2.55], [5.1, 1], [99, 99]])[..., None]

    found = quantised_inputs(X, np.array([1, 2]))

    assert found[:2] == pytest.approx(quantised(X[:2], (0, 1, 2)), abs=0)


def test_no_step_is_no_error():
    """Nor is a batch without sequences."""
    assert quantised_inputs(np.zeros((0, 2, 3)), None).shape == (0, 2, 3)
    assert quantised_inputs(np.zeros((4, 0, 3)), np.zeros(0, np.int64)).shape == (4, 0, 3)


def test_nan_is_not_rounded_away():
    """It spreads over its scope, whose scale is NaN."""
    assert np.isnan(quantised(np.array([1, np.nan]), (0,))).all()


@pytest.mark.parametrize(
    ("scale", "zero_point", "wanted"),
    [
        ([0.5], [1], [[[0.0, 0.5], [-1.0, 4.5]]]),
        ([[0.5, 2]], [[1, 0]], [[[0.0, 4], [-1.0, 20]]]),
    ],
)
def test_weights_are_dequantised_by_direction_or_by_column(scale, zero_point, wanted):
    """(w - zp) * s of [D, K, G*H]."""
    weights = np.array([[[1, 2], [-1, 10]]], np.int8)

    found = dequantised(weights, np.array(scale, np.float32), np.array(zero_point, np.int8))

    assert found.tolist() == wanted
