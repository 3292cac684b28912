"""Layouts of packs: the forms in which the tensors of the cases are stored.

A layout is a row: `convert` writes every one, and `verify` and the others read those with a reader.
"""

from __future__ import annotations

import pkgutil
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import Unsupported
from rnncli.files.paths import Identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.operators.operator import Operator

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
    whose: str = ""  # the dialect or the family whose operators alone it has; "" for every one
    needs: str = ""  # `module:function` that raises if the package that writes it is not installed

    def require(self, case: str, operator: Operator, *, is_rejected: bool) -> None:
        """Raise unless it can hold a case.

        Raises:
            Unsupported: it is for other operators, or the case must be refused, so that
                they have no outputs to declare; or a package is not installed.
        """
        if self.whose and self.whose not in {operator.dialect, operator.family}:
            wanted = self.whose if "." in self.whose else f"an operator of {self.whose}"
            raise Unsupported(f"{case}: {operator.name} is not {wanted}")
        if self.whose and is_rejected:
            raise Unsupported(f"{case}: a case that must be refused has no outputs to declare")
        if self.needs:
            pkgutil.resolve_name(self.needs)()


LAYOUTS: Mapping[str, PackLayout] = {
    ONNX: PackLayout(
        "an ONNX test-case folder for each case",
        "rnncli.packs.conversion:onnx_files",
        "rnncli.packs.case_folder:read_case",
    ),
    "raw": PackLayout(
        "a folder for each case, with case.json and plain little-endian .bin files",
        "rnncli.packs.raw_form:files_of",
        "rnncli.packs.raw_form:read_case",
    ),
    "c": PackLayout(
        "a C header for each case, which rnncli does not read back",
        "rnncli.packs.derived_forms:c_files",
    ),
    "hex": PackLayout(
        "files for $readmemh and a .svh for each case, likewise only written",
        "rnncli.packs.derived_forms:hex_files",
        options={"elements": "--pack"},
    ),
    "ir": PackLayout(
        "as raw, with model.xml and model.bin, OpenVINO's own models of its own operators",
        "rnncli.packs.ir_form:files_of",
        "rnncli.packs.raw_form:read_case",
        whose="OpenVINO",
    ),
    "wpt": PackLayout(
        "as raw, with wpt.json, WebNN's operators as cases of web-platform-tests",
        "rnncli.packs.wpt_form:files_of",
        "rnncli.packs.raw_form:read_case",
        whose="WebNN",
    ),
    "tflite": PackLayout(
        "as raw, with model.tflite, TFLite's own model of its LSTM",
        "rnncli.packs.tflite_form:files_of",
        "rnncli.packs.raw_form:read_case",
        whose="TFLite",
        needs="rnncli.models.tflite_model:schema",
    ),
    "cmsis": PackLayout(
        "as raw, with test_data.h, TFLite's integer LSTM for CMSIS-NN",
        "rnncli.packs.cmsis_form:files_of",
        "rnncli.packs.raw_form:read_case",
        whose="tflite.UNIDIRECTIONAL_SEQUENCE_LSTM",
    ),
    "npz": PackLayout("one NumPy file", reader="rnncli.packs.single_file:read_case"),
    "h5": PackLayout("one HDF5 file", reader="rnncli.packs.single_file:read_case"),
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
