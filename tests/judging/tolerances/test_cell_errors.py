"""A cell's derivatives, and the bounds of what they leave out, are those of its own equations."""

from dataclasses import replace

import numpy as np
import pytest
from support.other_cells import OTHER_CELLS, recurrence_of_cell
from support.recurrences import PREVIOUS, recurrence_of
from support.tables import every

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.tolerances.cell_errors import CellErrors
from rnncli.judging.tolerances.expressions import NewState, by_states
from rnncli.judging.tolerances.linearised import Bounds, Linearised, StateVariances
from rnncli.judging.tolerances.operation_errors import Trajectory
from rnncli.numerics import DTYPES, FLOAT64
from rnncli.numerics.profiles import PROFILES

SMOOTH = {
    "RNN": [{}, {"activations": ["Softplus"]}, {"clip": 0.5}],
    "GRU": [
        {"linear_before_reset": 0},
        {"linear_before_reset": 1},
        {"linear_before_reset": 0, "activations": ["Softsign", "Softplus"], "clip": 0.7},
        {"linear_before_reset": 1, "activations": ["Elu", "Sigmoid"]},
    ],
    "LSTM": [
        {},
        {"input_forget": 1},
        {"peepholes": True},
        {"peepholes": True, "input_forget": 1, "clip": 0.6},
        PREVIOUS,
        {**PREVIOUS, "input_forget": 1, "clip": 0.6},
        {"activations": ["Softsign", "Elu", "Sigmoid"], "peepholes": True, "clip": 0.8},
    ],
    **{name: [{}] for name in OTHER_CELLS},
}
KINKED = {
    "RNN": [{"activations": ["Relu"]}, {"activations": ["ThresholdedRelu"]}],
    "GRU": [
        {"linear_before_reset": after, "activations": ["HardSigmoid", "Relu"], "clip": 0.7}
        for after in (0, 1)
    ],
    "LSTM": [
        {"activations": ["HardSigmoid", "Relu", "LeakyRelu"], "clip": 0.7, "input_forget": k}
        for k in (0, 1)
    ],
}
ROUNDING = PROFILES["standard"].rounding(DTYPES["float64"])


def rows(table):
    """Every kind with each of its attributes."""
    return [(kind, case) for kind, cases in table.items() for case in cases]


def first_steps(kind, attributes, *, one_weight=False, **options):
    """Return a recurrence of one step forward in float64, its initial states, and its path."""
    make = recurrence_of_cell if kind in OTHER_CELLS else recurrence_of
    found = make(kind, T=1, D=2, **options, **attributes)
    direction = found.directions[0]
    found = replace(found, dtype=DTYPES["float64"], directions=(direction,) * 2)
    if one_weight:
        columns = np.arange(found.R.shape[-1])
        found = replace(found, R=np.where(columns == np.roll(columns, 2)[:, None], found.R, 0))
    states = np.stack([state.astype(np.float64) for state in found.initial])
    golden = evaluate(found, NumPyEngine(FLOAT64))
    return found, states, Trajectory.of(found, golden.Y, hostile=False)


def one_step(recurrence, states):
    """Return the states after the step from these, [S, D, N, H]."""
    step = replace(recurrence, initial=tuple(states))
    return np.stack(evaluate(step, NumPyEngine(FLOAT64)).last)


def numeric_derivatives(recurrence, states):
    """Differentiate one step by every unit of every state: [S, D, N, H, S, H]."""
    S, D, N, H = states.shape
    found = np.empty((S, D, N, H, S, H))
    for s in range(S):
        for k in range(H):
            moved = np.zeros_like(states)
            moved[s, ..., k] = 1e-5
            ahead, back = (one_step(recurrence, states + e) for e in (moved, -moved))
            found[..., s, k] = (ahead - back) / 2e-5
    return found


