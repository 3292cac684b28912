"""Evaluation of a loaded target, once or for each of its test data sets, on inputs it reads."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli import operators
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.errors import InvalidOperator, InvalidRequest, RnncliWarning, Unsupported, shortened
from rnncli.files.formats import read_inputs, read_outputs, read_tensor
from rnncli.judging.tolerances.derivation import answers_of
from rnncli.models.evaluator import Evaluator, prepare
from rnncli.models.generated_inputs import InputRecipe
from rnncli.models.loading import load_data_set
from rnncli.models.model import Model, check_inputs, check_names, declared_shape, symbols
from rnncli.models.streams import streams_of
from rnncli.numerics import FLOAT64, dtype_named, dtype_numbered, round_to
from rnncli.numerics.profiles import PROFILES
from rnncli.running.request import Request, Run
from rnncli.running.sizing import Sizing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.cases.case import Case
    from rnncli.models.observation import Observer, Occurrence
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.recurrence import Recurrence


def execute(loaded: Model | Case, request: Request) -> Iterator[Run]:
    """Yield each run of a target as soon as it finishes.

    Raises:
        RnncliError: the target or the request is wrong or not supported.
    """
    expected = _expected(loaded, request)
    is_generated = not (request.input_files or request.inputs_from)
    if expected and isinstance(loaded, Model) and is_generated:
        # The sizes of symbols of its inputs that some of its outputs have.
        known, dims = symbols(loaded.inputs), dict[str, int]()
        for value in loaded.proto.graph.output:
            declared, values = declared_shape(value), expected.get(value.name)
            if declared is not None and values is not None and len(declared) == values.ndim:
                sizes = zip(declared, values.shape, strict=True)
                dims |= {str(symbol): size for symbol, size in sizes if symbol in known}
        request = replace(request, dims={**dims, **request.dims})
    if not isinstance(loaded, Model):
        runs = iter([_run_case(loaded, request)])
    elif request.steps:
        recording = StepRecording()
        found = run_model(loaded, request, recording.add)
        runs = (run._replace(steps=recording.take()) for run in found)
    else:
        runs = run_model(loaded, request)
    for run in runs:
        if expected and isinstance(loaded, Model) and is_generated:
            _warn_of_ones(loaded, run, request.expected_from)
            if request.seed is None and run.inputs:
                warnings.warn(
                    f"{loaded.name}: inputs are generated, and {request.expected_from} must come"
                    " from the same: --inputs reads others, --save-inputs writes these",
                    RnncliWarning,
                    stacklevel=2,
                )
        if not expected:
            yield run
            continue
        source, inputs = request.expected_from, run.inputs.keys() - run.outputs.keys()
        theirs = {name: values for name, values in expected.items() if name not in inputs}
        if not theirs:
            raise InvalidRequest(f"{source}: holds inputs of {loaded.name} alone, and no outputs")
        from rnncli.running.matching import matched

        yield run._replace(expected=matched(theirs, run.outputs, source))


def _warn_of_ones(model: Model, run: Run, source: str) -> None:
    """Warn where outputs are compared of one step, or of one sequence, that might be more."""
    streams = streams_of(model)
    sizes = streams.sizes_of(run.inputs)
    for axes, why in (
        (streams.time, "one step shows nothing of states, directions and lengths"),
        (streams.batch, "one sequence shows nothing of another"),
    ):
        if ones := sorted({each.size for each in axes.values() if sizes.get(each.size) == 1}):
            at = " and ".join(f"{symbol} = 1" for symbol in ones)
            sentence = f"{model.name}: compared with {source} at {at}: {why}"
            warnings.warn(sentence, RnncliWarning, stacklevel=2)


def _expected(loaded: Model | Case, request: Request) -> dict[str, Array]:
    """Read the outputs that a request expects of its inputs; none if it names no file.

    Raises:
        InvalidRequest: there are none in it, or they would replace those of test data sets.
        UnreadableFile: it cannot be read.
    """
    source = request.expected_from
    if not source:
        return {}
    if isinstance(loaded, Model) and loaded.data_sets and not request.shapes_inputs:
        raise InvalidRequest(
            f"{loaded.name}: {source} cannot be expected of its test data sets, which have outputs"
            " of their own; give inputs as well"
        )
    if expected := dict(read_outputs(source)):
        return expected
    raise InvalidRequest(f"{source}: holds no tensors to expect as outputs")


def _single_inputs(
    request: Request, dtype_of_input: Callable[[str], DType | None]
) -> dict[str, Array]:
    """Return the inputs given one by one; numbers take the types that a function says."""
    return {
        name: given_tensor(name, text, dtype_of_input(name))
        for name, text in request.input_files.items()
    }


def _dtype_of_case(case: Case, name: str) -> DType:
    """Return the type of a case's input, present or not."""
    if case.unit and name in case.unit:
        return dtype_named(case.unit.by_name[name].type)
    if name in case.blanks:
        return case.blanks[name].dtype
    rows = {row.name: row.dtypes for row in case.operator.inputs}
    allowed = rows.get(name, ())
    return dtype_named(allowed[0]) if len(allowed) == 1 else case.dtype


