"""Loading a TARGET: a model, a config, a case of a suite, or standard input.

The YAML reader is imported only for targets that are not model files: its import takes as long as
running a small model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.models.loading import ARCHIVES, FORMATS, IR, load_model
from rnncli.running.target_names import YAML

if TYPE_CHECKING:
    from rnncli.cases.case import Case
    from rnncli.models.model import Model


def load_target(target: str, seed: int | None = None) -> Model | Case:
    """Load a target.

    Args:
        target: `model.onnx` (or .textproto, .json, .onnxtxt), a folder or archive that holds one,
            `model.xml` of OpenVINO with one recurrent node,
            `config.yaml`, `suite.yaml::ID`, the name of a shipped spec instead of a YAML file, or
            `-` for a config on standard input.
        seed: replaces the seed of a config or suite.

    Raises:
        InvalidRequest: the target is none of these, or its content is wrong.
        Unsupported: a model of OpenVINO has other nodes.
    """
    path = Path(target)
    if is_ir(target):
        from rnncli.models.ir_model import read_ir

        return read_ir(path).single()
    is_model = path.name.lower().endswith((*FORMATS, *ARCHIVES))
    if is_model and path.is_file():
        return load_model(path)
    from rnncli.running.yaml_target import entry_of, load_written

    named = entry_of(target, seed)
    if named is None and (is_model or path.is_dir()):
        return load_model(path)
    return load_written(target, seed)


def is_ir(target: str) -> bool:
    """Return whether a target is a model of OpenVINO, by its name."""
    return target.lower().endswith(IR)


def cases_of(target: str) -> list[str]:
    """Return a target for each valid case of a suite or pack; other targets unchanged.

    Errors in a suite are reported when the target is loaded.

    Raises:
        InvalidRequest: every case of the suite must be rejected.
    """
    path = Path(target)
    if path.is_file() and path.suffix.lower() not in YAML:
        return [target]
    from rnncli.running.yaml_target import cases_written

    return cases_written(target)
