"""The throughput of `rnncli generate`, in vectors per second."""

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
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.jobs.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.cases.suite.suite import Suite

# Small cases of the three cells, typical of suites: ragged, biased, with initial states. Only the
# labels of the last axis differ, and with them the seeds.
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
WORKERS_NEED = ("rnncli.generating.generation", "numpy.random")  # as in `rnncli generate`


@dataclass(frozen=True, slots=True)
class GenerationMethod:
    """A method to generate the same vectors.

    Attributes:
        name: its name in the table.
        golden: "float64" or "certified".
        jobs: the number of processes; 0 for the requested number.
        share: the fraction of the requested cases, which limits the time of slow methods.
    """

    name: str
    golden: str
    jobs: int
    share: float = 1.0


WAYS = (
    GenerationMethod("float64", "float64", 1),
    GenerationMethod("float64, several processes", "float64", 0),
    GenerationMethod("certified", "certified", 1, share=0.1),
)


@dataclass(slots=True)
class GenerationTimes:
    """The times of one method.

    Attributes:
        method: which.
        jobs: the number of processes.
        cases: the number of vectors per round.
        seconds: the duration of each round, including writing.
    """

    method: GenerationMethod
    jobs: int
    cases: int
    seconds: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Cases per second in the median round."""
        return self.cases / statistics.median(self.seconds)

    def record(self, baseline: GenerationTimes) -> dict[str, Any]:
        """Return it as in tables and JSON; the ratio is to the first method."""
        return {
            "way": self.method.name,
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
    """Make packs of small cases as ONNX folders, each method in every round.

    Args:
        cases: the number of cases.
        rounds: the number of rounds.
        jobs: processes of the method that uses several.
        scratch: a folder for the packs, which are removed; None for the system's.
        done: called with 1 after each pack.

    Raises:
        InvalidRequest: a case failed.
    """
    Workers(jobs=jobs).expect(*WORKERS_NEED)
    methods = [method for method in WAYS if _is_usable(method)]
    suites = {
        method.name: small_cases(method.golden, int(cases * method.share)) for method in methods
    }
    measured = [GenerationTimes(w, w.jobs or jobs, len(suites[w.name].entries)) for w in methods]
    for _ in range(rounds):
        for each in measured:
            each.seconds.append(_seconds(suites[each.method.name], each.jobs, scratch))
            done(1)
    return measured


def _is_usable(method: GenerationMethod) -> bool:
    try:
        backend_named("certified" if method.golden == "certified" else "numpy")
    except Unsupported:
        return False
    return True


def small_cases(golden: str, count: int) -> Suite:
    """Return a suite of about `count` small cases."""
    labels = ", ".join(f"n{k}: {{}}" for k in range(max(1, count // FAMILIES)))
    return parse_suite(SUITE.format(golden=golden, labels=labels), "<benchmark>", Path())


def _seconds(suite: Suite, jobs: int, scratch: Path | None) -> float:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        start = time.perf_counter()
        report = generate(
            GenerationPlan(suite=suite, workers=Workers(jobs=jobs)), Path(folder), lambda _: None
        )
        seconds = time.perf_counter() - start
    if report.failed:
        raise InvalidRequest(report.failed[0].error)
    return seconds


def file_cost(scratch: Path | None, files: int = 5000) -> float:
    """Return the seconds it takes to create one small file here, for comparison."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        start = time.perf_counter()
        for name in _names(files):
            descriptor = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            os.write(descriptor, b"x" * 200)
            os.close(descriptor)
        return (time.perf_counter() - start) / files


def _names(files: int) -> Iterator[str]:
    return (f"input_{k}.pb" for k in range(files))
