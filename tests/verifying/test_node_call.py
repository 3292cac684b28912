"""Picking along a size, of which all transformations are made."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.random_cases import GATES
from kernels.relations import call_of
from support.tables import every

from rnncli.operators import OPERATORS, problems
from rnncli.verifying.node_call import (
    SIZES,
    D,
    H,
    I,
    N,
    T,
    inverse,
    joined,
    picked,
    picked_outputs,
    scattered,
)

CALLS = [call_of(cell, seed) for cell in GATES for seed in range(4)]


def counted(room):
    """Every element another number, as far as the dtype has so many."""
    return np.arange(room.size).reshape(room.shape).astype(room.dtype)


def same(one, other):
    """Whether two calls have the same inputs, bit for bit."""
    return {n: v.tobytes() for n, v in one.inputs.items()} == {
        n: v.tobytes() for n, v in other.inputs.items()
    }


@every("call", CALLS, ids=lambda call: call.id)
@every("symbol", [*SIZES, D])
def test_an_order_is_undone_by_its_inverse(call, symbol):
    """In every input."""
    order = call.deranged(call.size(symbol), "order")

    assert same(call, picked(picked(call, symbol, order), symbol, inverse(order)))


@every("call", CALLS, ids=lambda call: call.id)
@every("symbol", [N, H, I])
def test_what_was_scattered_is_picked_again(call, symbol):
    """Its places in the larger call hold the very bits."""
    size = call.sizes[symbol]
    places = np.arange(size) * 2 + 1
    wide = scattered(call, symbol, 2 * size + 1, places)

    assert wide.sizes[symbol] == 2 * size + 1
    assert same(call, picked(wide, symbol, places))


@every("call", CALLS, ids=lambda call: call.id)
@every("symbol", [N, H])
def test_parts_side_by_side_are_the_whole(call, symbol):
    """Of outputs as of inputs."""
    outputs = {name: counted(call.empty_output(name)) for name in call.outputs}
    size = call.size(symbol)
    cuts = [range(size // 2), range(size // 2, size)]
    parts = [picked_outputs(call, outputs, symbol, cut) for cut in cuts]

    assert {n: v.tobytes() for n, v in outputs.items()} == {
        n: v.tobytes() for n, v in joined(call, parts, symbol).items()
    }


@pytest.mark.parametrize("size", [2, 3, 5, 64])
def test_a_derangement_keeps_no_place(size):
    """One that keeps the last place would leave a tail where it is."""
    order = CALLS[0].deranged(size, "any")

    assert sorted(order) == [*range(size)]
    assert (order != np.arange(size)).all()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)
def test_what_was_picked_breaks_no_rule(call):
    """A half of every size is a valid node still."""
    row = OPERATORS[call.operator]
    for symbol in (N, H, I, T):
        half = picked(call, symbol, range((call.sizes[symbol] + 1) // 2))
        kept = half.with_input("lengths", np.minimum(half.lengths, half.sizes[T]))

        assert [] == [*problems(row, kept.attributes, kept.inputs, kept.outputs)]
