"""Naming the bug behind wrong outputs: the fewest hypotheses that explain all failures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rnncli.display import Displayed
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.approximations import APPROXIMATIONS
from rnncli.judging.explaining.coarser_arithmetic import PRECISIONS
from rnncli.judging.explaining.combinations import parts_of
from rnncli.judging.explaining.patterns import patterns_of
from rnncli.mutants.table import MUTANTS, is_scored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.judging.explaining.hypotheses import Evidence
    from rnncli.judging.explaining.patterns import Pattern

# What becomes of the smallest and largest numbers of a dtype says nothing of another's.
OF_ONE_DTYPE = {"numbers lost"}
# What may come near any values.
ARITHMETIC = {"approximations", "formats"}
# Two bugs that are never seen alone must explain so many cases at once.
LEAST_TOGETHER = 2
# At most such a part of what a cause explains may speak against it.
AGAINST = 0.5
# A cause explains at least such a part of what is left when all are found.
MINOR = 0.25
# Where no more than such a part of what is explained is left, causes of the rest may be rare.
REST = 0.5
# A condition that failures share by chance as seldom is what is behind them.
SHARED = 1e-6
# A bug of a part of a kernel must explain so many cases.
LEAST_OF_A_PART = 3


@dataclass(frozen=True, slots=True)
class Cause:
    """A bug, or another reading, that explains failures of one cell's kernel.

    Attributes:
        hypothesis: id of a mutant, READING=CHOICE, or several of those.
        cell: whose kernel has it.
        explains: ids of the cases whose wrong outputs it gives.
        of: how many cases of that cell differ.
        predicts: how many cases that pass it leaves as they are.
        refuted: ids of cases that pass although it would be seen in them.
        margin: the largest error / tolerance between its outputs and those that were got.
        indistinguishable: other hypotheses that explain and predict the same.
        contradicted: ids of cases that differ otherwise than it would.
        where: what the cases that it explains have in common, of those in which it would be seen.
    """

    hypothesis: str
    cell: str
    explains: tuple[str, ...]
    of: int
    predicts: int
    refuted: tuple[str, ...]
    margin: float
    indistinguishable: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    where: str = ""

    @property
    def parts(self) -> list[str]:
        """The mutants and readings that are at work at once."""
        return parts_of(self.hypothesis)

    @property
    def against(self) -> int:
        """How many cases speak against it."""
        return len(self.refuted) + len(self.contradicted)

    @property
    def sentence(self) -> str:
        """Say it in one line."""
        passes = f", and predicts {self.predicts} of {self.predicts + len(self.refuted)} passes"
        others = f"; so do {', '.join(self.indistinguishable)}" if self.indistinguishable else ""
        return (
            f"{self.cell}: {self.hypothesis} explains {len(self.explains)} of {self.of} failures"
            f"{passes if self.predicts or self.refuted else ''}{others}"
            f"{f' ({self.where})' if self.where else ''}"
        )

    @property
    def doubt(self) -> str:
        """Say in one line why it is no cause, although it fits."""
        facts = (
            f"{len(self.refuted)} pass in which it would be seen" * bool(self.refuted),
            f"{len(self.contradicted)} differ otherwise" * bool(self.contradicted),
        )
        return (
            f"{self.cell}: {self.hypothesis} fits {len(self.explains)} of {self.of} failures by"
            f" value, but {' and '.join(filter(None, facts)) or 'nothing explains the others'}"
        )

    def record(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**asdict(self), "sentence": self.sentence}


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(Displayed):
    """What is behind the failures of a pack.

    Attributes:
        causes: of each cell, the one that explains most first.
        unexplained: ids of cases that differ and that nothing explains.
        doubts: what fits some of those, although other cases speak against it.
        patterns: what those have in common.
    """

    causes: tuple[Cause, ...] = ()
    unexplained: tuple[str, ...] = ()
    doubts: tuple[Cause, ...] = ()
    patterns: tuple[Pattern, ...] = ()

    def cause_of(self, case_id: str) -> Cause | None:
        """Return the cause that explains a case."""
        return next((cause for cause in self.causes if case_id in cause.explains), None)


def diagnose(evidence: Sequence[Evidence]) -> Diagnosis:
    """Find the fewest hypotheses that explain all failures, cell by cell.

    The one that explains most of what is left is taken first; of those that explain as much the one
    that fewer cases speak against, then one before several at once, then another reading before a
    bug, then a bug before finer variants of others, then the one whose outputs are nearest. Several
    at once come after all single ones.
    """
    courts = [_Court(evidence, cell) for cell in dict.fromkeys(each.cell for each in evidence)]
    for name in _unproved(courts):
        for court in courts:
            court.withdraw(name)
    left = [each for court in courts for each in court.left]
    return Diagnosis(
        tuple(cause for court in courts for cause in court.causes),
        tuple(each.id for each in left),
        tuple(cause for court in courts for cause in court.doubts),
        _patterns(evidence, left),
    )


def _unproved(courts: Sequence[_Court]) -> list[str]:
    """Return hypotheses of which nothing is seen but one number, such as 0, and that is no proof.

    Where other failures, which they leave unexplained, have a condition in common with those that
    they explain, and hardly anything that passes has it, one bug is behind them all.
    """
    names = {cause.hypothesis for court in courts for cause in court.causes}
    left = [each for court in courts for each in court.left]
    passing = [each.features for court in courts for each in court.passing]
    found = []
    for name in sorted(names) if left else ():
        explained = [each for court in courts for each in court.explained_by(name)]
        if all(each.places.one_value for each in explained):
            has = [each.features for each in (*explained, *left)]
            shared = patterns_of(has, passing, ())
            found += [name] if any(pattern.chance <= SHARED for pattern in shared) else []
    return found


def _patterns(evidence: Sequence[Evidence], left: Sequence[Evidence]) -> tuple[Pattern, ...]:
    """Return what failures that nothing explains have in common: of all cells, or of the first."""
    cells = list(dict.fromkeys(each.cell for each in left))
    for some in (cells, *([cell] for cell in cells)):
        failing = [each for each in left if each.cell in some]
        passing = [e.features for e in evidence if e.verdict is Verdict.PASS and e.cell in some]
        features, places = [e.features for e in failing], [e.places for e in failing]
        if found := patterns_of(features, passing, places):
            return found
    return ()


class _Court:
    """The cases of one cell, which speak for and against hypotheses.

    Args:
        evidence: of all cells.
        cell: the one.
    """

    def __init__(self, evidence: Sequence[Evidence], cell: str) -> None:
        self.cell = cell
        self.of_cell = [each for each in evidence if each.cell == cell]
        self.failing = [each for each in self.of_cell if each.verdict is Verdict.DIFFERS]
        self.passing = [each for each in self.of_cell if each.verdict is Verdict.PASS]
        self.left = self.failing
        self.causes: list[Cause] = []
        for likely in (self._is_single, self._is_likely, self._is_rest):
            while cause := self._best(likely):
                self.causes.append(cause)
                self.left = [each for each in self.left if each.id not in cause.explains]
        self._drop_minor()
        self.doubts = self._doubts()

    def explained_by(self, name: str) -> list[Evidence]:
        """Return the failures that a hypothesis explains as a cause."""
        names = {each for c in self.causes if c.hypothesis == name for each in c.explains}
        return [each for each in self.failing if each.id in names]

    def withdraw(self, name: str) -> None:
        """Take a hypothesis for no cause."""
        self._keep([cause for cause in self.causes if cause.hypothesis != name])
        self.doubts = self._doubts()

    def _keep(self, causes: list[Cause]) -> None:
        self.causes = causes
        explained = {name for cause in self.causes for name in cause.explains}
        self.left = [each for each in self.failing if each.id not in explained]

    def _drop_minor(self) -> None:
        """Drop causes beside which too much is left: an unknown bug may look like them at times."""
        most = MINOR * len(self.left)
        self._keep([cause for cause in self.causes if len(cause.explains) >= most])

    def _best(self, likely: Callable[[Cause], bool]) -> Cause | None:
        """Return the hypothesis that explains most of what is left, and those as good."""
        names = dict.fromkeys(name for each in self.left for name in each.fits)
        causes = (self._cause(name, self.left) for name in names)
        ranked = sorted(filter(likely, causes), key=_merit)
        if not ranked:
            return None
        best = ranked[0]
        same = [other.hypothesis for other in ranked[1:] if _facts(other) == _facts(best)]
        return replace(best, indistinguishable=tuple(same), where=self._where(best))

    def _is_single(self, cause: Cause) -> bool:
        """Whether a likely cause is one hypothesis."""
        return len(cause.parts) == 1 and self._is_likely(cause)

    def _is_rest(self, cause: Cause) -> bool:
        """Whether a single hypothesis may be what is left where nearly all is explained.

        That other failures are otherwise speaks against it no more: they have another cause. What
        passes does against an arithmetic, which may come near a few values by chance. Beside a
        function that is only estimated what is left may be that function's.
        """
        explained = len(self.failing) - len(self.left)
        estimated = any(each.hypothesis in APPROXIMATIONS for each in self.causes)
        if estimated or len(cause.parts) > 1 or len(self.left) > REST * explained:
            return False
        most = 0 if any(map(_is_arithmetic, cause.parts)) else len(cause.explains)
        return len(cause.refuted) <= most

    def _is_likely(self, cause: Cause) -> bool:
        """Whether a hypothesis is a cause: half as many cases at most speak against it as for it.

        They all pass, or all differ: what is both seen where nothing is wrong and not all that is
        wrong is another bug that looks like it at times. Or what passes against it lacks what all
        have that it explains: it is a part of the bug.
        Two bugs at once are a cause if each is one by itself, or else if they explain whatever any
        of them is seen in.
        """
        if sum(_is_bug(part) for part in cause.parts) <= 1:
            whole = self._cause(cause.hypothesis, self.failing)
            one_sided = not (whole.refuted and whole.contradicted)
            few = one_sided and whole.against <= AGAINST * len(whole.explains)
            return few or self._is_part(whole)
        known = {part for each in self.causes for part in each.parts}
        return known.issuperset(cause.parts) or (
            not cause.against and len(cause.explains) >= LEAST_TOGETHER
        )

    def _cause(self, name: str, of: Sequence[Evidence]) -> Cause:
        fitting = [each for each in of if name in each.fits]
        parts = set(parts_of(name))
        dtypes = {each.dtype for each in fitting} if _is_of_one_dtype(name) else set()
        heard = [e for e in self.passing if not dtypes or e.dtype in dtypes]
        refuted = [each.id for each in heard if parts & each.refuted]
        contradicted = [
            each.id
            for each in self.failing
            if parts & each.refuted and not (dtypes and each.dtype not in dtypes)
        ]
        return Cause(
            hypothesis=name,
            cell=self.cell,
            explains=tuple(each.id for each in fitting),
            of=len(self.failing),
            predicts=len(self.passing) - len(refuted),
            refuted=tuple(refuted),
            margin=max((each.fits[name] for each in fitting), default=0.0),
            contradicted=tuple(contradicted),
        )

    def _is_part(self, cause: Cause) -> bool:
        """Whether one condition tells all that a hypothesis explains from all that passes.

        Of thousands of pairs of conditions some would.
        """
        several = len(cause.explains) >= LEAST_OF_A_PART
        return several and not cause.contradicted and self._pattern(cause, whole=True) is not None

    def _where(self, cause: Cause) -> str:
        """Say what the cases that a cause explains have, and those that speak against it lack."""
        pattern = self._pattern(cause)
        return f"only {pattern.where}" if pattern else ""

    def _pattern(self, cause: Cause, *, whole: bool = False) -> Pattern | None:
        has = [each.features for each in self.failing if each.id in cause.explains]
        against = {*cause.refuted, *cause.contradicted}
        lacks = [each.features for each in self.of_cell if each.id in against]
        found = (each for each in patterns_of(has, lacks, ()) if not whole or each.is_whole)
        return next(found, None)

    def _doubts(self) -> list[Cause]:
        """Return what fits cases that nothing explains, the most first."""
        left, found = self.left, []
        while names := dict.fromkeys(name for each in left for name in each.fits):
            best = min((self._cause(name, left) for name in names), key=_merit)
            found.append(best)
            left = [each for each in left if each.id not in best.explains]
        return found


def _is_bug(part: str) -> bool:
    """Whether a part is a bug of the kernel's logic: no reading, no coarser arithmetic."""
    return "=" not in part and part not in PRECISIONS


def _is_arithmetic(part: str) -> bool:
    """Whether a part is an approximation, or a format that is too narrow."""
    return part in PRECISIONS or (part in MUTANTS and MUTANTS[part].family in ARITHMETIC)


def _is_of_one_dtype(name: str) -> bool:
    return any(part in MUTANTS and MUTANTS[part].family in OF_ONE_DTYPE for part in parts_of(name))


def _facts(cause: Cause) -> tuple[tuple[str, ...], ...]:
    return cause.explains, cause.refuted, cause.contradicted


def _merit(cause: Cause) -> tuple[int, int, int, int, int, float]:
    """Order causes: more explained, fewer against it, one before two, readings, plain, nearer.

    A mutant may be what another reading is: then that is no bug, and is named as what it is.
    """
    return (
        -len(cause.explains),
        cause.against,
        len(cause.parts),
        -cause.hypothesis.count("="),
        sum(not is_scored(part) for part in cause.parts),
        cause.margin,
    )
