"""Writing files and folders whole or not at all.

Everything is written beside its place and renamed into it once it is complete and on the disk.
A failure or an interrupt before that leaves what was there, or nothing, and no temporary.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Give a new, empty temporary file; the body writes it, then it replaces `path`.

    Raises:
        InvalidRequest: the disk is full or read-only, the folder is missing, or `path` is
            something other than a file.
    """
    with _naming(path):
        target = _target(path)
        if target.exists() and not target.is_file():
            raise InvalidRequest(f"cannot write {path}: it is a folder or a device")
        temporary = _sibling(target)
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            yield temporary
            _sync(temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)


@contextmanager
def atomic_folder(path: Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Give a new, empty temporary folder; the body fills it, then it replaces `path`.

    Args:
        path: a folder to make or to replace as a whole.
        is_ours: whether an existing folder, not empty, may be replaced.

    Raises:
        InvalidRequest: as for `atomic_file`, or the folder that is there is not ours.
    """
    with _naming(path):
        target = _target(path)
        _check_replaceable(target, is_ours)
        temporary = _sibling(target)
        try:
            temporary.mkdir()
            yield temporary
            for file in temporary.rglob("*"):
                _sync(file)
            _swap(temporary, target)
        finally:
            _remove(temporary)
        _sync_folder(target.parent)


def require_replaceable(path: Path, is_ours: Callable[[Path], bool]) -> None:
    """Find out beforehand whether `atomic_folder` may make or replace a folder.

    Raises:
        InvalidRequest: it may not.
    """
    with _naming(path):
        _check_replaceable(_target(path), is_ours)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn what the operating system says into one sentence that names the path."""
    try:
        yield
    except OSError as error:
        raise InvalidRequest(f"cannot write {path}: {error.strerror or error}") from error


def _sibling(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{os.urandom(6).hex()}.tmp")


def _target(path: Path) -> Path:
    """Follow symbolic links: they stay, and what they lead to is replaced."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise InvalidRequest(f"cannot write {path}: there is no folder {target.parent}")
    return target


def _check_replaceable(path: Path, is_ours: Callable[[Path], bool]) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise InvalidRequest(f"cannot write {path}: it is a file, not a folder")
    if any(path.iterdir()) and not is_ours(path):
        raise InvalidRequest(
            f"cannot write {path}: the folder holds other files; choose a new or empty one"
        )


def _swap(temporary: Path, path: Path) -> None:
    """Rename the temporary to `path`; what is there steps aside first and comes back on failure."""
    if not path.exists():
        temporary.rename(path)
        return
    aside = _sibling(path)
    path.rename(aside)
    try:
        temporary.rename(path)
    except BaseException:
        aside.rename(path)
        raise
    _remove(aside)


def _remove(folder: Path) -> None:
    import shutil  # with every compression there is; a file is written without

    shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    """Wait until the content is on the disk, so that a renamed file is never an empty one."""
    if path.is_file():
        with path.open("rb+") as stream:
            os.fsync(stream.fileno())


def _sync_folder(path: Path) -> None:
    """Wait until the names are, where the system can (Windows cannot open folders)."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