@pytest.mark.parametrize(("kind", "attributes"), rows(SMOOTH))
def test_squares_are_those_of_the_cells_derivatives(kind, attributes):
    """Every unit of every new state by every unit of every old one, against central differences."""
    recurrence, states, path = first_steps(kind, attributes)

    errors = CellErrors(path, ROUNDING)

    wanted = numeric_derivatives(recurrence, states) ** 2
    by_h = errors.squares(slice(0, 1))[:, 0].transpose(2, 0, 1, 3, 4)
    np.testing.assert_allclose(by_h, wanted[..., 0, :], rtol=1e-4, atol=1e-8)
    assert (errors.own is None) == (len(states) == 1)
    if errors.own is not None:
        own = errors.own[:, 0].transpose(2, 0, 1, 3)
        np.testing.assert_allclose(
            own[..., None] * np.eye(states.shape[-1]), wanted[..., 1, :], rtol=1e-4, atol=1e-8
        )


@every(
    ("kind", "attributes"),
    [row for row in rows(SMOOTH) + rows(KINKED) if "peepholes" not in row[1]],
)
@every("moved_by", [1e-3, 0.1, 1.0])
def test_what_the_derivatives_leave_out_is_bounded(kind, attributes, moved_by):
    """|step(s + d) - step(s) - J d| <= S where one unit of one state is moved.

    Bounds of H take how far C may be off as given. Sums of several errors are taken as if those
    were independent, so here there are none: every row of R has one weight, and no gate looks at C.
    """
    recurrence, states, path = first_steps(kind, attributes, seed=3, scale=1.0, one_weight=True)
    S, D, N, H = states.shape
    before, linear = one_step(recurrence, states), Linearised(path, ROUNDING)
    exact = numeric_derivatives(recurrence, states)
    smooth = np.isfinite(exact) & (np.abs(exact) < 100)  # no jump or kink so near
    for s in range(S):
        for k in range(H):
            move = np.zeros_like(states)
            move[s, ..., k] = moved_by
            change = one_step(recurrence, states + move) - before
            rest = np.abs(change - exact[..., s, k] * moved_by)
            variances = np.zeros((D, 2, N, S, H))
            variances[:, 0, :, s, k] = moved_by**2
            bounds = {}
            for position in linear.equations.in_order:
                node = linear.equations.new[position]
                along = StateVariances(variances[:, :-1], variances[:, 1:])
                bound = Bounds(linear, along).bound(node)[:, 0]
                for inner, factor in by_states(node).items():
                    if isinstance(inner, NewState):
                        bound = bound + linear.modulus(factor)[:, 0] * bounds[inner.label]
                bounds[position] = bound
                variances[:, 1, :, position] = (np.abs(change[position]) + 1e-12) ** 2
                held = rest[position] <= bound * (1 + 1e-6) + 1e-7 * moved_by
                assert held[smooth[position, ..., s, k]].all()


@pytest.mark.parametrize(("kind", "attributes"), rows(SMOOTH))
def test_a_block_of_steps_has_the_derivatives_of_its_steps(kind, attributes):
    """Long recurrences form them block by block."""
    make = recurrence_of_cell if kind in OTHER_CELLS else recurrence_of
    recurrence = make(kind, T=5, **attributes)
    golden = evaluate(recurrence, NumPyEngine(FLOAT64))
    errors = CellErrors(Trajectory.of(recurrence, golden.Y, hostile=False), ROUNDING)

    whole = errors.squares(slice(0, 5))

    assert np.array_equal(whole[:, 2:4], errors.squares(slice(2, 4)))


@pytest.mark.parametrize(("kind", "attributes"), rows(SMOOTH))
def test_derivatives_do_not_depend_on_how_weights_lie_in_memory(kind, attributes):
    """R may be a transposed view, as it is where a model is read literally."""
    recurrence, _, _ = first_steps(kind, attributes)
    turned = np.ascontiguousarray(recurrence.R.swapaxes(-1, -2)).swapaxes(-1, -2)
    golden = evaluate(recurrence, NumPyEngine(FLOAT64))

    squares = [
        CellErrors(Trajectory.of(found, golden.Y, hostile=False), ROUNDING).squares(slice(0, 1))
        for found in (recurrence, replace(recurrence, R=turned))
    ]

    np.testing.assert_allclose(squares[0], squares[1], rtol=1e-12)
