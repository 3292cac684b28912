"""What a terminal shows of a report: as much as a screen has room for, and what shows the rest."""

from __future__ import annotations

import sys
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from rnncli.talk.terminal import in_two_rows, rows_of, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Rows of a report on a terminal.
ROWS = 40
# Rows of a drawn table that are not its own: empty ones, the heading, and the line below it.
OF_HEADING = 5


class TerminalRows:
    """The rows of a terminal that are left; all that anybody wants if nothing must be short.

    Args:
        verbose: whether all is shown, as in a pipe.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self.width = 0 if verbose else width_of(sys.stderr)
        self.rows = ROWS if self.width else sys.maxsize

    def take(self, lines: Iterable[str]) -> None:
        """Count the rows that lines take."""
        self.rows -= rows_of(lines, self.width) if self.width else 0

    def has_table(self, rows: int) -> bool:
        """Whether there is room for a table; if so, it is taken."""
        fits = rows + OF_HEADING <= self.rows
        self.rows -= (rows + OF_HEADING) * fits if self.width else 0
        return fits

    def fitted(
        self,
        blocks: Sequence[Sequence[str]],
        lines: Sequence[str],
        rest: Callable[[int], str],
        most: int = sys.maxsize,
    ) -> list[str]:
        """Return the lines of blocks; if they are too many, some blocks have one, and some none.

        Args:
            blocks: the lines of each, the most important block first.
            lines: each block in one line, which is cut to two rows.
            rest: returns a last line, which says how to see all, if only so many blocks are shown.
            most: the most rows to take.
        """
        every = [*chain(*blocks)]
        most = min(most, self.rows)
        if rows_of(every, self.width) <= most or not self.width:
            self.take(every)
            return every
        short = [in_two_rows(line, self.width) for line in lines]
        costs = [rows_of([line], self.width) for line in short]
        room = most - rows_of([rest(0)], self.width)
        count = sum(total <= room for total in accumulate(costs))
        room -= sum(costs[:count])
        shown: list[str] = []
        for block, line, cost in zip(blocks[:count], short, costs, strict=False):
            more = rows_of(block, self.width) - cost
            shown += block if more <= room else [line]
            room -= more if more <= room else 0
        shown.append(rest(count))
        self.take(shown)
        return shown
