"""Limits: what a computation may take, of time, memory and threads.

Memory: the command line gives every run a budget, which grows with the files that the user named.
It is checked before allocations; on Linux, those beyond it fail in any library, even if no estimate
foresaw them. Without a budget, as in Python, only giant tensors made from next to nothing are
refused.

Time: a model of a few hundred bytes can loop forever. The clock is checked between nodes, trips of
loops and blocks of a recurrence's steps. The system also stops a command: by an alarm in any Python
code, and some seconds later anywhere.
"""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli import options
from rnncli.errors import Exhausted
from rnncli.options import OptionKind, OptionValues, option
from rnncli.talk.terminal import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(OptionValues):
    """What each computation may take: a case of an implementation, a model, a call of a session.

    Attributes:
        threads: Threads of one evaluation, those of OpenBLAS included.
        timeout: Stop an evaluation, or what is judged, after so many seconds.
        max_memory: Stop what takes more bytes of memory, such as 512M or 2G. Without it, what a
            command computes in its own process may take 768M and 16 bytes for each byte of the
            files named.

    Raises:
        InvalidRequest: there are no threads, no seconds, or no bytes.
    """

    threads: int | None = option(
        None, kind=OptionKind.COUNT, least=1, metavar="N", variable="RNNCLI_THREADS"
    )
    timeout: float | None = option(None, kind=OptionKind.SECONDS, metavar="SECONDS")
    max_memory: int | None = option(None, kind=OptionKind.BYTES, metavar="SIZE")

    def __post_init__(self) -> None:
        options.check(self)

    def or_else(self, others: Limits) -> Limits:
        """Return these limits, and others where there are none."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return Limits(**{n: getattr(others, n) if v is None else v for n, v in own.items()})


UNLIMITED = Limits()
# Those of an implementation that is judged, where the user gives none.
OF_SUBJECTS = Limits(threads=1, timeout=60.0)
# Those of loading with warm-up, and of a turn, of what is measured.
OF_CONTESTS = Limits(threads=1, timeout=120.0)
# Those of a request to a harness of which nobody knows whether it is wired right.
OF_SMOKE = Limits(timeout=10.0)


# The default budget in bytes; with Python, NumPy and their threads a run stays below 1 GiB.
DEFAULT = 768 << 20
# Additional bytes per byte of the files that the user named: enough for float16 weights as float64,
# packed, and the tensors that they are multiplied with.
PER_BYTE = 16
# Limits without a budget: bytes made from nothing, and per existing byte.
FROM_NOTHING, FROM_BYTE = 512 << 20, 4

_NOT_WORTH_ASKING = 1 << 20
# More bytes than any machine has; declared sizes may have any number of digits.
_IMMENSE = 1 << 70
# The most files of a folder that count, and the bytes of a block in `stat`.
_MOST_FILES, _BLOCK = 10_000, 512
_STATUS = Path("/proc/self/status")
_DATA = re.compile(r"VmData:\s+([0-9]+) kB")


class OutOfMemory(Exhausted):
    """A request exceeds the run's memory."""


class Budget:
    """The memory of one run: bytes that may be allocated from now on.

    Args:
        limit: bytes.
        before: the bytes that the process has already, if the system measures and enforces them, as
            Linux does; 0 if live values must be counted.
    """

    def __init__(self, limit: int, before: int = 0) -> None:
        self.limit = limit
        self.counts = not before
        self._before, self._counted = before, 0

    @property
    def left(self) -> int:
        """Bytes that may still be allocated, measured if possible."""
        used = self._counted if self.counts else max(0, _private_bytes() - self._before)
        return self.limit - used

    def count(self, size: int) -> None:
        """Add live bytes, or remove them if negative.

        Raises:
            OutOfMemory: the total exceeds the limit.
        """
        self._counted += size
        if self._counted > self.limit:
            raise OutOfMemory(f"{amount(self._counted)} are alive{self.terms}")

    def hold(self) -> None:
        """Make allocations beyond the limit fail, if the system can."""
        if self.counts:
            return
        import resource

        size = self._before + self.limit
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        bound = size if most == resource.RLIM_INFINITY else min(size, most)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, most))

    @property
    def terms(self) -> str:
        """The end of a message about excessive memory."""
        return f", and this run may take {amount(self.limit)} in all; --max-memory SIZE raises that"


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


def current_budget() -> Budget | None:
    """Return the budget of this run, or None."""
    return _BUDGET.get()


def ask(size: float, what: str, *, otherwise: int = FROM_NOTHING) -> None:
    """Check in advance that some bytes may be allocated, without a budget at most `otherwise`.

    Raises:
        OutOfMemory: they may not; `what` is the subject of the message.
    """
    if size < _NOT_WORTH_ASKING:
        return
    budget = current_budget()
    if size > (otherwise if budget is None else budget.left):
        terms = budget.terms if budget else f", and at most {amount(otherwise)} are made here"
        raise OutOfMemory(f"{what} takes {amount(size)}{terms}")


@contextmanager
def limited(limit: int | None) -> Iterator[None]:
    """Run the body with a budget, or None.

    Raises:
        OutOfMemory: the body ran out of memory.
    """
    with _entered(None if limit is None else Budget(limit)):
        yield


