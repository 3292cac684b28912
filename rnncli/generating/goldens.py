"""Stacks of cases, and their goldens, under their own readings and under others, with their proofs.

The cases of a stack, entries of a suite or captures, differ only in their random inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.reference import NumPyEngine, evaluate, exact
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.numerics import FLOAT64, dtype_named, dtype_of
from rnncli.operators.operator import PLAIN
from rnncli.packs.vector import held_inputs
from rnncli.recurrence.readings import READINGS, must_be_declared
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.cases.case import Case
    from rnncli.cases.suite.suite import Entry
    from rnncli.numerics import Array, DType
    from rnncli.operators import Node
    from rnncli.operators.operator import Spelling
    from rnncli.recurrence.recurrence import Recurrence


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
    def input_types(self) -> dict[str, tuple[DType, tuple[int, ...]]]:
        """The element type and shape of every input."""
        return {name: (dtype_of(each), each.shape) for name, each in self.inputs.items()}

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
    work = math.prod(size for name, size in case.sizes.items() if name != "input_size")
    work *= case.sizes.get("hidden_size", 1)
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


ARRAYS = ("X", "W", "R", "Wb", "Rb", "P", "lengths")


@dataclass(slots=True, eq=False)
class Solution:
    """A stack of n recurrences and their goldens."""

    recurrence: Recurrence  # the stack
    golden: Result  # the results; every array has n in front
    # bits and passes of each golden's proof; 0 bits if it was not proved
    proofs: Sequence[tuple[int, int]]
    # how far results may be from the goldens, derived for many solutions at once
    tolerance: Result = field(init=False)

    def alone(self, k: int) -> tuple[Recurrence, Result]:
        """Return one recurrence and its golden."""
        last = tuple(state[k] for state in self.golden.last)
        Y, signals = self.golden.Y, self.golden.signals
        alone = Result(None if Y is None else Y[k], last)
        alone.signals = None if signals is None else signals[:, k]
        return recurrence_at(self.recurrence, k), alone


def solve(recurrence: Recurrence, kind: str, *, wants_signals: bool = False) -> Solution:
    """Return the goldens of a stack by a row of `KINDS`; equal values have equal bits.

    The signals of every step, if wanted, are [signals, n, T, D, N, H].

    Raises:
        Unsupported: an element cannot be proved.
    """
    found, proofs = KINDS[kind].make(recurrence, wants_signals)
    golden = Result(
        None if found.Y is None else _canonical(found.Y),
        tuple(map(_canonical, found.last)),
        signals=None if found.signals is None else _canonical(found.signals),
    )
    return Solution(recurrence, golden, proofs)


def differing(one: tuple[Node, Result], other: tuple[Node, Result]) -> Array:
    """Return which results of a stack differ in any bit of a requested output, [n].

    Each is given with its node, which differ in their readings.
    """
    made, wanted = (node.outputs_of(result) for node, result in (one, other))
    unequal = [_bytes(made[name]) != _bytes(wanted[name]) for name in made]
    return np.asarray(np.any([rows.any(axis=1) for rows in unequal], axis=0))


def _bytes(values: Array) -> Array:
    """Return the bytes of each result of a stack, [n, bytes]."""
    flat = np.ascontiguousarray(values).reshape(len(values), values[0].size)
    return flat.view(np.uint8)


def _rounded(recurrence: Recurrence, wants_signals: bool) -> tuple[Result, list[tuple[int, int]]]:
    """Evaluate in float64 and round once."""
    found = evaluate(recurrence, NumPyEngine(FLOAT64), wants_signals=wants_signals)
    return found, [(0, 1)] * len(recurrence.X)


def _proved(stack: Recurrence, wants_signals: bool) -> tuple[Result, list[tuple[int, int]]]:
    """Prove each recurrence of a stack."""
    if (known := exact(stack, wants_signals=wants_signals)) is not None:
        return known, [(known.bits, known.passes)] * len(stack.X)
    backend: Any = backend_named("certified")
    found: list[Any] = []
    for k in range(len(stack.X)):
        recurrence = recurrence_at(stack, k)
        if reason := backend.supports(recurrence, Compute.FLOAT64):
            raise Unsupported(f"golden: certified {reason}; a case may say golden: float64")
        found.append(backend.prove(recurrence, wants_signals=wants_signals))
    Y = np.stack([each.Y for each in found]) if stack.wants_Y else None
    last = zip(*(each.last for each in found), strict=True)
    whole = Result(Y, tuple(map(np.stack, last)))
    if any(each.signals is not None for each in found):
        whole.signals = np.stack([each.signals for each in found], axis=1)
    return whole, [(each.bits, each.passes) for each in found]


class GoldenKind(NamedTuple):
    """A way to compute a stack's results, with signals or without, and their proofs."""

    backend: str
    make: Callable[[Recurrence, bool], tuple[Result, list[tuple[int, int]]]]


KINDS: Mapping[str, GoldenKind] = {
    "certified": GoldenKind("certified", _proved),
    "float64": GoldenKind("reference", _rounded),
}


