"""Layouts: whatever the order of memory, the numbers of a product and of a projection."""

from __future__ import annotations

import numpy as np
import pytest

from rnncli.backends.in_place.memory_layouts import Columns, FewColumns, Rows, layout_for

SIZES = [(1, 9), (2, 4), (3, 64), (4, 97), (5, 128), (24, 100), (25, 6), (40, 64), (300, 8)]
G, K, STEPS = 3, 5, 4
DEPTHS = pytest.mark.parametrize("depth", [2, 1000])


@pytest.fixture(params=SIZES, ids=str)
def sizes(request):
    """N and H."""
    return request.param


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    """Of all numbers."""
    return np.dtype(request.param)


def numbers(dtype, *shape):
    """Small integers, whose products are exact in any order."""
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


@DEPTHS
def test_projection_is_the_product_of_all_steps(sizes, dtype, depth):
    """With and without a bias, for a whole block and for a shorter one, in one sum and in three."""
    N, H = sizes
    layout = layout_for(N, H, dtype, depth)
    X, W, bias = numbers(dtype, STEPS, N, K), numbers(dtype, G, H, K), numbers(dtype, G, H)
    wanted = np.einsum("snk,ghk->sgnh", X, W)
    out = layout.projection(STEPS, G, dtype)
    matrix = layout.matrix("W", W)
    for steps in (STEPS, STEPS - 1):
        for b in (None, bias):
            layout.project(X[:steps], matrix, b, out)
            found = layout.inputs(out)[:steps]
            right = wanted[:steps] if b is None else wanted[:steps] + b[:, None]
            np.testing.assert_array_equal(found, layout.units(right))


@DEPTHS
def test_product_is_that_of_every_gate(sizes, dtype, depth):
    """From an operand of a history, into some of the gates."""
    N, H = sizes
    layout = layout_for(N, H, dtype, depth)
    h, R = numbers(dtype, N, H), numbers(dtype, 2, H, H)
    history = layout.history(2, dtype)
    history[1] = h
    gates = np.zeros((G, *layout.unit), dtype)
    product = layout.product(gates[1:], gates[1:])
    product.load(layout.matrix("R", R))

    product(layout.operands(history)[1], np.zeros((1, *layout.unit), dtype))

    np.testing.assert_array_equal(gates[1:], layout.units(np.einsum("nk,ghk->gnh", h, R)))
    assert not gates[0].any()


def test_units_are_views(sizes, dtype):
    """What is written in the order of gates is there in the natural order."""
    N, H = sizes
    layout = layout_for(N, H, dtype)
    history = layout.history(3, dtype)
    values = numbers(dtype, 3, N, H)

    layout.units(history)[...] = layout.units(values)

    assert history.shape == (3, N, H)
    assert layout.units(history).shape == (3, *layout.unit)
    np.testing.assert_array_equal(history, values)


@pytest.mark.parametrize(
    ("N", "H", "wanted", "unit"),
    [
        (1, 256, FewColumns, (256, 1)),
        (2, 4, FewColumns, (4, 2)),
        (16, 256, Rows, (4, 16, 64)),
        (4, 64, Rows, (1, 4, 64)),
        (4, 97, Rows, (1, 4, 97)),
        (16, 100, Rows, (2, 16, 50)),
        (64, 512, Columns, (512, 64)),
    ],
)
def test_layout_is_chosen_by_the_batch(N, H, wanted, unit):
    """One sequence, tiny states and many sequences in columns; slices of decent width in rows."""
    layout = layout_for(N, H, np.dtype(np.float32))

    assert type(layout) is wanted
    assert layout.unit == unit


def test_weights_at_odd_addresses_are_aligned(sizes, dtype):
    """Those of a protobuf are; NumPy would copy them at every product."""
    W = numbers(dtype, G, sizes[1], K)
    odd = np.frombuffer(b" " + W.tobytes(), dtype, offset=1).reshape(W.shape)
    assert not odd.flags.aligned

    matrix = layout_for(*sizes, dtype).matrix(None, odd)

    assert matrix.flags.aligned
    np.testing.assert_array_equal(matrix, layout_for(*sizes, dtype).matrix(None, W))
