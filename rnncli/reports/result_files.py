"""Reading the lines that `rnncli verify --json` printed, from anyone, and joining shards."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace as with_entries

from rnncli.errors import InvalidRequest, RnncliWarning, UnreadableFile, listed
from rnncli.files.described import jsonable, part_of, read
from rnncli.files.reading import parse_json, read_bytes
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import ALLOWANCES, CaseVerdict
from rnncli.judging.explaining.diagnosis import Cause, Diagnosis
from rnncli.judging.explaining.patterns import Pattern
from rnncli.judging.report import JudgedCase, VerificationReport
from rnncli.judging.selected import ALL, Shard
from rnncli.packs.record import UNKNOWN
from rnncli.reports.verification import cause_in, summary_record
from rnncli.reports.verification_schema import CASE_NAMES, LINES, VerdictLine
from rnncli.talk.words import counted
from rnncli.verifying.recorded_runs import require_pack, unlike_pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.packs.pack import Pack


LARGEST = 1 << 28
"""The most bytes of a file of results."""
UNRECORDED = ("options not recorded",)
"""The concessions of a run that does not say them."""
UNCOUNTED = (
    "an older rnncli wrote it, which does not say how many cases the pack and the shard have: a"
    " case may be missing"
)
RULE_OPTIONS = frozenset({"--profile", "--atol", "--rtol", "--max-ulp", "--reading", "--trust"})
"""The concessions that change the rule by which the pack's cases are judged."""


def read_results(path: Path, pack: Pack | None = None) -> list[VerificationReport]:
    """Return the reports of the runs in a file, one after another, without errors over time.

    Args:
        path: the file.
        pack: the pack that all of them must be of, case by case.

    Warns:
        RnncliWarning: an older rnncli wrote it, whose runs do not say how many cases they have.

    Raises:
        UnreadableFile: the file is not that, a run in it is incomplete, contradicts itself, or its
            counts are not those of its cases; or it is not of the pack. The message names the line.
    """
    lines = read_bytes(path, LARGEST).splitlines()
    try:
        reports = [_report(run, pack) for run in _runs(lines)]
    except InvalidRequest as error:
        raise UnreadableFile(f"{path}: {error}") from error
    if not reports:
        raise UnreadableFile(f"{path}: is empty; expected lines of `rnncli verify --json`")
    if any(report.due is UNSET for report in reports):
        warnings.warn(f"{path}: {UNCOUNTED}", RnncliWarning, stacklevel=2)
    return reports


class _Line(NamedTuple):
    """A line of a file: its number from 1, its object as it stands there, and as its class."""

    number: int
    record: Mapping[str, Any]
    entries: Any


def _runs(lines: Sequence[bytes]) -> Iterator[list[_Line]]:
    """Yield the lines of each run, from its first to its summary."""
    run: list[_Line] = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line, surrogates=True)
        except InvalidRequest as error:
            raise InvalidRequest(f"line {number} {error}") from error
        kind = record.get("kind") if isinstance(record, dict) else None
        if not (isinstance(kind, str) and kind in LINES):
            raise InvalidRequest(f"line {number} is not one that `rnncli verify --json` prints")
        entries = read(record, LINES[kind], f"line {number}")
        if (kind == "run") == bool(run):
            wanted = "the summary of the run before it" if run else "the first line of a run"
            raise InvalidRequest(f"line {number} is a {kind}, expected {wanted}")
        run.append(_Line(number, record, entries))
        if kind == "summary":
            yield run
            run = []
    if run:
        name = ascii(run[0].entries.subject.name)[:80]
        raise InvalidRequest(
            f"line {run[0].number} begins the run of {name}, which is incomplete: it has no summary"
        )


