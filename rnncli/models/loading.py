"""Loading of models from files, model-zoo folders and their archives, and of their data sets.

Data sets are stored as in ONNX's own tests; packs add `tolerance_K.pb`, the absolute tolerance of
each element of output K.
"""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError
from onnx import ModelProto

from rnncli.errors import InvalidRequest, RnncliError, RnncliWarning, UnreadableFile
from rnncli.files.paths import RelativePath, found_in
from rnncli.files.reading import nearest_file, open_data
from rnncli.models.model import Model
from rnncli.models.structure import check_structure, check_text, normalise, sort_nodes
from rnncli.models.tensor_values import embed_attribute_tensors, refuse_bomb, without_weights
from rnncli.numerics import tolerance_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.numerics import Array

ModelSource: TypeAlias = Model | ModelProto | bytes | str | os.PathLike[str]
"""A model: loaded, as a protobuf, serialized, or the path of its file."""

FORMATS = {
    ".onnx": "protobuf",
    ".textproto": "textproto",
    ".json": "json",
    ".onnxtxt": "onnxtxt",
}
"""The format of a model file by extension, with the names of `onnx.serialization`."""

IR, TFLITE = ".xml", ".tflite"
"""The extensions of the models of OpenVINO and TFLite, which are read as they are."""

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")

_LARGEST_PROTOBUF = 2**31 - 1  # larger models have external weights
# The least size, in bytes, of a file whose weights are mapped instead of parsed.
LARGE = 1 << 20


def load_model(path: str | Path) -> Model:
    """Read a model and prepare it for evaluation.

    Args:
        path: a model file, a folder with ``model.onnx`` (or one ``*.onnx``) and perhaps
            ``test_data_set_N/``, or an archive of such a folder. An archive is unpacked to a
            temporary folder that lives as long as the model.

    Raises:
        UnreadableFile: missing, empty, truncated, foreign or hostile.
        InvalidRequest: readable, but not a valid model.
    """
    path = Path(path)
    if path.is_dir():
        return _load_folder(path, str(path))
    if not path.is_file():
        problem = "not a file" if path.exists() else f"no such file{nearest_file(path)}"
        raise UnreadableFile(f"{path}: {problem}")
    if told := foreign_to_onnx(path):
        raise InvalidRequest(told)
    if path.name.lower().endswith(ARCHIVES):
        from rnncli.models.archives import unpack

        unpacked = UnpackedArchive()
        unpack(path, unpacked.folder)
        return replace(_load_folder(unpacked.folder, str(path)), unpacked=unpacked)
    return _load_file(path, str(path))


# Extension of files that hold no ONNX model -> what they hold, and a way to one.
_TORCH = (
    "a file of PyTorch, not an ONNX model; `torch.onnx.export(model, inputs, 'model.onnx')` writes"
    " one, and `rnncli convert {0} model.onnx --from torch` one of its recurrent layers"
)
_KERAS = (
    "a file of Keras, not an ONNX model; `model.export('model.onnx', format='onnx')` writes one,"
    " and `rnncli convert {0} model.onnx --from keras` one of its recurrent layers"
)
_TENSORS = "tensors, not a model; `rnncli run MODEL --inputs {0}` and `rnncli compare` read them"
FOREIGN: Mapping[str, str] = {
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".safetensors"), _TORCH),
    **dict.fromkeys((".keras", ".weights.h5"), _KERAS),
    **dict.fromkeys((".h5", ".hdf5"), f"{_TENSORS}; or {_KERAS}"),
    **dict.fromkeys((".npz", ".npy"), _TENSORS),
    TFLITE: "a model of TFLite, of which `rnncli extract {0}` takes its LSTMs; `python -m"
    " tf2onnx.convert --tflite {0} --output model.onnx` makes an ONNX model of many",
    ".ort": "ONNX Runtime's own form of a model; give the .onnx file that it was made from",
}


def foreign_to_onnx(path: str | Path) -> str:
    """Return what a file of another program holds and how to get a model, by its name; or ""."""
    name = str(path).lower()
    told = next((words for end, words in FOREIGN.items() if name.endswith(end)), "")
    return f"{path}: {told.format(path)}" if told else ""


def as_model(what: object, wanted: str = "a model or the path of one") -> Model:
    """Return a model that is given in any form; one that is loaded already is itself.

    Args:
        what: a `ModelSource`; a protobuf is not changed.
        wanted: what the caller takes, for the message.

    Raises:
        UnreadableFile: as `load_model` does.
        InvalidRequest: it is something else, or not a valid model.
    """
    if isinstance(what, Model):
        return what
    if isinstance(what, str | os.PathLike):
        return load_model(Path(what))
    if not isinstance(what, ModelProto | bytes):
        raise InvalidRequest(f"what is evaluated must be {wanted}, got a {type(what).__name__}")
    try:
        proto = _message(what if isinstance(what, bytes) else what.SerializeToString())
    except DecodeError as error:
        raise InvalidRequest("the bytes that were given are not a model") from error
    return model_from(proto, proto.graph.name or "model")


def model_from(
    proto: ModelProto,
    name: str = "model",
    folder: Path | None = None,
    data_sets: tuple[Path, ...] = (),
) -> Model:
    """Prepare a protobuf in memory for evaluation, in place; warn if its nodes are out of order.

    Raises:
        InvalidRequest: it is not a valid model.
    """
    try:
        check_text(proto)
        normalise(proto)
        early = sort_nodes(proto)
        check_structure(proto)
        embed_attribute_tensors(proto, folder)
    except RnncliError as error:
        raise type(error)(f"{name}: {error}") from error
    if early is not None:
        sentence = f"{name}: {early.node} reads '{early.value}', which a later node produces"
        said = f"{sentence}; ONNX requires nodes in order, so they were sorted"
        warnings.warn(said, RnncliWarning, stacklevel=2)
    return Model(proto, name, folder, data_sets)


