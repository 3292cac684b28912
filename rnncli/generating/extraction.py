"""Extraction of a pack from the executions of a model's recurrent nodes, which are captures."""

from __future__ import annotations

import re
import shutil
import warnings
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.cases.case import SIZES
from rnncli.cases.suite.suite import LONGEST_ID
from rnncli.errors import (
    InvalidRequest,
    NothingSelected,
    RnncliError,
    RnncliWarning,
    Unsupported,
    did_you_mean,
)
from rnncli.files.atomic import atomic_folder, put_file, require_replaceable, write_files
from rnncli.generating import MOST_BYTES, MOST_CASES, goldens
from rnncli.generating.generation import in_layout, profiles_of
from rnncli.generating.goldens import CapturedCase
from rnncli.generating.leftovers import manifest_in, replaced
from rnncli.generating.production import IllConditioned, make_vectors
from rnncli.models.model import rooted
from rnncli.models.node_listing import recurrent_sites, unevaluated_nodes, unit_operator, units_of
from rnncli.numerics import dtype_of
from rnncli.numerics.profiles import profile_named
from rnncli.operators.node import WEIGHTS
from rnncli.packs.case_folder import packed
from rnncli.packs.layouts import LAYOUTS, ONNX
from rnncli.packs.manifest import FORMAT, SPOOL, files_of_pack
from rnncli.packs.pack import EXTRACTED, open_pack
from rnncli.packs.vector import Vector
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from rnncli.models.model import Model
    from rnncli.models.node_listing import UnevaluatedNode
    from rnncli.models.observation import Occurrence
    from rnncli.packs.manifest import Manifest
    from rnncli.packs.record import CaseRecord
    from rnncli.recurrence.unit import QuantisedUnit

    NodePath = tuple[str, ...]

MOST_NAMED = 3
"""The most nodes that a sentence names."""


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """An execution chosen to become a case."""

    occurrence: Occurrence
    path: NodePath  # path of its node, from its graph or function
    node: int  # index of its node in the order of first execution, from 0
    number: int  # number of the execution of that node, from 1
    unit: QuantisedUnit | None = None  # the unit that its node is the inside of, if that is asked

    @property
    def where(self) -> str:
        """The path in words, as `rnncli inspect` prints it."""
        return " / ".join(self.path)


