"""`--xfails FILE`: the known failures with their reasons; any other failure fails the run.

One entry per line: an id or a pattern (`*`, `?`, `[abc]`), optionally the expected verdicts in
brackets, and the reason. Without brackets an entry expects any failure except `missing`. Empty
lines and lines that begin with `#` are ignored:

    # OpenVINO 2026.4
    lstm_14_peepholes* [differs]   ignores P, https://example.com/1234
    gru_14_zero_batch              crashes the process
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from rnncli.errors import ConfigError, Place, did_you_mean
from rnncli.files.reading import read_text
from rnncli.judging.comparing.verdict import FAILURES, RIGHT, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# Failures that an entry without brackets expects: a case without results does not show a bug.
BY_DEFAULT = FAILURES - {Verdict.MISSING}

WILDCARDS = frozenset("*?[")
# Entries without a case that are named one by one.
MOST_DOUBTED = 20
_LINE = re.compile(r"(?P<pattern>\S+)(?P<verdicts>\s+\[[^\]]*\])?(?P<reason>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Xfail:
    """One entry."""

    pattern: str  # pattern of ids
    verdicts: frozenset[Verdict]  # the expected failures
    reason: str  # why they are expected
    place: Place  # its place in the file

    @property
    def is_pattern(self) -> bool:
        """Whether it can match more than one id."""
        return not WILDCARDS.isdisjoint(self.pattern)

    def matches(self, case_id: str) -> bool:
        """Whether its pattern matches a case."""
        return self.pattern == case_id or fnmatchcase(case_id, self.pattern)


@dataclass(frozen=True)
class Xfails:
    """The entries of a file, in its order."""

    entries: tuple[Xfail, ...] = ()

    @cached_property
    def _sorted(self) -> tuple[Mapping[str, list[tuple[int, Xfail]]], list[tuple[int, Xfail]]]:
        """The entries and their places: by the one id that each matches, and the patterns."""
        by_id: dict[str, list[tuple[int, Xfail]]] = {}
        patterns: list[tuple[int, Xfail]] = []
        for place, entry in enumerate(self.entries):
            several = patterns if entry.is_pattern else by_id.setdefault(entry.pattern, [])
            several.append((place, entry))
        return by_id, patterns

    def _matching(self, case_id: str) -> list[tuple[int, Xfail]]:
        """Return the entries that match a case, in the order of the file."""
        by_id, patterns = self._sorted
        several = [(k, entry) for k, entry in patterns if entry.matches(case_id)]
        return sorted([*by_id.get(case_id, ()), *several], key=itemgetter(0))

    def reason(self, case_id: str, verdict: Verdict) -> str:
        """Return why a case was expected to fail, or "" if it was not, or not with this verdict.

        A case that passes although an entry expects it to fail gets that entry's place and what to
        do with it. A skipped case has none.
        """
        for _, entry in self._matching(case_id):
            if verdict in RIGHT:
                act = "narrow or remove that line" if entry.is_pattern else "remove that line"
                line = f"{entry.place.file}:{entry.place.line} '{entry.pattern}'"
                return f"{line}: {act} ({entry.reason})"
            if verdict in entry.verdicts:
                return entry.reason
        return ""

    def contradiction(self, case_id: str, verdict: Verdict) -> str:
        """Return which line expects another failure of a case that fails unexpectedly, or ""."""
        for _, entry in self._matching(case_id):
            if entry.verdicts != BY_DEFAULT:
                wanted = " or ".join(sorted(entry.verdicts))
                return f"{entry.place.file}:{entry.place.line} expects {wanted}, not {verdict}"
        return ""

    def doubts(self, ids: Iterable[str]) -> Iterator[str]:
        """Yield a sentence for every entry that matches no case, and for what matches them all."""
        known = dict.fromkeys(ids)
        idle, is_told = 0, False
        for entry in self.entries:
            matches = sum(map(entry.matches, known)) if entry.is_pattern else entry.pattern in known
            if matches == len(known) > 1:
                is_told = True
                yield f"{entry.place}: '{entry.pattern}' matches every case: no failure would count"
            idle += not matches
            if not matches and idle <= MOST_DOUBTED:
                hint = did_you_mean(entry.pattern, known)
                yield f"{entry.place}: '{entry.pattern}' matches no case of the pack{hint}"
        if len(known) > 1 and not is_told and all(map(self._matching, known)):
            first = self.entries[0].place
            yield f"{first.file}: its entries together match every case: no failure would count"
        if idle > MOST_DOUBTED:
            yield f"{idle - MOST_DOUBTED} more known failures match no case of the pack"


def read_xfails(path: Path) -> Xfails:
    """Read a file of known failures.

    Raises:
        rnncli.errors.UnreadableFile: it is not readable text.
        ConfigError: entries lack a reason or name a verdict that is not a failure; lists them all.
    """
    return parse_xfails(read_text(path), str(path))


def parse_xfails(text: str, file: str) -> Xfails:
    """Read the text of such a file; `file` is its name in messages.

    Raises:
        ConfigError: see `read_xfails`.
    """
    entries: list[Xfail] = []
    findings: list[tuple[Place, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        place = Place(file, number, line.index(content[0]) + 1)
        match = _LINE.fullmatch(content)
        assert match  # `content` is stripped and not empty
        pattern, reason = match["pattern"], match["reason"].strip()
        named = [word.strip() for word in (match["verdicts"] or "").strip(" \t[]").split(",")]
        if match["verdicts"] is None:
            named = list(BY_DEFAULT)
        unknown = [word for word in named if word not in FAILURES]
        if unknown:
            word = unknown[0]
            hint = did_you_mean(word, FAILURES) or f"; there are {', '.join(sorted(FAILURES))}"
            findings.append((place, f"'{word}' is not a verdict that can be expected{hint}"))
        elif not reason:
            findings.append((place, f"'{pattern}' has no reason; write why it fails after it"))
        else:
            entries.append(Xfail(pattern, frozenset(map(Verdict, named)), reason, place))
    if findings:
        raise ConfigError(findings)
    return Xfails(tuple(entries))