@contextmanager
def held(limit: int | None, named: Iterable[str | Path] = ()) -> Iterator[None]:
    """Run the body with a budget that, on Linux, the system enforces for the whole process.

    Only for processes of the command line, because callers of the library have memory of their own
    in the process. Without a limit it is the default, increased for the files and folders that the
    user named, among other words.

    Raises:
        OutOfMemory: the body ran out of memory.
    """
    import numpy as np  # its threads' memory does not count

    del np
    if limit is None:
        limit = DEFAULT + PER_BYTE * sum(map(_bytes_of, named))
    budget = Budget(limit, _private_bytes())
    with _entered(budget), _limit_restored():
        budget.hold()
        yield


def shortage(error: MemoryError) -> str:
    """Return the message about exhausted memory, with the option that raises the limit."""
    budget = current_budget()
    reason = " ".join(str(error).split())
    return f"not enough memory{f': {reason}' if reason else ''}{budget.terms if budget else ''}"


def amount(size: float) -> str:
    """Return a number of bytes with a unit."""
    if size >= _IMMENSE:
        return "more memory than there is"
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:,.0f} bytes"


@contextmanager
def _entered(budget: Budget | None) -> Iterator[None]:
    token = _BUDGET.set(budget)
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(shortage(error)) from error
    finally:
        _BUDGET.reset(token)


def _bytes_of(named: str | Path) -> int:
    """Return the bytes on disk of a file or folder, else 0."""
    path = Path(str(named).partition("::")[0])
    try:
        if not path.is_dir():
            return _bytes_of_file(path)
        inside = (Path(inner, name) for inner, _, names in os.walk(path) for name in names)
        return sum(map(_bytes_of_file, islice(inside, _MOST_FILES)))
    except (OSError, ValueError):
        return 0


def _bytes_of_file(path: Path) -> int:
    """Return the bytes that a file takes on disk, fewer than its size if it is sparse."""
    status = path.stat()
    return min(status.st_size, getattr(status, "st_blocks", status.st_size) * _BLOCK)


def _private_bytes() -> int:
    """Return the bytes of this process's private memory; 0 if the system is not Linux.

    Linux counts them against RLIMIT_DATA, written to or not.
    """
    if sys.platform != "linux":
        return 0
    try:
        found = _DATA.search(_STATUS.read_text("ascii"))
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


@contextmanager
def _limit_restored() -> Iterator[None]:
    if sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


# Seconds until a terminal shows what is running, seconds after the limit until a run stuck in a
# library is ended, and seconds until an alarm comes again that nobody heard.
NOTICE, GRACE, AGAIN = 10.0, 5.0, 0.01


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


_ACTIVITY: ContextVar[Activity | None] = ContextVar("activity", default=None)
current_activity = _ACTIVITY.get
"""Return the activity of this run, or None."""


def check_clock() -> None:
    """Check the clock, if there is a limit.

    Raises:
        OutOfTime: the time is over.
    """
    if activity := current_activity():
        activity.check()


def turn(trip: int) -> None:
    """Start a trip of a loop.

    Raises:
        OutOfTime: the time is over.
    """
    if activity := current_activity():
        activity.trip = trip
        activity.check()


@contextmanager
def timed(seconds: float | None) -> Iterator[Activity]:
    """Run the body with a time limit, or None.

    Raises:
        OutOfTime: the limit was exceeded.
    """
    activity = Activity(seconds)
    token = _ACTIVITY.set(activity)
    try:
        yield activity
    finally:
        _ACTIVITY.reset(token)


@contextmanager
def within(seconds: float | None, name: str) -> Iterator[None]:
    """Run the body with a time limit of its own, or under the clock of what it is part of.

    The system stops it as well in a command, whose memory is limited, too; signals and the memory
    of other processes belong to those who call the library.

    Raises:
        OutOfTime: the limit was exceeded.
    """
    if current_activity():
        yield
        return
    with watched(seconds, name) if current_budget() else timed(seconds):
        yield


@contextmanager
def watched(seconds: float | None, name: str) -> Iterator[None]:
    """Run a command's work with a time limit, with a notice at a terminal if it takes long.

    Raises:
        OutOfTime: the limit was exceeded.
    """
    with timed(seconds) as activity, ExitStack() as stack:
        if sys.stderr.isatty():
            notice = f": still running after {NOTICE:g} s; Ctrl-C stops it, --timeout SECONDS would"
            stack.enter_context(_later(NOTICE, lambda: tell(activity.described(name) + notice)))
        if seconds is not None:
            stack.enter_context(_later(seconds + GRACE, lambda: _end(activity, name)))
        try:
            with _alarm(seconds, activity):
                yield
        except OutOfTime as error:
            if str(error).startswith(name):
                raise
            raise OutOfTime(f"{name}: {error}") from error


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

    def lost(raised: sys.UnraisableHookArgs) -> None:
        """Come again after a destructor or a callback, which pass nothing on and report it."""
        if isinstance(raised.exc_value, OutOfTime):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            hook(raised)

    before, hook = signal.signal(signal.SIGALRM, stop), sys.unraisablehook
    sys.unraisablehook = lost
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        signal.signal(signal.SIGALRM, before)
