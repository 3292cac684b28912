"""Extraction of a pack from the executions of a model's recurrent nodes."""

from __future__ import annotations

import re
import shutil
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.errors import InvalidRequest, RnncliError, RnncliWarning, Unsupported
from rnncli.files.atomic import atomic_folder, put_file, require_replaceable, write_files
from rnncli.files.paths import files_in
from rnncli.generating import goldens
from rnncli.generating.captures import ids_of
from rnncli.generating.foreign_files import owned_cases, strangers
from rnncli.generating.generation import in_layout, profiles_of
from rnncli.generating.production import make_vectors
from rnncli.numerics import dtype_of
from rnncli.numerics.profiles import profile_named
from rnncli.operators.canonical_weights import WEIGHTS
from rnncli.packs.case_folder import packed
from rnncli.packs.layouts import ONNX
from rnncli.packs.manifest import FORMAT, MANIFEST, SPOOL, SUMS
from rnncli.packs.vector import Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.generating.captures import Capture
    from rnncli.models.observation import Occurrence
    from rnncli.numerics import Array, DType
    from rnncli.operators import Node
    from rnncli.packs.manifest import Manifest
    from rnncli.packs.record import Record

FLAG = "Extracted"
NOTE = (
    "a recurrent node of a real model, its weights, and what reached it when the model ran:"
    " what is wrong here is wrong in that model"
)


class ExtractionPlan(NamedTuple):
    """Settings of an extraction.

    Attributes:
        model: the model's name, from which the pack gets its name.
        golden: how expected values are computed: a row of `goldens.KINDS`.
        profile: the name of the profile of the tolerances.
        layout: a row of `LAYOUTS`.
        steps: whether the signals of every step are stored.
    """

    model: str
    golden: str = "float64"
    profile: str = "standard"
    layout: str = ONNX
    steps: bool = False

    @property
    def suite(self) -> str:
        """The name of the suite in the manifest."""
        return f"extracted-{_printable(self.model)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedCase:
    """A case made from a capture; an `CaseSource` that is its own `CaseContent`."""

    id: str
    golden: str
    profile: str
    summary: str
    weights: str
    node: Node
    sizes: Mapping[str, int]
    dtype: DType
    inputs: dict[str, Array]
    steps: bool
    flags: tuple[str, ...] = (FLAG,)
    breakage: None = None
    calls: int = 1
    horizon: None = None
    empty_names: bool = False
    seed: int = 0

    @property
    def structure(self) -> str:
        """A structure of its own: no other case shares it."""
        return self.id

    def case(self) -> CapturedCase:
        """Return the case itself."""
        return self

    def stacked(self, names: Sequence[str], call: int = 0) -> dict[str, Array]:
        """Return its inputs, as a stack of one."""
        assert len(names) == 1
        assert call == 0
        return {name: values[None] for name, values in self.inputs.items()}


@dataclass(slots=True)
class Extraction:
    """The result of an extraction.

    Attributes:
        manifest: the pack's manifest.
        left_out: why some captures could not become cases.
    """

    manifest: Manifest
    left_out: list[str] = field(default_factory=list)


def require(plan: ExtractionPlan, folder: Path) -> None:
    """Refuse a plan before the model runs if it is bound to fail.

    Raises:
        InvalidRequest: the folder has other files, or the profile does not exist.
        Unsupported: the extra that goldens need is not installed.
    """
    goldens.require(plan.golden)
    profile_named(plan.profile)
    require_replaceable(folder, partial(_is_earlier, plan.suite))


def _is_earlier(suite: str, folder: Path) -> bool:
    """Whether a folder has only an earlier pack of that name."""
    owned = owned_cases(folder, suite)
    beside = {MANIFEST, SUMS}
    return not any(strangers((p for p in files_in(folder) if p not in beside), owned))


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
    with atomic_folder(folder, partial(_is_earlier, plan.suite)) as temporary:
        spool = temporary if plan.layout == ONNX else temporary / SPOOL
        records, errors = _write_cases(_cases(plan, captures), spool, done)
        if not records:
            raise _no_case_error(plan, errors)
        manifest = in_layout(_header(plan), records, temporary, spool)
        if spool != temporary:
            shutil.rmtree(spool)
        for name, content in manifest.contents().items():
            put_file(f"{temporary}/{name}", content)
    return Extraction(manifest, [f"left out: {error}" for error in errors])


