"""Quantisation while a recurrence runs is ONNX's DynamicQuantizeLinear."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from rnncli.recurrence.quantisation import QuantisedWeights, Quantiser, to_tie

EMPTY = QuantisedWeights(*[np.zeros((1, 4, 1, 1))] * 3)
BATCH, ROW = (Quantiser((EMPTY, EMPTY), by_sequence=by_sequence) for by_sequence in (False, True))

VALUES = {
    "both signs": np.linspace(-1, 2, 24),
    "positive": np.linspace(0.5, 2, 24),
    "negative": np.linspace(-2, -0.5, 24),
    "zero": np.zeros(24),
    "tiny": np.linspace(-1e-38, 1e-38, 24),
    "ties": np.array([0, 0.5, 1.5, 2.5, 126.5, 254.5, 255]),  # of a scale of 1
    "ties below zero": np.array([-2.5, -1.5, -0.5, 0, 0.5, 252.5]),
    "random": np.random.default_rng(0).standard_normal(24),
}


@pytest.mark.parametrize("name", VALUES)
def test_levels_are_those_of_dynamic_quantize_linear(name):
    """And stand for (a - zp) * s."""
    values = VALUES[name].astype(np.float32)
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "s", "zp"])
    a, s, zp = ReferenceEvaluator(node).run(None, {"x": values})
    wanted = (a.astype(np.float64) - zp) * np.float64(s if values.any() else 1)

    assert BATCH.states(values[None]).values.tolist() == [wanted.tolist()]


def test_a_batch_or_each_row_has_a_scale():
    """The reading quant-scope."""
    rows = np.stack([VALUES["random"], 100 * VALUES["positive"]])

    assert ROW.states(rows).values.tolist() == [
        BATCH.states(row[None]).values[0].tolist() for row in rows
    ]
    assert BATCH.states(rows).scale.shape == (1, 1)
    assert ROW.states(rows).scale.shape == (2, 1)


def test_a_value_beyond_its_range_saturates():
    """As padding behind the longest sequence would; the range [0, 2.55] has levels of 0.01."""
    found = BATCH.levels(np.array([-1, 0.014, 9]), np.float32(0), np.float32(2.55))

    assert found.values == pytest.approx([0, 0.01, 2.55], abs=1e-6)


def test_inputs_are_quantised_up_to_the_longest_sequence():
    """The padding at step 1 is among them, the one at step 2 is not."""
    X = np.array([[1.0, 2.55], [5.1, 1], [99, 99]])[..., None]

    found = BATCH.inputs(X, np.array([1, 2])).values

    assert found[:2] == pytest.approx(BATCH.inputs(X[:2], None).values, abs=0)


def test_a_row_of_inputs_is_quantised_up_to_its_own_end():
    """As a batch of one is."""
    X = np.array([[1.0, 2.55], [5.1, 1], [99, 99]])[..., None]

    found = ROW.inputs(X, np.array([1, 2])).values

    for n, length in enumerate((1, 2)):
        alone = BATCH.inputs(X[:length, n : n + 1], None).values
        assert found[:length, n].tolist() == alone[:, 0].tolist()


def test_no_step_is_no_error():
    """Nor is a batch without sequences."""
    assert BATCH.inputs(np.zeros((0, 2, 3)), None).values.shape == (0, 2, 3)
    assert BATCH.inputs(np.zeros((4, 0, 3)), np.zeros(0, np.int64)).values.shape == (4, 0, 3)


def test_nan_is_not_rounded_away():
    """It spreads over its batch, whose scale is NaN."""
    assert np.isnan(BATCH.states(np.array([[1, np.nan]])).values).all()


def test_the_nearest_tie_lies_between_two_levels():
    """In the unit of the values."""
    found = to_tie(np.array([0.0, 0.75, 1.5, -0.8, -1.0]), np.array(1.0))

    assert found == pytest.approx([0.5, 0.25, 0.0, 0.3, 0.5])


@pytest.mark.parametrize(
    ("scale", "zero_point", "wanted"),
    [
        ([[0.5]], [[1]], [[0.0, 0.5], [-1.0, 4.5]]),
        ([[0.5], [2]], [[1], [0]], [[0.0, 0.5], [-2.0, 20]]),
    ],
)
def test_weights_stand_for_numbers(scale, zero_point, wanted):
    """(w - zp) * s, with one scale or one for each row."""
    levels = np.array([[1, 2], [-1, 10]], np.int8)

    found = QuantisedWeights(levels, np.float32(scale), np.int8(zero_point)).values

    assert found.tolist() == wanted
