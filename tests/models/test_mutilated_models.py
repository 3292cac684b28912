"""The claim that no damage to a model is a traceback, however it is damaged."""

import random
import signal
import tracemalloc
import warnings
from functools import cache

import onnx
import pytest
from support.real_models import PATHS

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.generated_inputs import InputRecipe
from rnncli.models.loading import load_model
from rnncli.models.node_listing import recurrent_nodes
from rnncli.models.sessions import evaluate_model

SMALL = ["lstm_packed_bi_ts", "loop_gru_script_ts"]
SECONDS, BYTES = 100, 1 << 30  # none takes one second


def large_values(data):
    """Yield where the values of weights lie: flipping those damages nothing."""
    model = onnx.load_from_string(data)
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > 64:
            start = data.index(tensor.raw_data)
            yield range(start, start + len(tensor.raw_data))


@cache
def structure(name):
    """Return a model's bytes, and the positions of all but large values."""
    data = PATHS[name].read_bytes()
    skipped = set().union(*large_values(data))
    return data, [place for place in range(len(data)) if place not in skipped]


def mutilated(name, seed):
    """Return a model's bytes, cut off or with some bits of its structure flipped."""
    chance = random.Random(seed)  # noqa: S311 -- not cryptography
    whole, positions = structure(name)
    if seed % 5 == 0:
        return whole[: chance.randrange(len(whole))]
    data = bytearray(whole)
    for place in chance.sample(positions, chance.choice([1, 1, 2, 5])):
        data[place] ^= 1 << chance.randrange(8)
    return bytes(data)


@pytest.fixture
def _bounded():
    """Kill the test if it hangs, fail it if it takes too much memory."""
    signal.alarm(SECONDS)
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    signal.alarm(0)
    assert peak < BYTES


@pytest.mark.usefixtures("_bounded")
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("name", SMALL)
def test_a_mutilated_model_runs_or_is_refused(tmp_path, name, seed):
    """Truncated and bit-flipped models run or end in exit 2 or 3, in time and memory."""
    path = tmp_path / "m.onnx"
    path.write_bytes(mutilated(name, seed))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load_model(path)
            list(recurrent_nodes(model))
            evaluate_model(model, InputRecipe(model).make({}))
        except (InvalidRequest, Unsupported) as error:
            assert str(error).startswith(str(path))  # noqa: PT017 -- it need not be raised
