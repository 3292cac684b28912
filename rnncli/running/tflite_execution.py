"""Execution of TFLite's models for the values that reach their LSTMs.

LiteRT computes what is before the LSTMs, in a process of its own, unless they read the model's own
inputs alone, or the user gives what they read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.files.formats import read_inputs
from rnncli.models.evaluator import prepare
from rnncli.models.model import check_inputs
from rnncli.packs.vector import Status
from rnncli.running.execution import recipe_of
from rnncli.running.model_vector import vector_of_call
from rnncli.running.sizing import Sizing
from rnncli.subjects.runtimes import subject_named

if TYPE_CHECKING:
    from rnncli.models.observation import Observer
    from rnncli.models.tflite_model import TfliteModel
    from rnncli.numerics import Array
    from rnncli.running.request import Request

HOST = "litert"


def run_tflite(model: TfliteModel, request: Request, observer: Observer) -> None:
    """Evaluate the LSTMs of a model on what reaches them; the inputs are the model's, or theirs.

    Raises:
        InvalidRequest: the inputs are wrong, or LiteRT does not run the model.
        Unsupported: LiteRT is needed and not installed.
    """
    name = model.interface.name
    if request.data_set is not None:
        raise InvalidRequest(f"{name}: --data-set {request.data_set}, but it has no test data sets")
    source = request.inputs_from
    given = {*request.input_files, *(read_inputs(source) if source else ())}
    own = {value.name for value in model.interface.inputs}
    read = [value.name for value in model.recurrent.inputs]
    ends = model.interface if given <= own or not given & {*read} else model.recurrent
    evaluator = prepare(model.recurrent, **request.arithmetic._asdict(), observer=observer)

    def values(inputs: dict[str, Array]) -> dict[str, Array]:
        check_inputs(ends, inputs)
        missing = [each for each in read if each not in inputs]
        return {**inputs, **(_hosted(model, request, inputs, missing) if missing else {})}

    found = Sizing(recipe_of(ends, request), values).settle()
    evaluator.outputs({each: found[each] for each in read})


def _hosted(
    model: TfliteModel, request: Request, inputs: dict[str, Array], wanted: list[str]
) -> dict[str, Array]:
    """Return the values of tensors in a run of the whole model by LiteRT."""
    name, numbers = model.interface.name, model.numbers
    asked = vector_of_call(
        name,
        model.content,
        {str(numbers[each]): values for each, values in inputs.items()},
        {str(numbers[each]): np.empty(0, np.float32) for each in wanted},
    )
    subject = subject_named(HOST, limits=request.limits)
    try:
        attempt = subject.attempt(asked)
    finally:
        subject.close()
    if attempt.status is not Status.RAN:
        raise InvalidRequest(f"{name}: LiteRT does not run it: {attempt.status}: {attempt.message}")
    return {each: attempt.outputs[str(numbers[each])] for each in wanted}
