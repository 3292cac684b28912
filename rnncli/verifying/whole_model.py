"""Whole models in a runtime: outputs beside those in float64, and the node where they part.

The tolerance of an output comes from the model itself. It is evaluated in float64, then once in its
own types and a few times in float64 with each input, matrix and kernel off by up to one rounding of
its type, and bounded activations by one of 1, since kernels approximate them so. What a correct
implementation loses is of the size of the largest distance between these. Values that are rounded
to levels may also be rounded the other way where they are near a tie. Where the tolerance is so
wide that zeros might agree, as in a pack, nothing is judged.
"""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto

from rnncli.errors import InvalidRequest, NothingSelected, RnncliError, Unsupported
from rnncli.generating.extraction import Captures, ExtractionPlan, vectors_of
from rnncli.judging.comparing.comparison import MODEL, Sides, compare
from rnncli.judging.comparing.verdict import FAILURES, Verdict
from rnncli.judging.explaining.hypotheses import explained
from rnncli.judging.judgement import judged
from rnncli.judging.tolerances.tolerance import Tolerance, ulp_width
from rnncli.models.evaluator import prepare
from rnncli.models.model import Model
from rnncli.models.node_listing import random_nodes
from rnncli.models.streams import streams_of
from rnncli.models.widened_model import has_levels, widened, widened_model
from rnncli.numerics import dtype_named, dtype_of, limit_of, round_to, says_nothing
from rnncli.numerics.randomness import seed_key, uniform
from rnncli.packs.vector import Status
from rnncli.running.model_vector import vector_of_run
from rnncli.running.request import GIVEN, MEASURED, AgainstReport, NodeFinding
from rnncli.running.target import short_names
from rnncli.subjects.runtimes import row_of
from rnncli.talk.words import counted
from rnncli.verifying.exercise import Exercise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.cases.case import Case
    from rnncli.files.formats.format import Tensors
    from rnncli.models.observation import Observer
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector
    from rnncli.running.request import Request, Run
    from rnncli.subjects.implementation import Implementation, Subject

# The number of evaluations with inputs and weights moved by a rounding.
SAMPLES = 3
# Tolerance / the largest distance. On 2026-11-26 ONNX Runtime 1.32.0 and OpenVINO 2026.4.1 were off
# by 0.6 to 3.5 times that distance where they were right, on nine models of docs/results/models.md.
ALLOWED = 16
# The elements of a slice of which something must be told: one alone may be near zero by chance.
JUDGED = 8


