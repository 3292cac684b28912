"""Layouts of packs: the forms in which the tensors of the cases are stored.

A layout is a row: `convert` writes every one, and `verify` and the others read those with a reader.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rnncli.files.paths import Identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

ONNX = "onnx"
# Of the name of a case's folder.
PREFIX = "test_"


class PackLayout(NamedTuple):
    """A form of a pack."""

    summary: str  # one phrase for helps and the manifest's schema
    # `module:function` that returns the files of a vector by path within its folder; "" for a
    # layout of one file, `file_of(name)`
    files: str = ""
    # `module:function` that returns the vector of (pack, record); "" if the layout is only written
    reader: str = ""
    # the keyword arguments of `files` that `convert` can set -> their options there
    options: Mapping[str, str] = MappingProxyType({})
    has_units: bool = False  # whether it tells the scales and zero points of quantised units


LAYOUTS: Mapping[str, PackLayout] = {
    ONNX: PackLayout(
        "an ONNX test-case folder for each case",
        "rnncli.packs.conversion:onnx_files",
        "rnncli.packs.case_folder:read_case",
        has_units=True,
    ),
    "raw": PackLayout(
        "a folder for each case, with case.json and plain little-endian .bin files",
        "rnncli.packs.raw_form:files_of",
        "rnncli.packs.raw_form:read_case",
        has_units=True,
    ),
    "c": PackLayout(
        "a C header for each case, which rnncli does not read back",
        "rnncli.packs.derived_forms:c_files",
        has_units=True,
    ),
    "hex": PackLayout(
        "files for $readmemh and a .svh for each case, likewise only written",
        "rnncli.packs.derived_forms:hex_files",
        options={"elements": "--pack"},
        has_units=True,
    ),
    "ir": PackLayout(
        "as raw, with model.xml and model.bin, OpenVINO's own models of its own operators",
        "rnncli.packs.ir_form:files_of",
        "rnncli.packs.raw_form:read_case",
    ),
    "wpt": PackLayout(
        "as raw, with wpt.json, WebNN's operators as cases of web-platform-tests",
        "rnncli.packs.wpt_form:files_of",
        "rnncli.packs.raw_form:read_case",
    ),
    "tflite": PackLayout(
        "as raw, with model.tflite, TFLite's own model of its LSTM",
        "rnncli.packs.tflite_form:files_of",
        "rnncli.packs.raw_form:read_case",
    ),
    "npz": PackLayout(
        "one NumPy file", reader="rnncli.packs.single_file:read_case", has_units=True
    ),
    "h5": PackLayout("one HDF5 file", reader="rnncli.packs.single_file:read_case", has_units=True),
}
SINGLE_FILES = tuple(name for name, row in LAYOUTS.items() if not row.files)


def file_of(layout: str) -> str:
    """Return the name of the tensor file of a single-file layout."""
    return f"vectors.{layout}"


def folder_of(case_id: str) -> Identifier:
    """Return the name of a case's folder.

    Raises:
        InvalidRequest: the id cannot be part of a path.
    """
    return Identifier(f"{PREFIX}{case_id}")


def described(separator: str = "; ") -> str:
    """Return every layout with its summary, for helps."""
    return separator.join(f"{name}: {row.summary}" for name, row in LAYOUTS.items())
