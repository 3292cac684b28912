"""What a worker does: make vectors, then write, compare or return their files."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import RnncliWarning, explain
from rnncli.files.small_files import compare_files, write_files
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.scoring.kill_matrix import VectorRow, row_of
from rnncli.packs.case_folder import packed
from rnncli.packs.generating.production import outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.cases.suite.suite import Suite
    from rnncli.packs.record import Record
    from rnncli.packs.vector import Vector


class Destination(NamedTuple):
    """Where the files of cases belong.

    Attributes:
        root: the folder below which they are written; absolute.
        finished: that of a finished pack; what it has already is not written.
    """

    root: Path
    finished: Path | None = None


class Delivery(StrEnum):
    """What becomes of the files a batch makes."""

    WRITE = "write"
    COMPARE = "compare"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class Made:
    """What came of one entry.

    Attributes:
        id: of the case.
        record: for the manifest; None when it failed.
        files: their contents, when they are to be returned.
        differing: (path, what is wrong), when they were to be compared.
        error: why it failed, or "".
        exit_code: of the failure.
        traceback: of the failure.
    """

    id: str
    record: Record | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    differing: tuple[tuple[str, str], ...] = ()
    error: str = ""
    exit_code: int = 0
    traceback: str = ""


def work(suite: Suite, delivery: Delivery, place: Destination, ids: Sequence[str]) -> list[Made]:
    """Make some vectors of a suite; one that fails does not stop the others.

    Args:
        suite: which.
        delivery: what becomes of the files.
        place: where they belong.
        ids: which of its cases.

    Raises:
        InvalidRequest: the disk refuses.
    """
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` says them
        for case_id, outcome in outcomes([suite.entry(case_id) for case_id in ids]):
            scored = _scored(outcome) if suite.score else outcome
            found.append(_deliver(delivery, place, case_id, scored))
    return found


def _scored(outcome: Vector | Exception) -> Vector | Exception:
    """Let a vector's record say which mutants it catches."""
    if isinstance(outcome, Exception):
        return outcome
    row = row_of(outcome, PACK_RULE)
    kills = row.kills if isinstance(row, VectorRow) else []
    return replace(outcome, record={**outcome.record, "kills": kills})


def _deliver(
    delivery: Delivery, place: Destination, case_id: str, outcome: Vector | Exception
) -> Made:
    if isinstance(outcome, Exception):
        sentence, code = explain(outcome)
        trace = "".join(traceback.format_exception(outcome))
        return Made(case_id, error=sentence, exit_code=code, traceback=trace)
    record, files = packed(outcome)
    if delivery is Delivery.COMPARE:
        return Made(case_id, record, differing=tuple(compare_files(place.root, files)))
    if delivery is Delivery.RETURN:
        return Made(case_id, record, files)
    write_files(place.root, files, place.finished)
    return Made(case_id, record)
