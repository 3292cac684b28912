"""Weights in a file, converted from the form of one library to that of another, or to a model."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.errors import InvalidRequest, UnreadableFile, Unsupported
from rnncli.files.atomic import write_bytes
from rnncli.files.formats import h5, read_tensors, write_output
from rnncli.files.reading import (
    MemoryAllowance,
    named,
    open_data,
    parse_json,
    read_bytes,
    reading,
    require_few,
    size_of,
)
from rnncli.files.seals import MODEL
from rnncli.models import weights
from rnncli.models.weights.keras_layers import in_order
from rnncli.numerics import dtype_named
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.models.weights import RecurrentLayer
    from rnncli.numerics import Array

LARGEST = 1 << 36  # bytes
# The oldest version whose `weights_only` is trusted, as in pyproject.toml.
TORCH = (2, 13)
CONFIG, WEIGHTS = "config.json", "model.weights.h5"
# Library -> what a name of its weights ends with, of which no other library has any.
NAMES: Mapping[str, re.Pattern[str]] = {
    "torch": re.compile(r"(?:^|\.)weight_ih_l[0-9]+(?:_reverse)?$"),
    "keras": re.compile(r"(?:^|/)recurrent_kernel$"),
    "openvino": re.compile(r"^W(?:_l[0-9]+)?(?:_reverse)?$"),
}
# The element types of safetensors that weights and what lies beside them have.
_TYPES: Mapping[str, str] = {
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "BF16": "bfloat16",
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "BOOL": "bool",
}


def read_weights(
    path: str | Path, library: str, module: str | None = None
) -> tuple[Tensors, dict[str, Any]]:
    """Return the tensors of a file by name, and what the file says of its layers beside them.

    Args:
        path: a file of tensors in any format, or of one of the kinds above, by its extension.
        library: the library that the weights are of.
        module: the path of the layers that are wanted; None for all.

    Raises:
        UnreadableFile: the file is missing, damaged or hostile, or holds more than tensors.
        Unsupported: its reader is not installed.
        InvalidRequest: it is another library's, or its layers are none of ONNX's.
    """
    of, read = CHECKPOINTS.get(Path(path).suffix.lower(), ("", None))
    if read is None:
        return read_tensors(path), {}
    if of and of != library:
        raise InvalidRequest(f"{path}: is a file of {of}; --from {library} is given")
    with reading(path):
        return read(Path(path), module)


def libraries_of(names: Iterable[str]) -> list[str]:
    """Return the libraries that have names of weights among those of a file."""
    return [library for library, its in NAMES.items() if any(map(its.search, names))]


def _safetensors(path: Path, _: str | None) -> tuple[Tensors, dict[str, Any]]:
    try:
        import safetensors
    except ImportError as error:
        raise Unsupported(
            "is read by safetensors, which is not installed; install it with:"
            f" {install_line('safetensors')}"
        ) from error
    try:
        found = safetensors.deserialize(read_bytes(path, LARGEST))
    except safetensors.SafetensorError as error:
        raise UnreadableFile(f"is damaged: {error}") from error
    require_few(len(found))
    tensors = {}
    for name, held in found:
        if (dtype := held["dtype"]) not in _TYPES:
            raise Unsupported(f"'{name:.80}' is of {dtype}, which is not supported")
        values = np.frombuffer(held["data"], dtype_named(_TYPES[dtype]).numpy)
        tensors[name] = values.reshape(held["shape"])
    return tensors, {}


def _torch(path: Path, _: str | None) -> tuple[Tensors, dict[str, Any]]:
    try:
        import torch
    except ImportError as error:
        raise Unsupported(
            f"is read by torch, which is not installed; install it with: {install_line('torch')},"
            " or save the state_dict as .safetensors or .npz where it is"
        ) from error
    if tuple(map(int, torch.__version__.split(".")[:2])) < TORCH:
        raise Unsupported(
            f"is read by torch {'.'.join(map(str, TORCH))} or newer, as older ones let files run"
            f" code (CVE-2026-24747); {torch.__version__} is installed"
        )
    import pickle

    try:
        with open_data(path) as stream:
            held = torch.load(stream, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UnreadableFile(
            "is damaged, or holds more than tensors, which could run code and is not loaded; save"
            " the state alone: torch.save(model.state_dict(), FILE)"
        ) from error
    return dict(_tensors_in(held, "", torch)), {}


def _tensors_in(held: Any, name: str, torch: Any) -> Iterator[tuple[str, Array]]:
    """Yield the tensors of nested dicts by their path; numbers and the like are left out."""
    if isinstance(held, dict):
        for key, value in held.items():
            yield from _tensors_in(value, f"{name}.{key}" if name else str(key), torch)
    elif isinstance(held, torch.Tensor):
        values = held.detach()
        if values.dtype == torch.bfloat16:
            yield name, values.view(torch.uint16).numpy().view(dtype_named("bfloat16").numpy)
        else:
            yield name, values.numpy()


def _keras(path: Path, module: str | None) -> tuple[Tensors, dict[str, Any]]:
    with open_data(path) as stream, zipfile.ZipFile(stream) as archive:
        require_few(len(archive.infolist()))
        allowance = MemoryAllowance(size_of(stream))
        held = {}
        for name in (CONFIG, WEIGHTS):
            if name not in archive.namelist():
                raise UnreadableFile(f"is no model that Keras 3 saved: it lacks {name}")
            size = archive.getinfo(name).file_size
            allowance.take(size)
            with archive.open(name) as member:
                held[name] = member.read(size)
    return in_order(h5.parse(held[WEIGHTS]), parse_json(held[CONFIG]), module)


Reader: TypeAlias = "Callable[[Path, str | None], tuple[Tensors, dict[str, Any]]]"
# Extension -> the library, or "" for any, and the reader.
CHECKPOINTS: Mapping[str, tuple[str, Reader | None]] = {
    ".safetensors": ("", _safetensors),
    **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), ("torch", _torch)),
    ".keras": ("keras", _keras),
}


ONNX = "onnx"


FROM: Mapping[str, Callable[..., list[RecurrentLayer]]] = {
    "torch": weights.from_torch,
    "keras": weights.from_keras,
    "openvino": weights.from_openvino,
}
TO: Mapping[str, Callable[[list[RecurrentLayer]], Tensors]] = {
    "torch": weights.to_torch,
    "keras": weights.to_keras,
    "openvino": weights.to_openvino,
}


def convert_weights(
    source: str,
    destination: str,
    library: str,
    to: str,
    *,
    cell: str = "",
    activation: str | None = None,
    module: str | None = None,
    reset_after: bool | None = None,
) -> None:
    """Write the weights of a file in the form of another library, or as a model.

    Args:
        source: a file of tensors, by the names of `library`.
        destination: an ONNX model if `to` is "onnx", else a file of tensors.
        library: a key of `FROM`.
        to: a key of `TO`, or "onnx".
        cell: LSTM, GRU or RNN; "" for what the shapes say.
        activation: of an RNN: tanh or relu; None for what the file says, or tanh.
        module: the path of the recurrent module in a larger model; None for the only one.
        reset_after: of a GRU of Keras; None for what the file or its bias says.

    Raises:
        InvalidRequest: the weights do not fit, or `to` cannot hold them.
    """
    if reset_after is not None and library != "keras":
        raise InvalidRequest(f"--reset-after is of a GRU of Keras; --from {library} is given")
    asked = {"activation": activation, "reset_after": reset_after}
    is_model = Path(destination).suffix.lower() == ".onnx"
    if is_model != (to == ONNX):
        raise InvalidRequest(
            f"{destination}: --to onnx writes a file NAME.onnx, --to {to} is given"
        )
    tensors, told = read_weights(source, library, module)
    with named(source):
        if (of := libraries_of(tensors)) and library not in of:
            raise InvalidRequest(f"its names are those of {of[0]}; --from {library} is given")
        given = {name: value for name, value in asked.items() if value is not None}
        for name in told.keys() & given.keys():
            if told[name] != given[name]:
                raise InvalidRequest(f"has {name} {told[name]}, but {given[name]} is asked for")
        layers = FROM[library](tensors, cell, module=module, **{**told, **given})
        if is_model:
            from rnncli.models.stacked_model import stacked_model

            content = stacked_model(layers).SerializeToString(deterministic=True)
        else:
            tensors = TO[to](layers)
    if is_model:
        write_bytes(Path(destination), content, MODEL)
    else:
        write_output(destination, tensors)
