"""What the manifest says of a case."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.packs.manifest import OF_A_CALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.errors import Problem
    from rnncli.packs.generating.horizon import Horizon
    from rnncli.packs.generating.source import Demanding, Origin, Question


class Verdicts(NamedTuple):
    """What is an entry's own, of those of a stack.

    Attributes:
        proof: of its golden: bits, 0 where nothing proved it, and passes.
        alternatives: `READING=CHOICE` of each other answer.
        is_portable: whether no NaN is read.
        lines: (rtol, atol) of each output, by name.
        horizon: for how many steps an input must be visible, and is; None if nothing is claimed.
    """

    proof: tuple[int, int]
    alternatives: Sequence[str]
    is_portable: bool
    lines: Mapping[str, tuple[float, float]]
    horizon: Horizon | None


def record_of(entry: Origin, shared: Mapping[str, Any], own: Verdicts) -> dict[str, Any]:
    """Return the record of a case that must run; see `vectors.manifest.CASE_FIELDS`.

    Args:
        entry: of a stack.
        shared: what all records of the stack have, see `shared_record`.
        own: what is this entry's.
    """
    bits, passes = own.proof
    names = dict.fromkeys(each.partition("=")[0] for each in own.alternatives)
    tags = [f"reading:{name}" for name in names]
    return {
        **shared,
        "id": entry.id,
        "flags": list(entry.flags),
        "tags": tags if own.is_portable else [*tags, "non-portable"],
        "alternatives": list(own.alternatives),
        "golden": {"kind": "certified", "bits": bits, "passes": passes}
        if bits
        else {"kind": "float64"},
        "tolerance": {
            name: {"rtol": rtol, "atol": atol} for name, (rtol, atol) in own.lines.items()
        },
        **({"horizon": own.horizon._asdict()} if own.horizon else {}),
    }


def with_later_calls(
    first: Mapping[str, Any], later: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the record of a case with several calls; its tags are those of any.

    Args:
        first: of the first call.
        later: of each later one.
    """
    tags = dict.fromkeys(tag for record in (first, *later) for tag in record["tags"])
    own = [{name: record[name] for name in OF_A_CALL} for record in later]
    horizons = [record["horizon"] for record in (first, *later) if "horizon" in record]
    nearest = {"horizon": min(horizons, key=_measured)} if horizons else {}
    return {**first, "tags": list(tags), **nearest, "later_calls": own}


def _measured(horizon: Mapping[str, int]) -> int:
    return horizon["measured"]


def shared_record(entry: Origin, case: Question, inputs: Iterable[str]) -> dict[str, Any]:
    """Return what the records of entries have in common that ask the same of other inputs.

    Args:
        entry: one of them.
        case: what it asks.
        inputs: the names of those that are present.
    """
    return {
        **_common(entry, case, case.node.attributes, inputs),
        "tags": [],
        "readings": dict(case.node.readings),
        "alternatives": [],
        "requirements": requirements_of(entry.weights, case, inputs),
        "expect": "result",
        "reason": "",
        "golden": {},
        "profile": entry.profile,
        "tolerance": {},
    }


def record_of_rejection(
    entry: Origin,
    case: Question,
    broken: tuple[Mapping[str, Any], Iterable[str]],
    inputs: Iterable[str],
    problems: Sequence[Problem],
) -> dict[str, Any]:
    """Return the record of a case that must be refused, with what is wrong with it.

    Args:
        entry: of a suite.
        case: the valid one.
        broken: the attributes and the names of the inputs that are written.
        inputs: the names of those that the valid case has.
        problems: what is wrong.
    """
    return {
        **_common(entry, case, *broken),
        "tags": [],
        "readings": dict(case.node.readings),
        "alternatives": [],
        "requirements": requirements_of(entry.weights, case, inputs),
        "expect": "rejection",
        "reason": "; ".join(problem.sentence for problem in problems),
        "golden": {"kind": "none"},
        "profile": entry.profile,
        "tolerance": {},
    }


def _common(
    entry: Origin, case: Question, attributes: Mapping[str, Any], inputs: Iterable[str]
) -> dict[str, Any]:
    operator, present = case.node.operator, set(inputs)
    return {
        "id": entry.id,
        "summary": case.summary,
        "operator": operator.name,
        "domain": operator.domain,
        "opset": operator.version,
        "attributes": {name: _json(v) for name, v in attributes.items() if v is not None},
        "sizes": dict(case.sizes),
        "dtype": case.dtype.name,
        "seed": case.seed,
        "inputs": [row.name for row in operator.inputs if row.name in present],
        "outputs": [row.name for row in operator.outputs if row.name in case.node.outputs],
        "weights": entry.weights,
        **({"empty_names": True} if entry.empty_names else {}),
        "flags": list(entry.flags),
    }


def _json(value: Any) -> Any:
    """JSON has no infinity and no NaN; they become text."""
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    unsayable = isinstance(value, float) and not math.isfinite(value)
    return str(value) if unsayable else value


def requirements_of(weights: str, case: Demanding, inputs: Iterable[str]) -> dict[str, Any]:
    """Return what an implementation must know, as the valid case has it.

    Args:
        weights: where they stand in the model.
        case: what is asked.
        inputs: the names of those that are present.
    """
    node, operator, present = case.node, case.node.operator, set(inputs)
    defaults = {row.name: row.default for row in operator.attributes.values()}
    given = {name: v for name, v in node.attributes.items() if v is not None}
    return {
        "opset": operator.version,
        "dtype": case.dtype.name,
        "direction": node.values["direction"],
        "layout": node.layout,
        "attributes": sorted(name for name, v in given.items() if v != defaults[name]),
        "activations": sorted({activation.name for row in node.activations for activation in row}),
        "inputs": [row.name for row in operator.inputs if row.optional and row.name in present],
        "weights": weights,
        "largest_size": max(case.sizes.values()),
    }
