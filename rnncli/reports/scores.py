"""The output of `rnncli score`, and the page of its kill matrix."""

from __future__ import annotations

import json
import math
import sys
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import click

from rnncli.files.atomic import write_text
from rnncli.files.seals import JSON, MARKUP
from rnncli.judging.scoring.adequacy import Fate
from rnncli.judging.scoring.kill_matrix import (
    CoverageItem,
    coverage_of,
    every,
    fate_of,
    of_family,
    of_reach,
    score,
)
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.structural import STRUCTURAL, UNREACHED, Reach
from rnncli.reports.html import LETTERS, TOLERANCE, letter
from rnncli.reports.pages import rendered
from rnncli.reports.screen import TerminalRows
from rnncli.reports.tables import draw_table, is_drawn, print_json_line, print_table
from rnncli.talk.terminal import folded, say, show_text
from rnncli.talk.words import counted, listed, one_line, plural, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rnncli.judging.scoring.adequacy import Outcome
    from rnncli.judging.scoring.kill_matrix import KillMatrix, Score, Survivor


# Kind of file -> its writer, imported on use.
WRITERS = {
    "matrix": "rnncli.reports.scores:write_matrix",
    "html": "rnncli.reports.scores:write_score_page",
}
OF_A_DEVICE = ("device", "tried", "outside")
MORE = "-v shows the families of mutants, what is covered and what is not, and every mutant"
COUNTS = ("vectors", "mutants", "killed", "acceptable", "survived", "unexercised", "percent")


# The fates of mutants: the counts of a score, and their meanings.
FATES = {
    "killed": "told from the reference by a vector's tolerances",
    "acceptable": "answers as another reading of the specification: no bug",
    "survived": "exercised, but within tolerance everywhere",
    "unexercised": "no vector can show it",
}


def show_score(matrix: KillMatrix, *, as_json: bool, minimise: bool, verbose: bool = False) -> None:
    """Print a score: data to stdout, the totals in words to stderr.

    On a terminal that is a table of scores, and why mutants are not killed, as far as there is
    room, unless `verbose` asks for all tables.
    """
    last = [score_sentence(matrix), structure_sentence(matrix)]
    last += [device_sentence(matrix)] if matrix.device else []
    if as_json:
        print_json_line(score_record(matrix, minimise=minimise))
    elif is_drawn() and not verbose:
        screen = TerminalRows()
        last = [MORE, *last]
        screen.take(last)
        scores = _scores(matrix)
        if screen.has_table(len(scores)):
            _print("", ("by", "name", *COUNTS), scores)
        reasons = _reasons(matrix, screen.width)
        blocks = [[line] for line in reasons]
        for line in screen.fitted(blocks, reasons, lambda n: f"... after these {n} reasons"):
            show_text(one_line(line))
    else:
        _print_tables(matrix)
    if minimise and not as_json:
        _print("Enough", ("enough",), [(name,) for name in matrix.minimal_subset()])
    sys.stdout.flush()
    for sentence in last:
        say(sentence)


def _reasons(matrix: KillMatrix, width: int) -> list[str]:
    """Return why mutants are not killed, in lines: bugs first, then other readings.

    Each names as many mutants as two rows of a terminal have room for.
    """

    def naming(head: str, names: Sequence[str]) -> str:
        lines = (f"{head}: {listed(names, most)}" for most in range(len(names), 0, -1))
        return next((line for line in lines if len(folded(line, width)) <= 2), head)

    alike: dict[tuple[str, str], list[str]] = {}
    for each in sorted(matrix.survivors, key=lambda each: each.fate is Fate.ACCEPTABLE):
        named = f"{each.bug.mutant} of {each.bug.cell}"
        alike.setdefault((str(each.fate), each.reason), []).append(named)
    lines = [
        naming(f"{len(ids)} {fate}{reason and f', {reason}'}", ids)
        for (fate, reason), ids in alike.items()
    ]
    structural = [
        naming(f"{count} structural, {why}", ids.split(", ") if ids else [])
        for count, why, ids in structural_reasons(matrix.structural)
    ]
    bugs = [line for line in lines if str(Fate.ACCEPTABLE) not in line.split(",", 1)[0]]
    return [*bugs, *structural, *lines[len(bugs) :]]


