"""Atomic writes of files and folders, large ones or many small ones.

Content is written to a temporary beside its target and renamed once it is complete and on disk. A
failure or an interrupt leaves the old content, or nothing, and no temporary. Unlocked temporaries
of a killed process are removed when the same name is written again.

A folder is replaced only if every file in it is known, by its content: a list of what was written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.lock import try_lock
from rnncli.files.paths import RelativePath, below, files_in
from rnncli.files.reading import (
    MissingFile,
    holds,
    is_protected,
    read_bytes,
    read_text,
    sha256,
    sha256_of,
)
from rnncli.files.seals import Seal, put_seal, require_ours
from rnncli.talk.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Listing = Callable[[Path], Mapping[str, str]]

RECORD = ".rnncli-files"
"""The list of the files of a folder that `atomic_folder` wrote, as `sha256sum --check` reads it."""
_TITLE = "# rnncli replaces this folder while it holds these files, unchanged, and no others.\n"
TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{12}\.(tmp|old)", re.DOTALL)
_LONGEST_NAME = 50  # characters of the target's name in a temporary's
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR
_FLAGS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW"))
_FOLDER = os.O_RDONLY | _FLAGS | getattr(os, "O_DIRECTORY", 0)


def write_bytes(path: Path, content: bytes, seal: Seal | None = None) -> None:
    """Write a file atomically.

    Raises:
        InvalidRequest: as for `atomic_file`.
    """
    with atomic_file(path, seal) as stream:
        stream.write(content)


def write_text(path: Path, text: str, seal: Seal) -> None:
    """Write text atomically in UTF-8, with line feeds unchanged.

    Raises:
        InvalidRequest: as for `atomic_file`.
    """
    write_bytes(path, text.encode(), seal)


def put_file(root: str | Path, path: str, content: bytes, *, sync: bool = False) -> None:
    """Write one of many small files below a folder atomically; a link in its place is replaced.

    Unlike `atomic_file` it leaves temporaries if it is killed, see `remove_temporaries`. Unless it
    waits for the disk, `sync`, a power failure (but not a kill) can leave a torn file, which a
    pack's checksums detect.

    Raises:
        OSError: the disk refuses, or a folder on the way is a link, also one that became one.
    """
    folder, _, name = path.rpartition("/")
    with _opened(root, folder) as (place, descriptor):
        temporary = f"{place}{_name_beside(name)}"
        try:
            _write_new(temporary, content, descriptor, sync=sync)
            os.replace(temporary, f"{place}{name}", src_dir_fd=descriptor, dst_dir_fd=descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=descriptor)
            raise


@contextmanager
def _opened(root: str | Path, folder: str) -> Iterator[tuple[str, int | None]]:
    """Open a folder below another, through no link; yield what its files' names begin with, and it.

    So nothing is written or removed elsewhere if another process exchanges a folder for a link
    meanwhile. A system that opens no folders gets paths.
    """
    if not {os.open, os.rename, os.unlink} <= os.supports_dir_fd:
        yield f"{root}/{folder}/" if folder else f"{root}/", None
        return
    is_ours = TEMPORARY.fullmatch(os.path.basename(root))  # noqa: PTH119 -- never a link
    descriptor = os.open(root, _FOLDER if is_ours else _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in filter(None, folder.split("/")):
            above, descriptor = descriptor, os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(above)
        yield "", descriptor
    finally:
        os.close(descriptor)


def put_folder(path: str, files: Mapping[str, bytes]) -> None:
    """Write a new folder of small files atomically.

    It takes one rename, where `put_file` takes one per file; otherwise see there.

    Raises:
        OSError: the disk refuses.
    """
    above, _, name = path.rpartition("/")
    temporary = f"{above}/{_name_beside(name)}"
    folders = dict.fromkeys(f"{temporary}/{each}".rpartition("/")[0] for each in files)
    try:
        for folder in folders:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        for each, content in files.items():
            _write_new(f"{temporary}/{each}", content)
        os.rename(temporary, path)  # noqa: PTH104
    except BaseException:
        _remove(Path(temporary))
        raise


def _write_new(path: str, content: bytes, folder: int | None = None, *, sync: bool = False) -> None:
    descriptor = os.open(path, _NEW | _FLAGS, 0o666, dir_fd=folder)
    try:
        while content:  # again if the system wrote only a part
            content = content[os.write(descriptor, content) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def new_file(path: Path) -> IO[bytes]:
    """Open a new file for writing, in a private folder.

    Raises:
        OSError: the file exists, or the disk refuses.
    """
    return os.fdopen(os.open(path, _NEW | _FLAGS, 0o666), "wb")


def append_bytes(path: Path, content: bytes) -> None:
    """Append to an existing file that is not a link.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _FLAGS)
    with os.fdopen(descriptor, "ab") as stream:
        stream.write(content)


