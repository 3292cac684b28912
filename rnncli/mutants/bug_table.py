"""The table of bugs, `bugs.txt`, whose head says how a bug is written.

A bug without an edit is a function of `walks` under its id.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest
from rnncli.mutants import equivalence
from rnncli.mutants.edits import READING, STEPPING, WRITING, Edit, has_equations, read, write
from rnncli.mutants.mutant import ALL, GATED, Change, mutant_of, results
from rnncli.mutants.walks import WALKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.mutants.equivalence import Reason
    from rnncli.mutants.mutant import Changed, Mutant

_FAMILY = re.compile(r"\[([a-z ]+)\] ([^:]+)(?:: (.+))?")
_BUG = re.compile(r"([a-z{][a-z0-9{}.-]*): (.+)")
_CELLS = {"ALL": ALL, "GATED": GATED}
# What a family, a bug and a variant may say of themselves.
WORDS = ("of", "unless", "effect", "unreached", "each")


@dataclass(slots=True)
class _Entry:
    """A family, a bug or a variant, as far as it is read: its words and the place it begins at."""

    name: str
    sentence: str
    place: str
    words: dict[str, str] = field(default_factory=dict)
    edits: list[list[str]] = field(default_factory=list)


class BugTable:
    """Bugs as text.

    Args:
        text: the table.
        name: the file, for errors.

    Raises:
        InvalidRequest: with the place, what cannot be read there.
    """

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._line = 0
        self._variants: dict[str, list[dict[str, str]]] = {}
        self.families: dict[str, list[Mutant]] = {}
        self._ids: set[str] = set()
        family: _Entry | None = None
        bugs: list[_Entry] = []
        variants: list[dict[str, str]] | None = None
        for self._line, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("  ") and variants is not None:
                variants.append(self._pairs(line))
                continue
            variants = None
            if found := _FAMILY.fullmatch(line):
                self._add(family, bugs)
                family, bugs = self._entry(found[1], found[2]), []
                family.words["effect"] = found[3] or ""
            elif line.startswith("variants "):
                variants = self._variants[line.removeprefix("variants ").strip()] = []
            elif line[0] in "-+":
                self._edit(bugs, line)
            elif (word := line.split()[0]) in WORDS:
                entry = bugs[-1] if bugs else family
                if entry is None:
                    raise self._wrong(f"'{word}' of no family or bug")
                entry.words[word] = line.removeprefix(word).strip()
            elif (bug := _BUG.fullmatch(line)) and family:
                bugs.append(self._entry(bug[1], bug[2]))
            else:
                raise self._wrong(f"neither a family, a bug, an edit nor one of {', '.join(WORDS)}")
        self._add(family, bugs)

    def _wrong(self, problem: str, place: str = "") -> InvalidRequest:
        return InvalidRequest(f"{place or f'{self._name}:{self._line}'}: {problem}")

    def _entry(self, name: str, sentence: str) -> _Entry:
        return _Entry(name, sentence, f"{self._name}:{self._line}")

    def _pairs(self, line: str) -> dict[str, str]:
        """Return the words of a variant."""
        try:
            pairs = [pair.partition("=") for pair in shlex.split(line)]
        except ValueError as error:
            raise self._wrong(f"{error}") from None
        for key, equals, _ in pairs:
            if not equals:
                raise self._wrong(f"'{key}' of a variant has no value; write {key}=VALUE")
        return {key: value for key, _, value in pairs}

    def _edit(self, bugs: list[_Entry], line: str) -> None:
        """Add a line of an edit to the last bug."""
        if not bugs:
            raise self._wrong("an edit before any bug")
        edits, text = bugs[-1].edits, line[2:]
        if line[0] == "-":
            if not text.strip():
                raise self._wrong("'-' without what stands in the kernel")
            edits.append([text])
        elif not edits:
            raise self._wrong("'+' without the '-' that says what stands there")
        else:
            edits[-1].append(text)

    def _add(self, family: _Entry | None, bugs: list[_Entry]) -> None:
        """Add the mutants of a family; neighbours with the same variants variant by variant."""
        if family is None:
            return
        rows = self.families.setdefault(family.name, [])
        for each, some in groupby(bugs, key=lambda bug: bug.words.get("each")):
            group = list(some)
            if each is not None and each not in self._variants:
                raise self._wrong(f"there are no variants '{each}'", group[0].place)
            for variant in self._variants[each] if each else [{}]:
                rows += [self._mutant(family, bug, variant) for bug in group]

    def _mutant(self, family: _Entry, bug: _Entry, variant: Mapping[str, str]) -> Mutant:
        words = {**family.words, **bug.words, **{k: variant[k] for k in WORDS if k in variant}}
        reasons = (each.words.get("unless", "") for each in (family, bug))
        unless = filter(None, (*reasons, variant.get("unless", "")))
        filled = partial(_filled, variant)
        names = filled(words.get("of", "ALL"))
        cells = _CELLS.get(names) or tuple(names.split())
        edits = tuple(Edit(filled(e[0]), filled("\n".join(e[1:]))) for e in bug.edits)
        for edit in edits:
            if not any(edit.is_in(cell) for cell in cells):
                raise self._wrong(f"'{edit.old}' does not stand in the kernel", bug.place)
        if any(edit.is_in(cell, STEPPING) for edit in edits for cell in cells):
            cells = tuple(filter(has_equations, cells))
        id = filled(bug.name).lower().replace(" ", "-")  # noqa: A001 -- what a mutant calls it
        if id in self._ids:
            raise self._wrong(f"there is another '{id}'", bug.place)
        self._ids.add(id)
        if not edits and id not in WALKS:
            raise self._wrong(f"'{id}' has no edit, and `walks` does not have it", bug.place)
        return mutant_of(
            *(id, cells, family.sentence, filled(bug.sentence), filled(words["effect"])),
            change_of(edits, cells) if edits else WALKS[id],
            equivalence.first(*(self._reason(filled(each), bug.place) for each in unless)),
            unreached=words.get("unreached", ""),
            edits=edits,
        )

    def _reason(self, text: str, place: str) -> Reason:
        """Return the reason by its name in `equivalence`, or the first of several.

        Raises:
            InvalidRequest: no row is called so.
        """
        try:
            return _reason(text)
        except (NameError, SyntaxError, TypeError) as error:
            raise self._wrong(f"unless {text}: {error}", place) from None


@cache
def _reason(text: str) -> Reason:
    return equivalence.first(*eval(f"({text},)", vars(equivalence)))  # noqa: S307 -- our file


def _filled(variant: Mapping[str, str], text: str) -> str:
    """Return a text with the words of a variant."""
    for key, value in variant.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def change_of(edits: tuple[Edit, ...], cells: tuple[str, ...]) -> Changed:
    """Return the change that edits make: of what is read or stepped, written, or both."""
    parts = {
        part
        for part in (READING, STEPPING, WRITING)
        if any(edit.is_in(cell, part) for edit in edits for cell in cells)
    }
    if WRITING not in parts:
        return partial(read, edits)
    result = results(partial(write, edits)).result
    return (
        Change(result=result) if parts == {WRITING} else Change(partial(read, edits), result=result)
    )


TABLE = BugTable(files("rnncli.mutants").joinpath("bugs.txt").read_text("utf-8"), "bugs.txt")
BUGS: Mapping[str, list[Mutant]] = TABLE.families
