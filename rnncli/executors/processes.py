"""Processes on this machine, or just this one."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import time
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.signals import postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from rnncli.executors.table import Outcome, Task

# What decides how many threads a BLAS starts; read when it is loaded.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

TERMINATED = 143
SECONDS_TO_UNWIND = 1

# Where that is safe, workers are forked from a server: one process that has imported what they need
# and done nothing else, so that it has a single thread.
HAS_SERVER = sys.platform == "linux"

# What a terminal sends to all that runs in it: Ctrl-C, and that it is closed. Parents alone act.
TO_ALL = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
HAS_MASKS = hasattr(signal, "pthread_sigmask")

_FUNCTION: list[Callable[..., Any]] = []  # of this worker
_AT_WORK: list[bool] = []  # something, while this worker is


def prepare(*modules: str) -> None:
    """Begin to import modules for workers to come, while this process does something else.

    Args:
        modules: what they need; only the first call of a process is heard.
    """
    from multiprocessing import forkserver

    if HAS_SERVER:
        with one_blas_thread_each(), uninterrupted():
            forkserver.set_forkserver_preload(list(modules))
            forkserver.ensure_running()


def in_processes(
    function: Callable[[Task], Outcome], tasks: Sequence[Task], *, jobs: int, scheduler: str = ""
) -> Iterator[tuple[int, Outcome]]:
    """Yield (index, outcome) of each task; with one job or task, from this very process.

    The function travels to each worker once, and with it what a `partial` holds for all tasks.

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

    prepare(getattr(function, "func", function).__module__)
    context = multiprocessing.get_context("forkserver" if HAS_SERVER else "spawn")
    with one_blas_thread_each():
        pool = ProcessPoolExecutor(
            jobs, context, _begin, (pickle.dumps(function), dict(os.environ))
        )
        finished = False
        try:
            with uninterrupted(), _without_main(function):
                futures = {pool.submit(_work, task): k for k, task in enumerate(tasks)}
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


@contextmanager
def _without_main(function: Callable[..., Any]) -> Iterator[None]:
    """Keep processes that are started inside from running the user's program once more.

    They would, to find what it defines; nothing of it travels to them, unless the function does. A
    script without `if __name__ == "__main__"` would ask for workers in each of its workers.
    """
    main = sys.modules["__main__"]
    if getattr(function, "func", function).__module__ != main.__name__:
        sys.modules["__main__"] = ModuleType(main.__name__)
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin(function: bytes, environment: dict[str, str]) -> None:
    """Take up the function; leave Ctrl-C to the parent, unwind on SIGTERM: no temporary stays."""
    for number in TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    if HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_ALL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)  # the server's may be that of long ago
    gc.disable()
    _FUNCTION[:] = [pickle.loads(function)]  # noqa: S301 -- by our own parent
    gc.freeze()  # it stays: no collection need walk through it
    gc.enable()
    signal.signal(signal.SIGTERM, _end)  # before, there was nothing to unwind


def _end(number: int, frame: FrameType | None) -> None:
    """Unwind a task, so that no temporary stays; between tasks end at once.

    There the pool holds locks: one that unwinding leaves locked stops this worker and all others.
    """
    if _AT_WORK and postponed(number, frame):
        return
    if _AT_WORK:
        sys.exit()
    os._exit(TERMINATED)


def _end_with_parent() -> None:
    """Wait until the parent is gone, killed perhaps, and end: nobody else would tell us."""
    from multiprocessing import parent_process

    if parent := parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(SECONDS_TO_UNWIND)
        os._exit(TERMINATED)  # where the pool has caught what unwinds


def _work(task: Any) -> Any:
    (function,) = _FUNCTION
    try:
        _AT_WORK.append(True)
        try:
            return function(task)
        finally:
            _AT_WORK.clear()
    except SystemExit:
        os._exit(TERMINATED)  # the pool would catch it and go on with the next task


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep what a terminal sends to all from processes and threads that are started inside.

    They would be interrupted while they import, and say so at length. For this process a signal
    waits until the end: it must know whom it has started.
    """
    if not HAS_MASKS:
        yield
        return
    from multiprocessing import resource_tracker

    with _signals_deferred():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, TO_ALL)
        resource_tracker.ensure_running()  # which lets Ctrl-C through again once it has started
        signal.pthread_sigmask(signal.SIG_BLOCK, TO_ALL)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Let this process's handlers wait: what this thread blocks, a thread of a library takes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = [*TO_ALL, signal.SIGTERM]
    before = {number: signal.getsignal(number) for number in numbers}
    handled = {number: handler for number, handler in before.items() if callable(handler)}
    for number in handled:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


@contextmanager
def one_blas_thread_each() -> Iterator[None]:
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
