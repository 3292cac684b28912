"""The signals of every step of the recurrent nodes of a run."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.tolerances.step_signals import answers_of
from rnncli.numerics import FLOAT64
from rnncli.numerics.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rnncli.models.observation import Occurrence
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

PROFILE = PROFILES["standard"]


class StepRecording:
    """A recording of the executions of a model's recurrent nodes, run by run."""

    def __init__(self) -> None:
        self._occurrences: list[Occurrence] = []

    def add(self, occurrence: Occurrence) -> None:
        """Record an execution."""
        self._occurrences.append(occurrence)

    def take(self) -> dict[str, Array]:
        """Return the signals of the executions so far by name, and forget them.

        Names are `PATH/outputs/gate_i` and `PATH/tolerances/gate_i`, with the path of the node, and
        `PATH#2/...` for its second execution.
        """
        found: dict[str, Array] = {}
        taken: set[str] = set()
        for occurrence in self._occurrences:
            path = _free("/".join(occurrence.path), taken)
            taken.add(path)
            recurrence = occurrence.node.recurrence(occurrence.inputs)
            found |= {f"{path}/{name}": values for name, values in steps_of(recurrence)}
        self._occurrences = []
        return found


def _free(path: str, taken: Collection[str]) -> str:
    """Return a path with the first number that makes it new, if it is not."""
    numbered = (f"{path}#{k}" for k in count(2))
    return path if path not in taken else next(each for each in numbered if each not in taken)


def steps_of(recurrence: Recurrence) -> Iterator[tuple[str, Array]]:
    """Yield the signals of every step by name, computed in float64 and rounded once.

    Names are `outputs/gate_i` and, under the standard profile, `tolerances/gate_i`.
    """
    golden = evaluate(recurrence, NumPyEngine(FLOAT64), wants_signals=True)
    answers = answers_of(recurrence, golden, PROFILE)
    for name, values in answers.outputs.items():
        yield f"outputs/{name}", values
        yield f"tolerances/{name}", answers.tolerances[name]
