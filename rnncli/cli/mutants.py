"""`rnncli mutants`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.options import Name, json_option
from rnncli.reports.tables import print_json_line, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.mutants.mutant import Mutant


def _ids() -> Iterable[str]:
    from rnncli.mutants.table import MUTANTS

    return MUTANTS


def _cells() -> Iterable[str]:
    from rnncli.recurrence.cells import CELLS

    return CELLS


def _known_cell(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Return a cell's name as we spell it."""
    if value is None:
        return None
    for name in _cells():
        if name.casefold() == value.casefold():
            return name
    known = ", ".join(_cells())
    raise click.BadParameter(f"'{value}' is not one of {known}", context, option)


@click.command()
@click.argument("id", type=Name("id", _ids), required=False)
@click.option(
    "--cell",
    type=Name("cell", _cells),
    callback=_known_cell,
    help="Only those of one cell, such as LSTM.",
)
@json_option
def mutants(id: str | None, cell: str | None, as_json: bool) -> None:  # noqa: A002 -- the argument
    """List the mutants, plausible kernel bugs, or explain one.

    `rnncli verify` and `rnncli diagnose` name what is wrong by these ids. `rnncli score` scores
    suites by those that are no finer variant of another. Each is a backend as well: --backend
    mutant:ID runs it wherever a backend runs.
    """
    from rnncli.mutants.table import MUTANTS, is_scored, mutant_named

    rows = [mutant_named(id)] if id else list(MUTANTS.values())
    rows = [row for row in rows if cell is None or cell in row.cells]
    if as_json:
        for row in rows:
            print_json_line({**_record(row), "scored": is_scored(row.id)})
    elif id:
        for row in rows:
            click.echo(_page(row) + ("" if is_scored(row.id) else FINER))
    else:
        columns = ("mutant", "cells", "family", "what goes wrong")
        print_table(columns, [(m.id, " ".join(m.cells), m.family, m.sentence) for m in rows])


FINER = "\n  a finer variant of others: no suite is scored by it"


def _record(row: Mutant) -> dict[str, Any]:
    return {
        "id": row.id,
        "cells": list(row.cells),
        "family": row.family,
        "sentence": row.sentence,
        "effect": row.effect,
    }


def _page(row: Mutant) -> str:
    lines = (
        f"{row.id}, of {' '.join(row.cells)}; family: {row.family}",
        f"  what goes wrong: {row.sentence}",
        f"  what is seen:    {row.effect}",
        f"  to run it:       --backend mutant:{row.id}",
    )
    return "\n".join(lines)
