"""The definition of a format of tensors on disk, and of the data sets that a file can hold."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from rnncli.errors import InvalidRequest
from rnncli.files.reading import MOST_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rnncli.files.seals import Seal
    from rnncli.numerics import Array

Tensors: TypeAlias = "dict[str, Array]"
"""Tensors by name, in order; text is an object array of `str`."""

LONGEST_NAME = 8192


@dataclass(frozen=True, slots=True)
class Format:
    """A format of tensors on disk.

    Attributes:
        name: its name in messages and listings.
        extensions: its extensions without the dot; ``"/"`` is a folder.
        summary: one line for listings.
        read: returns all tensors of a path, in file order. Raises `UnreadableFile` if the path is
            missing, damaged or hostile, `Unsupported` if its content is valid but not tensors.
        write: writes all tensors, atomically and reproducibly; sealed, if it is called with the
            format's seal. Raises `InvalidRequest` if the format cannot hold them or the disk
            refuses.
        parse: returns all tensors of a file's content; None if the format has no such function.
        seal: how commands mark their files; None if the format has no place for it.
    """

    name: str
    extensions: tuple[str, ...]
    summary: str
    read: Callable[[Path], Tensors]
    write: Callable[..., None]
    parse: Callable[[bytes], Tensors] | None = None
    seal: Seal | None = None


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


_ROLE = re.compile(r"test_data_set_(0|[1-9][0-9]{0,8})/(inputs|outputs)/(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DataSet:
    """The inputs and outputs of one evaluation, in the model's order."""

    inputs: Tensors = field(default_factory=dict)
    outputs: Tensors = field(default_factory=dict)


def flatten(data_sets: Sequence[DataSet]) -> Tensors:
    """Return all tensors of some data sets by unique names; the inverse of `unflatten`.

    The outputs of one data set without inputs keep their names. Otherwise a name is
    ``test_data_set_N/inputs/NAME`` or ``test_data_set_N/outputs/NAME``.
    """
    if len(data_sets) == 1 and not data_sets[0].inputs and not _all_roles(data_sets[0].outputs):
        return dict(data_sets[0].outputs)
    found: Tensors = {}
    for number, each in enumerate(data_sets):
        for role, tensors in (("inputs", each.inputs), ("outputs", each.outputs)):
            prefix = f"test_data_set_{number}/{role}/"
            found |= {f"{prefix}{name}": values for name, values in tensors.items()}
    return found


def unflatten(tensors: Tensors) -> tuple[DataSet, ...]:
    """Return the data sets in a plain file; if not all names have a role, all are outputs."""
    if not _all_roles(tensors):
        return (DataSet(outputs=tensors),)
    data_sets: dict[int, DataSet] = {}
    for full_name, values in tensors.items():
        match = _ROLE.fullmatch(full_name)
        assert match
        number, role, name = match.groups()
        getattr(data_sets.setdefault(int(number), DataSet()), role)[name] = values
    return tuple(data_sets[number] for number in sorted(data_sets))


def _all_roles(tensors: Tensors) -> bool:
    return bool(tensors) and all(_ROLE.fullmatch(name) for name in tensors)
