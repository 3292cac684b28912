"""Tenancies: resources that a run keeps open in a longer-lived process, such as a cluster's worker.

A process runs one task at a time, because tasks share the resources of their run. These are closed
when the run is over, and before a task of another run starts.
"""

from __future__ import annotations

import threading
import time
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.jobs.processes import Outcome, Task

Source = TypeVar("Source")
Resource = TypeVar("Resource")
SECONDS_BETWEEN_LOOKS = 0.1


class RunOverError(Exception):
    """The run of this task is over."""


class Tenancy:
    """The stay of a run in this process."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.is_over = False
        self._endings: list[Callable[[], None]] = []

    def at_end(self, close: Callable[[], None]) -> None:
        """Register a function to call when the stay ends."""
        self._endings.append(close)

    def tidy(self) -> None:
        """Close all resources, even if they are in use."""
        endings, self._endings = self._endings, []
        for close in endings:
            close()

    def end(self) -> None:
        """Prevent further tasks and close all resources."""
        self.is_over = True
        self.tidy()


_TURN = threading.Lock()
_DECIDING = threading.Lock()  # whether a run continues; held briefly
_STAYING = [Tenancy("")]  # always one; before the first run, without a name


def at_end(close: Callable[[], None]) -> None:
    """Register a function to call when the current run is over or the process exits."""
    Finalize(None, close, exitpriority=1)  # worker processes skip atexit
    _STAYING[0].at_end(close)


class KeptOpen(Generic[Source, Resource]):
    """The resources of one kind that this process keeps open from task to task of a run."""

    def __init__(
        self,
        opening: Callable[[Source], Resource],
        closing: Callable[[Resource], None] = lambda _: None,
    ) -> None:
        self._opening, self._closing = opening, closing
        self._open: dict[str, Resource] = {}

    def of(self, source: Source) -> Resource:
        """Return a resource, opened unless it is open."""
        key = repr(source)
        if key not in self._open:
            self._open[key] = self._opening(source)
            at_end(self.close)
        return self._open[key]

    def keep(self, source: Source, resource: Resource) -> None:
        """Keep a resource that is open already, in place of all others."""
        self.close()
        self._open[repr(source)] = resource

    def close(self) -> None:
        """Close all of them."""
        while self._open:
            self._closing(self._open.popitem()[1])


def require_run() -> None:
    """Check that the current run is not over.

    Raises:
        RunOverError: it is over.
    """
    if _STAYING[0].is_over:
        raise RunOverError(_STAYING[0].run)


def work(
    run: str, is_alive: Callable[[], bool], function: Callable[[Task], Outcome], task: Task
) -> Outcome:
    """Run a task when it is its run's turn; `is_alive` is polled until the run is over.

    A run may stay again after its stay has ended, because a cluster may move its data away from an
    idle worker and back.

    Raises:
        RunOverError: the run is already over.
    """
    with _TURN:
        with _DECIDING:
            staying = _STAYING[0]
            if staying.run != run or staying.is_over:
                if not is_alive():
                    raise RunOverError(run)
                staying.end()
                staying = _STAYING[0] = Tenancy(run)
                threading.Thread(target=_watch, args=(staying, is_alive), daemon=True).start()
        try:
            return function(task)
        finally:
            if staying.is_over:  # the task may have opened something since
                staying.tidy()


def _watch(tenancy: Tenancy, is_alive: Callable[[], bool]) -> None:
    """End the stay of a run, once the run is over."""
    while True:
        with _DECIDING:
            if not tenancy.is_over and not is_alive():
                tenancy.end()
            if tenancy.is_over:
                return
        time.sleep(SECONDS_BETWEEN_LOOKS)