def _report(run: Sequence[_Line], pack: Pack | None) -> VerificationReport:
    first, last, diagnosis = run[0].entries, run[-1].entries, None
    cases = [line for line in run if line.entries.kind == "case"]
    found: dict[str, list[Any]] = {kind: [] for kind in LINES}
    for line in run:
        found[line.entries.kind].append(line.entries)
    if found["unexplained"]:
        diagnosis = Diagnosis(
            tuple(part_of(line, Cause) for line in found["cause"]),
            tuple(found["unexplained"][0].cases),
            tuple(part_of(line, Cause) for line in found["doubt"]),
            tuple(
                Pattern(each.sentence, tuple(each.topics), each.chance, each.where, each.among)
                for each in found["pattern"]
            ),
        )
    report = VerificationReport(
        first.pack,
        first.subject,
        first.rule,
        tuple(_case(line, diagnosis) for line in cases),
        command=first.command,
        min_cases=first.min_cases,
        unproved=first.unproved,
        date=first.date,
        diagnosis=diagnosis,
        concessions=UNRECORDED if first.concessions is UNSET else first.concessions,
        seconds=last.wall_seconds,
        shard=Shard() if first.shard is UNSET else Shard.parse(first.shard),
        claim=first.claim or None,
        due=first.due,
        max_bias=first.max_bias,
    )
    name = ascii(report.subject.name)[:80]
    if jsonable(summary_record(report)) != run[-1].record:
        raise InvalidRequest(
            f"line {run[-1].number}: the summary of the run of {name} does not count its cases"
        )
    seen: dict[str, int] = {}
    for line in cases:
        if (before := seen.setdefault(line.entries.id, line.number)) != line.number:
            raise InvalidRequest(
                f"line {line.number}: the run of {name} has a case twice,"
                f" {ascii(line.entries.id)[:80]} of line {before}"
            )
    if contradiction := _contradiction(report):
        raise InvalidRequest(f"line {run[0].number}: the run of {name} {contradiction}")
    if pack is not None:
        try:
            require_pack(report, pack)
        except InvalidRequest as error:
            raise InvalidRequest(f"line {run[0].number}: {error}") from error
        is_own = RULE_OPTIONS.isdisjoint(report.concessions)
        for line, case in zip(cases, report.cases, strict=True):
            if wrong := unlike_pack(case, report, pack, CASE_NAMES, is_own=is_own):
                raise InvalidRequest(f"line {line.number}: the case {ascii(case.id)[:80]} {wrong}")
    return report


def _contradiction(run: VerificationReport) -> str:
    """Return what a run says of its cases and is not so, or "".

    A run that stopped at a failure has fewer cases than are due, and relations of a case are due
    together.
    """
    relations = ((case.id, f"::{case.relation or ''}") for case in run.cases)
    found, of_pack = len({name.removesuffix(end) for name, end in relations}), run.pack.cases
    if run.due is not UNSET and (found > run.due or (found < run.due and not run.fails)):
        return f"has {counted(found, 'case')}, and {run.due} are due"
    if run.concessions == UNRECORDED:
        return ""
    if run.due is not UNSET and of_pack is not UNSET and "--select" not in run.concessions:
        wanted = len(range(of_pack)[run.shard.number - 1 :: run.shard.of])
        if run.due != wanted:
            return f"has {run.due} of {wanted} cases of the pack, without --select"
    details = [case.details for case in run.cases]
    excuses = {each.allowed for each in details} | {"--xfails" for each in details if each.expected}
    if others := sorted(excuses - {"", *run.concessions}):
        return f"excuses cases by {others[0]}, which is not among its concessions"
    for each in details if "--max-ulp" not in run.concessions else ():
        for output in each.outputs:
            worst = output.worst
            if worst and not output.differing and abs(worst.got - worst.wanted) > worst.tolerance:
                name = f"{ascii(each.id)[:80]}: {ascii(output.name)[:80]}"
                return f"has a worst element beyond its tolerance in {name}, of which none differs"
    is_own = RULE_OPTIONS.isdisjoint(run.concessions)
    if run.verb == "verify" and (run.rule == PACK_RULE.text) != is_own:
        return f"is by {ascii(run.rule)[:80]}, which its concessions do not say"
    return ""


def _case(line: _Line, diagnosis: Diagnosis | None) -> JudgedCase:
    """Return the case of a line, whose entries must not contradict each other."""
    told: VerdictLine = line.entries
    record = with_entries(UNKNOWN, id=told.id, **{name: getattr(told, name) for name in CASE_NAMES})
    relation = None if told.relation is UNSET else told.relation
    case = JudgedCase(record, part_of(told, CaseVerdict), relation=relation)
    if contradiction := case.details.contradiction(record.expect):
        raise InvalidRequest(
            f"line {line.number}: the case {ascii(case.id)[:80]} {contradiction[:200]}"
        )
    allowance = ALLOWANCES.get(case.verdict)
    # What follows from other entries, or from the diagnosis.
    derived = {
        "allowed": allowance.option if allowance and case.details.allowed else "",
        "margin": jsonable(case.margin),
        "fails": case.details.fails,
        "answered": case.is_answered,
        "cause": cause_in(diagnosis, case.id),
    }
    for name, value in derived.items():
        if line.record[name] != value:
            raise InvalidRequest(
                f"line {line.number}: the case {ascii(case.id)[:80]} has {name}"
                f" {ascii(line.record[name])[:80]}, but its other entries make it {value!r}"
            )
    return case


