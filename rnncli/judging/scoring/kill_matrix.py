"""The kill matrix of a suite: which vectors catch which mutants, and what else they cover."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from rnncli.judging.scoring.adequacy import (
    Fate,
    Outcome,
    best_of,
    outcomes,
    structural_outcomes,
    unscored,
)
from rnncli.mutants.catalogue import family_of, scored_of
from rnncli.mutants.equivalence import sizes_of
from rnncli.mutants.structural import STRUCTURAL, Reach
from rnncli.operators import OPERATORS, operator_named
from rnncli.talk.display import Displayed
from rnncli.talk.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.mutants.mutant import Mutant
    from rnncli.packs.vector import Vector

AXES = {"T": "steps", "N": "sequences", "I": "inputs", "H": "units"}
# Widths that kernels are built on: vectors, tiles, blocks and chunks, and the range of a byte.
EDGES = (4, 8, 16, 32, 64, 128, 256)
THREADS = "races, shared buffers: a pack is called sequentially"


class Bug(NamedTuple):
    """A mutant of one cell; the same mutant of another cell is another bug."""

    cell: str
    mutant: str


class VectorRow(NamedTuple):
    """The outcomes of one vector."""

    id: str  # the case's id
    cell: str  # the cell whose mutants were run
    dtype: str  # the dtype of its tensors
    # mutant -> its best outcome over the data sets, for every semantic mutant of the cell
    outcomes: Mapping[str, Outcome]
    operator: str = ""  # such as "LSTM-14"
    sizes: Mapping[str, int] = {}  # T, N, I and H; the largest of each over all calls
    calls: int = 1  # number of calls in one session
    # structural mutant -> its outcome; empty if these were not run
    structural: Mapping[str, Outcome] = {}
    # the outcomes of each data set; () if only the first was run
    of_calls: tuple[Mapping[str, Outcome], ...] = ()

    @property
    def kills(self) -> list[str]:
        """The mutants it catches."""
        return [name for name, found in self.outcomes.items() if found.fate is Fate.KILLED]

    @property
    def caught(self) -> list[Bug]:
        """The same as bugs of its cell."""
        return [Bug(self.cell, mutant) for mutant in self.kills]

    @property
    def every_caught(self) -> frozenset[Bug]:
        """All bugs that it catches, structural ones included."""
        every = {**self.outcomes, **self.structural}
        return frozenset(Bug(self.cell, n) for n, out in every.items() if out.fate is Fate.KILLED)


class Unscored(NamedTuple):
    """A vector that is not scored."""

    id: str  # the case's id
    reason: str  # why it is not scored


def row_of(vector: Vector, rule: Rule, without: Collection[Bug] = ()) -> VectorRow | Unscored:
    """Run the mutants of its cell on a vector's first data set, as for `kills` in manifests."""
    if reason := unscored(vector):
        return Unscored(vector.id, reason)
    operator = operator_named(vector.record.operator)
    found = outcomes(vector, _scored(vector, without), rule)
    sizes = [sizes_of(call.recurrence) for call in vector.calls]
    largest = {axis: max(each[axis] for each in sizes) for axis in AXES}
    dtype = vector.record.dtype
    name, calls = operator.cell.name, len(vector.calls)
    return VectorRow(vector.id, name, dtype, found, operator.name, largest, calls)


def _scored(vector: Vector, without: Collection[Bug] = ()) -> tuple[Mutant, ...]:
    node = vector.node
    row, is_unit = node.operator, node.unit is not None
    kind = {"quantised": row.quantised, "dressed": is_unit, "packed": row.packed}
    scored = scored_of(row.cell.name, **kind)
    return tuple(each for each in scored if (row.cell.name, each.id) not in without)


def whole_row(vector: Vector, rule: Rule, without: Collection[Bug] = ()) -> VectorRow | Unscored:
    """Run the mutants of its cell, structural ones included, on every data set of a vector.

    Those that it is without have no outcome.
    """
    row = row_of(vector, rule, without)
    if isinstance(row, Unscored):
        return row
    scored = _scored(vector, without)
    later = [outcomes(call, scored, rule) for call in vector.later]
    of_calls = (row.outcomes, *later)
    best = {name: best_of(found[name] for found in of_calls) for name in row.outcomes}
    return row._replace(
        outcomes=best, of_calls=of_calls, structural=structural_outcomes(vector, rule, without)
    )


class Survivor(NamedTuple):
    """A mutant that no vector catches, and why."""

    bug: Bug  # the mutant
    fate: Fate  # acceptable, survived, or equivalent in every vector
    margin: float | None  # the largest margin in any vector; None if no vector exercises it
    reason: str  # why it is not caught, in words


class Score(NamedTuple):
    """Counts of the mutants of some vectors."""

    name: str  # what the vectors have in common
    vectors: int  # number of vectors
    mutants: int  # number of mutants of their cells
    killed: int  # number of mutants caught
    acceptable: int  # number of mutants that here are another reading of the specification
    survived: int  # number of mutants exercised but not caught
    unexercised: int  # number of mutants that no vector can show

    @property
    def percent(self) -> float:
        """The percentage of bugs that are caught: 0 without mutants, 100 if all are readings."""
        if not self.mutants:
            return 0.0
        bugs = self.mutants - self.acceptable
        return 100 * self.killed / bugs if bugs else 100.0


