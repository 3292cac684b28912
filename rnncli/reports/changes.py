"""What a run changed beside an earlier one: for who reviews a change of a kernel."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.files.atomic import write_text
from rnncli.files.seals import MARKUP
from rnncli.judging.claim import DIGITS_SHOWN
from rnncli.judging.comparing.verdict import FAILURES, RIGHT, Verdict
from rnncli.reports.failures import MOST_NAMED, failure_groups
from rnncli.reports.screen import TerminalRows
from rnncli.reports.tables import is_drawn, markdown_row, print_records
from rnncli.talk.terminal import say, say_text
from rnncli.talk.words import code, counted, inline, listed, one_line, plural, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.judging.report import JudgedCase, VerificationReport

# The smallest factor between two margins that is told, and the margin that one must have reached.
LEAST_FACTOR, LEAST_MARGIN = 2.0, 0.01
# Findings that are told in lines, and margins among them; a table or JSON has a row of each case.
MOST_FINDINGS, MOST_MARGINS = 16, 6


class Effect(StrEnum):
    """What became of a case, in the order of reports."""

    BROKEN = "broken"
    LOST = "lost"
    OTHER = "other bug"
    FIXED = "fixed"
    MARGIN = "margin"
    ADDED = "added"


# Effect -> the words of a summary for a number of cases, of one and of several.
SUMMARY: Mapping[Effect, tuple[str, str]] = {
    Effect.BROKEN: ("broken", "broken"),
    Effect.LOST: ("no longer judged", "no longer judged"),
    Effect.OTHER: ("fails otherwise", "fail otherwise"),
    Effect.FIXED: ("fixed", "fixed"),
    Effect.MARGIN: ("margin changed by 2x or more", "margins changed by 2x or more"),
    Effect.ADDED: ("judged for the first time", "judged for the first time"),
}
COLUMNS = (
    *("change", "case", "before", "after"),
    *("bug before", "bug after", "margin before", "margin after"),
)


class CaseChange(NamedTuple):
    """A case that changed; None where a run has not judged it."""

    before: JudgedCase | None
    after: JudgedCase | None

    @property
    def id(self) -> str:
        """The case's id."""
        case = self.after or self.before
        assert case
        return case.id


class Finding(NamedTuple):
    """Cases that changed alike."""

    change: Effect
    cases: int
    title: str  # the case, or their number with an example
    sentence: str  # what became of them
    repeat: str = ""  # the command that shows it

    @property
    def lines(self) -> list[str]:
        """The finding for a terminal."""
        repeat = [f"  repeat: {self.repeat}"] * bool(self.repeat)
        return [one_line(f"{self.change.upper()} {self.title}: {self.sentence}"), *repeat]