class Captures:
    """A selection among the executions of recurrent nodes, made while they run.

    Every node gets a first execution before any node gets a second one. Other executions are not
    kept.

    Args:
        model: the model that will run.
        wanted: names or patterns of nodes; empty for all.
        max_cases: most executions to keep.
        max_bytes: largest size of the inputs and outputs of an execution.
        unevaluated: the nodes that cannot be evaluated; by default those of the model.
        units: whether a node between DequantizeLinear and QuantizeLinear is captured with those.

    Raises:
        NothingSelected: the model has no recurrent node, or none that matches.
        Unsupported: none of its recurrent nodes, or not a wanted one, can be evaluated.
    """

    def __init__(
        self,
        model: Model,
        wanted: Sequence[str],
        *,
        max_cases: int = MOST_CASES,
        max_bytes: int = MOST_BYTES,
        unevaluated: Sequence[UnevaluatedNode] | None = None,
        units: bool = False,
    ) -> None:
        self.model, self.max_cases, self.max_bytes = model, max_cases, max_bytes
        self.paths = [rooted(model, (*site.path, site.name)) for site, _ in recurrent_sites(model)]
        self._unevaluated = [*unevaluated_nodes(model)] if unevaluated is None else unevaluated
        self._units = units_of(model) if units else {}
        self._takes_all = not wanted
        self.wanted = {path for path in self.paths if not wanted or _is_any(path, wanted)}

        # A pattern that names no node that runs is refused.
        found = [
            node
            for node in self._unevaluated
            if (_is_any(node.path, wanted) if wanted else not self.paths)
        ]
        if found:
            listed = ", ".join(map(str, found[:MOST_NAMED])) + ", ..." * (len(found) > MOST_NAMED)
            nodes = counted(len(found), "recurrent node")
            raise Unsupported(f"{self.model.name}: {nodes} cannot be evaluated here: {listed}")
        if not self.paths:
            nodes = counted(len(self.model.proto.graph.node), "node")
            raise NothingSelected(
                f"{self.model.name}: has no recurrent node among its {nodes}; recurrences written"
                " in other operators, such as Loop and Scan, are not recognised"
            )
        for pattern in wanted:
            if not any(_is_called(path, pattern) for path in self.paths):
                names = dict.fromkeys(path[-1] for path in self.paths)
                hint = did_you_mean(pattern, names) or f"; there are {', '.join(names)}"
                raise NothingSelected(f"{self.model.name}: no recurrent node '{pattern}'{hint}")

        self._kept: list[Capture] = []
        self._nodes: dict[int, int] = {}
        self._executions: Counter[int] = Counter()
        self._ran: set[NodePath] = set()
        self._large: dict[NodePath, list[int]] = {}
        self._mute: set[NodePath] = set()
        self._surplus = 0

    def add(self, occurrence: Occurrence) -> None:
        """Keep an execution if it is wanted and within the limits."""
        path = rooted(self.model, occurrence.path)
        self._ran.add(path)
        if path not in self.wanted:
            return
        node = self._nodes.setdefault(occurrence.key, len(self._nodes))
        self._executions[node] += 1
        if not occurrence.node.outputs:
            self._mute.add(path)
        elif occurrence.nbytes > self.max_bytes:
            self._large.setdefault(path, []).append(occurrence.nbytes)
        else:
            number, (unit, _) = self._executions[node], self._units.get(path, (None, []))
            capture = Capture(occurrence, path, node, number, unit)
            insort(self._kept, capture, key=lambda kept: (kept.number, kept.node))
            if len(self._kept) > self.max_cases:
                self._kept.pop()
                self._surplus += 1

    def chosen(self) -> list[Capture]:
        """Return the executions kept, grouped by node.

        Raises:
            NothingSelected: none was kept; says why.
        """
        if not self._kept:
            reasons = "; ".join(self.warnings())
            raise NothingSelected(f"{self.model.name}: nothing was captured: {reasons}")
        return sorted(self._kept, key=lambda kept: (kept.node, kept.number))

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for everything left out."""
        for node in self._unevaluated if self._takes_all else ():
            place, why = " / ".join(node.path), node.reason and f": {node.reason}"
            yield f"{place}: left out: {node.operator} cannot be evaluated here{why}"
        for path in dict.fromkeys(self.paths):
            where = " / ".join(path)
            if path in self.wanted and path not in self._ran:
                yield f"{where}: did not run on these inputs"
            _, left = self._units.get(path, (None, []))
            if path in self._ran and left:
                yield (
                    f"{where}: {', '.join(left)} {'is' if len(left) == 1 else 'are'} taken without"
                    " DequantizeLinear and QuantizeLinear, as real numbers"
                )
            if path in self._mute:
                yield f"{where}: left out: the node names no output"
            if sizes := self._large.get(path):
                yield (
                    f"{where}: {len(sizes)} of its executions left out: up to {max(sizes)} bytes,"
                    f" more than --max-bytes {self.max_bytes}"
                )
        if self._surplus:
            yield f"{self._surplus} further executions left out by --max-cases {self.max_cases}"


def _is_any(path: NodePath, patterns: Sequence[str]) -> bool:
    return any(_is_called(path, pattern) for pattern in patterns)


def _is_called(path: NodePath, pattern: str) -> bool:
    """Whether a pattern matches the node's name, or its whole path as printed."""
    names = path[-1], " / ".join(path)
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def slug(text: str) -> str:
    """Return a text in lower-case letters, digits and underscores; "" if it has none of them.

    Long texts keep their end: names of nodes go from the general to the particular.
    """
    longest = LONGEST_ID - len("_1234567")  # room for a number
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[-longest:].strip("_")