def _set_of_inputs(source: str) -> dict[str, Array]:
    """Read a file of inputs, if one is given."""
    inputs = read_inputs(source) if source else {}
    if source and not inputs:
        raise InvalidRequest(f"{source}: holds no tensors to use as inputs")
    return inputs


def _run_case(case: Case, request: Request) -> Run:
    for option, value in (("--shape", request.shapes), ("--dim", request.dims)):
        if value:
            raise InvalidRequest(f"{case.name}: {option} is for models; a config gives its sizes")
    if request.data_set is not None:
        raise InvalidRequest(f"{case.name}: a config has no test data sets")
    single = _single_inputs(request, partial(_dtype_of_case, case))
    inputs = {**case.inputs, **_set_of_inputs(request.inputs_from), **single}
    start = time.perf_counter()
    try:
        outputs = operators.evaluate(
            case.operator,
            inputs,
            attributes=case.attributes,
            outputs=case.outputs,
            readings={**case.readings, **request.readings},
            backend=request.backend,
            compute=request.compute,
            unit=case.unit,
        )
    except InvalidOperator as error:
        file = case.place_of(()).file
        raise InvalidOperator(f"{file}: {error.where}", error.problems) from error
    seconds = time.perf_counter() - start
    steps: dict[str, Array] = {}
    if request.steps:
        steps = dict(steps_of(case.node.under(request.readings).recurrence(inputs)))
    return Run("", inputs, outputs, seconds, steps=steps)


def run_model(model: Model, request: Request, observer: Observer | None = None) -> Iterator[Run]:
    """Yield the runs of a model: one for each data set, or one on other inputs.

    Raises:
        RnncliError: the model or the request is wrong or not supported.
    """
    evaluator = prepare(model, **request.arithmetic._asdict(), observer=observer)
    number = request.data_set
    if model.data_sets and not request.shapes_inputs:
        name = f"test_data_set_{number}"
        chosen = [each for each in model.data_sets if number is None or each.name == name]
        if not chosen:
            names = ", ".join(folder.name for folder in model.data_sets)
            raise InvalidRequest(f"{model.name}: no data set {number}; there are {names}")
        for folder in chosen:
            data_set = load_data_set(model, folder)
            run = _timed(model, evaluator, folder.name, data_set.inputs)
            yield run._replace(expected=data_set.outputs or None, tolerances=data_set.tolerances)
        return
    if number is not None:
        why = "inputs are given or generated" if model.data_sets else "it has no test data sets"
        raise InvalidRequest(f"{model.name}: --data-set {number}, but {why}")

    # On the given inputs; the missing ones are generated in sizes the model accepts.
    recipe = recipe_of(model, request)
    tried = evaluator
    if observer and recipe.sizes.free:  # an observer must not see runs that fail
        tried = prepare(model, **request.arithmetic._asdict())
    sizing = Sizing(recipe, lambda inputs: _timed(model, tried, "", inputs))
    run = sizing.settle(judged=request.judged)
    yield run if tried is evaluator else _timed(model, evaluator, "", run.inputs)


def recipe_of(model: Model, request: Request) -> InputRecipe:
    """Return the inputs that a request gives, and how the others are generated.

    Raises:
        InvalidRequest: the model has no input of a name.
        UnreadableFile: a file of them is wrong.
    """
    return InputRecipe(
        model,
        given_inputs(model, request),
        seed=request.seed or 0,
        shapes=request.shapes,
        dims=request.dims,
    )


