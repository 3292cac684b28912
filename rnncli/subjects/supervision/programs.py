"""Programs that are started, waited for and ended through a supervisor."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.errors import Unsupported
from rnncli.jobs.interpreter import python
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUPERVISOR = Path(__file__).with_name("supervisor.py")

# Seconds a supervisor may take to end its program and report; it gives up earlier itself.
SECONDS_TO_END = 10.0
# Seconds between two times that a supervisor is resumed, which its program may have stopped.
SECONDS_BETWEEN_LOOKS = 0.1
# Added by a shell to the number of the signal that ended its last program.
SHELL_SIGNAL = 128
CRASHES = {
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGKILL,
    signal.SIGSEGV,
    signal.SIGTRAP,
}
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended.

    Attributes:
        exit: its exit code, or None.
        signal: the number of the signal that ended it, or None.
        memory: its resident memory when that exceeded the limit, bytes, or None.
        unstartable: the reason it could not be started, or None.
        output: the beginning and the end of its standard output.
        errors: the beginning and the end of its standard error.
    """

    exit: int | None = None
    signal: int | None = None
    memory: int | None = None
    unstartable: str | None = None
    output: str = ""
    errors: str = ""

    @property
    def sentence(self) -> str:
        """The cause, with the last line it wrote to standard error."""
        line = last_line(self.errors)
        return f"{self._cause}: {line}" if line else self._cause

    @property
    def _cause(self) -> str:
        if self.unstartable is not None:
            return f"could not be started: {self.unstartable}"
        if self.memory is not None:
            return f"took {self.memory // MIB} MiB of memory, more than it may"
        if self.signal is not None:
            return f"died of {signal_name(self.signal)}"
        number = (self.exit or 0) - SHELL_SIGNAL
        of_shell = f", which is {signal_name(number)}" if number in CRASHES else ""
        return f"ended with exit code {self.exit}{of_shell}"


def signal_name(number: int) -> str:
    """Return a signal's name, such as SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def first_line(text: str) -> str:
    """Return the first line that is not blank, fit for a report."""
    return next(filter(None, map(printable, text.splitlines())), "")


def last_line(text: str) -> str:
    """Return the last line that is not blank, fit for a report."""
    return next(filter(None, map(printable, reversed(text.splitlines()))), "")


class Supervised:
    """A program that ends by itself, by `end`, or with this process.

    It has its own POSIX session, so Ctrl-C does not reach it. Its children end with it. Its
    standard input is empty, unless `streams` are given.

    Args:
        argv: the program and its arguments.
        folder: its working folder.
        environment: its whole environment; None for this process's own.
        max_memory: limit on the resident memory of it and its children, bytes; None for no limit.
        keep: descriptors it inherits besides the standard ones.
        streams: descriptors that become its standard input and output; the `output` of its ending
            is then empty.

    Raises:
        Unsupported: the system has no process groups, or no /proc to watch memory by.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        max_memory: int | None = None,
        keep: Sequence[int] = (),
        streams: tuple[int, int] | None = None,
    ) -> None:
        if os.name != "posix":
            raise Unsupported("a subject in its own process needs a POSIX system")
        if max_memory and not Path("/proc/self/statm").exists():
            raise Unsupported("--max-memory needs a system with /proc, such as Linux")
        order = {
            "argv": list(argv),
            "keep": list(keep),
            "streams": streams,
            "owner": os.getpid(),
            "max_memory": max_memory,
        }
        self._ending: Ending | None = None
        self._process = subprocess.Popen(  # noqa: S603 -- runs our own file
            python("-I", "-S", str(SUPERVISOR), json.dumps(order)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=None if environment is None else dict(environment),
            pass_fds=[*keep, *(streams or ())],
            start_new_session=True,
        )

    def wait(self, seconds: float) -> Ending | None:
        """Return how it ended; None if it still runs after so many seconds."""
        give_up = time.monotonic() + seconds
        poll = select.poll()
        if self._ending is None:
            poll.register(self._process.stdout, select.POLLIN)  # type: ignore[arg-type]
        while self._ending is None:
            self._process.send_signal(signal.SIGCONT)
            left = max(0.0, give_up - time.monotonic())
            if poll.poll(1000 * min(left, SECONDS_BETWEEN_LOOKS)):
                self._ending = self._report()
            elif not left:
                break
        return self._ending

    def end(self) -> Ending:
        """End it with its children; return how it ended, if by itself."""
        if self._ending is None:
            self.let_go()
            if self.wait(SECONDS_TO_END) is None:
                from rnncli.subjects.supervision.supervisor import family  # of POSIX systems only

                for pid in (*family(self._process.pid), self._process.pid):
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                self._ending = self._report()
        assert self._ending
        return self._ending

    def _report(self) -> Ending:
        with self._process as process:  # closes its pipes and waits
            assert process.stdout
            report = process.stdout.read()
            self.let_go()
        with suppress(ValueError, TypeError):
            fields: dict[str, Any] = json.loads(report)
            return Ending(**fields)
        return Ending(signal=signal.SIGKILL, errors="its supervisor was killed")

    def let_go(self) -> None:
        """Ask its supervisor to end it with its children; `wait` returns once it has."""
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()
