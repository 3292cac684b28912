"""The table of bugs, `bugs.txt`, whose head says how a bug is written.

A bug without an edit is a function of `walks` under its id.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from rnncli.errors import InvalidRequest
from rnncli.mutants import equivalence
from rnncli.mutants.calls import READING, STEPPING, WRITING
from rnncli.mutants.edits import (
    Edit,
    has_equations,
    read,
    text_of,
    write,
)
from rnncli.mutants.mutant import ALL, GATED, Change, Mutant, mutant_of, results
from rnncli.mutants.walks import WALKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.mutants.equivalence import Reason
    from rnncli.mutants.mutant import Changed

_FAMILY = re.compile(r"\[([a-z ]+)\] ([^:]+)(?:: (.+))?")
_BUG = re.compile(r"([a-z{][a-z0-9{}.-]*): (.+)")
_CELLS = {"ALL": ALL, "GATED": GATED}
# What a family, a bug and a variant may say of themselves.
WORDS = ("of", "unless", "effect", "unreached", "each")
Kind = TypeVar("Kind")


@dataclass(slots=True)
class _Entry:
    """A family, a bug or a variant, as far as it is read: its words and the place it begins at."""

    name: str
    sentence: str
    place: str
    words: dict[str, str] = field(default_factory=dict)
    edits: list[list[str]] = field(default_factory=list)


class WrittenBug(NamedTuple):
    """A bug as it is written, with the words of its variant in place."""

    id: str  # its id
    cells: tuple[str, ...]  # the names of the cells whose kernels can have it
    family: str  # the sentence of its family
    sentence: str  # what goes wrong
    words: Mapping[str, str]  # what it, its variant and its family say besides
    unseen: Reason  # why it cannot be seen
    edits: tuple[Edit, ...]  # what it edits
    place: str  # where it is written


class BugTable(Generic[Kind]):
    """Bugs as text.

    Args:
        text: the table.
        name: the file, for errors.

    Raises:
        InvalidRequest: with the place, what cannot be read there.
    """

    words: tuple[str, ...] = WORDS

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._line = 0
        self._variants: dict[str, list[dict[str, str]]] = {}
        self.families: dict[str, list[Kind]] = {}
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
            elif (word := line.split()[0]) in self.words:
                entry = bugs[-1] if bugs else family
                if entry is None:
                    raise self._wrong(f"'{word}' of no family or bug")
                entry.words[word] = line.removeprefix(word).strip()
            elif (bug := _BUG.fullmatch(line)) and family:
                bugs.append(self._entry(bug[1], bug[2]))
            else:
                raise self._wrong(
                    f"neither a family, a bug, an edit nor one of {', '.join(self.words)}"
                )
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
        for each, some in groupby(bugs, key=lambda bug: bug.words.get("each", "")):
            group = list(some)
            for variant in self._variants_of(each, group[0].place):
                for bug in group:
                    words = {**family.words, **bug.words}
                    for width in words.get("widths", "").split() or [""]:
                        own = {**variant, "width": width} if width else variant
                        rows.append(self.mutant(self._bug(family, bug, own)))

    def _variants_of(self, each: str, place: str) -> list[dict[str, str]]:
        """Return the variants of some names, joined by + and combined by *; one if there are none.

        Raises:
            InvalidRequest: with a place, variants that are not in the table.
        """
        found: list[dict[str, str]] = [{}]
        for factor in each.split(" * ") if each else []:
            for name in (names := factor.split(" + ")):
                if name not in self._variants:
                    raise self._wrong(f"there are no variants '{name}'", place)
            own = [variant for name in names for variant in self._variants[name]]
            found = [{**one, **other} for one in found for other in own]
        return found

    def _bug(self, family: _Entry, bug: _Entry, variant: Mapping[str, str]) -> WrittenBug:
        filled = partial(_filled, variant)
        said = {**family.words, **bug.words, **{k: variant[k] for k in self.words if k in variant}}
        words = {word: filled(text) for word, text in said.items()}
        reasons = (each.get("unless", "") for each in (family.words, bug.words, variant))
        names = words.get("of", "ALL")
        cells = _CELLS.get(names) or tuple(names.split())
        edits = tuple(Edit(filled(e[0]), filled("\n".join(e[1:]))) for e in bug.edits)
        for edit in edits:
            if not self.stands(edit, cells):
                raise self._wrong(f"'{edit.old}' does not stand in the kernel", bug.place)
        id = filled(bug.name).lower().replace(" ", "-")  # noqa: A001 -- what a mutant calls it
        if id in self._ids:
            raise self._wrong(f"there is another '{id}'", bug.place)
        self._ids.add(id)
        unseen = equivalence.first(
            *(self._reason(filled(each), bug.place) for each in reasons if each)
        )
        sentence = filled(bug.sentence)
        return WrittenBug(id, cells, family.sentence, sentence, words, unseen, edits, bug.place)

    def stands(self, edit: Edit, cells: tuple[str, ...]) -> bool:
        """Whether what is edited stands in the kernel of one of some cells."""
        raise NotImplementedError

    def mutant(self, bug: WrittenBug) -> Kind:
        """Return the mutant that a bug is."""
        raise NotImplementedError

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
    """Return a text with the words of a variant, and those of these words."""
    for _ in range(2):
        if "{" not in text:  # as most have none, and the table is read whenever a process begins
            break
        for key, value in variant.items():
            text = text.replace(f"{{{key}}}", value)
    return text


def change_of(
    edits: tuple[Edit, ...], cells: tuple[str, ...], *, is_compared: bool = False
) -> Changed:
    """Return the change that edits make: of what is read or stepped, written, or both.

    Args:
        edits: the edits.
        cells: the cells of the kernels.
        is_compared: whether one that changes a recurrence need not be seen.
    """
    parts = {
        part
        for part in (READING, STEPPING, WRITING)
        if any(edit.is_in(cell, part) for edit in edits for cell in cells)
    }
    if WRITING not in parts:
        return Change(partial(read, edits)) if is_compared else partial(read, edits)
    result = results(partial(write, edits)).result
    return (
        Change(result=result) if parts == {WRITING} else Change(partial(read, edits), result=result)
    )


class SemanticBugs(BugTable[Mutant]):
    """The bugs of the plain kernel."""

    def stands(self, edit: Edit, cells: tuple[str, ...]) -> bool:
        """Whether what is edited stands in the kernel of one of some cells."""
        return any(edit.is_in(cell) for cell in cells)

    def mutant(self, bug: WrittenBug) -> Mutant:
        """Return the mutant that a bug is."""
        cells, edits = bug.cells, bug.edits
        if any(edit.is_in(cell, STEPPING) for edit in edits for cell in cells):
            cells = tuple(filter(has_equations, cells))
        if not edits and bug.id not in WALKS:
            raise self._wrong(f"'{bug.id}' has no edit, and `walks` does not have it", bug.place)
        return mutant_of(
            *(bug.id, cells, bug.family, bug.sentence, bug.words["effect"]),
            change_of(edits, cells, is_compared=bool(bug.words.get("unreached")))
            if edits
            else WALKS[bug.id],
            bug.unseen,
            unreached=bug.words.get("unreached", ""),
            edits=edits,
        )


BUGS: Mapping[str, list[Mutant]] = {
    key: rows
    for name in ("bugs.txt", "linear_bugs.txt", "integer_bugs.txt", "projected_bugs.txt")
    for key, rows in SemanticBugs(text_of(name), name).families.items()
}
