"""Reading statements from YAML; `specs/statements/onnx.yaml` says what the keys mean."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from rnncli.cases.yaml_reader import Findings, Key, read_mapping, read_yaml, shown, unknown
from rnncli.errors import InvalidRequest
from rnncli.operators import OPERATORS
from rnncli.verifying.tracing.conditions import all_of, condition_named
from rnncli.verifying.tracing.statement import CheckKind, Statement
from rnncli.verifying.tracing.violations import violation_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.cases.yaml_reader import YamlNode
    from rnncli.errors import Place
    from rnncli.operators import Operator
    from rnncli.verifying.tracing.conditions import CaseCondition

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


def read_statements(path: Path) -> list[Statement]:
    """Return the statements of a file, in its order.

    Raises:
        UnreadableFile: it cannot be read.
        ConfigError: it is malformed; every finding has its place.
    """
    reader = _Reader()
    found = [*reader.file(read_yaml(path, quickly=True))]
    reader.findings.raise_any()
    return found


class _Section(NamedTuple):
    """What a section says of all of its statements: its name, and the operators."""

    name: str
    operators: Sequence[str]


class _Reader:
    """Reads the nodes of one file, and collects findings."""

    def __init__(self) -> None:
        self.findings = Findings()
        self._places: dict[str, Place] = {}  # of statements, by id

    def file(self, node: YamlNode) -> Iterator[Statement]:
        keys = self._keys(node, "a file of statements", FILE)
        operators = self._among(keys.get("operators"), "operator", families())
        self.findings.raise_any()  # without operators nothing below could be read
        for section in self._list(keys.get("sections")):
            yield from self._section(section, operators)

    def _section(self, node: YamlNode, operators: Sequence[str]) -> Iterator[Statement]:
        keys = self._keys(node, "a section", SECTION)
        of = self._among(keys.get("of"), "operator", operators)
        section = _Section(self._text(keys.get("section")), of or operators)
        if "statements" in keys:
            whole = "statements of a section"
            rows = read_mapping(keys["statements"], whole, "", None, self.findings)
            for name, row in rows.items():
                yield from self._statement(name, row, section)

    def _statement(self, name: Key, node: YamlNode, section: _Section) -> Iterator[Statement]:
        """Yield a statement for each operator that it applies to."""
        keys = self._keys(node, f"'{name}'", STATEMENT)
        of = self._among(keys.get("of"), "operator", section.operators) or section.operators
        known = [row for each in of for row in families()[each]]
        rows = self._versions(keys, known)
        if not rows:
            self.findings.add(name.place, f"'{name}' applies to no version of {', '.join(of)}")
        when = self._condition(keys.get("when"), known)
        against = self._violations(keys.get("against"))
        why_not = self._text(keys.get("why_not"))
        kind = self._kind(keys.get("kind"))
        for operator in of:
            own = [row for row in rows if row.family == operator]
            if not own:
                continue
            found = Statement(
                name=str(name),
                sentence=self._text(keys.get("says")),
                section=section.name,
                operator=operator,
                versions=tuple(row.version for row in own),
                kind=CheckKind.NONE if why_not else kind,
                when=when,
                against=tuple(v for v, cells in against.items() if own[0].cell.name in cells),
                why_not=why_not,
            )
            first = self._places.setdefault(found.id, name.place)
            if first is not name.place:
                self.findings.add(name.place, f"'{found.id}' already stands on line {first.line}")
            yield found

    def _condition(self, node: YamlNode | None, known: Sequence[Operator]) -> CaseCondition:
        found = []
        for each in self._list(node):
            try:
                found.append(condition_named(self._text(each), known))
            except InvalidRequest as error:
                self.findings.add(each.place, str(error))
        return all_of(found)

    def _versions(self, keys: Mapping[str, YamlNode], rows: Sequence[Operator]) -> list[Operator]:
        since, until = self._number(keys.get("since"), 0), self._number(keys.get("until"), LATEST)
        left_out = self._among(keys.get("except"), "operator version", [row.name for row in rows])
        return [row for row in rows if since <= row.version <= until and row.name not in left_out]

    def _kind(self, node: YamlNode | None) -> CheckKind:
        if node is None or node.value in KINDS:
            return CheckKind(str(node.value)) if node else CheckKind.RESULT
        self.findings.add(node.place, unknown("kind", shown(node).strip("'"), KINDS))
        return CheckKind.RESULT

    def _violations(self, node: YamlNode | None) -> dict[str, Sequence[str]]:
        """Return the cells of each violation."""
        found: dict[str, Sequence[str]] = {}
        for name in self._text(node).split():
            try:
                found[name] = violation_named(name).cells
            except InvalidRequest as error:
                assert node is not None
                self.findings.add(node.place, str(error))
        return found

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
