"""What came of scoring a suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.display import Displayed

if TYPE_CHECKING:
    from rnncli.judging.scoring.kill_matrix import KillMatrix


@dataclass(frozen=True, slots=True)
class ScoreReport(Displayed):
    """The score of a suite.

    Attributes:
        matrix: the fate of every mutant in every vector, and what follows from it.
        min_score: how many of a hundred semantic mutants are to be killed; None for any number.
        min_structural: the same of structural mutants.
    """

    matrix: KillMatrix
    min_score: float | None = None
    min_structural: float | None = None

    @property
    def passed(self) -> bool:
        """Whether as many mutants are killed as are to be."""
        wanted = ((self.matrix, self.min_score), (self.matrix.structural, self.min_structural))
        return all(least is None or of.total.percent >= least for of, least in wanted)

    @property
    def exit_code(self) -> int:
        """As of `rnncli score`: 1 if fewer are killed, else 0."""
        return int(not self.passed)
