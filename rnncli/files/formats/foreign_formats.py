"""Formats of other packages: failures and malformed results name the format."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.files.formats.format import Format
from rnncli.jobs.plugins import calling, load

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.files.formats.format import Tensors
    from rnncli.jobs.plugins import Plugin


@cache
def plugged_format(plugin: Plugin) -> Format:
    """Return a format implemented by another package.

    Raises:
        Unsupported: the package lacks a dependency.
        PluginFailure: its code fails, now, in reading or in writing.
    """
    theirs = load(plugin)
    with calling(plugin):
        if not isinstance(theirs, Format):
            raise TypeError(f"expected a Format, got {type(theirs).__name__}")

    def read(path: Path) -> Tensors:
        with calling(plugin, str(path)):
            return _tensors(theirs.read(path))

    def write(path: Path, tensors: Tensors) -> None:
        with calling(plugin, str(path)):
            theirs.write(path, tensors)

    return replace(theirs, read=read, write=write)


def _tensors(found: Any) -> Tensors:
    """Return the tensors that a plug-in read.

    Raises:
        TypeError: not a dict of arrays by name.
    """
    if not isinstance(found, dict):
        raise TypeError(f"read returned {type(found).__name__}, not a dict of arrays")
    for name, values in found.items():
        if not isinstance(name, str) or not isinstance(values, np.ndarray):
            raise TypeError(f"read returned {type(values).__name__} named {name!r}, not an array")
    return found
