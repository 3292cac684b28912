"""The processors that the threads of this process run on, where the system tells."""

from __future__ import annotations

import ctypes
import os

UNKNOWN = -1
# The C library's, on Linux.
_where = getattr(ctypes.CDLL(None), "sched_getcpu", None) if os.name == "posix" else None


def available() -> int:
    """Return how many processors the calling thread may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def current() -> int:
    """Return which processor the calling thread runs on just now, or UNKNOWN."""
    return _where() if _where else UNKNOWN


def keep_off(thread: int, processor: int) -> None:
    """Let a thread use the processors that the calling one may, but for one if there are others."""
    if processor == UNKNOWN or not hasattr(os, "sched_setaffinity"):
        return
    others = os.sched_getaffinity(0) - {processor}
    if others:
        os.sched_setaffinity(thread, others)
