"""What bounds the errors of activations and of quantised states."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.quantised_lstm import FORMS, LSTM, away_from_ties, node, of_runtime
from support.tables import every

from rnncli.backends import backend_named
from rnncli.judging.tolerances.cell_errors import CellErrors, variances_of
from rnncli.judging.tolerances.derivation import derive
from rnncli.judging.tolerances.operation_errors import Response, Trajectory
from rnncli.numerics import DTYPES, NumPyArithmetic
from rnncli.numerics.profiles import PROFILES
from rnncli.operators.node import Node
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.quantisation import Levels, Quantiser
from rnncli.recurrence.recurrence import Compute

ROUNDING = PROFILES["standard"].rounding(DTYPES["float32"])
PARAMETERS = [-1.5, -0.3, 0.0, 0.1, 0.5, 1.0, 2.0]
MATH = NumPyArithmetic()
NONE = np.zeros(())


def variants(name):
    """Every alpha and beta that the function takes, crossed."""
    row = ACTIVATIONS[name]
    alphas = [None] if row.alpha is None else PARAMETERS
    betas = [None] if row.beta is None else PARAMETERS
    return [row.with_values(a, b) for a in alphas for b in betas]


@every("clip", [np.inf, 0.75, 2.0])
@every("name", ACTIVATIONS)
def test_what_the_slope_leaves_out_is_bounded(name, clip):
    """|f(x + d) - f(x) - s d| <= S for every |d| <= reach: curved, kinked, jumping or clipped."""
    generator = np.random.default_rng(1)
    special = np.array([0.0, 0.1, 0.5, 1.0, 2.0, -0.75, 0.75, 5.0, -2.5, 40.0, -40.0])
    x = np.concatenate([special, generator.normal(0, 2, 400)])
    for activation in variants(name):

        def f(x, activation=activation):
            return activation(MATH, np.clip(x, -clip, clip))

        response = Response(activation, x, NONE, clip, ROUNDING)
        for reach in (1e-6, 1e-2, 0.5, 3.0):
            left_out = response.systematic(np.full(x.shape, reach)) - response.own
            for part in (-1.0, -0.5, 0.25, 1.0):
                change = f(x + part * reach) - f(x) - response.slope * part * reach
                assert (np.abs(change) <= left_out * (1 + 1e-9) + 1e-13).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_little_is_left_out_where_the_function_is_smooth(name):
    """Within a reach of 1e-5, away from kinks, what is left out is of second order."""
    x = np.random.default_rng(2).normal(0, 2, 500)
    for activation in variants(name):
        response = Response(activation, x, NONE, np.inf, ROUNDING)
        reach = np.full(x.shape, 1e-5)

        assert (response.systematic(reach) - response.own < 1e-8).mean() > 0.99


def test_jump_within_reach_counts_whole():
    """ThresholdedRelu falls by alpha just below alpha."""
    activation = ACTIVATIONS["ThresholdedRelu"].with_values(0.5, None)
    x = np.array([0.499, 0.501, 0.4, 0.6])
    response = Response(activation, x, NONE, np.inf, ROUNDING)

    found = response.systematic(np.full(4, 0.01)) - response.own

    assert (found[:2] >= 0.5).all()
    assert found[2:].tolist() == [0, 0]


def test_jump_beyond_the_clip_is_never_reached():
    """With clip below alpha the function is 0 everywhere."""
    activation = ACTIVATIONS["ThresholdedRelu"].with_values(0.5, None)
    response = Response(activation, np.array([0.45, 0.5, 0.55]), NONE, 0.4, ROUNDING)

    found = response.systematic(np.full(3, 0.02)) - response.own

    assert found.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["Sigmoid", "Tanh", "Softsign"])
def test_saturation_leaves_nothing_out(name):
    """Far out, where rounding errors of the argument are large, the value does not move."""
    x = np.array([1e30, -1e30])
    response = Response(ACTIVATIONS[name], x, NONE, np.inf, ROUNDING)

    found = response.systematic(np.full(2, 1e23)) - response.own

    assert (found < 1e-20).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_infinite_arguments_have_no_error(name):
    """What is saturated stays so, and poisons nothing."""
    x = np.array([np.inf, -np.inf, np.nan, 0.3])
    with np.errstate(all="ignore"):
        response = Response(ACTIVATIONS[name], x, np.full(4, np.inf), np.inf, ROUNDING)
        response.forgive(np.isfinite(x))

        found = response.systematic(np.full(4, 1e-6))

    assert np.isfinite(found).all()
    assert response.slope[:3].tolist() == [0, 0, 0]
    assert response.spread[:3].tolist() == [0, 0, 0]


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
