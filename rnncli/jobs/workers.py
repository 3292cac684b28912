"""Workers: who does the work of a run, and the table of what they run on."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rnncli.errors import Unsupported
from rnncli.options import OptionKind, OptionValues, check, option
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.jobs.processes import Outcome, Task


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
    """One executor."""

    where: str  # "module:attribute", imported on first use
    summary: str  # one line for help
    shares_files: bool  # whether this process surely sees the files that a task writes
    extra: str = ""  # the extra that it needs, or ""


EXECUTORS: Mapping[str, ExecutorRow] = {
    "processes": ExecutorRow(
        "rnncli.jobs.processes:in_processes",
        "processes on this machine",
        shares_files=True,
    ),
    "dask": ExecutorRow(
        "rnncli.jobs.dask_cluster:on_cluster",
        "a Dask cluster: the one at --scheduler, else one started here",
        shares_files=False,
        extra="dask",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers(OptionValues):
    """Who does the work of a run.

    Attributes:
        jobs: Number of workers, with one BLAS thread each.
        executor: Run workers as processes on this machine, or on a Dask cluster (extra `dask`).
        scheduler: Address of the Dask cluster; without it one with -j workers is started here.

    Raises:
        InvalidRequest: there are no workers, or the executor is unknown.
    """

    jobs: int = option(1, "-j", kind=OptionKind.COUNT, least=1)
    executor: str = option("processes", kind=OptionKind.NAME, known=EXECUTORS)
    scheduler: str = option("", metavar="ADDRESS")

    def __post_init__(self) -> None:
        check(self)

    @property
    def are_here(self) -> bool:
        """Whether all work is done in this process."""
        return self == HERE

    @property
    def share_files(self) -> bool:
        """Whether this process surely sees the files that they write."""
        return EXECUTORS[self.executor].shares_files

    def expect(self, *modules: str) -> None:
        """Let workers begin to import modules, while this process reads what they work on."""
        if self.jobs > 1 and self.executor == "processes":
            from rnncli.jobs.processes import prepare

            prepare(*modules)

    def run(
        self, function: Callable[[Task], Outcome], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield (index of the task, outcome) in order of completion.

        Raises:
            InvalidRequest: a worker was killed, or no scheduler answers.
            Unsupported: the executor's package cannot be imported.
        """
        if self.are_here:
            return enumerate(map(function, tasks))
        row = EXECUTORS[self.executor]
        try:
            executor: Executor = pkgutil.resolve_name(row.where)
        except ImportError as error:
            hint = f"; install it with: {install_line(row.extra)}" if row.extra else ""
            raise Unsupported(
                f"executor '{self.executor}' does not import: {error}{hint}"
            ) from error
        return executor(function, tasks, jobs=self.jobs, scheduler=self.scheduler)

    def in_batches(
        self,
        function: Callable[[Sequence[str]], Outcome],
        ids: Sequence[str],
        *,
        most: int,
        each: int = 4,
    ) -> Iterator[Outcome]:
        """Yield outcomes as they come, of batches of at most `most` cases, `each` a worker."""
        size = max(1, min(most, len(ids) // (each * self.jobs)))
        batches = [ids[k : k + size] for k in range(0, len(ids), size)]
        for _, outcome in self.run(function, batches) if ids else ():
            yield outcome


# This process alone.
HERE = Workers()


def in_order(pairs: Iterator[tuple[int, Outcome]]) -> Iterator[Outcome]:
    """Yield outcomes in the order of their tasks, each as early as possible."""
    waiting: dict[int, Outcome] = {}
    due = 0
    for index, outcome in pairs:
        waiting[index] = outcome
        while due in waiting:
            yield waiting.pop(due)
            due += 1
