"""Raw packs and results for `vectors/judge.c`, built with sanitizers, which end it with 70."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fuzz_bases
import fuzz_bytes
import fuzz_trees
from fuzz_process import Box, Command, always, never

if TYPE_CHECKING:
    import random


def judge(box: Box, dice: random.Random) -> Command:
    """A raw pack mutated, its checksums and digest made right mostly; or results mutated."""
    subject = dice.choice((fuzz_bases.RIGHT, fuzz_bases.WRONG, fuzz_bases.PARTLY))
    answers = str(box.bases / f"{subject}_raw")
    fuzz_bases.copy(box.bases / "pack_raw", "pack")
    if dice.random() < 0.2:
        fuzz_bases.copy(Path(answers), "r")
        answers, is_still_wrong = "r", True
        _spoil(Path("r"), dice)
    else:
        is_still_wrong = _mutate_pack(Path("pack"), box, dice)
    options = dice.choice(((), (), ("--allow-missing",), ("--allow-refused",)))
    ids = dice.choice(((),) * 8 + (("lstm_14_clip", "rnn_7_plain"), ("lstm_14_clip",) * 2))
    is_wrong = subject == fuzz_bases.WRONG or (subject == fuzz_bases.PARTLY and is_still_wrong)
    return Command(
        (*options, "pack", answers, *ids),
        ("pack", answers),
        is_green=always if is_wrong else never,
        program=str(box.bases / "judge"),
    )


def _spoil(folder: Path, dice: random.Random) -> None:
    """Mutate files of results, remove some, or put a folder in their place.

    C has no way to tell links, pipes and devices from files, as `judge.c` says of itself.
    """
    for path in dice.sample(_files(folder), dice.choice((1, 1, 2, 4))):
        if dice.random() < 0.8:
            path.write_bytes(fuzz_bytes.mutate(path.read_bytes(), dice))
            continue
        path.unlink()
        if dice.random() < 0.5:
            path.mkdir()


def _files(folder: Path) -> list[Path]:
    return [*filter(Path.is_file, sorted(folder.rglob("*")))]


def _mutate_pack(pack: Path, box: Box, dice: random.Random) -> bool:
    """Mutate a pack; return whether the case that `PARTLY` is wrong in is as it was."""
    manifest = json.loads(fuzz_bases.text(box.bases / "pack_raw" / "manifest.json"))
    record = dice.choice(manifest["cases"])
    case_id = record["id"]
    folder = pack / f"test_{case_id}"
    case = json.loads((folder / "case.json").read_bytes())
    choice = dice.choice(("case", "case", "manifest", "tensor"))
    if choice == "case":
        case = fuzz_trees.mutate(case, dice)
    elif choice == "tensor":
        _mutate_tensor(folder, case, dice)
    content = f"{fuzz_trees.write(case)}\n".encode("utf-8", "surrogatepass")
    if choice == "case" and dice.random() < 0.1:
        content = fuzz_bytes.mutate(content, dice)
    (folder / "case.json").write_bytes(content)
    if dice.random() < 0.95:
        record["files"][f"test_{case_id}/case.json"] = hashlib.sha256(content).hexdigest()
    wanted = [each for each in manifest["cases"] if each["id"] == fuzz_bases.PARTLY_WRONG]
    kept = json.loads(json.dumps(wanted))
    if choice == "manifest":
        manifest = fuzz_trees.mutate(manifest, dice)
    content, _ = fuzz_bases.sealed(manifest)
    if dice.random() < 0.03:
        content = fuzz_bytes.mutate(content, dice)
    (pack / "manifest.json").write_bytes(content)
    if choice != "manifest":
        return case_id != fuzz_bases.PARTLY_WRONG
    cases = manifest.get("cases") if isinstance(manifest, dict) else None
    return isinstance(cases, list) and kept[0] in cases


def _mutate_tensor(folder: Path, case: dict[str, Any], dice: random.Random) -> None:
    """Mutate a tensor's file, and note its checksum wherever it is named."""
    path = dice.choice([each for each in _files(folder) if each.suffix == ".bin"])
    content = fuzz_bytes.mutate(path.read_bytes(), dice)
    path.write_bytes(content)
    checksum = hashlib.sha256(content).hexdigest()
    _note(case, path.relative_to(folder).as_posix(), checksum)


def _note(tree: Any, file: str, checksum: str) -> None:
    if isinstance(tree, dict):
        for name, note in (("file", "sha256"), ("tolerance", "tolerance_sha256")):
            if tree.get(name) == file:
                tree[note] = checksum
    for each in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _note(each, file, checksum)
