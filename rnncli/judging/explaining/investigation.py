"""The search for the causes of a pack's failures, from the evidence of its cases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.explaining.arithmetic import approximation_of
from rnncli.judging.explaining.diagnosis import Diagnosis, diagnose
from rnncli.judging.explaining.fitting import WrongOutputs
from rnncli.judging.explaining.hypotheses import (
    Evidence,
    evidence_of_named,
    evidence_of_several,
    evidence_of_two,
)
from rnncli.judging.explaining.localisation import steps_of
from rnncli.judging.scoring.adequacy import Trial
from rnncli.mutants.catalogue import mutants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.explaining.arithmetic import Approximation
    from rnncli.judging.explaining.diagnosis import Cause
    from rnncli.packs.vector import Vector

# The most cases of a cell in which pairs of bugs are searched; these must explain the others too.
SEARCHED = 4
# Least margin at which a passing case contradicts an approximated function, which is an estimate.
CLEARLY = 4.0


class Investigation:
    """The failures of a run, and the evidence of all cases about the hypotheses they name.

    Args:
        failures: the evidence of failing cases, of all cells.
        rule_out: returns the evidence of every case of those cells, if it passes, against the named
            hypotheses.
        read: case id -> its vector.
        rule: the tolerances of the run.
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
        self._tried: frozenset[str] = frozenset()
        self._ruled: Mapping[str, Evidence] = {}
        self._seen: dict[str, set[str]] = {}
        self._estimates: dict[tuple[str, str], str] = {}

    def diagnosis(self) -> Diagnosis:
        """Name the causes of the failures: single hypotheses, then combinations of those."""
        first = self._diagnosed()
        fitting = (*first.causes, *first.doubts)
        for k, each in self._unexplained(first):
            names = [name for c in fitting if c.cell == each.cell for name in c.parts]
            if names:
                self._failures[k] = evidence_of_several(
                    self._measured(each), each, dict.fromkeys(names)
                )
        self._approximate(self._diagnosed())
        self._search(self._diagnosed())
        return self._diagnosed()

    def _approximate(self, found: Diagnosis) -> None:
        """Look for approximated functions that the passing cases do not contradict."""
        left = self._unexplained(found)
        for cell in dict.fromkeys(each.cell for _, each in left):
            left_over = [(k, each, self._measured(each)) for k, each in left if each.cell == cell]
            steps = (steps_of(measured) for *_, measured in left_over)
            approximation = approximation_of(s for s in steps if s is not None and s.spot)
            if approximation is None:
                continue
            name = approximation.name
            for k, each, measured in left_over:
                wrong = WrongOutputs(measured)
                fit = approximation.fit(wrong) if wrong.is_comparable else math.inf
                if fit <= 1:
                    self._failures[k] = replace(each, fits={**each.fits, name: fit})
            self._estimates[cell, name] = approximation.where
            self._refute(cell, approximation)

    def _refute(self, cell: str, approximation: Approximation) -> None:
        """Note which passing cases of a cell would show an approximated function clearly."""
        for each in self._passing():
            if each.cell == cell:
                vector, mutant = self._read(each.id), approximation.mutant
                outcome = Trial(vector, self._rule).outcome(mutant.run(vector.recurrence))
                if outcome.margin > CLEARLY:
                    self._seen.setdefault(each.id, set()).add(mutant.id)

    def _search(self, found: Diagnosis) -> None:
        """Look for pairs of bugs in a few cases of each cell, and try them on the others."""
        left = self._unexplained(found)
        for cell in dict.fromkeys(each.cell for _, each in left):
            of_cell = [(k, each) for k, each in left if each.cell == cell]
            few = of_cell[:: max(1, len(of_cell) // SEARCHED)][:SEARCHED]
            for k, each in few:
                self._failures[k] = evidence_of_two(self._measured(each), each, mutants_of(cell))
            names = dict.fromkeys(name for k, _ in few for name in self._failures[k].fits)
            for k, each in of_cell if names else ():
                if (k, each) not in few:
                    self._failures[k] = evidence_of_named(self._measured(each), each, names)

    def _measured(self, each: Evidence) -> MeasuredAttempt:
        """Return the outputs of a failure beside the answers of its vector."""
        return MeasuredAttempt(self._read(each.id), each.got, self._rule)

    def _unexplained(self, found: Diagnosis) -> list[tuple[int, Evidence]]:
        """Return the unexplained failures whose outputs are known, with their positions."""
        left = set(found.unexplained)
        return [(k, each) for k, each in enumerate(self._failures) if each.got and each.id in left]

    def _diagnosed(self) -> Diagnosis:
        """Diagnose from the evidence so far."""
        named = frozenset(part for each in self._failures for part in each.parts)
        if not self._ruled or not named <= self._tried:
            self._tried = named
            self._ruled = {each.id: each for each in self._rule_out(named)}
        passes = (
            replace(each, refuted=each.refuted | self._seen.get(each.id, set()))
            for each in self._passing()
        )
        found = diagnose((*self._failing(), *passes))
        return replace(found, causes=tuple(map(self._with_estimate, found.causes)))

    def _with_estimate(self, cause: Cause) -> Cause:
        """Return a cause with the estimate of its size, if there is one."""
        estimate = self._estimates.get((cause.cell, cause.hypothesis), "")
        return msgspec.structs.replace(
            cause, where="; ".join(filter(None, (estimate, cause.where)))
        )

    def _passing(self) -> list[Evidence]:
        """Return the evidence of the passing cases."""
        differing = {each.id for each in self._failures}
        return [each for name, each in self._ruled.items() if name not in differing]

    def _failing(self) -> Iterator[Evidence]:
        """Yield the evidence of failures, each with the hypotheses that it refutes."""
        for each in self._failures:
            yield replace(each, refuted=self._ruled[each.id].refuted - each.parts)
