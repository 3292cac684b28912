"""Captures: executions of a model's recurrent nodes that become cases, and their ids."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rnncli.cases.suite.entry import LONGEST_ID
from rnncli.errors import NothingSelected, Unsupported, did_you_mean
from rnncli.models.model import rooted
from rnncli.models.node_listing import recurrent_sites, unevaluated_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rnncli.models.model import Model
    from rnncli.models.node_listing import UnevaluatedNode
    from rnncli.models.observation import Occurrence

    Path = tuple[str, ...]


MOST_NAMED = 3
"""The most nodes that a sentence names."""


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """An execution chosen to become a case.

    Attributes:
        occurrence: the execution.
        path: path of its node, from its graph or function.
        node: index of its node in the order of first execution, from 0.
        number: number of the execution of that node, from 1.
    """

    occurrence: Occurrence
    path: Path
    node: int
    number: int

    @property
    def where(self) -> str:
        """The path in words, as `rnncli inspect` prints it."""
        return " / ".join(self.path)


class Captures:
    """A selection among the executions of recurrent nodes, made while they run.

    Every node gets a first execution before any node gets a second one. Other executions are not
    kept.

    Args:
        model: the model that will run.
        wanted: names or patterns of nodes; empty for all.
        max_cases: most executions to keep.
        max_bytes: largest size of the inputs and outputs of an execution.
        unevaluated: the nodes that cannot be evaluated; by default those of the model.

    Raises:
        NothingSelected: the model has no recurrent node, or none that matches.
        Unsupported: none of its recurrent nodes, or not a wanted one, can be evaluated.
    """

    def __init__(
        self,
        model: Model,
        wanted: Sequence[str],
        *,
        max_cases: int,
        max_bytes: int,
        unevaluated: Sequence[UnevaluatedNode] | None = None,
    ) -> None:
        self.model, self.max_cases, self.max_bytes = model, max_cases, max_bytes
        self.paths = [rooted(model, (*site.path, site.name)) for site, _ in recurrent_sites(model)]
        self._unevaluated = [*unevaluated_nodes(model)] if unevaluated is None else unevaluated
        self._takes_all = not wanted
        self.wanted = {path for path in self.paths if not wanted or _is_any(path, wanted)}
        self._refuse_idle(wanted)
        self._kept: list[Capture] = []
        self._nodes: dict[int, int] = {}
        self._executions: Counter[int] = Counter()
        self._ran: set[Path] = set()
        self._large: dict[Path, list[int]] = {}
        self._mute: set[Path] = set()
        self._surplus = 0

    def _refuse_idle(self, wanted: Sequence[str]) -> None:
        self._refuse_unevaluated(wanted)
        if not self.paths:
            raise NothingSelected(f"{self.model.name}: has no recurrent node")
        for pattern in wanted:
            if not any(_is_called(path, pattern) for path in self.paths):
                names = dict.fromkeys(path[-1] for path in self.paths)
                hint = did_you_mean(pattern, names) or f"; there are {', '.join(names)}"
                raise NothingSelected(f"{self.model.name}: no recurrent node '{pattern}'{hint}")

    def _refuse_unevaluated(self, wanted: Sequence[str]) -> None:
        """Refuse wanted nodes that cannot be evaluated."""
        found = [
            node
            for node in self._unevaluated
            if (_is_any(node.path, wanted) if wanted else not self.paths)
        ]
        if found:
            listed = ", ".join(map(str, found[:MOST_NAMED])) + ", ..." * (len(found) > MOST_NAMED)
            nodes = "1 recurrent node" if len(found) == 1 else f"{len(found)} recurrent nodes"
            raise Unsupported(f"{self.model.name}: {nodes} cannot be evaluated here: {listed}")

    def add(self, occurrence: Occurrence) -> None:
        """Keep an execution if it is wanted and within the limits."""
        path = rooted(self.model, occurrence.path)
        self._ran.add(path)
        if path not in self.wanted:
            return
        node = self._nodes.setdefault(occurrence.key, len(self._nodes))
        self._executions[node] += 1
        if not occurrence.node.outputs:
            self._mute.add(path)
        elif occurrence.nbytes > self.max_bytes:
            self._large.setdefault(path, []).append(occurrence.nbytes)
        else:
            self._keep(Capture(occurrence, path, node, self._executions[node]))

    def _keep(self, capture: Capture) -> None:
        insort(self._kept, capture, key=lambda kept: (kept.number, kept.node))
        if len(self._kept) > self.max_cases:
            self._kept.pop()
            self._surplus += 1

    def chosen(self) -> list[Capture]:
        """Return the executions kept, grouped by node.

        Raises:
            NothingSelected: none was kept; says why.
        """
        if not self._kept:
            reasons = "; ".join(self.warnings())
            raise NothingSelected(f"{self.model.name}: nothing was captured: {reasons}")
        return sorted(self._kept, key=lambda kept: (kept.node, kept.number))

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for everything left out."""
        for node in self._unevaluated if self._takes_all else ():
            place, why = " / ".join(node.path), node.reason and f": {node.reason}"
            yield f"{place}: left out: {node.operator} cannot be evaluated here{why}"
        for path in dict.fromkeys(self.paths):
            where = " / ".join(path)
            if path in self.wanted and path not in self._ran:
                yield f"{where}: did not run on these inputs"
            if path in self._mute:
                yield f"{where}: left out: the node names no output"
            if sizes := self._large.get(path):
                yield (
                    f"{where}: {len(sizes)} of its executions left out: up to {max(sizes)} bytes,"
                    f" more than --max-bytes {self.max_bytes}"
                )
        if self._surplus:
            yield f"{self._surplus} further executions left out by --max-cases {self.max_cases}"


def _is_any(path: Path, patterns: Sequence[str]) -> bool:
    return any(_is_called(path, pattern) for pattern in patterns)


def _is_called(path: Path, pattern: str) -> bool:
    """Whether a pattern matches the node's name, or its whole path as printed."""
    names = path[-1], " / ".join(path)
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def slug(text: str) -> str:
    """Return a text in lower-case letters, digits and underscores; "" if it has none of them.

    Long texts keep their end: names of nodes go from the general to the particular.
    """
    longest = LONGEST_ID - len("_1234567")  # room for a number
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[-longest:].strip("_")


def ids_of(captures: Sequence[Capture]) -> list[str]:
    """Return unique ids: `lstm_1` for a node's first execution, then `lstm_1_2` and so on.

    If two nodes have the same name, the later one gets its whole path.
    """
    bases: dict[int, str] = {}
    for capture in captures:
        if capture.node not in bases:
            bases[capture.node] = _base(capture, set(bases.values()))
    taken = set(bases.values())
    ids = []
    for capture in captures:
        case_id = bases[capture.node]
        if capture.number > 1:
            case_id = _free(f"{case_id}_{capture.number}", taken)
            taken.add(case_id)
        ids.append(case_id)
    return ids


def _base(capture: Capture, taken: Collection[str]) -> str:
    name = slug(capture.path[-1])
    if not name:
        return _free(slug(capture.occurrence.node.operator.type), taken)
    return name if name not in taken else _free(slug(capture.where), taken)


def _free(wanted: str, taken: Collection[str]) -> str:
    """Return an unused id."""
    found, k = wanted, 2
    while found in taken:
        found, k = f"{wanted}_{k}", k + 1
    return found