def remove_temporaries(folder: Path) -> None:
    """Remove temporaries of killed writers below a folder of which we are the only writer."""
    for place, folders, names in os.walk(folder):
        for name in filter(TEMPORARY.fullmatch, names):
            Path(place, name).unlink(missing_ok=True)
        for name in filter(TEMPORARY.fullmatch, [*folders]):
            folders.remove(name)
            _remove(Path(place, name))


@contextmanager
def atomic_file(path: Path, seal: Seal | None = None) -> Iterator[IO[bytes]]:
    """Yield a new temporary file, which replaces `path` after the body has written it.

    Whoever could read or write the file that is replaced can read or write the new one.

    Args:
        path: the file.
        seal: how the new file is sealed; then only a file with a seal is replaced.

    Raises:
        InvalidRequest: the disk is full or read-only, the folder is missing, `path` is something
            other than a file, or a file without a whole seal if this one gets one.
    """
    with errors_named(path):
        target = _target(path)
        if target.exists() and not target.is_file():
            raise InvalidRequest(f"cannot write {path}: it is a folder or a device")
        _remove_stale(target)
        temporary, stream = _opened_beside(target)
        try:
            with stream:
                yield stream
                if seal is not None:
                    put_seal(stream, seal)
                    require_ours(target)
                stream.flush()
                os.fsync(stream.fileno())  # a renamed file is never empty
                temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)


@contextmanager
def atomic_folder(path: Path, listed: Listing | None = None) -> Iterator[Path]:
    """Yield a new temporary folder, which replaces `path` after the body has filled it.

    An existing folder is replaced only if it is empty, or every file in it is as it was written.

    Args:
        path: the folder.
        listed: the SHA-256 of every file that an earlier output in a folder has, by path. By
            default the folder gets a list of its own, `RECORD`.

    Raises:
        InvalidRequest: as for `atomic_file`, or the folder has a file of somebody else, or one
            that was changed; names the first.
    """
    with errors_named(path):
        target = _target(path)
        _check_replaceable(path, target, listed)
        _remove_stale(target)
        temporary = _sibling(target)
        try:
            temporary.mkdir()
            with _held(temporary):
                yield temporary
                if listed is None:
                    put_file(temporary, RECORD, _record(_sums_of(temporary)).encode())
                for file in filter(Path.is_file, temporary.rglob("*")):
                    with file.open("rb+") as stream:
                        os.fsync(stream.fileno())  # a renamed file is never empty
                _swap(temporary, target, lambda aside: _check_replaceable(path, aside, listed))
        finally:
            _remove(temporary)
        _sync_folder(target.parent)


def require_replaceable(path: Path, listed: Listing | None = None) -> None:
    """Check in advance that `atomic_folder` may create or replace a folder.

    Raises:
        InvalidRequest: it may not.
    """
    with errors_named(path):
        _check_replaceable(path, _target(path), listed)


@contextmanager
def errors_named(path: Path, *, within: bool = False) -> Iterator[None]:
    """Convert errors of the operating system into one sentence that names the path.

    With `within`, it names the file in a folder that an error is about.
    """
    try:
        yield
    except OSError as error:
        named = (within and error.filename) or path
        raise InvalidRequest(f"cannot write {named}: {error.strerror or error}") from error


def _sibling(path: Path, kind: str = "tmp") -> Path:
    return path.with_name(_name_beside(path.name, kind))


