"""Stacks of cases that differ only in their random inputs, entries of a suite or captures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from rnncli.errors import InvalidRequest
from rnncli.operators.operator import PLAIN
from rnncli.packs.conversion import held_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.cases.case import Case
    from rnncli.cases.suite.suite import Entry
    from rnncli.numerics import Array, DType
    from rnncli.operators import Node
    from rnncli.operators.operator import Spelling


class OperatorUse(Protocol):
    """One use of an operator, with the features that an implementation must support."""

    @property
    def node(self) -> Node:
        """The operator with its attributes, requested outputs and every reading."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """seq_length, batch_size, input_size and hidden_size."""

    @property
    def dtype(self) -> DType:
        """The dtype of every floating-point tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedCase:
    """A case made from a capture, with its inputs."""

    id: str
    golden: str
    profile: str
    summary: str
    weights: str
    node: Node
    sizes: Mapping[str, int]
    dtype: DType
    inputs: dict[str, Array]
    steps: bool
    flags: tuple[str, ...]
    breakage: None = None
    calls: int = 1
    horizon: None = None
    spelling: Spelling = PLAIN
    seed: int = 0

    @property
    def structure(self) -> str:
        """A structure of its own: no other case shares it."""
        return self.id

    def case(self, call: int = 0) -> CapturedCase:
        """Return the case itself."""
        assert call == 0
        return self

    def stacked(self, names: Sequence[str]) -> dict[str, Array]:
        """Return its inputs, as a stack of one."""
        assert len(names) == 1
        return {name: values[None] for name, values in self.inputs.items()}


CaseSource: TypeAlias = "Entry | CapturedCase"
"""A case to be made."""
CaseContent: TypeAlias = "Case | CapturedCase"
"""One use of an operator with its inputs, which its source gives."""

# Limit on steps times the square of the units in a stack, so that it fits the cache.
TOGETHER = 1 << 15


class Stack(NamedTuple):
    """Some entries of one structure, at one call."""

    entries: Sequence[CaseSource]  # the n entries
    case: CaseContent  # the case of the first entry; the others differ only in inputs
    inputs: Mapping[str, Array]  # the inputs by name, [n, ...]
    call: int = 0  # the number of the data set

    @property
    def named(self) -> str:
        """The prefix of a message about a later call."""
        return f"call {self.call + 1}: " if self.call else ""

    def at_call(self, call: int) -> Stack:
        """Return the same entries at a later call, with the same initializers.

        Raises:
            InvalidRequest: its inputs are invalid.
        """
        case: Any = self.entries[0].case(call)
        inputs = case.stacked([entry.id for entry in self.entries], call, self.case)
        held = held_inputs(case.node.operator, self.entries[0].weights, inputs)
        inputs |= {name: self.inputs[name] for name in held}
        _check_lengths(case, inputs)
        later = self._replace(case=case, inputs=inputs, call=call)
        for k in range(len(self.entries)):
            pairs = ((self.inputs[name][k], values[k]) for name, values in inputs.items())
            if all(one.tobytes() == other.tobytes() for one, other in pairs):
                raise InvalidRequest(f"{later.named}every input is the same as in the first call")
        return later

    def inputs_at(self, k: int) -> dict[str, Array]:
        """Return the inputs of one entry."""
        return {name: values[k] for name, values in self.inputs.items()}


def groups(entries: Sequence[CaseSource]) -> list[list[CaseSource]]:
    """Group entries by structure, in order of appearance."""
    found: dict[object, list[CaseSource]] = {}
    for entry in entries:
        found.setdefault(entry.structure, []).append(entry)
    return [*found.values()]


def stacks(group: Sequence[CaseSource]) -> Iterator[Stack]:
    """Yield the stacks of a group; its case is read and checked once.

    Raises:
        InvalidRequest: a case is invalid.
    """
    case = group[0].case()
    names = ("seq_length", "batch_size", "hidden_size", "hidden_size")
    work = math.prod(case.sizes[name] for name in names)
    count = max(1, TOGETHER // max(1, work))
    for start in range(0, len(group), count):
        some = group[start : start + count]
        inputs = case.stacked([entry.id for entry in some])
        _check_lengths(case, inputs)
        yield Stack(some, case, inputs)


def _check_lengths(case: CaseContent, inputs: Mapping[str, Array]) -> None:
    """Check the values of lengths, for all entries and not only the first."""
    for row in case.node.operator.inputs:
        if row.role == "lengths" and row.name in inputs:
            lengths = inputs[row.name]
            if ((lengths < 0) | (lengths > case.sizes["seq_length"])).any():
                raise InvalidRequest(f"{row.name} has a length beyond the sequence")