@dataclass(frozen=True)
class RunChanges:
    """Two runs against one pack, case by case.

    Raises:
        InvalidRequest: they are of different packs or commands.
        NothingSelected: no case was answered in either, so that nothing can have changed.
    """

    before: VerificationReport
    after: VerificationReport

    def __post_init__(self) -> None:
        if self.before.pack.name != self.after.pack.name or self.before.verb != self.after.verb:
            of = [f"`rnncli {run.verb}` by {run.pack.name}" for run in (self.before, self.after)]
            raise InvalidRequest(visible(f"runs that cannot be compared: {' and '.join(of)}"))
        if not any(case.is_answered for run in (self.before, self.after) for case in run.cases):
            raise NothingSelected(f"{self.title}: neither run answered a case")

    @cached_property
    def by_change(self) -> Mapping[Effect, Sequence[CaseChange]]:
        """The cases of each change, in the pack's order."""
        old, new = ({case.id: case for case in run.cases} for run in (self.before, self.after))
        found: dict[Effect, list[CaseChange]] = {change: [] for change in Effect}
        for case_id in dict.fromkeys([*new, *old]):
            case = CaseChange(_judged(old.get(case_id)), _judged(new.get(case_id)))
            if change := self._change(case):
                found[change].append(case)
        return found

    def _change(self, case: CaseChange) -> Effect | None:
        before, after = case
        if before is None or after is None:
            return Effect.ADDED if after else Effect.LOST if before else None
        if before.verdict in RIGHT and after.verdict in RIGHT:
            low, high = sorted((before.margin, after.margin))
            told = high >= LEAST_MARGIN and high >= LEAST_FACTOR * low
            return Effect.MARGIN if told else None
        if before.verdict in RIGHT:
            return Effect.BROKEN
        if after.verdict in RIGHT:
            return Effect.FIXED
        bugs = bugs_of(self.before, before), bugs_of(self.after, after)
        is_alike = bugs[0] == bugs[1] or not {*bugs[0]}.isdisjoint(bugs[1])
        return None if before.verdict is after.verdict and is_alike else Effect.OTHER

    @property
    def exit_code(self) -> int:
        """1 if a case broke, 5 if one is no longer judged, else 0."""
        if self.by_change[Effect.BROKEN]:
            return 1
        return NothingSelected.exit_code if self.by_change[Effect.LOST] else 0

    @property
    def title(self) -> str:
        """The two implementations and the pack."""
        old, new = (run.subject.implementation for run in (self.before, self.after))
        dates = [f" of {run.date[:10]}" if run.date else "" for run in (self.before, self.after)]
        digest = self.after.pack.digest[:DIGITS_SHOWN] or "not verified"
        by = f"{self.after.pack.name}, digest {digest}"
        return visible(f"{new}{dates[1]} since {old}{dates[0]}, by {by}")

    @property
    def summary(self) -> str:
        """The number of cases of each change, and of those that fail as before."""
        counts = {change: len(cases) for change, cases in self.by_change.items()}
        words = [f"{n} {plural(n, *SUMMARY[change])}" for change, n in counts.items() if n]
        failing = sum(case.verdict in FAILURES for case in self.after.cases)
        added = sum(not _is_right(case.after) for case in self.by_change[Effect.ADDED])
        still = failing - counts[Effect.BROKEN] - counts[Effect.OTHER] - added
        told = f"; {still} {plural(still, 'fails', 'fail')} as before" * bool(still)
        return f"{', '.join(words) or 'nothing changed'}{told}"

    @property
    def doubts(self) -> Iterator[str]:
        """What keeps the runs from being judged alike."""
        terms = [
            {"pack": run.pack.digest, "rule": run.rule, "options": " ".join(run.concessions)}
            for run in (self.before, self.after)
        ]
        for name, old in terms[0].items():
            if old != (new := terms[1][name]):
                yield visible(f"other {name}: {old or 'none'} before, {new or 'none'} after")

    @property
    def records(self) -> Iterator[dict[str, Any]]:
        """Each case that changed, as JSON data; the entries are those of `COLUMNS`."""
        runs = self.before, self.after
        for change, cases in self.by_change.items():
            for case in cases:
                bugs = [
                    listed([*bugs_of(run, each)]) if each else ""
                    for run, each in zip(runs, case, strict=True)
                ]
                told = (
                    *(str(change), case.id, *(each and str(each.verdict) for each in case)),
                    *(bug or None for bug in bugs),
                    *(each.margin if each and each.details.outputs else None for each in case),
                )
                names = (name.replace(" ", "_") for name in COLUMNS)
                yield dict(zip(names, told, strict=True))

    @property
    def findings(self) -> Iterator[Finding]:
        """The cases that changed alike, the worst change first."""
        found = self.by_change
        broken = _by_cause(Effect.BROKEN, self.after, [c.after for c in found[Effect.BROKEN]])
        yield from (each for each, _ in broken)
        messages = {each.id: each.details.message for each in self.after.cases}

        def lost(case: CaseChange) -> str:
            was = f"was {case.before.verdict}; " if case.before else ""
            return f"{was}{messages.get(case.id, 'it has no line')}"

        yield from _alike(Effect.LOST, found[Effect.LOST], lost)
        pairs = [(c.id, c.before) for c in found[Effect.OTHER] if c.before]
        was = {i: listed([*bugs_of(self.before, c)]) or str(c.verdict) for i, c in pairs}
        others = _by_cause(Effect.OTHER, self.after, [c.after for c in found[Effect.OTHER]])
        for each, example in others:
            yield each._replace(sentence=f"{each.sentence} (was {was[example]})")
        fixed = _by_cause(Effect.FIXED, self.before, [c.before for c in found[Effect.FIXED]])
        for each, _ in fixed:
            yield each._replace(sentence=f"was: {each.sentence}", repeat="")
        largest = sorted(found[Effect.MARGIN], key=_margins, reverse=True)
        for case in largest[:MOST_MARGINS]:
            new, old = _margins(case)
            yield Finding(Effect.MARGIN, 1, case.id, f"{old:.2g} -> {new:.2g} of its tolerance")
        if rest := largest[MOST_MARGINS:]:
            grown = sum(new > old for new, old in map(_margins, rest))
            title = counted(len(rest), "more case")
            yield Finding(
                Effect.MARGIN, len(rest), title, f"{grown} grew, {len(rest) - grown} fell"
            )
        failing = [case.after for case in found[Effect.ADDED] if not _is_right(case.after)]
        yield from (each for each, _ in _by_cause(Effect.ADDED, self.after, failing))
        right = [case for case in found[Effect.ADDED] if _is_right(case.after)]
        yield from _alike(Effect.ADDED, right, lambda _: "right")


