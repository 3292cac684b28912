"""Outcomes of mutants: plausible bugs, each judged by a vector like any implementation.

A suite is as good as the bugs it catches. A mutant that no vector tells from the reference shows
which case is missing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import errors_of, problem_of
from rnncli.mutants.catalogue import structural_of
from rnncli.mutants.equivalence import UNTOUCHED, same_results
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.runs import Runs, alone, joined, part_of
from rnncli.mutants.structural import UNREACHED, Reach
from rnncli.recurrence.readings import must_be_declared

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.judging.comparing.rule import Rule
    from rnncli.mutants.mutant import Mutant
    from rnncli.mutants.runs import Named
    from rnncli.numerics import Array
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


def outcomes(vector: Vector, mutants: Sequence[Mutant], rule: Rule) -> dict[str, Outcome]:
    """Return the outcomes of mutants of its cell in a vector, by id.

    A mutant whose answers are those of another reading of the specification is acceptable, as in
    `judge`.
    """
    runs, trial = Runs(vector.recurrence), Trial(vector, rule)
    reasons = {
        mutant.id: mutant.unseen(vector.recurrence) or (UNTOUCHED if runs.is_idle(mutant) else "")
        for mutant in mutants
    }
    found = {each: Outcome(Fate.EQUIVALENT, reason=reason) for each, reason in reasons.items()}
    seen = [(mutant,) for mutant in mutants if not reasons[mutant.id]]
    right = runs.of(RIGHT.engine)(vector.recurrence)
    for (mutant,), outcome, result in trial.outcomes(runs.results(seen)):
        is_right = mutant.unreached and same_results(right, result)
        unreached = Outcome(Fate.EQUIVALENT, reason=mutant.unreached)
        found[mutant.id] = unreached if is_right else outcome
    return found


class Trial:
    """A vector's answers, prepared to judge many results."""

    def __init__(self, vector: Vector, rule: Rule) -> None:
        self.node, self.recurrence, self.rule = vector.node, vector.recurrence, rule
        self.answers = rule.answers(vector)
        others = (name for name in vector.alternatives if not must_be_declared(name))
        self.others = {name: rule.answers(vector, name) for name in others}

    def outcome(self, result: Result) -> Outcome:
        """Judge a result."""
        return self._judged(alone(result))[0]

    def outcomes(
        self, results: Iterable[tuple[Sequence[Named], Result]]
    ) -> Iterator[tuple[Named, Outcome, Result]]:
        """Yield for each of the named results of stacks its outcome, and itself."""
        for names, stack in joined(results):
            for k, (name, outcome) in enumerate(zip(names, self._judged(stack), strict=True)):
                yield name, outcome, part_of(stack, k)

    def _judged(self, stack: Result) -> list[Outcome]:
        """Judge the results of a stack."""
        got = self.node.outputs_of(stack)
        margins, problem = self._margins(got, self.answers)
        found = [
            Outcome(*((Fate.SURVIVED, margin) if margin <= 1 else (Fate.KILLED, margin, problem)))
            for margin in margins.tolist()
        ]
        for reading, answers in self.others.items() if (margins > 1).any() else ():
            sentence = f"answers as {reading} has it"
            for k in np.flatnonzero(self._margins(got, answers)[0] <= 1):
                if found[k].fate is Fate.KILLED:
                    found[k] = Outcome(Fate.ACCEPTABLE, found[k].margin, sentence)
        return found

    def _margins(self, got: Tensors, answers: Answers) -> tuple[Array, str]:
        """Return each result's largest margin of all outputs, and why one cannot be compared."""
        largest: Array = np.zeros(len(next(iter(got.values()))))
        for name, wanted in answers.outputs.items():
            values = got[name]
            if problem := problem_of(values[0], wanted):
                return np.full(len(values), np.inf), f"{name}: {problem}"
            each = np.broadcast_to(wanted, values.shape)
            margin = errors_of(values, each, answers.tolerances[name], self.rule.ulps(name)).margin
            rows = margin.reshape(len(values), wanted.size)
            largest = np.maximum(largest, rows.max(axis=1, initial=0.0))
        return largest, ""


FATES = tuple(Fate)
ONE_CALL = Outcome(Fate.EQUIVALENT, reason=f"{UNREACHED}{Reach.CALLS}")


def structural_outcomes(
    vector: Vector, rule: Rule, without: Collection[tuple[str, str]] = ()
) -> dict[str, Outcome]:
    """Return the outcomes of the structural mutants of its cell in a vector, by id.

    Their kernel does not quantise, so vectors of quantised operators have none.
    """
    if vector.recurrence.quantiser is not None:
        return {}
    trials = [Trial(call, rule) for call in vector.calls]
    session = [trials[k] for k in vector.call_order]
    cell = vector.recurrence.cell.name
    mutants = [each for each in structural_of(cell) if (cell, each.id) not in without]
    reached: dict[str, list[Outcome]] = {mutant.id: [] for mutant in mutants}

    # Each call by itself, until one catches the mutant.
    left = [mutant for mutant in mutants if mutant.calls <= 1]
    for trial in trials:
        run = []
        for mutant in left:
            if reason := mutant.equivalent_when(trial.recurrence):
                reached[mutant.id].append(Outcome(Fate.EQUIVALENT, reason=reason))
            else:
                run.append(mutant)
        results = (([mutant], alone(mutant.run(trial.recurrence))) for mutant in run)
        for mutant, outcome, _ in trial.outcomes(results):
            reached[mutant.id].append(outcome)
        left = [mutant for mutant in left if reached[mutant.id][-1].fate is not Fate.KILLED]

    for mutant in mutants:
        if mutant.calls <= 1:
            continue
        reasons = [mutant.equivalent_when(trial.recurrence) for trial in session]
        if len(session) < mutant.calls:
            reached[mutant.id] = [ONE_CALL]
        elif all(reasons):
            reached[mutant.id] = [Outcome(Fate.EQUIVALENT, reason=reasons[0])]
        else:
            called = mutant.session()
            reached[mutant.id] = [
                trial.outcome(called(trial.recurrence, Compute.FLOAT64)) for trial in session
            ]
    return {name: best_of(found) for name, found in reached.items()}


def best_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the best of several outcomes: by fate, then by largest margin."""
    return min(outcomes, key=lambda found: (FATES.index(found.fate), -found.margin))
