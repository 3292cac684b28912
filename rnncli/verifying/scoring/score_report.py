"""The report on a scored suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.talk.display import Conclusion

if TYPE_CHECKING:
    from rnncli.judging.scoring.kill_matrix import KillMatrix


@dataclass(frozen=True, slots=True, repr=False)
class ScoreReport(Conclusion):
    """The score of a suite.

    Attributes:
        matrix: which mutant is killed by which vector, and the resulting scores.
        min_score: the required percentage of killed semantic mutants; None for no requirement.
        min_structural: the same for structural mutants.
    """

    matrix: KillMatrix
    min_score: float | None = None
    min_structural: float | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of `rnncli score`: 1 if too few mutants are killed, otherwise 0."""
        wanted = ((self.matrix, self.min_score), (self.matrix.structural, self.min_structural))
        reached = (least is None or of.total.percent >= least for of, least in wanted)
        return int(not all(reached))