@dataclass(frozen=True, slots=True)
class RuntimeRival:
    """A runtime that is given whole models; see `running.tasks.Rival`."""

    subject: Implementation

    def report(
        self, target: str, loaded: Model | Case, request: Request, run: Run
    ) -> AgainstReport:
        """Run a model in the runtime on the inputs of a run; judge its outputs.

        Raises:
            InvalidRequest: the target is not a model.
            Unsupported: the runtime is not installed or runs no whole models, or the model cannot
                be evaluated in float64.
        """
        if not isinstance(loaded, Model):
            raise InvalidRequest(
                f"{target}: --against is for models in ONNX; `rnncli verify` judges a runtime on"
                " cases of one operator"
            )
        self.check()
        vector = vector_of_run(short_names([target])[0], loaded, run)
        exercise = Exercise(loaded)
        expected, tolerance = expectation(loaded, request, run, exercise.add)
        sides = Sides(f"{self.subject.name} gives", MODEL)

        def is_right(subject: Implementation) -> bool:
            with closing(subject.open()) as opened:
                attempt = opened.attempt(vector)
            is_answer = attempt.status is Status.RAN
            return is_answer and not compare(attempt.outputs, expected, tolerance).exit_code

        with closing(self.subject.open()) as opened:
            attempt = opened.attempt(vector)
            report = AgainstReport(
                *(self.subject.name, opened.describe()),
                tolerance=MEASURED if request.own_tolerances else GIVEN,
                sizes=streams_of(loaded).sizes_of(run.inputs),
            )
            if attempt.status is not Status.RAN:
                right_with = self.subject.right_with(is_right)
                said = attempt.message or "no message"
                if attempt.status is Status.REFUSED:
                    failure, code = f"refuses the model: {said}", Unsupported.exit_code
                else:
                    failure, code = f"{attempt.status}: {said}", 1
                return report._replace(failure=failure, exit_code=code, right_with=right_with)
            compared = compare(attempt.outputs, expected, tolerance, sides)
            report = report._replace(comparison=tuple(compared), exit_code=compared.exit_code)
            if report.exit_code != 1:

                def agrees(observer: Observer) -> bool:
                    wrong = _as_asked(loaded, request, run, observer)
                    return compare(wrong, expected, tolerance).exit_code != 1

                missing = exercise.missing(agrees)
                is_hosted = request.host == self.subject.name and not exercise.paths
                return _weighed(report, loaded, expected, missing, request, is_hosted=is_hosted)
            found = self._search(target, loaded, request, run, opened)
            if "node" not in found:
                fixed = with_fixed_sizes(vector)
                closed = opened.attempt(fixed) if fixed else attempt
                is_open = fixed and not compare(closed.outputs, expected, tolerance).exit_code
                if closed.status is Status.RAN and is_open:
                    found = {
                        "search": "right where the model declares the sizes of this run: its"
                        " dimensions that are left open are what fails"
                    }
                from rnncli.verifying.model_causes import why_they_differ

                given = (attempt.outputs, expected)
                found |= why_they_differ(loaded, request, run, *given, tolerance, sides.got)
            return report._replace(right_with=self.subject.right_with(is_right), **found)

    def check(self) -> None:
        """Refuse a runtime that runs no whole models.

        Raises:
            InvalidRequest: there is no such runtime.
            Unsupported: it runs recurrent nodes alone.
        """
        if not row_of(self.subject.name).models:
            raise Unsupported(
                f"runtime '{self.subject.name}' runs recurrent nodes alone, not whole models;"
                " `rnncli extract` makes a pack of a model's nodes, which `rnncli verify` judges"
            )

    def _search(
        self, target: str, model: Model, request: Request, run: Run, opened: Subject
    ) -> dict[str, Any]:
        """Return the first recurrent node that the runtime computes wrong, or what was asked."""
        try:
            captures = Captures(model, ())
        except (NothingSelected, Unsupported):
            return {"search": "the model has no recurrent node to look at"}
        _as_asked(model, request, run, captures.add)
        try:
            chosen = captures.chosen()
        except NothingSelected as error:
            return {"search": f"{error}"}
        pack, right, untried = short_names([target])[0], 0, 0
        made = vectors_of(ExtractionPlan(pack), chosen)
        for capture, (vector, _) in zip(chosen, made, strict=True):
            if isinstance(vector, RnncliError):
                untried += 1
                continue
            verdict = explained(judged(vector, opened.attempt(vector)))
            if verdict.verdict in FAILURES - {Verdict.REFUSED}:
                # With the commands that extract the node and judge it again.
                name = capture.path[-1]
                is_alone = [path[-1] for path in captures.paths].count(name) == 1
                node = ["--node", name if is_alone else capture.where]
                inputs = request.input_options(run.name)
                repeat = (
                    ["rnncli", "extract", target, "-o", f"{pack}-node", *node, *inputs],
                    ["rnncli", "verify", f"{pack}-node", *self.subject.options],
                )
                about = capture.where, vector.record.operator, vector.record.dtype, capture.number
                return {"node": NodeFinding(*about, verdict, tuple(map(shlex.join, repeat)))}
            right += verdict.verdict is Verdict.PASS
            untried += verdict.verdict is not Verdict.PASS
        if not right:
            said = f"none of its recurrent nodes can be judged alone ({untried} tried)"
        else:
            left = f" ({untried} more cannot be judged)" if untried else ""
            said = (
                f"its recurrent nodes are right alone, {counted(right, 'execution')}{left}: look at"
                " its other nodes, and at what becomes of several"
            )
        return {"search": said}


def with_fixed_sizes(vector: Vector) -> Vector | None:
    """Return a model's vector whose inputs are declared in their own sizes; None if they are."""
    proto = ModelProto.FromString(vector.model)
    is_open = False
    for value in (each for each in proto.graph.input if each.name in vector.inputs):
        for dim, size in zip(
            value.type.tensor_type.shape.dim, vector.inputs[value.name].shape, strict=False
        ):
            is_open |= dim.dim_value != size
            dim.dim_value = size
    return replace(vector, model=proto.SerializeToString()) if is_open else None


