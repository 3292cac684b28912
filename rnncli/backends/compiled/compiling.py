"""Typed Numba decorators, the on-disk cache of compiled code, and reading memory at an address.

Numba stores the code, and a failure of the cache is never fatal. Since loaded code is executed, the
cache must be trustworthy: only the user may write to its folder, and a digest detects files damaged
by a crash, which are compiled again.
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
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit, types
from numba.core.event import Listener, install_listener
from numba.extending import intrinsic

import rnncli.recurrence
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.errors import RnncliWarning, UnreadableFile
from rnncli.files.atomic import put_file
from rnncli.files.lock import in_turn
from rnncli.files.reading import read_bytes, sha256_of
from rnncli.talk.terminal import tell

if TYPE_CHECKING:
    from collections.abc import Callable

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
    try:
        dispatcher = njit(**options, cache=True)(function)
        reason = distrust(Path(dispatcher.stats.cache_path))
        hint = "; set NUMBA_CACHE_DIR to use another folder"
    except (RuntimeError, OSError) as error:  # Numba found no folder
        reason, hint = str(error), ""
    if reason:
        _warn(f"compiled code is not cached: {reason}{hint}")
        return njit(**options)(function).compile(signature)
    files = KernelFiles(dispatcher)
    with in_turn(files.folder / f"{files.name}.lock", LONGEST_WAIT):
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


OPTIONS = {"nogil": True, "error_model": "numpy"}
# The kernels compiled by this process.
MADE: list[str] = []
Function = TypeVar("Function", bound="Callable[..., object]")


ALONE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: Function) -> Function:
    """Compile a function that only kernels call."""
    return njit(**OPTIONS, **ALONE)(function)  # type: ignore[no-any-return]


def summing(function: Function) -> Function:
    """Compile likewise a function whose sums may be computed in any order."""
    return njit(**OPTIONS, **ALONE, fastmath={"reassoc", "contract"})(function)  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """Compile a function inline into its only caller, which halves compilation time."""
    return njit(**OPTIONS, inline="always")(function)  # type: ignore[no-any-return]


def kernel(name: str, *arguments: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls, without the GIL, and cache its code on disk.

    The name must be unique: the linker would confuse the cached code of two functions of one name,
    such as closures over different variables.

    Callers must pass arguments of these types: checking them would cost a quarter of a microsecond.
    """

    def compile_named(function: Function) -> Function:
        function.__qualname__ = "".join(letter if letter.isalnum() else "_" for letter in name)
        with install_listener("numba:compile", CompilationNotice(function)):
            return compile_cached(function, types.void(*arguments), OPTIONS)  # type: ignore[no-any-return]

    return compile_named


class CompilationNotice(Listener):  # type: ignore[misc]
    """A notice printed when a kernel is compiled, which is slow, but not when it is loaded."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def on_start(self, event: Any) -> None:
        """Print the notice if Numba starts to compile this kernel."""
        if event.data["dispatcher"].py_func is not self.function:
            return
        if not MADE:
            tell("compiling kernels for this processor (once, a few seconds each)")
        MADE.append(self.function.__qualname__)

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def instruction(typing: Callable[..., tuple[Any, Any]]) -> Any:
    """Make an intrinsic from a function that returns its signature and its code generator.

    String arguments are literals, known at compile time.
    """
    return intrinsic(prefer_literal=True)(typing)


@cache
def sources() -> str:
    """Return a digest of all sources of the kernels.

    Numba invalidates cached code only if the function's own file changes, but kernels depend on
    every file of this package and on the cells' equations.
    """
    folders = (Path(__file__).parent, Path(rnncli.recurrence.__file__).parent)
    files = sorted(path for folder in folders for path in folder.glob("*.py"))
    stamps = [(path.name, (stat := path.stat()).st_mtime_ns, stat.st_size) for path in files]
    return str(stamps)


@instruction
def pointer(_: Any, code: Any, address: Any) -> tuple[Any, Any]:
    """Return an address as an unbounded array of the kernel's numbers, or of int64 for "int64"."""
    name = code.literal_value
    kind = types.int64 if name == "int64" else getattr(types, Shape.of(name).dtype)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[1], context.get_data_type(kind).as_pointer())

    return types.CPointer(kind)(code, address), emit
