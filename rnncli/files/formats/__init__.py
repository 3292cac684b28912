"""Formats of tensors on disk, chosen by a path's extension.

A format is a row here, or an entry point of the group ``rnncli.formats`` in another package, named
by extension. A file can hold whole data sets, see `flatten`.
"""

from __future__ import annotations

import os
import pkgutil
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest, RnncliWarning, did_you_mean
from rnncli.files.formats.format import DataSet, Format, Tensors, flatten, unflatten
from rnncli.files.seals import is_ours, require_ours
from rnncli.jobs.plugins import calling, described, load, plugins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.jobs.plugins import Plugin
    from rnncli.numerics import Array

FOLDER = "/"

FORMATS: Mapping[str, str] = {
    "npz": "rnncli.files.formats.numpy_files:NPZ",
    "h5": "rnncli.files.formats.h5:H5",
    "hdf5": "rnncli.files.formats.h5:H5",
    "npy": "rnncli.files.formats.numpy_files:NPY",
    "pb": "rnncli.files.formats.pb:PB",
    FOLDER: "rnncli.files.formats.onnx_folder:ONNX_FOLDER",
}


def known_formats() -> Mapping[str, str]:
    """Return the definition of each format by extension, built-in or from another package."""
    return {**{name: each.where for name, each in plugins("format").items()}, **FORMATS}


def format_with(extension: str) -> Format:
    """Return the format of an extension without its dot; ``"/"`` is a folder.

    Raises:
        InvalidRequest: unknown extension, or a plug-in fails.
        Unsupported: a plug-in cannot be imported.
    """
    if extension in FORMATS:
        found: Format = pkgutil.resolve_name(FORMATS[extension])
        return found
    if plugin := plugins("format").get(extension):
        return _plugged_format(plugin)
    listed = ", ".join(f".{name}" for name in known_formats() if name != FOLDER)
    if not extension:
        raise InvalidRequest(f"has no extension, which says the format: {listed}; or is FOLDER/")
    raise InvalidRequest(f"no format is named '.{extension}': there are {listed} and FOLDER/")


@cache
def _plugged_format(plugin: Plugin) -> Format:
    """Return a format implemented by another package.

    Raises:
        Unsupported: the package lacks a dependency.
        PluginFailure: its code fails, now, in reading or in writing.
    """
    import numpy as np  # so that a command that reads no tensors is quick

    theirs = load(plugin)
    with calling(plugin):
        if not isinstance(theirs, Format):
            raise TypeError(f"expected a Format, got {type(theirs).__name__}")

    def read(path: Path) -> Tensors:
        with calling(plugin, str(path)):
            found: Any = theirs.read(path)
            if not isinstance(found, dict):
                raise TypeError(f"read returned {type(found).__name__}, not a dict of arrays")
            for name, values in found.items():
                if not isinstance(name, str) or not isinstance(values, np.ndarray):
                    kind = type(values).__name__
                    raise TypeError(f"read returned {kind} named {name!r}, not an array")
            return found

    def write(path: Path, tensors: Tensors) -> None:
        with calling(plugin, str(path)):
            theirs.write(path, tensors)

    return replace(theirs, read=read, write=write)


def describe_formats() -> list[dict[str, str]]:
    """Return extension, summary and origin of every format, also of one that cannot be used."""
    return described("extension", known_formats(), lambda name: format_with(name).summary)


def format_of(path: str | Path) -> Format:
    """Return the format of a path, by its extension; a folder, or a path that ends in ``/``.

    Raises:
        InvalidRequest: no format has the extension.
    """
    try:
        return format_with(_extension(path))
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from None


def read_tensors(path: str | Path) -> Tensors:
    """Read every tensor of a file or folder, by name, in order.

    Raises:
        UnreadableFile: the path is missing, damaged or hostile.
        InvalidRequest: no format has its extension.
        Unsupported: what it holds is right, but no tensor can hold it.
    """
    from rnncli.files.reading import MissingFile, named

    with named(path):
        if not _extension(path) and not Path(path).exists():
            raise MissingFile("no such file")
        return format_of(path).read(Path(path))


