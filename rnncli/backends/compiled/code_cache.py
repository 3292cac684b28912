"""The on-disk cache of compiled code, whose failures are never fatal.

Numba stores the code. Since loaded code is executed, the cache must be trustworthy: only the user
may write to its folder, and a digest detects files damaged by a crash, which are compiled again.
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
from rnncli.files.lock import in_turn
from rnncli.files.reading import read_bytes, sha256_of

ROOT = 0
# Seconds that a process waits for another one that compiles the same function; most take four.
LONGEST_WAIT = 120.0


class KernelFiles:
    """The cache files of one function, with a digest, because corrupted code would be executed.

    Args:
        dispatcher: the function, as `numba.njit(cache=True)` returns it. Its name must be unique in
            its module and valid in a file name.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.folder = Path(dispatcher.stats.cache_path)
        self.name = dispatcher.py_func.__qualname__
        self.seal_file = self.folder / f"{self.name}.sha256"

    def files(self) -> list[Path]:
        """Return the index and the code of every signature."""
        return sorted(self.folder.glob(f"*.{escape(self.name)}-*.nb[ci]"))

    def digest(self) -> bytes:
        """Return a digest of all files."""
        parts = [(file.name, sha256_of(file)) for file in self.files()]
        return hashlib.sha256(repr(parts).encode()).digest()

    def seal(self) -> None:
        """Record the digest of the current files, unless the disk is full."""
        with suppress(OSError, UnreadableFile):
            put_file(self.folder, self.seal_file.name, self.digest())

    def discard_damaged(self) -> None:
        """Remove the files if they do not match their digest."""
        with suppress(UnreadableFile):
            if read_bytes(self.seal_file) == self.digest():
                return
        self.discard()

    def discard(self) -> None:
        """Remove the files, so that the function is compiled again."""
        for file in self.files():
            with suppress(OSError):
                file.unlink()


def compile_cached(function: Any, signature: Any, options: dict[str, Any]) -> Any:
    """Return a function's compiled code from the cache, or compile and cache it.

    Of several processes that start together one compiles; the others wait and load its code.

    Warns:
        RnncliWarning: the code cannot be cached, so every process compiles for some seconds.
    """
    dispatcher = _caching_dispatcher(function, options)
    if dispatcher is None:
        return njit(**options)(function).compile(signature)
    files = KernelFiles(dispatcher)
    with in_turn(files.folder / f"{files.name}.lock", LONGEST_WAIT):
        return _loaded_or_compiled(files, dispatcher, function, signature, options)


def _loaded_or_compiled(
    files: KernelFiles, dispatcher: Any, function: Any, signature: Any, options: dict[str, Any]
) -> Any:
    """Return a function's code from its files, or compile it and write them."""
    files.discard_damaged()
    try:
        code = dispatcher.compile(signature)
    except Exception:  # noqa: BLE001 -- damaged code and a full disk raise all kinds of errors
        files.discard()
        if not dispatcher.signatures:
            dispatcher = njit(**options)(function)
        return dispatcher.compile(signature)
    if dispatcher.stats.cache_misses:
        files.seal()
    return code


def _caching_dispatcher(function: Any, options: dict[str, Any]) -> Any:
    """Return a caching dispatcher; None if no trusted folder is writable."""
    try:
        dispatcher = njit(**options, cache=True)(function)
    except (RuntimeError, OSError) as error:  # Numba found no folder
        _warn(f"compiled code is not cached: {error}")
        return None
    if reason := distrust(Path(dispatcher.stats.cache_path)):
        _warn(f"compiled code is not cached: {reason}; set NUMBA_CACHE_DIR to use another folder")
        return None
    return dispatcher


@cache
def _warn(sentence: str) -> None:
    """Warn once per process, even if several functions are affected."""
    warnings.warn(sentence, RnncliWarning, stacklevel=2)


@cache
def distrust(folder: Path) -> str:
    """Return why other users could put code into a folder; "" if they cannot."""
    if not hasattr(os, "getuid"):
        return ""
    folder = folder.resolve()
    return next(filter(None, map(_distrusted, (folder, *folder.parents))), "")


def _distrusted(folder: Path) -> str:
    """Return why other users could change this user's entries of a folder, or ""."""
    about = folder.stat()
    if about.st_uid not in {os.getuid(), ROOT}:
        return f"{folder} belongs to another user"
    by_others = about.st_mode & stat.S_IWOTH
    by_group = about.st_mode & stat.S_IWGRP and about.st_gid not in {os.getgid(), ROOT}
    protects = about.st_mode & stat.S_ISVTX  # like /tmp, where only owners rename and remove
    return f"other users may write to {folder}" if (by_others or by_group) and not protects else ""
