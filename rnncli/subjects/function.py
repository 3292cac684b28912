"""A Python function as an implementation under test, called in this process."""

from __future__ import annotations

import copy
import os
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from rnncli.errors import RnncliError
from rnncli.packs.vector import REFUSALS, Attempt, attempt_of, crashed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.packs.vector import Vector


@contextmanager
def _without_exit() -> Iterator[None]:
    """Make `os._exit` in this process a SystemExit: it would end the run with any exit code."""
    really, own = os._exit, os.getpid()

    def end(status: int) -> NoReturn:
        if os.getpid() != own:  # a child, which ends so
            really(status)
        raise SystemExit(status)

    os._exit = end
    try:
        yield
    finally:
        os._exit = really


class FunctionSubject:
    """An implementation given as a function from a vector to its outputs.

    It refuses a case by raising NotImplementedError, ValueError or an RnncliError.

    Args:
        function: takes a vector; returns arrays by name, or in the order of
            `vector.record.outputs`.
        name: its name in reports.
        raises: whether any other exception propagates instead of counting as a crash of that case.
    """

    def __init__(
        self, function: Callable[[Vector], Any], name: str = "function", *, raises: bool = False
    ) -> None:
        self.name = name
        self._function = function
        self._raises = raises

    def describe(self) -> Mapping[str, str]:
        """Return an empty mapping: a function has no version."""
        return {}

    def attempt(self, vector: Vector) -> Attempt:
        """Call the function on a vector of its own, so that it changes nothing that is judged by.

        One that ends this process has crashed, as a program has that ends before its answer.

        Raises:
            Exception: if `raises`, any exception that is not a refusal; also TypeError or
                InvalidRequest if the function returns no outputs.
        """
        start = time.perf_counter()
        try:
            with _without_exit():
                attempt_made = self._attempt(vector)
        except (Exception, SystemExit) as error:
            if self._raises:
                raise
            attempt_made = crashed(error)
        return replace(attempt_made, seconds=time.perf_counter() - start)

    def _attempt(self, vector: Vector) -> Attempt:
        try:
            outputs = self._function(copy.deepcopy(vector))
        except (*REFUSALS, RnncliError) as refusal:
            return attempt_of(vector, refusal)
        if outputs is None:
            raise TypeError("the function returned None; it must return the outputs")
        return attempt_of(vector, outputs)

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Call the function on each data set of one model, in turn."""
        return [self.attempt(vector) for vector in vectors]

    def close(self) -> None:
        """Do nothing: a function holds no process."""