def _name_beside(name: str, kind: str = "tmp") -> str:
    """Return the name of a new temporary, which `TEMPORARY` matches."""
    return f".{name[:_LONGEST_NAME]}.{os.urandom(6).hex()}.{kind}"


def _opened_beside(target: Path) -> tuple[Path, IO[bytes]]:
    """Open a new temporary and lock it, so that it is not taken for a dead writer's."""
    mode = None  # of who may read and write it, without the bits that run it as another
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode & 0o777
    while True:
        temporary = _sibling(target)
        descriptor = os.open(temporary, _NEW | _FLAGS, 0o666 if mode is None else 0o600)
        with suppress(BlockingIOError, FileNotFoundError):  # it was already taken for one
            try_lock(descriptor)
            if mode is not None and hasattr(os, "fchmod"):  # Windows has no such permissions
                os.fchmod(descriptor, mode)
            if os.path.samestat(os.fstat(descriptor), os.lstat(temporary)):
                return temporary, os.fdopen(descriptor, "w+b")
        os.close(descriptor)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Lock a temporary folder, if the system can open folders."""
    descriptor = -1
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | _FLAGS)
        try_lock(descriptor)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _remove_stale(target: Path) -> None:
    """Remove the temporaries of dead writers of a target; restore content that they moved aside."""
    mine = target.name[:_LONGEST_NAME]
    for name in os.listdir(target.parent):  # noqa: PTH208 -- only names are needed
        match = TEMPORARY.fullmatch(name)
        if not (match and match[1] == mine and _is_stale(path := target.with_name(name))):
            continue
        if match[2] == "old" and not target.exists():
            path.rename(target)
        elif path.is_dir():
            _remove(path)
        else:
            path.unlink(missing_ok=True)


def _is_stale(temporary: Path) -> bool:
    """Return whether a temporary is not locked."""
    try:
        descriptor = os.open(temporary, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
        try:
            try_lock(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def _target(path: Path) -> Path:
    """Resolve symbolic links, whose target is replaced."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise InvalidRequest(f"cannot write {path}: there is no folder {target.parent}")
    return target


def _check_replaceable(path: Path, place: Path, listed: Listing | None) -> None:
    """Refuse to replace the folder at a place, which the user named by a path."""
    if not place.exists():
        return
    if not place.is_dir():
        raise InvalidRequest(f"cannot write {path}: it is a file, not a folder")
    if Path.cwd().is_relative_to(place):
        raise InvalidRequest(
            f"cannot write {path}: you work in this folder, which is replaced as a whole; name"
            " another one"
        )
    if any(place.iterdir()):
        hint = ""
        try:
            known = recorded(place) if listed is None else listed(place)
        except MissingFile:
            known, hint = {}, " (of an older rnncli's output there is no list)"
        except UnreadableFile as error:
            raise InvalidRequest(f"cannot write {path}: {error}; choose another folder") from error
        if problem := _first_stranger(place, known):
            raise InvalidRequest(
                f"cannot write {path}: the folder holds other files: {problem}{hint}; choose a new"
                " or empty one, or remove what you do not need"
            )


