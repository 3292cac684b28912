"""A program that runs another and ends it, with all its children, when its owner ends.

It uses only the standard library, so it starts in about 25 ms:

    python -I -S supervisor.py '{"argv": ["prog"], "keep": [7], "streams": null, "owner": 1234,
                                 "max_memory": null, "is_freed": false}'

The owner holds the other end of standard input. When it closes for any reason (the owner lets go,
ends or is killed), the program and all its descendants are ended, including those in other POSIX
sessions and orphans, which Linux hands to this process. The program's output is always read, so it
never blocks; only its beginning and end are kept. Once no process is left, one JSON object is
written to standard output:

    exit        the program's exit code, or null
    signal      the number of the signal that ended it, or null
    memory      its bytes in memory when they exceeded the limit, or null
    unstartable the reason it could not be started, or null
    output      its standard output
    errors      its standard error

A program that is freed is without the limit of private memory (RLIMIT_DATA) that its owner set for
itself. Memory is the resident memory of the program and its descendants, with shared pages counted
in each. Address space is not limited, since runtimes reserve much more of it than they use.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LIFELINE, REPORT = 0, 1

# From <linux/prctl.h>.
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# When the owner ends, this process runs on even if its program has stopped it.
AT_DEATH_OF_OWNER = signal.SIGCONT

# Seconds between checks of memory; a program gains at most about 50 MB between two checks.
SECONDS_BETWEEN_LOOKS = 0.01
SECONDS_UNTIL_AN_ORPHAN_NOTICES = 1.0
# Seconds to keep killing processes that do not die.
SECONDS_TO_DIE = 5.0

PIECE = 1 << 16
KEPT = 4096


class OutputEnds:
    """The beginning and the end of a program's output."""

    def __init__(self) -> None:
        self.head, self.tail = b"", b""

    def add(self, piece: bytes) -> None:
        """Keep the part that fits."""
        room = KEPT - len(self.head)
        self.head += piece[:room]
        self.tail = (self.tail + piece[room:])[-KEPT:]

    def __str__(self) -> str:
        return (self.head + self.tail).decode("utf-8", "replace")


class Supervisor:
    """Supervises the one program of this process; see `programs.Supervised`."""

    def __init__(
        self,
        argv: list[str],
        keep: list[int],
        streams: list[int] | None,
        owner: int,
        max_memory: int | None,
    ) -> None:
        self.owner, self.max_memory = owner, max_memory
        self.status: int | None = None
        self.memory: int | None = None

        # A descriptor that becomes readable when a child ends.
        self.wakeup, other_end = os.pipe()
        for descriptor in (self.wakeup, other_end):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(other_end, warn_on_full_buffer=False)

        stdin, stdout = streams or (subprocess.DEVNULL, subprocess.PIPE)
        program = subprocess.Popen(  # noqa: S603 -- to run what it is told is its purpose
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=keep,
            preexec_fn=_dying_with(os.getpid()),  # noqa: PLW1509 -- this process has one thread
        )
        self.pid = program.pid
        self.output, self.errors = OutputEnds(), OutputEnds()
        read_here = ((program.stdout, self.output), (program.stderr, self.errors))
        self.pipes = {pipe.fileno(): ends for pipe, ends in read_here if pipe}
        for descriptor in (*keep, *(streams or ())):
            os.close(descriptor)
        for descriptor in self.pipes:
            os.set_blocking(descriptor, False)
        self.program = program  # keeps its pipes open

    def watch(self) -> None:
        """Wait until the program ends, the owner lets go, or the memory limit is exceeded."""
        poll = select.poll()
        for descriptor in (LIFELINE, self.wakeup, *self.pipes):
            poll.register(descriptor, select.POLLIN)
        tick = SECONDS_BETWEEN_LOOKS if self.max_memory else SECONDS_UNTIL_AN_ORPHAN_NOTICES
        while self.status is None:
            ready = {descriptor for descriptor, _ in poll.poll(tick * 1000)}
            for descriptor in ready & {*self.pipes}:
                if not self._read(descriptor):
                    poll.unregister(descriptor)
            if self.wakeup in ready:
                os.read(self.wakeup, PIECE)
            self._reap()
            if self.max_memory:
                size = sum(map(resident, family(os.getpid())))
                self.memory = size if size > self.max_memory else None
            if LIFELINE in ready or os.getppid() != self.owner or self.memory is not None:
                return

    def end(self) -> dict[str, Any]:
        """Kill the remaining processes and report how the program ended."""
        give_up = time.monotonic() + SECONDS_TO_DIE
        while self._reap() and time.monotonic() < give_up:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            for pid in family(os.getpid()):
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        for descriptor in self.pipes:
            while self._read(descriptor):
                pass
        code = None if self.status is None else os.waitstatus_to_exitcode(self.status)
        return {
            "exit": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "memory": self.memory,
            "unstartable": None,
            "output": str(self.output),
            "errors": str(self.errors),
        }

    def _read(self, descriptor: int) -> bool:
        """Read the available bytes; return whether more may come."""
        try:
            piece = os.read(descriptor, PIECE)
        except BlockingIOError:
            return False
        self.pipes[descriptor].add(piece)
        return bool(piece)

    def _reap(self) -> bool:
        """Reap exited children; return whether any still run."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self.pid:
                    self.status = status
        return False


def _dying_with(parent: int) -> Callable[[], None]:
    """Return a function to run before exec: the kernel then kills the program with its parent."""

    def die_with_parent() -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent was already dead
            os._exit(1)

    return die_with_parent


def family(root: int) -> list[int]:
    """Return all descendants of a process; none without /proc."""
    descendants: list[int] = []
    waiting = [root]
    children = _children_listed if Path(f"/proc/{root}/task/{root}/children").exists() else _scan()
    while waiting:
        born = children(waiting.pop())
        descendants += born
        waiting += born
    return descendants


def _children_listed(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 -- often, and names suffice
            with open(f"/proc/{pid}/task/{thread}/children") as stream:  # noqa: PTH123
                children += map(int, stream.read().split())
    return children


def _scan() -> Any:
    """Return a function as `_children_listed`, for kernels that do not list children."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # A program's name, in parentheses, may contain any character.
            parent = int(status.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    return lambda pid: children.get(pid, [])


def resident(pid: int) -> int:
    """Return the resident memory of a process, bytes; 0 once it has ended."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/statm") as stream:  # noqa: PTH123
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def supervise(order: dict[str, Any]) -> dict[str, Any]:
    """Run a program until it or its owner ends, and report how it ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, AT_DEATH_OF_OWNER)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dumps
    if order.pop("is_freed"):
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        supervisor = Supervisor(**order)
    except OSError as error:
        return {"unstartable": error.strerror or str(error)}
    try:
        supervisor.watch()
    finally:
        ending = supervisor.end()
    return ending


def main() -> None:
    """Read the order from the arguments and write the report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    ending = supervise(json.loads(sys.argv[1]))
    with suppress(BrokenPipeError):
        os.write(REPORT, json.dumps(ending).encode())


if __name__ == "__main__":
    main()
