"""What a worker does: make vectors, then write, compare or return their files."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.cases.suite import Suite, parse_suite
from rnncli.errors import RnncliWarning, explain
from rnncli.generating.making import outcomes
from rnncli.judging.kill_matrix import Row, row_of
from rnncli.judging.rule import PACK_RULE
from rnncli.vectors.case_folder import packed
from rnncli.vectors.files import compare_files, write_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.vectors.vector import Vector


class Delivery(StrEnum):
    """What becomes of the files a batch makes."""

    WRITE = "write"
    COMPARE = "compare"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a suite; every worker expands it for itself."""

    text: bytes | str
    file: str
    folder: Path
    seed: int | None

    @classmethod
    def of(cls, suite: Suite) -> Source:
        """Return that of a suite, which this process need not read again."""
        source = cls(suite.source, suite.file, suite.folder, suite.seed)
        _READ[:] = [(source, suite)]
        return source

    def suite(self) -> Suite:
        """Return the suite; the last one is remembered."""
        if [source for source, _ in _READ] != [self]:
            suite = parse_suite(self.text, self.file, self.folder, seed=self.seed)
            _READ[:] = [(self, suite)]
        return _READ[0][1]


_READ: list[tuple[Source, Suite]] = []  # the last suite that was read, or none


@dataclass(frozen=True, slots=True)
class Batch:
    """Some entries of a suite.

    Attributes:
        source: of the suite.
        ids: which of its cases.
        delivery: what becomes of the files.
        root: the folder of the pack; absolute.
    """

    source: Source
    ids: tuple[str, ...]
    delivery: Delivery
    root: str


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
    record: Mapping[str, Any] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    differing: tuple[tuple[str, str], ...] = ()
    error: str = ""
    exit_code: int = 0
    traceback: str = ""


def work(batch: Batch) -> list[Made]:
    """Make the vectors of a batch; one that fails does not stop the others.

    Raises:
        InvalidRequest: the disk refuses.
    """
    suite = batch.source.suite()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` says them
        for case_id, outcome in outcomes([suite.entry(case_id) for case_id in batch.ids]):
            found.append(_deliver(batch, case_id, _scored(outcome) if suite.score else outcome))
    return found


def _scored(outcome: Vector | Exception) -> Vector | Exception:
    """Let a vector's record say which mutants it catches."""
    if isinstance(outcome, Exception):
        return outcome
    row = row_of(outcome, PACK_RULE)
    kills = row.kills if isinstance(row, Row) else []
    return replace(outcome, record={**outcome.record, "kills": kills})


def _deliver(batch: Batch, case_id: str, outcome: Vector | Exception) -> Made:
    if isinstance(outcome, Exception):
        sentence, code = explain(outcome)
        trace = "".join(traceback.format_exception(outcome))
        return Made(case_id, error=sentence, exit_code=code, traceback=trace)
    record, files = packed(outcome)
    if batch.delivery is Delivery.COMPARE:
        return Made(case_id, record, differing=tuple(compare_files(Path(batch.root), files)))
    if batch.delivery is Delivery.RETURN:
        return Made(case_id, record, files)
    write_files(batch.root, files)
    return Made(case_id, record)
