"""Typed Numba decorators, and intrinsics that read memory at an address."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit, types
from numba.core.event import Listener, install_listener
from numba.extending import intrinsic

import rnncli.recurrence
from rnncli.backends.compiled.code_cache import compile_cached
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.talk.terminal import tell

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = {"nogil": True, "error_model": "numpy"}
# The kernels compiled by this process.
MADE: list[str] = []
Function = TypeVar("Function", bound="Callable[..., object]")


def compiled(function: Function) -> Function:
    """Compile a function that only kernels call."""
    alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(**OPTIONS, **alone)(function)  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """Compile a function inline into its only caller, which halves compilation time."""
    return njit(**OPTIONS, inline="always")(function)  # type: ignore[no-any-return]


def kernel(name: str, *arguments: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls, without the GIL, and cache its code on disk.

    The name must be unique: the linker would confuse the cached code of two functions of one name,
    such as closures over different variables.

    Callers must pass arguments of these types: checking them would cost a quarter of a microsecond.
    """

    def compile_named(function: Function) -> Function:
        function.__qualname__ = "".join(letter if letter.isalnum() else "_" for letter in name)
        with install_listener("numba:compile", CompilationNotice(function)):
            return compile_cached(function, types.void(*arguments), OPTIONS)  # type: ignore[no-any-return]

    return compile_named


class CompilationNotice(Listener):  # type: ignore[misc]
    """A notice printed when a kernel is compiled, which is slow, but not when it is loaded."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def on_start(self, event: Any) -> None:
        """Print the notice if Numba starts to compile this kernel."""
        if event.data["dispatcher"].py_func is not self.function:
            return
        if not MADE:
            tell("compiling kernels for this processor (once, a few seconds each)")
        MADE.append(self.function.__qualname__)

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def instruction(typing: Callable[..., tuple[Any, Any]]) -> Any:
    """Make an intrinsic from a function that returns its signature and its code generator.

    String arguments are literals, known at compile time.
    """
    return intrinsic(prefer_literal=True)(typing)


@cache
def sources() -> str:
    """Return a digest of all sources of the kernels.

    Numba invalidates cached code only if the function's own file changes, but kernels depend on
    every file of this package and on the cells' equations.
    """
    folders = (Path(__file__).parent, Path(rnncli.recurrence.__file__).parent)
    files = sorted(path for folder in folders for path in folder.glob("*.py"))
    stamps = [(path.name, (stat := path.stat()).st_mtime_ns, stat.st_size) for path in files]
    return str(stamps)


@instruction
def pointer(_: Any, code: Any, address: Any) -> tuple[Any, Any]:
    """Return an address as an unbounded array of the kernel's numbers, or of int64 for "int64"."""
    name = code.literal_value
    kind = types.int64 if name == "int64" else getattr(types, Shape.of(name).dtype)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[1], context.get_data_type(kind).as_pointer())

    return types.CPointer(kind)(code, address), emit