def recorded(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that rnncli wrote into a folder, by path.

    Raises:
        MissingFile: the folder has no list of them.
        UnreadableFile: the list is a link, or was changed.
    """
    path = below(folder, RelativePath(RECORD))
    text = read_text(path)
    lines = [line.partition("  ") for line in text.splitlines()[1:]]
    found = {name: checksum for checksum, _, name in lines}
    if text != _record(found):
        raise UnreadableFile(f"{path}: was changed since rnncli wrote it")
    return {**found, RECORD: sha256(text.encode())}


def _record(sums: Mapping[str, str]) -> str:
    return _TITLE + "".join(f"{checksum}  {path}\n" for path, checksum in sums.items())


def _sums_of(folder: Path) -> dict[str, str]:
    empty = [each for each in folder.rglob("*") if each.is_dir() and not any(each.iterdir())]
    return {
        **{path: sha256_of(folder / path) for path in sorted(files_in(folder))},
        **{f"{path.relative_to(folder).as_posix()}/": "#" for path in sorted(empty)},
    }


def _first_stranger(folder: Path, known: Mapping[str, str], above: str = "") -> str:
    """Return what the first entry is, below a folder, that is not a known file; or ""."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = f"{above}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if problem := _first_stranger(Path(entry.path), known, f"{path}/"):
                return problem
            is_known = any(each.startswith(f"{path}/") for each in known)
        else:
            is_known = path in known and entry.is_file(follow_symlinks=False)
            if is_known and sha256_of(entry.path) != known[path]:
                return f"{visible(path)} was changed since rnncli wrote it"
            if is_known and is_protected(entry.stat()):
                return f"{visible(path)} is read-only"
        if not is_known:
            return f"{visible(path)} is not of an earlier output of rnncli"
    return ""


def _swap(temporary: Path, path: Path, check: Callable[[Path], None]) -> None:
    """Rename the temporary to `path`; an existing folder is moved aside, and back on failure.

    What was moved aside is checked again: somebody may have saved a file there meanwhile.
    """
    if not path.exists():
        temporary.rename(path)
        return
    aside = _sibling(path, "old")
    path.rename(aside)
    try:
        check(aside)
        temporary.rename(path)
    except BaseException:
        aside.rename(path)
        raise
    _remove(aside)


def _remove(folder: Path) -> None:
    import shutil  # imports every compression; not needed for files

    shutil.rmtree(folder, ignore_errors=True)


def _sync_folder(path: Path) -> None:
    """Wait until the names are on disk, if the system can (Windows cannot open folders)."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def compare_files(root: Path, files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (path, "missing" or "differs") of each file that is not on disk with its content."""
    for path, content in files.items():
        try:
            found = read_bytes(below(root, RelativePath(path)), len(content))
        except MissingFile:
            yield path, "missing"
        except UnreadableFile:
            yield path, "differs"
        else:
            if found != content:
                yield path, "differs"


def write_files(root: Path, files: Mapping[str, bytes], finished: Path | None = None) -> None:
    """Write the files of one case, each atomically; up-to-date files are left alone.

    A link in place of a file is replaced. Files that the finished folder has are not written.

    Raises:
        UnreadableFile: a folder on the way is a link.
        InvalidRequest: the disk refuses.
    """
    roots = [str(each) for each in (root, finished) if each]
    with errors_named(root, within=True):
        for folder in dict.fromkeys(path.rpartition("/")[0] for path in files):
            for each in roots:
                below(Path(each), RelativePath(folder))
        by_top: dict[str, dict[str, bytes]] = {}
        for path, content in files.items():
            top, _, rest = path.partition("/")
            by_top.setdefault(top, {})[rest] = content
        for top, inner in by_top.items():
            if not any(os.path.lexists(f"{root}/{top}") for root in roots):  # a whole new folder
                _make_folder(roots[0])
                put_folder(f"{roots[0]}/{top}", inner)
                continue
            for path, content in inner.items():
                places = [f"{root}/{top}/{path}" for root in roots]
                if not any(holds(place, content) for place in places):
                    _make_folder(places[0].rpartition("/")[0])
                    put_file(roots[0], f"{top}/{path}", content)


def move_files(paths: Iterable[str], source: Path, root: Path) -> None:
    """Move files to the same paths below another folder; missing ones are skipped.

    Raises:
        UnreadableFile: a folder on the way is a link.
        OSError: the disk refuses.
    """
    for path in paths:
        if below(source, RelativePath(path)).exists():
            folder, _, name = path.rpartition("/")
            _make_folder(str(below(root, RelativePath(folder)) if folder else root))
            with _opened(source, folder) as (there, old), _opened(root, folder) as (here, new):
                os.replace(f"{there}{name}", f"{here}{name}", src_dir_fd=old, dst_dir_fd=new)


def remove_file(root: Path, path: str) -> None:
    """Remove a file below a folder.

    Raises:
        OSError: the disk refuses, or a folder on the way is a link.
    """
    folder, _, name = path.rpartition("/")
    with _opened(root, folder) as (place, descriptor):
        os.unlink(f"{place}{name}", dir_fd=descriptor)


def _make_folder(path: str) -> None:
    """Create a folder, whose parent usually exists."""
    try:
        os.mkdir(path)  # noqa: PTH102 -- Path costs as much again
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
