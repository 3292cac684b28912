"""What the manifest says of a case."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rnncli.judging.scalars import scalar_equivalent
from rnncli.operators.activation_binding import resolve_activations
from rnncli.operators.attributes import complete

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.errors import Problem
    from rnncli.generating.origin import Origin, Question
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Result
    from rnncli.vectors.vector import Answers


def record_of(
    entry: Origin,
    case: Question,
    golden: Result,
    answers: Answers,
    alternatives: Mapping[str, Answers],
    *,
    is_portable: bool,
) -> dict[str, Any]:
    """Return the record of a case that must run; see `vectors.manifest.CASE_FIELDS`."""
    tags = [f"reading:{name}" for name in dict.fromkeys(n.partition("=")[0] for n in alternatives)]
    proof = {"bits": golden.bits, "passes": golden.passes} if golden.bits else {}
    return {
        **_common(entry, case, case.attributes, case.inputs),
        "tags": tags if is_portable else [*tags, "non-portable"],
        "readings": dict(case.readings),
        "alternatives": list(alternatives),
        "requirements": _requirements(entry, case),
        "expect": "result",
        "reason": "",
        "golden": {"kind": "certified" if golden.bits else "float64", **proof},
        "profile": entry.profile,
        "tolerance": {
            name: dict(
                zip(
                    ("rtol", "atol"),
                    scalar_equivalent(values, answers.tolerances[name]),
                    strict=True,
                )
            )
            for name, values in answers.outputs.items()
        },
    }


def record_of_rejection(
    entry: Origin,
    case: Question,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    problems: Sequence[Problem],
) -> dict[str, Any]:
    """Return the record of a case that must be refused, with what is wrong with it."""
    return {
        **_common(entry, case, attributes, inputs),
        "tags": [],
        "readings": dict(case.readings),
        "alternatives": [],
        "requirements": _requirements(entry, case),
        "expect": "rejection",
        "reason": "; ".join(problem.sentence for problem in problems),
        "golden": {"kind": "none"},
        "profile": entry.profile,
        "tolerance": {},
    }


def _common(
    entry: Origin, case: Question, attributes: Mapping[str, Any], inputs: Mapping[str, Array]
) -> dict[str, Any]:
    operator = case.operator
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
        "inputs": [row.name for row in operator.inputs if row.name in inputs],
        "outputs": [row.name for row in operator.outputs if row.name in case.outputs],
        "weights": entry.weights,
        "flags": list(entry.flags),
    }


def _json(value: Any) -> Any:
    """JSON has no infinity and no NaN; they become text."""
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    unsayable = isinstance(value, float) and not math.isfinite(value)
    return str(value) if unsayable else value


def _requirements(entry: Origin, case: Question) -> dict[str, Any]:
    """What an implementation must know, as the valid case has it."""
    operator = case.operator
    values = complete(operator, case.attributes)
    directions = 2 if values["direction"] == "bidirectional" else 1
    rows = resolve_activations(operator, values, directions, case.readings)
    defaults = {row.name: row.default for row in operator.attributes.values()}
    given = {name: v for name, v in case.attributes.items() if v is not None}
    return {
        "opset": operator.version,
        "dtype": case.dtype.name,
        "direction": values["direction"],
        "layout": values.get("layout") or 0,
        "attributes": sorted(name for name, v in given.items() if v != defaults[name]),
        "activations": sorted({activation.name for row in rows for activation in row}),
        "inputs": [row.name for row in operator.inputs if row.optional and row.name in case.inputs],
        "weights": entry.weights,
        "largest_size": max(case.sizes.values()),
    }
