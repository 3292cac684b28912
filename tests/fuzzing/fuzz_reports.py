"""Lines of `verify --json`, which the pages and badges of `site` are made from, mutated."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fuzz_bases
import fuzz_bytes
import fuzz_trees
from fuzz_process import Box, Command, never
from msgspec.structs import replace

from rnncli.files.described import jsonable, read
from rnncli.judging.comparing.verdict import CaseVerdict
from rnncli.judging.report import JudgedCase, JudgedPack, JudgedSubject, VerificationReport
from rnncli.packs.record import UNKNOWN, CaseRecord, RequirementsRecord
from rnncli.reports.verification import summary_record
from rnncli.reports.verification_schema import CASE_NAMES

if TYPE_CHECKING:
    import random


def reports(box: Box, dice: random.Random) -> Command:
    """Results of one run or two, mutated, their counts made right perhaps."""
    subject = dice.choice((fuzz_bases.RIGHT, fuzz_bases.WRONG, fuzz_bases.PARTLY))
    lines, sound = _lines(box, subject), _lines(box, subject)
    if dice.random() < 0.1:
        lines = fuzz_trees.mutate(lines, dice, 1)
    for _ in range(dice.choice((1, 1, 2, 3))):
        if isinstance(lines, list) and lines:
            k = dice.randrange(len(lines))
            lines[k] = fuzz_trees.mutate(lines[k], dice, mild=dice.random() < 0.6)
    if dice.random() < 0.7:
        with contextlib.suppress(Exception):  # what the lines are made of is anything
            lines[-1] = _summary(lines)
    written = map(fuzz_trees.write, lines if isinstance(lines, list) else [lines])
    content = "".join(f"{line}\n" for line in written).encode("utf-8", "surrogatepass")
    if dice.random() < 0.1:
        content = fuzz_bytes.mutate(content, dice)
    Path("a.jsonl").write_bytes(content)
    others = dice.choice(((), (), ("a.jsonl",), (str(_path(box, fuzz_bases.RIGHT)),)))
    files = ("a.jsonl", *others)
    more = dice.choice(((), ("--markdown", "out.md")))
    # Of two runs of one runtime the badge is that of the newer one.
    is_judged = not others and subject != fuzz_bases.RIGHT and _has_failure(lines, sound)
    is_green = _has_green_badge if is_judged else never
    return Command(
        ("site", *files, "-o", "out", *more), files, ("out", "out.md"), is_green=is_green
    )


def _path(box: Box, subject: str) -> Path:
    return box.bases / f"{subject}.jsonl"


def _lines(box: Box, subject: str) -> Any:
    return [json.loads(line) for line in fuzz_bases.text(_path(box, subject)).splitlines()]


def _record(line: Any) -> CaseRecord:
    needs = RequirementsRecord(**line["requirements"])
    own = {name: line[name] for name in ("id", *CASE_NAMES)}
    return replace(UNKNOWN, **{**own, "requirements": needs})


def _summary(lines: list[Any]) -> Any:
    """Return the summary that counts the cases of a run."""
    first, *_, last = lines
    cases = [
        JudgedCase(_record(line), _verdict(line), relation=line.get("relation"))
        for line in lines
        if line["kind"] == "case"
    ]
    about = JudgedPack(**first["pack"]), JudgedSubject(**first["subject"]), first["rule"]
    counts = {name: first[name] for name in ("min_cases", "unproved")}
    report = VerificationReport(*about, cases, **counts, seconds=last["wall_seconds"])
    return jsonable(summary_record(report))


def _verdict(line: Any) -> CaseVerdict:
    own = {name: line[name] for name in CaseVerdict.__struct_fields__}
    found: CaseVerdict = read(own, CaseVerdict, "its verdict")
    return found


def _has_failure(lines: Any, sound: list[Any]) -> bool:
    """Whether the line of a case that failed stands there as `verify` printed it."""
    failed = [line for line in sound if line.get("fails") is True]
    return isinstance(lines, list) and any(line in lines for line in failed)


def _has_green_badge() -> bool:
    return any("green" in path.read_text() for path in Path("out").rglob("badges/*.json"))
