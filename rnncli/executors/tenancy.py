"""What a run keeps open in a process that outlives it, such as a worker of somebody's cluster.

A process serves one task at a time, because tasks share what their run has open; what one run
has open is closed before a task of another begins, and as soon as the run is over.
"""

from __future__ import annotations

import threading
import time
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.executors.table import Outcome, Task

SECONDS_BETWEEN_LOOKS = 0.1


class RunOverError(Exception):
    """Nobody waits for what this task computes."""


class Tenancy:
    """A run's stay in this process."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.is_over = False
        self._endings: list[Callable[[], None]] = []

    def at_end(self, close: Callable[[], None]) -> None:
        """Call a function when the stay ends."""
        self._endings.append(close)

    def tidy(self) -> None:
        """Close what is open; whatever still uses it fails."""
        endings, self._endings = self._endings, []
        for close in endings:
            close()

    def end(self) -> None:
        """Let nothing more begin, and close what is open."""
        self.is_over = True
        self.tidy()


_TURN = threading.Lock()
_DECIDING = threading.Lock()  # whether a run goes on; held for moments
_STAYING = [Tenancy("")]  # the only one; before the first run nobody's


def at_end(close: Callable[[], None]) -> None:
    """Call a function when the run that this process works for is over, or the process ends."""
    Finalize(None, close, exitpriority=1)  # worker processes run no atexit
    _STAYING[0].at_end(close)


def require_run() -> None:
    """Make sure that somebody waits for what this process does.

    Raises:
        RunOverError: nobody does any more.
    """
    if _STAYING[0].is_over:
        raise RunOverError(_STAYING[0].run)


def work(
    run: str, is_alive: Callable[[], bool], function: Callable[[Task], Outcome], task: Task
) -> Outcome:
    """Do a task of a run when it is its turn.

    Args:
        run: its name, which no other run has.
        is_alive: whether anybody waits for the run; asked often until it is not so.
        function: applied to the task.
        task: to be done.

    Raises:
        RunOverError: the run was over before.
    """
    with _TURN:
        staying = _stay(run, is_alive)
        try:
            return function(task)
        finally:
            if staying.is_over:  # and the task has opened something since
                staying.tidy()


def _stay(run: str, is_alive: Callable[[], bool]) -> Tenancy:
    """Return the stay of a run, begun if another one's is there, or none.

    A run whose stay has ended may stay again: a cluster moves what a worker holds of a run away
    while the worker has nothing to do, and back.

    Raises:
        RunOverError: nobody waits for the run.
    """
    with _DECIDING:
        staying = _STAYING[0]
        if staying.run == run and not staying.is_over:
            return staying
        if not is_alive():
            raise RunOverError(run)
        staying.end()
        _STAYING[0] = Tenancy(run)
        watch = threading.Thread(target=_watch, args=(_STAYING[0], is_alive), daemon=True)
        watch.start()
        return _STAYING[0]


def _watch(tenancy: Tenancy, is_alive: Callable[[], bool]) -> None:
    while not _is_over(tenancy, is_alive):
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _is_over(tenancy: Tenancy, is_alive: Callable[[], bool]) -> bool:
    """Look whether a run is over and end its stay; no task of it begins between the two."""
    with _DECIDING:
        if not tenancy.is_over and not is_alive():
            tenancy.end()
        return tenancy.is_over
