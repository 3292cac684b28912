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
        self._order = tuple(sorted(self._touching, key=lambda f: (-len(self._touching[f]), f)))
        self._known: dict[Row, dict[Row, bool]] = {}
        self._steps: dict[tuple[Row, Row], _Completion] = {}

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
        return self._completes(row, self._order)

    def choices(self, row: Sequence[int], factor: int, levels: Sequence[int]) -> Iterator[int]:
        """Yield those of the levels of an open factor with which a feasible row is still feasible.

        A row is feasible if its `OPEN` levels can be completed.
        """
        row = [*row]
        for row[factor] in levels:
            if factor not in self._touching or self._completes(row, (factor,)):
                yield row[factor]

    def assigned(self, row: Sequence[int], factors: Row) -> Iterator[Sequence[int]]:
        """Yield a feasible row with every choice of levels of some open factors; see `choices`."""
        if not factors:
            yield row
            return
        f, later = factors[0], factors[1:]
        for level in self.choices(row, f, range(self.counts[f])):
            yield from self.assigned([*row[:f], level, *row[f + 1 :]], later)

    def _completes(self, row: list[int], changed: Row) -> bool:
        """Return whether a row is feasible, which it was before some factors got their levels."""
        chosen = tuple([factor for factor in self._order if row[factor] != OPEN])
        step = self._steps.get((chosen, changed))
        if step is None:
            step = self._steps[chosen, changed] = self._step(chosen, changed)
        for condition in step.due:
            if not condition.holds(row):
                return False
        for part in step.parts:
            key = tuple([row[factor] for factor in part.scope])
            known = part.known.get(key)
            if known is None:
                f = part.next
                longer = ([*row[:f], level, *row[f + 1 :]] for level in range(self.counts[f]))
                known = part.known[key] = any(self._completes(each, (f,)) for each in longer)
            if not known:
                return False
        return True

    def _step(self, chosen: Row, changed: Row) -> _Completion:
        """Return what is to be found out when factors got their levels, whatever these are."""
        fixed = {*chosen}
        due = [c for c in self.conditions if fixed >= {*c.scope} and {*changed} & {*c.scope}]
        beside = {f for each in changed for c in self._touching[each] for f in c.scope}
        waiting = beside - fixed
        parts = []
        while waiting:  # the open factors, and what decides on those that are bound to the first
            inside, scope = [waiting.pop()], set[int]()
            for factor in inside:
                for condition in self._touching[factor]:
                    inside += {*condition.scope} - fixed - {*inside}
                    scope.update(condition.scope)
            waiting -= {*inside}
            ordered = tuple([factor for factor in self._order if factor in scope])
            first = next(factor for factor in ordered if factor not in fixed)
            parts.append(_OpenPart(ordered, first, self._known.setdefault(ordered, {})))
        return _Completion(due, parts)


class _OpenPart(NamedTuple):
    """Open factors that conditions bind to one another, and to no other open one."""

    scope: Row  # they, and the chosen ones that they are bound to
    next: int  # the one that is chosen next
    known: dict[Row, bool]  # whether they can be completed, by the levels of the scope


class _Completion(NamedTuple):
    """What is to be found out when factors got their levels, whatever these are."""

    due: Sequence[Condition]  # the conditions that now have all their levels
    parts: Sequence[_OpenPart]  # those of the open factors that may have lost their last level


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
        tries = [*goals.tries(left, used)]
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
        empty = [OPEN] * len(table.counts)
        if table.extends({}):
            for factors in itertools.combinations(range(len(table.counts)), strength):
                for row in table.assigned(empty, factors):
                    self.tuples.append({factor: row[factor] for factor in factors})
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

    def tries(self, left: int, used: Sequence[Sequence[int]]) -> Iterator[Row]:
        """Yield rows with the first uncovered tuple, completed in several orders of the factors.

        `used` has the number of rows with each level of each factor.
        """
        first = self.tuples[(left & -left).bit_length() - 1]
        begun = [first.get(factor, OPEN) for factor in range(len(self.table.counts))]
        for factor, level in first.items():
            left &= self.compatible[factor][level]
        still_open = [factor for factor, level in enumerate(begun) if level == OPEN]
        for k in range(max(len(still_open), 1)):
            yield self._completed(begun, still_open[k:] + still_open[:k], left, used)

    def _completed(
        self, begun: Sequence[int], order: Sequence[int], left: int, used: Sequence[Sequence[int]]
    ) -> Row:
        """Complete a row level by level: by what covers most now, may later, and was used least."""
        row = [*begun]
        pending = [*itertools.accumulate((self.involving[f] for f in order[:0:-1]), or_, initial=0)]
        for factor in order:
            later, times = ~pending.pop(), used[factor]
            bits = [left & each for each in self.compatible[factor]]
            merits = [
                ((some & later).bit_count(), some.bit_count(), -times[level], -level)
                for level, some in enumerate(bits)
            ]
            preferred = [-merit[3] for merit in sorted(merits, reverse=True)]
            row[factor] = next(self.table.choices(row, factor, preferred))
            left = bits[row[factor]]
        return tuple(row)

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
