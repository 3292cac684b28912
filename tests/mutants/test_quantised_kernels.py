"""Claims about the bugs of quantisation, on numbers small enough to check by hand."""

from dataclasses import replace

import numpy as np
import pytest
from support.quantised_lstm import LSTM, away_from_ties

from rnncli.mutants.equivalence import is_same
from rnncli.mutants.quantised_kernels import CAST, _scaled_as, quantisation_bug, unit_bug
from rnncli.operators import operator_named
from rnncli.operators.node import Node
from rnncli.recurrence.unit import Dress, QuantisedUnit

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


@pytest.mark.parametrize(
    ("type_", "zero_point", "levels"),
    [
        ("uint8", 128, [126, 127, 127, 128, 128, 129]),
        ("int8", 0, [-1, 0, 0, 0, 0, 1]),
        ("int8", 1, [0, 0, 0, 1, 1, 2]),
        ("int8", -3, [-4, -3, -3, -3, -2, -1]),
    ],
)
def test_a_cast_rounds_toward_level_0_wherever_the_zero_point_is(type_, zero_point, levels):
    """Down where the type has no sign, and to either side where it has."""
    dress = Dress(type_, (0.5,), (zero_point,), rounding=CAST)
    reals = np.array([-0.8, -0.4, -0.1, 0.0, 0.4, 0.9])

    assert dress.levels(reals).tolist() == levels


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


@pytest.mark.parametrize("row", unit_bug.rows, ids=[row.id for row in unit_bug.rows])
def test_nothing_is_seen_where_no_tensor_is_dressed(row):
    """The recurrence and its results stay the same, with a reason."""
    plain = right()

    assert row.equivalent_when(plain) == "no tensor is dressed in levels"
    assert is_same(row.change.recurrence(plain), plain)


# X is (8 - 4) / 4 = 1, W is (6 - 2) / 8, R 0, B (3 - 1) / 2 in its first half; H is their sum.
SMALL = {
    "X": {"type": "uint8", "scale": 0.25, "zero_point": 4},
    "W": {"type": "int8", "scale": 0.125, "zero_point": 2},
    "R": {"type": "int8", "scale": 1.0},
    "B": {"type": "uint8", "scale": 0.5, "zero_point": 1},
    "Y": {"type": "int8", "scale": 0.5, "zero_point": -1},
    "Y_h": {"type": "uint8", "scale": 1.0, "zero_point": 5},
}
GIVEN = {
    "X": np.array([[[8]]], np.uint8),
    "W": np.array([[[6]]], np.int8),
    "R": np.array([[[0]]], np.int8),
    "B": np.array([[3, 1]], np.uint8),
}


def levels_with(id_, dresses=(), **inputs):
    """The levels of Y and Y_h of a small unit, whose H is 1.5, with a bug."""
    unit = QuantisedUnit.of({**SMALL, **dict(dresses)})
    attributes = {"hidden_size": 1, "activations": ["Affine"], "activation_alpha": [1.0]}
    node = Node(operator_named("RNN-14"), attributes, unit=unit)
    row = next(row for row in unit_bug.rows if row.id == id_)
    made = node.outputs_of(row.run(node.recurrence({**GIVEN, **inputs})))
    return made["Y"].item(), made["Y_h"].item()


@pytest.mark.parametrize(
    ("id_", "wanted"),
    [
        ("biases-scaled-as-products", (0, 6)),  # H is 0.5 + 2 / 32: 1.125 and 0.5625 levels
        ("zero-point-of-x-dropped", (3, 7)),  # H is 2 * 0.5 + 1
        ("zero-point-of-x-subtracted-twice", (1, 6)),  # H is 0 * 0.5 + 1
        ("zero-point-of-x-added", (4, 7)),  # H is 3 * 0.5 + 1 = 2.5, a tie of Y_h
        ("zero-point-of-w-dropped", (3, 7)),  # H is 0.75 + 1: 3.5 levels, a tie of Y
        ("zero-point-of-b-dropped", (4, 7)),  # H is 0.5 + 1.5 + 0.5 of the second half = 2.5
        ("last-state-dressed-as-outputs", (2, 2)),
        ("outputs-and-last-state-exchange-dresses", (7, 2)),
        ("y-truncated", (2, 7)),
        ("last-state-truncated", (2, 6)),
        ("outputs-truncated", (2, 6)),
        ("last-state-rounded-away", (2, 7)),
        ("state-rounded-to-levels", (2, 7)),
    ],
)
def test_levels_of_a_unit_with_the_bug(id_, wanted):
    """Right are 1.5 / 0.5 - 1 = 2 and 1.5 / 1 + 5, of which 1.5 goes to the even 2: 7."""
    assert levels_with(id_) == wanted


@pytest.mark.parametrize(
    ("id_", "scale", "wanted"),
    [
        ("outputs-wrap-around", 1 / 128, -1 + 192 - 256),  # 191 is no int8
        ("outputs-wrap-around", -1 / 128, -193 + 256),
        ("lowest-level-left-out", -1 / 128, -127),
    ],
)
def test_levels_at_the_ends_of_their_type(id_, scale, wanted):
    """H is 1.5 or -1.5, and Y a signed level of 1/128."""
    Y = {"Y": {"type": "int8", "scale": abs(scale), "zero_point": -1}}
    turned = (
        {} if scale > 0 else {"W": np.array([[[-2]]], np.int8), "B": np.array([[0, 0]], np.uint8)}
    )

    assert levels_with(id_, Y, **turned)[0] == wanted


@pytest.mark.parametrize(
    ("id_", "dress", "wanted"),
    [
        ("scales-of-w-along-other-axis", {"scale": [1.0, 2.0], "axis": -2}, [[1, 2], [1, 2]]),
        ("scales-of-w-are-the-first", {"scale": [1.0, 2.0], "axis": -2}, [[1, 1], [1, 1]]),
        ("recurrent-weights-scaled-as-input-weights", {"scale": 3.0}, [[1, 1], [2, 2]]),
    ],
)
def test_weights_read_with_other_scales(id_, dress, wanted):
    """All levels are 1, so that W is its scales, [[1, 1], [2, 2]] if they are by row; R is 3."""
    unit = QuantisedUnit.of(
        {"W": {"type": "int8", **dress}, "R": {"type": "int8", "scale": 3.0}, "Y": SMALL["Y"]}
    )
    ones = {name: np.ones((1, 2, 2), np.int8) for name in "WR"}
    node = Node(operator_named("RNN-14"), {"hidden_size": 2}, unit=unit)
    given = node.recurrence({"X": np.ones((1, 1, 2), np.float32), **ones})
    row = next(row for row in unit_bug.rows if row.id == id_)

    found = row.change.recurrence(given)

    if id_.startswith("scales"):
        assert found.W[0, 0].tolist() == wanted
        assert found.R is given.R
    else:
        assert found.W is given.W
        assert (found.R == 3.0).all()


@pytest.mark.parametrize("other", ["W", "R"])
def test_the_scale_of_another_tensor_fits_its_own_zero_points(other):
    """Where one has a scale for each row and the other zero points for each, neither is lost."""
    rows = Dress("int8", (0.1, 0.2), (1, 2), axis=-2)
    dresses = {"W": Dress("int8", (0.5,)), "R": Dress("int8", (0.5,)), other: rows}

    changed = _scaled_as(dresses, "R", "W")["R"]

    scale, point = changed.factors((1, 4, 3))
    assert {*scale.ravel()} == {*np.float32(dresses["W"].scale)}
    assert {*point.ravel()} == {*dresses["R"].zero_point}
