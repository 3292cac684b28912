"""What makes errors of some size, found by programs that compute otherwise."""

from functools import partial

import ml_dtypes
import numpy as np
import pytest

from rnncli.judging.tolerances.tolerance import DATA_SET
from rnncli.models.loading import model_from
from rnncli.models.stacked_model import stacked_model
from rnncli.models.weights import from_torch
from rnncli.running.request import Request
from rnncli.verifying.model_precision import ARITHMETICS, error_size

H = 8
DRAW = np.random.default_rng(3).normal
SHAPES = {"weight_ih": (3 * H, H), "weight_hh": (3 * H, H), "bias_ih": 3 * H, "bias_hh": 3 * H}
STATE = {
    f"{name}_l{k}": (DRAW(size=shape) / 2).astype(np.float32)
    for k in range(2)
    for name, shape in SHAPES.items()
}
MODEL = model_from(stacked_model(from_torch(STATE)))
X = DRAW(size=(12, 3, H)).astype(np.float32)


def same(values):
    """What is not rounded."""
    return values


def as_type(dtype):
    """Rounding to a type."""
    return lambda values: values.astype(dtype).astype(np.float32)


def as_tf32(values):
    """Rounding to 10 bits behind the point, to nearest."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)


def as_levels(values, axis=None):
    """Rounding to 8 bits."""
    scale = np.abs(values).max(axis=axis, keepdims=True) / 127
    return (np.rint(values / scale) * scale).astype(np.float32)


def program(of_weights=same, of_values=same, of_factors=same, tanh=np.tanh):
    """What a program gives that is written without ours: PyTorch's GRU, of two layers."""
    x = of_values(X)
    for k in range(2):
        W, R = (of_factors(of_weights(STATE[f"weight_{n}_l{k}"])) for n in ("ih", "hh"))
        b, c = (of_values(STATE[f"bias_{n}_l{k}"]) for n in ("ih", "hh"))
        h, made = np.zeros((x.shape[1], H), np.float32), []
        for step in x:
            own = np.split(of_values(of_factors(step) @ W.T + b), 3, axis=1)
            fed = np.split(of_values(of_factors(h) @ R.T + c), 3, axis=1)
            r, z = (of_values((1 + tanh((own[g] + fed[g]) / 2)) / 2) for g in range(2))
            n = of_values(tanh(own[2] + r * fed[2]))
            h = of_values((1 - z) * n + z * h)
            made.append(h)
        x = np.stack(made)
    return {"Y": x.astype(np.float32)}


def tabled(x):
    """Tanh from a table."""
    return (np.tanh(np.rint(np.clip(x, -4, 4) * 128) / 128)).astype(np.float32)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ({"of_weights": as_type(np.float16)}, "weights in float16, but for biases"),
        ({"of_weights": as_type(ml_dtypes.bfloat16)}, "weights in bfloat16, but for biases"),
        ({"of_weights": as_levels}, "weights in int8"),
        ({"of_weights": partial(as_levels, axis=1)}, "weights in int8, a scale for each row"),
        ({"of_factors": as_tf32}, "TensorFloat-32 products"),
    ],
)
def test_errors_that_are_the_same_name_their_arithmetic(made, name):
    """They correlate with those of the model with such weights or products."""
    found = error_size(MODEL, Request(tolerance=DATA_SET), {"X": X}, program(**made))

    assert found.is_same
    assert found.likes[0].name == name


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ({k: as_type(np.float16) for k in ("of_weights", "of_values")}, "float16 inside"),
        ({k: as_type(ml_dtypes.bfloat16) for k in ("of_weights", "of_values")}, "bfloat16 inside"),
    ],
)
def test_values_of_a_type_with_errors_of_its_size_name_it(made, name):
    """Roundings on the way are no others' roundings, so that size and numbers tell."""
    found = error_size(MODEL, Request(tolerance=DATA_SET), {"X": X}, program(**made))

    assert found.numbers_of == name.split()[0]
    assert [each.name for each in found.likes] == [name]
    assert found.likes[0].is_near


def test_errors_of_a_size_are_told_with_what_makes_such():
    """A table has errors of a table's size, also one of other values."""
    found = error_size(MODEL, Request(tolerance=DATA_SET), {"X": X}, program(tanh=tabled))

    assert not found.is_same
    assert all(each.is_near for each in found.likes)


def test_errors_of_no_arithmetic_have_a_nearest_alone():
    """It is told by how much they are smaller."""
    exact = program()["Y"]
    got = {"Y": exact + np.float32(1e-6) * DRAW(size=exact.shape).astype(np.float32)}
    found = error_size(MODEL, Request(tolerance=DATA_SET), {"X": X}, got)

    assert [each.is_near for each in found.likes] == [False]
    assert found.likes[0].times < 0.5


@pytest.mark.parametrize("part", [0.1, 1.0])
def test_errors_larger_than_those_of_any_arithmetic_have_none(part):
    """Size alone would name a coarse table, which makes other errors of that size."""
    exact = program()["Y"]
    got = {"Y": exact * (1 + np.float32(part) * DRAW(size=exact.shape).astype(np.float32))}
    found = error_size(MODEL, Request(tolerance=DATA_SET), {"X": X}, got)

    assert found.is_gross
    assert found.likes == ()


def test_each_arithmetic_has_errors_of_its_own():
    """None is the same as another, so that each row is worth its evaluation."""
    assert len({each.name for each in ARITHMETICS}) == len(ARITHMETICS)
    assert error_size(MODEL, Request(tolerance=DATA_SET), {"X": X}, program()).rms < 1e-6
