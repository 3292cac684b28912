"""Outputs of another program, and which of a model's they are."""

import warnings

import numpy as np
import pytest

from rnncli.running.matching import matched

OURS = {"Y": np.zeros((6, 1, 2, 5), np.float32), "Y_h": np.zeros((1, 2, 5), np.float32)}


@pytest.mark.parametrize(
    ("theirs", "names", "said"),
    [
        ({"Y": (6, 1, 2, 5)}, ["Y"], []),
        (
            {"out": (6, 1, 2, 5)},
            ["Y"],
            ["'out' [6, 1, 2, 5] is compared with 'Y' [6, 1, 2, 5]: no other"],
        ),
        ({"out": (6, 2, 5)}, ["Y"], ["'out' [6, 2, 5] is compared with 'Y'"]),
        (
            {"out": (2, 6, 5)},
            ["Y"],
            ["'out' [2, 6, 5] is compared with 'Y'"],
        ),
        ({"a": (6, 2, 5), "b": (2, 5)}, ["Y", "Y_h"], ["'a'", "'b'"]),
        ({"a": (6, 2, 5), "b": (6, 2, 5)}, ["a", "b"], []),
        ({"a": (6, 1, 2, 5), "b": (6, 2, 5)}, ["Y", "b"], ["'a'"]),
        ({"gru/Y": (6, 2, 5), "b": (6, 1, 2, 5)}, ["Y", "b"], ["'gru/Y'"]),
        ({"a/Y": (6, 2, 5), "b/Y": (6, 2, 5)}, ["a/Y", "b/Y"], []),
        ({"out": (7, 2, 5)}, ["out"], []),
        ({"Y": (2, 6, 5)}, ["Y"], []),
    ],
)
def test_an_output_is_the_only_one_of_its_shape(theirs, names, said):
    """By name, then by shape, then by shape in other words; where two might be it, none is."""
    given = {name: np.zeros(shape, np.float32) for name, shape in theirs.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = matched(given, OURS, "out.npz")

    assert [*found] == names
    assert len(caught) == len(said)
    assert all(each in str(told.message) for each, told in zip(said, caught, strict=True))
    for name, values in found.items():
        if name in OURS and name not in theirs:
            assert values.shape in (OURS[name].shape, (2, 6, 5))


def test_axes_in_another_order_are_left_there():
    """They are wrong, as under the model's own name; axes of size 1 are nobody's order."""
    values = np.arange(60, dtype=np.float32).reshape(6, 1, 2, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moved = matched({"out": values[:, 0].swapaxes(0, 1)}, OURS, "out.npz")
        found = matched({"out": values[:, 0]}, OURS, "out.npz")

    assert moved["Y"].shape == (2, 6, 5)
    assert np.array_equal(found["Y"], values)


def test_what_numpy_computes_in_float64_is_compared_in_the_models_type():
    """It is rounded once, and that is said."""
    values = np.full((1, 2, 5), 1 + 2.0**-40)
    with pytest.warns(match="'Y_h' is of type float64, compared in the model's, float32"):
        found = matched({"Y_h": values}, OURS, "out.npz")

    assert found["Y_h"].dtype == np.float32
