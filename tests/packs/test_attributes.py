"""Claims about the attributes that a pack tells: those of its models, to the last bit."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from support import scalar_specification
from support.judged import ran, vectors_of

from rnncli.judging.judgement import judge
from rnncli.packs.pack import open_pack
from rnncli.packs.raw_form import raw_case

TILES = Path(__file__).parents[2] / "vectors" / "tiles"


@cache
def tiles():
    """The committed vectors of tiles that must run."""
    return [v for v in open_pack(TILES).vectors() if v.record.expect == "result"]


def attributes_of(model):
    """The attributes of a model's only node."""
    (node,) = onnx.load_model_from_string(model).graph.node
    values = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    return {name: plain(value) for name, value in values.items()}


def plain(value):
    """A value with text for bytes."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


SIZES = "{seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 2}"
# Numbers that float32 does not have.
ODD = (
    "clip: 0.45",
    "clip: 16777217",
    "clip: 1e39",
    "activations: [HardSigmoid, Elu, Tanh], activation_alpha: [0.1, 0.7], activation_beta: [0.6]",
)
CASES = [f"{{op: LSTM-14, sizes: {SIZES}, attributes: {{{odd}}}}}" for odd in ODD]


def test_they_are_those_of_the_model():
    """In the record, from Python and in case.json, of committed cases and of odd numbers."""
    wrong = [
        vector.id
        for vector in (*tiles(), *vectors_of(*CASES))
        for told in (vector.attributes, raw_case(vector).case["attributes"])
        if {name: number(value) for name, value in told.items()} != attributes_of(vector.model)
    ]

    assert wrong == []


def number(value):
    """A value of JSON, in which infinity is text."""
    return math.inf if value == "inf" else value


def computed(vector):
    """The outputs of a kernel in float64 that takes the attributes as they are told."""
    asked = vector.record.operator, vector.inputs, vector.attributes, vector.record.readings
    found = scalar_specification.evaluate(*asked)
    return {name: found[name].astype(v.dtype) for name, v in vector.answers.outputs.items()}


def test_a_kernel_in_float64_needs_nothing_else(monkeypatch):
    """It takes clip, alpha and beta from the record as they are, and passes."""
    defaults = scalar_specification.DEFAULTS.items()
    single = {name: tuple(map(float, np.float32(row))) for name, row in defaults}
    monkeypatch.setattr(scalar_specification, "DEFAULTS", single)
    monkeypatch.setattr(scalar_specification, "single", float)

    assert [v.id for v in tiles() if judge(v, ran(computed(v))).verdict != "pass"] == []
