"""The process's thread pool, which serves one evaluation at a time."""

from __future__ import annotations

import ctypes
import os
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING

from rnncli.backends.threads import LIMITS, threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Worker:
    """A thread that runs one task after the other.

    Attributes:
        task: the current task, or None when idle.
    """

    def __init__(self) -> None:
        self.task: Callable[[], None] | None = None
        self._failure: BaseException | None = None
        self._called, self._done = Lock(), Lock()
        self._called.acquire()
        # Daemon threads let the process exit even while a team member waits for others.
        self._thread = Thread(target=self._serve, name="rnncli", daemon=True)
        self._thread.start()

    def keep_off(self, processor: int) -> None:
        """Avoid a processor."""
        keep_off(self._thread.native_id, processor)  # type: ignore[arg-type]  # started

    def begin(self, task: Callable[[], None]) -> None:
        """Start a task."""
        self._done.acquire(blocking=False)
        self.task = task
        self._called.release()  # interrupts come between calls: called or idle

    def end(self) -> None:
        """Wait until the thread is idle; raise the exception of its last task."""
        while self.task:
            self._done.acquire()
        failure, self._failure = self._failure, None
        if failure is not None:
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
    """A pool that runs tasks that wait for each other, each in its own thread.

    If two teams shared threads, both could wait for each other forever; so the pool serves one
    caller at a time and has as many threads as its largest team.
    """

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Forget all threads: a forked child does not have its parent's."""
        self.lock = Lock()
        self.workers: list[Worker] = []
        self.here = UNKNOWN

    def reserve(self) -> bool:
        """Reserve the pool, if it is free; return whether it was."""
        return self.lock.acquire(blocking=False)

    def release(self) -> None:
        """End the reservation."""
        self.lock.release()

    def run(
        self, tasks: Sequence[Callable[[], None]], dissolve: Callable[[], None] | None = None
    ) -> None:
        """Run tasks concurrently, the first in the caller's thread. The pool must be reserved.

        Args:
            tasks: the tasks.
            dissolve: ends all waits between tasks, some of which may never begin if the caller is
                interrupted.
        """
        first, *others = tasks
        workers = self._workers(len(others))
        try:
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
        except BaseException:
            _end(workers)  # once more: a signal may be noticed just where it is called
            raise

    def _workers(self, count: int) -> list[Worker]:
        """Return some of the threads, kept off the caller's processor.

        Schedulers tend to wake a thread on its caller's processor, especially in virtual machines,
        whose idle processors look busy. Two members that alternate on one processor stay hot in its
        caches and are not moved: 18 ms instead of 8.
        """
        here = current()
        if here != self.here or count > len(self.workers):
            self.workers += [Worker() for _ in range(count - len(self.workers))]
            self.here = here
            for worker in self.workers:
                worker.keep_off(here)
        return self.workers[:count]


def _end(workers: Sequence[Worker]) -> None:
    """Wait for all workers; raise the first exception."""
    raised: list[BaseException] = []
    waiting = list(workers)
    while waiting:
        try:
            waiting[-1].end()
            waiting.pop()
        except BaseException as failure:  # noqa: BLE001 -- raised once all workers are idle
            raised.append(failure)
    if raised:
        raise raised[0]


UNKNOWN = -1

# The C library's function, on Linux.
_where = getattr(ctypes.CDLL(None), "sched_getcpu", None) if os.name == "posix" else None


def current() -> int:
    """Return the processor that the calling thread currently runs on, or UNKNOWN."""
    return _where() if _where else UNKNOWN


def keep_off(thread: int, processor: int) -> None:
    """Restrict a thread to the caller's processors except one, if there are others."""
    if processor == UNKNOWN or not hasattr(os, "sched_setaffinity"):
        return
    others = os.sched_getaffinity(0) - {processor}
    if others:
        os.sched_setaffinity(thread, others)


POOL = ThreadPool()


def at_once(tasks: Sequence[Callable[[], None]]) -> None:
    """Run tasks in parallel if enough threads are allowed, else one after the other."""
    count = min(len(tasks), threads())
    groups = [partial(_in_turn, tasks[k::count]) for k in range(count)]
    if not (count > 1 and _all_at_once(groups)):
        _in_turn(tasks)


def _in_turn(tasks: Sequence[Callable[[], None]]) -> None:
    for task in tasks:
        task()


def _all_at_once(tasks: Sequence[Callable[[], None]]) -> bool:
    """Run each task in its own thread, unless the pool is busy; return whether they ran."""
    if not POOL.reserve():
        return False
    try:
        with LIMITS.at_most(1):
            POOL.run(tasks)
    finally:
        POOL.release()
    return True
