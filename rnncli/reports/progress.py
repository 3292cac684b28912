"""A progress bar on standard error, on a terminal only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from rich.progress import Progress


class progress_bar:  # noqa: N801 -- used like a function: `with progress_bar(10) as progress`
    """Counts finished targets; silent in a pipe and for a single target."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.bar: Progress | None = None

    def __enter__(self) -> Self:
        if self.total > 1 and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("running", total=self.total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar:
            self.bar.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bar away while something else is printed."""
        if self.bar:
            self.bar.stop()
        yield
        if self.bar:
            self.bar.start()

    def advance(self) -> None:
        """Count one more."""
        if self.bar:
            self.bar.advance(self.task)
