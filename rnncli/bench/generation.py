"""How many vectors a second `rnncli generate` makes."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.backends import backend_named
from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.executors.processes import prepare
from rnncli.packs.generating.generation import GenerationPlan, generate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.cases.suite.suite import Suite

# Small cases of the three cells, as suites have them by the thousand: ragged, biased, with initial
# states. Only the labels of the last axis differ, and with them the seeds.
SUITE = """\
suite: benchmark
summary: Small cases, as many as asked for.
golden: {golden}
cases:
  small:
    sizes: {{seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 4}}
    inputs: {{B: uniform, sequence_lens: lengths, initial_h: uniform}}
    matrix:
      op: [RNN-14, GRU-14, LSTM-14]
      inputs: {{{labels}}}
"""
FAMILIES = 3
WORKERS_NEED = ("rnncli.packs.generating.batch", "numpy.random")  # as `rnncli generate` tells them


@dataclass(frozen=True, slots=True)
class Way:
    """One way to make the same vectors.

    Attributes:
        name: as the table has it.
        golden: "float64" or "certified".
        jobs: how many processes; 0 stands for as many as asked for.
        share: of the cases asked for, so that a slow way does not take all the time.
    """

    name: str
    golden: str
    jobs: int
    share: float = 1.0


WAYS = (
    Way("float64", "float64", 1),
    Way("float64, several processes", "float64", 0),
    Way("certified", "certified", 1, share=0.1),
)


@dataclass(slots=True)
class GenerationTimes:
    """What one way took.

    Attributes:
        way: which.
        jobs: how many processes.
        cases: how many vectors were made each time.
        seconds: of each round, writing included.
    """

    way: Way
    jobs: int
    cases: int
    seconds: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Cases a second, by the median round."""
        return self.cases / statistics.median(self.seconds)

    def record(self, baseline: GenerationTimes) -> dict[str, Any]:
        """Return it as tables and JSON have it; the ratio is to the first way."""
        return {
            "way": self.way.name,
            "processes": self.jobs,
            "cases": self.cases,
            "seconds": statistics.median(self.seconds),
            "fastest": min(self.seconds),
            "slowest": max(self.seconds),
            "cases a second": self.rate,
            "ratio": self.rate / baseline.rate,
        }


def measure_generation(
    cases: int, rounds: int, jobs: int, scratch: Path | None, done: Callable[[int], None]
) -> list[GenerationTimes]:
    """Make packs of small cases as ONNX folders, each way in every round.

    Args:
        cases: how many.
        rounds: how often.
        jobs: processes of the way that uses several.
        scratch: a folder for the packs, which are removed; None for the system's.
        done: called with 1 after each pack.

    Raises:
        InvalidRequest: a case failed.
    """
    prepare(*WORKERS_NEED)
    ways = [way for way in WAYS if _is_usable(way)]
    suites = {way.name: small_cases(way.golden, int(cases * way.share)) for way in ways}
    measured = [GenerationTimes(w, w.jobs or jobs, len(suites[w.name].entries)) for w in ways]
    for _ in range(rounds):
        for each in measured:
            each.seconds.append(_seconds(suites[each.way.name], each.jobs, scratch))
            done(1)
    return measured


def _is_usable(way: Way) -> bool:
    try:
        backend_named("certified" if way.golden == "certified" else "numpy")
    except Unsupported:
        return False
    return True


def small_cases(golden: str, count: int) -> Suite:
    """Return a suite of about so many small cases."""
    labels = ", ".join(f"n{k}: {{}}" for k in range(max(1, count // FAMILIES)))
    return parse_suite(SUITE.format(golden=golden, labels=labels), "<benchmark>", Path())


def _seconds(suite: Suite, jobs: int, scratch: Path | None) -> float:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        start = time.perf_counter()
        report = generate(GenerationPlan(suite=suite, jobs=jobs), Path(folder), lambda _: None)
        seconds = time.perf_counter() - start
    if report.failed:
        raise InvalidRequest(report.failed[0].error)
    return seconds


def file_cost(scratch: Path | None, files: int = 5000) -> float:
    """Return the seconds that making one small file takes here, for comparison."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        start = time.perf_counter()
        for name in _names(files):
            descriptor = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            os.write(descriptor, b"x" * 200)
            os.close(descriptor)
        return (time.perf_counter() - start) / files


def _names(files: int) -> Iterator[str]:
    return (f"input_{k}.pb" for k in range(files))
