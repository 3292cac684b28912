"""Locks: one writer per folder; a second one learns who the first is, or waits for its turn.

The system releases a lock when its holder dies: a killed process leaves an unlocked file, which the
next writer takes over.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest
from rnncli.files.reading import is_alone, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no locks
    fcntl = None  # type: ignore[assignment]

LOCK = ".rnncli-lock"
_LONGEST_NOTE = 500
_PAUSE = 0.02  # seconds between two tries
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only writer of an existing folder while the body runs.

    Raises:
        InvalidRequest: another process writes it, the lock has a second name, or the system
            refuses.
    """
    path = folder / LOCK
    try:
        descriptor = _locked(path)
    except BlockingIOError:
        holder = "another process"
        with suppress(InvalidRequest):
            note = read_bytes(path, _LONGEST_NOTE).decode("utf-8", "replace")
            holder = note if note and note.isprintable() else holder
        raise InvalidRequest(f"{folder}: is being written by {holder}") from None
    except OSError as error:
        raise InvalidRequest(f"cannot write {path}: {error.strerror or error}") from error
    try:
        since = time.strftime("%H:%M")
        own = f"process {os.getpid()} on {platform.node()} since {since}"
        with suppress(OSError):  # a full disk
            os.ftruncate(descriptor, 0)
            os.write(descriptor, own.encode())
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


@contextmanager
def in_turn(path: Path, patience: float) -> Iterator[None]:
    """Run the body while no other process runs its own under the same lock, if possible.

    It runs at the latest after `patience` seconds, and at once if the lock cannot be opened.
    """
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except OSError:
        yield
        return
    try:
        end = time.monotonic() + patience
        while time.monotonic() < end:
            with suppress(BlockingIOError):
                try_lock(descriptor)
                break
            time.sleep(_PAUSE)
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _locked(path: Path) -> int:
    """Return a descriptor that holds the lock of the file at a path."""
    while True:
        descriptor = os.open(path, _FLAGS, 0o666)
        try:
            try_lock(descriptor)
            with suppress(FileNotFoundError):
                status = os.fstat(descriptor)
                if os.path.samestat(status, os.lstat(path)):
                    if not is_alone(status):  # notes would go elsewhere
                        wanted = "is not a regular file with a single name; remove it"
                        raise InvalidRequest(f"{path}: {wanted}")
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder removed the file meanwhile


def try_lock(descriptor: int) -> None:
    """Lock an open file or folder until it is closed; do nothing if the system has no locks.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return
