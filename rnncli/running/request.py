"""Requests to run targets and their results; both travel between processes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from rnncli.limits import UNLIMITED
from rnncli.models.evaluation_settings import ONNX, EvaluationSettings
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.judging.comparing.comparison import OutputComparison
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.limits import Limits
    from rnncli.numerics import Array

# Elements per chunk.
PIECE = 1 << 16


class TensorSummary(NamedTuple):
    """Statistics of a tensor.

    Attributes:
        min, max, mean: over its finite elements, in float64; None if there are none.
        nan: the number of NaN elements.
        inf: the number of infinite elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    min: float | None
    max: float | None
    mean: float | None
    nan: int
    inf: int


def summarise(name: str, values: Array) -> TensorSummary:
    """Summarise a tensor; text and complex numbers have no order and so no statistics."""
    row = dtype_of(values)
    if row.name == "string" or row.numpy.kind == "c":
        return TensorSummary(name, row.name, values.shape, None, None, None, 0, 0)
    low, high, total, finite, nan = math.inf, -math.inf, 0.0, 0, 0
    for piece in _chunks(values):
        numbers = piece
        if row.is_float:
            numbers = piece[np.isfinite(piece)]
            nan += int(np.count_nonzero(np.isnan(piece)))
        if numbers.size:
            numbers = numbers.astype(np.float64)
            low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
            total += float(numbers.sum())
            finite += numbers.size
    inf = values.size - finite - nan
    if not finite:
        return TensorSummary(name, row.name, values.shape, None, None, None, nan, inf)
    return TensorSummary(name, row.name, values.shape, low, high, total / finite, nan, inf)


def _chunks(values: Array) -> Iterator[Array]:
    """Yield the elements in chunks, in memory order, since tensors may be large."""
    if not values.size:
        return
    pieces = np.nditer(values, ["external_loop", "buffered"], order="K", buffersize=PIECE)
    yield from cast("Iterator[Array]", pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How to run targets.

    Attributes:
        tolerance: applied to expected outputs that come with a target.
        own_tolerances: whether tolerances that come with the target take precedence.
        backend, compute, readings: how recurrent operators are computed.
        host: what evaluates the other nodes of models.
        input_files: input name -> `FILE` or `FILE.npz::KEY`.
        inputs_from: a file or folder with several inputs; "" for none.
        seed: seeds generated inputs; None takes the target's own.
        shapes: input name -> shape of the generated input.
        dims: symbolic dimension -> size.
        data_set: the number of the only test data set to run; None runs all.
        limits: of each target; memory is `budget.DEFAULT` plus the size of its files where it is
            not limited.
        steps: whether the signals of every step of the recurrent nodes are computed.
    """

    tolerance: Tolerance
    own_tolerances: bool = True
    backend: str = "numpy"
    compute: str = "float64"
    readings: Mapping[str, str] = field(default_factory=dict)
    host: str = ONNX
    input_files: Mapping[str, str] = field(default_factory=dict)
    inputs_from: str = ""
    seed: int | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    data_set: int | None = None
    limits: Limits = UNLIMITED
    steps: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files and folders with inputs."""
        return tuple(filter(None, (*self.input_files.values(), self.inputs_from)))

    @property
    def arithmetic(self) -> EvaluationSettings:
        """How the nodes of models are evaluated."""
        return EvaluationSettings(self.backend, self.compute, self.readings, self.host)

    @property
    def shapes_inputs(self) -> bool:
        """Whether inputs are given or generated instead of taken from test data sets."""
        asked = (self.input_files, self.inputs_from, self.shapes, self.dims)
        return any(asked) or self.seed is not None


class Run(NamedTuple):
    """One evaluation of a target.

    Attributes:
        name: the test data set's name, or "" without one.
        inputs: as fed.
        outputs: as computed.
        seconds: duration of the evaluation, without loading and writing.
        expected: the outputs that came with the target; None if none did.
        tolerances: the tolerance of each expected element, for outputs that came with tolerances.
        steps: the signals of every step of the recurrent nodes, if they are wanted; see
            `running.execution.steps_of`.
    """

    name: str
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    seconds: float
    expected: dict[str, Array] | None = None
    tolerances: Mapping[str, Array] = {}
    steps: Mapping[str, Array] = {}


class RunReport(NamedTuple):
    """The part of a run that is reported.

    Attributes:
        name: the test data set's name, or "".
        seconds: duration of the evaluation.
        outputs: a summary of each output.
        comparison: expected and unexpected outputs; empty if no outputs were expected.
    """

    name: str
    seconds: float
    outputs: tuple[TensorSummary, ...]
    comparison: tuple[OutputComparison, ...] = ()


class TargetReport(NamedTuple):
    """The report on one target.

    Attributes:
        target: the target as the user wrote it.
        runs: one for each data set; empty if it failed.
        error: the reason of its failure, or "".
        exit_code: 0; 1 if an output differs; otherwise the failure's.
        warnings: sentences for the user.
        traceback: the failure's traceback.
    """

    target: str
    runs: tuple[RunReport, ...] = ()
    error: str = ""
    exit_code: int = 0
    warnings: tuple[str, ...] = ()
    traceback: str = ""

    def record(self) -> dict[str, Any]:
        """Return the report as JSON values."""
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
