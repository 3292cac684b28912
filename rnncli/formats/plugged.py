"""A format of another package: its failures, and tensors that are none, name it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.formats.format import Format
from rnncli.plugins import calling, load

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.formats.format import Tensors
    from rnncli.plugins import Plugin


@cache
def plugged_format(plugin: Plugin) -> Format:
    """Return a format whose code is another package's.

    Raises:
        Unsupported: the package lacks something that it needs.
        PluginFailure: its code fails, now or when it reads or writes.
    """
    theirs = load(plugin)
    with calling(plugin):
        if not isinstance(theirs, Format):
            raise TypeError(f"a Format is due, got {type(theirs).__name__}")

    def read(path: Path) -> Tensors:
        with calling(plugin, str(path)):
            return _tensors(theirs.read(path))

    def write(path: Path, tensors: Tensors) -> None:
        with calling(plugin, str(path)):
            theirs.write(path, tensors)

    return replace(theirs, read=read, write=write)


def _tensors(found: Any) -> Tensors:
    """Return what was read.

    Raises:
        TypeError: it is no dict of arrays by name.
    """
    if not isinstance(found, dict):
        raise TypeError(f"read gave {type(found).__name__}, not a dict of arrays")
    for name, values in found.items():
        if not isinstance(name, str) or not isinstance(values, np.ndarray):
            raise TypeError(f"read gave {type(values).__name__} named {name!r}, not an array")
    return found
