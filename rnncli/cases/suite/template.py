"""Templates: cases of a suite before their axes are expanded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.operators import OPERATORS, Operator, operator_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.cases.suite.axes import Factor
    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.settings import Path, Setting, Settings
    from rnncli.errors import Place

# The paths that name the operator.
OPERATOR: tuple[Path, ...] = (("op",), ("opset",))


@dataclass(frozen=True)
class Template:
    """The fixed settings of a case and the factors that vary the others.

    Attributes:
        name: the name of the case.
        place: its place.
        fixed: the settings that no axis varies.
        factors: in the order of their labels in ids; no two set the same path.
    """

    name: str
    place: Place
    fixed: Settings
    factors: tuple[Factor, ...]

    @cached_property
    def levels(self) -> list[list[Settings]]:
        """The settings of each level of each factor."""
        return [[f.settings(level) for level in range(f.count)] for f in self.factors]

    @cached_property
    def _firsts(self) -> list[list[int]]:
        """For each level of each factor, the first level with the same settings."""
        return [_firsts_of(levels) for levels in self.levels]

    def structure(self, row: Row) -> tuple[int, ...]:
        """Return a key that is equal for rows that differ only in labels."""
        return tuple([firsts[level] for firsts, level in zip(self._firsts, row, strict=True)])

    @cached_property
    def setters(self) -> dict[Path, int]:
        """The factor that sets each path, at some level at least."""
        return {
            path: k
            for k, levels in enumerate(self.levels)
            for settings in levels
            for path in settings
        }

    def scope(self, paths: Iterable[Path]) -> tuple[int, ...]:
        """Return the factors that determine the settings at some paths."""
        return tuple(sorted({self.setters[path] for path in paths if path in self.setters}))

    def setting(self, path: Path, levels: Mapping[int, int] | tuple[int, ...]) -> Setting | None:
        """Return the setting at a path.

        Args:
            path: the path.
            levels: levels of at least the factors in its scope.
        """
        k = self.setters.get(path)
        varied = None if k is None else self.levels[k][levels[k]].get(path)
        return varied or self.fixed.get(path)

    def plain(self, path: Path, levels: Mapping[int, int] | tuple[int, ...]) -> object:
        """Return the plain value at a path, or None."""
        setting = self.setting(path, levels)
        return None if setting is None else setting.node.plain

    def place_of(self, paths: Iterable[Path]) -> Place:
        """Return the place of the first of some settings, fixed or set by a factor."""
        for path in (*paths, *OPERATOR):
            if path in self.setters:
                return self.factors[self.setters[path]].place(0)
            if path in self.fixed:
                return self.fixed[path].node.place
        return self.place

    def settings(self, levels: tuple[int, ...]) -> Settings:
        """Return all settings at some levels."""
        settings = dict(self.fixed)
        for k, level in enumerate(levels):
            settings |= self.levels[k][level]
        return settings

    def labels(self, row: Row) -> dict[str, str]:
        """Return the label of each axis."""
        return {
            axis.name: axis.levels[level].label
            for factor, level in zip(self.factors, row, strict=True)
            for axis in factor.axes
        }

    def words(self, row: Row) -> list[str]:
        """Return the labels in the id, in order, without the operator's."""
        words: list[str] = []
        for factor, level in zip(self.factors, row, strict=True):
            labels = {axis.name: axis.levels[level].label for axis in factor.axes}
            told = {"", *(labels.get(name) for (name,) in OPERATOR)}
            # Labels shared by the axes of a zip appear once.
            words += [label for label in dict.fromkeys(labels.values()) if label not in told]
        return words

    def operator(self, levels: Mapping[int, int] | tuple[int, ...]) -> Operator | str:
        """Return the operator that `op` and `opset` name, or why there is none."""
        op, opset = (self.plain(path, levels) for path in OPERATOR)
        return find_operator(op, opset)


def _firsts_of(levels: list[Settings]) -> list[int]:
    firsts: dict[frozenset[tuple[Path, int]], int] = {}
    marks = [frozenset((path, id(s.node)) for path, s in level.items()) for level in levels]
    return [firsts.setdefault(mark, k) for k, mark in enumerate(marks)]


def find_operator(op: object, opset: object) -> Operator | str:
    """Return an operator, or why there is none.

    Args:
        op: ``LSTM-14``, or ``LSTM`` together with an opset.
        opset: the version; None if `op` includes it.
    """
    if not isinstance(op, str):
        return "'op' must name an operator, such as LSTM-14"
    versions = versions_of(op)
    if opset is not None and type(opset) is not int:
        return f"'opset' must be a version, an integer, got {opset!r:.40}"
    if opset is None and op not in OPERATORS:
        numbers = ", ".join(str(row.version) for row in versions)
        return f"'opset' must say which {op}: {numbers}" if versions else _named(op)
    if opset is None:
        return _named(op)
    if not versions:
        types = dict.fromkeys(row.family for row in OPERATORS.values())
        hint = did_you_mean(op, types) or "; it names the version itself" * (op in OPERATORS)
        return f"beside 'opset', 'op' is a type, such as LSTM, got '{op:.40}'{hint}"
    return _named(f"{op}-{opset}")


def versions_of(op: str) -> list[Operator]:
    """Return all versions of an operator, or one that has none."""
    return [row for row in OPERATORS.values() if row.family == op]


def _named(name: str) -> Operator | str:
    try:
        return operator_named(name)
    except InvalidRequest as error:
        return str(error)
