"""How much memory a run may take: asked for where memory is made, and on Linux held by the system.

The command line gives every run a budget, which grows with the files that the user named. What no
estimate foresees fails on Linux as an allocation, in whatever library makes it, before the memory
is taken. Where nobody sets a budget, as in the process of somebody who uses the package from
Python, a tensor made from next to nothing is refused and everything else is allowed.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import Exhausted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Bytes beside what Python, NumPy and their threads take; with those it stays below 1 GiB.
DEFAULT = 768 << 20
# Bytes more for each byte of the files that the user named: float16 weights as float64, packed,
# beside the tensors that they are multiplied with.
PER_BYTE = 16
# Without a budget: bytes that may be made from nothing, and for each byte there is.
FROM_NOTHING, FROM_BYTE = 512 << 20, 4

_NOT_WORTH_ASKING = 1 << 20
# Bytes that no machine has; sizes that a file declares may have any number of digits.
_IMMENSE = 1 << 70
# Files of a folder that count, and bytes of a block as `stat` counts them.
_MOST_FILES, _BLOCK = 10_000, 512
_STATUS = Path("/proc/self/status")
_DATA = re.compile(r"VmData:\s+([0-9]+) kB")


class OutOfMemory(Exhausted):
    """Something takes more memory than the run may take."""


class Budget:
    """The memory of one run.

    Args:
        limit: bytes that may be taken from now on.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._counted = 0

    @property
    def counts(self) -> bool:
        """Whether values that are alive must be counted: nobody measures them."""
        return True

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self.limit - self._counted

    def count(self, size: int) -> None:
        """Take note of so many bytes that are alive from now on; fewer if negative.

        Raises:
            OutOfMemory: together they are more than the limit.
        """
        self._counted += size
        if self._counted > self.limit:
            raise OutOfMemory(f"{amount(self._counted)} are alive{self.terms}")

    def grow(self, size: int) -> None:
        """Allow more, for so many bytes of files that the user named."""
        self.limit += PER_BYTE * size

    @property
    def terms(self) -> str:
        """The end of a sentence about something that takes too much."""
        return f", and this run may take {amount(self.limit)} in all; --max-memory SIZE raises that"


class _HeldBudget(Budget):
    """A budget that the system holds as well, where it is Linux."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._before = _private_bytes()

    @property
    def counts(self) -> bool:
        return not self._before

    @property
    def left(self) -> int:
        """Bytes that may still be taken, as measured where that can be."""
        if not self._before:
            return super().left
        return self.limit - max(0, _private_bytes() - self._before)

    def grow(self, size: int) -> None:
        super().grow(size)
        self.hold()

    def hold(self) -> None:
        """Let allocations beyond the limit fail."""
        if self._before:
            _limit_private_bytes(self._before + self.limit)


_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


def current() -> Budget | None:
    """Return the budget of this run; None where nobody has set one."""
    return _CURRENT.get()


def ask(size: float, what: str, *, otherwise: int = FROM_NOTHING) -> None:
    """Ask for memory before it is taken.

    Args:
        size: bytes.
        what: takes them: the beginning of a sentence.
        otherwise: bytes that it may take where nobody has set a budget.

    Raises:
        OutOfMemory: the run may not take so much.
    """
    if size < _NOT_WORTH_ASKING:
        return
    budget = current()
    if size > (otherwise if budget is None else budget.left):
        terms = budget.terms if budget else f", and at most {amount(otherwise)} are made here"
        raise OutOfMemory(f"{what} takes {amount(size)}{terms}")


def from_tensors(given: int) -> int:
    """Return how many bytes may be made from tensors of so many where nobody has set a budget."""
    return max(FROM_NOTHING, FROM_BYTE * given)


@contextmanager
def limited(limit: int | None) -> Iterator[None]:
    """Give what runs inside a budget; None leaves it without.

    Raises:
        OutOfMemory: memory came to an end inside, and nobody said where.
    """
    with _entered(None if limit is None else Budget(limit)):
        yield


@contextmanager
def held(limit: int | None, named: Iterable[str | Path] = ()) -> Iterator[None]:
    """Give what runs inside a budget that, on Linux, the system holds for the whole process.

    For processes of the command line only: who uses the package as a library has memory of their
    own in this process.

    Args:
        limit: bytes; None for the default, with room for the files that the user named.
        named: paths of files and folders, or what only may be one.

    Raises:
        OutOfMemory: memory came to an end inside, and nobody said where.
    """
    import numpy as np  # whose threads take memory that is not the run's

    del np
    budget = _HeldBudget(DEFAULT if limit is None else limit)
    with _entered(budget), _limit_restored():
        budget.hold()
        if limit is None:
            budget.grow(sum(map(_bytes_of, named)))
        yield


def grow(paths: Iterable[Path]) -> None:
    """Allow the run more for files that belong to one that the user named."""
    if budget := current():
        budget.grow(sum(map(_bytes_of, paths)))


def shortage(error: MemoryError) -> str:
    """Say in a sentence that memory came to an end, and how to give more."""
    budget = current()
    reason = " ".join(str(error).split())
    return f"not enough memory{f': {reason}' if reason else ''}{budget.terms if budget else ''}"


def amount(size: float) -> str:
    """Write bytes as people do."""
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
    """Return the bytes on disk of a file or folder; 0 of what is neither."""
    path = Path(str(named).partition("::")[0])
    try:
        if path.is_dir():
            return sum(map(_bytes_of_file, _files(path)))
        return _bytes_of_file(path)
    except (OSError, ValueError):
        return 0


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for inner, _, names in os.walk(folder):
        found += [Path(inner, name) for name in names]
        if len(found) > _MOST_FILES:
            break
    return found[:_MOST_FILES]


def _bytes_of_file(path: Path) -> int:
    """Return what a file takes: of a sparse one the disk holds less than its size."""
    status = path.stat()
    return min(status.st_size, getattr(status, "st_blocks", status.st_size) * _BLOCK)


def _private_bytes() -> int:
    """Return the bytes of memory that are this process's alone; 0 where the system is not Linux.

    They are what Linux counts against RLIMIT_DATA: written to or not.
    """
    if sys.platform != "linux":
        return 0
    try:
        found = _DATA.search(_STATUS.read_text("ascii"))
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


def _limit_private_bytes(size: int) -> None:
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, most))


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
