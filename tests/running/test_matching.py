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
        ({"a": (6, 2, 5), "b": (6, 2, 5)}, ["a", "b"], ["'a' [6, 2, 5] is not an output", "'b'"]),
        ({"a": (6, 1, 2, 5), "b": (6, 2, 5)}, ["Y", "b"], ["'a'", "'b'"]),
        ({"gru/Y": (6, 2, 5), "b": (6, 1, 2, 5)}, ["Y", "b"], ["'gru/Y'", "'b'"]),
        ({"gru_Y": (6, 2, 5), "b": (6, 1, 2, 5)}, ["Y", "b"], ["'gru_Y'", "'b'"]),
        ({"out.Y_h": (2, 5), "other": (2, 5)}, ["Y_h", "other"], ["'out.Y_h'", "'other'"]),
        ({"xY_h": (2, 5), "other": (2, 5)}, ["xY_h", "other"], ["'xY_h'", "'other'"]),
        ({"a/Y": (6, 2, 5), "b/Y": (6, 2, 5)}, ["a/Y", "b/Y"], ["'a/Y'", "'b/Y'"]),
        (
            {"out": (7, 2, 5)},
            ["out"],
            ["not an output of the model, which has Y [6, 1, 2, 5], Y_h [1, 2, 5]"],
        ),
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


@pytest.mark.parametrize(
    ("states", "theirs", "divides"),
    [
        ("h", {"h": 4}, ["h"]),
        ("h", {"state": 4}, ["h"]),
        ("hc", {"h_n": 4, "c_n": 4}, ["h", "c"]),
        ("hc", {"c": 4}, ["c"]),
        ("hc", {"a": 4, "b": 4}, []),
        ("h", {"h": 3}, []),
        ("h", {"h": 4, "other": 4}, []),
        ("h", {"Y_h_l0": 2, "h": 4}, []),
    ],
)
def test_states_of_all_layers_are_those_of_each(states, theirs, divides):
    """As PyTorch returns them; what might be two things is none."""
    random = np.random.default_rng(0)
    ours = {f"Y_{s}_l{k}": random.random((2, 3, 5)).astype("f") for s in states for k in (0, 1)}
    given = {name: random.random((size, 3, 5)).astype("f") for name, size in theirs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = matched(given, ours, "out.npz")

    assert {name[2] for name in found if name in ours and name not in given} == {*divides}
    for name in divides:
        whole = next(v for n, v in given.items() if len(divides) == 1 or n.startswith(name))
        halves = [found[f"Y_{name}_l{k}"] for k in (0, 1)]
        np.testing.assert_array_equal(np.concatenate(halves), whole)


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


STATES = {"153": np.zeros((6, 2, 5)), "148": np.ones((1, 2, 5)), "149": np.full((1, 2, 5), 2.0)}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["y", "h", "c"], {"153": 0, "148": 1, "149": 2}),
        (["h", "y", "c"], {"153": 0, "148": 1, "149": 2}),
        (["y", "h"], {"153": 0, "h": 1}),
        (["153", "h", "c"], {"153": 0, "148": 1, "149": 2}),
    ],
)
def test_states_of_one_size_are_taken_in_order(names, found):
    """If none is missing; the user is told, since sizes cannot tell them apart."""
    values = dict(zip(("y", "h", "c"), STATES.values(), strict=True))
    given = {name: values.get(name, STATES.get(name)) for name in names}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = matched(given, STATES, "out.npz")

    assert {name: array.flat[0] for name, array in made.items()} == found
    in_order = [str(told.message) for told in caught if "in their order" in str(told.message)]
    assert len(in_order) == (2 if "c" in names else 0)
