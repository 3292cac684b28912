"""Records: the manifest entries of cases."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from rnncli.files.paths import Identifier
from rnncli.operators.checking import opset_of
from rnncli.packs.record import (
    CallRecord,
    Golden,
    RequirementsRecord,
    Scalars,
    VisibleSteps,
    record_of_node,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rnncli.errors import Problem
    from rnncli.generating.horizon import Horizon
    from rnncli.generating.stack import CaseContent, CaseSource, OperatorUse
    from rnncli.packs.record import CaseRecord, WeightsPlace


def record_of(
    entry: CaseSource,
    shared: CaseRecord,
    *,
    proof: tuple[int, int],
    alternatives: Collection[str],
    is_portable: bool,
    lines: Mapping[str, tuple[float, float]],
    horizon: Horizon | None,
    signals: Collection[str],
) -> CaseRecord:
    """Return the record of a case that must run; see `packs.record.CaseRecord`.

    Args:
        entry: an entry of a stack.
        shared: what all records of the stack have, see `shared_record`.
        proof: bits and passes of its golden's proof; 0 bits if it was not proved.
        alternatives: `READING=CHOICE` of each alternative answer.
        is_portable: whether no NaN is read.
        lines: (rtol, atol) of each output, by name.
        horizon: the steps for which an input must be, and is, visible; None if none is claimed.
        signals: the names of the signals of every step that are stored.
    """
    bits, passes = proof
    names = dict.fromkeys(each.partition("=")[0] for each in alternatives)
    tags = [f"reading:{name}" for name in names]
    return replace(
        shared,
        id=entry.id,
        flags=list(entry.flags),
        tags=tags if is_portable else [*tags, "non-portable"],
        alternatives=[*map(Identifier, alternatives)],
        golden=Golden("certified", bits, passes) if bits else Golden("float64"),
        tolerance={name: Scalars(*line) for name, line in lines.items()},
        horizon=VisibleSteps(*horizon) if horizon else UNSET,
        steps=[*map(Identifier, signals)] or UNSET,
    )


def with_later_calls(first: CaseRecord, later: Sequence[CaseRecord]) -> CaseRecord:
    """Return the record of a case with several calls; it has the tags of all of them."""
    every = (first, *later)
    largest = max(record.requirements.largest_size for record in every)
    horizons = [record.horizon for record in every if record.horizon is not UNSET]
    return replace(
        first,
        tags=[*dict.fromkeys(tag for record in every for tag in record.tags)],
        requirements=replace(first.requirements, largest_size=largest),
        horizon=min(horizons, key=attrgetter("measured"), default=UNSET),
        later_calls=[
            CallRecord(
                sizes=UNSET if each.sizes == first.sizes else each.sizes,
                alternatives=each.alternatives,
                golden=each.golden,
                tolerance=each.tolerance,
            )
            for each in later
        ],
    )


def shared_record(entry: CaseSource, case: CaseContent, inputs: Collection[str]) -> CaseRecord:
    """Return what the records of a stack's entries have in common."""
    return _whole(
        entry,
        case,
        *(case.node.attributes, inputs),
        requirements=requirements_of(entry.weights, case, inputs),
    )


def record_of_rejection(
    entry: CaseSource,
    case: CaseContent,
    broken: tuple[Mapping[str, Any], Collection[str]],
    inputs: Collection[str],
    problems: Sequence[Problem],
) -> CaseRecord:
    """Return the record of a case that must be refused, with the reason.

    `broken` has the attributes and the names of inputs of the invalid case, `inputs` those of the
    valid one.
    """
    return _whole(
        entry,
        case,
        *broken,
        requirements=requirements_of(entry.weights, case, inputs),
        expect="rejection",
        reason="; ".join(problem.sentence for problem in problems),
    )


def _whole(
    entry: CaseSource,
    case: CaseContent,
    attributes: Mapping[str, Any],
    inputs: Collection[str],
    **more: Any,
) -> CaseRecord:
    """Return a record without alternatives and tolerances."""
    return record_of_node(
        entry.id,
        case.node.operator,
        attributes=attributes,
        sizes=case.sizes,
        dtype=case.dtype.name,
        inputs=inputs,
        outputs=case.node.outputs,
        weights=entry.weights,
        readings=case.node.readings,
        unit=case.node.unit,
        summary=case.summary,
        seed=case.seed,
        flags=list(entry.flags),
        profile=entry.profile,
        **{name: True for name, given in entry.spelling._asdict().items() if given},
        **more,
    )


def requirements_of(
    weights: WeightsPlace, case: OperatorUse, inputs: Iterable[str]
) -> RequirementsRecord:
    """Return what an implementation must support, for the valid case."""
    node, operator, present = case.node, case.node.operator, set(inputs)
    defaults = {row.name: row.default for row in operator.attributes.values()}
    given = {name: v for name, v in node.attributes.items() if v is not None}
    return RequirementsRecord(
        opset=(node.unit and opset_of(operator)) or operator.version,
        dtype=case.dtype.name,
        direction=node.values["direction"],
        layout=node.layout,
        attributes=sorted(name for name, v in given.items() if v != defaults[name]),
        activations=sorted({each.name for row in node.activations for each in row}),
        inputs=[row.name for row in operator.inputs if row.optional and row.name in present],
        weights=weights,
        largest_size=max(case.sizes.values()),
    )
