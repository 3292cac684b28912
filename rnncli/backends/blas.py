"""The threads of NumPy's OpenBLAS, which are limited while evaluations multiply large matrices.

OpenBLAS shares a product among all processors from a size on at which that takes longer and costs
several times the processor time: 256 x 128 x 64 took 5.6 ms on two busy processors, where one
thread takes 0.1 ms. Its threads go on spinning for milliseconds after each product.

Functions of the library are called directly. threadpoolctl takes ten times as long, and limits
nothing in a second thread while a first one holds a limit.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from rnncli.backends.threads import threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    P = ParamSpec("P")
    R = TypeVar("R")

# The most multiplications in a product that OpenBLAS leaves to one thread: by the processor time of
# products in float32 and float64, on 2026-11-23, on an AMD EPYC (AVX-512) with NumPy 2.4.
UNSHARED_PRODUCT = 1 << 19
# Symbol names of OpenBLAS in NumPy's wheels and in system packages.
PREFIXES_AND_SUFFIXES = (("scipy_", "64_"), ("", "64_"), ("", ""))


def bounded(function: Callable[P, R], multiplications: int) -> Callable[P, R]:
    """Return a function that leaves OpenBLAS no more than `threads()` threads.

    Args:
        function: a function that multiplies matrices.
        multiplications: how many it does at most; for few the function itself is returned.
    """
    if multiplications <= UNSHARED_PRODUCT:
        return function

    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        count = threads()
        LIMITS.add(count)
        try:  # a context manager takes as long as the rest
            return function(*args, **kwargs)
        finally:
            LIMITS.remove(count)

    return limited


class BlasLimits:
    """The limits of OpenBLAS that the evaluations now running ask for.

    OpenBLAS has one number of threads for the process: the smallest limit holds for all, and none
    raises the caller's number, which returns with the end of the last evaluation.
    """

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Forget all evaluations: a forked child does not have its parent's."""
        self._lock = Lock()
        self._limits: list[int] = []
        self._callers = 0

    @contextmanager
    def at_most(self, count: int) -> Iterator[None]:
        """Limit OpenBLAS to a number of threads; other BLAS libraries are left alone."""
        self.add(count)
        try:
            yield
        finally:
            self.remove(count)

    def add(self, count: int) -> None:
        """Begin an evaluation that asks for a limit."""
        if library := openblas():
            with self._lock:
                now = library[0]()
                if not self._limits:
                    self._callers = now
                self._limits.append(count)
                if count < now:
                    library[1](count)

    def remove(self, count: int) -> None:
        """End one."""
        if library := openblas():
            with self._lock:
                self._limits.remove(count)
                wanted = min([self._callers, *self._limits])
                if library[0]() != wanted:
                    library[1](wanted)


LIMITS = BlasLimits()


@cache
def openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that get and set the number of threads of NumPy's OpenBLAS.

    Symbols are looked up through a NumPy extension, so in the library that it is linked with.
    """
    try:
        library = ctypes.CDLL(import_module("numpy.linalg.lapack_lite").__file__)
    except ImportError:  # this NumPy has no such extension
        return None
    for prefix, suffix in PREFIXES_AND_SUFFIXES:
        names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
        functions = [getattr(library, name, None) for name in names]
        if all(functions):
            return functions[0], functions[1]  # type: ignore[return-value]
    return None