def write_tensors(path: str | Path, tensors: Tensors) -> None:
    """Write tensors, atomically and always as the same bytes.

    Raises:
        InvalidRequest: no format has the extension, it cannot hold the tensors, or the disk
            refuses.
    """
    from rnncli.files.reading import named

    with named(path):
        format_of(path).write(Path(path), tensors)


def write_output(path: str | Path, tensors: Tensors) -> None:
    """Write the tensors that a command is asked for; a file that others wrote is not replaced.

    Where a format has no place for a seal, a file is not replaced but by itself.

    Raises:
        InvalidRequest: as `write_tensors`, or there is such a file.
    """
    from rnncli.files.reading import named

    place, found = Path(path), format_of(path)
    if found.seal:
        with named(path):
            found.write(place, tensors, found.seal)
        return
    if place.is_file() and not is_ours(place):
        # Whether the tensors are the same to the bit, whatever their names.
        there, given = (
            [(values.dtype, values.shape, values.tobytes()) for values in each.values()]
            for each in (read_tensors(path), tensors)
        )
        if there != given:
            require_ours(place)
    write_tensors(path, tensors)


def convert(source: str | Path, destination: str | Path) -> None:
    """Write the tensors of one path to another, in the format of its extension.

    Raises:
        RnncliError: as `read_tensors` and `write_tensors`.

    Warns:
        RnncliWarning: an ONNX test case becomes a file, which has no place for its model.
    """
    from rnncli.files.formats.onnx_folder import model_in, write_test_case

    tensors = read_tensors(source)
    model = model_in(Path(source))
    if model and _extension(destination) == FOLDER:
        write_test_case(Path(destination), unflatten(tensors), model)
        return
    if model:
        warnings.warn(
            f"{destination}: holds tensors only; model.onnx of {source} is left behind",
            RnncliWarning,
            stacklevel=2,
        )
    write_output(destination, tensors)


def read_tensor(source: str | Path) -> Array:
    """Read one tensor: ``x.npy``, ``x.pb``, ``file.npz::key``, or a file that holds just one.

    Raises:
        InvalidRequest: there is no such tensor, or a key is needed; and as `read_tensors`.
    """
    path, separator, name = str(source).partition("::")
    key: str | None = name
    if not separator or os.path.exists(source):  # noqa: PTH110 -- Path.exists can raise
        path, key = str(source), None
    tensors = read_tensors(path)
    if key is None and len(tensors) == 1:
        return next(iter(tensors.values()))
    if key in tensors:
        return tensors[key]
    listed = ", ".join(map(repr, tensors)) or "none"
    if key is None:
        raise InvalidRequest(f"{path}: name one tensor, as in {path}::NAME; it holds {listed}")
    raise InvalidRequest(
        f"{path}: holds no tensor {key!r}{did_you_mean(key, tensors)}; it holds {listed}"
    )


def read_data_sets(path: str | Path) -> tuple[DataSet, ...]:
    """Return the data sets of a path; tensors without a role are the outputs of one data set.

    Raises:
        RnncliError: as `read_tensors`.
    """
    return unflatten(read_tensors(path))


def read_inputs(path: str | Path) -> Tensors:
    """Return a model's inputs: those of the only data set, or all tensors of a plain file.

    Raises:
        InvalidRequest: there are several data sets; and as `read_tensors`.
    """
    first, *others = read_data_sets(path)
    if others:
        raise InvalidRequest(
            f"{path}: holds {1 + len(others)} data sets; choose one, as in {path}/test_data_set_0"
        )
    roles_told = bool(first.inputs) or _extension(path) == FOLDER
    return first.inputs if roles_told else first.outputs


def read_outputs(path: str | Path) -> Tensors:
    """Return a model's outputs for comparison; with several data sets, the outputs of each.

    Raises:
        RnncliError: as `read_tensors`.
    """
    return flatten([DataSet(outputs=data_set.outputs) for data_set in read_data_sets(path)])


def _extension(path: str | Path) -> str:
    separators = tuple(filter(None, (os.sep, os.altsep)))
    # Path.is_dir raises on impossible paths.
    if str(path).endswith(separators) or os.path.isdir(path):  # noqa: PTH112
        return FOLDER
    return Path(path).suffix[1:].lower()
