"""From wrong outputs of a whole pack to what is behind them, whoever does the work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rnncli.judging.diagnosis import Diagnosis, diagnose
from rnncli.judging.hypotheses import (
    Evidence,
    evidence_of_named,
    evidence_of_several,
    evidence_of_two,
)
from rnncli.mutants.table import mutants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.judging.rule import Rule
    from rnncli.vectors.vector import Vector

# Two bugs at once are looked for in so many cases of a cell: they must explain the others, too.
SEARCHED = 4


class Investigation:
    """The failures of a run, and what cases say of the hypotheses that were named.

    Args:
        failures: of all cells.
        rule_out: tells which of some hypotheses every case of those cells rules out if it passes.
        read: case id -> its vector.
        rule: by which all was judged.
    """

    def __init__(
        self,
        failures: Sequence[Evidence],
        rule_out: Callable[[frozenset[str]], Iterable[Evidence]],
        read: Callable[[str], Vector],
        rule: Rule,
    ) -> None:
        self._failures, self._read, self._rule = list(failures), read, rule
        self._rule_out = rule_out
        self._asked: frozenset[str] = frozenset()
        self._ruled: Mapping[str, Evidence] = {}

    def diagnosis(self) -> Diagnosis:
        """Name what is behind the failures: single hypotheses, then what those give at once."""
        first = self._judged()
        fitting = (*first.causes, *first.doubts)
        for k, each in self._open(first):
            names = [name for c in fitting if c.cell == each.cell for name in c.parts]
            if names:
                self._failures[k] = evidence_of_several(
                    *(self._read(each.id), each, dict.fromkeys(names), self._rule)
                )
        self._search(self._judged())
        return self._judged()

    def _search(self, found: Diagnosis) -> None:
        """Look for two bugs at once in a few cases of each cell, and try those on the others."""
        left = self._open(found)
        for cell in dict.fromkeys(each.cell for _, each in left):
            of_cell = [(k, each) for k, each in left if each.cell == cell]
            few = of_cell[:: max(1, len(of_cell) // SEARCHED)][:SEARCHED]
            for k, each in few:
                self._failures[k] = evidence_of_two(
                    *(self._read(each.id), each, mutants_of(cell), self._rule)
                )
            names = dict.fromkeys(name for k, _ in few for name in self._failures[k].fits)
            for k, each in of_cell if names else ():
                if (k, each) not in few:
                    self._failures[k] = evidence_of_named(
                        *(self._read(each.id), each, names, self._rule)
                    )

    def _open(self, found: Diagnosis) -> list[tuple[int, Evidence]]:
        """Return the failures that nothing explains and whose outputs are known."""
        left = set(found.unexplained)
        return [(k, each) for k, each in enumerate(self._failures) if each.got and each.id in left]

    def _judged(self) -> Diagnosis:
        """Weigh what is known so far."""
        named = frozenset(part for each in self._failures for part in each.parts)
        if not self._ruled or not named <= self._asked:
            self._asked = named
            self._ruled = {each.id: each for each in self._rule_out(named)}
        differing = {each.id for each in self._failures}
        passes = (each for name, each in self._ruled.items() if name not in differing)
        return diagnose((*self._weighed(), *passes))

    def _weighed(self) -> Iterator[Evidence]:
        """Yield failures with what speaks against hypotheses that have no part in them."""
        for each in self._failures:
            yield replace(each, refuted=self._ruled[each.id].refuted - each.parts)


def investigate(
    failures: Sequence[Evidence],
    rule_out: Callable[[frozenset[str]], Iterable[Evidence]],
    read: Callable[[str], Vector],
    rule: Rule,
) -> Diagnosis:
    """Name what is behind failures.

    Args:
        failures: of all cells.
        rule_out: tells which of some hypotheses every case of those cells rules out if it passes.
        read: case id -> its vector.
        rule: by which all was judged.
    """
    return Investigation(failures, rule_out, read, rule).diagnosis()