def require(kind: str) -> None:
    """Check beforehand that goldens can be computed.

    Raises:
        Unsupported: an extra is not installed; tells how to install it, and what needs none.
    """
    try:
        backend_named(KINDS[kind].backend)
    except Unsupported as error:
        raise Unsupported(
            f"{error}; --golden float64, or golden: float64 in a suite, needs no extra"
        ) from error


def recurrence_at(stack: Recurrence, k: int) -> Recurrence:
    """Return one recurrence of a stack."""
    arrays: dict[str, Any] = {
        name: None if (values := getattr(stack, name)) is None else values[k] for name in ARRAYS
    }
    initial = tuple(None if state is None else state[k] for state in stack.initial)
    quantiser = None if stack.quantiser is None else stack.quantiser.at(k)
    return replace(stack, initial=initial, quantiser=quantiser, **arrays)


def _canonical(values: Array) -> Array:
    """Return values with equal bits for equal values: +0 for zeros, one quiet NaN for NaN."""
    kind = values.dtype.type
    if values.dtype.kind == "i":
        return values
    numbers = np.where(values == 0, kind(0), values)
    return np.where(np.isnan(numbers), abs(kind(np.nan)), numbers)


class Draft(NamedTuple):
    """A stack without its tolerances."""

    stack: Stack  # the stack
    # the solutions under the case's own readings, "", and under `READING=CHOICE` of every other
    # reading that changes some result, or must be declared; none for a stack that must be refused
    solutions: Mapping[str, Solution]
    rows: Mapping[str, Array]  # for each solution, mask of the entries whose results it changes [n]
    later: Sequence[Draft] = ()  # the drafts of the same entries at their later calls

    @property
    def calls(self) -> Sequence[Draft]:
        """The drafts of all calls, this one first."""
        return (self, *self.later)


def draft_of(stack: Stack) -> Draft:
    """Solve a stack and its later calls, unless it must be refused."""
    if stack.entries[0].breakage:
        return Draft(stack, {}, {})
    later = [_draft(stack.at_call(call)) for call in range(1, stack.entries[0].calls)]
    return _draft(stack)._replace(later=later)


def _draft(stack: Stack) -> Draft:
    node = stack.case.node
    own = _solve(stack, node, wants_signals=stack.entries[0].steps)
    solutions, rows = {"": own}, {"": np.ones(len(stack.entries), np.bool_)}
    for name, readings in other_readings(node, own.recurrence):
        other = node.under(readings)
        is_proved = must_be_declared(name) and other.inner_levels == node.inner_levels
        try:
            solution = own if is_proved else _solve(stack, other)  # of which levels alone differ
        except Unsupported:
            if own.recurrence.options.integers is None:
                raise
            continue  # which gives no result for these scales
        differs = differing((other, solution.golden), (node, own.golden))
        if differs.any() or must_be_declared(name):
            solutions[name], rows[name] = solution, differs
    return Draft(stack, solutions, rows)


def _solve(stack: Stack, node: Node, *, wants_signals: bool = False) -> Solution:
    """Solve a stack; a unit's results are in float64, so that no level is rounded twice."""
    recurrence, kind = node.recurrence(stack.inputs), stack.entries[0].golden
    if not node.unit:
        return solve(recurrence, kind, wants_signals=wants_signals)
    if kind != "certified":
        raise InvalidRequest(f"levels of a quantised unit are proved, and not golden: {kind}")
    wide = replace(recurrence, dtype=dtype_named("float64"))
    solution = solve(wide, kind, wants_signals=wants_signals)
    return replace(solution, recurrence=recurrence)


Test: TypeAlias = "Callable[[Node, Recurrence], bool]"


def _has_empty_sequence(_: Node, recurrence: Recurrence) -> bool:
    lengths = recurrence.lengths
    return recurrence.X.shape[-3] == 0 or (lengths is not None and bool((lengths == 0).any()))


def _has_threshold(_: Node, recurrence: Recurrence) -> bool:
    names = {activation.name for row in recurrence.activations for activation in row}
    return "ThresholdedRelu" in names


# Reading -> the condition under which it may matter; a reading without one always may.
MAY_MATTER: Mapping[str, Test] = {
    "alpha-order": lambda node, _: bool(
        node.values["activation_alpha"] or node.values["activation_beta"]
    ),
    "clip-scope": lambda _, recurrence: math.isfinite(recurrence.clip),
    "zero-length": _has_empty_sequence,
    "threshold-tie": _has_threshold,
    "peephole-o": lambda _, recurrence: recurrence.P is not None,
}


def other_readings(node: Node, recurrence: Recurrence) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield (`READING=CHOICE`, all readings) for every single choice that may change the result.

    Of choices by which a unit rounds the same to the same levels, the first is yielded. The
    recurrence is the node's under its own readings, or a stack of such.
    """
    for name, chosen in node.readings.items():
        test = MAY_MATTER.get(name)
        if test is None or test(node, recurrence):
            for choice in READINGS[name].choices:
                each = f"{name}={choice}"
                if choice not in {chosen, *READINGS[name].unstored} and (
                    node.roundings.get(each, each) == each
                ):
                    yield each, {**node.readings, name: choice}
