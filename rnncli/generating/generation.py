"""Generation of a pack, which can be interrupted and resumed, and its check.

To check a pack against its suite, all files are made again and compared, and none is written.
"""

from __future__ import annotations

import shutil
import tempfile
import traceback
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace as with_entries

from rnncli.errors import (
    InvalidRequest,
    RnncliError,
    RnncliWarning,
    UnreadableFile,
    explain,
    worst_code,
)
from rnncli.files.atomic import (
    compare_files,
    errors_named,
    move_files,
    put_file,
    remove_temporaries,
    write_files,
)
from rnncli.files.lock import LOCK, writing
from rnncli.files.paths import RelativePath, below, files_in
from rnncli.files.reading import LARGEST, read_bytes, sha256
from rnncli.generating import goldens
from rnncli.generating.leftovers import (
    Journal,
    is_empty,
    listed_files,
    manifest_in,
    owned_cases,
    premises,
    remove_stale,
    replaced,
)
from rnncli.generating.production import outcomes
from rnncli.jobs.workers import HERE, Workers
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.scoring.kill_matrix import VectorRow, row_of
from rnncli.mutants.catalogue import scored_of
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import operator_named
from rnncli.packs.case_folder import packed
from rnncli.packs.conversion import write_cases
from rnncli.packs.layouts import LAYOUTS, ONNX
from rnncli.packs.manifest import (
    FORMAT,
    JOURNAL,
    MANIFEST,
    SPOOL,
    SUMS,
    Manifest,
    differences,
    read_manifest,
)
from rnncli.packs.pack import Pack, is_pack
from rnncli.talk.display import Conclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.cases.suite.suite import Entry, Suite
    from rnncli.generating.tailoring import Tailored
    from rnncli.packs.record import CaseRecord


class Destination(NamedTuple):
    """The folder to write cases to, and a finished pack's, whose files are not written again."""

    root: Path
    finished: Path | None = None


class Delivery(StrEnum):
    """What a batch does with the files that it makes."""

    WRITE = "write"
    COMPARE = "compare"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class GeneratedCase:
    """The result of making one case."""

    id: str  # the case's id
    record: CaseRecord | None = None  # its manifest entry; None if it failed
    # contents of its files, if they are returned
    files: Mapping[str, bytes] = field(default_factory=dict)
    # (path, problem) of its files, if they are compared
    differing: tuple[tuple[str, str], ...] = ()
    error: str = ""  # why it failed, or ""
    exit_code: int = 0  # exit code of the failure
    traceback: str = ""  # traceback of the failure


