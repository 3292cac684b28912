"""A node called on parts of its steps, each direction beginning where it ended in another part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnncli.recurrence.recurrence import Direction
from rnncli.verifying.node_call import NodeCall, T, picked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array

# Initial states, and the outputs that hold their final values.
STATES = {"initial_h": "Y_h", "initial_c": "Y_c"}


@dataclass(frozen=True, eq=False)
class NodeParts:
    """A node's call, made on successive parts of its steps.

    A sequence without a step in a later part gets one there that is not counted, since the result
    of length 0 is contested. Forward states are carried from the first part to the last, reverse
    ones from the last to the first, so a bidirectional node is called twice on all parts but one.
    """

    call: NodeCall
    parts: Sequence[range]

    def streamed(self, run: Callable[[NodeCall], Tensors]) -> Tensors:
        """Return the outputs of the whole, given what runs a call."""
        whole, lengths = self.call.with_all_outputs(), self.call.lengths
        backward = np.array([each is Direction.REVERSE for each in whole.node.directions])
        calls = [_part(whole, steps) for steps in self.parts]
        made: dict[int, Tensors] = {}
        places = range(len(calls))
        to_the_first = places[::-1] if backward.any() else places[:1]
        for k in (*to_the_first, *(() if backward.all() else places[1:])):
            call, steps = calls[k], self.parts[k]
            if k + 1 in made:
                call = _carried(call, made[k + 1], backward, lengths > steps.stop)
            if k - 1 in made:
                call = _carried(call, made[k - 1], ~backward, lengths > steps.start)
            made[k] = run(call)
        merged = self._merged(whole, [made[k] for k in places], backward)
        return {name: merged[name] for name in self.call.outputs}

    def _merged(self, call: NodeCall, made: Sequence[Tensors], backward: Array) -> Tensors:
        known = call.valid | (np.arange(call.steps) < self.parts[0].stop)[:, None]
        merged = {}
        for name in made[0]:
            values, *others = (call.node.canonical(name, each[name]) for each in made)
            if name == call.tensor("Y").name:
                joined = np.concatenate([values, *others])
                values = np.where(known[:, None, :, None], joined, np.zeros_like(joined))
            else:  # a sequence ends in the last part that has a step of it, reversed in the first
                for steps, later in zip(self.parts[1:], others, strict=True):
                    ends_later = ~backward[:, None] & (call.lengths > steps.start)
                    values = np.where(ends_later[..., None], later, values)
            merged[name] = call.node.in_layout(name, values)
        return merged


def _part(call: NodeCall, steps: range) -> NodeCall:
    part = picked(call, T, steps)
    if call.get("lengths") is None:
        return part
    least = min(steps.start, 1)
    return part.with_input("lengths", np.clip(call.lengths - steps.start, least, len(steps)))


def _carried(call: NodeCall, outputs: Tensors, directions: Array, live: Array) -> NodeCall:
    """Return a call that starts, in some directions and sequences, from the end of another.

    Args:
        call: the call to continue with.
        outputs: outputs of the other part.
        directions: the directions that take them, [D].
        live: the sequences whose states are taken, [N].
    """
    taken = directions[:, None, None] & live[:, None]
    for initial, final in STATES.items():
        row = call.named(final)
        if row is None:
            continue
        end = call.node.canonical(row.name, outputs[row.name])
        begin = call.canonical(initial) if call.get(initial) is not None else np.zeros_like(end)
        call = call.with_canonical(initial, np.where(taken, end, begin))
    return call
