"""Judging one relation on one case."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.comparing.margins import errors_of
from rnncli.metamorphic.ask import InapplicableError
from rnncli.metamorphic.asking import GarbledError, UnansweredError
from rnncli.metamorphic.bounds import Closeness, closeness_of
from rnncli.metamorphic.node_call import D, H, N, T
from rnncli.metamorphic.relations import BIT
from rnncli.metamorphic.verdict import ENDED, Difference, RelationStatus, RelationVerdict
from rnncli.operators.node import CANONICAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.asking import Asker
    from rnncli.metamorphic.node_call import NodeCall
    from rnncli.metamorphic.relations import Relation
    from rnncli.numerics import Array

# The names of axes in messages.
AXES = {T: "t", D: "direction", N: "sequence", H: "unit"}
UNTRANSFORMED = ""
CONSTANT = "each output is one number throughout, which any transformation keeps"


class JudgedCall:
    """A case with its own outputs and the allowed distance of related ones.

    Args:
        call: the case.
        outputs: its outputs.
        profile: the profile for the bounds.
    """

    def __init__(self, call: NodeCall, outputs: Tensors, profile: str) -> None:
        self.call, self.outputs, self._profile = call, outputs, profile

    @cached_property
    def closeness(self) -> Closeness:
        """The bounds for all relations, computed when first needed."""
        return closeness_of(self.call, self.outputs, self._profile)

    @cached_property
    def same_bits(self) -> Closeness:
        """The bounds for relations that demand equal bits."""
        return Closeness(BIT, {name: np.zeros(v.shape) for name, v in self.outputs.items()})

    def allowed(self, relation: Relation) -> Closeness:
        """Return the allowed distance for a relation."""
        return self.same_bits if relation.equality == BIT else self.closeness


def judge_call(
    call: NodeCall, relations: Iterable[Relation], asker: Asker, profile: str
) -> Iterator[RelationVerdict]:
    """Judge relations on one case; a case without outputs of its own gets a single verdict."""
    applying = []
    for relation in relations:
        if reason := relation.obstacle(call):
            yield RelationVerdict(call.id, relation.name, RelationStatus.NOT_APPLICABLE, reason)
        else:
            applying.append(relation)
    if not applying:
        return
    asker.seconds = 0.0
    try:
        case = JudgedCall(call, asker(call), profile)
    except (UnansweredError, GarbledError, InapplicableError) as error:
        yield _unanswered(call, UNTRANSFORMED, error, asker.seconds)
        return
    for relation in applying:
        yield judge_relation(case, relation, asker)


def judge_relation(case: JudgedCall, relation: Relation, asker: Asker) -> RelationVerdict:
    """Judge one relation on a case that has outputs."""
    asker.seconds = 0.0
    try:
        related = relation.answer(case.call, asker)
    except (UnansweredError, GarbledError, InapplicableError) as error:
        return _unanswered(case.call, relation.name, error, asker.seconds)
    return _compared(case, relation, related, asker.seconds)


def _unanswered(call: NodeCall, relation: str, error: Exception, seconds: float) -> RelationVerdict:
    status = RelationStatus.BROKEN
    if isinstance(error, InapplicableError):
        status = RelationStatus.NOT_APPLICABLE
    elif isinstance(error, UnansweredError):
        status = ENDED[error.attempt.status]
    return RelationVerdict(call.id, relation, status, str(error), seconds=seconds)


def _compared(
    case: JudgedCall, relation: Relation, related: Tensors, seconds: float
) -> RelationVerdict:
    closeness = case.allowed(relation)
    margins = {
        name: _margins(case.outputs[name], values, closeness.allowed[name], closeness.kind)
        for name, values in related.items()
    }
    judged = sum(int(np.count_nonzero(~np.isnan(each))) for each in margins.values())
    of = sum(each.size for each in margins.values())
    wrong = next((name for name, each in margins.items() if (each > 1).any()), None)
    if wrong is None and (why := _shows_nothing(case.outputs, judged, of)):
        return RelationVerdict(
            case.call.id, relation.name, RelationStatus.NOT_JUDGED, why, of=of, seconds=seconds
        )
    return RelationVerdict(
        case.call.id,
        relation.name,
        RelationStatus.HOLDS if wrong is None else RelationStatus.BROKEN,
        equality=closeness.kind,
        elements=judged,
        of=of,
        margin=max(float(np.nanmax(each, initial=0.0)) for each in margins.values()),
        difference=None if wrong is None else _first(case, wrong, related, margins, closeness),
        seconds=seconds,
    )


def _shows_nothing(outputs: Tensors, judged: int, of: int) -> str:
    """Return the reason that equal elements would show nothing, or ""."""
    if not judged:
        return "no element can be told right from wrong" if of else "no output has an element"
    several = [each for each in outputs.values() if each.size > 1]
    # If no output has two elements, all outputs together may have.
    return CONSTANT if _is_constant(several or [*outputs.values()], together=not several) else ""


def _is_constant(outputs: Sequence[Array], *, together: bool) -> bool:
    """Whether each output, or all together, hold one repeated number; False for one element."""
    numbers = [each.astype(np.float64).ravel() for each in outputs]
    groups = [np.concatenate(numbers)] if together else numbers
    return all(each.size > 1 and np.array_equal(each, np.roll(each, 1), True) for each in groups)


def _margins(alone: Array, related: Array, allowed: Array, equality: str) -> Array:
    """Return distances as fractions of the allowed ones; NaN where nothing is judged."""
    if equality == BIT:
        return np.where(_same_bits(alone, related), 0.0, np.inf)
    margins = errors_of(related, alone, np.nan_to_num(allowed)).margin
    margins[np.isnan(allowed)] = np.nan
    return margins


def _same_bits(one: Array, other: Array) -> Array:
    """Return which elements have the same bits or are both NaN."""
    a, b = (np.ascontiguousarray(each) for each in (one, other))
    unsigned = f"u{a.dtype.itemsize}"
    both_nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return np.asarray((a.view(unsigned) == b.view(unsigned)) | both_nan)


def _first(
    case: JudgedCall, name: str, related: Tensors, margins: Tensors, closeness: Closeness
) -> Difference:
    """Return the first differing element by time, then direction, sequence and unit."""
    call = case.call
    (row,) = (row for row in call.row.outputs if row.name == name)
    wrong = margins[name] > 1
    canonical = call.node.canonical(name, wrong)
    axes = [AXES[dim.symbol] for dim in CANONICAL[row.role]]
    position = np.unravel_index(int(np.argmax(canonical)), canonical.shape)
    where = np.zeros(canonical.shape, np.bool_)
    where[position] = True
    index = tuple(map(int, np.argwhere(call.node.in_layout(name, where))[0]))
    return Difference(
        output=name,
        place={axis: int(k) for axis, k in zip(axes, position, strict=True)},
        index=index,
        alone=float(case.outputs[name][index]),
        related=float(related[name][index]),
        allowed=float(closeness.allowed[name][index]),
        count=int(np.count_nonzero(wrong)),
    )
