"""What `rnncli score` shows: scores by cell and dtype, survivors, and who alone catches what."""

from __future__ import annotations

import json
import math
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.files.atomic import write_text
from rnncli.judging.adequacy import Fate
from rnncli.reports.tables import draw_table, is_drawn, print_json_line, print_table
from rnncli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.judging.adequacy import Outcome
    from rnncli.judging.kill_matrix import KillMatrix, Row, Score

# What a matrix is written to, and what writes it; each is imported on use.
WRITERS = {
    "matrix": "rnncli.reports.scores:write_matrix",
    "html": "rnncli.reports.score_page:write_score_page",
}
COUNTS = ("vectors", "mutants", "killed", "acceptable", "survived", "unexercised", "percent")


def show_score(matrix: KillMatrix, *, as_json: bool, minimise: bool) -> None:
    """Print a score: the data to stdout, the sum of it in words to stderr.

    Args:
        matrix: what the suite sees.
        as_json: one object.
        minimise: the smallest subset found is printed, too.
    """
    if as_json:
        print_json_line(score_record(matrix, minimise=minimise))
    else:
        _print_tables(matrix)
        if minimise:
            _print("Enough", ("enough",), [(name,) for name in matrix.minimal_subset()])
    sys.stdout.flush()
    say(closing(matrix))


def score_record(matrix: KillMatrix, *, minimise: bool) -> dict[str, Any]:
    """Return all of a score but the single margins, as JSON holds it."""
    record: dict[str, Any] = {
        "suite": matrix.name,
        "rule": matrix.rule,
        "total": _counted(matrix.total),
        "cells": [_counted(score) for score in matrix.by_cell],
        "dtypes": [_counted(score) for score in matrix.by_dtype],
        "survivors": [
            {**each.bug._asdict(), "fate": each.fate, "margin": each.margin, "reason": each.reason}
            for each in matrix.survivors
        ],
        "vectors": [_vector(matrix, row) for row in matrix.rows],
        "unscored": dict(matrix.unscored),
    }
    return record | ({"minimal": matrix.minimal_subset()} if minimise else {})


def matrix_record(matrix: KillMatrix) -> dict[str, Any]:
    """Return a kill matrix whole, as JSON holds it."""
    return {
        "suite": matrix.name,
        "rule": matrix.rule,
        "vectors": [
            {
                "id": row.id,
                "cell": row.cell,
                "dtype": row.dtype,
                "mutants": {name: _outcome(found) for name, found in row.outcomes.items()},
            }
            for row in matrix.rows
        ],
        "unscored": dict(matrix.unscored),
    }


def write_scores(matrix: KillMatrix, files: Mapping[str, str | None]) -> None:
    """Write a kill matrix to files.

    Args:
        matrix: what the suite sees.
        files: kind, a key of `WRITERS` -> path; empty where none is wanted.

    Raises:
        InvalidRequest: the disk refuses.
        Unsupported: the extra `report` is not installed.
    """
    for kind, path in files.items():
        if path:
            pkgutil.resolve_name(WRITERS[kind])(Path(path), matrix)


def write_matrix(path: Path, matrix: KillMatrix) -> None:
    """Write a kill matrix as JSON, a line a vector.

    Raises:
        InvalidRequest: the disk refuses.
    """
    record = matrix_record(matrix)
    vectors = ",\n".join(json.dumps(each, allow_nan=False) for each in record.pop("vectors"))
    rest = json.dumps(record, ensure_ascii=False)[1:]
    write_text(path, f'{{"vectors": [\n{vectors}\n],\n{rest}\n')


def closing(matrix: KillMatrix) -> str:
    """Return the score in one sentence."""
    total = matrix.total
    readings = f", {total.acceptable} are other readings" if total.acceptable else ""
    left = f"; {len(matrix.unscored)} vectors are not scored" if matrix.unscored else ""
    return (
        f"{matrix.name}, {matrix.rule}: {total.killed} of {total.mutants} mutants are killed"
        f" by {total.vectors} vectors{readings}: {total.percent:.1f} %{left}"
    )


def _counted(score: Score) -> dict[str, Any]:
    return {"name": score.name, **{count: getattr(score, count) for count in COUNTS}}


def _vector(matrix: KillMatrix, row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "cell": row.cell,
        "dtype": row.dtype,
        "kills": row.kills,
        "only": matrix.only[row.id],
    }


def _outcome(found: Outcome) -> dict[str, Any]:
    """Return what is said of a mutant; infinity is text, and what is empty is left out."""
    margin = found.margin if found.margin < math.inf else "inf"
    record = {"fate": found.fate, "margin": margin, "reason": found.reason}
    if found.fate is Fate.EQUIVALENT:
        del record["margin"]
    return {name: value for name, value in record.items() if value != ""}


def _print_tables(matrix: KillMatrix) -> None:
    """Print the tables that have something to say."""
    groups = {"cell": matrix.by_cell, "dtype": matrix.by_dtype, "all": [matrix.total]}
    counted = [
        (by, score.name, *(getattr(score, count) for count in COUNTS))
        for by, scores in groups.items()
        for score in scores
    ]
    _print("Scores", ("by", "name", *COUNTS), counted)
    survivors = [(*each.bug, each.fate, each.margin, each.reason) for each in matrix.survivors]
    _print("Not killed", ("cell", "mutant", "fate", "margin", "reason"), survivors)
    alone = [
        (row.id, len(row.kills), ", ".join(only))
        for row in matrix.rows
        if (only := matrix.only[row.id])
    ]
    _print("Killed by one vector only", ("vector", "kills", "kills alone"), alone)


def _print(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Print a table, if it has rows; in a pipe an empty line stands between two."""
    if not rows:
        return
    if is_drawn():
        draw_table(columns, rows, title)
        return
    if title != "Scores":
        click.echo("")
    print_table(columns, rows)
