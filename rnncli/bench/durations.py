"""Durations of whole commands: of start-up, and of `rnncli generate` for many small cases."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rnncli.backends import backend_named
from rnncli.bench.machine import NO_PYC, environment
from rnncli.bench.workloads import built_in, of_operator
from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.files.atomic import put_file
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.jobs.interpreter import python
from rnncli.jobs.workers import Workers
from rnncli.operators import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.cases.suite.suite import Suite

CLICK = """\
import click

@click.group()
def cli():
    "Do nothing."

cli(["--help"])
"""
ONNX_RUNTIME = """\
import sys
import numpy
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
inputs = {i.name: numpy.zeros(i.shape, numpy.float32) for i in session.get_inputs()}
session.run(None, inputs)
"""
MODEL = "{model}"
RNNCLI = ("-m", "rnncli")


@dataclass(frozen=True, slots=True)
class TimedProcess:
    """A kind of process to measure."""

    name: str  # its name in the table
    arguments: tuple[str, ...]  # Python's arguments; `{model}` is the file of a tiny model
    reference: str  # the process it is compared with
    package: str = ""  # the package it needs, or ""


HELP, SESSION = "a click program's --help", "load and run with onnxruntime"
PROCESSES = (
    TimedProcess(HELP, ("-c", CLICK), HELP),
    TimedProcess("rnncli --help", (*RNNCLI, "--help"), HELP),
    TimedProcess(SESSION, ("-c", ONNX_RUNTIME, MODEL), SESSION, "onnxruntime"),
    TimedProcess("rnncli run model.onnx", (*RNNCLI, "run", MODEL), SESSION),
)


@dataclass(slots=True)
class RoundTimes:
    """The seconds of each round of one command, from start to end."""

    seconds: list[float] = field(default_factory=list, kw_only=True)

    @property
    def spread(self) -> dict[str, float]:
        """The median and the extremes, as in tables and JSON."""
        return {
            "seconds": statistics.median(self.seconds),
            "fastest": min(self.seconds),
            "slowest": max(self.seconds),
        }


@dataclass(slots=True)
class StartupTimes(RoundTimes):
    """The times of one kind of process."""

    process: TimedProcess


TimesT = TypeVar("TimesT", bound=RoundTimes)


def measure_startup(rounds: int, done: Callable[[int], None]) -> list[StartupTimes]:
    """Time processes, each kind in every round, after one round that writes .pyc files.

    Raises:
        InvalidRequest: a process failed.
    """
    kinds = [each for each in PROCESSES if not each.package or find_spec(each.package)]
    measured = [StartupTimes(each) for each in kinds]
    surroundings = environment(threads=1)
    surroundings.pop(NO_PYC, None)
    with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
        model = Path(folder) / "model.onnx"

        # A model with one LSTM node and stored weights.
        case = built_in("tiny", "LSTM")
        exact = evaluate(case.operator, case.inputs, attributes=case.attributes)
        put_file(model.parent, model.name, of_operator(case.name, case, exact).vector.model)
        for each in measured:
            _seconds(each.process, model, surroundings)
        _repeat(measured, rounds, lambda each: _seconds(each.process, model, surroundings), done)
    return measured


def _repeat(
    measured: Sequence[TimesT],
    rounds: int,
    seconds: Callable[[TimesT], float],
    done: Callable[[int], None],
) -> None:
    """Time each kind in every round, so that what disturbs the machine disturbs all of them."""
    for _ in range(rounds):
        for each in measured:
            each.seconds.append(seconds(each))
            done(1)


def _seconds(process: TimedProcess, model: Path, surroundings: Mapping[str, str]) -> float:
    arguments = [str(model) if each == MODEL else each for each in process.arguments]
    start = time.perf_counter()
    done = subprocess.run(  # noqa: S603 -- runs Python
        python(*arguments), env=surroundings, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise InvalidRequest(f"{process.name}: failed: {done.stderr.strip()[-300:]}")
    return seconds


def records(measured: Sequence[StartupTimes]) -> list[dict[str, Any]]:
    """Return each kind as in tables and JSON; ratios of medians, above 1 if slower."""
    medians = {each.process.name: statistics.median(each.seconds) for each in measured}
    return [
        {
            "process": each.process.name,
            **each.spread,
            "times the reference": medians[each.process.name] / reference if reference else None,
            "reference": each.process.reference,
        }
        for each in measured
        for reference in [medians.get(each.process.reference)]
    ]


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
    """A method to generate the same vectors."""

    name: str  # its name in the table
    golden: str  # "float64" or "certified"
    jobs: int  # the number of processes; 0 for the requested number
    share: float = 1.0  # the fraction of the requested cases, which limits the time of slow methods


WAYS = (
    GenerationMethod("float64", "float64", 1),
    GenerationMethod("float64, several processes", "float64", 0),
    GenerationMethod("certified", "certified", 1, share=0.1),
)


@dataclass(slots=True)
class GenerationTimes(RoundTimes):
    """The times of one method."""

    method: GenerationMethod
    jobs: int  # the number of processes
    cases: int  # the number of vectors per round, whose times include writing

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
            **self.spread,
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
    methods = []
    for method in WAYS:
        with suppress(Unsupported):
            backend_named("certified" if method.golden == "certified" else "numpy")
            methods.append(method)
    suites = {
        method.name: small_cases(method.golden, int(cases * method.share)) for method in methods
    }
    measured = [GenerationTimes(w, w.jobs or jobs, len(suites[w.name].entries)) for w in methods]

    def seconds(each: GenerationTimes) -> float:
        plan = GenerationPlan(suite=suites[each.method.name], workers=Workers(jobs=each.jobs))
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            start = time.perf_counter()
            report = generate(plan, Path(folder), lambda _: None)
            taken = time.perf_counter() - start
        if report.failed:
            raise InvalidRequest(report.failed[0].error)
        return taken

    _repeat(measured, rounds, seconds, done)
    return measured


def small_cases(golden: str, count: int) -> Suite:
    """Return a suite of about `count` small cases."""
    labels = ", ".join(f"n{k}: {{}}" for k in range(max(1, count // FAMILIES)))
    return parse_suite(SUITE.format(golden=golden, labels=labels), "<benchmark>", Path())


def file_cost(scratch: Path | None, files: int = 5000) -> float:
    """Return the seconds it takes to create one small file here, for comparison."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        start = time.perf_counter()
        for k in range(files):
            path = f"{folder}/input_{k}.pb"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            os.write(descriptor, b"x" * 200)
            os.close(descriptor)
        return (time.perf_counter() - start) / files
