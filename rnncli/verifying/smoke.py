"""A first look at a harness: does it start, run tiny cases, refuse what it cannot do, and stop?

The cases are made on the spot: one for each layer of ONNX, called twice in a session, and one with
an activation that nobody has. If all of ONNX are refused, those of the next dialect are sent, and
at last linear recurrences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as with_entries

from rnncli.judging.comparing.verdict import RIGHT, Verdict
from rnncli.judging.judgement import judge
from rnncli.operators import operator_named
from rnncli.packs.conversion import with_model
from rnncli.packs.vector import Status
from rnncli.subjects.harness import SECONDS_TO_STOP, HarnessSubject
from rnncli.subjects.harness_messages import VERSION
from rnncli.talk.words import counted
from rnncli.verifying.probes import PROFILE, ProbeKind, probe_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.limits import Limits
    from rnncli.packs.vector import Vector

SIZES = (
    *(("seq_length", 3), ("batch_size", 2), ("input_size", 4), ("hidden_size", 3)),
    *(("q_num_heads", 4), ("kv_num_heads", 2), ("key_size", 3), ("value_size", 2)),
    *(("channels", 3), ("kernel_size", 2)),
)
# The operators of each dialect; none is sent after a dialect that is not refused whole.
DIALECTS = (
    ("RNN-14", "GRU-14", "LSTM-14"),
    ("webnn.gru", "webnn.lstm"),
    ("RNNSequence-5", "GRUSequence-5", "LSTMSequence-5"),
    ("LinearAttention-27", "CausalConvWithState-27"),
    ("com.microsoft.LinearAttention", "com.microsoft.CausalConvWithState"),
)
UNSUPPORTED, NO_ACTIVATION = "unsupported", "NoSuchActivation"
# What nobody has, by the attribute that asks for it.
IMPOSSIBLE = {
    "activations": ("activation", NO_ACTIVATION),
    "activation": ("activation", NO_ACTIVATION),
    "update_rule": ("update rule", "NoSuchRule"),
}


class SmokeResult(StrEnum):
    """The result of a check."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class SmokeCheck:
    """One check of a harness."""

    name: str  # the request that was sent: start, the id of a case, or stop
    result: SmokeResult  # its result
    sentence: str  # what the program did and, if that was wrong, what was expected
    has_computed: bool = False  # whether the program computed a case


def smoke_checks(command: str, limits: Limits) -> list[SmokeCheck]:
    """Check a harness by its command line; the time limit is also that of its start.

    Raises:
        InvalidRequest: the program does not start, or does not speak this protocol.
    """
    subject = HarnessSubject(command, limits=limits, seconds_to_start=limits.timeout)
    try:
        about = subject.describe()
        language = f" ({about['language']})" if "language" in about else ""
        introduction = f"{about['name']} {about['version']}{language}, protocol {VERSION}"
        start = SmokeCheck("start", SmokeResult.OK, introduction)

        vectors: list[Vector] = []
        cases: list[SmokeCheck] = []
        for dialect in DIALECTS:
            vectors += map(tiny_case, dialect)
            cases += (_called_twice(subject, vector) for vector in vectors[len(cases) :])
            if any(case.result is not SmokeResult.REFUSED for case in cases):
                break

        # An activation that nobody has must be refused.
        able = (vector for vector, case in zip(vectors, cases, strict=True) if case.has_computed)
        vector = next(able, vectors[0])
        attempt = subject.attempt(unsupported(vector))
        if attempt.status is Status.REFUSED:
            refusal = SmokeCheck(UNSUPPORTED, SmokeResult.OK, f"refused: {attempt.message}")
        else:
            computed = f"computed {', '.join(attempt.outputs) or 'nothing'}"
            ran = attempt.status is Status.RAN
            did = computed if ran else f"{attempt.status}: {attempt.message}"
            what, value = IMPOSSIBLE[_attribute_of_choice(vector)]
            wanted = f'{{"seq": ..., "skipped": true, "message": "no {value}"}}'
            said = f"{did}; the {what} is {value}, expected {wanted}"
            refusal = SmokeCheck(UNSUPPORTED, SmokeResult.FAILED, said)

        ending = subject.stopped(SECONDS_TO_STOP)
        if ending and ending.exit == 0:
            stop = SmokeCheck("stop", SmokeResult.OK, "ended with exit code 0")
        else:
            did = ending.sentence if ending else f"did not end within {SECONDS_TO_STOP:g} s"
            stop = SmokeCheck("stop", SmokeResult.FAILED, f"{did}, expected exit code 0")
    finally:
        subject.close()
    return [start, *cases, refusal, stop]


