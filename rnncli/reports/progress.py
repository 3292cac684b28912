"""A progress bar on standard error, only on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rnncli.talk.terminal import drawing, guard_streams
from rnncli.talk.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress


class progress_bar:  # noqa: N801 -- used like a function: `with progress_bar(10) as progress`
    """A count of finished items with rate and remaining time; silent in a pipe and for one item.

    Args:
        total: the number of items; 0 if `reach` sets it.
        unit: the name of the items.
        still: whether to draw only on progress instead of continuously in a thread, which would
            disturb measurements.
    """

    def __init__(self, total: int = 0, unit: str = "targets", *, still: bool = False) -> None:
        self.total = total
        self.unit = unit
        self.still = still
        self.done = 0
        self.bar: Progress | None = None

    def __enter__(self) -> Self:
        self._draw()
        return self

    def _draw(self) -> None:
        if self.total > 1 and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            self.bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(self.unit),
                TextColumn("{task.fields[rate]}"),
                TextColumn("{task.fields[note]}", markup=False),
                TimeRemainingColumn(),
                console=Console(file=drawing(sys.stderr)),
                transient=True,
                auto_refresh=not self.still,
                redirect_stdout=False,  # to standard error
            )
            self._start()
            self.task = self.bar.add_task(self.unit, total=self.total, rate="", note="")

    def __exit__(self, *failure: object) -> None:
        if self.bar:
            self.bar.stop()

    def _start(self) -> None:
        if self.bar:
            self.bar.start()
            guard_streams()  # once more: rich has replaced ours with its own

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the bar while something else is printed."""
        if self.bar:
            self.bar.stop()
        yield
        self._start()

    def reach(self, done: int, total: int, note: str = "") -> None:
        """Set the number of finished items and of all items; draw from the first call on."""
        if not self.total:
            self.total = total
            self._draw()
        self.advance(done - self.done, note)

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count more items; a note stays beside the bar until the next one."""
        self.done += count
        if self.bar:
            self.bar.advance(self.task, count)
            speed = self.bar.tasks[0].speed
            rate = f"{speed:.3g}/s" if speed else ""
            self.bar.update(self.task, rate=rate, note=one_line(note), refresh=self.still)