def _judged(case: JudgedCase | None) -> JudgedCase | None:
    return None if case is None or case.verdict is Verdict.SKIPPED else case


def _is_right(case: JudgedCase | None) -> bool:
    return case is not None and case.verdict in RIGHT


def _margins(case: CaseChange) -> tuple[float, float]:
    """Return the margins after and before."""
    assert case.before
    assert case.after
    return case.after.margin, case.before.margin


def bugs_of(report: VerificationReport, case: JudgedCase) -> tuple[str, ...]:
    """Return the known bugs that give a case's outputs: its cause, or all that fit it."""
    cause = report.diagnosis and report.diagnosis.cause_of(case.id)
    return (cause.hypothesis,) if cause else tuple(case.details.fits)


def _by_cause(
    change: Effect, report: VerificationReport, cases: Sequence[JudgedCase | None]
) -> Iterator[tuple[Finding, str]]:
    """Yield failing cases of a run, excused ones too, by what they have in common; an example."""
    failing = [
        case._replace(details=structs.replace(case.details, expected="", allowed=""))
        for case in cases
        if case
    ]
    of_them = replace(report, cases=failing)
    for group in failure_groups(of_them):
        example = group.example
        title = group.title + f", such as {example.id}" * (len(group.cases) > 1)
        told = (group.cause(of_them), report.repeat(example.details))
        yield Finding(change, len(group.cases), title, *told), example.id


def _alike(change: Effect, cases: Sequence[CaseChange], words: Any) -> Iterator[Finding]:
    """Yield cases that are told by the same words, those with the most cases first."""
    counts = Counter(words(case) for case in cases)
    for sentence, count in counts.most_common():
        ids = [case.id for case in cases if words(case) == sentence]
        several = f"{count} cases, {listed(ids, MOST_NAMED)}"
        yield Finding(change, count, several if count > 1 else ids[0], sentence)


def show_changes(changes: RunChanges, *, as_json: bool = False, verbose: bool = False) -> None:
    """Print a row of each case to stdout, unless that is a terminal; then the findings in words."""
    if as_json or not is_drawn():
        print_records(COLUMNS, changes.records, as_json=as_json)
        sys.stdout.flush()
    screen = TerminalRows(verbose=verbose)
    last = [f"warning: {doubt}" for doubt in changes.doubts]
    last.append(f"{changes.title}: {changes.summary}")
    screen.take(last)
    findings = [*changes.findings]
    most = len(findings) if screen.width or verbose else MOST_FINDINGS

    def rest(count: int) -> str:
        more = f"and {len(findings) - count} more; " if len(findings) > count else ""
        return f"{more}-v, --json and a pipe tell all"

    blocks = [each.lines for each in findings[:most]]
    lines = screen.fitted(blocks, [block[0] for block in blocks], rest)
    for line in [*lines, *[rest(most)] * bool(findings[most:])]:
        say_text(line)
    colour = {0: "green", 1: "red"}.get(changes.exit_code, "yellow")
    for sentence in last:
        say(sentence, "" if sentence.startswith("warning") else colour)


def write_markdown(path: Path, changes: RunChanges) -> None:
    """Write the summary and a table of the findings, for a comment on a merge request."""
    mark = {0: "✅", 1: "❌"}.get(changes.exit_code, "⚠️")
    lines = [f"## {mark} {inline(changes.summary)}", "", f"{inline(changes.title)}."]
    lines += [f"{inline(doubt[:1].upper() + doubt[1:])}." for doubt in changes.doubts]
    findings = [*changes.findings]
    if findings:
        lines += ["", markdown_row(("change", "cases", "what")), markdown_row(("---",) * 3)]
    for each in findings[:MOST_FINDINGS]:
        repeat = f"<br>{code(each.repeat)}".replace("|", r"\|") if each.repeat else ""
        what = f"{inline(each.title)}: {inline(each.sentence)}{repeat}"
        lines.append(markdown_row((str(each.change), each.cases, what)))
    if left := len(findings[MOST_FINDINGS:]):
        lines += ["", f"... and {left} more."]
    write_text(path, "\n".join(lines) + "\n", MARKUP)


def write_html(path: Path, changes: RunChanges) -> None:
    """Write a page with all findings and a row of each case."""
    from markupsafe import Markup

    from rnncli.reports.pages import plain_page, shared_style

    style = Markup(shared_style("site"))  # noqa: S704 -- ours
    write_text(path, plain_page("changes", changes=changes, columns=COLUMNS, style=style), MARKUP)


WRITERS = {
    "markdown": "rnncli.reports.changes:write_markdown",
    "html": "rnncli.reports.changes:write_html",
}
