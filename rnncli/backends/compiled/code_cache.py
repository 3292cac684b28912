"""Compiled code on disk: found again by later processes, and never a reason to fail.

Numba keeps it. Code that is loaded is run, so that it must be our own: it lies where nobody else
can put any, a digest tells what is damaged, as after a crash, and that is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from contextlib import suppress
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any

from numba import njit

from rnncli.errors import RnncliWarning, UnreadableFile
from rnncli.files.atomic import put_file
from rnncli.files.regular import read_bytes, sha256_of

ROOT = 0


class KernelFiles:
    """What Numba keeps of one function, and the digest of it: flipped bits would be run.

    Args:
        dispatcher: the function, as `numba.njit(cache=True)` returns it. Its name must be its alone
            in its file, and fit for a file's.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.folder = Path(dispatcher.stats.cache_path)
        self.name = dispatcher.py_func.__qualname__
        self.seal_file = self.folder / f"{self.name}.sha256"

    def files(self) -> list[Path]:
        """Return the index and the code of every signature."""
        return sorted(self.folder.glob(f"*.{escape(self.name)}-*.nb[ci]"))

    def digest(self) -> bytes:
        """Return what changes whenever a file does."""
        parts = [(file.name, sha256_of(file)) for file in self.files()]
        return hashlib.sha256(repr(parts).encode()).digest()

    def seal(self) -> None:
        """Take what is kept now for whole; on a full disk, do not."""
        with suppress(OSError, UnreadableFile):
            put_file(str(self.seal_file), self.digest())

    def discard_damaged(self) -> None:
        """Remove what is not as it was when it was sealed."""
        with suppress(UnreadableFile):
            if read_bytes(self.seal_file) == self.digest():
                return
        self.discard()

    def discard(self) -> None:
        """Remove all, so that it is compiled again."""
        for file in self.files():
            with suppress(OSError):
                file.unlink()


def compile_kept(function: Any, signature: Any, options: dict[str, Any]) -> Any:
    """Return the code of a function, from where it is kept, or compiled and kept from now on.

    Warns:
        RnncliWarning: code is not kept, so that every process compiles for some seconds.
    """
    dispatcher = _kept(function, options)
    if dispatcher is None:
        return njit(**options)(function).compile(signature)
    files = KernelFiles(dispatcher)
    files.discard_damaged()
    try:
        code = dispatcher.compile(signature)
    except Exception:  # noqa: BLE001 -- code that does not load raises anything; a full disk
        files.discard()
        if not dispatcher.signatures:
            dispatcher = njit(**options)(function)
        return dispatcher.compile(signature)
    if dispatcher.stats.cache_misses:
        files.seal()
    return code


def _kept(function: Any, options: dict[str, Any]) -> Any:
    """Return a dispatcher that keeps its code; None if no place for it is writable and ours."""
    try:
        dispatcher = njit(**options, cache=True)(function)
    except (RuntimeError, OSError) as error:  # Numba has found no folder
        _warn(f"compiled code is not kept: {error}")
        return None
    if reason := distrust(Path(dispatcher.stats.cache_path)):
        _warn(f"compiled code is not kept: {reason}; NUMBA_CACHE_DIR can name another folder")
        return None
    return dispatcher


@cache
def _warn(sentence: str) -> None:
    """Warn once, however many functions it concerns."""
    warnings.warn(sentence, RnncliWarning, stacklevel=2)


@cache
def distrust(folder: Path) -> str:
    """Return why others than this user could put code into a folder; "" if nobody can."""
    if not hasattr(os, "getuid"):
        return ""
    folder = folder.resolve()
    return next(filter(None, map(_distrusted, (folder, *folder.parents))), "")


def _distrusted(folder: Path) -> str:
    """Return why others could change the entries of a folder that are not theirs, or ""."""
    about = folder.stat()
    if about.st_uid not in {os.getuid(), ROOT}:
        return f"{folder} belongs to another user"
    by_others = about.st_mode & stat.S_IWOTH
    by_group = about.st_mode & stat.S_IWGRP and about.st_gid not in {os.getgid(), ROOT}
    protects = about.st_mode & stat.S_ISVTX  # as /tmp does: only owners rename and remove
    return f"others may write into {folder}" if (by_others or by_group) and not protects else ""
