"""Writing the inputs, outputs and signals of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest
from rnncli.files.formats import FOLDER, format_of, write_output
from rnncli.files.formats.format import DataSet, flatten
from rnncli.models.model import Model
from rnncli.models.tensor_values import external_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.cases.case import Case
    from rnncli.running.request import Run


def as_path(output: str) -> str:
    """Mark a path without extension as a folder.

    Raises:
        InvalidRequest: it has an extension that belongs to no format, so it might be a typo.
    """
    if output and (not Path(output).suffix or _is_folder(output)):
        return f"{output.rstrip('/')}/"
    return output


def write_inputs(path: str, runs: Sequence[Run]) -> None:
    """Write the inputs of runs by name, prefixed by the data set if there are several.

    Raises:
        InvalidRequest: no format has that extension, or it cannot hold them, or writing fails.
    """
    sets = [DataSet(inputs=run.inputs) for run in runs]
    if len(sets) == 1 and not _is_folder(path):
        write_output(path, sets[0].inputs)
    else:
        write_output(path, flatten(sets))


def write_outputs(path: str, loaded: Model | Case, runs: Sequence[Run]) -> None:
    """Write the outputs; a folder becomes an ONNX test case with model and inputs.

    Raises:
        InvalidRequest: no format has that extension, or it cannot hold them, or writing fails.
    """
    if not _is_folder(path):
        write_output(path, flatten([DataSet(outputs=run.outputs) for run in runs]))
        return
    from rnncli.files.formats.onnx_folder import MODEL, write_test_case

    # The model and its external data stand beside the data sets.
    files: dict[str, bytes | Path] = {}
    if isinstance(loaded, Model):
        assert loaded.file is not None
        assert loaded.folder is not None
        files[MODEL] = loaded.file
        if loaded.file.suffix.lower() != ".onnx":
            files[MODEL] = loaded.proto.SerializeToString(deterministic=True)
        for name in external_files(loaded.proto):
            if name != loaded.file.name:
                files[name] = loaded.folder / name
    else:
        from rnncli.models.single_node import single_node_model  # imports all of onnx

        first, node = runs[0], (loaded.operator, loaded.attributes)
        model = single_node_model(*node, first.inputs, first.outputs)
        files[MODEL] = model.SerializeToString(deterministic=True)
    sets = [DataSet(inputs=run.inputs, outputs=run.outputs) for run in runs]
    write_test_case(Path(path), sets, files)


def write_steps(path: str, runs: Sequence[Run]) -> None:
    """Write the signals of every step by name, prefixed by the data set if there are several.

    Raises:
        InvalidRequest: no format has that extension, or it cannot hold them, or writing fails, or
            no recurrent node has run.
    """
    found = {
        f"{run.name}/{name}" if len(runs) > 1 else name: values
        for run in runs
        for name, values in run.steps.items()
    }
    if not found:
        raise InvalidRequest(f"{path}: no recurrent node took a step, so there are no signals")
    write_output(path, found)


def _is_folder(path: str) -> bool:
    return FOLDER in format_of(path).extensions