class UnpackedArchive:
    """A temporary folder, removed with this object."""

    def __init__(self) -> None:
        import shutil
        import tempfile
        import weakref

        self.folder = Path(tempfile.mkdtemp(prefix="rnncli-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


def _load_folder(folder: Path, name: str) -> Model:
    """Load the model of a folder or of its only subfolder, as in archives."""
    models = _models_in(folder)
    while not models:
        folders = [p for p in _visible(folder) if p.is_dir() and p.name != "__MACOSX"]
        if len(folders) != 1:
            break
        folder = found_in(folder, folders[0].name)
        models = _models_in(folder)
    if not models:
        configs = sorted(each.name for each in folder.glob("*.y*ml"))
        hint = "; name a model, a config or a pack"
        if configs:
            hint = f"; its configs are targets one by one, as {folder}/{configs[0]}"
        raise UnreadableFile(f"{name}: contains no model.onnx and no other .onnx file{hint}")
    if len(models) > 1:
        names = ", ".join(model.name for model in models)
        raise InvalidRequest(f"{name}: contains several models, name one: {names}")
    return _load_file(found_in(folder, models[0].name), name)


def _models_in(folder: Path) -> list[Path]:
    """Return ``model.onnx`` if it exists, else all models except ``._x``, metadata of macOS."""
    models = [path for path in _visible(folder) if path.suffix == ".onnx" and path.is_file()]
    return [path for path in models if path.name == "model.onnx"] or models


def _visible(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _load_file(path: Path, name: str) -> Model:
    try:
        format_name = FORMATS.get(path.suffix.lower(), "protobuf")
        with open_data(path, _LARGEST_PROTOBUF) as stream:
            data = stream.read()
        refuse_bomb(data, format_name)
        if format_name == "protobuf" and len(data) >= LARGE:
            # Large weights stay in the file, unless a link may lead outside the folder.
            with suppress(InvalidRequest):
                own = RelativePath(found_in(path.parent, path.name).name)
                data = without_weights(data, own)
        proto = _parse(data, format_name)
        if not proto.HasField("graph"):
            raise UnreadableFile("not an ONNX model: it has no graph")
    except RnncliError as error:
        inner = "" if name == str(path) else f"{path.name}: "
        raise type(error)(f"{name}: {inner}{str(error).removeprefix(f'{path}: ')}") from error
    folder = path.parent
    # Data sets beside several models may belong to another one.
    numbered = (
        (int(match[1]), found_in(folder, each.name))
        for each in (folder.iterdir() if _models_in(folder) == [path] else ())
        if (match := re.fullmatch(r"test_data_set_([0-9]{1,9})", each.name)) and each.is_dir()
    )
    data_sets = tuple(each for _, each in sorted(numbered))
    return replace(model_from(proto, name, folder, data_sets), file=path)


def _parse(data: bytes, format_name: str) -> ModelProto:
    try:
        if format_name == "protobuf":
            return _message(data)
        import onnx

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # onnx calls its own text format experimental
            serializer = onnx.serialization.registry.get(format_name)
            return serializer.deserialize_proto(data, ModelProto())
    except Exception as error:  # each format has its own exceptions, and text parsers overflow
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        sentence = f"not an ONNX model, or truncated ({format_name}): {reason}"
        raise UnreadableFile(sentence) from error


def _message(data: bytes) -> ModelProto:
    proto = ModelProto()
    proto.ParseFromString(data)
    return proto


class DataSetFolder(NamedTuple):
    """The content of a folder ``test_data_set_N`` by name: inputs, expected outputs, tolerances."""

    folder: Path
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    tolerances: dict[str, Array]


def load_data_set(model: Model, folder: Path) -> DataSetFolder:
    """Read ``input_K.pb``, ``output_K.pb`` and ``tolerance_K.pb``, if there are any.

    Tensors without a name are matched by position.

    Raises:
        UnreadableFile: a tensor is missing or damaged, or a tolerance does not fit its output.
        InvalidRequest: there are more tensors than the graph has inputs or outputs.
    """
    inputs = [value.name for value in model.inputs]
    names = [value.name for value in model.proto.graph.output]
    outputs = _numbered_tensors(folder, "output", names)
    tolerances = _numbered_tensors(folder, "tolerance", names)
    for name, values in tolerances.items():
        if problem := tolerance_problem(values, outputs.get(name)):
            raise UnreadableFile(f"{folder}: the tolerance of output '{name}' {problem}")
    return DataSetFolder(folder, _numbered_tensors(folder, "input", inputs), outputs, tolerances)


def _numbered_tensors(folder: Path, kind: str, names: Sequence[str]) -> dict[str, Array]:
    from rnncli.files.formats.pb import read_named  # not needed without data sets
    from rnncli.files.paths import found_in

    files = sorted(
        (int(match[1]), found_in(folder, path.name))
        for path in folder.iterdir()
        if (match := re.fullmatch(rf"{kind}_(\d+)\.pb", path.name))
    )
    read = {position: read_named(path) for position, path in files}
    found = [name for name, _ in read.values()]
    named = set(found) <= set(names) and len(set(found)) == len(found)
    if not named and max(read, default=-1) >= len(names):
        raise InvalidRequest(
            f"{folder}: holds {kind}_{max(read)}.pb, but the model has {len(names)} {kind}s"
        )
    return {name if named else names[position]: values for position, (name, values) in read.items()}
