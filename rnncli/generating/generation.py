"""Generation of a pack, which can be interrupted and resumed."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rnncli.files.atomic import errors_named, move_files, put_file, remove_temporaries, write_files
from rnncli.files.lock import LOCK, writing
from rnncli.files.paths import RelativePath, below
from rnncli.generating import goldens
from rnncli.generating.batch import Delivery, Destination, GeneratedCase, work
from rnncli.generating.foreign_files import is_empty, owned_cases, remove_stale
from rnncli.generating.journal import Journal, premises
from rnncli.jobs.workers import HERE, Workers
from rnncli.mutants.catalogue import scored_of
from rnncli.numerics.profiles import PROFILES
from rnncli.packs.conversion import write_cases
from rnncli.packs.layouts import ONNX
from rnncli.packs.manifest import FORMAT, JOURNAL, MANIFEST, SPOOL, SUMS, Manifest
from rnncli.packs.pack import Pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.cases.suite.entry import Entry
    from rnncli.cases.suite.suite import Suite
    from rnncli.packs.record import Record

LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPlan:
    """Settings of a generation.

    Attributes:
        suite: the suite of the cases.
        selection: the expression that selects cases, see `Suite.select`; "" for all.
        layout: a row of `LAYOUTS`.
        workers: who does the work.
    """

    suite: Suite
    selection: str = ""
    layout: str = ONNX
    workers: Workers = HERE

    def entries(self) -> tuple[Entry, ...]:
        """Return the cases.

        Raises:
            NothingSelected: no case is selected.
        """
        return self.suite.select(self.selection)


@dataclass(slots=True)
class Generation:
    """The result of a generation.

    Attributes:
        manifest: the pack's manifest; None if cases failed.
        failed: the cases that could not be made.
        reused: number of cases that an earlier run had finished.
        warnings: messages for the user.
    """

    manifest: Manifest | None = None
    failed: list[GeneratedCase] = field(default_factory=list)
    reused: int = 0
    warnings: list[str] = field(default_factory=list)


def generate(plan: GenerationPlan, folder: Path, done: Callable[[int], None]) -> Generation:
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
    require_backends(entries)
    owned_cases(folder, plan.suite.name)  # refuses before anything is touched
    _make_folder(folder)
    with writing(folder):
        return _written(plan, entries, folder, done)


def _written(
    plan: GenerationPlan, entries: Sequence[Entry], folder: Path, done: Callable[[int], None]
) -> Generation:
    """Write a pack as its only writer.

    A finished pack stays as it is until the new one is complete: changed files are written to a
    separate folder, and moved last.
    """
    owned = owned_cases(folder, plan.suite.name)
    is_new = is_empty(folder)
    remove_temporaries(folder)
    place = _place(plan, folder)
    _make_folder(place.root)
    journal = Journal(*place)
    held = premises(plan.suite)
    wanted = {entry.id for entry in entries}
    records = {i: r for i, r in journal.whole(held).items() if i in wanted}
    owned |= journal.owned | Journal(folder).owned | wanted
    with errors_named(folder, within=True):
        journal.begin(held, owned, records.values())
    report = Generation(reused=len(records))
    done(len(records))
    ids = [entry.id for entry in entries if entry.id not in records]
    for made in make_all(plan, ids, place, Delivery.WRITE):
        for each in made:
            if each.record is None:
                report.failed.append(each)
            else:
                records[each.id] = each.record
        with errors_named(folder, within=True):
            journal.add(each.record for each in made if each.record is not None)
        done(len(made))
    if not report.failed:
        ordered = [records[entry.id] for entry in entries]
        _finish(plan, folder, ordered, set() if is_new else owned, report)
    return report


def _place(plan: GenerationPlan, folder: Path) -> Destination:
    """Return the folders to write to: in a new pack of folders, directly the final one."""
    whole, spool = folder.absolute(), below(folder, SPOOL).absolute()
    if plan.layout != ONNX:
        return Destination(spool)
    finished = below(folder, RelativePath(MANIFEST)).exists()
    return Destination(spool, whole) if finished else Destination(whole)


def require_backends(entries: Sequence[Entry]) -> None:
    """Refuse goldens whose extra is not installed, before anything is written.

    Raises:
        Unsupported: an extra is missing; tells how to install it.
    """
    for kind in dict.fromkeys(entry.golden for entry in entries if not entry.breakage):
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


def _finish(
    plan: GenerationPlan,
    folder: Path,
    records: Sequence[Record],
    owned: set[str],
    report: Generation,
) -> None:
    """Write the remaining files, the manifest last, and remove those of an earlier pack.

    Args:
        plan: the settings.
        folder: the pack's folder.
        records: the records of all cases, in order.
        owned: ids of cases that may have left files; none if the folder was new.
        report: receives the manifest and warnings.
    """
    spool = below(folder, SPOOL)
    with errors_named(folder, within=True):
        report.manifest = pack_manifest(plan, records, spool, spool)
        if spool.exists():
            move_files(report.manifest.sums(), spool, folder)
        for name, content in report.manifest.contents().items():
            put_file(f"{folder}/{name}", content, sync=True)
        if owned:
            report.warnings += _tidied(folder, report.manifest, owned)
        below(folder, JOURNAL).unlink(missing_ok=True)
        shutil.rmtree(spool, ignore_errors=True)


def _tidied(folder: Path, manifest: Manifest, owned: set[str]) -> list[str]:
    """Remove files of an earlier pack; return a warning for each foreign file."""
    keep = {*manifest.sums(), MANIFEST, SUMS, JOURNAL, LOCK}
    foreign = remove_stale(folder, keep, owned)
    return [f"{folder / path}: not part of the pack; left alone" for path in foreign]


def pack_manifest(
    plan: GenerationPlan, records: Sequence[Record], folder: Path, spool: Path
) -> Manifest:
    """Return the manifest; in a layout other than ONNX's, write its files first.

    Args:
        plan: the settings.
        records: the records of all cases, in order.
        folder: the pack's folder.
        spool: the folder of the cases as ONNX test cases, in another layout.
    """
    entries = plan.entries()
    header = {
        "format": FORMAT,
        "suite": plan.suite.name,
        "summary": plan.suite.summary,
        "seed": plan.suite.seed,
        "selection": plan.selection,
        "layout": plan.layout,
        "profiles": profiles_of(entry.profile for entry in entries),
        "notes": dict(plan.suite.notes),
        **({"mutants": _scored_mutants(entries)} if plan.suite.score else {}),
    }
    return in_layout(header, records, folder, spool)


def _scored_mutants(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """Return the scored mutants of every cell among the cases."""
    quantised: dict[str, bool] = {}
    for entry in entries:
        cell = entry.operator.cell.name
        quantised[cell] = quantised.get(cell, False) or entry.operator.quantised
    return {
        cell: [mutant.id for mutant in scored_of(cell, quantised=some)]
        for cell, some in quantised.items()
    }


def profiles_of(names: Iterable[str]) -> dict[str, Any]:
    """Return profiles by name, as in a manifest."""
    return {name: asdict(PROFILES[name]) for name in sorted({*names})}


def in_layout(
    header: Mapping[str, Any], records: Sequence[Record], folder: Path, spool: Path
) -> Manifest:
    """Return the manifest of written cases; see `pack_manifest`."""
    if header["layout"] == ONNX:
        return Manifest(header, tuple(records))
    there = Pack(spool, Manifest({**header, "layout": ONNX}, tuple(records)))
    return write_cases(header, there, folder)


def _make_folder(root: Path) -> None:
    with errors_named(root, within=True):
        root.mkdir(parents=True, exist_ok=True)