def ids_of(captures: Sequence[Capture]) -> list[str]:
    """Return unique ids: `lstm_1` for a node's first execution, then `lstm_1_2` and so on.

    If two nodes have the same name, the later one gets its whole path.
    """
    bases: dict[int, str] = {}
    for capture in captures:
        if capture.node not in bases:
            name, taken = slug(capture.path[-1]), set(bases.values())
            if not name:
                name = _free(slug(capture.occurrence.node.operator.type), taken)
            elif name in taken:
                name = _free(slug(capture.where), taken)
            bases[capture.node] = name
    taken = set(bases.values())
    ids = []
    for capture in captures:
        case_id = bases[capture.node]
        if capture.number > 1:
            case_id = _free(f"{case_id}_{capture.number}", taken)
            taken.add(case_id)
        ids.append(case_id)
    return ids


def _free(wanted: str, taken: Collection[str]) -> str:
    """Return an unused id."""
    found, k = wanted, 2
    while found in taken:
        found, k = f"{wanted}_{k}", k + 1
    return found


FLAG = "Extracted"
NOTE = (
    "a recurrent node of a real model, its weights, and what reached it when the model ran:"
    " what is wrong here is wrong in that model"
)


class ExtractionPlan(NamedTuple):
    """Settings of an extraction."""

    model: str  # the model's name, from which the pack gets its name
    golden: str = "float64"  # how expected values are computed: a row of `goldens.KINDS`
    profile: str = "standard"  # the name of the profile of the tolerances
    layout: str = ONNX  # a row of `LAYOUTS`
    steps: bool = False  # whether the signals of every step are stored

    @property
    def suite(self) -> str:
        """The name of the suite in the manifest."""
        return f"{EXTRACTED}{_printable(self.model)}"


class MadeCase(NamedTuple):
    """What became of a capture."""

    outcome: Vector | RnncliError  # the case, or why there is none
    note: str = ""  # which of its steps are in the case, if not all


@dataclass(slots=True)
class Extraction:
    """A pack, why some captures could not become cases, or not with all of their steps.

    And what became of an earlier pack in its folder.
    """

    manifest: Manifest
    left_out: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)


def require(plan: ExtractionPlan, folder: Path) -> None:
    """Refuse a plan before the model runs if it is bound to fail.

    Raises:
        InvalidRequest: the folder has other files, or the profile does not exist.
        Unsupported: the extra that goldens need is not installed.
    """
    goldens.require(plan.golden)
    profile_named(plan.profile)
    require_replaceable(folder, partial(files_of_pack, plan.suite))


def extract(
    plan: ExtractionPlan, captures: Sequence[Capture], folder: Path, done: Callable[[int], None]
) -> Extraction:
    """Write a pack of captures; it appears whole or not at all.

    Args:
        plan: the settings.
        captures: the captures of one model.
        folder: a new or empty folder, or an earlier extraction of the same name, which is replaced.
        done: called with a number of captures as they are done.

    Raises:
        InvalidRequest: no capture can become a case, the folder has other files, or writing fails.
        Unsupported: no golden can be computed.
    """
    earlier = manifest_in(folder)
    with atomic_folder(folder, partial(files_of_pack, plan.suite)) as temporary:
        spool = temporary if plan.layout == ONNX else temporary / SPOOL
        records: list[CaseRecord] = []
        errors: list[RnncliError] = []
        notes = []
        for outcome, note in vectors_of(plan, captures):
            if isinstance(outcome, Vector):
                record, files = packed(outcome)
                write_files(spool, files)
                records.append(record)
            else:
                errors.append(outcome)
            notes += [note] if note else []
            done(1)
        if not records:  # one error for all, of their common kind
            kind = (
                Unsupported if all(isinstance(e, Unsupported) for e in errors) else InvalidRequest
            )
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise kind(f"{plan.model}: no capture can become a case: {errors[0]}{more}")

        header = {
            "format": FORMAT,
            "suite": plan.suite,
            "summary": f"The recurrent nodes of {_printable(plan.model)} as they ran in it.",
            "seed": 0,
            "selection": "",
            "layout": plan.layout,
            "profiles": profiles_of([plan.profile]),
            "notes": {FLAG: NOTE},
        }
        manifest = in_layout(header, records, temporary, spool)
        if spool != temporary:
            shutil.rmtree(spool)
        for name, content in manifest.contents().items():
            put_file(temporary, name, content)

        # Read it as whoever gets it will.
        pack = open_pack(temporary)
        for case in map(pack.case, (record.id for record in pack.manifest.cases)):
            if LAYOUTS[pack.layout].reader:
                pack.read(case).parse()
    left_out = [f"left out: {error}" for error in errors]
    return Extraction(manifest, left_out, notes, replaced(folder, earlier, manifest))


