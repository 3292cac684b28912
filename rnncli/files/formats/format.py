"""The definition of a format of tensors on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rnncli.errors import InvalidRequest, UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rnncli.numerics import Array

Tensors: TypeAlias = "dict[str, Array]"
"""Tensors by name, in order; text is an object array of `str`."""

LONGEST_NAME = 8192
MOST_ENTRIES = 1 << 16
"""The most tensors, groups and datasets in a file: each takes HDF5 almost 1 ms."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of tensors on disk.

    Attributes:
        name: its name in messages and listings.
        extensions: its extensions without the dot; ``"/"`` is a folder.
        summary: one line for listings.
        read: returns all tensors of a path, in file order. Raises `UnreadableFile` if the path is
            missing, damaged or hostile, `Unsupported` if its content is valid but not tensors.
        write: writes all tensors, atomically and reproducibly. Raises `InvalidRequest` if the
            format cannot hold them or the disk refuses.
        parse: returns all tensors of a file's content; None if the format has no such function.
    """

    name: str
    extensions: tuple[str, ...]
    summary: str
    read: Callable[[Path], Tensors]
    write: Callable[[Path, Tensors], None]
    parse: Callable[[bytes], Tensors] | None = None


def check_names(tensors: Tensors) -> None:
    """Raise for names that some formats cannot hold, and for too many tensors.

    Raises:
        InvalidRequest: a name is not Unicode text, or longer than 8192 bytes, or there are more
            than 65,536.
    """
    for count, name in enumerate(tensors, 1):
        if count > MOST_ENTRIES:
            raise InvalidRequest(f"more than {MOST_ENTRIES} tensors; write several files")
        try:
            length = len(name.encode())
        except UnicodeEncodeError:
            raise InvalidRequest(f"the tensor name {name!r} is not Unicode text") from None
        if length > LONGEST_NAME:
            raise InvalidRequest(
                f"the tensor name {name[:40]!r}... has {length} bytes, at most {LONGEST_NAME} fit"
            )


def require_few(count: int) -> None:
    """Raise for a file with too many entries to read in reasonable time.

    Raises:
        UnreadableFile: there are more than 65,536.
    """
    if count > MOST_ENTRIES:
        raise UnreadableFile(f"has at least {count} entries; the limit is {MOST_ENTRIES}")


def only_tensor(path: Path, tensors: Tensors) -> tuple[str, Array]:
    """Return the only tensor, with its name, for formats such as ``.npy``.

    Raises:
        InvalidRequest: there are none or several.
    """
    if len(tensors) != 1:
        raise InvalidRequest(
            f"{path}: a {path.suffix} file holds exactly one tensor, not {len(tensors)}; "
            "write .npz, .h5 or a folder"
        )
    return next(iter(tensors.items()))
