"""The tasks of a batch, from the command line's targets and paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.files.formats import FOLDER, format_of
from rnncli.running.many_runs import Task
from rnncli.running.target import cases_of
from rnncli.running.target_names import short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rnncli.running.request import Request


def all_targets(targets: Sequence[str], more: Iterable[str]) -> list[str]:
    """Return the targets given and those listed one per line, without blanks and comments.

    A suite stands for all of its valid cases.

    Raises:
        NothingSelected: there are none.
    """
    lines = (line.strip() for line in more)
    listed = [*targets, *(line for line in lines if line and not line.startswith("#"))]
    if not listed:
        raise NothingSelected("no target: name a model or a config, or list some with --from")
    cases = [case for target in listed for case in cases_of(target)]
    if not cases:
        raise NothingSelected(f"{', '.join(listed)}: every case must be rejected; none can run")
    return cases


def plan(
    targets: Sequence[str],
    request: Request,
    *,
    output: str = "",
    entry_format: str = "onnx",
    save_inputs: str = "",
    steps: str = "",
) -> list[Task]:
    """Return a task for each target, with the paths of its files.

    A single target writes to the paths given. Several targets write into the folder given, each to
    an entry of its own name: a folder for `entry_format` "onnx", otherwise a file with that
    extension.

    Raises:
        InvalidRequest: several targets, but a path is a file; or the signals of one target, but
            their path is a folder.
    """
    if as_path(steps).endswith("/") and len(targets) == 1:
        raise InvalidRequest(f"{steps}: signals of steps are written to one file: .npz or .h5")
    request = replace(request, steps=bool(steps))
    if len(targets) == 1:
        return [Task(targets[0], request, as_path(output), save_inputs, steps)]
    for path in filter(None, (output, save_inputs, steps)):
        _refuse_file(path)
    names = short_names(targets)
    suffix = "/" if entry_format == "onnx" else f".{entry_format}"
    return [
        Task(
            target,
            request,
            f"{Path(output) / name}{suffix}" if output else "",
            f"{Path(save_inputs) / name}.npz" if save_inputs else "",
            f"{Path(steps) / name}.npz" if steps else "",
        )
        for target, name in zip(targets, names, strict=True)
    ]


def as_path(output: str) -> str:
    """Mark a path without extension as a folder.

    Raises:
        InvalidRequest: it has an extension that belongs to no format, so it might be a typo.
    """
    if output and (not Path(output).suffix or FOLDER in format_of(output).extensions):
        return f"{output.rstrip('/')}/"
    return output


def _refuse_file(path: str) -> None:
    if not as_path(path).endswith("/") or Path(path).is_file():
        raise InvalidRequest(f"{path}: several targets need a folder, not a single file")
    Path(path).mkdir(parents=True, exist_ok=True)