def score_record(matrix: KillMatrix, *, minimise: bool) -> dict[str, Any]:
    """Return a score without the single margins, as JSON values."""
    structural = matrix.structural
    record: dict[str, Any] = {
        "suite": matrix.name,
        "rule": matrix.rule,
        "total": _counted(matrix.total),
        "cells": [_counted(score) for score in matrix.by_cell],
        "dtypes": [_counted(score) for score in matrix.by_dtype],
        "families": [_counted(score) for score in matrix.by_family],
        "data_sets": [_counted(score) for score in matrix.by_data_set],
        "structural": {
            "total": _counted(structural.total),
            "reach": [_counted(score) for score in structural.by_reach],
            "families": [_counted(score) for score in structural.by_family],
            "survivors": [_survivor(each) for each in structural.survivors],
        },
        "coverage": [each._asdict() for each in coverage_of(matrix.rows)],
        "survivors": [_survivor(each) for each in matrix.survivors],
        "vectors": [
            {
                "id": row.id,
                "cell": row.cell,
                "dtype": row.dtype,
                "kills": row.kills,
                "only": matrix.only[row.id],
            }
            for row in matrix.rows
        ],
        "unscored": dict(matrix.unscored),
        **({name: getattr(matrix, name) for name in OF_A_DEVICE} if matrix.device else {}),
    }
    return record | ({"minimal": matrix.minimal_subset()} if minimise else {})


def _survivor(each: Survivor) -> dict[str, Any]:
    return {**each.bug._asdict(), "fate": each.fate, "margin": each.margin, "reason": each.reason}


def matrix_record(matrix: KillMatrix) -> dict[str, Any]:
    """Return a complete kill matrix as JSON values."""
    return {
        "suite": matrix.name,
        "rule": matrix.rule,
        "vectors": [
            {
                "id": row.id,
                "cell": row.cell,
                "dtype": row.dtype,
                "mutants": {name: _outcome(found) for name, found in row.outcomes.items()},
                "structural": {name: _outcome(found) for name, found in row.structural.items()},
            }
            for row in matrix.rows
        ],
        "unscored": dict(matrix.unscored),
    }


def write_matrix(path: Path, matrix: KillMatrix) -> None:
    """Write a kill matrix as JSON, one line per vector."""
    record = matrix_record(matrix)
    vectors = ",\n".join(json.dumps(each, allow_nan=False) for each in record.pop("vectors"))
    rest = json.dumps(record, ensure_ascii=False)[1:]
    write_text(path, f'{{"vectors": [\n{vectors}\n],\n{rest}\n', JSON)


def score_sentence(matrix: KillMatrix) -> str:
    """Return the score in one sentence."""
    total = matrix.total
    other = counted(total.acceptable, "is another reading", "are other readings")
    readings = f", {other}" if total.acceptable else ""
    unscored = counted(len(matrix.unscored), "vector is", "vectors are")
    left = f"; {unscored} not scored" if matrix.unscored else ""
    return (
        f"{matrix.name}, {matrix.rule}: {total.killed} of {total.mutants} mutants"
        f" {plural(total.killed, 'is', 'are')} killed by {counted(total.vectors, 'vector')}"
        f"{readings}: {total.percent:.1f} %{left}"
    )


def device_sentence(matrix: KillMatrix) -> str:
    """Return what is outside of the device whose cases count, and how that was found."""
    bugs, others = counted(matrix.outside, "mutant"), counted(matrix.tried, "other case")
    return f"outside: {bugs}, which {others} within {matrix.device} did not show either"


