"""Numba's decorators with types, and what its functions need to read memory at an address."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit, types
from numba.core.event import Listener, install_listener
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

import rnncli.recurrence
from rnncli.backends.compiled.code_cache import compile_kept
from rnncli.backends.compiled.kernel_plan import RECORD
from rnncli.backends.compiled.shapes import Shape
from rnncli.notes import tell

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = {"nogil": True, "error_model": "numpy"}
# The functions that this process has compiled.
MADE: list[str] = []
Function = TypeVar("Function", bound="Callable[..., object]")


def compiled(function: Function) -> Function:
    """Compile a function that kernels call, and nobody else."""
    alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(**OPTIONS, **alone)(function)  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """Compile a function as a part of the only one that calls it, which takes half the time."""
    return njit(**OPTIONS, inline="always")(function)  # type: ignore[no-any-return]


def kernel(name: str, *arguments: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls, without the GIL, and keep the code for later runs.

    The name must be the function's alone: kept code of two functions of one name would be taken for
    the same by the linker, which closures of different variables share otherwise.

    Callers see to it that arguments have these types: it would take Numba a quarter of a
    microsecond to look.
    """

    def compile_named(function: Function) -> Function:
        function.__qualname__ = "".join(letter if letter.isalnum() else "_" for letter in name)
        with install_listener("numba:compile", Teller(function)):
            return compile_kept(function, types.void(*arguments), OPTIONS)  # type: ignore[no-any-return]

    return compile_named


class Teller(Listener):  # type: ignore[misc]
    """Tells that a kernel is being compiled, which takes long; loading it does not.

    Args:
        function: the kernel's.
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def on_start(self, event: Any) -> None:
        """Hear of any function that Numba starts to compile, in whatever thread."""
        if event.data["dispatcher"].py_func is not self.function:
            return
        if not MADE:
            tell("compiling kernels for this processor: some seconds each, once")
        MADE.append(self.function.__qualname__)

    def on_end(self, event: Any) -> None:
        """Nothing is to say then."""


def instruction(typing: Callable[..., tuple[Any, Any]]) -> Any:
    """Make a function of compiled code from one that returns its signature and what emits it.

    Its strings are literals, known when the code is emitted.
    """
    return intrinsic(prefer_literal=True)(typing)


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


@instruction
def pointer(_: Any, code: Any, address: Any) -> tuple[Any, Any]:
    """Return an address as an array of numbers without end: a kernel's, or int64 for "int64"."""
    name = code.literal_value
    kind = types.int64 if name == "int64" else getattr(types, Shape.of(name).dtype)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[1], context.get_data_type(kind).as_pointer())

    return types.CPointer(kind)(code, address), emit


@instruction
def plan_at(_: Any, address: Any) -> tuple[Any, Any]:
    """Return the KernelPlan that lies at an address."""
    kind = from_dtype(RECORD)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(address), emit
