"""Every call of a session gives the bits of the first, on the cases that onnx publishes."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from rnncli.errors import Unsupported
from rnncli.models.loading import model_from
from rnncli.models.sessions import evaluate_model

EVERY = 12
"""One case of so many is run: neighbours are alike."""


def arrays(case):
    """Return the inputs of a case by name, or None where one is not a tensor."""
    values = [*case.data_sets[0][0]] if case.data_sets else [None]
    if not all(isinstance(each, np.ndarray | np.generic) for each in values):
        return None
    names = [value.name for value in case.model.graph.input]
    return dict(zip(names, map(np.asarray, values), strict=False))


def with_constants(proto, inputs, fed):
    """Return a copy of a model with one input; the others are initializers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    del copy.graph.input[:]
    copy.graph.input.extend(each for each in proto.graph.input if each.name == fed)
    held = {name: values for name, values in inputs.items() if name != fed}
    copy.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in held.items())
    return copy


@pytest.fixture(scope="module")
def cases():
    """Collect a share of the cases, by name."""
    with np.errstate(all="ignore"):
        chosen = [*collect_testcases(None)][::EVERY]
    return {case.name: (case.model, inputs) for case in chosen if (inputs := arrays(case))}


def bits(model, inputs):
    """Return the outputs of a call as types, shapes and bytes, or text."""
    made = evaluate_model(model, inputs).items()
    return [
        (n, y.dtype, y.shape, y.tolist() if y.dtype == object else y.tobytes()) for n, y in made
    ]


def assert_calls_agree(proto, inputs):
    """Assert that four calls give the same, unless the model is not supported."""
    model = model_from(proto, "case.onnx")
    try:
        first = bits(model, inputs)
    except Unsupported:
        return
    for _ in range(3):
        assert bits(model, inputs) == first


def test_all_inputs_are_fed(cases):
    """The second call folds what is constant, the third runs what is left."""
    for proto, inputs in cases.values():
        assert_calls_agree(proto, inputs)


@pytest.mark.parametrize("at", [0, 1, -1])
def test_one_input_is_fed(cases, at):
    """All others are constants, from which kernels compute once what they can."""
    for proto, inputs in cases.values():
        if len(inputs) > max(at, 1):
            fed = [*inputs][at]
            assert_calls_agree(with_constants(proto, inputs, fed), {fed: inputs[fed]})