def structure_sentence(matrix: KillMatrix) -> str:
    """Return the score of the structural mutants in one sentence."""
    structural = matrix.structural
    if not structural.total.mutants:
        return "structural mutants: none applies"
    parts = ", ".join(
        f"{each.name} {each.killed} of {each.mutants}" for each in structural.by_reach
    )
    return f"structural mutants: {parts}: {structural.total.percent:.1f} %"


def _counted(score: Score) -> dict[str, Any]:
    return {"name": score.name, **{count: getattr(score, count) for count in COUNTS}}


def _outcome(found: Outcome) -> dict[str, Any]:
    """Return the record of a mutant's outcome; infinity becomes text, empty fields are omitted."""
    margin = found.margin if found.margin < math.inf else "inf"
    told = {} if found.fate is Fate.EQUIVALENT else {"margin": margin}
    return {"fate": found.fate, **told, **({"reason": found.reason} if found.reason else {})}


def _scores(matrix: KillMatrix) -> list[tuple[Any, ...]]:
    groups = {
        "cell": matrix.by_cell,
        "dtype": matrix.by_dtype,
        "data set": matrix.by_data_set[1:] and matrix.by_data_set,
        "all": [matrix.total],
    }
    return [
        (by, score.name, *(getattr(score, count) for count in COUNTS))
        for by, scores in groups.items()
        for score in scores
    ]


def _print_tables(matrix: KillMatrix) -> None:
    _print("Scores", ("by", "name", *COUNTS), _scores(matrix))
    families = [(each.name, _counts(each), round(each.percent, 1)) for each in matrix.by_family]
    _print("Families", ("family", "killed", "percent"), families)
    columns = ("family", "killed", "percent", *map(str, Reach))
    _print("Structural mutants", columns, structural_lines(matrix.structural))
    _print("Covered", CoverageItem._fields, coverage_of(matrix.rows))
    survivors = [(*each.bug, each.fate, each.margin, each.reason) for each in matrix.survivors]
    _print("Not killed", ("cell", "mutant", "fate", "margin", "reason"), survivors)
    _print(
        "Structural, not killed", ("mutants", "why", "which"), structural_reasons(matrix.structural)
    )
    alone = [
        (row.id, len(row.kills), ", ".join(only))
        for row in matrix.rows
        if (only := matrix.only[row.id])
    ]
    _print("Killed by one vector only", ("vector", "kills", "kills alone"), alone)


def structural_lines(matrix: KillMatrix) -> list[tuple[Any, ...]]:
    """Return a line for each family of structural mutants, and one for all."""

    def killed(keep: Callable[[str], bool], reach: Reach) -> str:
        reached = of_reach(reach)
        return _counts(score("", matrix.rows, lambda mutant: keep(mutant) and reached(mutant)))

    families = [*((each, of_family(each.name)) for each in matrix.by_family), (matrix.total, every)]
    return [
        (
            *(found.name, _counts(found), round(found.percent, 1)),
            *(killed(keep, reach) for reach in Reach),
        )
        for found, keep in families
    ]


def _counts(found: Score) -> str:
    return f"{found.killed} of {found.mutants}" if found.mutants else "-"


def structural_reasons(matrix: KillMatrix) -> list[tuple[int, str, str]]:
    """Return counts, reasons and names of structural mutants not killed, largest count first.

    Mutants whose sizes no vector has are counted together, by axis.
    """
    unreached = [each for each in matrix.survivors if is_unreached(each)]
    found = []
    for axis, alike in groupby(sorted(unreached, key=_axis), key=_axis):
        sizes = [STRUCTURAL[each.bug.mutant].size for each in alike]
        edges = sorted({size.edge for size in sizes if size and "=" not in axis})
        what = f"{axis} {', '.join(map(str, edges))}".strip() if axis else str(Reach.CALLS)
        found.append((len(sizes), f"never reached: {what}", ""))
    others: dict[str, list[str]] = {}
    for each in matrix.survivors:
        if each not in unreached:
            never, *reasons = each.reason.split(": ", 1)
            why = each.reason
            if never == "never exercised":  # without sizes that the mutant's id already gives
                parts = reasons[0].split("; or ")
                kept = [part for part in parts if not part.startswith(UNREACHED)]
                why = f"{never}: {'; or '.join(kept)}"
            others.setdefault(why, []).append(each.bug.mutant)
    found += [(len(ids), why, ", ".join(dict.fromkeys(ids))) for why, ids in others.items()]
    return sorted(found, key=lambda line: -line[0])


