"""What a format of tensors on disk is."""

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
"""Most tensors of a file, and most groups and datasets: each costs HDF5 a good part of 1 ms."""


@dataclass(frozen=True, slots=True)
class Format:
    """A way to keep tensors on disk.

    Attributes:
        name: as messages and listings spell it.
        extensions: of its paths, without the dot; ``"/"`` stands for a folder.
        summary: one line for listings.
        read: returns every tensor of a path, in the order of the file. Raises `UnreadableFile`
            when the path is missing, damaged or hostile, `Unsupported` when what it holds is
            right but no tensor can hold it.
        write: writes all the tensors, atomically and reproducibly. Raises `InvalidRequest` when
            the format cannot hold them or the disk will not take them.
    """

    name: str
    extensions: tuple[str, ...]
    summary: str
    read: Callable[[Path], Tensors]
    write: Callable[[Path, Tensors], None]


def check_names(tensors: Tensors) -> None:
    """Refuse names that not every format can hold, and more of them than one reads.

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
    """Refuse a file of more entries than are read in reasonable time.

    Raises:
        UnreadableFile: there are more than 65,536.
    """
    if count > MOST_ENTRIES:
        raise UnreadableFile(f"has {count} entries or more, and {MOST_ENTRIES} is most")


def only_tensor(path: Path, tensors: Tensors) -> tuple[str, Array]:
    """Return the one tensor that a format such as ``.npy`` can hold, with its name.

    Raises:
        InvalidRequest: there are none or several.
    """
    if len(tensors) != 1:
        raise InvalidRequest(
            f"{path}: a {path.suffix} file holds exactly one tensor, not {len(tensors)}; "
            "write .npz, .h5 or a folder"
        )
    return next(iter(tensors.items()))
