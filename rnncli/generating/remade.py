"""Checking a pack against its suite: all files are made again and compared, none is written."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile
from rnncli.files.paths import RelativePath, below, files_in
from rnncli.files.reading import LARGEST, read_bytes, sha256
from rnncli.generating.generation import (
    Delivery,
    Destination,
    GeneratedCase,
    GenerationPlan,
    GenerationReport,
    make_all,
    pack_manifest,
)
from rnncli.packs.layouts import ONNX
from rnncli.packs.manifest import differences, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.packs.record import Record


def check(plan: GenerationPlan, folder: Path, done: Callable[[int], None]) -> GenerationReport:
    """Compare a pack on disk with the pack that its suite gives.

    A finding is (path, problem): missing; stale, as an earlier suite or rnncli made it; altered,
    as neither did; or extra.

    Args:
        plan: the expected pack.
        folder: the pack's folder.
        done: called with a number of cases as they are done.

    Raises:
        InvalidRequest: the folder does not exist.
        NothingSelected: the selection is empty.
        Unsupported: the suite asks for goldens that need an extra.
    """
    if not folder.is_dir():
        raise InvalidRequest(f"{folder}: no such folder")
    entries = plan.entries()
    with tempfile.TemporaryDirectory() as scratch:
        spool = Path(scratch)
        ids = [entry.id for entry in entries]
        delivery = Delivery.COMPARE if plan.layout == ONNX else Delivery.WRITE
        place = Destination((folder if plan.layout == ONNX else spool).absolute())
        records: dict[str, Record] = {}
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
        ordered = [records[case_id] for case_id in ids]
        manifest = pack_manifest(plan, ordered, spool, spool)
    beside = manifest.contents()
    wanted = {*manifest.sums(), *beside}
    if plan.layout != ONNX:
        differing = list(differences(manifest.sums(), folder))
    before: Mapping[str, str] = {}
    with suppress(RnncliError):  # none if the manifest on disk is damaged
        before = read_manifest(folder).sums()
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
    return GenerationReport(folder, len(entries), findings=tuple(sorted(found)))


def _content(folder: Path, path: str) -> bytes | None:
    try:
        return read_bytes(below(folder, RelativePath(path)), LARGEST)
    except UnreadableFile:
        return None