def is_unreached(survivor: Survivor) -> bool:
    """Whether no vector meets a structural mutant's condition: its size, or a second call."""
    row = STRUCTURAL[survivor.bug.mutant]
    wanted = row.size.words if row.size else str(row.reach)
    return survivor.reason == f"never exercised: {UNREACHED}{wanted}"


def _axis(survivor: Survivor) -> str:
    """Return the axis of a structural mutant's size, or ""."""
    size = STRUCTURAL[survivor.bug.mutant].size
    return size.words if size and "=" in size.words else f"{size.axis} beyond" if size else ""


def _print(title: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table unless it is empty; in a pipe, separate tables by an empty line."""
    if not rows:
        return
    if is_drawn():
        draw_table(columns, rows, title)
        return
    if title != "Scores":
        click.echo("")
    print_table(columns, rows)


def write_score_page(path: Path, matrix: KillMatrix) -> None:
    """Write a page with the scores, the picture, the survivors and the sole killers."""
    write_text(path, score_page(matrix), MARKUP)


def score_page(matrix: KillMatrix) -> str:
    """Return the page."""
    structural = matrix.structural
    return rendered(
        "scores",
        matrix=matrix,
        fates=FATES,
        data=score_data(matrix),
        reach=list(Reach),
        structural=structural_lines(structural),
        unseen=structural_reasons(structural),
        coverage=coverage_of(matrix.rows),
    )


def score_data(matrix: KillMatrix) -> dict[str, Any]:
    """Return the matrix as data for the page's script: a letter per outcome, each reason once.

    Each cell has its mutants by family; of each vector `fates` has the first letter of each
    mutant's fate in that order, `margins` its margin's letter, see `html.letter`, and `why`
    the number of a reason for each that is equivalent or acceptable.
    """
    reasons: dict[str, int] = {}
    enough = set(matrix.minimal_subset())
    cells = []
    for cell in matrix.by_cell:
        rows = [row for row in matrix.rows if row.cell == cell.name]
        # In the order of their table, grouped by family.
        families: dict[str, list[str]] = {}
        for mutant in rows[0].outcomes:
            families.setdefault(MUTANTS[mutant].family, []).append(mutant)
        mutants = [*chain.from_iterable(families.values())]
        vectors = []
        for row in rows:
            outcomes = [row.outcomes[mutant] for mutant in mutants]
            said = [each for each in outcomes if each.fate in {Fate.ACCEPTABLE, Fate.EQUIVALENT}]
            vectors.append(
                {
                    "id": visible(row.id),
                    "dtype": row.dtype,
                    "enough": row.id in enough,
                    "only": [mutants.index(mutant) for mutant in matrix.only[row.id]],
                    "fates": "".join(each.fate[0] for each in outcomes),
                    "margins": "".join(letter(each.margin) for each in outcomes),
                    "why": [reasons.setdefault(each.reason, len(reasons)) for each in said],
                }
            )
        fates = [fate_of(row.outcomes[mutant] for row in rows) for mutant in mutants]
        cells.append(
            {
                "name": cell.name,
                "mutants": [[m, MUTANTS[m].family, MUTANTS[m].sentence] for m in mutants],
                "fates": "".join(fate[0] for fate in fates),
                "vectors": vectors,
            }
        )
    return {
        "letters": LETTERS,
        "tolerance": TOLERANCE,
        "cells": cells,
        "reasons": list(map(visible, reasons)),
    }
