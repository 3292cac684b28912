"""Tables: drawn on a terminal, tab-separated in a pipe, JSON lines on request."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from rnncli.talk.terminal import drawing
from rnncli.talk.words import MOST_TIMES, one_line, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rich.console import JustifyMethod

# The width of a table that is drawn without a terminal.
ANY_WIDTH = 10_000
# Cells' padding on the left and right, the widest that fits; a divider stands between two columns.
PADDINGS = ((1, 1), (0, 1), (0, 0))
# Characters before the first column and after the last together.
BORDERS = 2
# The space between a number and seconds, which a title keeps on one line.
NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=s\b)")


def is_drawn() -> bool:
    """Whether tables are drawn: on a terminal, or if FORCE_COLOR demands it."""
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, whole: Collection[str] = ()
) -> None:
    """Print rows under a heading; on a narrow terminal `whole` columns are not folded."""
    if is_drawn():
        draw_table(columns, list(rows), whole=whole)
        return
    print_row(columns)
    for row in rows:
        print_row(row)


def print_records(
    columns: Sequence[str], records: Iterable[Mapping[str, Any]], *, as_json: bool
) -> None:
    """Print records as JSON lines, or as a table with a column for each entry."""
    if not as_json:
        print_table(columns, [tuple(record.values()) for record in records])
        return
    for record in records:
        print_json_line(record)


def print_row(row: Sequence[Any]) -> None:
    """Print one line of a tab-separated table."""
    click.echo("\t".join(_plain(cell) for cell in row))


def markdown_row(cells: Iterable[Any]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def _plain(cell: Any) -> str:
    """Return a cell on one line, whatever it contains."""
    return one_line(shown(cell))


def drawn(count: Any) -> Any:
    """Return a count or margin for a drawn table: three digits, and zero counts left blank."""
    if isinstance(count, float):
        return float(f"{count:.3g}") if count <= MOST_TIMES else f"over {MOST_TIMES}"
    return "" if count == 0 else count


def terminal_width() -> int:
    """Return the width for a table: the terminal's, or unlimited elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else ANY_WIDTH


def draw_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    title: str = "",
    *,
    whole: Collection[str] = (),
) -> None:
    """Draw a table, with a title above it.

    Cells are folded between words, except for numbers and columns that are `whole`. On a narrow
    terminal columns move together; if the words of a row still do not fit, each row becomes a
    paragraph.
    """
    import textwrap

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[_plain(cell) for cell in row] for row in (columns, *rows)]
    numeric = [any(isinstance(row[k], int | float) for row in rows) for k in range(len(columns))]
    kept = [name in whole or number for name, number in zip(columns, numeric, strict=True)]
    for left, right in PADDINGS:
        gaps = (left + 1 + right) * (len(columns) - 1)
        if widths := column_widths(cells, kept, terminal_width() - gaps):
            break
    else:
        _draw_paragraphs(title, cells)
        return
    # A number and its unit stay on one line: rich breaks at any kind of space.
    held = NUMBER_AND_UNIT.sub("\xa0", one_line(title))
    lines = textwrap.wrap(held, sum(widths) + gaps + BORDERS, break_on_hyphens=False)
    heading = Text("\n".join(lines).replace("\xa0", " "), style="bold") if title else None
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, right, 0, left),
        title=heading,
        title_justify="left",
    )
    for name, width, number in zip(cells[0], widths, numeric, strict=True):
        side: JustifyMethod = "right" if number else "left"
        table.add_column(Text(name), justify=side, width=width)
    for row in cells[1:]:
        table.add_row(*map(Text, row))
    Console(file=drawing(sys.stdout), width=terminal_width()).print(table)


def column_widths(cells: Sequence[Sequence[str]], whole: Sequence[bool], width: int) -> list[int]:
    """Return column widths at which no word is broken; [] if the terminal is too narrow.

    Each column fits its longest word. The remaining width goes step by step to the column that
    shows the smallest fraction of its longest cell.

    Args:
        cells: the cells of the headings and of all rows.
        whole: for each column, whether its cells below the heading are single words.
        width: the terminal's width without the gaps between columns.
    """
    from rich.cells import cell_len

    columns = list(zip(*cells, strict=True))
    words = [
        [
            *heading.split(),
            *(body if kept else [word for cell in body for word in cell.split()]),
            "",
        ]
        for (heading, *body), kept in zip(columns, whole, strict=True)
    ]
    widest = [max(map(cell_len, column)) for column in columns]
    widths = [max(map(cell_len, column)) for column in words]
    room = width - BORDERS
    if sum(widest) <= room:
        return widest
    if sum(widths) > room:
        return []
    for _ in range(room - sum(widths)):
        narrowest = min(range(len(widths)), key=lambda k: widths[k] / max(widest[k], 1))
        widths[narrowest] += 1
    return widths


def _draw_paragraphs(title: str, cells: Sequence[Sequence[str]]) -> None:
    """Print rows as paragraphs: the first cell, then the names and cells of the others."""
    from textwrap import TextWrapper

    wrapper = TextWrapper(
        *(terminal_width(), "  ", "  "), break_long_words=False, break_on_hyphens=False
    )
    if title:
        click.echo(one_line(title))
    (_, *names), *rows = cells
    for first, *others in rows:
        click.echo(first)
        said = "; ".join(
            f"{name}: {cell}" for name, cell in zip(names, others, strict=True) if cell
        )
        click.echo("\n".join(wrapper.wrap(said)))


def print_json_line(record: Mapping[str, Any]) -> None:
    """Print one object on one line; NaN and infinity become strings, as JSON has none.

    Unprintable characters are written as JSON escapes, so the text is unchanged.
    """
    import json

    from rnncli.files.described import jsonable

    line = json.dumps(jsonable(record), ensure_ascii=False, allow_nan=False)
    click.echo(line if line.isprintable() else json.dumps(jsonable(record), allow_nan=False))
