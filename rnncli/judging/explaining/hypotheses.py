"""What may be behind a wrong output: another reading, one bug, or two of them at once.

All are mutants that can be run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.approximations import APPROXIMATIONS
from rnncli.judging.explaining.coarser_arithmetic import PRECISIONS, coarser_arithmetic
from rnncli.judging.explaining.combinations import (
    AND,
    READING,
    RIGHT,
    name_of,
    pairs,
    parts_of,
    subsets,
    together,
)
from rnncli.judging.explaining.earlier_calls import KEPT
from rnncli.judging.explaining.features import Features, features_of
from rnncli.judging.explaining.fitting import Wrong
from rnncli.judging.explaining.localisation import steps_of
from rnncli.judging.explaining.places import Places, places_of
from rnncli.judging.explaining.screening import Screen
from rnncli.judging.scoring.adequacy import Fate, Trial
from rnncli.mutants.mutant import Change, Mutant
from rnncli.mutants.table import MUTANTS, is_scored
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.explaining.combinations import Hypothesis
    from rnncli.judging.explaining.fitting import Fit
    from rnncli.judging.explaining.localisation import Steps
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Recurrence

# Hypothesis that is no row of a table of mutants -> what it says.
UNTABLED = {**{name: sentence for name, (sentence, _) in APPROXIMATIONS.items()}, **KEPT}
# Of several hypotheses that fit so many are named.
NAMED = 3
# Naming the bug of one case while a pack is judged takes so many multiplications at most: half a
# second. Diagnosing it may take what it takes.
AFFORDABLE = 1 << 31
# Two bugs at once are looked for among so many whose outputs are nearest to what was got.
NEAREST = 48
# Of which one fits here and there where the true one is not known.
APPROXIMATED = "approximations"
# Of the bugs that other cases of a cell named, so many are tried at once.
MOST = 6


def sentence_of(hypothesis: str) -> str:
    """Say what goes wrong."""
    return " ".join(map(_sentence, parts_of(hypothesis)))


def _sentence(name: str) -> str:
    if name in UNTABLED:
        return UNTABLED[name]
    if name in PRECISIONS:
        return f"Computes in {PRECISIONS[name]}, whatever the tensors are."
    reading, _, choice = name.partition("=")
    if not choice:
        return MUTANTS[name].sentence
    row = READINGS.get(reading)
    if row is None or choice not in row.choices:  # of a pack that another rnncli has made
        return f"Reads {reading} as {choice}."
    return f"Reads {row.summary} as {choice}: {row.meanings[choice]}."


def naming(fits: Mapping[str, float]) -> str:
    """Say which hypotheses fit; what goes wrong where just one does."""
    names = list(fits)
    if len(names) == 1:
        return f"fits {names[0]}: {sentence_of(names[0])}"
    shown = names[:NAMED] + [f"{len(names) - NAMED} more"] * (len(names) > NAMED)
    return f"fits {', '.join(shown[:-1])} or {shown[-1]}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one case says of the hypotheses of its cell.

    Attributes:
        id: of the case.
        cell: whose kernel it tests.
        verdict: of the case.
        fits: of a case that differs: hypothesis -> the largest error / tolerance between its
            outputs and what was got, of those that give just that.
        refuted: the readings and single mutants that would have been seen, of those that were
            tried; of a case that differs those that have no part in what fits.
        got: the outputs of a case that differs and that nothing fits but an approximation.
        dtype: of its tensors.
        features: what it has that others lack.
        places: of a case that differs: where it is wrong.
    """

    id: str
    cell: str
    verdict: Verdict
    fits: dict[str, float]
    refuted: frozenset[str] = frozenset()
    got: Tensors = field(default_factory=dict, compare=False, repr=False)
    dtype: str = ""
    features: Features = field(default_factory=Features)
    places: Places = field(default_factory=Places)

    @property
    def parts(self) -> frozenset[str]:
        """What has a part in any of its fits."""
        return frozenset(part for name in self.fits for part in parts_of(name))


