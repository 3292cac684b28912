"""Requests to run targets and their results; both travel between processes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from rnncli.limits import UNLIMITED
from rnncli.models.evaluation_settings import ONNX, EvaluationSettings
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.judging.comparing.comparison import OutputComparison
    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.limits import Limits
    from rnncli.numerics import Array

# Elements per chunk.
PIECE = 1 << 16
# Errors are alike in size up to this factor, and the same from this correlation on.
NEAR, SAME = 2.0, 0.9
# Errors above this part of an output's largest value, on average, say nothing of an arithmetic by
# their size. Measured on 54 stacks of RNN, GRU and LSTM of 1, 2 and 4 layers and 8, 64 and 256
# units, 30 steps: each of `model_precision.ARITHMETICS` makes at most 0.014, but for tables of 64
# values, which make 0.022 to 0.22 (2026-11-28).
LARGEST = 0.015
# Whose a tolerance is, in words.
MEASURED = "measured on the model"
STORED = "stored beside the outputs"
GIVEN = "given"
FIXED = "--atol 1e-5 --rtol 1e-3 --max-ulp 1"


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
    # In memory order and in chunks, since tensors may be large.
    flags: Any = ["external_loop", "buffered"]
    pieces = np.nditer(values, flags, order="K", buffersize=PIECE) if values.size else ()
    for piece in cast("Iterable[Array]", pieces):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How to run targets."""

    tolerance: Tolerance  # of expected outputs that come with a target
    own_tolerances: bool = True  # whether tolerances that come with the target take precedence
    backend: str = "numpy"  # with the next two: how recurrent operators are computed
    compute: str = "float64"
    readings: Mapping[str, str] = field(default_factory=dict)
    host: str = ONNX  # what evaluates the other nodes of models
    input_files: Mapping[str, str] = field(
        default_factory=dict
    )  # name -> FILE, FILE.npz::KEY or numbers
    inputs_from: str = ""  # a file or folder with several inputs
    expected_from: str = ""  # a file or folder with the outputs that these inputs should give
    seed: int | None = None  # of generated inputs; None takes the target's own
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of generated inputs
    dims: Mapping[str, int] = field(default_factory=dict)  # symbolic dimension -> size
    data_set: int | None = None  # the number of the only test data set to run; None runs all
    # Of each target; memory is `budget.DEFAULT` plus the size of its files where it is not limited.
    limits: Limits = UNLIMITED
    judged: bool = False  # whether an implementation or a pack depends on the generated inputs
    allow_unexercised: bool = False  # whether what could not have failed ends with exit code 0
    steps: bool = False  # whether the signals of every step of the recurrent nodes are computed

    @property
    def files(self) -> tuple[str, ...]:
        """The files and folders with inputs, and with the outputs they should give."""
        named = (*self.input_files.values(), self.inputs_from, self.expected_from)
        return tuple(filter(None, named))

    @property
    def arithmetic(self) -> EvaluationSettings:
        """How the nodes of models are evaluated."""
        return EvaluationSettings(self.backend, self.compute, self.readings, self.host)

    def input_options(self, data_set: str = "") -> list[str]:
        """Return what says the inputs as options of a command line.

        Args:
            data_set: the folder of the test data set, of a run on one.
        """
        named = [("-i", f"{name}={file}") for name, file in self.input_files.items()]
        named += [("--inputs", self.inputs_from)] if self.inputs_from else []
        named += [("--seed", f"{self.seed}")] if self.seed is not None else []
        named += [("--shape", f"{n}={','.join(map(str, s))}") for n, s in self.shapes.items()]
        named += [("--dim", f"{name}={size}") for name, size in self.dims.items()]
        number = data_set.removeprefix("test_data_set_")
        named += [("--data-set", number)] if number else []
        return [*chain.from_iterable(named)]

    @property
    def shapes_inputs(self) -> bool:
        """Whether inputs are given or generated instead of taken from test data sets."""
        asked = (self.input_files, self.inputs_from, self.shapes, self.dims)
        return any(asked) or self.seed is not None


