"""Tolerances of quantised recurrences hold what correct float32 kernels compute, ties included."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from quantised_lstm import FORMS, LSTM, away_from_ties, node, of_runtime

from rnncli.backends import backend_named
from rnncli.judging.tolerances.cell_errors import CellErrors
from rnncli.judging.tolerances.derivation import derive
from rnncli.judging.tolerances.recursion import variances_of
from rnncli.judging.tolerances.trajectory import Trajectory
from rnncli.numerics.profiles import PROFILES
from rnncli.operators.node import Node
from rnncli.recurrence.quantisation import Levels, Quantiser
from rnncli.recurrence.recurrence import Compute

STANDARD = PROFILES["standard"]
FULL = ("bidirectional", True, True, True)


def recurrence_of(attributes, inputs, **readings):
    """Bind a node."""
    return Node(LSTM, attributes, None, readings).recurrence(inputs)


def margin(recurrence, outputs):
    """Return the largest error / tolerance of some outputs Y, Y_h, Y_c."""
    golden = backend_named("numpy").run(recurrence, Compute.FLOAT64)
    allowed = derive(recurrence, STANDARD, golden)
    errors = (
        np.abs(got.astype(np.float64) - wanted) / np.where(tolerance, tolerance, 1e-30)
        for got, wanted, tolerance in zip(
            outputs, (golden.Y, *golden.last), (allowed.Y, *allowed.last), strict=True
        )
    )
    return max(float(each.max()) for each in errors)


def widest(recurrence):
    """Return the largest tolerance of a state."""
    return max(float(values.max()) for values in derive(recurrence, STANDARD).last)


@dataclass(frozen=True, slots=True, eq=False)
class ByReciprocal(Quantiser):
    """A kernel that multiplies by 255 / (high - low) in float32, which may cross a tie."""

    def levels(self, values, low, high):
        """Return levels."""
        by = np.where(high == low, np.float32(1), np.float32(255) / (high - low))
        zero = np.clip(np.rint(-low * by), 0, 255)
        level = np.clip(np.rint(np.float32(values) * by) + zero, 0, 255)
        return Levels(level - zero, np.float32(1) / by)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_onnxruntime_stays_within(form):
    """Wherever its values lie, near ties or not."""
    for seed in range(8):
        attributes, inputs = node(form, seed % 2, (5, 3, 4, 2 * seed + 4))
        inputs["X"] = np.random.default_rng(seed).normal(size=inputs["X"].shape).astype(np.float32)

        assert margin(recurrence_of(attributes, inputs), of_runtime(attributes, inputs)) < 1, seed


@pytest.mark.parametrize("reading", ["scope=batch", "scope=row", "ended=last"])
def test_float32_kernels_stay_within(reading):
    """Our own in float32, and one that quantises by a product with a reciprocal."""
    for seed in range(60):
        attributes, inputs = node(FULL, seed, (8, 3, 4, 2 * (seed % 9) + 1))
        name, _, choice = reading.partition("=")
        right = recurrence_of(attributes, inputs, **{f"quant-{name}": choice})
        quantiser = right.quantiser
        by_reciprocal = ByReciprocal(
            quantiser.weights, quantiser.by_sequence, quantiser.keeps_ended
        )
        for kernel in (right, replace(right, quantiser=by_reciprocal)):
            found = backend_named("reference").run(kernel, Compute.NATIVE)

            assert margin(right, (found.Y, *found.last)) < 1, seed


def test_away_from_ties_tolerances_are_those_of_float32():
    """Levels add nothing but the error of their scale."""
    attributes, inputs, _ = away_from_ties(FULL)

    assert widest(recurrence_of(attributes, inputs)) < 3e-6


@pytest.mark.parametrize("name", ["X", "initial_h"])
def test_at_a_tie_either_level_is_right(name):
    """A level more or less of one value is within the tolerance, and not far within."""
    attributes, inputs, _ = away_from_ties(("forward", False, False, True))
    values = inputs[name].ravel()
    level = 3 / 512  # which a float32 product with its reciprocal need not give exactly
    np.clip(values, -1, 255 * level - 1, out=values)
    values[:3] = -1, 255 * level - 1, 2.5 * level
    tied = recurrence_of(attributes, {**inputs, name: inputs[name].copy()})
    outputs = []
    for steps in (2, 3):
        values[2] = steps * level
        found = backend_named("numpy").run(recurrence_of(attributes, inputs), Compute.FLOAT64)
        outputs.append((found.Y, *found.last))
    margins = [margin(tied, each) for each in outputs]

    assert 0.01 < max(margins) < 1
    assert widest(tied) > 1e-4


def test_a_tie_of_an_exact_scale_has_one_level():
    """Levels of 1/128 are exact in every kernel, so the tie goes to the even one."""
    attributes, inputs, _ = away_from_ties(("forward", False, False, True))
    X = inputs["X"].ravel()
    X[:] = np.clip(np.rint(X * 128), -128, 127) / 128
    X[:3] = -1, 127 / 128, 2.5 / 128

    assert widest(recurrence_of(attributes, inputs)) < 1e-4


def test_errors_of_an_ended_sequence_stay_those_of_its_end():
    """With its last H, whose error moves the scale of those that go on."""
    attributes, inputs = node(("forward", True, False, True), 3, (30, 2, 4, 6))
    inputs["sequence_lens"] = np.array([2, 30], np.int32)
    right = recurrence_of(attributes, inputs, **{"quant-ended": "last"})
    Y = backend_named("numpy").run(right, Compute.FLOAT64).Y
    path = Trajectory.of(right, Y, hostile=False)
    found = variances_of(CellErrors(path, STANDARD.rounding(right.dtype)))

    assert (path.H[0, 2:, 0] == path.H[0, 2, 0]).all()
    assert (found[0, 2:, 0] == found[0, 2, 0]).all()
    assert (found[0, 1:, 1, 0] > 0).all()
