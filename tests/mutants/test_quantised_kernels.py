"""Claims about the bugs of quantisation, on numbers small enough to check by hand."""

from dataclasses import replace

import numpy as np
import pytest
from support.quantised_lstm import LSTM, away_from_ties

from rnncli.mutants.quantised_kernels import quantisation_bug, unit_bug
from rnncli.operators import operator_named
from rnncli.operators.node import Node
from rnncli.operators.unit import QuantisedUnit

FULL = ("bidirectional", True, True, True)
ROWS = quantisation_bug.rows
BY_ID = {row.id: row for row in ROWS}
LENGTHS = np.array([1, 2])


def right(form=FULL):
    """A recurrence with everything."""
    attributes, inputs, _ = away_from_ties(form)
    return Node(LSTM, attributes).recurrence(inputs)


def quantiser_of(id_):
    """The quantiser of a mutant."""
    return BY_ID[id_].change.recurrence(right()).quantiser


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_nothing_is_seen_where_nothing_is_quantised(row):
    """The recurrence stays the same, with a reason."""
    plain = replace(right(), quantiser=None)

    assert row.equivalent_when(plain) == "nothing is quantised"
    assert row.change.recurrence(plain).W is plain.W


@pytest.mark.parametrize(
    ("id_", "values", "wanted"),
    [
        ("quantised-to-seven-bits", [-1, 0.045, 1.54], [-1, 0.04, 1.54]),
        ("quantised-symmetrically", [-1, 0.05, 1.27], [-1, 0.05, 1.27]),
        ("quantised-states-of-fixed-range", [0.0, 0.49, 3.0], [0, 62 / 127.5, 128 / 127.5]),
        ("quantised-states-as-they-are", [0.123456], [0.123456]),
        ("quantised-ties-away", [-1, 127 / 128, 0.5 / 128, 2.5 / 128], [-128, 127, 1, 3]),
        ("quantised-range-without-zero", [1.0, 3.55], [1, 2.55]),
    ],
)
def test_levels_of_a_kernel_with_the_bug(id_, values, wanted):
    """Of one batch; ties are counted in levels of 1/128."""
    found = quantiser_of(id_).states(np.array([values])).values[0]
    by = 128 if id_ == "quantised-ties-away" else 1

    assert found * by == pytest.approx(wanted, abs=1e-6)


def test_which_inputs_share_a_scale():
    """The padding of the first sequence, 100, counts; steps have the ranges 2.55 and 255."""
    X = np.array([[2.55, 2.55], [100.0, 255.0]])[..., None]
    by_step = quantiser_of("quantised-inputs-by-step").inputs(X, LENGTHS)

    assert by_step.scale.ravel() == pytest.approx([0.01, 1])
    assert right().quantiser.inputs(X, LENGTHS).scale.item() == pytest.approx(1)
    X[1] = [[400], [1]]
    without = quantiser_of("quantised-padding-left-out").inputs(X, LENGTHS)
    assert without.scale.item() == pytest.approx(0.01)
    assert right().quantiser.inputs(X, LENGTHS).scale.item() == pytest.approx(400 / 255)


@pytest.mark.parametrize(
    ("id_", "form", "wanted"),
    [
        ("columns-share-scale", FULL, lambda q: q.levels * q.scale[..., :1, :1, :]),
        (
            "zero-points-dropped",
            ("forward", False, True, False),
            lambda q: q.levels.astype(float) * q.scale,
        ),
        ("weights-sign-flipped", FULL, lambda q: q.levels.astype(np.uint8) * q.scale.astype(float)),
    ],
)
def test_integers_of_weights_read_wrongly(id_, form, wanted):
    """By the formula of the bug, for both weights."""
    r = right(form)
    found = BY_ID[f"quantised-{id_}"].change.recurrence(r)

    for values, integers in zip((found.W, found.R), r.quantiser.weights, strict=True):
        np.testing.assert_allclose(values, wanted(integers), rtol=1e-6)
    assert not np.array_equal(found.W, r.W)


@pytest.mark.parametrize(
    ("operator", "direction", "zero"),
    [
        ("RNN-14", "forward", {"Wb", "Rb"}),
        ("GRU-14", "reverse", {"Wb", "Rb"}),
        ("GRU-14", "bidirectional", {"W", "Wb", "Rb"}),
        ("LSTM-14", "forward", {"W", "Wb", "Rb"}),
    ],
)
def test_constants_that_are_split_are_zero(operator, direction, zero):
    """B always, W of an LSTM or of two directions; R, whose zero point is 0, never."""
    narrow = {"type": "uint8", "scale": 0.01}
    unit = QuantisedUnit.of({n: {**narrow, "zero_point": 5 * (n != "R")} for n in "WRBY"})
    G, D = {"R": 1, "G": 3, "L": 4}[operator[0]], 1 + (direction == "bidirectional")
    shapes = {"W": (D, G, 1), "R": (D, G, 1), "B": (D, 2 * G)}
    inputs = {name: np.full(shape, 9, np.uint8) for name, shape in shapes.items()}
    inputs["X"] = np.ones((1, 1, 1), np.float32)
    attributes = {"hidden_size": 1, "direction": direction}
    right = Node(operator_named(operator), attributes, unit=unit).recurrence(inputs)
    row = next(row for row in unit_bug.rows if row.id.startswith("split"))

    wrong = row.change.recurrence(right)

    assert {n for n in ("W", "R", "Wb", "Rb") if not getattr(wrong, n).any()} == zero
    real = Node(operator_named(operator), attributes).recurrence(
        {name: values.astype(np.float32) for name, values in inputs.items()}
    )
    assert row.equivalent_when(real) == "no constant has a zero point other than 0"
