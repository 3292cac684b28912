"""Relations between sizes: units and inputs have no order, and what is not read has no effect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.metamorphic.node_call import (
    H,
    I,
    inverse,
    picked,
    picked_outputs,
    scattered,
)

if TYPE_CHECKING:
    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.ask import Ask
    from rnncli.metamorphic.node_call import NodeCall
    from rnncli.numerics import Array

# So many more: beyond vectors and blocks of 8, 16 and 32, and no multiple of any.
MORE = 37


def permuted_units(call: NodeCall, ask: Ask) -> Tensors:
    """Ask with the units in another order, in W, R, B, P and the states."""
    order = call.deranged(call.sizes[H], "units")
    return picked_outputs(call, ask(picked(call, H, order)), H, inverse(order))


def permuted_inputs(call: NodeCall, ask: Ask) -> Tensors:
    """Ask with the inputs of each step in another order, in X and W."""
    return ask(picked(call, I, call.deranged(call.sizes[I], "inputs")))


def more_units(call: NodeCall, ask: Ask) -> Tensors:
    """Ask with units of weight zero among the others, which nobody reads."""
    size = call.sizes[H] + MORE
    places = _places(call, H, size)
    wide = scattered(call, H, size, places)
    return picked_outputs(call, ask(replace(wide, id=call.id)), H, places)


def more_inputs(call: NodeCall, ask: Ask) -> Tensors:
    """Ask with inputs among the others that W weighs with zero."""
    size = call.sizes[I] + MORE
    places = _places(call, I, size)
    wide = scattered(call, I, size, places)
    X = wide.canonical("X").copy()
    unread = np.setdiff1d(np.arange(size), places)
    X[..., unread] = np.asarray(0.5 + unread % 3, X.dtype)
    return ask(wide.given_canonical("X", X))


def _places(call: NodeCall, symbol: str, size: int) -> Array:
    """Return where a size's positions stand in a larger one, in their order; one is the last."""
    others = call.shuffled(size - 1, f"more {symbol}")[: call.sizes[symbol] - 1]
    return np.append(np.sort(others), size - 1)
