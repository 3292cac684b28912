"""A kill matrix as a self-contained page: mutants by vectors, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.judging.scoring.adequacy import Fate
from rnncli.judging.scoring.kill_matrix import coverage_of, fate_of
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.structural.bug import Reach
from rnncli.reports.page_data import LETTERS, TOLERANCE, letter
from rnncli.reports.pages import rendered, write_page
from rnncli.reports.scores import structural_lines, structural_reasons
from rnncli.talk.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rnncli.judging.scoring.adequacy import Outcome
    from rnncli.judging.scoring.kill_matrix import KillMatrix

# The fates of mutants: the counts of a score, and their meanings.
FATES = {
    "killed": "told from the reference by a vector's tolerances",
    "acceptable": "answers as another reading of the specification: no bug",
    "survived": "exercised, but within tolerance everywhere",
    "unexercised": "no vector can show it",
}


def write_score_page(path: Path, matrix: KillMatrix) -> None:
    """Write a page with the scores, the picture, the survivors and the sole killers.

    Raises:
        Unsupported: the extra `report` is not installed.
        rnncli.errors.InvalidRequest: the file cannot be written.
    """
    write_page(path, score_page(matrix))


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
    mutant's fate in that order, `margins` its margin's letter, see `page_data.letter`, and `why`
    the number of a reason for each that is equivalent or acceptable.
    """
    reasons: dict[str, int] = {}
    return {
        "letters": LETTERS,
        "tolerance": TOLERANCE,
        "cells": [_cell(matrix, score.name, reasons) for score in matrix.by_cell],
        "reasons": list(map(visible, reasons)),
    }


def _cell(matrix: KillMatrix, name: str, reasons: dict[str, int]) -> dict[str, Any]:
    rows = [row for row in matrix.rows if row.cell == name]
    mutants = _by_family(rows[0].outcomes)
    enough = set(matrix.minimal_subset())
    return {
        "name": name,
        "mutants": [[mutant, *_about(mutant)] for mutant in mutants],
        "fates": "".join(fate_of(row.outcomes[mutant] for row in rows)[0] for mutant in mutants),
        "vectors": [
            {
                "id": visible(row.id),
                "dtype": row.dtype,
                "enough": row.id in enough,
                "only": [mutants.index(mutant) for mutant in matrix.only[row.id]],
                **_outcomes([row.outcomes[mutant] for mutant in mutants], reasons),
            }
            for row in rows
        ],
    }


def _by_family(names: Iterable[str]) -> list[str]:
    """Return mutants in the order of their table, grouped by family."""
    names = list(names)
    families = list(dict.fromkeys(_about(name)[0] for name in names))
    return sorted(names, key=lambda name: families.index(_about(name)[0]))


def _about(mutant: str) -> tuple[str, str]:
    """Return a mutant's family and the description of its bug."""
    row = MUTANTS[mutant]
    return row.family, row.sentence


def _outcomes(outcomes: Iterable[Outcome], reasons: dict[str, int]) -> Mapping[str, Any]:
    outcomes = list(outcomes)
    explained = [each for each in outcomes if each.fate in {Fate.ACCEPTABLE, Fate.EQUIVALENT}]
    return {
        "fates": "".join(each.fate[0] for each in outcomes),
        "margins": "".join(letter(each.margin) for each in outcomes),
        "why": [reasons.setdefault(each.reason, len(reasons)) for each in explained],
    }
