"""Stages: whatever the order of memory, the numbers of a product and of a projection."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import numpy as np
import pytest
from support.recurrences import of_constants, recurrence_of

from rnncli.backends import in_place as tuning
from rnncli.backends.in_place import COPIED_WEIGHTS, STACKED_PRODUCT, stages
from rnncli.backends.in_place.stages import (
    GeneralStage,
    SmallStage,
    is_small,
    settings_of,
    stage_for,
    weights_of,
)

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
SIZES = [(1, 9), (2, 4), (3, 64), (5, 128), (24, 100), (25, 6), (40, 64), (300, 8)]
DEPTHS = pytest.mark.parametrize("depth", [2, 1000])


@pytest.fixture(params=SIZES, ids=str)
def sizes(request):
    """N and H."""
    return request.param


@pytest.fixture(params=[F32, F64], ids=str)
def dtype(request):
    """Of all numbers."""
    return request.param


@pytest.fixture(autouse=True)
def _empty():
    """Nothing kept from before, and nothing afterwards."""
    vars(stages._CACHE).clear()
    yield
    vars(stages._CACHE).clear()


def numbers(dtype, *shape):
    """Small integers, whose products are exact in any order."""
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def general(sizes, dtype, depth=1000):
    """A recurrence of whole numbers, and a general stage loaded with its weights."""
    N, H = sizes
    r = recurrence_of("GRU", T=4, N=N, H=H, I=5, dtype=dtype.name)
    r = replace(
        r, **{name: numbers(dtype, *getattr(r, name).shape) for name in ("X", "W", "R", "Wb")}
    )
    settings = settings_of(r, 0, dtype, N)
    kernel = replace(settings.kernel, depth=depth)
    stage = GeneralStage(settings._replace(kernel=kernel), r.activations[0])
    stage.load(stage.lay_out(weights_of(r, 0, dtype)))
    return r, stage


@DEPTHS
def test_projection_is_the_product_of_all_steps(sizes, dtype, depth):
    """With and without a bias, for a whole block and for a shorter one, in one sum and in three."""
    r, stage = general(sizes, dtype, depth)
    weights = stage.weights
    wanted = np.einsum("snk,ghk->sghn", r.X, r.W[0])
    for steps in (4, 3):
        for bias in (None, r.Wb[0]):
            stage.weights = weights._replace(bias=bias)
            stage._project(r.X[:steps])
            right = wanted if bias is None else wanted + bias[..., None]
            for k, (gates, hidden, *_) in enumerate(stage.calls[:steps]):
                np.testing.assert_array_equal(gates, right[k, :2])
                np.testing.assert_array_equal(hidden, right[k, 2])


@DEPTHS
def test_product_is_that_of_every_gate(sizes, dtype, depth):
    """From a state, into some of the gates, in one sum and in many."""
    r, stage = general(sizes, dtype, depth)
    h = numbers(dtype, *reversed(sizes))
    product = stage.products[0]

    product(h, np.zeros((1, 1), dtype))

    wanted = np.einsum("kn,ghk->ghn", h, r.R[0, :2])
    np.testing.assert_array_equal(product.out, wanted.reshape(product.out.shape))


def test_weights_at_odd_addresses_are_aligned(sizes, dtype):
    """Those of a protobuf are; NumPy would copy them at every product."""
    r, _ = general(sizes, dtype)
    odd = np.frombuffer(b" " + r.W.tobytes(), dtype, offset=1).reshape(r.W.shape)
    assert not odd.flags.aligned

    weights = weights_of(replace(r, W=odd), 0, dtype)

    assert weights.W.flags.aligned
    np.testing.assert_array_equal(weights.W, r.W[0])


KINDS = [
    ("RNN", {}),
    ("GRU", {}),
    ("GRU", {"linear_before_reset": 1}),
    ("LSTM", {}),
    ("LSTM", {"peepholes": True}),
]


def staged(kind, flags, **given):
    """A recurrence, and a stage loaded with its weights."""
    recurrence = recurrence_of(kind, dtype="float64", **flags, **given)
    stage = SmallStage(settings_of(recurrence, 0, F64, 3), recurrence.activations[0])
    stage.load(stage.lay_out(weights_of(recurrence, 0, F64)))
    return recurrence, stage


@pytest.mark.parametrize(("kind", "flags"), KINDS)
def test_one_product_makes_the_gates(kind, flags):
    """Each with its part of h, of x and of the biases; those of divisors are negative."""
    recurrence, stage = staged(kind, flags)
    r, h = recurrence, np.random.default_rng(0).normal(size=(3, 5))
    stack = np.concatenate([h.T, np.ones((1, 3)), r.X[0].T])

    gates = (stage.matrix.T @ stack).reshape(-1, 5, 3)

    for k, row in enumerate(stage.kernel.stacked):
        of_x = (r.W[0] @ r.X[0].T + r.Wb[0][..., None])[row.gate]
        of_h = (r.R[0] @ h.T + r.Rb[0][..., None])[row.gate]
        if not row.of_h and not r.options.linear_before_reset:
            of_x, of_h = of_x + r.Rb[0][row.gate][:, None], of_h * 0
        wanted = of_x * row.of_x + of_h * row.of_h
        np.testing.assert_allclose(gates[k], -wanted if k < stage.divisors else wanted, atol=1e-13)


def test_gates_are_divisors_where_all_of_them_are_sigmoids():
    """Another activation makes factors."""
    assert staged("LSTM", {})[1].divisors == 3
    assert staged("GRU", {})[1].divisors == 2
    assert staged("LSTM", {"peepholes": True})[1].divisors == 0
    assert staged("GRU", {"activations": ["HardSigmoid", "Tanh"]})[1].divisors == 0


def test_large_products_are_not_stacked():
    """Up to so many multiplications a step."""
    settings = settings_of(recurrence_of("RNN", H=7, I=8), 0, F64, 1)
    most = STACKED_PRODUCT // (7 * (8 + 1 + 7))

    assert is_small(settings._replace(N=most))
    assert not is_small(settings._replace(N=most + 1))


@pytest.mark.parametrize("is_constant", [False, True])
def test_weights_of_one_call_are_stacked_where_steps_repay_it(is_constant):
    """Those of constants are stacked once for all calls."""
    few = 40 * (30 + 1 + 40) // COPIED_WEIGHTS
    for steps, wanted in ((few, is_constant), (2 * few, True)):
        r = recurrence_of("RNN", T=steps, N=1, H=40, I=30)
        stage = stage_for(of_constants(r) if is_constant else r, 0, F64, 1)

        assert isinstance(stage, SmallStage) == wanted


def stage_of(H):
    """This thread's stage of a recurrence of some units."""
    return stage_for(recurrence_of("RNN", T=4, N=2, H=H), 0, F32, 2)


def test_the_same_settings_have_the_same_stage(monkeypatch):
    """Unless it is too large, when each is made anew."""
    assert stage_of(5) is stage_of(5)
    assert stage_of(5) is not stage_of(6)
    monkeypatch.setattr(tuning, "MOST_OF_ONE", stage_of(6).nbytes)
    assert stage_of(6) is stage_of(6)
    assert stage_of(7) is not stage_of(7)


def test_all_together_are_bounded(monkeypatch):
    """In number and in bytes; what was used last is kept longest."""
    three = [stage_of(H) for H in (5, 6, 7)]
    monkeypatch.setattr(tuning, "MOST_STAGES", 3)
    assert stage_of(5) is three[0]

    stage_of(8)

    assert [stage_of(H) for H in (7, 5)] == [three[2], three[0]]
    assert stage_of(6) is not three[1]
    monkeypatch.setattr(tuning, "MOST_OF_ALL", stage_of(20).nbytes)
    stage_of(20)
    assert stage_of(5) is not three[0]


def test_threads_do_not_share():
    """Two threads may evaluate at once."""
    theirs = []
    other = Thread(target=lambda: theirs.append(stage_of(5)))
    other.start()
    other.join()

    assert stage_of(5) is not theirs[0]
