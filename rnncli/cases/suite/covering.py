"""Covering arrays: few rows that contain every feasible pair, or triple, of levels.

A factor has a number of levels; a row assigns one to each factor. Conditions restrict the levels of
a few factors. Ids of vectors depend on the rows, so the algorithm is implemented here, uses only
integers, and must always return the same rows.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Row: TypeAlias = "tuple[int, ...]"
OPEN = -1  # instead of the level of a factor that has none yet


class Condition(Protocol):
    """A condition on the levels of a few factors."""

    @property
    def scope(self) -> Row:
        """The factors it depends on, at least one."""

    def holds(self, levels: Sequence[int], /) -> bool:
        """Return whether levels of all factors in its scope satisfy it."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that lists the allowed levels of some factors."""

    scope: Row  # the factors, at least one
    allowed: frozenset[Row]  # the allowed combinations of their levels, in that order

    def holds(self, levels: Sequence[int]) -> bool:
        """Return whether levels of all factors in its scope satisfy it."""
        return tuple([levels[factor] for factor in self.scope]) in self.allowed


class Table:
    """Factors with their numbers of levels, and the conditions, all of which must hold."""

    def __init__(self, counts: Sequence[int], conditions: Iterable[Condition] = ()) -> None:
        self.counts = tuple(counts)
        self.conditions = tuple(conditions)
        self._touching: dict[int, list[Condition]] = {}
        for condition in self.conditions:
            for factor in condition.scope:
                self._touching.setdefault(factor, []).append(condition)
        # Factors in most conditions first, so that contradictions show early.
        self._order = sorted(self._touching, key=lambda f: (-len(self._touching[f]), f))
        self._known: dict[Row, bool] = {}
        self._searches: dict[Row, _Search] = {}

    def rows(self) -> Iterator[Row]:
        """Yield every row that satisfies the conditions, the last factor varying fastest."""
        rows: Iterable[Row] = ((),)
        for factor, count in enumerate(self.counts):
            due = [c for c in self._touching.get(factor, ()) if max(c.scope) == factor]
            rows = _longer(rows, count, due)
        return iter(rows)

    def extends(self, levels: Mapping[int, int]) -> bool:
        """Return whether some feasible row has these levels, factor -> level."""
        row = [levels.get(factor, OPEN) for factor in range(len(self.counts))]
        search = self._search(row)
        return self._is_feasible(row, search.due, search.steps)

    def choices(self, levels: Mapping[int, int], factor: int) -> Sequence[int]:
        """Return the levels of an open factor with which some feasible row has these levels."""
        every = range(self.counts[factor])
        if factor not in self._touching:
            return every
        row = [levels.get(each, OPEN) for each in range(len(self.counts))]
        row[factor] = 0  # any level: the search is the same for all
        search = self._search(row)
        due = search.due_with[factor]
        found = []
        for level in every:
            row[factor] = level
            if self._is_feasible(row, due, search.steps):
                found.append(level)
        return found

    def _is_feasible(
        self, row: list[int], due: Sequence[Condition], steps: Sequence[_Step]
    ) -> bool:
        """Return whether some feasible row has the levels of a row that are not open.

        Only the conditions that are due are not known to hold; the steps complete the open levels.
        """
        key = tuple([row[factor] for factor in self._order])
        known = self._known.get(key)
        if known is None:
            sound = all(condition.holds(row) for condition in due)
            known = self._known[key] = sound and _completes([*row], steps)
        return known

    def _search(self, row: Sequence[int]) -> _Search:
        """Return how the open levels of a row are completed."""
        chosen = tuple([factor for factor in self._order if row[factor] != OPEN])
        search = self._searches.get(chosen)
        if search is None:
            known, steps = {*chosen}, []
            for factor in self._order:
                if factor not in known:
                    known.add(factor)
                    due = [c for c in self._touching[factor] if known >= {*c.scope}]
                    steps.append((factor, range(self.counts[factor]), due))
            due = [c for c in self.conditions if {*c.scope} <= {*chosen}]
            due_with = {factor: [c for c in due if factor in c.scope] for factor in chosen}
            search = self._searches[chosen] = _Search(due, due_with, steps)
        return search


_Step: TypeAlias = "tuple[int, range, Sequence[Condition]]"


class _Search(NamedTuple):
    """The order in which levels of some factors are completed, whatever these levels are."""

    due: Sequence[Condition]  # the conditions on these factors alone
    due_with: Mapping[int, Sequence[Condition]]  # factor -> those that depend on it
    # the other factors, each with its levels and the conditions that end with it
    steps: Sequence[_Step]


def _completes(row: list[int], steps: Sequence[_Step], done: int = 0) -> bool:
    """Return whether the open levels of a row can be completed; changes those."""
    if done == len(steps):
        return True
    factor, levels, due = steps[done]
    for row[factor] in levels:
        for condition in due:
            if not condition.holds(row):
                break
        else:
            if _completes(row, steps, done + 1):
                return True
    return False


