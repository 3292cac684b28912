"""Claims about the JSON Schema: current, valid, and in agreement with the reader."""

import json

import jsonschema
import pytest
from support.tables import every

from rnncli.cases.config.config import parse_config
from rnncli.cases.fills import FILLS
from rnncli.cases.library import find_spec, spec_names, specs_folder
from rnncli.cases.schemas import config_schema, schema_text
from rnncli.cases.yaml_reader import parse_yaml, read_yaml
from rnncli.errors import ConfigError
from rnncli.operators import OPERATORS
from rnncli.recurrence.readings import READINGS

VALIDATOR = jsonschema.Draft202012Validator(config_schema())
START = "op: LSTM-14\nsizes: {seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 5}\n"


def test_the_committed_schema_is_current():
    """`rnncli schema` writes it; nobody edits it."""
    path = specs_folder() / "schema/config.schema.json"

    assert path.read_text() == schema_text(config_schema())


def test_the_schema_is_one():
    """Of draft 2020-12, without references that lead nowhere."""
    VALIDATOR.check_schema(config_schema())
    text = schema_text(config_schema())
    for name in config_schema()["$defs"]:
        assert f'"#/$defs/{name}"' in text


@every("name", [name for name in spec_names() if name.startswith("ops/")])
def test_every_example_is_valid(name):
    """Of those that ship with the package."""
    VALIDATOR.validate(read_yaml(find_spec(name)).plain)


ACCEPTED = [
    "",
    "summary: x\nseed: 3\ndtype: float64\noutputs: [Y_h]",
    "attributes:\ninputs:\nreadings:\noutputs:\nsummary:\nseed:\ndtype:",
    "attributes: {clip: null, direction: bidirectional, activation_alpha: [0.5, 1]}",
    "inputs: {X: ones, W: {weights: 2}, R: {uniform: [0, 1]}, B: {uniform: 0, high: 3}, P: null}",
    "inputs: {X: {normal: }, P: {special: [3, nan]}, initial_h: {dyadic: [3, 16]}}",
    "inputs: {sequence_lens: lengths, initial_c: [[[1, 2, 3, 4, 5], [1, 2, 3, 4, .nan]]]}",
    "readings: {clip-scope: gates}",
    *[f"inputs: {{X: {name}}}" for name, row in FILLS.items() if "values" in row.kinds],
    *[
        f"inputs: {{sequence_lens: {name}}}"
        for name, row in FILLS.items()
        if "lengths" in row.kinds
    ][:2],
]
REFUSED = [
    "sumary: x",
    "summary: 3",
    "seed: -1",
    "seed: 0.5",
    "dtype: bfloat16",
    "dtype: int32",
    "outputs: [Z]",
    "outputs: [Y, Y]",
    "outputs: Y",
    "attributes: {clipp: 1}",
    "attributes: {clip: a}",
    "attributes: {direction: up}",
    "attributes: {layout: 2}",
    "attributes: {output_sequence: 1}",
    "inputs: {Q: zeros}",
    "inputs: {X: lengths}",
    "inputs: {X: null}",
    "inputs: {X: unifrom}",
    "inputs: {X: {uniform: [1, 2, 3]}}",
    "inputs: {X: {uniform: [a, b]}}",
    "inputs: {X: {uniform: 1, hi: 2}}",
    "inputs: {X: {zeros: 1}}",
    "inputs: {X: {dyadic: [1, 3]}}",
    "inputs: {X: {file: 3}}",
    "inputs: {X: {file: x.npz, kee: x}}",
    "inputs: {X: 0.5}",
    "inputs: {sequence_lens: normal}",
    "readings: {clip-scope: gate}",
    "readings: {recurrence: literal}",
    "sizes: {seq_length: 4, batch_size: 2, input_size: 3}",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_reader_and_schema_accept(text):
    """An editor underlines nothing that the reader takes."""
    parse_config(START + text, "x")
    VALIDATOR.validate(parse_yaml(START + text, "x").plain)


@pytest.mark.parametrize("text", REFUSED)
def test_reader_and_schema_refuse(text):
    """An editor underlines what the reader refuses, names, types and choices at least."""
    start = START.splitlines()[0] + "\n" if text.startswith("sizes") else START

    with pytest.raises(ConfigError):
        parse_config(start + text, "x")
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(parse_yaml(start + text, "x").plain)


def test_every_row_is_in_the_schema():
    """Operators, attributes, inputs, fills and readings."""
    schema = config_schema()
    by_operator = {
        part["if"]["properties"]["op"]["const"]: part["then"]["properties"]
        for part in schema["allOf"]
    }

    assert list(by_operator) == list(OPERATORS)
    for name, row in OPERATORS.items():
        assert list(by_operator[name]["attributes"]["properties"]) == list(row.attributes)
        assert list(by_operator[name]["inputs"]["properties"]) == [i.name for i in row.inputs]
        for reading, part in by_operator[name]["readings"]["properties"].items():
            assert part["enum"] == list(READINGS[reading].choices)
    assert {f"fill_{name}" for name in FILLS} < set(schema["$defs"])
    assert json.loads(schema_text(schema)) == json.loads(json.dumps(schema))
