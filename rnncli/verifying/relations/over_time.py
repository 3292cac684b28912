"""Relations over time: carried states, padding and the direction of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.numerics.randomness import seed_key, uniform
from rnncli.recurrence.lanes import in_order
from rnncli.recurrence.recurrence import Direction
from rnncli.verifying.relations.both_directions import of_directions
from rnncli.verifying.relations.node_call import D, N, T, picked, picked_outputs
from rnncli.verifying.relations.sequences import y_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.verifying.relations.asking import Asker
    from rnncli.verifying.relations.node_call import NodeCall

# Initial states, and the outputs that hold their final values.
STATES = {"initial_h": "Y_h", "initial_c": "Y_c"}
# The number of added padding steps.
MORE = 19
TURNED = {"forward": "reverse", "reverse": "forward", "bidirectional": "bidirectional"}


def other_padding(call: NodeCall, ask: Asker) -> Tensors:
    """Call with other numbers in the padding."""
    X = call.canonical("X")
    key = seed_key(0, call.id, "padding")
    return ask(_with_padding(call, uniform([key], X.shape, -8.0, 8.0)[0].astype(X.dtype)))


def nan_padding(call: NodeCall, ask: Asker) -> Tensors:
    """Call with NaN in the padding."""
    X = call.canonical("X")
    return ask(_with_padding(call, np.full(X.shape, np.nan, X.dtype)))


def _with_padding(call: NodeCall, padding: Array) -> NodeCall:
    valid = _valid(call.lengths, call.sizes[T])
    return call.with_canonical("X", np.where(valid[..., None], call.canonical("X"), padding))


def _valid(lengths: Array, steps: int) -> Array:
    """Return which steps are not padding, [T, N]."""
    return np.asarray(np.arange(steps)[:, None] < lengths)


def longer(call: NodeCall, ask: Asker) -> Tensors:
    """Call with more padding after all sequences."""
    X = call.canonical("X")
    more = np.concatenate([X, np.full((MORE, *X.shape[1:]), 3, X.dtype)])
    found = ask(call.with_canonical("X", more).with_lengths(call.lengths))
    name = y_name(call)
    return {
        **found,
        **picked_outputs(call, _only(found, name), T, range(call.sizes[T])),
    }


def _only(outputs: Tensors, name: str) -> Tensors:
    return {name: outputs[name]} if name in outputs else {}


def reversed_time(call: NodeCall, ask: Asker) -> Tensors:
    """Call the opposite direction on the reversed steps."""
    swapped = range(call.size(D))[::-1]
    turned = of_directions(call, swapped, TURNED[call.node.values["direction"]])
    X = in_order(call.canonical("X"), call.lengths, Direction.REVERSE)
    found = picked_outputs(call, ask(turned.with_canonical("X", X)), D, swapped)
    name = y_name(call)
    if name not in found:
        return found
    Y = call.node.canonical(name, found[name])
    steps = in_order(Y.swapaxes(1, 2), call.lengths, Direction.REVERSE).swapaxes(1, 2)
    return {**found, name: call.node.in_layout(name, steps)}


def split(call: NodeCall, ask: Asker) -> Tensors:
    """Call the first steps and the last steps separately, carrying the states over."""
    cut = max(1, (2 * call.sizes[T]) // 5)
    whole = call.with_all_outputs()
    first, last = _chained(whole, cut, ask)
    merged = _merged(whole, first, last, cut)
    return {name: merged[name] for name in call.outputs}


def _part(call: NodeCall, steps: range, lengths: Array) -> NodeCall:
    part = picked(call, T, steps)
    return part if call.get("lengths") is None else part.with_lengths(lengths)


def _chained(call: NodeCall, cut: int, ask: Asker) -> tuple[Tensors, Tensors]:
    """Return the outputs of both parts; each direction starts from the part before it.

    A sequence without a step in the last part gets one there that is not counted, since the result
    of length 0 is contested. A bidirectional node needs three calls: its reverse direction carries
    states from the last steps to the first, its forward direction from the first to the last.
    """
    lengths, steps = call.lengths, call.sizes[T]
    early = _part(call, range(cut), np.minimum(lengths, cut))
    late = _part(call, range(cut, steps), np.maximum(lengths - cut, 1))
    backward = _backward(call)
    last = ask(late) if backward.any() else {}
    first = ask(_carried(early, last, backward, lengths > cut))
    if not backward.all():
        last = ask(_carried(late, first, ~backward, lengths > cut))
    return first, last


def _backward(call: NodeCall) -> Array:
    return np.array([each is Direction.REVERSE for each in call.node.directions])


def _carried(call: NodeCall, outputs: Tensors, directions: Array, live: Array) -> NodeCall:
    """Return a call that starts, in some directions and sequences, from the end of another.

    Args:
        call: the call to continue with.
        outputs: outputs of the other part; empty if no direction takes any.
        directions: the directions that take them, [D].
        live: the sequences whose states are taken, [N].
    """
    if not directions.any():
        return call
    taken = directions[:, None, None] & live[:, None]
    for initial, final in STATES.items():
        row = call.named(final)
        if row is None:
            continue
        end = call.node.canonical(row.name, outputs[row.name])
        begin = call.canonical(initial) if call.get(initial) is not None else np.zeros_like(end)
        call = call.with_canonical(initial, np.where(taken, end, begin))
    return call


def _merged(call: NodeCall, first: Tensors, last: Tensors, cut: int) -> Tensors:
    """Return the outputs of both parts as outputs of one call."""
    # A direction ends at the first steps if it is reversed, otherwise at the sequence's last.
    ends_early = _backward(call)[:, None] | (call.lengths <= cut)[None]
    name = y_name(call)
    a, b = (call.node.canonical(name, part[name]) for part in (first, last))
    live = _valid(call.lengths, call.sizes[T])[cut:, None, :, None]
    merged = {name: np.concatenate([a, np.where(live, b, np.zeros_like(b))])}
    merged |= {
        row.name: np.where(
            ends_early[..., None],
            *(call.node.canonical(row.name, part[row.name]) for part in (first, last)),
        )
        for row in map(call.named, STATES.values())
        if row is not None
    }
    return {name: call.node.in_layout(name, values) for name, values in merged.items()}


def last_of_Y(call: NodeCall, ask: Asker) -> Tensors:
    """Take Y_h from Y: the state after each sequence's last step."""
    found: Mapping[str, Array] = ask(call)
    Y = call.node.canonical(y_name(call), found[y_name(call)])
    row = call.named("Y_h")
    assert row is not None
    last = np.empty_like(call.node.canonical(row.name, found[row.name]))
    for d, direction in enumerate(call.node.directions):
        ends = call.lengths - 1 if direction is Direction.FORWARD else np.zeros_like(call.lengths)
        last[d] = Y[ends, d, np.arange(call.sizes[N])]
    return {row.name: call.node.in_layout(row.name, last)}
