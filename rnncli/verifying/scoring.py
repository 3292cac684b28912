"""Scoring a pack or suite, from the selection of cases to the report."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from rnncli.cases.suite.suite import load_suite
from rnncli.errors import NothingSelected, RnncliWarning
from rnncli.generating.generation import require_backends
from rnncli.generating.production import make_vectors
from rnncli.generating.tailoring import record_of, tried
from rnncli.jobs.workers import HERE, Workers
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.device import read_device
from rnncli.judging.scoring.kill_matrix import KillMatrix, Unscored, VectorRow, whole_row
from rnncli.operators import operator_named
from rnncli.packs.pack import OPEN_PACKS, PackReference, is_pack
from rnncli.packs.record import UNKNOWN, CaseRecord
from rnncli.talk.display import Conclusion
from rnncli.talk.words import counted
from rnncli.verifying.verification import whole_pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.cases.suite.suite import Entry, Suite
    from rnncli.packs.vector import Vector


LARGEST_BATCH = 8
# The tolerances of onnx.backend.test, by default of its loader. Its newer runners allow bfloat16
# an rtol of 2^-6.
ONNX_RULE = Rule(rtol=1e-3, atol=1e-7)


class _OfVector(Protocol):
    @property
    def id(self) -> str: ...


OfVector = TypeVar("OfVector", bound=_OfVector)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringPlan:
    """The pack or suite to score, the rule for mutants, and who does the work."""

    suite: str
    selection: str = ""
    device: str | Path = ""  # the file of a device, whose cases alone count; "" for all
    rule: Rule = PACK_RULE
    workers: Workers = HERE


class ScoredCases(NamedTuple):
    """The selected cases of a pack or suite: the requested outputs of each, in order, by id."""

    name: str
    origin: PackReference | Suite
    outputs: Mapping[str, Sequence[str]]
    outside: str = ""  # how many others its device does not take, and why most; "" without one


def select(plan: ScoringPlan) -> ScoredCases:
    """Choose the cases.

    Raises:
        InvalidRequest: neither pack nor suite, an incomplete pack, or a tolerance for an output
            that no case has.
        NothingSelected: the selection is empty, or the device takes none of it.
        Unsupported: the suite's goldens need an extra.
    """
    if is_pack(plan.suite):
        pack = whole_pack(Path(plan.suite))
        OPEN_PACKS.keep(pack.reference, pack)
        records: Sequence[CaseRecord] = pack.select(plan.selection)
        records, outside = within(plan.device, records, plan.suite)
        outputs = {record.id: record.outputs for record in records}
        found = ScoredCases(pack.manifest.header["suite"], pack.reference, outputs, outside)
    else:
        suite = load_suite(plan.suite)
        entries, outside = within(plan.device, suite.select(plan.selection), plan.suite)
        require_backends(entries)
        outputs = {entry.id: [row.name for row in entry.operator.outputs] for entry in entries}
        found = ScoredCases(suite.name, suite, outputs, outside)
    plan.rule.check(replace(UNKNOWN, outputs=[*names]) for names in found.outputs.values())
    return found


def within(
    device: str | Path, cases: Sequence[CaseRecord] | Sequence[Entry], suite: str
) -> tuple[list[Any], str]:
    """Return the cases of a pack or suite that a device takes, and how many others it does not.

    Without a device, all are taken, and nothing is said.

    Raises:
        NothingSelected: it takes none.
    """
    if not device:
        return [*cases], ""
    found = read_device(device)
    records = [each if isinstance(each, CaseRecord) else record_of(each) for each in cases]
    reasons = [found.requirements.reason(record) for record in records]
    taken = [each for each, reason in zip(cases, reasons, strict=True) if not reason]
    if not taken:
        raise NothingSelected(
            f"{suite}: {found.device} takes none of {counted(len(cases), 'case')}, the first since"
            f" it {reasons[0]}; `rnncli generate SUITE --device {device}` moves cases into it"
        )
    unmet = Counter(
        str(term) for record in records for term in found.requirements.terms if term.reason(record)
    )
    most = [f", {count} of them since it requires {term}" for term, count in unmet.most_common(1)]
    out = f"{len(cases) - len(taken)} of {counted(len(cases), 'case')}"
    return taken, f"outside of {found.device}: {out}{''.join(most)}"


def score_all(plan: ScoringPlan, selected: ScoredCases, done: Callable[[int], None]) -> KillMatrix:
    """Run the mutants on the cases of a plan.

    Raises:
        RnncliError: a vector is damaged or cannot be generated.
        NothingSelected: no case can be scored.
    """
    ordered = of_each_vector(partial(whole_row, rule=plan.rule), plan, selected, done)
    rows = tuple(each for each in ordered if isinstance(each, VectorRow))
    left = dict(each for each in ordered if isinstance(each, Unscored))
    if not rows:
        name, reason = next(iter(left.items()))
        raise NothingSelected(f"{plan.suite}: no case can be scored: {name} {reason}")
    text = "ONNX's tolerances" if plan.rule == ONNX_RULE else plan.rule.text
    matrix = KillMatrix(selected.name, text, rows, left)
    if not plan.device:
        return matrix
    device = read_device(plan.device)
    beside = {operator_named(row.operator) for row in rows}
    _, found = tried(device, plan.workers, done, beside=beside, known=rows)
    return matrix.within(device.device, [e for e in found.values() if isinstance(e, VectorRow)])


def of_each_vector(
    function: Callable[[Vector], OfVector],
    plan: ScoringPlan,
    selected: ScoredCases,
    done: Callable[[int], None],
) -> list[OfVector]:
    """Return what a function gives for the vector of each case, in order, from any workers."""
    ids = list(selected.outputs)
    found: dict[str, OfVector] = {}
    working = partial(_work, selected.origin, function)
    for some in plan.workers.in_batches(working, ids, most=LARGEST_BATCH):
        found |= {each.id: each for each in some}
        done(len(some))
    return [found[case_id] for case_id in ids]


def _work(
    origin: PackReference | Suite, function: Callable[[Vector], OfVector], ids: Sequence[str]
) -> list[OfVector]:
    return [*map(function, vectors_of(origin, ids))]


def vectors_of(origin: PackReference | Suite, ids: Sequence[str]) -> Iterator[Vector]:
    """Yield some vectors of a pack or suite; those of a suite are generated in memory."""
    if isinstance(origin, PackReference):
        pack = OPEN_PACKS.of(origin)
        yield from (pack.read(pack.case(case_id)) for case_id in ids)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` reports them
        made = list(make_vectors([origin.entry(case_id) for case_id in ids]))
    for vector in made:
        if isinstance(vector, Exception):
            raise vector
        yield vector


@dataclass(frozen=True, slots=True, repr=False)
class ScoreReport(Conclusion):
    """The score of a suite.

    Attributes:
        matrix: which mutant is killed by which vector, and the resulting scores.
        min_score: the required percentage of killed semantic mutants; None for no requirement.
        min_structural: the same for structural mutants.
    """

    matrix: KillMatrix
    min_score: float | None = None
    min_structural: float | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of `rnncli score`: 1 if too few mutants are killed, otherwise 0."""
        return int(bool(self.shortfalls))

    @property
    def shortfalls(self) -> list[str]:
        """What is less than required, in sentences."""
        wanted = (
            (self.matrix, "--min-score", self.min_score),
            (self.matrix.structural, "--min-structural", self.min_structural),
        )
        return [
            f"fails: {of.total.percent:.1f} % is less than {option} {least:g}"
            for of, option, least in wanted
            if least is not None and of.total.percent < least
        ]
