"""A vector as an ONNX test case: the folder that onnx.backend.test and runtimes' runners take.

    test_ID/model.onnx
    test_ID/test_data_set_0/input_0.pb ... output_0.pb ... tolerance_0.pb ...
    test_ID/readings/clip-scope=gates/output_0.pb ... tolerance_0.pb ...

Position K of a tolerance is that of its output; every tensor also carries its own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from rnncli.errors import UnreadableFile
from rnncli.formats import pb
from rnncli.formats.onnx_folder import MODEL
from rnncli.formats.reading import reading
from rnncli.formats.stored import normalised
from rnncli.vectors.manifest import sha256
from rnncli.vectors.vector import READINGS, Answers, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from rnncli.formats.format import Tensors

PREFIX = "test_"
DATA_SET = "test_data_set_0"


def folder_of(case_id: str) -> str:
    """Return the name of a case's folder."""
    return f"{PREFIX}{case_id}"


def packed(vector: Vector) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what a manifest says of a vector, and its files by their path within the pack."""
    folder = folder_of(vector.id)
    files = {f"{folder}/{path}": content for path, content in files_of(vector).items()}
    sums = {path: sha256(content) for path, content in files.items()}
    return {**vector.record, "files": sums}, files


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder."""
    return {
        MODEL: vector.model,
        **_numbered(DATA_SET, "input", vector.fed),
        **_answers(DATA_SET, vector.answers),
        **{
            path: content
            for name, answers in vector.alternatives.items()
            for path, content in _answers(f"{READINGS}/{name}", answers).items()
        },
    }


def _answers(folder: str, answers: Answers) -> dict[str, bytes]:
    return {
        **_numbered(folder, "output", answers.outputs),
        **_numbered(folder, "tolerance", answers.tolerances),
    }


def _numbered(folder: str, role: str, tensors: Tensors) -> dict[str, bytes]:
    return {
        f"{folder}/{role}_{k}.pb": pb.serialize(name, values)
        for k, (name, values) in enumerate(tensors.items())
    }


def read_vector(folder: Path, record: Mapping[str, Any]) -> Vector:
    """Read a vector back from its folder.

    Args:
        folder: the case's.
        record: what the manifest says of it.

    Raises:
        UnreadableFile: a file is missing or damaged.
    """
    with reading(folder / MODEL):
        model = (folder / MODEL).read_bytes()
        held = _initializers(model)
    fed = dict(_read(folder / DATA_SET, "input"))
    return Vector(
        id=record["id"],
        model=model,
        inputs=_in_order({**fed, **held}, record["inputs"]),
        initializers=tuple(held),
        answers=_read_answers(folder / DATA_SET),
        alternatives={
            name: _read_answers(folder / READINGS / name) for name in record["alternatives"]
        },
        record=record,
    )


def _initializers(model: bytes) -> Tensors:
    try:
        graph = onnx.ModelProto.FromString(model).graph
    except DecodeError as error:
        raise UnreadableFile("is not an ONNX model") from error
    return {each.name: normalised(numpy_helper.to_array(each)) for each in graph.initializer}


def _in_order(tensors: Tensors, names: list[str]) -> Tensors:
    if set(tensors) != set(names):
        raise UnreadableFile(f"the case holds inputs {', '.join(tensors)}, not {', '.join(names)}")
    return {name: tensors[name] for name in names}


def _read_answers(folder: Path) -> Answers:
    return Answers(dict(_read(folder, "output")), dict(_read(folder, "tolerance")))


def _read(folder: Path, role: str) -> Iterator[tuple[str, Any]]:
    for k in range(len(list(folder.glob(f"{role}_*.pb")))):
        yield pb.read_named(folder / f"{role}_{k}.pb")