@dataclass(frozen=True, repr=False)
class KillMatrix(Displayed):
    """The outcomes of all mutants in all vectors of a suite."""

    name: str  # name of the suite or pack
    rule: str  # the tolerances, in words
    rows: tuple[VectorRow, ...]  # the scored vectors, in the pack's order
    # id of every other vector -> why it is not scored
    unscored: Mapping[str, str] = field(default_factory=dict)
    # the device whose cases alone count, the number of other cases within it that were tried, and
    # of the bugs that neither these show, which do not count
    device: str = ""
    tried: int = 0
    outside: int = 0

    def within(self, device: str, others: Sequence[VectorRow]) -> KillMatrix:
        """Return the matrix without the bugs that neither its cases nor others in a device show.

        All count where there are no others, which could have shown more.
        """
        if not others:
            return replace(self, device=device)
        shown = {bug for row in (*self.rows, *others) for bug in row.every_caught}
        rows = [
            row._replace(
                outcomes={n: o for n, o in row.outcomes.items() if Bug(row.cell, n) in shown},
                structural={n: o for n, o in row.structural.items() if Bug(row.cell, n) in shown},
                of_calls=tuple(
                    {n: o for n, o in each.items() if Bug(row.cell, n) in shown}
                    for each in row.of_calls
                ),
            )
            for row in self.rows
        ]
        known = {Bug(r.cell, n) for r in self.rows for n in (*r.outcomes, *r.structural)}
        outside = len(known - shown)
        return replace(self, rows=tuple(rows), device=device, tried=len(others), outside=outside)

    @property
    def total(self) -> Score:
        """The score of all vectors."""
        return score("all", self.rows)

    @property
    def by_cell(self) -> list[Score]:
        """The score of each cell's vectors, in order of appearance."""
        return self._grouped(lambda row: row.cell)

    @property
    def by_dtype(self) -> list[Score]:
        """The score of each dtype's vectors alone, in order of appearance."""
        return self._grouped(lambda row: row.dtype)

    @property
    def by_family(self) -> list[Score]:
        """The score of each family of mutants, in order of appearance."""
        families = dict.fromkeys(family_of(mutant) for row in self.rows for mutant in row.outcomes)
        return [score(each, self.rows, of_family(each)) for each in families]

    @property
    def by_data_set(self) -> list[Score]:
        """The score of the first data sets of all vectors alone, of the second ones, and so on."""
        found = []
        for k in range(max((len(row.of_calls) for row in self.rows), default=0)):
            some = [row for row in self.rows if len(row.of_calls) > k]
            rows = [row._replace(outcomes=row.of_calls[k]) for row in some]
            found.append(score(f"test_data_set_{k}", rows))
        return found

    @cached_property
    def structural(self) -> KillMatrix:
        """The kill matrix of the structural mutants."""
        rows = (row._replace(outcomes=row.structural, structural={}) for row in self.rows)
        return replace(self, rows=tuple(rows))

    @property
    def by_reach(self) -> list[Score]:
        """The score of structural mutants by reach: small sizes, large sizes, a second call."""
        return [score(each, self.rows, of_reach(each)) for each in Reach]

    @property
    def survivors(self) -> list[Survivor]:
        """The mutants that no vector catches, by cell."""
        return list(survivors(self.rows))

    @cached_property
    def only(self) -> Mapping[str, list[str]]:
        """Vector -> the mutants that it alone catches."""
        counts = Counter(bug for row in self.rows for bug in row.caught)
        return {row.id: [b.mutant for b in row.caught if counts[b] == 1] for row in self.rows}

    @property
    def needed(self) -> list[str]:
        """The vectors that alone catch some mutant."""
        return [name for name, mutants in self.only.items() if mutants]

    def minimal_subset(self) -> list[str]:
        """Return a small subset of vectors that catches as much as all do, in the pack's order.

        Greedy: the vector that catches most of the rest comes next, the earlier one of equals;
        vectors that later ones make superfluous are dropped. The result may not be the minimum,
        which is NP-hard to find, but is within ln(n) + 1 of it (Chvatal 1979, A greedy heuristic
        for the set-covering problem).
        """
        caught = {row.id: set(row.caught) for row in self.rows}
        left = set().union(*caught.values())
        chosen: list[str] = []
        while left:
            best = max(caught, key=lambda name: len(caught[name] & left))  # the first of equals
            chosen.append(best)
            left -= caught[best]
        for name in list(chosen):
            others = set().union(*(caught[other] for other in chosen if other != name))
            if caught[name] <= others:
                chosen.remove(name)
        return [row.id for row in self.rows if row.id in chosen]

    def _grouped(self, name: Callable[[VectorRow], str]) -> list[Score]:
        names = dict.fromkeys(map(name, self.rows))
        return [score(each, [row for row in self.rows if name(row) == each]) for each in names]


def every(mutant: str) -> bool:
    """Keep every mutant."""
    del mutant
    return True


