"""Stored measurements, and the comparison of later ones with them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rnncli import __version__
from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.regular import read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Fields that must agree between two runs, and between two measurements, to compare ratios.
TERMS = ("baseline", "threads", "compute", "call", "clock", "statistic")
COMPARED = ("workload", "operator", "sizes", "implementation", "baseline")
Key: TypeAlias = tuple[str, ...]


class RatioChange(NamedTuple):
    """The change of a ratio to the first runtime.

    Attributes:
        workload, operator, implementation: the measurement.
        is_own: whether it is a backend of this package.
        before, now: the ratios; None if it did not run.
    """

    workload: str
    operator: str
    implementation: str
    is_own: bool
    before: float | None
    now: float | None

    @property
    def slowdown(self) -> float | None:
        """The slowdown in percent; negative if faster, None if unknown."""
        return 100 * (self.before / self.now - 1) if self.before and self.now else None

    def exceeds(self, percent: float) -> bool:
        """Whether it slowed down by more than a percentage, or no longer runs."""
        if self.slowdown is None:
            return self.before is not None
        return self.slowdown > percent


def document(
    terms: Mapping[str, Any], facts: Mapping[str, str], records: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return all measurements as the content of a file."""
    return {
        "rnncli": __version__,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "terms": dict(terms),
        "machine": dict(facts),
        "results": list(records),
    }


def read_stored(path: Path, terms: Mapping[str, Any]) -> dict[Key, float | None]:
    """Return the ratios in a file, keyed by the fields in `COMPARED`.

    Args:
        path: the file written by an earlier run.
        terms: the conditions of this run.

    Raises:
        UnreadableFile: it is missing, or not written by a benchmark.
        InvalidRequest: it was measured under other conditions.
    """
    try:
        stored = json.loads(read_bytes(path))
        then, results = dict(stored["terms"]), stored["results"]
        ratios = {_key(result): _ratio(result) for result in results}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableFile(f"{path}: was not written by rnncli bench -o: {error!r}") from None
    for name in TERMS:
        if then.get(name) != terms[name]:
            raise InvalidRequest(
                f"{path}: was measured with {name} {then.get(name)}, this run has {terms[name]};"
                " ratios cannot be compared"
            )
    return ratios


def _key(result: Mapping[str, Any]) -> Key:
    return tuple(str(result[name]) for name in COMPARED)


def _ratio(result: Mapping[str, Any]) -> float | None:
    ratio = result["ratio"]
    return None if ratio is None else float(ratio)


def changes(
    stored: Mapping[Key, float | None], records: Sequence[Mapping[str, Any]]
) -> list[RatioChange]:
    """Return the changes of ratios measured in both runs with the same sizes.

    The ratio of the first runtime to itself is always 1 and left out.
    """
    return [
        RatioChange(
            record["workload"],
            record["operator"],
            record["implementation"],
            record["is_own"],
            stored[_key(record)],
            record["ratio"],
        )
        for record in records
        if _key(record) in stored and record["implementation"] != record["baseline"]
    ]
