"""Claims from runs: the cases of a pack that an implementation gets right, told by what they need.

What was refused, wrong or not judged is outside, and so are right cases that no requirement tells
from it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec import structs

from rnncli.errors import InvalidRequest, NothingSelected, listed
from rnncli.judging.claim import Claim, parse_claim
from rnncli.judging.comparing.requirements import Requirements, leaving_out
from rnncli.judging.comparing.verdict import RIGHT, CaseVerdict, Verdict
from rnncli.judging.report import CLAIMS, PLURAL, VerificationReport
from rnncli.talk.words import counted, visible
from rnncli.verifying.probes import unprobed, without_idle_refusals
from rnncli.verifying.recorded_runs import described, require_every_case, require_pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.judging.report import JudgedCase
    from rnncli.packs.pack import Pack


# Concessions of a run whose verdicts are still those of the pack's own rule on its own files.
HARMLESS = frozenset(
    {"--require", "--device", "--xfails", "--allow-refused", "--allow-missing", "--shard", CLAIMS}
)


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """A claim, and the run that it is written from."""

    claim: Claim  # what the run shows
    claimed: VerificationReport  # the run as `rnncli verify --claims` reports it
    outside: Sequence[JudgedCase]  # the cases of the run that are outside

    @property
    def sentences(self) -> Iterator[str]:
        """What is outside by its verdict, and the right cases among it by their ids."""
        counts = Counter(case.verdict for case in self.outside)
        words = [
            f"{count} {PLURAL.get(name, name) if count > 1 else name}"
            for name in Verdict
            if (count := counts[name])
        ]
        if words:
            yield f"outside the claim: {', '.join(words)}"
        if right := [case.id for case in self.outside if case.verdict in RIGHT]:
            are = counted(len(right), "right case is", "right cases are")
            yield visible(f"{are} outside, as no requirement tells them apart: {listed(right)}")


def claim_of(run: VerificationReport, pack: Pack) -> ClaimReport:
    """Return what a run of a whole pack shows that its implementation can claim.

    Raises:
        InvalidRequest: the run is of another pack, a part of one, or not by its own rule.
        NothingSelected: nothing is right, or nothing that requirements tell from what is not.
    """
    require_pack(run, pack)
    if others := [option for option in run.concessions if option not in HARMLESS]:
        raise InvalidRequest(
            f"{described(run)} was judged with {visible(' and '.join(others))}; a claim takes a"
            " run by the pack's own rule on its own files"
        )
    require_every_case(run, pack)
    needs = _requirements(run, pack)
    inside = [each for each in pack.manifest.cases if not needs.reason(each)]
    if not inside:
        raise NothingSelected(f"{described(run)}: no case to claim: {run.total.summary}")
    claim = Claim(
        run.subject.implementation,
        run.pack.name,
        run.pack.digest,
        len(inside),
        [term.expression for term in needs.terms],
    )
    assert parse_claim(claim.text, "claim") == claim

    # The run as it is judged by the claim.
    cases = []
    for case in run.cases:
        details = structs.replace(case.details, expected="", allowed="")
        if reason := needs.reason(pack.case(case.id)):
            details = CaseVerdict(case.id, Verdict.SKIPPED, message=reason)
        cases.append(case._replace(details=details))
    claimed = replace(
        run,
        cases=tuple(cases),
        claim=claim,
        concessions=(CLAIMS,) if claim.require else (),
        min_cases=1,
        unproved=0,
        diagnosis=None,
    )
    if not claimed.passed:
        raise NothingSelected(f"{described(run)}: no case to claim: {claimed.shortfall}")
    outside = [case for case in run.cases if needs.reason(pack.case(case.id))]
    return ClaimReport(claim, claimed, outside)


def _requirements(run: VerificationReport, pack: Pack) -> Requirements:
    """Return requirements that only right cases meet, and no refusal that shows nothing."""
    out = {case.id for case in run.cases if case.verdict not in RIGHT}
    records = pack.manifest.cases
    while True:
        needs = leaving_out(
            [record for record in records if record.id in out],
            [record for record in records if record.id not in out],
            entirely=True,
        )
        inside = [record for record in records if not needs.reason(record)]

        # Invalid cases that are refused beside no valid case that is right.
        ids = {record.id for record in inside}
        cases = [case for case in run.cases if case.id in ids]
        proved = without_idle_refusals(cases, {})
        idle = {new.id for old, new in zip(cases, proved, strict=True) if new is not old}
        idle |= {record.id for record in unprobed(inside)}
        if not idle:
            return needs
        out |= idle
