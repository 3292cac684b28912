"""The table of executors."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from rnncli.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


class Executor(Protocol):
    """A function that applies a function to tasks; all arguments and outcomes must be picklable."""

    def __call__(
        self,
        function: Callable[[Task], Outcome],
        tasks: Sequence[Task],
        *,
        jobs: int,
        scheduler: str,
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield (index of the task, outcome) in order of completion."""


class ExecutorRow(NamedTuple):
    """One executor.

    Attributes:
        where: "module:attribute", imported on first use.
        summary: one line for help.
        shares_files: whether this process surely sees the files that a task writes.
        extra: the extra that it needs, or "".
    """

    where: str
    summary: str
    shares_files: bool
    extra: str = ""


EXECUTORS: Mapping[str, ExecutorRow] = {
    "processes": ExecutorRow(
        "rnncli.executors.processes:in_processes",
        "processes on this machine",
        shares_files=True,
    ),
    "dask": ExecutorRow(
        "rnncli.executors.dask_cluster:on_cluster",
        "a Dask cluster: the one at --scheduler, else one started here",
        shares_files=False,
        extra="dask",
    ),
}


def executor_named(name: str) -> Executor:
    """Import and return an executor.

    Raises:
        Unsupported: its package cannot be imported.
    """
    row = EXECUTORS[name]
    try:
        found: Any = pkgutil.resolve_name(row.where)
    except ImportError as error:
        hint = f"; install it with: pip install 'rnncli[{row.extra}]'" if row.extra else ""
        raise Unsupported(f"executor '{name}' does not import: {error}{hint}") from error
    return found  # type: ignore[no-any-return]


def in_order(pairs: Iterator[tuple[int, Outcome]]) -> Iterator[Outcome]:
    """Yield outcomes in the order of their tasks, each as early as possible."""
    waiting: dict[int, Outcome] = {}
    due = 0
    for index, outcome in pairs:
        waiting[index] = outcome
        while due in waiting:
            yield waiting.pop(due)
            due += 1