def whole_runs(reports: Iterable[VerificationReport]) -> Iterator[VerificationReport]:
    """Yield runs in order of appearance, the shards of one joined where its first shard stands.

    Shards 1/n to n/n are one run if they are of one implementation, in one version and with the
    same settings, against one pack by one rule. If there are several of each, the first of each by
    date are one run, and so on.

    Raises:
        InvalidRequest: a shard is missing, has not as many cases as the others leave it, or two
            have a case in common.
    """
    groups: dict[Any, list[VerificationReport]] = {}
    for report in reports:
        groups.setdefault(tuple(_kind(report).items()), []).append(report)
    others = [runs[0] for runs in groups.values() if runs[0].shard.of > 1]
    for runs in groups.values():
        of = runs[0].shard.of
        yield from runs if of == 1 else _joined(runs, of, others)


def _kind(report: VerificationReport) -> dict[str, str]:
    """Return what the shards of a run have in common, by its name."""
    subject, pack = report.subject, report.pack
    return {
        "subject": subject.name,
        **{f"subject's {name}": text for name, text in sorted(subject.about.items())},
        "pack": pack.name,
        "pack's digest": pack.digest,
        "rule": report.rule,
        "number of shards": f"{report.shard.of}",
    }


def _joined(
    runs: Sequence[VerificationReport], of: int, others: Iterable[VerificationReport]
) -> Iterator[VerificationReport]:
    by_number: dict[int, list[VerificationReport]] = {k: [] for k in range(1, of + 1)}
    for run in sorted(runs, key=lambda run: run.date):
        by_number[run.shard.number].append(run)
    counts: dict[int, list[str]] = {}
    for number, some in by_number.items():
        counts.setdefault(len(some), []).append(str(Shard(number, of)))
    if len(counts) > 1:
        often = {0: "lacks shard {}", 1: "has shard {} once", 2: "has shard {} twice"}
        told = [
            often.get(count, f"has shard {{}} {count} times").format(listed(names))
            for count, names in sorted(counts.items(), reverse=True)
            if count != 1 or max(counts) > 1
        ]
        reason = f"{_described(runs[0])}: {', '.join(told)}"
        # What keeps the most similar shard of other runs from being one of this run.
        own, apart = _kind(runs[0]), []
        for kind in map(_kind, others):
            names = [name for name in (own | kind) if own.get(name) != kind.get(name)]
            apart += [(len(names), name, kind.get(name, "")) for name in names[:1]]
        if apart:
            _, name, text = min(apart)
            was, given = (ascii(each)[:80] for each in (own.get(name, ""), text))
            reason += f"; another run has {name} {given}, and this has {was}"
        raise InvalidRequest(reason)
    yield from map(_whole, zip(*by_number.values(), strict=True))


def _whole(shards: Sequence[VerificationReport]) -> VerificationReport:
    """Join the shards of a run, 1/n first; its cases are in the pack's order."""
    turns = zip_longest(*(shard.cases for shard in shards))
    cases = tuple(case for case in chain.from_iterable(turns) if case is not None)
    if len({case.id for case in cases}) < len(cases):
        raise InvalidRequest(f"{_described(shards[0])}: a case is in two shards")
    counts = [shard.due for shard in shards if shard.due is not UNSET]
    for shard, count in zip(shards, counts, strict=False):
        wanted = len(range(sum(counts))[shard.shard.number - 1 :: shard.shard.of])
        if len(counts) == len(shards) and count != wanted:
            raise InvalidRequest(
                f"{_described(shard)}: shard {shard.shard} has {counted(count, 'case')}, and the"
                f" others leave it {wanted}"
            )
    conceded = chain.from_iterable(shard.concessions for shard in shards)
    concessions = dict.fromkeys(option for option in conceded if option != "--shard")
    # Each cause keeps the counts of its own shard.
    found = [shard.diagnosis for shard in shards if shard.diagnosis]
    diagnosis = Diagnosis(
        tuple(cause for each in found for cause in each.causes),
        tuple(name for each in found for name in each.unexplained),
        tuple(doubt for each in found for doubt in each.doubts),
        tuple(pattern for each in found for pattern in each.patterns),
    )
    return replace(
        shards[0],
        cases=cases,
        seconds=sum(shard.seconds for shard in shards),
        min_cases=sum(shard.min_cases for shard in shards),
        unproved=sum(shard.unproved for shard in shards),
        date=min(shard.date for shard in shards),
        concessions=tuple(concessions),
        due=sum(counts) if len(counts) == len(shards) else UNSET,
        diagnosis=diagnosis if found else None,
        shard=ALL,
    )


def _described(run: VerificationReport) -> str:
    version = run.subject.about.get("version", "")
    subject = f"{run.subject.name} {version}".rstrip()
    return ascii(f"the run of {subject[:80]} against {run.pack.name[:80]}").strip("'\"")
