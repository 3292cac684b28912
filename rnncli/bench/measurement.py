"""Measurements of implementations on a workload, and their ratios."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli import __version__
from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rnncli.bench.machine import MachineLimits
    from rnncli.bench.workloads import Workload
    from rnncli.files.formats.format import Tensors

# Statistics over rounds.
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "fastest": min,
}
RAN = "ran"


@dataclass(slots=True)
class Measurement:
    """The measurement of one implementation on one workload."""

    workload: str
    operator: str
    implementation: str
    is_own: bool  # whether it is a backend of this package
    status: str = RAN  # or how it failed
    message: str = ""  # the reason
    seconds: list[float] = field(default_factory=list)  # per call in each round
    build: float | None = None  # seconds to prepare the workload
    first: float | None = None  # seconds of the first call, which may compile
    # The largest growth of its process, bytes, while preparing and running; None if unknown.
    memory: int | None = None
    # The largest absolute difference of the outputs from float64, for each set of data.
    errors: list[float] = field(default_factory=list)
    nodes: dict[str, float] | None = None  # seconds per run of a model's nodes, by operator
    description: dict[str, str] = field(default_factory=dict)  # version and settings, as it says

    @property
    def error(self) -> float | None:
        """The largest error over all data; NaN if one is NaN, None without any."""
        return max(self.errors, key=_badness, default=None)

    def time(self, statistic: str) -> float | None:
        """Return the statistic of the rounds in seconds; None if it did not run."""
        ran = self.status == RAN and self.seconds
        return STATISTICS[statistic](self.seconds) if ran else None


def largest_error(outputs: Tensors, exact: Tensors) -> float:
    """Return the largest absolute difference of any output; NaN if only one of two is NaN."""
    errors = []
    for name, values in exact.items():
        if values.size:
            a, b = outputs[name].astype(np.float64), values.astype(np.float64)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            with np.errstate(invalid="ignore"):
                errors.append(float(np.max(np.where(same, 0.0, np.abs(a - b)))))
    return max(errors, key=_badness, default=0.0)


def _badness(error: float) -> tuple[bool, float]:
    """Return a sort key for errors, with NaN as the worst."""
    return bool(np.isnan(error)), error


def quartiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the lower and upper quartile of the rounds."""
    low, high = np.quantile(seconds, (0.25, 0.75))
    return float(low), float(high)


class MeasurementRecord(NamedTuple):
    """A measurement as it is printed and stored; None is what did not run or is not known."""

    workload: str
    operator: str
    sizes: str
    implementation: str
    is_own: bool
    about: Mapping[str, str]
    status: str
    message: str
    seconds: float | None
    lower_quartile: float | None
    upper_quartile: float | None
    ratio: float | None  # to the first implementation that ran, the baseline
    baseline: str
    gflops: float | None
    of_peak: float | None
    gbytes: float | None
    of_bandwidth: float | None
    error: float | None
    memory: float | None
    memory_ratio: float | None
    build_seconds: float | None
    first_seconds: float | None
    limits: Mapping[str, float]
    rounds: Sequence[float]
    nodes: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class WorkloadMeasurements:
    """The measurements of all implementations on one workload, taken in turns."""

    workload: Workload  # the workload
    limits: MachineLimits  # the machine's limits, measured alongside
    # the measurements; ratios are relative to the first that ran
    measurements: tuple[Measurement, ...]
    statistic: str  # a name of `STATISTICS`

    def records(self) -> list[MeasurementRecord]:
        """Return each measurement as it is printed and stored."""
        ran = (each for each in self.measurements if each.time(self.statistic))
        baseline = next(ran, self.measurements[0])
        return [self._record(each, baseline) for each in self.measurements]

    def _record(self, measured: Measurement, baseline: Measurement) -> MeasurementRecord:
        time, cost = measured.time(self.statistic), self.workload.cost
        reference = baseline.time(self.statistic)
        low, high = quartiles(measured.seconds) if time else (None, None)
        flops = cost.flops / time if time and cost.flops else None
        moved = cost.moved / time if time and cost.moved else None
        # Inputs plus growth as a multiple of inputs, outputs and projection.
        memory_ratio = None
        if not (measured.memory is None or cost.held is None or cost.given is None):
            memory_ratio = (cost.given + measured.memory) / cost.held
        return MeasurementRecord(
            workload=measured.workload,
            operator=measured.operator,
            sizes=self.workload.description,
            implementation=measured.implementation,
            is_own=measured.is_own,
            about=measured.description,
            status=measured.status,
            message=measured.message,
            seconds=time,
            lower_quartile=low,
            upper_quartile=high,
            ratio=reference / time if reference and time else None,
            baseline=baseline.implementation,
            gflops=flops and flops / 1e9,
            of_peak=flops and flops / self.limits.flops,
            gbytes=moved and moved / 1e9,
            of_bandwidth=moved and moved / self.limits.bandwidth,
            error=measured.error,
            memory=measured.memory,
            memory_ratio=memory_ratio,
            build_seconds=measured.build,
            first_seconds=measured.first,
            limits=self.limits._asdict(),
            rounds=measured.seconds,
            nodes=measured.nodes,
        )


# Fields that must agree between two runs, and between two measurements, to compare ratios.
TERMS = ("baseline", "threads", "compute", "call", "clock", "statistic")
COMPARED = ("workload", "operator", "sizes", "implementation", "baseline")
Key: TypeAlias = tuple[str, ...]


class RatioChange(NamedTuple):
    """The change of a ratio to the first runtime."""

    workload: str
    operator: str
    implementation: str
    is_own: bool  # whether it is a backend of this package
    before: float | None  # the ratio; None if it did not run, likewise now
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
    terms: Mapping[str, Any], facts: Mapping[str, str], records: Sequence[MeasurementRecord]
) -> dict[str, Any]:
    """Return all measurements as the content of a file."""
    return {
        "rnncli": __version__,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "terms": dict(terms),
        "machine": dict(facts),
        "results": [record._asdict() for record in records],
    }


def read_stored(path: Path, terms: Mapping[str, Any]) -> dict[Key, float | None]:
    """Return the ratios in an earlier run's file, keyed by the fields in `COMPARED`.

    Raises:
        UnreadableFile: it is missing, or not written by a benchmark.
        InvalidRequest: it was measured under other conditions.
    """
    try:
        stored = json.loads(read_bytes(path))
        then, results = dict(stored["terms"]), stored["results"]
        numbers = {_key(result): result["ratio"] for result in results}
        ratios = {key: None if ratio is None else float(ratio) for key, ratio in numbers.items()}
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


def changes(
    stored: Mapping[Key, float | None], records: Sequence[MeasurementRecord]
) -> list[RatioChange]:
    """Return the changes of ratios measured in both runs with the same sizes.

    The ratio of the first runtime to itself is always 1 and left out.
    """
    return [
        RatioChange(
            record.workload,
            record.operator,
            record.implementation,
            record.is_own,
            stored[_key(record._asdict())],
            record.ratio,
        )
        for record in records
        if _key(record._asdict()) in stored and record.implementation != record.baseline
    ]
