"""What two tensors that differ have in common."""

import ml_dtypes
import numpy as np
import pytest

from rnncli.judging.comparing.comparison import Sides
from rnncli.judging.comparing.likeness import beside_roundings, differences, order_of
from rnncli.judging.tolerances.tolerance import EXACT

DRAW = np.random.default_rng(0).normal
W = DRAW(size=(6, 2, 5)).astype(np.float32)
SQUARE = DRAW(size=(4, 4)).astype(np.float32)
NOISE = DRAW(size=W.shape).astype(np.float32)
SIDES, IS = Sides("A has", "B has"), "A has what B has"


def as_type(dtype):
    """The tensor, rounded to a type."""
    return W.astype(dtype).astype(np.float32)


def cut(bits, values=W):
    """Values, cut toward zero to a number of significant bits."""
    fractions, exponents = np.frexp(values)
    return np.ldexp(np.trunc(np.ldexp(fractions, bits)), exponents - bits).astype(np.float32)


@pytest.mark.parametrize(
    ("got", "sentence"),
    [
        (W + np.float32(0.25), f"{IS} + 0.25"),
        (W * 2, f"{IS} times 2"),
        (np.round(W * 4096), f"{IS} times 4096"),
        (-W, f"{IS} times -1"),
        (2 * W - 1, f"{IS} times 2 - 1"),
        (W[:, :, [0, 2, 1, 4, 3]], f"{IS} at the indices 0, 2, 1, 4, 3 along axis 2"),
        (W[::-1], f"{IS} reversed along axis 0"),
        (np.concatenate([W[:1] * 0, W[:-1]]), f"{IS} one index later along axis 0"),
        (np.concatenate([W[1:], W[:1] * 0]), f"{IS} one index earlier along axis 0"),
        (np.round(W, 3), f"{IS} rounded to 3 decimals"),
        (as_type(np.float16), f"{IS} rounded to float16"),
        (as_type(ml_dtypes.bfloat16), f"{IS} rounded to bfloat16"),
        (np.round(W * 4096) / 4096, f"{IS} rounded to multiples of 2^-12: fixed point"),
        (np.floor(W * 4096) / 4096, f"{IS} rounded down to multiples of 2^-12: fixed point"),
        (np.ceil(W * 64) / 64, f"{IS} rounded up to multiples of 2^-6: fixed point"),
        (np.trunc(W * 256) / 256, f"{IS} cut toward zero to multiples of 2^-8: fixed point"),
        (np.round(W * 127) / 127, f"{IS} rounded to multiples of 1/127"),
        (np.trunc(W / 0.0213) * 0.0213, f"{IS} cut toward zero to multiples of 0.0213"),
        (cut(8), f"{IS} cut toward zero to bfloat16"),
        (cut(11), f"{IS} cut toward zero to float16"),
        (cut(11, W * 2.0**-20) * 2**20, f"{IS} cut toward zero to float16"),
        (cut(14), f"{IS} cut toward zero to 14 significant bits"),
        (W[:, [1, 1]], "A has at 0 of axis 1 what B has at 1"),
        (W[[0, 1, 2, 1, 2, 5]], "A has at 3 to 4 of axis 0 what B has at 1 to 2"),
        (
            W[[3, 4, 5, 0, 1, 2]],
            "A has at 0 to 2 of axis 0 what B has at 3 to 5, and at 3 to 5 what it has at 0 to 2",
        ),
        (W[[2, 1, 2, 5, 5, 4]], f"{IS} at the indices 2, 1, 2, 5, 5, 4 along axis 0"),
        (W.astype(np.float64), "in float32 60 of 60 elements agree"),
        (W * 0, "A has nothing but zeros"),
        (W * np.float32(np.nan), "A has nothing but NaN"),
        (
            W.transpose(1, 0, 2),
            "what A has, with axes in the order 1, 0, 2: 60 of 60 elements agree",
        ),
        (W[None], "what A has, without axis 0: 60 of 60 elements agree"),
        (W[:, None], "what A has, without axis 1: 60 of 60 elements agree"),
        (W[None, None], f"what A has, in the shape {[*W.shape]}: 60 of 60 elements agree"),
        (
            W.transpose(1, 0, 2)[..., None],
            (
                "what A has, with axes in the order 1, 0, 2, 3 and without axis 3: 60 of 60"
                " elements agree"
            ),
        ),
    ],
)
def test_what_explains_all_of_an_error_is_told_alone(got, sentence):
    """It is one thing."""
    (like,) = differences({"Y": got}, {"Y": W}, EXACT, SIDES)["Y"]

    assert like == (sentence, True)