def evidence_of_failure(
    vector: Vector,
    got: Tensors,
    mutants: Sequence[Mutant],
    rule: Rule,
    fits: Mapping[str, float] | None = None,
) -> Evidence:
    """Try readings and single mutants on a case that differs, and see what is particular about it.

    Args:
        vector: what was asked.
        got: what came out.
        mutants: of its cell.
        rule: how near is near enough.
        fits: what `single_fits` has found, if it was asked.
    """
    steps = steps_of(vector, got, rule)
    found = dict(fits or {})
    if not found:
        found = single_fits(vector, got, mutants, rule, steps) if fits is None else {}
    return Evidence(
        *(vector.id, vector.recurrence.cell.name, Verdict.DIFFERS, found),
        got={} if any(_is_exact(part) for name in found for part in parts_of(name)) else got,
        dtype=vector.record["dtype"],
        features=features_of(vector),
        places=places_of(vector, got, rule, steps),
    )


def single_fits(
    vector: Vector,
    got: Tensors,
    mutants: Sequence[Mutant],
    rule: Rule,
    steps: Steps | None,
    *,
    most: float = math.inf,
) -> dict[str, float]:
    """Return the hypotheses that give what was got, each with its margin, the nearest first.

    Those are the other readings of a vector and single mutants, or else a coarser arithmetic.

    Args:
        vector: what was asked.
        got: what came out.
        mutants: of its cell.
        rule: how near is near enough.
        steps: of the Y that came out; None where there is none.
        most: how many multiplications whole runs may take. Where all that may fit would take more,
            of those that give the first wrong step as many are run, and one at least.
    """
    wrong = Wrong(vector, got, rule)
    is_forced = steps is not None and steps.spot is not None
    affordable = is_forced or len(mutants) * wrong.multiplications <= most
    if not (wrong.is_comparable and affordable):
        return {}
    likely = (mutant for mutant in mutants if _may_be_seen(mutant, wrong))
    singles: list[Hypothesis] = [(mutant,) for mutant in (*_readings(vector), *likely)]
    fits = _margins(wrong.fitting(_likely(wrong, steps, singles, most)))
    return fits or (coarser_arithmetic(steps) if steps else {})


def evidence_of_two(
    vector: Vector, evidence: Evidence, mutants: Sequence[Mutant], rule: Rule
) -> Evidence:
    """Try two at once on a case that nothing fits, of hypotheses whose outputs are near.

    Args:
        vector: what was asked.
        evidence: of the case.
        mutants: of its cell.
        rule: how near is near enough.
    """
    wrong, steps = Wrong(vector, evidence.got, rule), steps_of(vector, evidence.got, rule)
    if not wrong.is_comparable:
        return evidence
    broad = (m for m in mutants if is_scored(m.id))  # finer variants would crowd others out
    tried = wrong.tried((mutant,) for mutant in _seen(vector, wrong.recurrence, broad))
    near = [fit.hypothesis for fit in sorted(tried, key=lambda fit: fit.error)[:NEAREST]]
    several = _likely(wrong, steps, list(pairs([each[0] for each in near])))
    return replace(evidence, fits=_margins(wrong.fitting(several)) or dict(_coarse(wrong, near)))


def _likely(
    wrong: Wrong, steps: Steps | None, hypotheses: Sequence[Hypothesis], most: float = math.inf
) -> Sequence[Hypothesis]:
    """Return the hypotheses that are worth a whole run, within `most` multiplications."""
    near: list[Hypothesis] = []
    likely = hypotheses
    if steps is not None and steps.spot is not None:
        screen = Screen(wrong, steps)
        likely = screen.likely(hypotheses)
        near = [each for each in likely if screen.is_forcible(each)]
    runs = max(1.0, most / max(1, wrong.multiplications))
    return likely if len(likely) <= runs else near[: int(runs)]


