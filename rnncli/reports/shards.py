"""Runs of which each judged a part of the cases, joined to the whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest, listed
from rnncli.judging.selected import ALL, Shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.judging.report import VerificationReport


def whole_runs(reports: Iterable[VerificationReport]) -> Iterator[VerificationReport]:
    """Yield runs in order of appearance, the shards of one joined where its first shard stands.

    Shards 1/n to n/n are one run if they are of one implementation, in one version, against one
    pack by one rule. If there are several of each, the first of each by date are one run, and so
    on.

    Raises:
        InvalidRequest: a shard is missing, or two have a case in common.
    """
    groups: dict[Any, list[VerificationReport]] = {}
    for report in reports:
        groups.setdefault(_kind(report), []).append(report)
    for runs in groups.values():
        of = runs[0].shard.of
        yield from runs if of == 1 else _joined(runs, of)


def _kind(report: VerificationReport) -> Any:
    """Return what the shards of a run have in common."""
    subject, pack = report.subject, report.pack
    called = subject.name, subject.about.get("name"), subject.about.get("version")
    return called, pack.name, pack.digest, report.rule, report.shard.of


def _joined(runs: Sequence[VerificationReport], of: int) -> Iterator[VerificationReport]:
    by_number: dict[int, list[VerificationReport]] = {k: [] for k in range(1, of + 1)}
    for run in sorted(runs, key=lambda run: run.date):
        by_number[run.shard.number].append(run)
    most = max(map(len, by_number.values()))
    if missing := [str(Shard(k, of)) for k, some in by_number.items() if len(some) < most]:
        raise InvalidRequest(f"{_described(runs[0])}: lacks shard {listed(missing)}")
    yield from map(_whole, zip(*by_number.values(), strict=True))


def _whole(shards: Sequence[VerificationReport]) -> VerificationReport:
    """Join the shards of a run, 1/n first; its cases are in the pack's order."""
    turns = zip_longest(*(shard.cases for shard in shards))
    cases = tuple(case for case in chain.from_iterable(turns) if case is not None)
    if len({case.verdict.id for case in cases}) < len(cases):
        raise InvalidRequest(f"{_described(shards[0])}: a case is in two shards")
    return replace(
        shards[0],
        cases=cases,
        seconds=sum(shard.seconds for shard in shards),
        min_cases=sum(shard.min_cases for shard in shards),
        unproved=sum(shard.unproved for shard in shards),
        date=min(shard.date for shard in shards),
        concessions=tuple(dict.fromkeys(chain.from_iterable(map(_others, shards)))),
        shard=ALL,
    )


def _others(shard: VerificationReport) -> Iterator[str]:
    """Yield what a run concedes besides being a shard."""
    return (option for option in shard.concessions if option != "--shard")


def _described(run: VerificationReport) -> str:
    version = run.subject.about.get("version", "")
    subject = f"{run.subject.name} {version}".rstrip()
    return ascii(f"the run of {subject[:80]} against {run.pack.name[:80]}").strip("'\"")
