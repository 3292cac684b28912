"""Relations between sizes: units and inputs have no order, and unread ones have no effect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.verifying.relations.node_call import (
    H,
    I,
    inverse,
    picked,
    picked_outputs,
    scattered,
)

if TYPE_CHECKING:
    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.verifying.relations.asking import Asker
    from rnncli.verifying.relations.node_call import NodeCall

# Added units or inputs: more than vectors and blocks of 8, 16 and 32, and not a multiple of any.
MORE = 37


def permuted_units(call: NodeCall, ask: Asker) -> Tensors:
    """Call with the units in another order, in W, R, B, P and the states."""
    order = call.deranged(call.sizes[H], "units")
    return picked_outputs(call, ask(picked(call, H, order)), H, inverse(order))


def permuted_inputs(call: NodeCall, ask: Asker) -> Tensors:
    """Call with the inputs of each step in another order, in X and W."""
    return ask(picked(call, I, call.deranged(call.sizes[I], "inputs")))


def more_units(call: NodeCall, ask: Asker) -> Tensors:
    """Call with additional units of weight zero, which are never read."""
    size = call.sizes[H] + MORE
    places = _places(call, H, size)
    wide = scattered(call, H, size, places)
    return picked_outputs(call, ask(replace(wide, id=call.id)), H, places)


def more_inputs(call: NodeCall, ask: Asker) -> Tensors:
    """Call with additional inputs whose weights in W are zero."""
    size = call.sizes[I] + MORE
    places = _places(call, I, size)
    wide = scattered(call, I, size, places)
    X = wide.canonical("X").copy()
    unread = np.setdiff1d(np.arange(size), places)
    X[..., unread] = np.asarray(0.5 + unread % 3, X.dtype)
    return ask(wide.with_canonical("X", X))


def _places(call: NodeCall, symbol: str, size: int) -> Array:
    """Return increasing positions of a size within a larger one, the last included."""
    others = call.shuffled(size - 1, f"more {symbol}")[: call.sizes[symbol] - 1]
    return np.append(np.sort(others), size - 1)
