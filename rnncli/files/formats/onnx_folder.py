"""ONNX test cases: a folder with ``model.onnx`` and ``test_data_set_N/{input,output}_K.pb``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.atomic import atomic_folder, put_file
from rnncli.files.formats import pb
from rnncli.files.formats.format import DataSet, Format, Tensors, check_names, flatten, unflatten
from rnncli.files.paths import RelativePath, below
from rnncli.files.reading import LARGEST, read_bytes, reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODEL = "model.onnx"

_SET = re.compile(r"test_data_set_([0-9]{1,9})")
_TENSOR = re.compile(r"(?:input|output)_[0-9]{1,9}\.pb")


def read_data_sets(path: Path) -> tuple[DataSet, ...]:
    """Return the data sets of a test case in numeric order, or the folder itself as one.

    Tensors have the names in their files. If an input (or output) of a data set has no name, or two
    have the same, all are named by position: ``input_0``, ``input_1``.

    Raises:
        UnreadableFile: the folder is not a test case, or one of its files is damaged.
        Unsupported: a file holds a sequence or optional.
    """
    with reading(path):
        entries = sorted(entry.name for entry in path.iterdir())
    numbered = [(int(match[1]), name) for name in entries if (match := _SET.fullmatch(name))]
    if numbered:
        return tuple(_read_data_set(below(path, RelativePath(n))) for _, n in sorted(numbered))
    with reading(path):
        if not any(_TENSOR.fullmatch(name) for name in entries):
            raise UnreadableFile(
                "is not an ONNX test case: it has no test_data_set_0/ and no input_0.pb"
            )
    return (_read_data_set(path),)


def write_test_case(
    path: Path, data_sets: Sequence[DataSet], files: Mapping[str, bytes | Path]
) -> None:
    """Write a test case atomically: an existing one is replaced as a whole.

    Args:
        path: the folder.
        data_sets: the content of ``test_data_set_0/`` and so on.
        files: other files by name, such as ``model.onnx`` and its external data: bytes, or a file
            to copy.

    Raises:
        InvalidRequest: the folder holds something else, a tensor is above 2 GiB, or the disk
            refuses.
    """
    for name in files:
        if name in {"", ".", ".."} or Path(name).name != name or _SET.fullmatch(name):
            raise InvalidRequest(f"{path}: {name!r} is not a valid name beside the data sets")
    with atomic_folder(path) as temporary:
        for number, data_set in enumerate(data_sets):
            folder = temporary / f"test_data_set_{number}"
            folder.mkdir()
            _write_role(folder, "input", data_set.inputs)
            _write_role(folder, "output", data_set.outputs)
        for name, content in files.items():
            held = read_bytes(content, LARGEST) if isinstance(content, Path) else content
            put_file(temporary, name, held)


def read(path: Path) -> Tensors:
    """Return the tensors of all data sets; see `flatten` for their names."""
    return flatten(read_data_sets(path))


def write(path: Path, tensors: Tensors) -> None:
    """Write a test case without a model; see `unflatten` for the roles."""
    write_test_case(path, unflatten(tensors), {})


def model_in(path: Path) -> dict[str, Path]:
    """Return the files of a test case's model by name, to copy with its data sets."""
    model = path / MODEL
    return {MODEL: below(path, RelativePath(MODEL))} if model.is_file() else {}


def _read_data_set(folder: Path) -> DataSet:
    return DataSet(inputs=_read_role(folder, "input"), outputs=_read_role(folder, "output"))


def _read_role(folder: Path, role: str) -> Tensors:
    pattern = re.compile(rf"{role}_(0|[1-9][0-9]{{0,8}})\.pb")
    with reading(folder):
        names = [entry.name for entry in folder.iterdir() if pattern.fullmatch(entry.name)]
        wanted = [RelativePath(f"{role}_{position}.pb") for position in range(len(names))]
        paths = [below(folder, name) for name in wanted]
        if missing := [path.name for path in paths if path.name not in names]:
            raise UnreadableFile(f"{missing[0]} is missing, of {len(names)} {role}s")
    named = [pb.read_named(path) for path in paths]
    tensors = dict(named)
    if "" in tensors or len(tensors) < len(named):
        return {path.stem: values for path, (_, values) in zip(paths, named, strict=True)}
    return tensors


def _write_role(folder: Path, role: str, tensors: Tensors) -> None:
    check_names(tensors)
    for position, (name, values) in enumerate(tensors.items()):
        put_file(folder, f"{role}_{position}.pb", pb.serialize(name, values))


ONNX_FOLDER = Format(
    "onnx", ("/",), "ONNX test case, a folder: model.onnx and test_data_set_N/", read, write
)
