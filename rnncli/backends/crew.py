"""The threads of the process that help with one evaluation at a time."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import ThreadPoolExecutor


class Crew:
    """Runs tasks that wait for each other, each in a thread of its own.

    A gang whose members waited for a thread that others wait in would never end: the crew serves
    one caller at a time, and has as many threads as its largest gang.
    """

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Start without threads: a forked child has none of its parent's."""
        self.lock = Lock()
        self.hands = 0
        self.pool: ThreadPoolExecutor | None = None

    def reserve(self) -> bool:
        """Reserve the crew, if nobody else has."""
        return self.lock.acquire(blocking=False)

    def release(self) -> None:
        """End the reservation."""
        self.lock.release()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks at the same time, the first in the caller's thread. The crew is reserved."""
        from concurrent.futures import ThreadPoolExecutor, wait  # most runs need no threads

        first, *others = tasks
        if len(others) > self.hands:
            self.pool = ThreadPoolExecutor(len(others), "rnncli")
            self.hands = len(others)
        started = [self.pool.submit(task) for task in others] if self.pool else []
        first()
        wait(started)
        for future in started:
            future.result()


CREW = Crew()
