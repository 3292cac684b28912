"""Statements of the specifications, read from the YAML files in `specs/statements`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from rnncli.cases.library import statement_files
from rnncli.cases.yaml_reader import Findings, Key, read_mapping, read_yaml, shown, unknown
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.operators import OPERATORS
from rnncli.verifying.tracing.conditions import all_of, condition_named, violation_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.cases.yaml_reader import YamlNode
    from rnncli.errors import Place
    from rnncli.operators import Operator
    from rnncli.verifying.tracing.conditions import CaseCondition, TracedCase


class CheckKind(StrEnum):
    """The kind of case that can check a statement."""

    RESULT = "result"
    """A case that must run and match."""
    REJECTION = "rejection"
    """A case that must be refused."""
    NONE = "none"
    """No vector; the row gives the reason."""

    @property
    def case(self) -> str:
        """The kind of case, in words."""
        return "a case that must be refused" if self is CheckKind.REJECTION else "a case that runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One testable statement of a specification about one operator."""

    name: str  # the id without the operator: `clip.bounds`
    sentence: str  # the statement, in our words
    section: str  # its section of the page: `attribute clip`
    operator: str  # the operator's family, such as `RNN` or `webnn.gru`
    versions: tuple[int, ...]  # the operator versions it applies to
    kind: CheckKind  # the kind of case that can check it
    when: CaseCondition  # the condition on cases that exercise it
    # ids of its violations, see `violations`; a case that notices one checks it, and so does a pack
    # that notices all
    against: tuple[str, ...]
    why_not: str  # the reason that no vector can check it, or ""

    @property
    def id(self) -> str:
        """The id with the operator: `lstm.clip.bounds`."""
        return f"{self.operator.lower()}.{self.name}"

    @property
    def newest(self) -> Operator:
        """The newest version that it applies to."""
        key = self.operator, self.versions[-1]
        return next(row for row in OPERATORS.values() if (row.family, row.version) == key)

    @property
    def dialect(self) -> str:
        """The dialect of its operator."""
        return self.newest.dialect

    @property
    def where(self) -> str:
        """The page and section in the newest version: `ONNX LSTM-22, attribute clip`."""
        return f"{self.dialect} {self.newest.name}, {self.section}"

    def found_in(self, case: TracedCase) -> tuple[str, ...] | None:
        """Return the violations that a case notices; None if it does not check the statement."""
        row = case.operator
        if row.family != self.operator or row.version not in self.versions:
            return None
        if (CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT) is not self.kind:
            return None
        if not self.when.holds(case):
            return None
        noticed = tuple(case.noticed(self.against))
        return noticed if noticed or not self.against else None


# The keys of each mapping, and which of them it must have.
FILE = {"operators": True, "sections": True}
SECTION = {"section": True, "of": False, "statements": True}
STATEMENT = {
    "says": True,
    **dict.fromkeys(
        ("of", "since", "until", "except", "kind", "when", "against", "why_not"), False
    ),
}
KINDS = (CheckKind.RESULT, CheckKind.REJECTION)
LATEST = 1 << 31


@cache
def families() -> Mapping[str, Sequence[Operator]]:
    """Return the versions of each operator, by family."""
    found: dict[str, list[Operator]] = {}
    for row in OPERATORS.values():
        found.setdefault(row.family, []).append(row)
    return found


def traced_operators() -> list[str]:
    """Return the operators and their versions, by which `trace` selects statements."""
    return list(dict.fromkeys((*families(), *OPERATORS)))


def read_statements(path: Path) -> list[Statement]:
    """Return the statements of a file, in its order.

    Raises:
        UnreadableFile: it cannot be read.
        ConfigError: it is malformed; every finding has its place.
    """
    reader = _Reader()
    found = [*reader.statements(read_yaml(path, quickly=True))]
    reader.findings.raise_any()
    return found