def _weighed(
    report: AgainstReport,
    model: Model,
    expected: Tensors,
    unexercised: list[str],
    request: Request,
    *,
    is_hosted: bool,
) -> AgainstReport:
    """Return the report on outputs that agree: something must have been able to differ."""
    if not any(output.size for output in report.comparison):
        return report._replace(failure="no output has an element to compare")
    missing = [
        f"{each.name}: {each.unjudged} of {each.size} cannot be judged: zeros might agree, too,"
        " within their tolerance"
        for each in report.comparison
        if each.unjudged
    ]
    if why := says_nothing(expected.values()):
        missing.append(why)
    if random := random_nodes(model):
        missing.append(f"the model draws random numbers, by {random[0]}, whose seed rnncli fixes")
    if is_hosted:
        missing.append(
            f"no node was evaluated by rnncli: {request.host}, which is judged, is the host as well"
        )
    if unexercised:
        missing.append(f"not exercised: {'; '.join(unexercised)}")
    is_told = bool(missing) and not request.allow_unexercised
    code = NothingSelected.exit_code if is_told else report.exit_code
    return report._replace(unexercised=tuple(missing), exit_code=code)


def expectation(
    model: Model, request: Request, run: Run, observer: Observer | None = None
) -> tuple[Tensors, Tolerance]:
    """Return the outputs that an implementation should give, and their tolerance.

    With tolerances of the user's own, the outputs are those of the run. Otherwise they are those in
    float64, rounded once to the model's types. The observer sees the recurrent nodes in an
    evaluation in the model's own types.

    Raises:
        Unsupported: the model cannot be evaluated in float64, or is infinitely far from it.
    """

    def in_own_types() -> Tensors:
        evaluator = prepare(model, compute="native", readings=request.readings, observer=observer)
        return evaluator.outputs(run.inputs)

    def wide(*changes: Any) -> Tensors:
        return in_float64(model, *changes, readings=request.readings)(run.inputs)

    if not request.own_tolerances:
        if observer:
            _as_asked(model, request, run, observer)
        return run.outputs, request.tolerance
    try:
        exact, others = wide(), [in_own_types(), *map(wide, range(SAMPLES))]
        ties = [wide(None, shift) for shift in shifts(model)]
    except RnncliError as error:
        raise Unsupported(
            f"{error} (in float64, where tolerances come from; with --atol and --rtol they are"
            " yours)"
        ) from error
    wanted = {name: as_declared(exact[name], values) for name, values in run.outputs.items()}
    floats = {name: values for name, values in wanted.items() if dtype_of(values).is_float}
    elements = measured_tolerances(exact, others, floats, ties)
    if boundless := [name for name, each in elements.items() if np.isinf(each).any()]:
        raise Unsupported(
            f"{model.name}: nothing can be said of {', '.join(map(repr, boundless))}: in its own"
            " types the model is no number, or an infinite one, where it is a number in float64;"
            " with --atol and --rtol tolerances are yours"
        )
    return wanted, Tolerance(equal_nan=request.tolerance.equal_nan, elements=elements)


def _as_asked(model: Model, request: Request, run: Run, observer: Observer) -> dict[str, Any]:
    """Evaluate a model once more as the run did, with an observer."""
    return prepare(model, **request.arithmetic._asdict(), observer=observer).outputs(run.inputs)


def in_float64(
    model: Model, sample: int | None = None, shift: float = 0.0, **settings: Any
) -> Callable[[Tensors], Tensors]:
    """Return what evaluates a model in float64; in a sample, all is moved by up to a rounding.

    With one of `shifts`, values near a tie between levels are rounded the other way.
    """
    change = None if sample is None else partial(moved, sample)
    evaluator = prepare(widened_model(model, change, shift), **settings)

    def run(inputs: Tensors) -> Tensors:
        return evaluator.outputs(
            {n: widened(change(n, v) if change else v) for n, v in inputs.items()}
        )

    return run


