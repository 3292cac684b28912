"""Our rows of ONNX's operators and ONNX's own schemas say the same."""

import onnx
import pytest

from rnncli.operators import OPERATORS

TYPES = {"RNN", "GRU", "LSTM", "LinearAttention", "CausalConvWithState"}
SCHEMAS = {
    f"{schema.name}-{schema.since_version}": schema
    for schema in onnx.defs.get_all_schemas_with_history()
    if schema.domain == "" and schema.name in TYPES
}
ROWS = {name: row for name, row in OPERATORS.items() if row.dialect == "ONNX"}
TYPE_NAMES = {"bfloat16": "bfloat16", "double": "float64", "float": "float32"}


def test_every_version_has_a_row():
    """No version is missing, none is invented."""
    assert set(SCHEMAS) == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_inputs_agree(name):
    """Names, order, optionality and element types."""
    row, schema = ROWS[name], SCHEMAS[name]

    assert [
        (tensor.name, tensor.option == onnx.defs.OpSchema.FormalParameterOption.Optional)
        for tensor in schema.inputs
    ] == [(tensor.name, tensor.optional) for tensor in row.inputs]
    for theirs, tensor in zip(schema.inputs, row.inputs, strict=True):
        assert {element(text) for text in theirs.types} == set(row.input_dtypes(tensor))


@pytest.mark.parametrize("name", ROWS)
def test_outputs_agree(name):
    """Names and order; all optional, as semantics.md has it (GRU-1's schema says Y_h is not).

    A node of a linear recurrence has both of its outputs.
    """
    row, schema = ROWS[name], SCHEMAS[name]

    assert [tensor.name for tensor in schema.outputs] == [tensor.name for tensor in row.outputs]
    assert {tensor.optional for tensor in row.outputs} == {row.translation is None}


@pytest.mark.parametrize("name", ROWS)
def test_attributes_agree(name):
    """Names, types, which are required, and defaults, GRU-1's `foward` aside."""
    row, schema = ROWS[name], SCHEMAS[name]

    assert set(schema.attributes) == set(row.attributes)
    for attribute in row.attributes.values():
        theirs = schema.attributes[attribute.name]
        assert theirs.type.name.lower() == attribute.type
        assert theirs.required == attribute.required
        default = value_of(theirs.default_value)
        if (name, attribute.name) == ("GRU-1", "direction"):
            assert default == "foward"
            default = attribute.aliases[default]
        assert default == attribute.default


def element(text):
    """Spell `tensor(double)` as we do."""
    name = text.removeprefix("tensor(").removesuffix(")")
    return TYPE_NAMES.get(name, name)


def value_of(attribute):
    """Return the value of an AttributeProto, text decoded; None where there is none."""
    if not attribute.type:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, list):
        return [item.decode() if isinstance(item, bytes) else item for item in value]
    return value.decode() if isinstance(value, bytes) else value
