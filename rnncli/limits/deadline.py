"""Deadlines: the current activity of a run and its time limit.

A model of a few hundred bytes can loop forever. The clock is checked between nodes, trips of loops
and blocks of a recurrence's steps. The system also stops a command: by an alarm in any Python code,
and some seconds later anywhere.
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
from rnncli.limits import budget
from rnncli.talk.terminal import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Seconds until a terminal shows what is running, and seconds after the limit until a run stuck in a
# library is ended.
NOTICE, GRACE = 10.0, 5.0


class OutOfTime(Exhausted):
    """The run exceeds its time limit."""


class Activity:
    """The current activity of a run.

    Args:
        seconds: the time limit; None for none.

    Attributes:
        place: function that returns the running node; None before the first.
        trip: the trip of the innermost running loop, from 0; None outside loops.
        is_told: whether a check has raised; an alarm beside it would lose the node's name.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self.place: Callable[[], str] | None = None
        self.trip: int | None = None
        self.is_told = False

    def begin(self, place: Callable[[], str]) -> None:
        """Record the node that runs from now on.

        Raises:
            OutOfTime: the time is over.
        """
        self.place = place
        self.check()

    def check(self) -> None:
        """Check the clock.

        Raises:
            OutOfTime: the time is over.
        """
        if time.monotonic() > self._end:
            self.is_told = True
            raise self.out_of_time()

    @property
    def left(self) -> float | None:
        """The seconds that are left, None without a limit."""
        return None if self._seconds is None else max(0.0, self._end - time.monotonic())

    def out_of_time(self) -> OutOfTime:
        """Return the error of an exceeded limit; the handler adds the node."""
        given = f"not finished in the {self._seconds:g} s it was given"
        return OutOfTime(f"{given}{self._in_trip}; --timeout SECONDS gives it more")

    @property
    def _in_trip(self) -> str:
        return "" if self.trip is None else f", in trip {self.trip:,} of its loop"

    def described(self, name: str) -> str:
        """Return the running node of a target, with its trip."""
        return f"{self.place() if self.place else name}{self._in_trip}"


_CURRENT: ContextVar[Activity | None] = ContextVar("activity", default=None)
current = _CURRENT.get
"""Return the activity of this run, or None."""


def check() -> None:
    """Check the clock, if there is a limit.

    Raises:
        OutOfTime: the time is over.
    """
    if activity := current():
        activity.check()


def turn(trip: int) -> None:
    """Start a trip of a loop.

    Raises:
        OutOfTime: the time is over.
    """
    if activity := current():
        activity.trip = trip
        activity.check()


@contextmanager
def timed(seconds: float | None) -> Iterator[Activity]:
    """Run the body with a time limit, or None.

    Raises:
        OutOfTime: the limit was exceeded.
    """
    activity = Activity(seconds)
    token = _CURRENT.set(activity)
    try:
        yield activity
    finally:
        _CURRENT.reset(token)


@contextmanager
def within(seconds: float | None, name: str) -> Iterator[None]:
    """Run the body with a time limit of its own, or under the clock of what it is part of.

    The system stops it as well in a command, whose memory is limited, too; signals and the memory
    of other processes belong to those who call the library.

    Raises:
        OutOfTime: the limit was exceeded.
    """
    if current():
        yield
        return
    with watched(seconds, name) if budget.current() else timed(seconds):
        yield


@contextmanager
def watched(seconds: float | None, name: str) -> Iterator[None]:
    """Run a command's work with a time limit, with a notice at a terminal if it takes long.

    Raises:
        OutOfTime: the limit was exceeded.
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
    """Exit the process, because the main thread is stuck outside Python."""
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
    """Raise in the main thread when the time is over, if the system can."""
    in_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not in_main or sys.platform == "win32":
        yield
        return

    def stop(*_: object) -> None:
        if not activity.is_told:
            raise activity.out_of_time()

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
