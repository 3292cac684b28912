"""Naming the bug behind wrong outputs: the fewest hypotheses that explain all failures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rnncli.judging.combining import parts_of
from rnncli.judging.verdict import Verdict
from rnncli.mutants.table import is_scored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.judging.hypotheses import Evidence


@dataclass(frozen=True, slots=True)
class Cause:
    """A bug, or another reading, that explains failures of one cell's kernel.

    Attributes:
        hypothesis: id of a mutant, READING=CHOICE, or two of those.
        cell: whose kernel has it.
        explains: ids of the cases whose wrong outputs it gives.
        of: how many cases of that cell differ.
        predicts: how many cases that pass it leaves as they are.
        refuted: ids of cases that pass although it would be seen in them.
        margin: the largest error / tolerance between its outputs and those that were got.
        indistinguishable: other hypotheses that explain and predict the same.
    """

    hypothesis: str
    cell: str
    explains: tuple[str, ...]
    of: int
    predicts: int
    refuted: tuple[str, ...]
    margin: float
    indistinguishable: tuple[str, ...] = ()

    @property
    def parts(self) -> list[str]:
        """The mutants and readings that are at work at once."""
        return parts_of(self.hypothesis)

    @property
    def sentence(self) -> str:
        """Say it in one line."""
        passes = f", and predicts {self.predicts} of {self.predicts + len(self.refuted)} passes"
        others = f"; so do {', '.join(self.indistinguishable)}" if self.indistinguishable else ""
        return (
            f"{self.cell}: {self.hypothesis} explains {len(self.explains)} of {self.of} failures"
            f"{passes if self.predicts or self.refuted else ''}{others}"
        )

    def record(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**asdict(self), "sentence": self.sentence}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is behind the failures of a pack.

    Attributes:
        causes: of each cell, the one that explains most first.
        unexplained: ids of cases that differ and that nothing fits.
    """

    causes: tuple[Cause, ...] = ()
    unexplained: tuple[str, ...] = ()

    def cause_of(self, case_id: str) -> Cause | None:
        """Return the cause that explains a case."""
        return next((cause for cause in self.causes if case_id in cause.explains), None)


def diagnose(evidence: Sequence[Evidence]) -> Diagnosis:
    """Find the fewest hypotheses that explain all failures, cell by cell.

    The one that explains most of what is left is taken first; of those that explain as much the one
    that fewer passing cases refute, then one before two at once, then another reading before a bug,
    then a bug before finer variants of others, then the one whose outputs are nearest.
    """
    causes: list[Cause] = []
    unexplained: list[str] = []
    for cell in dict.fromkeys(each.cell for each in evidence):
        of_cell = [each for each in evidence if each.cell == cell]
        left = [each for each in of_cell if each.verdict is Verdict.DIFFERS]
        while cause := _best(of_cell, [each for each in left if each.fits]):
            causes.append(cause)
            left = [each for each in left if each.id not in cause.explains]
        unexplained += [each.id for each in left]
    return Diagnosis(tuple(causes), tuple(unexplained))


def _best(of_cell: Sequence[Evidence], left: Sequence[Evidence]) -> Cause | None:
    """Return the hypothesis that explains most of what is left, and those as good.

    One that more passes refute than it explains and predicts is none: it came near by chance.
    """
    names = dict.fromkeys(name for each in left for name in each.fits)
    causes = [_cause(name, of_cell, left) for name in names]
    likely = [c for c in causes if len(c.refuted) <= len(c.explains) + c.predicts]
    ranked = sorted(likely, key=_merit)
    if not ranked:
        return None
    best = ranked[0]
    same = [
        other.hypothesis
        for other in ranked[1:]
        if (other.explains, other.refuted) == (best.explains, best.refuted)
    ]
    return Cause(**{**_fields(best), "indistinguishable": tuple(same)})


def _fields(cause: Cause) -> Mapping[str, Any]:
    return {name: getattr(cause, name) for name in cause.__slots__}


def _merit(cause: Cause) -> tuple[int, int, int, int, int, float]:
    """Order causes: more explained, fewer refuting passes, one before two, readings, plain, nearer.

    A mutant may be what another reading is: then that is no bug, and is named as what it is.
    """
    return (
        -len(cause.explains),
        len(cause.refuted),
        len(cause.parts),
        -cause.hypothesis.count("="),
        sum(not is_scored(part) for part in cause.parts),
        cause.margin,
    )


def _cause(name: str, of_cell: Sequence[Evidence], left: Sequence[Evidence]) -> Cause:
    fitting = [each for each in left if name in each.fits]
    passing = [each for each in of_cell if each.verdict is Verdict.PASS]
    parts = set(parts_of(name))
    refuted = [each.id for each in passing if parts & each.refuted]
    return Cause(
        hypothesis=name,
        cell=fitting[0].cell,
        explains=tuple(each.id for each in fitting),
        of=sum(each.verdict is Verdict.DIFFERS for each in of_cell),
        predicts=len(passing) - len(refuted),
        refuted=tuple(refuted),
        margin=max(each.fits[name] for each in fitting),
    )
