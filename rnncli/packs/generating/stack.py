"""Entries that are alike but for their random inputs, and what they have in common."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest
from rnncli.packs.conversion import held_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.packs.generating.source import Origin, Question

# Stacks hold about so many steps times the square of the units, so that they stay in the cache.
TOGETHER = 1 << 15


class Stack(NamedTuple):
    """Some entries of one structure, at one call.

    Attributes:
        entries: n of them.
        case: what the first asks; the others ask the same of other inputs.
        inputs: by name, [n, ...].
        call: which data set of them.
    """

    entries: Sequence[Origin]
    case: Question
    inputs: Mapping[str, Array]
    call: int = 0

    @property
    def named(self) -> str:
        """What a message says of a later call, before what is wrong with it."""
        return f"call {self.call + 1}: " if self.call else ""

    def at_call(self, call: int) -> Stack:
        """Return the same entries at a later call: inputs that the model holds stay.

        Raises:
            InvalidRequest: there is something wrong with its inputs.
        """
        inputs = self.case.stacked([entry.id for entry in self.entries], call)
        held = held_inputs(self.case.node.operator, self.entries[0].weights, inputs)
        inputs |= {name: self.inputs[name] for name in held}
        _check_lengths(self.case, inputs)
        later = self._replace(inputs=inputs, call=call)
        _refuse_repetition(self, later)
        return later

    def inputs_at(self, k: int) -> dict[str, Array]:
        """Return the inputs of one entry."""
        return {name: values[k] for name, values in self.inputs.items()}


def groups(entries: Sequence[Origin]) -> list[list[Origin]]:
    """Put entries of one structure together, in the order in which the first of each comes."""
    found: dict[object, list[Origin]] = {}
    for entry in entries:
        found.setdefault(entry.structure, []).append(entry)
    return [*found.values()]


def stacks(group: Sequence[Origin]) -> Iterator[Stack]:
    """Yield the stacks of a group: the case is read and checked once, each entry's inputs made.

    Raises:
        InvalidRequest: there is something wrong with a case.
    """
    case = group[0].case()
    count = max(1, TOGETHER // max(1, _work(case)))
    for start in range(0, len(group), count):
        some = group[start : start + count]
        inputs = case.stacked([entry.id for entry in some])
        _check_lengths(case, inputs)
        yield Stack(some, case, inputs)


def _refuse_repetition(first: Stack, later: Stack) -> None:
    """Refuse a later call that asks of any entry what the first call asks: nothing would show."""
    for k in range(len(first.entries)):
        pairs = ((first.inputs[name][k], values[k]) for name, values in later.inputs.items())
        if all(one.tobytes() == other.tobytes() for one, other in pairs):
            raise InvalidRequest(f"{later.named}every input is that of the first call")


def _work(case: Question) -> int:
    names = ("seq_length", "batch_size", "hidden_size", "hidden_size")
    return math.prod(case.sizes[name] for name in names)


def _check_lengths(case: Question, inputs: Mapping[str, Array]) -> None:
    """Check what the operator checks of values, not shapes: of other entries than the first too."""
    for row in case.node.operator.inputs:
        if row.role == "lengths" and row.name in inputs:
            lengths = inputs[row.name]
            if ((lengths < 0) | (lengths > case.sizes["seq_length"])).any():
                raise InvalidRequest(f"{row.name} holds a length beyond the sequence")
