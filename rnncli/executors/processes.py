"""The local executor: worker processes on this machine, or this process."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.interpreter import children_have
from rnncli.signals import postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from rnncli.executors.workers import Outcome, Task

# Environment variables that limit the threads of a BLAS, read when it is loaded.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Those of workers, since N processes fill N cores.
ONE_BLAS_THREAD = dict.fromkeys(BLAS_THREADS, "1")

TERMINATED = 143
SECONDS_TO_UNWIND = 5

# The longest path of a socket of Linux, 107 bytes, less what the library adds to the folder of
# temporary files: "/pymp-", "/listener-" and eight letters behind each.
LONGEST_FOLDER = 107 - len("/pymp-12345678/listener-12345678")

# Signals that a terminal sends to all its processes (Ctrl-C, Ctrl-\, hang-up); only the parent
# reacts.
SENT_TO_ALL = ("SIGINT", "SIGQUIT", "SIGHUP")
TO_ALL = [getattr(signal, name) for name in SENT_TO_ALL if hasattr(signal, name)]
HAS_MASKS = hasattr(signal, "pthread_sigmask")

_FUNCTION: list[Callable[..., Any]] = []  # of this worker
_AT_WORK: list[bool] = []  # not empty while this worker runs a task


def has_server() -> bool:
    """Return whether workers are forked from a server, which is fast.

    It is a single-threaded process that has only imported the modules they need, so that is safe on
    Linux. It has a socket among the temporary files, whose path must not be too long.
    """
    return sys.platform == "linux" and len(os.fsencode(tempfile.gettempdir())) <= LONGEST_FOLDER


def prepare(*modules: str) -> None:
    """Start to import modules for future workers in the background.

    Args:
        modules: the modules to import; only the first call in a process has an effect.
    """
    from multiprocessing import forkserver

    if has_server():
        with children_have(ONE_BLAS_THREAD), uninterrupted():
            forkserver.set_forkserver_preload(list(modules))
            forkserver.ensure_running()


def in_processes(
    function: Callable[[Task], Outcome], tasks: Sequence[Task], *, jobs: int, scheduler: str = ""
) -> Iterator[tuple[int, Outcome]]:
    """Yield (index, outcome) of each task; a single job or task runs in this process.

    The function is sent to each worker once, with the arguments that a `partial` fixes.

    Raises:
        InvalidRequest: a worker was killed, or a scheduler is given, which this executor lacks.
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
    context = multiprocessing.get_context("forkserver" if has_server() else "spawn")
    environment = {**os.environ, **ONE_BLAS_THREAD}
    with children_have(ONE_BLAS_THREAD):
        pool = ProcessPoolExecutor(jobs, context, _begin, (pickle.dumps(function), environment))
        finished = False
        try:
            with uninterrupted(), _without_main(function):
                futures = {pool.submit(_work, task): k for k, task in enumerate(tasks)}
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
            finished = True
        except BrokenProcessPool as error:
            raise InvalidRequest(
                "a worker process was killed, perhaps for lack of memory; try fewer with -j"
            ) from error
        finally:
            if not finished:  # failed, interrupted or abandoned
                for worker in multiprocessing.active_children():
                    worker.terminate()
            # Waited for in any case: at exit Python would, too, and wakes the pool's thread by a
            # pipe that this thread may close at the same moment.
            pool.shutdown(wait=True, cancel_futures=True)


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
    """Load the function; leave Ctrl-C to the parent; unwind on SIGTERM to remove temporaries."""
    for number in TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    if HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_ALL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)  # the server's may be outdated
    gc.disable()
    _FUNCTION[:] = [pickle.loads(function)]  # noqa: S301 -- written by our own parent
    gc.freeze()  # permanent, so collections can skip it
    gc.enable()
    signal.signal(signal.SIGTERM, _end)  # nothing to unwind earlier


def _end(number: int, frame: FrameType | None) -> None:
    """Unwind a task, which removes its temporaries; between tasks, exit at once.

    Between tasks the pool holds locks; unwinding could leave one locked and stop all workers.
    """
    if _AT_WORK and postponed(number, frame):
        return
    if _AT_WORK:
        signal.signal(number, signal.SIG_IGN)  # a second one would stop the removal halfway
        sys.exit()
    os._exit(TERMINATED)


def _end_with_parent() -> None:
    """Wait until the parent has exited, even if killed, and exit."""
    from multiprocessing import parent_process

    if parent := parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(SECONDS_TO_UNWIND)
        os._exit(TERMINATED)  # the pool caught the exception


def _work(task: Any) -> Any:
    (function,) = _FUNCTION
    try:
        _AT_WORK.append(True)
        try:
            return function(task)
        finally:
            _AT_WORK.clear()
    except SystemExit:
        os._exit(TERMINATED)  # the pool would catch the exception and start the next task


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Block the terminal's signals in processes and threads that are started inside.

    Otherwise they would be interrupted during imports and print tracebacks. In this process a
    signal is deferred until the end, when all children are known.
    """
    if not HAS_MASKS:
        yield
        return
    from multiprocessing import resource_tracker

    with _signals_deferred():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, TO_ALL)
        resource_tracker.ensure_running()  # which unblocks Ctrl-C once it has started
        signal.pthread_sigmask(signal.SIG_BLOCK, TO_ALL)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer this process's handlers: a library's thread may receive a signal blocked here."""
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
