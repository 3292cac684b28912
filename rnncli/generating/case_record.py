"""Records: the manifest entries of cases."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rnncli.operators.unit import opset_of
from rnncli.packs.record import OF_A_CALL, CaseRecord, node_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rnncli.errors import Problem
    from rnncli.generating.horizon import Horizon
    from rnncli.generating.stack import CaseContent, CaseSource, OperatorUse


def record_of(
    entry: CaseSource,
    shared: Mapping[str, Any],
    *,
    proof: tuple[int, int],
    alternatives: Collection[str],
    is_portable: bool,
    lines: Mapping[str, tuple[float, float]],
    horizon: Horizon | None,
    signals: Collection[str],
) -> dict[str, Any]:
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
    return {
        **shared,
        "id": entry.id,
        "flags": list(entry.flags),
        "tags": tags if is_portable else [*tags, "non-portable"],
        "alternatives": list(alternatives),
        "golden": {"kind": "certified", "bits": bits, "passes": passes}
        if bits
        else {"kind": "float64"},
        "tolerance": {name: {"rtol": rtol, "atol": atol} for name, (rtol, atol) in lines.items()},
        **({"horizon": horizon._asdict()} if horizon else {}),
        **({"steps": list(signals)} if signals else {}),
    }


def with_later_calls(
    first: Mapping[str, Any], later: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the record of a case with several calls; it has the tags of all of them."""
    tags = dict.fromkeys(tag for record in (first, *later) for tag in record["tags"])
    own = [
        {name: record[name] for name in OF_A_CALL if name != "sizes" or record[name] != first[name]}
        for record in later
    ]
    largest = max(record["requirements"]["largest_size"] for record in (first, *later))
    needs = {**first["requirements"], "largest_size": largest}
    horizons = [record["horizon"] for record in (first, *later) if "horizon" in record]
    nearest = {"horizon": min(horizons, key=itemgetter("measured"))} if horizons else {}
    return {**first, "tags": list(tags), "requirements": needs, **nearest, "later_calls": own}


def shared_record(entry: CaseSource, case: CaseContent, inputs: Collection[str]) -> dict[str, Any]:
    """Return what the records of a stack's entries have in common."""
    needs = requirements_of(entry.weights, case, inputs)
    node = case.node.attributes, inputs
    return _whole(entry, case, *node, requirements=needs, expect="result", reason="", golden={})


def record_of_rejection(
    entry: CaseSource,
    case: CaseContent,
    broken: tuple[Mapping[str, Any], Collection[str]],
    inputs: Collection[str],
    problems: Sequence[Problem],
) -> dict[str, Any]:
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
        golden={"kind": "none"},
    )


def _whole(
    entry: CaseSource,
    case: CaseContent,
    attributes: Mapping[str, Any],
    inputs: Collection[str],
    **more: Any,
) -> dict[str, Any]:
    """Return a record without alternatives and tolerances, in the order of `CaseRecord`."""
    found = node_entries(
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
        tags=[],
        alternatives=[],
        profile=entry.profile,
        tolerance={},
        **{name: True for name, given in entry.spelling._asdict().items() if given},
        **more,
    )
    return {name: found[name] for name in CaseRecord.__struct_fields__ if name in found}


def requirements_of(weights: str, case: OperatorUse, inputs: Iterable[str]) -> dict[str, Any]:
    """Return what an implementation must support, for the valid case."""
    node, operator, present = case.node, case.node.operator, set(inputs)
    defaults = {row.name: row.default for row in operator.attributes.values()}
    given = {name: v for name, v in node.attributes.items() if v is not None}
    return {
        "opset": opset_of(operator) if node.unit else operator.version,
        "dtype": case.dtype.name,
        "direction": node.values["direction"],
        "layout": node.layout,
        "attributes": sorted(name for name, v in given.items() if v != defaults[name]),
        "activations": sorted({activation.name for row in node.activations for activation in row}),
        "inputs": [row.name for row in operator.inputs if row.optional and row.name in present],
        "weights": weights,
        "largest_size": max(case.sizes.values()),
    }