def moved(sample: int, name: str, values: Array) -> Array:
    """Return a floating-point tensor in float64, each element off by up to half a unit."""
    dtype = dtype_of(values)
    if not dtype.is_float:
        return values
    key = seed_key(sample, "rounding", name)
    (noise,) = uniform([key], values.shape, -1.0, 1.0)
    return np.asarray(values.astype(np.float64) * (1 + 2.0**-dtype.precision * noise))


def shifts(model: Model) -> tuple[float, ...]:
    """Return how far values that a model rounds to levels may be off, up and down, of the largest.

    It is what a correct implementation may lose before it rounds, in float32; none without levels.
    """
    width = ALLOWED * 2.0 ** -dtype_named("float32").precision
    return (width, -width) if has_levels(model) else ()


def as_declared(exact: Any, values: Array) -> Array:
    """Return an output in float64 in the type that the model gives it."""
    dtype = dtype_of(values)
    return round_to(exact, dtype) if dtype.is_float else np.asarray(exact)


def measured_tolerances(
    exact: Tensors, others: Sequence[Tensors], wanted: Tensors, ties: Sequence[Tensors]
) -> Tensors:
    """Return the tolerance of each floating-point output that is wanted; see there."""
    return {
        name: measured_tolerance(
            *(exact[name], [each[name] for each in others], values),
            ties=[each[name] for each in ties],
        )
        for name, values in wanted.items()
    }


def measured_tolerance(
    exact: Array, others: Sequence[Array], wanted: Array, *, ties: Sequence[Array] = ()
) -> Array:
    """Return the tolerance of each element of an output, from distances between evaluations.

    It is `ALLOWED` times the largest distance in the element's slices along each axis, such as the
    channels of the last. That may be small by chance, so it is no less than in most slices, or in
    the whole output for slices of few elements, as far as that is at most `limit_of` the largest
    value in the slice.

    Args:
        exact: the output in float64.
        others: the same by evaluations that round elsewhere.
        wanted: the output that is expected.
        ties: the same by evaluations that round what is near a tie to the level beside. Their
            distances count once, not `ALLOWED` times.

    Returns:
        Tolerances; infinite if an evaluation has another shape or is infinitely far, and NaN where
        zeros might agree as well, beyond `limit_of` the largest value: of the whole output, or of a
        slice of at least `JUDGED` elements that are not those of a unit shut by its gates.
    """
    rounded = [_distances(exact, each) for each in others]
    apart = np.max([*rounded, *(_distances(exact, each) / ALLOWED for each in ties)], axis=0)
    if not np.isfinite(apart).all():
        return np.full(wanted.shape, np.inf)
    size = np.nan_to_num(np.abs(wanted.astype(np.float64)), nan=0, posinf=0)
    limit = limit_of(wanted)
    largest = float(size.max(initial=0.0)) or 1.0
    found, slices = np.full(wanted.shape, apart.max(initial=0.0)), []
    for axis in range(size.ndim):
        within = tuple(k for k in range(size.ndim) if k != axis)
        top, own = (each.max(axis=within, keepdims=True, initial=0.0) for each in (size, apart))
        usual = apart.max(initial=0.0)
        if top.size and size.size >= JUDGED * top.size:
            usual = np.median(own)
            slices.append((within, top))
        found = np.minimum(found, np.maximum(own, np.minimum(usual, limit / ALLOWED * top)))
    found *= ALLOWED
    is_wide = found > limit * largest
    # Units of bounded activations that are shut, which kernels approximate to an absolute error.
    shut = ALLOWED / limit * 2.0 ** -dtype_of(wanted).precision * min(1.0, largest)
    for within, top in slices:
        least = found.min(axis=within, keepdims=True, initial=np.inf)
        is_wide |= (least > limit * top) & (top > shut)
    return np.where(is_wide, np.nan, found + ulp_width(1, wanted))


def _distances(exact: Array, other: Array) -> Array:
    """Return the distance of each element; infinite between shapes, or if one alone is a number."""
    if exact.shape != other.shape:
        return np.full(exact.shape, np.inf)
    with np.errstate(all="ignore"):
        apart = np.abs(other.astype(np.float64) - exact.astype(np.float64))
    is_equal = (exact == other) | (np.isnan(exact) & np.isnan(other))
    return np.where(is_equal, 0.0, np.nan_to_num(apart, nan=np.inf, posinf=np.inf))