def evidence_of_several(
    vector: Vector, evidence: Evidence, names: Iterable[str], rule: Rule
) -> Evidence:
    """Try several hypotheses at once on a case that nothing explains: what other cases named.

    Args:
        vector: what was asked.
        evidence: of the case.
        names: of mutants and readings.
        rule: how near is near enough.
    """
    wrong = Wrong(vector, evidence.got, rule)
    known = [MUTANTS[name] for name in names if name in MUTANTS]
    found = _margins(wrong.fitting(subsets(_seen(vector, wrong.recurrence, known)[:MOST])))
    return replace(evidence, fits={**evidence.fits, **found})


def evidence_of_named(
    vector: Vector, evidence: Evidence, names: Iterable[str], rule: Rule
) -> Evidence:
    """Try hypotheses on a case that nothing explains: the pairs that fit other cases.

    Args:
        vector: what was asked.
        evidence: of the case.
        names: of hypotheses.
        rule: how near is near enough.
    """
    wrong = Wrong(vector, evidence.got, rule)
    known = {**MUTANTS, **{each.id: each for each in _readings(vector)}}
    parts = [parts_of(name) for name in names]
    given = [together([known[part] for part in each]) for each in parts if known.keys() >= {*each}]
    return replace(evidence, fits={**evidence.fits, **_margins(wrong.fitting(given))})


def evidence_of_pass(vector: Vector, mutants: Iterable[Mutant], rule: Rule) -> Evidence:
    """Tell which of its readings and of some mutants a case rules out if it passes."""
    recurrence, trial = vector.recurrence, Trial(vector, rule)
    refuted = frozenset(
        mutant.id
        for mutant in _seen(vector, recurrence, mutants)
        if trial.outcome(mutant.run(recurrence)).fate is not Fate.SURVIVED
    )
    return Evidence(
        *(vector.id, recurrence.cell.name, Verdict.PASS, {}, refuted),
        dtype=vector.record["dtype"],
        features=features_of(vector),
    )


def _seen(vector: Vector, recurrence: Recurrence, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the other readings of a vector, then the mutants that can be seen in it."""
    seen = (mutant for mutant in mutants if not mutant.equivalent_when(recurrence))
    return [*_readings(vector), *seen]


def _may_be_seen(mutant: Mutant, wrong: Wrong) -> bool:
    """Whether a mutant may be seen; what takes an evaluation, that of its outputs tells as soon."""
    change = mutant.change
    rewrites = change.engine is RIGHT.engine and change.result is RIGHT.result
    return not (mutant.unseen(wrong.recurrence) or (rewrites and wrong.is_idle(mutant)))


def _readings(vector: Vector) -> Iterator[Mutant]:
    """Yield the other readings of a vector as changes: of all that the recurrence is."""
    for name in vector.alternatives:
        other = vector.recurrence_under(name)
        change = Change(recurrence=partial(_instead, other))
        yield Mutant(name, (other.cell.name,), READING, "", "", change)


def _instead(other: Recurrence, recurrence: Recurrence) -> Recurrence:
    del recurrence
    return other


def _is_exact(part: str) -> bool:
    """Whether a hypothesis is more than one of many approximations that look alike at times."""
    return part not in MUTANTS or MUTANTS[part].family != APPROXIMATED


def _margins(fits: Iterable[Fit]) -> dict[str, float]:
    """Return the margins of fits by name."""
    return {name_of(fit.hypothesis): float(fit.margin) for fit in fits}


def _coarse(wrong: Wrong, near: Sequence[Hypothesis]) -> Iterator[tuple[str, float]]:
    """Yield the finest coarser arithmetic whose errors are as large, alone or beside a bug."""
    for hypotheses in ([()], near):
        for name, dtype in PRECISIONS.items():
            for hypothesis in hypotheses:
                margin = wrong.coarsely(hypothesis, dtype)
                if margin <= 1:
                    yield AND.join(filter(None, (name_of(hypothesis), name))), margin
                    return
