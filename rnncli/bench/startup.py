"""The duration of whole processes, from start to end, as a user waits for them."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.bench.machine import NO_PYC, environment
from rnncli.bench.workloads import built_in, of_operator
from rnncli.errors import InvalidRequest
from rnncli.files.atomic import put_file
from rnncli.jobs.interpreter import python
from rnncli.operators import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
    """A kind of process to measure.

    Attributes:
        name: its name in the table.
        arguments: Python's arguments; `{model}` is the file of a tiny model.
        reference: the process it is compared with.
        package: the package it needs, or "".
    """

    name: str
    arguments: tuple[str, ...]
    reference: str
    package: str = ""


HELP, SESSION = "a click program's --help", "load and run with onnxruntime"
PROCESSES = (
    TimedProcess(HELP, ("-c", CLICK), HELP),
    TimedProcess("rnncli --help", (*RNNCLI, "--help"), HELP),
    TimedProcess(SESSION, ("-c", ONNX_RUNTIME, MODEL), SESSION, "onnxruntime"),
    TimedProcess("rnncli run model.onnx", (*RNNCLI, "run", MODEL), SESSION),
)


@dataclass(slots=True)
class StartupTimes:
    """The times of one kind of process.

    Attributes:
        process: the kind.
        seconds: the duration of each round, from start to end.
    """

    process: TimedProcess
    seconds: list[float] = field(default_factory=list)


def measure_startup(rounds: int, done: Callable[[int], None]) -> list[StartupTimes]:
    """Time processes, each kind in every round, after one round that writes .pyc files.

    Args:
        rounds: the number of rounds.
        done: called with 1 after each process.

    Raises:
        InvalidRequest: a process failed.
    """
    kinds = [each for each in PROCESSES if not each.package or find_spec(each.package)]
    measured = [StartupTimes(each) for each in kinds]
    surroundings = environment(threads=1)
    surroundings.pop(NO_PYC, None)
    with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
        model = Path(folder) / "model.onnx"
        put_file(str(model), tiny_model())
        for each in measured:
            _seconds(each.process, model, surroundings)
        for _ in range(rounds):
            for each in measured:
                each.seconds.append(_seconds(each.process, model, surroundings))
                done(1)
    return measured


def tiny_model() -> bytes:
    """Return a model with one LSTM node and stored weights."""
    case = built_in("tiny", "LSTM")
    exact = evaluate(case.operator, case.inputs, attributes=case.attributes)
    return of_operator(case.name, case, exact).vector.model


def _seconds(process: TimedProcess, model: Path, surroundings: Mapping[str, str]) -> float:
    arguments = [str(model) if each == MODEL else each for each in process.arguments]
    start = time.perf_counter()
    done = subprocess.run(  # noqa: S603 -- runs Python
        python(*arguments),
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
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
            "seconds": medians[each.process.name],
            "fastest": min(each.seconds),
            "slowest": max(each.seconds),
            "times the reference": _ratio(each, medians),
            "reference": each.process.reference,
        }
        for each in measured
    ]


def _ratio(each: StartupTimes, medians: Mapping[str, float]) -> float | None:
    reference = medians.get(each.process.reference)
    return medians[each.process.name] / reference if reference else None
