"""Compiled code on disk: found again by later processes, and never a reason to fail.

Code that is loaded is run, so that it must be our own: it lies where nobody else can put any, and
what is damaged, as after a crash or on a full disk, is compiled again and replaced.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from rnncli.errors import RnncliWarning

ROOT = 0


class SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Files of Numba's cache with a digest of the code: flipped bits of it would be run."""

    def _save_data(self, name: str, data: Any) -> None:
        code = self._dump(data)
        super()._save_data(name, (hashlib.sha256(code).digest(), code))

    def _load_data(self, name: str) -> Any:
        digest, code = super()._load_data(name)
        if hashlib.sha256(code).digest() != digest:
            raise pickle.UnpicklingError(f"{name} is damaged")
        return pickle.loads(code)  # noqa: S301 -- from a folder that is ours


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function; what cannot be read or written is not there."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = SealedFiles(
            self.cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def _load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super()._load_overload(signature, context)
        except Exception:  # noqa: BLE001 -- damaged pickles raise anything
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep compiled code; on a full disk, do not."""
        with suppress(Exception):
            super().save_overload(signature, data)


def cache_of(function: Any) -> KernelCache | None:
    """Return where the code of a function is kept; None where no place for it is writable and ours.

    Warns:
        RnncliWarning: code is not kept, so that every process compiles for some seconds.
    """
    try:
        found = KernelCache(function)
    except (RuntimeError, OSError) as error:  # Numba has found no folder
        _warn(f"compiled code is not kept: {error}")
        return None
    if reason := distrust(Path(found.cache_path)):
        _warn(f"compiled code is not kept: {reason}; NUMBA_CACHE_DIR can name another folder")
        return None
    return found


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
