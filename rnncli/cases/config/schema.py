"""The JSON Schema of configs, from the tables of operators, fills, readings and dtypes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rnncli.cases.config.case_shapes import SIZES, least_size, size_names
from rnncli.cases.config.inputs import FILE_KEYS, fills_for
from rnncli.cases.config.keys import (
    CHOICES,
    DEFAULT_DTYPE,
    KEYS,
    LARGEST_INTEGER,
    LARGEST_SIZE,
)
from rnncli.cases.fills import ALL, FILLS, KINDS, Fill
from rnncli.operators import OPERATORS
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.operators import Attribute, Input, Operator

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
# Attribute types of the operator rows.
_TYPES: Mapping[str, Schema] = {
    "bool": {"enum": [False, True, 0, 1]},
    "int": {"type": "integer"},
    "float": NUMBER,
    "string": {"type": "string"},
    "floats": {"type": "array", "items": NUMBER},
    "strings": {"type": "array", "items": {"type": "string"}},
}


def config_schema() -> Schema:
    """Return the schema of a config file, draft 2020-12.

    It covers names, types and choices. Only the reader checks shapes, counts of activations and
    ranges that depend on sizes.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli config",
        "description": "One recurrent operator with its inputs, for `rnncli run`.",
        "type": "object",
        "properties": {name: {"description": KEYS[name], **_GENERAL[name]} for name in KEYS},
        "required": ["op", "sizes"],
        "additionalProperties": False,
        "allOf": [_of_operator(row) for row in OPERATORS.values()],
        "$defs": value_definitions(),
    }


def value_definitions() -> dict[str, Schema]:
    """Return the definitions of input values."""
    return {
        **{f"fill_{name}": _fill(name, row) for name, row in FILLS.items()},
        **{kind: _values(kind) for kind in ALL},
        "file": _file(),
        "list": {
            "description": "the values, as nested lists in the input's shape",
            "type": "array",
            "items": {"anyOf": [NUMBER, {"$ref": "#/$defs/list"}]},
        },
    }


def schema_text(schema: Schema) -> str:
    """Return a schema as text, as in the files of `specs/`."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


_GENERAL: Mapping[str, Schema] = {
    "op": {"enum": list(OPERATORS)},
    "summary": {"type": ["string", "null"]},
    "sizes": {
        "type": "object",
        "propertyNames": {"enum": list(SIZES)},
    },
    "dtype": {"type": ["string", "null"], "default": DEFAULT_DTYPE},
    **{key: {"type": ["string", "null"], "default": row.default} for key, row in CHOICES.items()},
    "attributes": {"type": ["object", "null"]},
    "inputs": {"type": ["object", "null"]},
    "outputs": {"type": ["array", "null"], "uniqueItems": True},
    "readings": {"type": ["object", "null"]},
    "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": LARGEST_INTEGER, "default": 0},
}


def _of_operator(row: Operator) -> Schema:
    """Return the schema of a config for one operator."""
    return {
        "if": {"properties": {"op": {"const": row.name}}, "required": ["op"]},
        "then": {
            "properties": {
                "sizes": closed(
                    {name: size_schema(row, name) for name in size_names(row)}, all_of_them=True
                ),
                "dtype": {"enum": [*row.dtypes, None]},
                **{key: {"enum": [*c.allowed(row), None]} for key, c in CHOICES.items()},
                "attributes": closed(
                    {a.name: attribute_schema(a) for a in row.attributes.values()}
                ),
                "inputs": closed({tensor.name: input_schema(tensor) for tensor in row.inputs}),
                "outputs": {"items": {"enum": [tensor.name for tensor in row.outputs]}},
                "readings": closed({name: reading_schema(name, row) for name in row.readings}),
            }
        },
    }


def closed(properties: Mapping[str, Schema], *, all_of_them: bool = False) -> Schema:
    """Return an object schema without other keys, optionally with all keys required."""
    schema: Schema = {"properties": properties, "additionalProperties": False}
    return {**schema, "required": list(properties)} if all_of_them else schema


def size_schema(row: Operator, name: str) -> Schema:
    """Return the schema of a size."""
    return {"type": "integer", "minimum": least_size(row, name), "maximum": LARGEST_SIZE}


def attribute_schema(row: Attribute) -> Schema:
    """Return the schema of an attribute."""
    schema = {"description": row.summary}
    if row.default is not None:
        schema["default"] = row.default
    if row.choices and row.type != "strings":
        return {**schema, "enum": [*row.accepted, None]}
    own = _TYPES[row.type]
    if row.choices:
        own = {**own, "items": {"enum": list(row.choices)}}
    if row.largest is not None:
        own = {**own, "minimum": 1, "maximum": row.largest}
    return {**schema, "anyOf": [own, {"type": "null"}]}


def reading_schema(name: str, row: Operator) -> Schema:
    """Return the schema of a reading."""
    return {
        "description": READINGS[name].summary,
        "enum": list(READINGS[name].choices),
        "default": row.readings[name],
    }


def input_schema(row: Input) -> Schema:
    """Return the schema of an input."""
    values = {"$ref": f"#/$defs/{row.kind}"}
    if row.optional:
        return {"description": row.summary, "anyOf": [values, {"type": "null"}]}
    return {"description": row.summary, **values}


def _values(kind: str) -> Schema:
    """Return the schema of an input's values."""
    fills = [f"fill_{name}" for name in fills_for(kind)]
    return {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in (*fills, "file", "list")]}


def _fill(name: str, row: Fill) -> Schema:
    """Return the schema of a fill: its name, or a key with parameters in order or by name."""
    values = {p.name: {"description": p.summary, **KINDS[p.kind].schema} for p in row.parameters}
    first = list(values.values())[:1]
    several: Schema = {"type": "array", "maxItems": len(values)}
    if values:  # JSON Schema does not allow an empty list of schemas
        several["prefixItems"] = list(values.values())
    in_order = {
        "description": ", ".join(values) or "takes no values",
        "anyOf": [{"type": "null"}, *first, several],
    }
    spelled: Schema = {**closed({name: in_order, **values}), "required": [name], "type": "object"}
    return {"description": row.summary, "anyOf": [{"const": name}, spelled]}


def _file() -> Schema:
    properties = {
        name: {"description": summary, "type": "string", "minLength": 1}
        for name, summary in FILE_KEYS.items()
    }
    return {"type": "object", **closed(properties), "required": ["file"]}
