"""What is said of an implementation by relations: the input of every report of them."""

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

# The name of the row of what is said where a case has given nothing itself.
ITSELF = "the case itself"


class RelationTally(NamedTuple):
    """The verdicts on one relation, or on all, counted.

    Attributes:
        name: of the relation; "" where cases gave nothing themselves.
        cases: how many there are.
        counts: how many verdicts there are of each status, in the order of `MEANINGS`.
        elements: how many were compared.
        margin: the largest distance, as a part of what is allowed; None where none was compared.
        kinds: the equalities by which was judged.
        fails: how many verdicts make the run fail.
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
        """How many there are."""
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
    """What was found.

    Attributes:
        plan: what was judged, and how.
        name: of the target.
        subject: the implementation, as it describes itself.
        verdicts: of every case, data set and relation, in the order of the cases.
        seconds: of the whole run.
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
        """How many verdicts fail the run."""
        return self.total.fails

    @property
    def failures(self) -> list[RelationVerdict]:
        """The verdicts that fail the run."""
        return [verdict for verdict in self.verdicts if verdict.fails]

    @property
    def judged(self) -> int:
        """Of how many cases at least one relation was judged."""
        return len({verdict.case for verdict in self.verdicts if verdict.is_judged})

    @property
    def shortfall(self) -> str:
        """Why it would prove nothing that no relation fails, or ""."""
        if self.judged >= max(1, self.plan.min_cases):
            return ""
        cases = counted(self.judged, "case") if self.judged else "no case"
        return f"relations of {cases} were judged; --min-cases requires {self.plan.min_cases}"

    @property
    def passed(self) -> bool:
        """Whether no relation fails, and that proves something."""
        return not self.exit_code

    @property
    def exit_code(self) -> int:
        """As of `rnncli verify`: 1 if a relation fails, 5 if too few were judged, else 0."""
        return 1 if self.fails else NothingSelected.exit_code if self.shortfall else 0

    @property
    def total(self) -> RelationTally:
        """All verdicts."""
        return tally("all", self.verdicts)

    @property
    def by_relation(self) -> list[RelationTally]:
        """The verdicts on each relation; first those on cases that gave nothing themselves."""
        names = ("", *self.plan.relations)
        groups = {name: [v for v in self.verdicts if v.relation == name] for name in names}
        return [tally(name or ITSELF, some) for name, some in groups.items() if some]

    @property
    def reasons(self) -> list[tuple[str, RelationStatus, str, int]]:
        """Relation, status, why, how often, of what was not judged; the commonest first."""
        silent = (v for v in self.verdicts if v.status in SILENT)
        counts = Counter((v.relation or ITSELF, v.status, v.message) for v in silent)
        return [(*reason, count) for reason, count in counts.most_common()]

    def repeat(self, verdict: RelationVerdict) -> str:
        """Return the command line that judges one relation of one case again."""
        case = f" -k {shlex.quote(f'id:{verdict.case}')}" if self.selects else ""
        relation = f" --relation {verdict.relation}" if verdict.relation else ""
        return f"{self.plan.command}{case}{relation}"
