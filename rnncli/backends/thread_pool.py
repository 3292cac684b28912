"""The threads of the process that help with one evaluation at a time."""

from __future__ import annotations

import ctypes
import os
from threading import Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Worker:
    """A thread that runs one task after the other.

    Attributes:
        task: what it has to do, until it is done.
    """

    def __init__(self) -> None:
        self.task: Callable[[], None] | None = None
        self._failure: BaseException | None = None
        self._called, self._done = Lock(), Lock()
        self._called.acquire()
        # A process ends even where some member of a team still waits for others.
        self._thread = Thread(target=self._serve, name="rnncli", daemon=True)
        self._thread.start()

    def keep_off(self, processor: int) -> None:
        """Run on other processors than this one."""
        keep_off(self._thread.native_id, processor)  # type: ignore[arg-type]  # started

    def begin(self, task: Callable[[], None]) -> None:
        """Let the thread start a task."""
        self._done.acquire(blocking=False)
        self.task = task
        self._called.release()  # interruptions come after calls: the thread is called or idle

    def end(self) -> None:
        """Wait until the thread has nothing to do; raise what its last task raised."""
        while self.task:
            self._done.acquire()
        failure, self._failure = self._failure, None
        if failure:
            raise failure

    def _serve(self) -> None:
        while True:
            self._called.acquire()
            try:
                self.task()  # type: ignore[misc]  # there is one whenever it is called
            except BaseException as failure:  # noqa: BLE001 -- the caller raises it
                self._failure = failure
            self.task = None
            if self._done.locked():
                self._done.release()


class ThreadPool:
    """Runs tasks that wait for each other, each in a thread of its own.

    A team whose members waited for a thread that others wait in would never end: the pool serves
    one caller at a time, and has as many threads as its largest team.
    """

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Start without threads: a forked child has none of its parent's."""
        self.lock = Lock()
        self.workers: list[Worker] = []
        self.here = UNKNOWN

    def reserve(self) -> bool:
        """Reserve the pool, if nobody else has."""
        return self.lock.acquire(blocking=False)

    def release(self) -> None:
        """End the reservation."""
        self.lock.release()

    def run(
        self, tasks: Sequence[Callable[[], None]], dissolve: Callable[[], None] | None = None
    ) -> None:
        """Run tasks at the same time, the first in the caller's thread. The pool is reserved.

        Args:
            tasks: what to run.
            dissolve: ends all waiting of tasks for each other. When the caller is interrupted some
                of them may never begin.
        """
        first, *others = tasks
        workers = self._workers(len(others))
        try:
            for worker, task in zip(workers, others, strict=True):
                worker.begin(task)
            first()
        except BaseException:
            if dissolve:
                dissolve()
            raise
        finally:
            _end(workers)

    def _workers(self, count: int) -> list[Worker]:
        """Return some of the threads, none of which runs where the caller does.

        Systems like to wake a thread where its caller runs, the more so in virtual machines, whose
        idle processors look taken away. Two members of a team in turns on one processor are hot in
        its caches, and nobody moves them: 18 ms instead of 8.
        """
        here = current()
        if here != self.here or count > len(self.workers):
            self.workers += [Worker() for _ in range(count - len(self.workers))]
            self.here = here
            for worker in self.workers:
                worker.keep_off(here)
        return self.workers[:count]


def _end(workers: Sequence[Worker]) -> None:
    """Wait for all, whatever is raised meanwhile; raise the first of it."""
    raised: list[BaseException] = []
    waiting = list(workers)
    while waiting:
        try:
            waiting[-1].end()
            waiting.pop()
        except BaseException as failure:  # noqa: BLE001 -- raised once nobody works any more
            raised.append(failure)
    if raised:
        raise raised[0]


UNKNOWN = -1

# The C library's, on Linux.
_where = getattr(ctypes.CDLL(None), "sched_getcpu", None) if os.name == "posix" else None


def current() -> int:
    """Return which processor the calling thread runs on just now, or UNKNOWN."""
    return _where() if _where else UNKNOWN


def keep_off(thread: int, processor: int) -> None:
    """Let a thread use the processors that the calling one may, but for one if there are others."""
    if processor == UNKNOWN or not hasattr(os, "sched_setaffinity"):
        return
    others = os.sched_getaffinity(0) - {processor}
    if others:
        os.sched_setaffinity(thread, others)


POOL = ThreadPool()