def of_family(name: str) -> Callable[[str], bool]:
    """Return the predicate that keeps the mutants of a family."""
    return lambda mutant: family_of(mutant) == name


def of_reach(reach: Reach) -> Callable[[str], bool]:
    """Return the predicate that keeps the structural mutants of a reach."""
    return lambda mutant: STRUCTURAL[mutant].reach is reach


def score(name: str, rows: Iterable[VectorRow], keep: Callable[[str], bool] = every) -> Score:
    """Count the mutants of some vectors."""
    rows = list(rows)
    bugs = _bugs(rows, keep)
    fates = Counter(fate_of(found.values()) for found in bugs.values())
    return Score(
        name,
        vectors=len(rows),
        mutants=len(bugs),
        killed=fates[Fate.KILLED],
        acceptable=fates[Fate.ACCEPTABLE],
        survived=fates[Fate.SURVIVED],
        unexercised=fates[Fate.EQUIVALENT],
    )


def survivors(rows: Iterable[VectorRow]) -> Iterator[Survivor]:
    """Yield the mutants that no vector catches."""
    for bug, by_vector in _bugs(rows).items():
        fate = fate_of(by_vector.values())
        if fate is Fate.KILLED:
            continue
        found = {name: each for name, each in by_vector.items() if each.fate is fate}
        reasons = dict.fromkeys(outcome.reason for outcome in found.values())
        nearest = max(found, key=lambda name: found[name].margin)
        margin, where = found[nearest].margin, f"{counted(len(found), 'vector')} that could show it"
        if fate is Fate.EQUIVALENT:
            yield Survivor(bug, fate, None, f"never exercised: {'; or '.join(reasons)}")
        elif fate is Fate.ACCEPTABLE:
            yield Survivor(bug, fate, margin, "; ".join(reasons))
        elif margin:
            sentence = f"within tolerance in {where}; nearest {nearest}"
            yield Survivor(bug, fate, margin, sentence)
        else:
            yield Survivor(bug, fate, 0.0, f"changes nothing in {where}")


def _bugs(
    rows: Iterable[VectorRow], keep: Callable[[str], bool] = every
) -> dict[Bug, dict[str, Outcome]]:
    """Return the outcomes of some mutants, by vector."""
    found: dict[Bug, dict[str, Outcome]] = {}

    @cache
    def kept(cell: str, mutants: tuple[str, ...]) -> list[tuple[str, dict[str, Outcome]]]:
        """Those of a vector, which are those of others of its cell, with their outcomes so far."""
        return [(each, found.setdefault(Bug(cell, each), {})) for each in mutants if keep(each)]

    for row in rows:
        for mutant, by_vector in kept(row.cell, tuple(row.outcomes)):
            by_vector[row.id] = row.outcomes[mutant]
    return found


def fate_of(outcomes: Iterable[Outcome]) -> Fate:
    """Return the fate of a mutant over several vectors: the first in the order of `Fate`."""
    fates = {outcome.fate for outcome in outcomes}
    return next(fate for fate in Fate if fate in fates)


class CoverageItem(NamedTuple):
    """The coverage of one dimension."""

    what: str  # the dimension, such as "H, units"
    covered: str  # what is covered, in words
    missing: str  # what is not covered, in words; "" if nothing is missing


def coverage_of(rows: Sequence[VectorRow]) -> list[CoverageItem]:
    """Return the coverage of some vectors: sizes, calls, threads, dtypes and operator versions."""
    found = []
    for axis, noun in AXES.items():
        sizes = sorted({row.sizes[axis] for row in rows})
        crossed = [edge for edge in EDGES if sizes[-1] > edge]
        words = f"{_spelled(sizes[:6])}{' ...' if len(sizes) > 6 else ''}, at most {sizes[-1]}"
        words += f"; beyond {_spelled(crossed)}" if crossed else ""
        missing = ["1"] if 1 not in sizes else []
        if len(crossed) < len(EDGES):
            missing.append(f"beyond {_spelled(EDGES[len(crossed) :])}")
        found.append(CoverageItem(f"{axis}, {noun}", words, "; ".join(missing)))

    again = sum(row.calls > 1 for row in rows)
    once = len(rows) - again
    called = f"{once} of {len(rows)} {plural(once, 'is', 'are')} called once" if once else ""
    found.append(CoverageItem("second calls", f"{again} of {counted(len(rows), 'case')}", called))
    found.append(CoverageItem("threads", "nothing", THREADS))

    # Dtypes and operator versions, among those of the same types.
    operators = list(dict.fromkeys(row.operator for row in rows))
    types = {OPERATORS[name].type for name in operators}
    versions = [row for row in OPERATORS.values() if row.type in types]
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    every = dict.fromkeys(dtype for row in versions for dtype in row.dtypes)
    absent = [dtype for dtype in every if dtype not in dtypes]
    others = [row.name for row in versions if row.name not in operators]
    return [
        *found,
        CoverageItem("dtypes", _spelled(dtypes), _spelled(absent)),
        CoverageItem("operators", _spelled(operators), _spelled(others)),
    ]


def _spelled(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
