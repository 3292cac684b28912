"""Numba's decorator with types, and the state of the sources that compiled code is kept for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from numba import njit

import rnncli.recurrence

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., object]")


def compiled(function: Function) -> Function:
    """Compile a function that kernels call; it becomes part of them."""
    return njit(nogil=True, inline="always")(function)  # type: ignore[no-any-return]


@cache
def sources() -> str:
    """Return what changes whenever a source of the kernels does.

    Numba keeps compiled code until the one file changes that holds the function: kernels are made
    from every file here and from the cells' equations.
    """
    folders = (Path(__file__).parent, Path(rnncli.recurrence.__file__).parent)
    files = sorted(path for folder in folders for path in folder.glob("*.py"))
    stamps = [(path.name, (stat := path.stat()).st_mtime_ns, stat.st_size) for path in files]
    return str(stamps)
