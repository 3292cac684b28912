"""Relations between batches, whose sequences are independent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.verifying.relations.node_call import N, T, inverse, joined, picked, picked_outputs

if TYPE_CHECKING:
    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.verifying.relations.asking import Asker
    from rnncli.verifying.relations.node_call import NodeCall

# Sequences beyond the tiles and vectors of usual kernels, and not a multiple of any.
MANY = 37


def singles(call: NodeCall, ask: Asker) -> Tensors:
    """Call each sequence alone, including its padding."""
    return joined(call, [ask(picked(call, N, [n])) for n in range(call.sizes[N])], N)


def parts(call: NodeCall, ask: Asker) -> Tensors:
    """Call two parts of the batch, split off the middle."""
    count = call.sizes[N]
    cut = max(1, (2 * count) // 5)
    return joined(call, [ask(picked(call, N, some)) for some in _cut(count, cut)], N)


def permuted(call: NodeCall, ask: Asker) -> Tensors:
    """Call the sequences in another order."""
    order = call.deranged(call.sizes[N], "sequences")
    return picked_outputs(call, ask(picked(call, N, order)), N, inverse(order))


def repeated(call: NodeCall, ask: Asker) -> Tensors:
    """Call a larger batch of shuffled copies; read each sequence from another copy."""
    count = call.sizes[N]
    copies = np.arange(MANY + count) % count
    order = call.shuffled(len(copies), "copies")
    found = ask(picked(call, N, copies[order]))
    # The last copy of each sequence: the first ones are the most likely to be right.
    places = inverse(order)
    last = [max(places[copies == n]) for n in range(count)]
    return picked_outputs(call, found, N, last)


def without_padding(call: NodeCall, ask: Asker) -> Tensors:
    """Call each sequence alone, cut to its length; length 0 keeps one step of padding."""
    return joined(call, [_alone(call, ask, n) for n in range(call.sizes[N])], N)


def _alone(call: NodeCall, ask: Asker, n: int) -> Tensors:
    length, whole = int(call.lengths[n]), call.sizes[T]
    one = picked(call, N, [n])
    cut = picked(one, T, range(max(length, 1)))
    found = ask(cut)
    return {
        name: padded(call, name, values, whole) if name == y_name(call) else values
        for name, values in found.items()
    }


def padded(call: NodeCall, name: str, values: Array, steps: int) -> Array:
    """Extend an output to a number of steps with zeros."""
    (row,) = (row for row in call.row.outputs if row.name == name)
    widths = [(0, 0)] * values.ndim
    for axis, dim in enumerate(call.dims(row)):
        if dim.symbol == T:
            widths[axis] = (0, steps - values.shape[axis])
    return np.pad(values, widths)


def y_name(call: NodeCall) -> str:
    """Return the name of the output with every step."""
    row = call.named("Y")
    assert row is not None
    return row.name


def _cut(count: int, at: int) -> list[range]:
    return [range(at), range(at, count)]
