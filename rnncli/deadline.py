"""What a run is doing, and until when it may go on.

A model of a few hundred bytes can loop for ever. The evaluator looks at the clock between nodes,
loops between trips, recurrences between blocks of steps. A command is stopped by the system, too:
by an alarm in whatever Python runs, and some seconds later wherever it is.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from rnncli.errors import Exhausted
from rnncli.notes import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# After so many seconds somebody at a terminal is told what runs; after so many more than it was
# given, a run is ended that does not come back from a library.
NOTICE, GRACE = 10.0, 5.0


class OutOfTime(Exhausted):
    """The run takes longer than it was given."""


class Activity:
    """What a run is doing.

    Args:
        seconds: that it may take; None for any number.

    Attributes:
        place: tells which node runs; None before the first.
        trip: of the innermost loop that is running, from 0; None outside of loops.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self.place: Callable[[], str] | None = None
        self.trip: int | None = None

    def begin(self, place: Callable[[], str]) -> None:
        """Take note of the node that runs from now on.

        Raises:
            OutOfTime: the time is over.
        """
        self.place = place
        self.check()

    def check(self) -> None:
        """Look at the clock.

        Raises:
            OutOfTime: the time is over.
        """
        if time.monotonic() > self._end:
            raise self.out_of_time()

    def out_of_time(self) -> OutOfTime:
        """Return what is raised when the time is over; the node is named where it is caught."""
        given = f"not finished in the {self._seconds:g} s it was given"
        return OutOfTime(f"{given}{self._in_trip}; --timeout SECONDS gives it more")

    @property
    def _in_trip(self) -> str:
        return "" if self.trip is None else f", in trip {self.trip:,} of its loop"

    def described(self, name: str) -> str:
        """Say which node of a target runs, and in which trip."""
        return f"{self.place() if self.place else name}{self._in_trip}"


_CURRENT: ContextVar[Activity | None] = ContextVar("activity", default=None)


def current() -> Activity | None:
    """Return what this run is doing; None where nobody wants to know."""
    return _CURRENT.get()


def check() -> None:
    """Look at the clock, where somebody has set a limit.

    Raises:
        OutOfTime: the time is over.
    """
    if activity := _CURRENT.get():
        activity.check()


def turn(trip: int) -> None:
    """Begin a trip of a loop.

    Raises:
        OutOfTime: the time is over.
    """
    if activity := _CURRENT.get():
        activity.trip = trip
        activity.check()


@contextmanager
def timed(seconds: float | None) -> Iterator[Activity]:
    """Give what runs inside a time; None for any.

    Raises:
        OutOfTime: it was over before the end.
    """
    activity = Activity(seconds)
    token = _CURRENT.set(activity)
    try:
        yield activity
    finally:
        _CURRENT.reset(token)


@contextmanager
def watched(seconds: float | None, name: str) -> Iterator[None]:
    """Give what a command runs a time, and tell somebody at a terminal what takes so long.

    Args:
        seconds: None for any.
        name: of what runs, as sentences begin.

    Raises:
        OutOfTime: the time was over before the end.
    """
    with timed(seconds) as activity, ExitStack() as stack:
        if sys.stderr.isatty():
            stack.enter_context(_later(NOTICE, lambda: tell(_notice(activity, name))))
        if seconds is not None:
            stack.enter_context(_later(seconds + GRACE, lambda: _end(activity, name)))
        try:
            with _alarm(seconds, activity):
                yield
        except OutOfTime as error:
            if str(error).startswith(name):
                raise
            raise OutOfTime(f"{name}: {error}") from error


def _notice(activity: Activity, name: str) -> str:
    return (
        f"{activity.described(name)}: still running after {NOTICE:g} s; Ctrl-C stops it,"
        " --timeout SECONDS would"
    )


def _end(activity: Activity, name: str) -> None:
    """End the process: no Python runs in the thread that should."""
    sys.stderr.write(f"{activity.described(name)}: {activity.out_of_time()}\n")
    sys.stderr.flush()
    os._exit(OutOfTime.exit_code)


@contextmanager
def _later(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _alarm(seconds: float | None, activity: Activity) -> Iterator[None]:
    """Raise in the main thread when the time is over, where the system can."""
    in_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not in_main or sys.platform == "win32":
        yield
        return

    def stop(*_: object) -> None:
        raise activity.out_of_time()

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