def vectors_of(plan: ExtractionPlan, captures: Sequence[Capture]) -> Iterator[MadeCase]:
    """Yield what becomes of each capture.

    A capture in which rounding errors grow until they may be anything, as where each step rounds
    states to 8 bits, becomes a case of its first steps: the most whose tolerances say something.
    """
    for case in _cases(plan, captures):
        made = _made(case)
        yield _of_first_steps(case, made) if isinstance(made, IllConditioned) else MadeCase(made)


def _made(case: CapturedCase) -> Vector | RnncliError:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # the model's run has reported them
        (outcome,) = make_vectors([case])
    if not isinstance(outcome, Vector | RnncliError):
        raise outcome
    return outcome


def _of_first_steps(case: CapturedCase, problem: IllConditioned) -> MadeCase:
    """Return the case of the most first steps that can judge, by bisection."""
    steps, found, beyond = 0, MadeCase(problem), case.sizes["seq_length"]
    while beyond - steps > 1:
        middle = (steps + beyond) // 2
        made = _made(_shortened(case, middle))
        if isinstance(made, Vector):
            steps, why = middle, str(problem).removeprefix(f"{case.id}: ")
            whole = case.sizes["seq_length"]
            note = f"{case.id}: kept {steps} of {whole} steps: with all of them {why}"
            found = MadeCase(made, note)
        else:
            beyond = middle
    return found


def _shortened(case: CapturedCase, steps: int) -> CapturedCase:
    """Return a case with its first steps alone."""
    inputs = dict(case.inputs)
    for row in case.node.operator.inputs:
        if row.name not in inputs:
            continue
        for axis, dim in enumerate(row.shape(case.node.variant)):
            if dim.symbol == "seq_length":
                inputs[row.name] = inputs[row.name].take(range(steps), axis)
        if row.role == "lengths":
            lengths = inputs[row.name]
            inputs[row.name] = np.minimum(lengths, steps).astype(lengths.dtype)
    return replace(
        case,
        inputs=inputs,
        sizes={**case.sizes, "seq_length": steps},
        summary=f"{case.summary} The first {steps} of its {case.sizes['seq_length']} steps.",
    )


def _cases(plan: ExtractionPlan, captures: Sequence[Capture]) -> Iterator[CapturedCase]:
    for case_id, capture in zip(ids_of(captures), captures, strict=True):
        occurrence = capture.occurrence
        node, inputs = occurrence.node, dict(occurrence.inputs)
        known = node.sizes_of(inputs)
        dtype = dtype_of(inputs[node.operator.inputs[0].name])
        weights = {row.name for row in node.operator.inputs if row.role in WEIGHTS} & inputs.keys()
        *place, name = capture.path
        what = f"node '{name}' ({node.operator}) of {_printable(plan.model)}"
        if capture.unit:
            inputs = capture.unit.levels_of(inputs)
            node = node.dressed(capture.unit, unit_operator(node.operator))
        yield CapturedCase(
            id=case_id,
            golden="certified" if capture.unit else plan.golden,
            profile=plan.profile,
            summary=f"Execution {capture.number} of {what}, in {' / '.join(place)}.",
            weights="initializers" if weights <= occurrence.constants else "inputs",
            node=node,
            sizes={name: known[name] for name in SIZES if name in known},
            dtype=dtype,
            inputs=inputs,
            flags=(FLAG,),
            steps=plan.steps,
        )


def _printable(name: str) -> str:
    """Return a file's name with other characters than word characters, - and . replaced by _."""
    return re.sub(r"[^\w.-]+", "_", name)
