"""Probes: valid cases that an implementation must run before its refusals count.

An implementation that refuses everything, or does not work at all, also refuses invalid cases. So
each case that must be refused has a probe: a valid case of the same operator, element type,
direction, layout and optional inputs, with the weights in the same place. If its probe fails, a
refusal shows nothing, and the case is skipped. Valid cases of the same operator in the same run
serve as well as a probe, since they are judged anyway.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from rnncli.cases.case import size_names
from rnncli.cases.config.config import parse_config
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.comparing.verdict import RIGHT, CaseVerdict, Verdict
from rnncli.judging.judgement import judge
from rnncli.operators import evaluate, operator_named
from rnncli.packs.conversion import with_model
from rnncli.packs.vector import Answers, Vector
from rnncli.verifying.node_call import NodeCall

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rnncli.judging.report import JudgedCase
    from rnncli.operators import Operator
    from rnncli.packs.record import CaseRecord
    from rnncli.subjects.implementation import Subject


LARGEST_SIZE = 16
PROFILE = Rule(profile="standard")


class ProbeKind(NamedTuple):
    """The properties that a case shares with its probe."""

    operator: str  # operator and version, such as LSTM-14
    dtype: str  # the element type of all floating-point tensors
    weights: str  # "inputs" or "initializers"
    direction: str  # the node's direction
    layout: int  # 0, or 1 for batch first
    inputs: tuple[str, ...]  # the names of the optional inputs that are present
    sizes: tuple[tuple[str, int], ...]  # the operator's sizes, by name; 1 where none is given

    @classmethod
    def of(cls, record: CaseRecord) -> ProbeKind:
        """Return the kind of a case."""
        needs = record.requirements
        sizes = {name: min(max(1, size), LARGEST_SIZE) for name, size in record.sizes.items()}
        if sizes.get("q_num_heads", 1) % sizes.get("kv_num_heads", 1):  # by that bound
            sizes["q_num_heads"] = sizes["kv_num_heads"]
        return cls(
            *(record.operator, record.dtype, record.weights, needs.direction, needs.layout),
            inputs=tuple(needs.inputs),
            sizes=tuple(sizes.items()),
        )

    @property
    def config(self) -> dict[str, Any]:
        """The config of a case of this kind."""
        operator = operator_named(self.operator)
        roles = {row.name: row.role for row in operator.inputs}
        present = [name for name in self.inputs if name in roles]
        fills = {name: "lengths" if roles[name] == "lengths" else "uniform" for name in present}
        return {
            "op": self.operator,
            "sizes": {name: dict(self.sizes).get(name, 1) for name in size_names(operator)},
            "dtype": self.dtype,
            "attributes": {
                **operator.written("direction", self.direction),
                **({"layout": self.layout} if self.layout else {}),
                **demanding(operator, present),
            },
            "inputs": fills,
        }

    def __str__(self) -> str:
        """Describe the kind in words."""
        direction = [self.direction] if self.direction != "forward" else []
        features = [*direction, *(["layout 1"] if self.layout else []), *self.inputs]
        with_them = f" with {', '.join(features)}" if features else ""
        return f"{self.operator} in {self.dtype}{with_them}"


def demanding(operator: Operator, present: Collection[str]) -> dict[str, str]:
    """Return the attribute that needs the optional inputs that are there, and takes no others."""
    name = operator.demanding
    choices = operator.attributes[name].choices if name else ()
    demands = {choice: operator.demands({name: choice}) for choice in choices}
    fitting = [
        choice
        for choice, needs in demands.items()
        if all(wanted == (gate in present) for gate, wanted in needs.items())
    ]
    # com.microsoft's ignores what it does not need, so more than one may fit.
    most = max(fitting, key=lambda choice: sum(demands[choice].values()), default=None)
    return {name: most} if most else {}


def probe_of(kind: ProbeKind) -> Vector:
    """Generate a valid case of a kind, with answers computed in float64.

    Raises:
        rnncli.errors.InvalidRequest: no such case exists, so the manifest is not one of ours.
    """
    case = parse_config(json.dumps(kind.config), f"a valid {kind}")
    call = NodeCall.of_case(case, kind.weights).with_changes(id=f"probe_{case.operator.slug}")
    outputs = evaluate(
        case.operator,
        case.inputs,
        attributes=case.attributes,
        outputs=case.outputs,
        readings=case.readings,
    )
    record = replace(call.record(), sizes=case.sizes)
    return with_model(Vector(call.id, b"", case.inputs, (), Answers(outputs), {}, record))


def failing_probes(
    subject: Subject, records: Iterable[CaseRecord], rule: Rule
) -> Mapping[str, str]:
    """Run a probe of each kind, judged by a rule; by the standard profile, not a pack's own.

    Returns:
        id -> reason that a refusal would show nothing, for each case whose probe fails.
    """
    needed = unprobed(records)
    own = rule if rule.profile or rule.tolerance else PROFILE
    sentences = {}
    for kind in dict.fromkeys(map(ProbeKind.of, needed)):
        vector = probe_of(kind)
        found = judge(vector, subject.attempt(vector), own)
        if found.verdict not in RIGHT:
            sentences[kind] = _sentence(f"a valid case of {kind}", found)
    kinds = {record.id: ProbeKind.of(record) for record in needed}
    return {case_id: sentences[kind] for case_id, kind in kinds.items() if kind in sentences}


def unprobed(records: Iterable[CaseRecord]) -> list[CaseRecord]:
    """Return the cases that must be refused without a valid case of their operator beside them."""
    records = list(records)
    valid = {record.operator for record in records if record.expect == "result"}
    return [r for r in records if r.expect == "rejection" and r.operator not in valid]


def _sentence(what: str, found: CaseVerdict) -> str:
    said = f": {found.message}" if found.message else ""
    return f"a refusal shows nothing, since {what} fails as well: {found.verdict}{said}"


def without_idle_refusals(
    cases: Sequence[JudgedCase], probed: Mapping[str, str]
) -> list[JudgedCase]:
    """Skip each correct refusal that shows nothing, for the reasons of failing probes by id."""
    # The operators whose valid cases were run but never answered.
    valid = [case for case in cases if case.record.expect == "result"]
    asked = [case for case in valid if case.verdict is not Verdict.SKIPPED]
    answered = {case.record.operator for case in asked if case.is_answered}
    idle = {
        case.record.operator: _sentence(f"the valid case {case.id}", case.details)
        for case in reversed(asked)
        if case.record.operator not in answered
    }
    found = list(cases)
    for k, case in enumerate(cases):
        why = probed.get(case.id) or idle.get(case.record.operator)
        if why and case.record.expect == "rejection" and case.verdict is Verdict.PASS:
            skipped = replace(case.details, verdict=Verdict.SKIPPED, message=why, expected="")
            found[k] = case._replace(details=skipped)
    return found