def _longer(rows: Iterable[Row], count: int, due: Sequence[Condition]) -> Iterator[Row]:
    """Extend every row by one factor, as far as the conditions that end with it hold."""
    for row in rows:
        for level in range(count):
            longer = (*row, level)
            if all(condition.holds(longer) for condition in due):
                yield longer


def count_tuples(counts: Sequence[int], strength: int) -> int:
    """Return the number of tuples of levels of `strength` different factors."""
    # The coefficient of x^strength in the product of (1 + count*x).
    coefficients = [1] + [0] * strength
    for count in counts:
        for k in range(strength, 0, -1):
            coefficients[k] += count * coefficients[k - 1]
    return coefficients[strength]


def covering_array(table: Table, strength: int) -> list[Row]:
    """Return rows of a table that contain every feasible tuple of `strength` levels, 2 for pairs.

    Greedy: each row starts with the first uncovered tuple and is completed level by level, in
    several orders of the factors; the row that covers most is taken.
    """
    goals = _Goals(table, min(strength, len(table.counts)))
    used = [[0] * count for count in table.counts]
    rows: list[Row] = []
    left = goals.everything
    while left:
        tries = [goals.row(left, start, used) for start in range(max(len(table.counts), 1))]
        best = max(tries, key=lambda row: (left & goals.covered(row)).bit_count())
        left &= ~goals.covered(best)
        rows.append(best)
        for factor, level in enumerate(best):
            used[factor][level] += 1
    return goals.without_redundant(rows)


class _Goals:
    """The tuples to cover, as sets of bits: bit k of an integer stands for tuple k."""

    def __init__(self, table: Table, strength: int) -> None:
        self.table = table
        self.tuples: list[dict[int, int]] = []  # every feasible tuple, factor -> level
        for factors in itertools.combinations(range(len(table.counts)), strength):
            for levels in itertools.product(*(range(table.counts[f]) for f in factors)):
                chosen = dict(zip(factors, levels, strict=True))
                if table.extends(chosen):
                    self.tuples.append(chosen)
        self.everything = (1 << len(self.tuples)) - 1
        self.involving = [0] * len(table.counts)
        with_level = [[0] * count for count in table.counts]
        for k, chosen in enumerate(self.tuples):
            for factor, level in chosen.items():
                self.involving[factor] |= 1 << k
                with_level[factor][level] |= 1 << k
        # Tuples that a row with that level covers or can still cover.
        self.compatible = [
            [self.everything & ~self.involving[f] | bits for bits in with_level[f]]
            for f in range(len(table.counts))
        ]

    def covered(self, row: Row) -> int:
        """Return the tuples in a row."""
        bits = self.everything
        for factor, level in enumerate(row):
            bits &= self.compatible[factor][level]
        return bits

    def row(self, left: int, start: int, used: Sequence[Sequence[int]]) -> Row:
        """Complete the first uncovered tuple, with the factors in order from `start` on.

        `used` has the number of rows with each level of each factor.
        """
        levels = dict(self.tuples[(left & -left).bit_length() - 1])
        for factor, level in levels.items():
            left &= self.compatible[factor][level]
        count = len(self.table.counts)
        open_factors = [f % count for f in range(start, start + count) if f % count not in levels]
        while open_factors:
            factor = open_factors.pop(0)
            pending = reduce(or_, (self.involving[f] for f in open_factors), 0)
            levels[factor] = self._best(factor, levels, left, pending, used[factor])
            left &= self.compatible[factor][levels[factor]]
        return tuple(levels[factor] for factor in range(count))

    def _best(
        self, factor: int, levels: Mapping[int, int], left: int, pending: int, used: Sequence[int]
    ) -> int:
        """Return the level that covers most now, may cover most later and was used least."""

        def merit(level: int) -> tuple[int, int, int, int]:
            bits = left & self.compatible[factor][level]
            return (bits & ~pending).bit_count(), bits.bit_count(), -used[level], -level

        return max(self.table.choices(levels, factor), key=merit)

    def without_redundant(self, rows: list[Row]) -> list[Row]:
        """Return the rows without redundant ones, last first, whose tuples occur in others."""
        covered = []  # the tuples of each row, as the indices of set bits
        for row in rows:
            text = f"{self.covered(row):b}"[::-1]
            covered.append([match.start() for match in re.finditer("1", text)])
        times = Counter(itertools.chain(*covered))
        kept = []
        for row, tuples in zip(reversed(rows), reversed(covered), strict=True):
            if all(times[k] > 1 for k in tuples):
                times.subtract(tuples)
            else:
                kept.append(row)
        return kept[::-1]
