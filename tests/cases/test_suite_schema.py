"""Claims about the JSON Schema of suites: current, valid, and in agreement with the reader."""

from pathlib import Path

import jsonschema
import pytest

from rnncli.cases.library import specs_folder
from rnncli.cases.schemas import schema_text, suite_schema
from rnncli.cases.suite.breakage import KINDS
from rnncli.cases.suite.case_plan import CASE_KEYS, GOLDENS, SUITE_KEYS, WEIGHTS
from rnncli.cases.suite.expansion import STRATEGIES
from rnncli.cases.suite.suite import parse_suite
from rnncli.cases.yaml_reader import parse_yaml
from rnncli.errors import ConfigError
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS

SCHEMA = suite_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SIZES = "{seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}"
START = f"suite: s\nsummary: a trial\ndefaults: {{op: LSTM-14, sizes: {SIZES}}}\n"


def test_the_committed_schema_is_current():
    """`rnncli schema suite` writes it; nobody edits it."""
    assert (specs_folder() / "schema/suite.schema.json").read_text() == schema_text(SCHEMA)


def test_the_schema_is_one():
    """Of draft 2020-12, every definition in use."""
    VALIDATOR.check_schema(SCHEMA)
    text = schema_text(SCHEMA)
    for name in SCHEMA["$defs"]:
        assert f'"#/$defs/{name}"' in text


ACCEPTED = [
    "cases: {x: {}}",
    "score: true\ncases: {x: {}}",
    "seed: 3\ngolden: float64\nprofile: exact\nscore:\nnotes:\ncases: {x: {summary: y}}",
    "notes: {A: a, B: b}\ncases: {x: {flags: [A], axis_flags: {r: [B]}, matrix: {clip: {r: 1}}}}",
    "cases: {x: {matrix: {clip: [null, 1, {a: 2}], dtype: [float16], hidden_size: [5, 7]}}}",
    "cases: {x: {matrix: {inputs: {a: , b: {X: ones, P: null}}, outputs: [{y: [Y]}]}}}",
    "cases: {x: {matrix: {op: [LSTM], opset: [7, 14]}}}",
    "cases: {x: {matrix: {activations: [null, {a: [Relu, Relu, Relu]}]}, strategy: 3-way}}",
    "cases: {x: {zip: {clip: [1, 2], P: [null, {p: {uniform: [0, 1]}}]}, weights: initializers}}",
    "cases: {x: {matrix: {clip: [1, 2]}, exclude: [{clip: [1]}], include: [{clip: 1}]}}",
    "cases: {x: {breaks: {attributes: {layout: 2}}}}",
    "cases: {x: {breaks: {drop: [R]}}}",
    "cases: {x: {matrix: {breaks: {a: {sizes: {W: {input_size: 4}}}}}}}",
    "cases: {x: {matrix: {clip-scope: [gates, activations], direction: [reverse]}}}",
]
REFUSED = [
    "",
    "cases: {}",
    "cases: []",
    "cases: {A: {}}",
    "cases: {x: 3}",
    "sumary: s\ncases: {x: {}}",
    "seed: -1\ncases: {x: {}}",
    "golden: float32\ncases: {x: {}}",
    "profile: none\ncases: {x: {}}",
    "score: 3\ncases: {x: {}}",
    "notes: {A: 3}\ncases: {x: {flags: [A]}}",
    "cases: {x: {seed: 3}}",
    "cases: {x: {op: LSTN-14}}",
    "cases: {x: {op: LSTM, opset: 13}}",
    "cases: {x: {dtype: float8}}",
    "cases: {x: {weights: constants}}",
    "cases: {x: {strategy: pairs}}",
    "cases: {x: {flags: A}}",
    "cases: {x: {attributes: {clipp: 3}}}",
    "cases: {x: {inputs: {Q: ones}}}",
    "cases: {x: {sizes: {hiden_size: 3}}}",
    "cases: {x: {readings: {clip: 3}}}",
    "cases: {x: {matrix: {summary: [a]}}}",
    "cases: {x: {matrix: {clip: 3}}}",
    "cases: {x: {matrix: {clip: []}}}",
    "cases: {x: {matrix: {clip: {A: 3}}}}",
    "cases: {x: {matrix: {clip: [{a: 1, b: 2}]}}}",
    "cases: {x: {matrix: {dtype: [float8]}}}",
    "cases: {x: {matrix: {inputs: {a: {Q: ones}}}}}",
    "cases: {x: {exclude: {a: b}}}",
    "cases: {x: {matrix: {clip: [1, 2]}, exclude: [{}]}}",
    "cases: {x: {matrix: {clip: [1, 2]}, include: [{clip: [1]}]}}",
    "cases: {x: {breaks: {}}}",
    "cases: {x: {breaks: {layout: 2}}}",
    "cases: {x: {breaks: {drop: [R], attributes: {layout: 2}}}}",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_reader_and_schema_accept(text):
    """An editor underlines nothing that the reader takes."""
    for entry in parse_suite(START + text, "x", Path()).entries:
        entry.case()
    VALIDATOR.validate(parse_yaml(START + text, "x").plain)


@pytest.mark.parametrize("text", REFUSED)
def test_reader_and_schema_refuse(text):
    """An editor underlines what the reader refuses, names, types and choices at least."""
    with pytest.raises(ConfigError):
        parse_suite(START + text, "x", Path())
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(parse_yaml(START + text, "x").plain)


def test_every_row_is_in_the_schema():
    """Keys, goldens, placements, strategies, profiles, ways to break, operators."""
    case = SCHEMA["$defs"]["case"]["properties"]

    assert list(SCHEMA["properties"]) == list(SUITE_KEYS)
    assert list(case) == list(CASE_KEYS)
    assert SCHEMA["properties"]["golden"]["enum"] == [*GOLDENS, None]
    assert SCHEMA["properties"]["profile"]["enum"] == [*PROFILES, None]
    assert case["strategy"]["enum"] == [*STRATEGIES, None]
    assert SCHEMA["$defs"]["of_weights"]["enum"] == [*WEIGHTS, None]
    assert list(SCHEMA["$defs"]["of_breaks"]["properties"]) == list(KINDS)
    assert set(SCHEMA["$defs"]["of_op"]["enum"]) > set(OPERATORS)
