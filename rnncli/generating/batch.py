"""The work of one worker: make vectors, then write, compare or return their files."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import RnncliWarning, explain
from rnncli.files.atomic import compare_files, write_files
from rnncli.generating.production import outcomes
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.scoring.kill_matrix import VectorRow, row_of
from rnncli.packs.case_folder import packed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.cases.suite.suite import Suite
    from rnncli.packs.record import Record
    from rnncli.packs.vector import Vector


class Destination(NamedTuple):
    """The folders for the files of cases.

    Attributes:
        root: the folder to write below; absolute.
        finished: the folder of a finished pack, whose files are not written again.
    """

    root: Path
    finished: Path | None = None


class Delivery(StrEnum):
    """What a batch does with the files that it makes."""

    WRITE = "write"
    COMPARE = "compare"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class GeneratedCase:
    """The result of making one case.

    Attributes:
        id: the case's id.
        record: its manifest entry; None if it failed.
        files: contents of its files, if they are returned.
        differing: (path, problem) of its files, if they are compared.
        error: why it failed, or "".
        exit_code: exit code of the failure.
        traceback: traceback of the failure.
    """

    id: str
    record: Record | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    differing: tuple[tuple[str, str], ...] = ()
    error: str = ""
    exit_code: int = 0
    traceback: str = ""


def work(
    suite: Suite, delivery: Delivery, place: Destination, ids: Sequence[str]
) -> list[GeneratedCase]:
    """Make some vectors of a suite; a failure does not stop the others.

    Args:
        suite: the suite.
        delivery: what to do with the files.
        place: the folders for the files.
        ids: the ids of the cases.

    Raises:
        InvalidRequest: writing fails.
    """
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` reports them
        for case_id, outcome in outcomes([suite.entry(case_id) for case_id in ids]):
            scored = _scored(outcome) if suite.score else outcome
            found.append(_deliver(delivery, place, case_id, scored))
    return found


def _scored(outcome: Vector | Exception) -> Vector | Exception:
    """Return a vector whose record lists the mutants that it catches."""
    if isinstance(outcome, Exception):
        return outcome
    row = row_of(outcome, PACK_RULE)
    kills = row.kills if isinstance(row, VectorRow) else []
    return replace(outcome, record={**outcome.record, "kills": kills})


def _deliver(
    delivery: Delivery, place: Destination, case_id: str, outcome: Vector | Exception
) -> GeneratedCase:
    if isinstance(outcome, Exception):
        sentence, code = explain(outcome)
        trace = "".join(traceback.format_exception(outcome))
        return GeneratedCase(case_id, error=sentence, exit_code=code, traceback=trace)
    record, files = packed(outcome)
    if delivery is Delivery.COMPARE:
        return GeneratedCase(case_id, record, differing=tuple(compare_files(place.root, files)))
    if delivery is Delivery.RETURN:
        return GeneratedCase(case_id, record, files)
    write_files(place.root, files, place.finished)
    return GeneratedCase(case_id, record)