def given_inputs(model: Model, request: Request) -> dict[str, Array]:
    """Return the inputs that a request gives; errors are those of `recipe_of`."""
    declared = check_names(model, request.input_files)

    def dtype_of_input(name: str) -> DType | None:
        number = declared[name].type.tensor_type.elem_type
        return dtype_numbered(number) if number else None

    single = _single_inputs(request, dtype_of_input)
    source, folder = request.inputs_from, Path(request.inputs_from)
    if source and folder.is_dir() and not any(folder.glob("test_data_set_*")):
        given = load_data_set(model, folder).inputs | single  # unnamed tensors go by position
    else:
        inputs, names = _set_of_inputs(source), [each.name for each in model.proto.graph.input]
        if folder.suffix == ".npy" and not inputs.keys() <= {*names}:
            raise InvalidRequest(
                f"{model.name}: {source} holds one tensor, without a name; -i NAME={source} reads"
                f" it as the input NAME: {', '.join(names)}"
            )
        given = inputs | single
    check_names(model, given)
    return given


def _timed(model: Model, evaluator: Evaluator, name: str, inputs: dict[str, Array]) -> Run:
    check_inputs(model, inputs)
    order = [value.name for value in model.proto.graph.input if value.name in inputs]
    start = time.perf_counter()
    outputs = evaluator.outputs(inputs)
    seconds = time.perf_counter() - start
    for output, values in outputs.items():
        if not hasattr(values, "dtype"):  # an absent optional or an undeclared sequence
            what = "has no value" if values is None else f"is a {type(values).__name__}"
            raise Unsupported(
                f"{model.name}: the output '{output}' {what}; only tensors are written"
            )
    return Run(name, {key: inputs[key] for key in order}, outputs, seconds)


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
            plain = path = "/".join(occurrence.path)
            numbers = count(2)
            while path in taken:
                path = f"{plain}#{next(numbers)}"
            taken.add(path)
            recurrence = occurrence.node.recurrence(occurrence.inputs)
            found |= {f"{path}/{name}": values for name, values in steps_of(recurrence)}
        self._occurrences = []
        return found


def steps_of(recurrence: Recurrence) -> Iterator[tuple[str, Array]]:
    """Yield the signals of every step by name, computed in float64 and rounded once.

    Names are `outputs/gate_i` and, under the standard profile, `tolerances/gate_i`.
    """
    golden = evaluate(recurrence, NumPyEngine(FLOAT64), wants_signals=True)
    answers = answers_of(recurrence, golden, PROFILE)
    for name, values in answers.outputs.items():
        yield f"outputs/{name}", values
        yield f"tolerances/{name}", answers.tolerances[name]


def given_tensor(name: str, text: str, dtype: DType | None) -> Array:
    """Return an input that is given as ``8000``, ``true``, ``[[1, 2.5], [3, 4]]`` or as a file.

    Args:
        name: the input's name.
        text: what the user wrote for it; a number stands for a scalar.
        dtype: the input's element type, which numbers take; None if it has none.

    Raises:
        InvalidRequest: the list is no rectangle, or the type cannot hold a number of it; and as
            `read_tensor`.
    """
    place = f"-i {name}={shortened(text)}"
    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.startswith("["):
            raise InvalidRequest(f"{place}: not a list: {error}") from error
        if not ({"/", "."} & {*text} or Path(text).exists()):
            raise InvalidRequest(f"{place}: neither a number nor a file") from error
        return read_tensor(text)
    if not isinstance(written, int | float | list):
        return read_tensor(text)
    if dtype is None or dtype.numpy.kind in "Oc":
        raise InvalidRequest(f"{place}: the input is not of real numbers; give a file")
    try:
        shape = np.shape(written)
    except ValueError as error:
        raise InvalidRequest(f"{place}: rows of different lengths") from error
    values = [_element(place, each, dtype) for each in _elements(written)]
    return np.array(values, dtype.numpy).reshape(shape)


def _elements(written: Any) -> Iterator[Any]:
    """Yield the elements of nested lists."""
    if not isinstance(written, list):
        yield written
        return
    for each in written:
        yield from _elements(each)


def _element(place: str, written: Any, dtype: DType) -> Any:
    """Return an element in a type, rounded once if that is a floating-point one.

    Raises:
        InvalidRequest: the type cannot hold it.
    """
    is_bool = dtype.name == "bool"
    if isinstance(written, bool) is is_bool and isinstance(written, int | float):
        try:
            if dtype.is_float:
                exact = np.float64(written)
                made = round_to(exact.reshape(1), dtype)[0]
                if np.isfinite(made) or not np.isfinite(exact):
                    return made
            elif (made := np.array([written], object).astype(dtype.numpy)[0]) == written:
                return made
        except (OverflowError, ValueError, TypeError):
            pass
    raise InvalidRequest(f"{place}: {json.dumps(written)} is not of type {dtype}")