class ListedTarget(NamedTuple):
    """A target, and what is asked of it alone.

    Attributes:
        target: as in `running.target.load_target`.
        dims, shapes, input_files, inputs_from, expected_from: as in a `Request`.
    """

    target: str
    dims: Mapping[str, int] = {}
    shapes: Mapping[str, tuple[int, ...]] = {}
    input_files: Mapping[str, str] = {}
    inputs_from: str = ""
    expected_from: str = ""

    def asked(self, request: Request) -> Request:
        """Return a request with what is asked of this target; what it says itself comes first."""
        return replace(
            request,
            dims={**self.dims, **request.dims},
            shapes={**self.shapes, **request.shapes},
            input_files={**self.input_files, **request.input_files},
            inputs_from=request.inputs_from or self.inputs_from,
            expected_from=request.expected_from or self.expected_from,
        )


class Run(NamedTuple):
    """One evaluation of a target."""

    name: str  # the test data set's name, or "" without one
    inputs: dict[str, Array]  # as fed
    outputs: dict[str, Array]  # as computed
    seconds: float  # duration of the evaluation, without loading and writing
    # the outputs that came with the target; None if none did
    expected: dict[str, Array] | None = None
    # the tolerance of each expected element, for outputs that came with tolerances
    tolerances: Mapping[str, Array] = {}
    # the signals of every step of the recurrent nodes, if they are wanted; see
    # `running.execution.steps_of`
    steps: Mapping[str, Array] = {}


