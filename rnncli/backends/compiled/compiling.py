"""Numba's decorator with types, and the state of the sources that compiled code is kept for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit, types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

import rnncli.recurrence
from rnncli.backends.compiled.plan import RECORD
from rnncli.backends.compiled.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., object]")


def compiled(function: Function) -> Function:
    """Compile a function that kernels call; it becomes part of them."""
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)  # type: ignore[no-any-return]


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


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def pointer(_: Any, code: Any, address: Any) -> tuple[Any, Any]:
    """Return an address as an array of numbers without end: a kernel's, or int64 for "int64"."""
    name = code.literal_value
    kind = types.int64 if name == "int64" else getattr(types, Shape.of(name).dtype)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[1], context.get_data_type(kind).as_pointer())

    return types.CPointer(kind)(code, address), emit


@intrinsic  # type: ignore[untyped-decorator]
def plan_at(_: Any, address: Any) -> tuple[Any, Any]:
    """Return the Plan that lies at an address."""
    kind = from_dtype(RECORD)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(address), emit