class _Reader:
    def __init__(self) -> None:
        self.findings = Findings()
        self._places: dict[str, Place] = {}  # of statements, by id

    def statements(self, node: YamlNode) -> Iterator[Statement]:
        """Yield the statements of a file."""
        keys = self._keys(node, "a file of statements", FILE)
        operators = self._among(keys.get("operators"), "operator", families())
        self.findings.raise_any()  # without operators nothing below could be read
        for section in self._list(keys.get("sections")):
            keys = self._keys(section, "a section", SECTION)
            of = self._among(keys.get("of"), "operator", operators) or operators
            title = self._text(keys.get("section"))
            if "statements" in keys:
                whole = "statements of a section"
                rows = read_mapping(keys["statements"], whole, "", None, self.findings)
                for name, row in rows.items():
                    yield from self._statement(name, row, title, of)

    def _statement(
        self, name: Key, node: YamlNode, section: str, operators: Sequence[str]
    ) -> Iterator[Statement]:
        """Yield a statement for each operator that it applies to."""
        keys = self._keys(node, f"'{name}'", STATEMENT)
        of = self._among(keys.get("of"), "operator", operators) or operators
        known = [row for each in of for row in families()[each]]

        since, until = self._number(keys.get("since"), 0), self._number(keys.get("until"), LATEST)
        left_out = self._among(keys.get("except"), "operator version", [row.name for row in known])
        rows = [r for r in known if since <= r.version <= until and r.name not in left_out]
        if not rows:
            self.findings.add(name.place, f"'{name}' applies to no version of {', '.join(of)}")

        conditions = []
        for each in self._list(keys.get("when")):
            try:
                conditions.append(condition_named(self._text(each), known))
            except InvalidRequest as error:
                self.findings.add(each.place, str(error))

        cells: dict[str, Sequence[str]] = {}  # of each violation
        for violation in self._text(keys.get("against")).split():
            try:
                cells[violation] = violation_named(violation).cells
            except InvalidRequest as error:
                self.findings.add(keys["against"].place, str(error))

        why_not, kind = self._text(keys.get("why_not")), CheckKind.RESULT
        if (stated := keys.get("kind")) and stated.value in KINDS:
            kind = CheckKind(str(stated.value))
        elif stated:
            self.findings.add(stated.place, unknown("kind", shown(stated).strip("'"), KINDS))

        for operator in of:
            own = [row for row in rows if row.family == operator]
            if not own:
                continue
            found = Statement(
                name=str(name),
                sentence=self._text(keys.get("says")),
                section=section,
                operator=operator,
                versions=tuple(row.version for row in own),
                kind=CheckKind.NONE if why_not else kind,
                when=all_of(conditions),
                against=tuple(v for v, of_it in cells.items() if own[0].cell.name in of_it),
                why_not=why_not,
            )
            first = self._places.setdefault(found.id, name.place)
            if first is not name.place:
                self.findings.add(name.place, f"'{found.id}' already stands on line {first.line}")
            yield found

    # --- values; an absent one is a default, a malformed one a finding and the default ---

    def _keys(self, node: YamlNode, whole: str, known: Mapping[str, bool]) -> dict[str, YamlNode]:
        entries = read_mapping(node, whole, "key", known, self.findings)
        keys = {str(key): value for key, value in entries.items()}
        missing = [key for key, required in known.items() if required and key not in keys]
        if missing and isinstance(node.value, dict):
            self.findings.add(node.place, f"{whole} has no {' and no '.join(missing)}")
        return keys

    def _text(self, node: YamlNode | None) -> str:
        if node is None or (isinstance(node.value, str) and node.value):
            return str(node.value) if node else ""
        self.findings.add(node.place, f"expected text, got {shown(node)}")
        return ""

    def _number(self, node: YamlNode | None, default: int) -> int:
        if node is None or type(node.value) is int:
            return int(str(node.value)) if node else default
        self.findings.add(node.place, f"expected a version, got {shown(node)}")
        return default

    def _list(self, node: YamlNode | None) -> Iterable[YamlNode]:
        """Return the nodes of a list; another value is a list of one."""
        if node is None:
            return ()
        return node.value if isinstance(node.value, tuple) else (node,)

    def _among(self, node: YamlNode | None, what: str, known: Iterable[str]) -> list[str]:
        """Return the words of a text, each of which must be known."""
        names = self._text(node).split()
        for name in names:
            if name not in known:
                assert node is not None
                self.findings.add(node.place, unknown(what, name, known))
        return [name for name in names if name in known]


_ROWS = [row for path in statement_files() for row in read_statements(path)]
STATEMENTS: Mapping[str, Statement] = {
    row.id: row for name in families() for row in _ROWS if row.operator == name
}


def statement_named(id: str) -> Statement:  # noqa: A002 -- what a statement itself calls it
    """Return the statement with an id.

    Raises:
        InvalidRequest: the id is unknown.
    """
    if id not in STATEMENTS:
        raise InvalidRequest(f"unknown statement '{id}'{did_you_mean(id, STATEMENTS)}")
    return STATEMENTS[id]
