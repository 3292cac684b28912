"""Violations of statements: mutants, and finer bugs that are not mutants.

A statement is checked if a violation of it would be noticed. Most violations are mutants. The ones
of `violations.txt` are finer than the bugs of real kernels, so suites are not scored by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.reference import NumPyEngine
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.mutants.bug_table import SemanticBugs
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.edits import text_of
from rnncli.mutants.equivalence import where
from rnncli.mutants.mutant import ALL, Change, mutant_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.mutants.mutant import Mutant

_TEXT = text_of("violations.txt", "rnncli.verifying.tracing")
_TABLE = SemanticBugs(_TEXT, "violations.txt")
# No edit of a kernel says what it computes in.
_NARROWED = mutant_of(
    "float64-computed-in-float32",
    ALL,
    "statements",
    "Whatever the dtype, float32 is computed with.",
    "Only float64 is wrong.",
    Change(engine=lambda _: NumPyEngine(np.dtype(np.float32))),
    where(lambda r: r.dtype.name != "float64", "the dtype is narrower than float64"),
)
_ROWS = (*(row for rows in _TABLE.families.values() for row in rows), _NARROWED)
VIOLATIONS: Mapping[str, Mutant] = {row.id: row for row in _ROWS}


def violation_named(id: str) -> Mutant:  # noqa: A002 -- what a mutant itself calls it
    """Return a violation of a statement by its id: a mutant, or finer.

    Raises:
        InvalidRequest: the id is unknown.
    """
    found = VIOLATIONS.get(id) or MUTANTS.get(id)
    if found is None:
        raise InvalidRequest(f"unknown violation '{id}'{did_you_mean(id, [*VIOLATIONS, *MUTANTS])}")
    return found
