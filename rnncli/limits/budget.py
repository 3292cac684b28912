"""Memory budgets of runs: checked before allocations and, on Linux, enforced by the system.

The command line gives every run a budget, which grows with the files that the user named. On Linux,
allocations beyond it fail in any library, even if no estimate foresaw them. Without a budget, as in
Python, only giant tensors made from next to nothing are refused.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import Exhausted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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

    def grow(self, size: int) -> None:
        """Raise the limit for some bytes of files that the user named."""
        self.limit += PER_BYTE * size
        self.hold()

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


_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


def current() -> Budget | None:
    """Return the budget of this run, or None."""
    return _CURRENT.get()


def ask(size: float, what: str, *, otherwise: int = FROM_NOTHING) -> None:
    """Check in advance that some bytes may be allocated, without a budget at most `otherwise`.

    Raises:
        OutOfMemory: they may not; `what` is the subject of the message.
    """
    if size < _NOT_WORTH_ASKING:
        return
    budget = current()
    if size > (otherwise if budget is None else budget.left):
        terms = budget.terms if budget else f", and at most {amount(otherwise)} are made here"
        raise OutOfMemory(f"{what} takes {amount(size)}{terms}")


def from_tensors(given: int) -> int:
    """Return the bytes that may be made from tensors of some bytes without a budget."""
    return max(FROM_NOTHING, FROM_BYTE * given)


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
    budget = Budget(DEFAULT if limit is None else limit, _private_bytes())
    with _entered(budget), _limit_restored():
        budget.hold()
        if limit is None:
            budget.grow(sum(map(_bytes_of, named)))
        yield


def grow(paths: Iterable[Path]) -> None:
    """Raise the run's limit for files that belong to one that the user named."""
    if budget := current():
        budget.grow(sum(map(_bytes_of, paths)))


def shortage(error: MemoryError) -> str:
    """Return the message about exhausted memory, with the option that raises the limit."""
    budget = current()
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
    token = _CURRENT.set(budget)
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(shortage(error)) from error
    finally:
        _CURRENT.reset(token)


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
