"""Reading the lines that `rnncli verify --json` printed, from anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.regular import read_bytes
from rnncli.files.strict_json import parse_json
from rnncli.judging.comparing.verdict import CaseVerdict
from rnncli.judging.report import JudgedCase, JudgedPack, JudgedSubject, VerificationReport
from rnncli.packs.schema_check import SchemaCheck, check
from rnncli.reports.schema_parts import object_of
from rnncli.reports.tables import jsonable
from rnncli.reports.verification import summary_record
from rnncli.reports.verification_schema import CASE_NAMES, LINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LARGEST = 1 << 28
"""The most bytes of a file of results."""
_CHECKS = {kind: SchemaCheck(object_of(LINES[kind])) for kind in ("run", "case")}


def read_results(path: Path) -> list[VerificationReport]:
    """Return the reports of the runs in a file, without diagnoses.

    Args:
        path: lines of one run of `rnncli verify --json` or of several, one after the other.

    Raises:
        UnreadableFile: the file is not that, a run in it is incomplete, or its counts are not those
            of its cases. The message names the line.
    """
    lines = read_bytes(path, LARGEST).splitlines()
    try:
        reports = [_report(run) for run in _runs(_numbered(lines))]
    except InvalidRequest as error:
        raise UnreadableFile(f"{path}: {error}") from error
    if not reports:
        raise UnreadableFile(f"{path}: is empty; expected lines of `rnncli verify --json`")
    return reports


def _numbered(lines: Sequence[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each line, from 1, and its object."""
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line, surrogates=True)
        except InvalidRequest as error:
            raise InvalidRequest(f"line {number} {error}") from error
        kind = record.get("kind") if isinstance(record, dict) else None
        if kind not in LINES:
            raise InvalidRequest(f"line {number} is not one that `rnncli verify --json` prints")
        if kind in _CHECKS:
            _CHECKS[kind](record, f"line {number}")
        yield number, record


def _runs(lines: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of each run, from its first to its summary."""
    run: list[dict[str, Any]] = []
    for number, record in lines:
        if (record["kind"] == "run") == bool(run):
            wanted = "the summary of the run before it" if run else "the first line of a run"
            raise InvalidRequest(f"line {number} is a {record['kind']}, expected {wanted}")
        run.append(record)
        if record["kind"] == "summary":
            yield run
            run = []
    if run:
        raise InvalidRequest(f"the run of {run[0]['subject']['name']} at its end has no summary")


def _report(run: Sequence[Mapping[str, Any]]) -> VerificationReport:
    first, *_, last = run
    report = VerificationReport(
        JudgedPack(**first["pack"]),
        JudgedSubject(**first["subject"]),
        first["rule"],
        tuple(_case(line) for line in run if line["kind"] == "case"),
        command=first["command"],
        min_cases=first["min_cases"],
        unproved=first["unproved"],
        date=first["date"],
        seconds=_seconds(last),
    )
    name = ascii(report.subject.name)[:80]
    if jsonable(summary_record(report)) != last:
        raise InvalidRequest(f"the summary of the run of {name} does not count its cases")
    if len({case.verdict.id for case in report.cases}) < len(report.cases):
        raise InvalidRequest(f"the run of {name} has a case twice")
    return report


def _seconds(summary: Mapping[str, Any]) -> float:
    check(summary.get("wall_seconds"), {"type": "number", "minimum": 0}, "wall_seconds")
    return summary["wall_seconds"]  # type: ignore[no-any-return]


def _case(line: Mapping[str, Any]) -> JudgedCase:
    record = {name: line[name] for name in ("id", *CASE_NAMES)}
    return JudgedCase(record, CaseVerdict.of(line))
