"""Processes on this machine, or just this one."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.executors.table import Outcome, Task

# What decides how many threads a BLAS starts; read when it is loaded.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

TERMINATED = 143


def in_processes(
    function: Callable[[Task], Outcome], tasks: Sequence[Task], *, jobs: int, scheduler: str = ""
) -> Iterator[tuple[int, Outcome]]:
    """Yield (index, outcome) of each task; with one job or task, from this very process.

    Raises:
        InvalidRequest: a worker was killed, or a scheduler is named that nobody would ask.
    """
    if scheduler:
        raise InvalidRequest(f"--scheduler {scheduler} is for --executor dask")
    if jobs == 1 or len(tasks) == 1:
        yield from enumerate(map(function, tasks))
    else:
        yield from _in_pool(function, tasks, min(jobs, len(tasks)))


def _in_pool(
    function: Callable[[Task], Outcome], tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[int, Outcome]]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    spawn = multiprocessing.get_context("spawn")
    with one_blas_thread():
        pool = ProcessPoolExecutor(jobs, spawn, _end_cleanly_when_told)
        finished = False
        try:
            futures = {pool.submit(_work, function, task): k for k, task in enumerate(tasks)}
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
            finished = True
        except BrokenProcessPool as error:
            raise InvalidRequest(
                "a worker process was killed, perhaps for memory; try fewer with -j"
            ) from error
        finally:
            pool.shutdown(wait=finished, cancel_futures=True)
            if not finished:  # failed, interrupted, or nobody wants the rest
                for worker in multiprocessing.active_children():
                    worker.terminate()


def _end_cleanly_when_told() -> None:
    """Leave Ctrl-C to the parent, and unwind on SIGTERM, so that no temporary file stays."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def _work(function: Callable[[Task], Outcome], task: Task) -> Outcome:
    try:
        return function(task)
    except SystemExit:
        os._exit(TERMINATED)  # the pool would catch it and go on with the next task


@contextmanager
def one_blas_thread() -> Iterator[None]:
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
