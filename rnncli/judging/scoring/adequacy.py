"""Outcomes of mutants: plausible bugs, each judged by a vector like any implementation.

A suite is as good as the bugs it catches. A mutant that no vector tells from the reference shows
which case is missing.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import measured_outputs
from rnncli.mutants.catalogue import structural_of
from rnncli.mutants.structural import UNREACHED, Reach
from rnncli.recurrence.readings import must_be_declared

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.files.formats.format import Tensors
    from rnncli.judging.comparing.rule import Rule
    from rnncli.mutants.mutant import Mutant
    from rnncli.mutants.structural import StructuralMutant
    from rnncli.packs.vector import Answers, Vector
    from rnncli.recurrence.recurrence import Result


class Fate(StrEnum):
    """How a mutant fares in a vector; over several vectors the first of these counts."""

    KILLED = "killed"
    ACCEPTABLE = "acceptable"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"


class Outcome(NamedTuple):
    """The outcome of one mutant in one vector."""

    fate: Fate  # whether it is caught
    margin: float = 0.0  # the largest error / tolerance of any output; 0 if nothing was computed
    # why it is equivalent here, which reading makes it acceptable, or why its outputs could not be
    # compared; else ""
    reason: str = ""


def unscored(vector: Vector) -> str:
    """Return why a vector is not scored, or ""."""
    return "" if vector.record.expect == "result" else "must be refused"


def outcomes(vector: Vector, mutants: Iterable[Mutant], rule: Rule) -> dict[str, Outcome]:
    """Return the outcomes of mutants of its cell in a vector, by id.

    A mutant whose answers are those of another reading of the specification is acceptable, as in
    `judge`.
    """
    trial = Trial(vector, rule)
    return {mutant.id: trial.of(mutant) for mutant in mutants}


class Trial:
    """A vector's answers, prepared to judge many results."""

    def __init__(self, vector: Vector, rule: Rule) -> None:
        self.node, self.recurrence, self.rule = vector.node, vector.recurrence, rule
        self.answers = rule.answers(vector)
        others = (name for name in vector.alternatives if not must_be_declared(name))
        self.others = {name: rule.answers(vector, name) for name in others}

    def of(self, mutant: Mutant | StructuralMutant) -> Outcome:
        """Run a mutant, unless it is equivalent to the right implementation here."""
        if reason := mutant.equivalent_when(self.recurrence):
            return Outcome(Fate.EQUIVALENT, reason=reason)
        return self.outcome(mutant.run(self.recurrence))

    def outcome(self, result: Result) -> Outcome:
        """Judge a result."""
        got = self.node.outputs_of(result)
        margin, problem = self._margin(got, self.answers)
        if margin <= 1:
            return Outcome(Fate.SURVIVED, margin)
        for reading, answers in self.others.items():
            if self._margin(got, answers)[0] <= 1:
                return Outcome(Fate.ACCEPTABLE, margin, f"answers as {reading} has it")
        return Outcome(Fate.KILLED, margin, problem)

    def _margin(self, got: Tensors, answers: Answers) -> tuple[float, str]:
        """Return the largest margin of all outputs, and why one cannot be compared, or ""."""
        largest = 0.0
        for output in measured_outputs(got, answers, self.rule).values():
            if output.problem:
                return math.inf, f"{output.name}: {output.problem}"
            largest = max(largest, float(output.errors.margin.max(initial=0.0)))
        return largest, ""


FATES = tuple(Fate)
ONE_CALL = Outcome(Fate.EQUIVALENT, reason=f"{UNREACHED}{Reach.CALLS}")


def structural_outcomes(vector: Vector, rule: Rule) -> dict[str, Outcome]:
    """Return the outcomes of the structural mutants of its cell in a vector, by id.

    Their kernel does not quantise, so vectors of quantised operators have none.
    """
    if vector.recurrence.quantiser is not None:
        return {}
    trials = [Trial(call, rule) for call in vector.calls]
    session = [trials[k] for k in vector.call_order]
    found = {}
    for mutant in structural_of(vector.recurrence.cell.name):
        reached: list[Outcome] = []
        if mutant.calls <= 1:  # each call by itself, until one catches the mutant
            for trial in trials:
                reached.append(trial.of(mutant))
                if reached[-1].fate is Fate.KILLED:
                    break
        elif len(session) < mutant.calls:
            reached = [ONE_CALL]
        elif all(reasons := [mutant.equivalent_when(trial.recurrence) for trial in session]):
            reached = [Outcome(Fate.EQUIVALENT, reason=reasons[0])]
        else:
            run = mutant.session()
            reached = [t.outcome(run(t.recurrence, Compute.FLOAT64)) for t in session]
        found[mutant.id] = best_of(reached)
    return found


def best_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the best of several outcomes: by fate, then by largest margin."""
    return min(outcomes, key=lambda found: (FATES.index(found.fate), -found.margin))