def _write_cases(
    cases: Iterable[CapturedCase], root: Path, done: Callable[[int], None]
) -> tuple[list[Record], list[RnncliError]]:
    """Write the cases; return their records, and the errors of those that failed."""
    records, errors = [], []
    for case in cases:
        outcome = _vector_or_error(case)
        if isinstance(outcome, Vector):
            record, files = packed(outcome)
            write_files(root, files)
            records.append(record)
        elif isinstance(outcome, RnncliError):
            errors.append(outcome)
        else:
            raise outcome
        done(1)
    return records, errors


def _vector_or_error(case: CapturedCase) -> Vector | Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # the model's run has reported them
        (outcome,) = make_vectors([case])
    return outcome


def _no_case_error(plan: ExtractionPlan, errors: Sequence[RnncliError]) -> RnncliError:
    """Return one error for all, of their common kind."""
    kind = Unsupported if all(isinstance(e, Unsupported) for e in errors) else InvalidRequest
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return kind(f"{plan.model}: no capture can become a case: {errors[0]}{more}")


def _header(plan: ExtractionPlan) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "suite": plan.suite,
        "summary": f"The recurrent nodes of {_printable(plan.model)} as they ran in it.",
        "seed": 0,
        "selection": "",
        "layout": plan.layout,
        "profiles": profiles_of([plan.profile]),
        "notes": {FLAG: NOTE},
    }


def _cases(plan: ExtractionPlan, captures: Sequence[Capture]) -> Iterator[CapturedCase]:
    for case_id, capture in zip(ids_of(captures), captures, strict=True):
        node, inputs = capture.occurrence.node, dict(capture.occurrence.inputs)
        sizes = _sizes(node, inputs)
        yield CapturedCase(
            id=case_id,
            golden=plan.golden,
            profile=plan.profile,
            summary=_summary(plan, capture),
            weights="initializers" if _holds_weights(capture.occurrence) else "inputs",
            node=node,
            sizes=sizes,
            dtype=_dtype(node, inputs),
            inputs=inputs,
            steps=plan.steps,
        )


def _summary(plan: ExtractionPlan, capture: Capture) -> str:
    """Return the summary of a case: its node, model, place and number of execution."""
    *place, name = capture.path
    node = f"node '{name}' ({capture.occurrence.node.operator}) of {_printable(plan.model)}"
    return f"Execution {capture.number} of {node}, in {' / '.join(place)}."


def _holds_weights(occurrence: Occurrence) -> bool:
    """Whether the model holds all weights of the node."""
    rows = occurrence.node.operator.inputs
    weights = {row.name for row in rows if row.role in WEIGHTS and row.name in occurrence.inputs}
    return weights <= occurrence.constants


def _sizes(node: Node, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Return the sizes, from the shapes of X and R; the node has run, so all shapes agree."""
    found = {"seq_length": 1} | {
        dim.symbol: size // dim.multiple
        for row in node.operator.inputs
        if row.role in {"X", "R"}
        for dim, size in zip(row.shape(node.variant), inputs[row.name].shape, strict=True)
    }
    return {name: found[name] for name in ("seq_length", "batch_size", "input_size", "hidden_size")}


def _dtype(node: Node, inputs: Mapping[str, Array]) -> DType:
    (X,) = (row.name for row in node.operator.inputs if row.role == "X")
    return dtype_of(inputs[X])


def _printable(name: str) -> str:
    """Return a file's name with other characters than word characters, - and . replaced by _."""
    return re.sub(r"[^\w.-]+", "_", name)
