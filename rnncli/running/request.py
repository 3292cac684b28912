"""What a run was asked for, and what came of it; both travel between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.models.recurrent_node import EvaluationSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.judging.comparing.comparison import OutputComparison
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.numerics import Array
    from rnncli.running.summary import TensorSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How to run targets.

    Attributes:
        tolerance: for expected outputs that come with a target.
        own_tolerances: whether tolerances that come with them go before that.
        backend, compute, readings: the arithmetic of recurrent operators.
        threads: how many may share one evaluation; None leaves it to the environment.
        input_files: input name -> `FILE` or `FILE.npz::KEY`.
        inputs_from: a file or folder of several inputs; "" for none.
        seed: of generated inputs; None leaves it to the target.
        shapes: input name -> shape of a generated input.
        dims: name of a symbolic dimension -> its size.
        data_set: the number of the one test data set to run; None runs all of them.
        max_memory: bytes that a target may take; None for `budget.DEFAULT` and what its files add.
        timeout: seconds that a target may take; None for any number.
    """

    tolerance: Tolerance
    own_tolerances: bool = True
    backend: str = "numpy"
    compute: str = "float64"
    threads: int | None = None
    readings: Mapping[str, str] = field(default_factory=dict)
    input_files: Mapping[str, str] = field(default_factory=dict)
    inputs_from: str = ""
    seed: int | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    data_set: int | None = None
    max_memory: int | None = None
    timeout: float | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files and folders that inputs are read from."""
        return tuple(filter(None, (*self.input_files.values(), self.inputs_from)))

    @property
    def arithmetic(self) -> EvaluationSettings:
        """How recurrent operators are evaluated."""
        return EvaluationSettings(self.backend, self.compute, self.readings)

    @property
    def shapes_inputs(self) -> bool:
        """Whether inputs are given or generated, rather than taken from test data sets."""
        asked = (self.input_files, self.inputs_from, self.shapes, self.dims)
        return any(asked) or self.seed is not None


class Run(NamedTuple):
    """One evaluation of a target.

    Attributes:
        name: of the test data set, or "" when there is none.
        inputs: as fed.
        outputs: as computed.
        seconds: what the evaluation took, loading and writing excluded.
        expected: the outputs that came with the target; None when none did.
        tolerances: how far off each of their elements may be, as far as that came with them.
    """

    name: str
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    seconds: float
    expected: dict[str, Array] | None = None
    tolerances: Mapping[str, Array] = {}


class RunReport(NamedTuple):
    """What is shown of one evaluation.

    Attributes:
        name: of the test data set, or "".
        seconds: what the evaluation took.
        outputs: a summary of each.
        comparison: each expected output, and each that was not; empty when none were expected.
    """

    name: str
    seconds: float
    outputs: tuple[TensorSummary, ...]
    comparison: tuple[OutputComparison, ...] = ()


class TargetReport(NamedTuple):
    """What came of one target.

    Attributes:
        target: as given.
        runs: one for each data set; empty when it failed.
        error: why it failed, or "".
        exit_code: 0, 1 when an output differs, else the failure's.
        warnings: what the user should know.
        traceback: of the failure.
    """

    target: str
    runs: tuple[RunReport, ...] = ()
    error: str = ""
    exit_code: int = 0
    warnings: tuple[str, ...] = ()
    traceback: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        runs = [
            {
                "data_set": run.name,
                "seconds": run.seconds,
                "outputs": [output._asdict() for output in run.outputs],
                "comparison": [output.record() for output in run.comparison],
            }
            for run in self.runs
        ]
        return {
            "target": self.target,
            "exit_code": self.exit_code,
            "error": self.error,
            "warnings": list(self.warnings),
            "runs": runs,
        }
