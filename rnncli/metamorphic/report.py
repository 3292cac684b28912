"""The result of judging relations, the input of every report."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rnncli.display import Displayed
from rnncli.errors import NothingSelected
from rnncli.metamorphic.verdict import MEANINGS, SILENT
from rnncli.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.judging.report import JudgedSubject
    from rnncli.metamorphic.run import RelationPlan
from rnncli.metamorphic.verdict import RelationStatus, RelationVerdict

# The row for cases that have no outputs of their own.
ITSELF = "the case itself"


class RelationTally(NamedTuple):
    """Counts of verdicts on one relation or on all.

    Attributes:
        name: the relation's name; "" for cases without outputs of their own.
        cases: the number of cases.
        counts: the number of verdicts with each status, in the order of `MEANINGS`.
        elements: the number of compared elements.
        margin: the largest distance as a fraction of the allowed one; None if none was compared.
        kinds: the kinds of equality judged by.
        fails: the number of verdicts that make the run fail.
    """

    name: str
    cases: int
    counts: Mapping[RelationStatus, int]
    elements: int
    margin: float | None
    kinds: tuple[str, ...]
    fails: int

    @property
    def verdicts(self) -> int:
        """The number of verdicts."""
        return sum(self.counts.values())


def tally(name: str, verdicts: Sequence[RelationVerdict]) -> RelationTally:
    """Count verdicts."""
    counts = Counter(verdict.status for verdict in verdicts)
    return RelationTally(
        name,
        cases=len({verdict.case for verdict in verdicts}),
        counts={status: counts[status] for status in MEANINGS},
        elements=sum(verdict.elements for verdict in verdicts),
        margin=max((verdict.margin for verdict in verdicts if verdict.elements), default=None),
        kinds=tuple(dict.fromkeys(v.equality for v in verdicts if v.equality)),
        fails=sum(verdict.fails for verdict in verdicts),
    )


@dataclass(frozen=True, slots=True, repr=False)
class RelationReport(Displayed):
    """The verdicts of a run and how they were obtained.

    Attributes:
        plan: the implementation, the cases and the options.
        name: the target's name.
        subject: the implementation, as it describes itself.
        verdicts: one for every case, data set and relation, in the order of the cases.
        seconds: duration of the whole run.
        selects: whether -k chooses among the cases of the target.
    """

    plan: RelationPlan
    name: str
    subject: JudgedSubject
    verdicts: tuple[RelationVerdict, ...]
    seconds: float
    selects: bool = True

    @property
    def fails(self) -> int:
        """The number of verdicts that make the run fail."""
        return self.total.fails

    @property
    def failures(self) -> list[RelationVerdict]:
        """The verdicts that make the run fail."""
        return [verdict for verdict in self.verdicts if verdict.fails]

    @property
    def judged(self) -> int:
        """The number of cases on which at least one relation was judged."""
        return len({verdict.case for verdict in self.verdicts if verdict.is_judged})

    @property
    def shortfall(self) -> str:
        """The reason that a run without failures would prove nothing, or ""."""
        if self.judged >= max(1, self.plan.min_cases):
            return ""
        cases = counted(self.judged, "case") if self.judged else "no case"
        return f"relations of {cases} were judged; --min-cases requires {self.plan.min_cases}"

    @property
    def passed(self) -> bool:
        """Whether no relation fails and enough were judged."""
        return not self.exit_code

    @property
    def exit_code(self) -> int:
        """The code of `rnncli verify`: 1 if a relation fails, 5 if too few were judged, or 0."""
        return 1 if self.fails else NothingSelected.exit_code if self.shortfall else 0

    @property
    def total(self) -> RelationTally:
        """The counts over all verdicts."""
        return tally("all", self.verdicts)

    @property
    def by_relation(self) -> list[RelationTally]:
        """The counts by relation; first those of cases without outputs of their own."""
        names = ("", *self.plan.relations)
        groups = {name: [v for v in self.verdicts if v.relation == name] for name in names}
        return [tally(name or ITSELF, some) for name, some in groups.items() if some]

    @property
    def reasons(self) -> list[tuple[str, RelationStatus, str, int]]:
        """Relation, status, reason and count of verdicts not judged, most frequent first."""
        silent = (v for v in self.verdicts if v.status in SILENT)
        counts = Counter((v.relation or ITSELF, v.status, v.message) for v in silent)
        return [(*reason, count) for reason, count in counts.most_common()]

    def repeat(self, verdict: RelationVerdict) -> str:
        """Return the command line that judges one relation on one case again."""
        case = f" -k {shlex.quote(f'id:{verdict.case}')}" if self.selects else ""
        relation = f" --relation {verdict.relation}" if verdict.relation else ""
        return f"{self.plan.command}{case}{relation}"