def test_outputs_that_are_exchanged_are_told_of_both():
    """Each is what the other should be."""
    found = differences({"Y": W, "Z": NOISE}, {"Y": NOISE, "Z": W}, EXACT, SIDES)

    assert found == {"Y": [(f"{IS} as Z", True)], "Z": [(f"{IS} as Y", True)]}


@pytest.mark.parametrize(
    ("on_grid", "words"),
    [
        (lambda values: np.round(values * 4096) / 4096, "multiples of 2^-12: fixed point"),
        (lambda values: np.round(values * 127) / 127, "multiples of 1/127"),
        (lambda values: cut(11, values), "float16"),
    ],
)
def test_errors_beyond_a_grid_of_the_outputs_are_not_explained_by_it(on_grid, words):
    """The grid is told all the same, and not how it rounds."""
    found = differences({"Y": on_grid(W + NOISE / 16)}, {"Y": W}, EXACT, SIDES)["Y"]

    assert found == [(f"A has nothing but {words}", False)]


def test_wanted_outputs_on_a_grid_say_nothing_of_how_others_round():
    """Outputs that are levels of one scale on both sides have it in common."""
    got, wanted = np.round(W * 127) / 127, np.round((W + NOISE) * 127) / 127

    assert differences({"Y": got}, {"Y": wanted}, EXACT, SIDES)["Y"] == []


def test_numbers_of_two_types_are_compared_in_the_narrower():
    """What is rounded there is told, too."""
    found = differences({"Y": W.astype(np.float64)}, {"Y": as_type(np.float16)}, EXACT, SIDES)["Y"]

    assert [each.sentence for each in found] == [
        "in float32 0 of 60 elements agree",
        "B has what A has rounded to float16",
    ]


def test_axes_of_one_size_may_be_in_another_order_too():
    """The shape does not tell."""
    (like,) = differences({"Y": SQUARE.T}, {"Y": SQUARE}, EXACT, SIDES)["Y"]

    assert like == (f"{IS} with its axes in the order 1, 0", True)


@pytest.mark.parametrize(
    ("got", "sentences"),
    [
        (np.where(np.arange(5) == 3, W + NOISE, W), ["only index 3 of axis 2 is wrong, of 5"]),
        (
            np.where(np.arange(6)[:, None, None] >= 2, W + NOISE, W),
            ["only indices from 2 on of axis 0 are wrong, of 6"],
        ),
        (
            np.where(np.arange(6)[:, None, None] % 5 != 0, W + NOISE, W),
            ["only indices from 1 to 4 of axis 0 are wrong, of 6"],
        ),
        (W + np.abs(NOISE), ["A has larger values in all of 60 wrong elements"]),
        (W - np.abs(NOISE), ["A has smaller values in all of 60 wrong elements"]),
        (NOISE, []),
    ],
)
def test_where_errors_are_and_their_sign_explain_nothing_and_are_told(got, sentences):
    """They are a place to look."""
    found = differences({"Y": got}, {"Y": W}, EXACT, SIDES)["Y"]

    assert [each.sentence for each in found] == sentences
    assert not any(each.explains for each in found)


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (2.0**-8, "errors are as large as those of rounding to bfloat16"),
        (2.0**-11, "errors are as large as those of rounding to float16"),
        (2.0**-6, "errors are 8.22x those"),
        (2.0**-3, "errors are larger than roundings make, 65.8x those"),
        (1.0, "errors are larger than roundings make"),
        (2.0**-20, ""),
    ],
)
def test_errors_have_a_size_beside_those_of_rounding(size, sentence):
    """Nothing is said of what no rounding makes."""
    found = beside_roundings(W * (1 + np.float32(size) * NOISE), W)

    assert found.startswith(sentence)
    assert bool(found) is bool(sentence)


@pytest.mark.parametrize(
    ("shape", "wanted", "order"),
    [
        ((2, 3), (2, 3), ()),
        ((3, 2), (2, 3), (1, 0)),
        ((3, 1, 2), (2, 3), (2, 1, 0)),
        ((4, 4, 5), (5, 4, 4), None),
        ((4, 4, 5), (4, 4, 1, 5), (0, 1, 2)),
        ((), (1, 1), ()),
        ((2, 3), (2, 4), None),
    ],
)
def test_an_order_of_axes_is_found_where_there_is_one(shape, wanted, order):
    """Sizes that are alike leave it open."""
    assert order_of(shape, wanted) == order
