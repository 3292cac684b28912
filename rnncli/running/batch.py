"""Run many targets, in this process or in several, and report on each in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest, RnncliWarning, explain
from rnncli.judging.comparison import compare
from rnncli.running.execution import execute
from rnncli.running.request import Request, Run, RunReport, TargetReport
from rnncli.running.results import write_inputs, write_outputs
from rnncli.running.summary import summarise
from rnncli.running.target import load_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What decides how many threads a BLAS starts; read when it is loaded.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


TERMINATED = 143


class Task(NamedTuple):
    """One target, and where its files go; "" for nowhere."""

    target: str
    request: Request
    output: str = ""
    saved_inputs: str = ""


def run_all(tasks: Sequence[Task], jobs: int) -> Iterator[TargetReport]:
    """Run tasks in up to `jobs` processes; yield their reports in the order of the tasks."""
    if jobs == 1 or len(tasks) == 1:
        yield from map(run_task, tasks)
        return
    spawn = multiprocessing.get_context("spawn")
    with _one_blas_thread():
        pool = ProcessPoolExecutor(min(jobs, len(tasks)), spawn, _end_cleanly_when_told)
        try:
            yield from pool.map(_run_in_worker, tasks)
        except BrokenProcessPool as error:
            raise InvalidRequest(
                "a worker process was killed, perhaps for memory; try fewer with -j"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()


def _end_cleanly_when_told() -> None:
    """Leave Ctrl-C to the parent, and unwind on SIGTERM, so that no temporary file stays."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def _run_in_worker(task: Task) -> TargetReport:
    try:
        return run_task(task)
    except SystemExit:
        os._exit(TERMINATED)  # the pool would catch it and go on with the next task


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Let processes started inside use one BLAS thread each: N processes fill N cores."""
    before = {name: os.environ.get(name) for name in BLAS_THREADS}
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run_task(task: Task) -> TargetReport:
    """Run one target, write its files, and report; a failure is part of the report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RnncliWarning)
        try:
            runs = _run(task)
        except Exception as error:  # noqa: BLE001 -- one target's failure is not the next one's
            sentence, code = explain(error)
            report = TargetReport(
                task.target, error=sentence, exit_code=code, traceback=traceback.format_exc()
            )
        else:
            agrees = all(output.agrees for run in runs for output in run.comparison)
            report = TargetReport(task.target, runs, exit_code=0 if agrees else 1)
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    return replace(report, warnings=tuple(messages))


def _run(task: Task) -> tuple[RunReport, ...]:
    loaded = load_target(task.target, seed=task.request.seed)
    runs = list(execute(loaded, task.request))
    if task.saved_inputs:
        write_inputs(task.saved_inputs, runs)
    if task.output:
        write_outputs(task.output, loaded, runs)
    return tuple(_report(run, task.request) for run in runs)


def _report(run: Run, request: Request) -> RunReport:
    outputs = tuple(summarise(name, values) for name, values in run.outputs.items())
    comparison = compare(run.outputs, run.expected, request.tolerance) if run.expected else ()
    return RunReport(run.name, run.seconds, outputs, comparison)