def work(
    suite: Suite, delivery: Delivery, place: Destination, ids: Sequence[str]
) -> list[GeneratedCase]:
    """Make some vectors of a suite; a failure does not stop the others.

    Raises:
        InvalidRequest: writing fails.
    """
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` reports them
        for case_id, outcome in outcomes([suite.entry(case_id) for case_id in ids]):
            made = outcome
            if suite.score and not isinstance(made, Exception):  # the mutants that it catches
                row = row_of(made, PACK_RULE)
                kills = row.kills if isinstance(row, VectorRow) else []
                made = replace(made, record=with_entries(made.record, kills=kills))
            if isinstance(made, Exception):
                sentence, code = explain(made)
                trace = "".join(traceback.format_exception(made))
                found.append(
                    GeneratedCase(case_id, error=sentence, exit_code=code, traceback=trace)
                )
                continue
            record, files = packed(made)
            if delivery is Delivery.COMPARE:
                differing = tuple(compare_files(place.root, files))
                found.append(GeneratedCase(case_id, record, differing=differing))
            elif delivery is Delivery.RETURN:
                found.append(GeneratedCase(case_id, record, files))
            else:
                write_files(place.root, files, place.finished)
                found.append(GeneratedCase(case_id, record))
    return found


LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPlan:
    """Settings of a generation."""

    suite: Suite
    selection: str = ""  # the expression that selects cases, see `Suite.select`; "" for all
    layout: str = ONNX  # a row of `LAYOUTS`
    workers: Workers = HERE

    def entries(self) -> tuple[Entry, ...]:
        """Return the cases.

        Raises:
            NothingSelected: no case is selected.
            Unsupported: they ask for goldens that need an extra, or the layout cannot hold one.
        """
        entries = self.suite.select(self.selection)
        require_backends(entries)
        for entry in entries:
            is_rejected = entry.breakage is not None
            LAYOUTS[self.layout].require(entry.id, entry.operator, is_rejected=is_rejected)
        return entries


@dataclass(frozen=True, slots=True, repr=False)
class GenerationReport(Conclusion):
    """A pack that was written or checked.

    Attributes:
        folder: the pack's folder.
        cases: number of cases in the suite or its selection.
        manifest: the manifest written; None if cases failed, or the pack was only checked.
        reused: number of cases that an earlier run had finished.
        findings: findings of a check, (path, problem): missing, stale, altered or extra.
        apart: what the suite of a check has otherwise than the manifest on disk, in words.
        failed: the cases that could not be made, with the reason and the exit code of each.
        warnings: messages for the user.
        tailored: what became of the cases of the suite, if they were moved into a device.
    """

    folder: Path
    cases: int
    manifest: Manifest | None = None
    reused: int = 0
    findings: tuple[tuple[str, str], ...] = ()
    apart: tuple[str, ...] = ()
    failed: tuple[GeneratedCase, ...] = ()
    warnings: tuple[str, ...] = ()
    tailored: Tailored | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of `rnncli generate`: the worst failure's; 1 if a check found anything."""
        return worst_code({made.exit_code for made in self.failed}) or int(bool(self.findings))


def generate(plan: GenerationPlan, folder: Path, done: Callable[[int], None]) -> GenerationReport:
    """Write a pack, or finish one that was interrupted.

    Args:
        plan: the settings.
        folder: a new or empty folder, or a pack of the same suite, which is brought up to date.
        done: called with a number of cases as they are done.

    Raises:
        InvalidRequest: the folder has other files, or writing fails.
        NothingSelected: the selection is empty.
        Unsupported: the suite asks for goldens that need an extra.
    """
    entries = plan.entries()
    owned_cases(folder, plan.suite.name)  # refuses before anything is touched
    _make_folder(folder)
    with writing(folder):
        return _written(plan, entries, folder, done)


def _written(
    plan: GenerationPlan, entries: Sequence[Entry], folder: Path, done: Callable[[int], None]
) -> GenerationReport:
    """Write a pack as its only writer.

    A finished pack stays as it is until the new one is complete: changed files are written to a
    separate folder, and moved last. What it was made from stays in its journal: if that is as now,
    only those cases are made that are not whole, of a layout with a folder for each.
    """
    owned, earlier = owned_cases(folder, plan.suite.name), manifest_in(folder)
    begun, held = Journal(folder), premises(plan.suite)
    made_from = {**held, "selection": plan.selection, "layout": plan.layout}
    wanted = {entry.id for entry in entries}
    kept: dict[str, CaseRecord] = {}
    if earlier:
        selected = earlier.header["selection"]
        if begun.premises == {**made_from, "selection": selected, "digest": earlier.digest}:
            pack = Pack(folder, earlier)
            damaged = {path for path, _ in pack.problems()}
            if selected == plan.selection and not damaged and not [*pack.doubts()]:
                done(len(entries))
                return GenerationReport(folder, len(entries), earlier, len(entries))
            if LAYOUTS[plan.layout].files:
                sound = (case for case in earlier.cases if damaged.isdisjoint(case.files))
                kept = {case.id: case for case in sound if case.id in wanted}

    is_new = is_empty(folder)
    remove_temporaries(folder)
    whole, spool = folder.absolute(), below(folder, SPOOL).absolute()
    if plan.layout != ONNX:
        place = Destination(spool)
    elif below(folder, RelativePath(MANIFEST)).exists():
        place = Destination(spool, whole)
    else:  # a new pack of folders is written directly
        place = Destination(whole)
    _make_folder(place.root)
    journal = Journal(*place)
    records = {i: r for i, r in journal.whole(held).items() if i in wanted - kept.keys()}
    owned |= journal.owned | begun.owned | wanted
    listed = listed_files(folder, (journal, begun))
    with errors_named(folder, within=True):
        journal.begin(held, owned, records.values())
    reused = len(records) + len(kept)
    done(reused)
    failed: list[GeneratedCase] = []
    ids = [entry.id for entry in entries if entry.id not in records.keys() | kept.keys()]
    for made in make_all(plan, ids, place, Delivery.WRITE):
        for each in made:
            if each.record is None:
                failed.append(each)
            else:
                records[each.id] = each.record
        with errors_named(folder, within=True):
            journal.add(each.record for each in made if each.record is not None)
        done(len(made))
    if failed:
        return GenerationReport(folder, len(entries), reused=reused, failed=tuple(failed))

    # The remaining files, the manifest last.
    spool = below(folder, SPOOL)
    with errors_named(folder, within=True):
        manifest = pack_manifest(plan, records, spool, kept)
        if spool.exists():
            move_files(manifest.sums(), spool, folder)
        for name, content in manifest.contents().items():
            put_file(folder, name, content, sync=True)
        keep = {*manifest.sums(), MANIFEST, SUMS, JOURNAL, LOCK}
        foreign = [] if is_new else remove_stale(folder, keep, owned, listed)
        Journal(folder).begin({**made_from, "digest": manifest.digest}, (), ())
        shutil.rmtree(spool, ignore_errors=True)
    warned = [f"{folder / path}: not part of the pack; left alone" for path in foreign]
    warned += replaced(folder, earlier, manifest)
    return GenerationReport(folder, len(entries), manifest, reused, warnings=tuple(warned))


def check(plan: GenerationPlan, folder: Path, done: Callable[[int], None]) -> GenerationReport:
    """Compare a pack on disk with the pack that its suite gives.

    A finding is (path, problem): missing; stale, as an earlier suite or rnncli made it; altered,
    as neither did; or extra.

    Args:
        plan: the expected pack.
        folder: the pack's folder.
        done: called with a number of cases as they are done.

    Raises:
        InvalidRequest: the folder does not exist, or is an unfinished pack.
        NothingSelected: the selection is empty.
        Unsupported: the suite asks for goldens that need an extra.
    """
    if not folder.is_dir():
        raise InvalidRequest(f"{folder}: no such folder")
    is_pack(folder)  # an unfinished one is no pack with files missing
    entries = plan.entries()
    with tempfile.TemporaryDirectory() as scratch:
        spool = Path(scratch)
        ids = [entry.id for entry in entries]
        delivery = Delivery.COMPARE if plan.layout == ONNX else Delivery.WRITE
        place = Destination((folder if plan.layout == ONNX else spool).absolute())
        records: dict[str, CaseRecord] = {}
        failed: list[GeneratedCase] = []
        differing: list[tuple[str, str]] = []
        for made in make_all(plan, ids, place, delivery):
            for each in made:
                differing += each.differing
                if each.record is None:
                    failed.append(each)
                else:
                    records[each.id] = each.record
            done(len(made))
        if failed:
            return GenerationReport(folder, len(entries), failed=tuple(failed))
        manifest = pack_manifest(plan, records, spool)
    beside = manifest.contents()
    wanted = {*manifest.sums(), *beside, JOURNAL}
    if plan.layout != ONNX:
        differing = list(differences(manifest.sums(), folder))
    before: Mapping[str, str] = {}
    apart: list[str] = []
    with suppress(RnncliError):  # none if the manifest on disk is damaged
        on_disk = read_manifest(folder)
        before, there = on_disk.sums(), on_disk.header
        apart += [
            f"{name} is {own or 'none'}, the pack's is {there.get(name) or 'none'}"
            for name in ("suite", "seed", "selection", "layout")
            if (own := manifest.header[name]) != there.get(name)
        ]
    found = []
    for path, word in differing:
        content = None if word == "missing" else _content(folder, path)
        is_stale = content is not None and before.get(path) == sha256(content)
        found.append((path, word if word == "missing" else "stale" if is_stale else "altered"))
    for name, wanted_content in beside.items():
        content = _content(folder, name)
        if content != wanted_content:
            found.append((name, "missing" if content is None else "stale or altered"))
    found += [(path, "extra") for path in files_in(folder) if path not in wanted]
    return GenerationReport(folder, len(entries), findings=tuple(sorted(found)), apart=tuple(apart))


def _content(folder: Path, path: str) -> bytes | None:
    try:
        return read_bytes(below(folder, RelativePath(path)), LARGEST)
    except UnreadableFile:
        return None


def require_backends(entries: Sequence[Entry]) -> None:
    """Refuse goldens whose extra is not installed, before anything is written.

    Raises:
        Unsupported: an extra is missing; tells how to install it.
    """
    needed = [e for e in entries if not (e.breakage or e.operator.cell.of_integers)]
    for kind in dict.fromkeys(entry.golden for entry in needed):
        goldens.require(kind)


def make_all(
    plan: GenerationPlan, ids: Sequence[str], place: Destination, delivery: Delivery
) -> Iterator[list[GeneratedCase]]:
    """Make the vectors of some cases; yield batches of them as they are done.

    Raises:
        InvalidRequest: writing fails, or a worker was killed.
    """
    away = not plan.workers.share_files and delivery is Delivery.WRITE
    making = partial(work, plan.suite, Delivery.RETURN if away else delivery, place)
    for made in plan.workers.in_batches(making, ids, most=LARGEST_BATCH, each=8):
        if away:
            for each in made:
                write_files(place.root, each.files, place.finished)
        yield made


def pack_manifest(
    plan: GenerationPlan,
    made: Mapping[str, CaseRecord],
    spool: Path,
    kept: Mapping[str, CaseRecord] = MappingProxyType({}),
) -> Manifest:
    """Return the manifest; in a layout other than ONNX's, write its files first.

    In such a layout, the cases that were made are in the spool as ONNX test cases. Those that were
    kept are in the pack, in its layout.
    """
    ids = [entry.id for entry in plan.entries()]
    known = {**made, **kept}
    header = {
        "format": FORMAT,
        "suite": plan.suite.name,
        "summary": plan.suite.summary,
        "seed": plan.suite.seed,
        "selection": plan.selection,
        "layout": plan.layout,
        "profiles": profiles_of(entry.profile for entry in plan.entries()),
        "notes": dict(plan.suite.notes),
        **({"mutants": _scored_mutants([known[i] for i in ids])} if plan.suite.score else {}),
    }
    written = in_layout(header, [made[i] for i in ids if i in made], spool, spool)
    known |= {case.id: case for case in written.cases}
    return replace(written, cases=tuple([known[i] for i in ids]))


def _scored_mutants(records: Iterable[CaseRecord]) -> dict[str, list[str]]:
    """Return the scored mutants of every cell among the cases."""
    kinds: dict[str, set[str]] = {}
    for record in records:
        operator = operator_named(record.operator)
        kinds.setdefault(operator.cell.name, set()).update(
            {"quantised"} if operator.quantised else (),
            {"dressed"} if record.quantise else (),
            {"packed"} if operator.packed else (),
        )
    return {
        cell: [mutant.id for mutant in scored_of(cell, **dict.fromkeys(some, True))]
        for cell, some in kinds.items()
    }


def profiles_of(names: Iterable[str]) -> dict[str, Any]:
    """Return profiles by name, as in a manifest."""
    return {name: asdict(PROFILES[name]) for name in sorted({*names})}


def in_layout(
    header: Mapping[str, Any], records: Sequence[CaseRecord], folder: Path, spool: Path
) -> Manifest:
    """Return the manifest of written cases; see `pack_manifest`."""
    if header["layout"] == ONNX:
        return Manifest(header, tuple(records))
    there = Pack(spool, Manifest({**header, "layout": ONNX}, tuple(records)))
    return write_cases(header, there, folder)


def _make_folder(root: Path) -> None:
    with errors_named(root, within=True):
        root.mkdir(parents=True, exist_ok=True)
