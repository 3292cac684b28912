"""Recorded runs held against the pack that they name.

Lines are text that anybody can write. That they have the pack's digest, cases, expected values and
tolerances shows which pack they are about, never that an implementation computed anything.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest, listed
from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.comparing.requirements import Requirements
from rnncli.packs.conversion import record_with_weights
from rnncli.packs.vector import STEPS
from rnncli.talk.words import counted, index_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.judging.comparing.verdict import OutputVerdict
    from rnncli.judging.report import JudgedCase, VerificationReport
    from rnncli.numerics import Array
    from rnncli.packs.pack import Pack


def require_pack(run: VerificationReport, pack: Pack) -> None:
    """Raise unless a run names a pack by its suite and its digest.

    Raises:
        InvalidRequest: it names another, or the pack in another form.
    """
    name, digest = pack.manifest.header["suite"], pack.sealed_digest
    if (run.pack.name, run.pack.digest) == (name, digest):
        return
    found = f"{run.pack.name}, digest {run.pack.digest or 'not verified'}"
    forms = (
        f"; a pack has another digest in each form, and this is the form {pack.layout}:"
        " `rnncli convert` writes another"
    )
    raise InvalidRequest(
        f"{described(run)} is on {visible(found)}; {pack.folder} has digest {digest}"
        f"{forms * (run.pack.name == name)}"
    )


def require_every_case(run: VerificationReport, pack: Pack) -> None:
    """Raise unless a run has every case of a pack, and its claim as many as it says.

    Raises:
        InvalidRequest: cases are lacking, others are there, or the claim is on fewer or more.
    """
    judged = {case.id for case in run.cases}
    known = {record.id: None for record in pack.manifest.cases}
    if lacking := [case_id for case_id in known if case_id not in judged]:
        raise InvalidRequest(
            f"{described(run)} lacks {len(lacking)} of the {counted(len(known), 'case')} of"
            f" {pack.folder}: {listed(lacking)}"
        )
    if others := sorted(judged - known.keys()):
        raise InvalidRequest(
            f"{described(run)} has cases that {pack.folder} has not: {visible(listed(others))}"
        )
    if run.claim:
        needs = Requirements.parse(run.claim.require)
        inside = sum(not needs.reason(record) for record in pack.manifest.cases)
        if other := run.claim.mismatch(run.pack.name, run.pack.digest, inside):
            raise InvalidRequest(f"{described(run)}: {other}")


def unlike_pack(
    case: JudgedCase, run: VerificationReport, pack: Pack, names: Iterable[str], *, is_own: bool
) -> str:
    """Return what a case of a run has otherwise than its pack, or "".

    Args:
        case: the case.
        run: its run.
        pack: the pack that it names.
        names: the entries of the manifest's record that it repeats.
        is_own: whether the pack's own answers and tolerances decided.
    """
    if case.relation is not None:
        return f"is of `rnncli {run.verb}`, which judges without the answers of a pack"
    if case.id not in pack:
        return f"is not in {pack.folder}"
    record = pack.case(case.id)
    if "--weights" in run.concessions:
        record = record_with_weights(record, case.record.requirements.weights)
    for name in names:
        told, own = getattr(case.record, name), getattr(record, name)
        if told != own:
            return f"has {name} {ascii(told)[:80]}, and {ascii(own)[:80]} in {pack.folder}"
    if not case.details.outputs:
        return ""

    calls = pack.read(record).calls
    if case.details.data_set >= len(calls):
        return f"has data set {case.details.data_set}, and {pack.folder} {len(calls)} of them"
    vector = calls[case.details.data_set]
    if [each.name for each in case.details.outputs[: len(record.outputs)]] != record.outputs:
        return f"lacks one of the outputs {', '.join(record.outputs)}, or has them in another order"
    for output in case.details.outputs:
        if output.reading and output.reading not in vector.alternatives:
            return f"has {output.name} by {output.reading}, for which {pack.folder} has no answers"
        answers = vector.alternatives[output.reading] if output.reading else vector.answers
        name = output.name.removeprefix(f"{STEPS}/")
        stored = answers if name == output.name else vector.steps
        if name in stored.outputs:
            wanted, tolerance = stored.outputs[name], stored.tolerances[name]
            if output.size != wanted.size and (output.size or vector.has_steps):
                return f"has {output.size} of the {wanted.size} elements of {output.name}"
            if is_own and (wrong := _unlike(output, wanted, tolerance)):
                return f"has {output.name} {wrong}"
        elif not output.problem:
            return f"has {output.name}, which {pack.folder} does not ask for"
    return ""


def _unlike(output: OutputVerdict, wanted: Array, tolerance: Array) -> str:
    """Return how the worst element of an output is not one of the pack, or ""."""
    if output.worst is None:
        return ""
    index, got = output.worst.index, output.worst.got
    told, allowed, at = output.worst.wanted, output.worst.tolerance, index_text(index)
    if len(index) != wanted.ndim or not all(map(operator.lt, index, wanted.shape)):
        return f"worst at {at}, outside its shape {[*wanted.shape]}"
    own, limit = float(wanted[index]), float(tolerance[index])
    if not np.array_equal([told, allowed], [own, limit], equal_nan=True):
        pair = f"{own:.9g} +- {limit:.3g}"
        return f"expected {told:.9g} +- {allowed:.3g} at {at}, and the pack has {pair} there"
    margin = float(errors_of(np.array(got), np.array(own), np.array(limit)).margin)
    if margin != output.margin:
        return f"with margin {output.margin:.6g}, and got {got:.9g} at {at} makes it {margin:.6g}"
    return ""


def provenance(run: VerificationReport, pack: str = "") -> str:
    """Return what a recorded run says that it is of, and against which pack that was held."""
    date = run.date and f" on {run.date[:10]}"
    conceded = f" with {' and '.join(run.concessions)}" if run.concessions else ""
    digest = f"by {run.pack.name}, digest {run.pack.digest or 'not verified'}"
    held = "as its lines say; --pack PACK holds them against a pack"
    if pack:
        held = f"held against {pack}, each of its {counted(len(run.cases), 'case')} once"
    return visible(f"{described(run)}{date}{conceded} {digest}, {held}")


def described(run: VerificationReport) -> str:
    """Return a run in words: the run of numpy 0.1.0."""
    return visible(f"the run of {run.subject.implementation[:80]}")
