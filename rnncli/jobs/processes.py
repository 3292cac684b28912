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
import traceback
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from rnncli.errors import InvalidRequest
from rnncli.jobs.interpreter import children_have
from rnncli.jobs.signals import postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from types import FrameType

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

# Environment variables that limit the threads of a BLAS, read when it is loaded.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Those of workers, since N processes fill N cores.
ONE_BLAS_THREAD = dict.fromkeys(BLAS_THREADS, "1")

TERMINATED = 143
SECONDS_TO_UNWIND = 5
# Seconds that workers have to end once they are told to, which is longer than it takes the program
# that one of them may supervise, and between two signals that tell them.
SECONDS_TO_END = 15.0
SECONDS_BETWEEN_SIGNALS = 0.1

# Descriptors that are open at a time while workers are started, and those of each.
DESCRIPTORS, DESCRIPTORS_OF_WORKER = 4, 4

# The longest path of a socket of Linux, 107 bytes, less what the library adds to the folder of
# temporary files: "/pymp-", "/listener-" and eight letters behind each.
LONGEST_FOLDER = 107 - len("/pymp-12345678/listener-12345678")

# Signals that a terminal sends to all its processes (Ctrl-C, Ctrl-\, hang-up); only the parent
# reacts.
SENT_TO_ALL = ("SIGINT", "SIGQUIT", "SIGHUP")
TO_ALL = [getattr(signal, name) for name in SENT_TO_ALL if hasattr(signal, name)]
HAS_MASKS = hasattr(signal, "pthread_sigmask")

_AT_WORK: list[bool] = []  # not empty while this worker runs a task


def has_server() -> bool:
    """Return whether workers are forked from a server, which is fast.

    It is a single-threaded process that has only imported the modules they need, so that is safe on
    Linux. It has a socket among the temporary files, whose path must not be too long.
    """
    return sys.platform == "linux" and len(os.fsencode(tempfile.gettempdir())) <= LONGEST_FOLDER


def prepare(*modules: str) -> None:
    """Start to import modules for future workers in the background; only the first call counts."""
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
        OSError: too few descriptors are left to start them.
    """
    if scheduler:
        raise InvalidRequest(f"--scheduler {scheduler} is for --executor dask")
    if jobs == 1 or len(tasks) == 1:
        yield from enumerate(map(function, tasks))
        return
    import multiprocessing
    from multiprocessing.util import Finalize

    prepare(getattr(function, "func", function).__module__)
    context = multiprocessing.get_context("forkserver" if has_server() else "spawn")
    about = pickle.dumps(function), {**os.environ, **ONE_BLAS_THREAD}
    jobs = min(jobs, len(tasks))

    # With fewer descriptors, what starts workers would die in its own words.
    with ExitStack() as opened:
        due = (DESCRIPTORS + DESCRIPTORS_OF_WORKER * jobs) // 2
        for descriptor in chain.from_iterable(os.pipe() for _ in range(due)):
            opened.callback(os.close, descriptor)

    workers: list[_Worker] = []
    ending = Finalize(None, _end_all, (workers,), exitpriority=1)  # abandoned ones end at exit
    try:
        with uninterrupted(), _without_main(function), _told_if_killed():
            workers.extend(_Worker(context, *about) for _ in range(jobs))
        yield from _handed_out(tasks, workers)
    finally:
        ending()


class _Worker:
    """A process and the pipe to it, by which it receives a task and sends its outcome.

    Workers have nothing in common, so each can be ended at any moment. Those of
    `concurrent.futures` take turns at two queues: one that is ended at its turn keeps the others,
    and whoever waits for them, waiting for ever.
    """

    def __init__(self, context: Any, function: bytes, environment: dict[str, str]) -> None:
        self.task: int | None = None
        self.pipe, theirs = context.Pipe()
        with theirs, children_have(ONE_BLAS_THREAD):
            self.process = context.Process(target=_serve, args=(theirs, function, environment))
            self.process.start()

    def send(self, index: int, task: Any) -> None:
        """Hand it a task."""
        self.task = index
        with _told_if_killed():
            self.pipe.send(task)

    def receive(self) -> tuple[int, Any]:
        """Return its task's index and outcome, or raise what the task raised."""
        with _told_if_killed():
            failure, outcome = self.pipe.recv()
        index, self.task = self.task, None
        if failure is not None:
            raise failure
        assert index is not None
        return index, outcome


@contextmanager
def _told_if_killed() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise InvalidRequest(
            "a worker process was killed, perhaps for lack of memory or of files that it may open;"
            " try fewer with -j"
        ) from error


def _handed_out(tasks: Sequence[Any], workers: Sequence[_Worker]) -> Iterator[tuple[int, Any]]:
    """Yield (index, outcome) of each task; a worker gets its next one before that."""
    from multiprocessing.connection import wait

    due = iter(enumerate(tasks))
    for worker, task in zip(workers, due, strict=False):
        worker.send(*task)
    while at_work := {worker.pipe: worker for worker in workers if worker.task is not None}:
        found = []
        for pipe in wait([*at_work]):
            found.append(at_work[pipe].receive())
            for task in islice(due, 1):
                at_work[pipe].send(*task)
        yield from found


def _end_all(workers: Sequence[_Worker]) -> None:
    """End workers: those without a task by themselves, others by unwinding, the rest by force.

    Signals are repeated: one that comes just before a worker waits for something does not wake it.
    """
    from multiprocessing.connection import wait

    for worker in workers:
        worker.pipe.close()
    give_up = time.monotonic() + SECONDS_TO_END
    while alive := [worker for worker in workers if worker.process.is_alive()]:
        for worker in alive:
            if time.monotonic() > give_up:
                worker.process.kill()
            elif worker.task is not None:
                worker.process.terminate()
        wait([worker.process.sentinel for worker in alive], SECONDS_BETWEEN_SIGNALS)


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


def _serve(pipe: Connection, function: bytes, environment: dict[str, str]) -> None:
    """Do tasks until the other end of the pipe is closed.

    Ctrl-C is left to the parent; SIGTERM unwinds a task, which removes its temporaries.
    """
    for number in TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    if HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_ALL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)  # the server's may be outdated
    gc.disable()
    call = pickle.loads(function)  # noqa: S301 -- written by our own parent
    gc.freeze()  # permanent, so collections can skip it
    gc.enable()
    signal.signal(signal.SIGTERM, _end)  # nothing to unwind earlier
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send_bytes(_answer(call, pipe.recv()))


def _answer(function: Callable[[Any], Any], task: Any) -> bytes:
    """Return what a task raised, or None, and its outcome."""
    try:
        _AT_WORK.append(True)
        try:
            outcome = function(task)
        finally:
            _AT_WORK.clear()
        return pickle.dumps((None, outcome))
    except SystemExit:
        os._exit(TERMINATED)
    except Exception as error:  # noqa: BLE001 -- raised where the outcome was awaited
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 -- written here
        except Exception:  # noqa: BLE001 -- whatever the methods of a user's class raise
            said = "".join(traceback.format_exception(error))
            return pickle.dumps((RuntimeError(said), None))
        return pickle.dumps((error, None))


def _end(number: int, frame: FrameType | None) -> None:
    """Unwind a task, which removes its temporaries; between tasks, exit at once."""
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
        os._exit(TERMINATED)  # something caught the exception


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
        with children_have({}):
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