class NodeFinding(NamedTuple):
    """A recurrent node of a model that an implementation computes wrong by itself."""

    node: str  # the path of the node, as `rnncli inspect` prints it
    operator: str
    dtype: str
    execution: int  # the number of the execution of that node, from 1
    verdict: CaseVerdict  # on the node with what reached it in that execution
    repeat: tuple[str, ...]  # the command lines that judge it again

    def record(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        from rnncli.files.described import as_data

        return {**self._asdict(), "verdict": as_data(self.verdict)}


class AgainstReport(NamedTuple):
    """What an implementation made of the same model and inputs."""

    name: str  # the implementation's name
    description: Mapping[str, str]  # its version and settings
    # its outputs beside those expected of it; empty if it gave none
    comparison: tuple[OutputComparison, ...] = ()
    failure: str = ""  # how it failed to give outputs, or ""
    # 0; 1 if an output differs or it fails; 3 if it refuses the model; 5 if there was no element,
    # or something could not have failed
    exit_code: int = 0
    unexercised: tuple[str, ...] = ()  # of outputs that agree: what could not have differed
    node: NodeFinding | None = None  # of outputs that differ: the first recurrent node that does
    search: str = ""  # of outputs that differ: what was asked, if no such node was found
    right_with: str = ""  # of a failure: the settings with which it is right; see `CaseVerdict`
    cause: OutputsCause | None = None  # of outputs that differ, if no such node was found
    error_size: ErrorSize | None = None  # of outputs that no bug explains
    likeness: tuple[str, ...] = ()  # of the same: what they have in common with what is wanted
    tolerance: str = ""  # of the comparison, in words
    sizes: Mapping[str, int] = {}  # those of free axes of time and of the batch, by symbol

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"{self.name} {self.description.get('version', '')}".rstrip()

    def record(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "name": self.name,
            "description": dict(self.description),
            "exit_code": self.exit_code,
            "failure": self.failure,
            "unexercised": list(self.unexercised),
            "comparison": [output.record() for output in self.comparison],
            "node": self.node and self.node.record(),
            "search": self.search,
            "right_with": self.right_with,
            "cause": self.cause and self.cause.record(),
            "likeness": [*self.likeness],
            "error_size": self.error_size and self.error_size.record(),
            "tolerance": self.tolerance,
            "sizes": dict(self.sizes),
        }


class OutputsCause(NamedTuple):
    """A bug of recurrent nodes of a model that gives what another program gave, or much of it."""

    # the paths of the nodes that have it, as `rnncli inspect` prints them; () if none was found
    nodes: tuple[str, ...]
    operator: str  # of the first
    # each bug that explains as much in these nodes -> the largest error / tolerance
    fits: Mapping[str, float]
    sentence: str  # what the first of them is
    edit: tuple[str, ...]  # what it edits in the plain kernel, as lines of a diff; () for functions
    explained: int  # the number of wrong elements that it gives
    wrong: int  # that of all that are compared
    tried: int  # the number of hypotheses
    stopped: bool  # whether there was no time for more

    def record(self) -> dict[str, Any]:
        """Return the cause as JSON values."""
        return {
            **self._asdict(),
            "fits": {name: None if math.isinf(m) else m for name, m in self.fits.items()},
        }


class LikeArithmetic(NamedTuple):
    """An arithmetic beside errors that were found."""

    name: str  # in words
    times: float  # the size of the errors that were found / that of its own
    correlation: float  # of the two, 1 if they are the same errors

    @property
    def is_near(self) -> bool:
        """Whether the errors are of one size."""
        return 1 / NEAR <= self.times <= NEAR


class ErrorSize(NamedTuple):
    """How large errors are that no bug explains, and which arithmetics make such errors."""

    largest: float  # the largest absolute error of an output
    rms: float  # the root of their mean square, in parts of the largest value of each output
    # those of that size, or one: the nearest in size
    # or none if the errors are larger than any such
    likes: tuple[LikeArithmetic, ...]
    numbers_of: str = ""  # the narrower type that represents all values, where it is no chance

    @property
    def is_gross(self) -> bool:
        """Whether they are larger than those of an arithmetic."""
        return self.rms > LARGEST and not self.is_same

    @property
    def is_same(self) -> bool:
        """Whether an arithmetic makes the same errors."""
        return any(each.is_near and each.correlation >= SAME for each in self.likes)

    def record(self) -> dict[str, Any]:
        """Return the sizes as JSON values."""
        return {**self._asdict(), "likes": [each._asdict() for each in self.likes]}


class ExpectedReport(NamedTuple):
    """What became of outputs that another program gave for the same model and inputs."""

    comparison: tuple[OutputComparison, ...]
    tolerance: str  # in words: whose it is
    sizes: Mapping[str, int] = {}  # those of free axes of time and of the batch, by symbol
    cause: OutputsCause | None = None  # of outputs that differ
    error_size: ErrorSize | None = None  # of outputs that no bug explains
    likeness: tuple[str, ...] = ()  # of the same: what they have in common with what is wanted


class RunReport(NamedTuple):
    """The part of a run that is reported."""

    name: str  # the test data set's name, or ""
    seconds: float  # duration of the evaluation
    outputs: tuple[TensorSummary, ...]  # a summary of each output
    # expected and unexpected outputs; empty if no outputs were expected
    comparison: tuple[OutputComparison, ...] = ()
    tolerance: str = ""  # of that comparison, in words
    sizes: Mapping[str, int] = {}  # those of free axes of time and of the batch, by symbol
    cause: OutputsCause | None = None  # why expected outputs differ, if that is known
    error_size: ErrorSize | None = None  # of outputs that no bug explains
    likeness: tuple[str, ...] = ()  # of the same: what they have in common with what is wanted
    against: AgainstReport | None = None  # of an implementation, if one was asked as well


class TargetReport(NamedTuple):
    """The report on one target."""

    target: str  # the target as the user wrote it
    runs: tuple[RunReport, ...] = ()  # one for each data set; empty if it failed
    error: str = ""  # the reason of its failure, or ""
    exit_code: int = 0  # 0; 1 if an output differs; otherwise the failure's
    warnings: tuple[str, ...] = ()  # sentences for the user
    traceback: str = ""  # the failure's traceback

    def record(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        runs = [
            {
                "data_set": run.name,
                "seconds": run.seconds,
                "outputs": [output._asdict() for output in run.outputs],
                "comparison": [output.record() for output in run.comparison],
                **({"tolerance": run.tolerance, "sizes": {**run.sizes}} if run.tolerance else {}),
                **({"cause": run.cause.record()} if run.cause else {}),
                **({"likeness": [*run.likeness]} if run.likeness else {}),
                **({"error_size": run.error_size.record()} if run.error_size else {}),
                **({"against": run.against.record()} if run.against else {}),
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
