"""Programs: found as a user names them, and started, waited for and ended by a supervisor."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.files.reading import open_regular
from rnncli.jobs.interpreter import python
from rnncli.limits import current_budget
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.limits import Limits

SUPERVISOR = Path(__file__).with_name("supervisor.py")

# Seconds a supervisor may take to end its program and report; it gives up earlier itself.
SECONDS_TO_END = 10.0
# Seconds between two times that a supervisor is resumed, which its program may have stopped.
SECONDS_BETWEEN_LOOKS = 0.1
# Added by a shell to the number of the signal that ended its last program.
SHELL_SIGNAL = 128
CRASHES = {
    getattr(signal, name)
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSEGV", "SIGTRAP")
    if hasattr(signal, name)  # Windows has some
}
MIB = 1 << 20
# Node.js writes an uncaught error, its stack and properties, then its own version.
NODE_VERSION = re.compile(r"Node\.js v[\d.]+\S*")
NODE_ERROR = re.compile(r"\w*Error( \[\w+\])?: ")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended, as its supervisor reports it; see there."""

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
    """Return the last line that is not blank, fit for a report; of Node.js, the error's."""
    lines = [*filter(None, map(printable, text.splitlines()))]
    if lines and NODE_VERSION.fullmatch(lines[-1]):
        lines = [line for line in lines if NODE_ERROR.match(line)] or lines
    return lines[-1] if lines else ""


class Supervised:
    """A program that ends by itself, by `end`, or with this process.

    It has its own POSIX session, so Ctrl-C does not reach it. Its children end with it. Its
    standard input is empty, unless `streams` are given.

    Args:
        argv: the program and its arguments.
        folder: its working folder.
        environment: its whole environment; None for this process's own.
        max_memory: limit on the resident memory of it and its children, bytes; None for no limit.
        shares_limit: whether the limit of this process's own memory is also its own.
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
        shares_limit: bool = False,
        keep: Sequence[int] = (),
        streams: tuple[int, int] | None = None,
    ) -> None:
        if not hasattr(os, "killpg"):
            raise Unsupported(
                "what is judged runs in a process group of its own, which this system has not:"
                " judge the outputs that it wrote, with --results, or use Linux, WSL included"
            )
        if max_memory and not Path("/proc/self/statm").exists():
            raise Unsupported("--max-memory needs a system with /proc, such as Linux")
        order = {
            "argv": list(argv),
            "keep": list(keep),
            "streams": streams,
            "owner": os.getpid(),
            "max_memory": max_memory,
            "is_freed": current_budget() is not None and not shares_limit,
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
                from rnncli.supervision.supervisor import family  # of POSIX systems only

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


# A shell's exit codes for a program it may not execute and for one it does not find.
UNSTARTABLE = (126, 127)


def described_limits(limits: Limits) -> dict[str, str]:
    """Return the limits of a program as its description has them."""
    timeout = {"timeout": f"{limits.timeout:g}"}
    return timeout | ({} if limits.max_memory is None else {"max_memory": f"{limits.max_memory}"})


def words_of(option: str, command: str) -> list[str]:
    """Split the command line of an option, such as --harness, as a shell would.

    Raises:
        InvalidRequest: it is empty, or a quotation has no end.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidRequest(f"{option} {command}: {error}") from None
    if not words:
        raise InvalidRequest(f"{option} is empty")
    return words


def found_program(said: str, path: str, here: Path) -> Path:
    """Find a program as it would be called from a folder; one without a slash is looked up in PATH.

    Raises:
        InvalidRequest: there is no such program, or it is not executable.
    """
    program = shutil.which(str(here / path) if os.sep in path else path)
    if program is None:
        is_there = os.sep in path and (here / path).is_file()
        not_executable = f"the program could not be started: {path} is not executable"
        why = not_executable if is_there else f"there is no program '{path}'"
        if os.sep not in path and (here / path).is_file():
            why += f" in PATH; write ./{path} for the file in {here}"
        raise InvalidRequest(f"{said}: {why}")
    return here / program


def require_started(said: str, program: Path, ending: Ending | None) -> None:
    """Refuse a program that ended without having been started.

    Raises:
        InvalidRequest: the system, a shell or a loader reports that it could not be started.
    """
    if ending and (ending.unstartable is not None or ending.exit in UNSTARTABLE):
        why = f"{program} {ending.sentence}"
        if ending.unstartable is not None:
            with open_regular(program) as stream:
                is_script = stream.read(2) == b"#!"
            hint = "; the interpreter named in its first line may be missing" if is_script else ""
            why = f"{program}: {ending.unstartable}{hint}"
        raise InvalidRequest(f"{said}: the program could not be started: {why}")
