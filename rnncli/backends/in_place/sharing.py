"""Sharing one evaluation among threads: directions, or every other sequence of a batch.

Wide batches are shared even where one thread does all.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rnncli.backends.in_place import tuning
from rnncli.backends.threads import threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from rnncli.recurrence.recurrence import Recurrence

# OpenBLAS as NumPy's wheels have it, and as systems do.
PREFIXES_AND_SUFFIXES = (("scipy_", "64_"), ("", "64_"), ("", ""))


def shares(recurrence: Recurrence, dtype: np.dtype[Any]) -> list[slice]:
    """Return the sequences of each share of a direction; one share for each is enough.

    Lengths differ at random, so every other sequence goes to another share. For each thread there
    are as many shares as its sequences are wider than OpenBLAS multiplies at full speed.
    """
    T, N, I = recurrence.X.shape  # noqa: E741 -- the specification's letter
    D, G, H, _ = recurrence.W.shape
    work = D * T * N * G * H * (I + H)
    if work < tuning.SHARED_WORK:
        return [slice(0, None, 1)]
    count = max(1, min(N, threads() // D))
    count *= max(1, N // count * dtype.itemsize // tuning.SHARED_BYTES)
    return [slice(k, None, count) for k in range(count)]


def share_of(recurrence: Recurrence, rows: slice) -> Recurrence:
    """Return a recurrence of some of the sequences."""
    if rows == slice(0, None, 1):
        return recurrence
    share = replace(
        recurrence,
        X=recurrence.X[:, rows],
        initial=tuple(state if state is None else state[:, rows] for state in recurrence.initial),
        lengths=None if recurrence.lengths is None else recurrence.lengths[rows],
    )
    share.constants = recurrence.constants
    return share


def at_once(tasks: Sequence[Callable[[], None]]) -> None:
    """Run tasks in as many threads as are allowed, or one after the other."""
    count = min(len(tasks), threads())
    groups = [partial(_in_turn, tasks[k::count]) for k in range(count)]
    if not (count > 1 and _all_at_once(groups)):
        _in_turn(tasks)


def _in_turn(tasks: Sequence[Callable[[], None]]) -> None:
    for task in tasks:
        task()


def _all_at_once(tasks: Sequence[Callable[[], None]]) -> bool:
    """Run each task in a thread of its own, unless the threads are busy with other tasks."""
    from rnncli.backends.crew import CREW  # with a pool, which a single thread never needs

    if not CREW.reserve():
        return False
    try:
        with one_blas_thread():
            CREW.run(tasks)
    finally:
        CREW.release()
    return True


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the BLAS from starting threads of its own; another one than OpenBLAS is left alone."""
    functions = _openblas()
    if functions is None:
        yield
        return
    get, set_ = functions
    before = get()
    set_(1)
    try:
        yield
    finally:
        set_(before)


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what gets and sets the number of threads of NumPy's own OpenBLAS.

    Symbols are looked up through NumPy's extension, so in the library that it was linked with.
    """
    library = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    for prefix, suffix in PREFIXES_AND_SUFFIXES:
        names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
        found = [getattr(library, name, None) for name in names]
        if all(found):
            return found[0], found[1]  # type: ignore[return-value]
    return None