def exit_code_of(checks: Sequence[SmokeCheck]) -> int:
    """Return 0 if a harness is wired right, 1 if a check failed, 5 if it computed nothing."""
    if any(check.result is SmokeResult.FAILED for check in checks):
        return 1
    return 0 if any(check.has_computed for check in checks) else 5


def conclusion_of(checks: Sequence[SmokeCheck]) -> str:
    """Return the result of all checks in words."""
    failed = sum(check.result is SmokeResult.FAILED for check in checks)
    if failed:
        return f"{counted(failed, 'check')} of {len(checks)} failed"
    computed = sum(check.has_computed for check in checks)
    wired = f"wired right; it computed {computed} of the tiny cases"
    return wired if computed else "refused every case, so nothing shows how it computes"


def tiny_case(operator: str) -> Vector:
    """Return a case of an operator in float32, with the inputs and attributes that it requires."""
    row = operator_named(operator)
    defaults = {name: attribute.default for name, attribute in row.attributes.items()}
    needed = tuple(name for name, is_needed in row.demands(defaults).items() if is_needed)
    kind = ProbeKind(operator, "float32", "inputs", "forward", 0, needed, SIZES)
    vector = probe_of(kind)
    attributes = {n: v for n, v in vector.attributes.items() if v != defaults[n]}
    return _changed(vector, id=row.slug, attributes=attributes)


def unsupported(vector: Vector) -> Vector:
    """Return a case with activations, or an update rule, that nobody has."""
    name = _attribute_of_choice(vector)
    _, value = IMPOSSIBLE[name]
    count = len(operator_named(vector.record.operator).cell.activations)
    attributes = {**vector.attributes, name: [value] * count or value}
    return _changed(vector, id=UNSUPPORTED, attributes=attributes, expect="rejection")


def _attribute_of_choice(vector: Vector) -> str:
    has = operator_named(vector.record.operator).attributes
    return next(name for name in IMPOSSIBLE if name in has)


def _changed(vector: Vector, **entries: Any) -> Vector:
    """Return a vector with other entries in its record, and the model that goes with them."""
    record = with_entries(vector.record, **entries)
    return with_model(replace(vector, id=record.id, model=b"", record=record))


def _called_twice(subject: HarnessSubject, vector: Vector) -> SmokeCheck:
    found = [judge(vector, each, PROFILE) for each in subject.session([vector, vector])]
    wrong = next((k for k, each in enumerate(found) if each.verdict not in RIGHT), None)
    if wrong is None:
        outputs = vector.record.outputs
        verb = "is" if len(outputs) == 1 else "are"
        sentence = f"{', '.join(outputs)} {verb} right, in both calls"
        return SmokeCheck(vector.id, SmokeResult.OK, sentence, has_computed=True)
    if wrong == 0 and found[0].verdict is Verdict.REFUSED:
        return SmokeCheck(vector.id, SmokeResult.REFUSED, found[0].message)
    call = "in the second call of a session, " if wrong else ""

    # The wrong element of each output, or why it was not compared.
    fault = f"{found[wrong].verdict}: {found[wrong].message}"
    if found[wrong].verdict is Verdict.DIFFERS:
        fault = "; ".join(
            f"{each.name}[{', '.join(map(str, each.worst.index))}] is {each.worst.got:.6g},"
            f" expected {each.worst.wanted:.6g}"
            if each.worst
            else f"{each.name}: {each.problem}"
            for each in found[wrong].outputs
            if each.verdict is Verdict.DIFFERS
        )
    return SmokeCheck(vector.id, SmokeResult.FAILED, f"{call}{fault}")
