"""Measurements in a file, and how later ones compare with them."""

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

# What must be the same in two runs for ratios to be compared, and in two measurements.
TERMS = ("baseline", "threads", "compute", "call", "statistic")
COMPARED = ("workload", "operator", "sizes", "implementation", "baseline")
Key: TypeAlias = tuple[str, ...]


class RatioChange(NamedTuple):
    """How a ratio to the first runtime changed.

    Attributes:
        workload, operator, implementation: whose.
        is_own: whether it is a backend of this package.
        before, now: the ratios; None where it did not run.
    """

    workload: str
    operator: str
    implementation: str
    is_own: bool
    before: float | None
    now: float | None

    @property
    def slowdown(self) -> float | None:
        """By how many percent it takes longer; negative when it is faster, None when unknown."""
        return 100 * (self.before / self.now - 1) if self.before and self.now else None

    def exceeds(self, percent: float) -> bool:
        """Whether it became slower by more than so much, or does not run any more."""
        if self.slowdown is None:
            return self.before is not None
        return self.slowdown > percent


def document(
    terms: Mapping[str, Any], facts: Mapping[str, str], records: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return all that was measured as a file has it."""
    return {
        "rnncli": __version__,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "terms": dict(terms),
        "machine": dict(facts),
        "results": list(records),
    }


def read_stored(path: Path, terms: Mapping[str, Any]) -> dict[Key, float | None]:
    """Return the ratios in a file, by what `COMPARED` names.

    Args:
        path: what an earlier run wrote.
        terms: of this run.

    Raises:
        UnreadableFile: it is missing, or no such file.
        InvalidRequest: it was measured under other terms.
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
    """Return how ratios changed of what was measured both times, with the same sizes."""
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
        if _key(record) in stored
    ]
