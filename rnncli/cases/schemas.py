"""The JSON Schemas of configs and suites, from the tables of operators, fills and keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rnncli.cases.config.case_shapes import SIZES, least_size, size_names
from rnncli.cases.config.inputs import FILE_KEYS, fills_for
from rnncli.cases.config.keys import (
    CHOICES,
    DEFAULT_DTYPE,
    DRESS_KEYS,
    KEYS,
    LARGEST_INTEGER,
    LARGEST_SIZE,
)
from rnncli.cases.fills import ALL, FILLS, KINDS, Fill
from rnncli.cases.suite import breakage, case_plan
from rnncli.cases.suite.case_plan import (
    CASE_KEYS,
    DEFAULT_GOLDEN,
    DEFAULT_PROFILE,
    DEFAULT_WEIGHTS,
    GOLDENS,
    MOST_CALLS,
    SUITE_KEYS,
    WEIGHTS,
)
from rnncli.cases.suite.expansion import STRATEGIES
from rnncli.cases.suite.template import LABEL, SECTIONS, known_paths
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS
from rnncli.operators.spelling import Spelling
from rnncli.operators.unit import INPUT_TYPES, possible_readings
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.cases.suite.template import Path
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
        "dress": _dress(),
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
    "quantise": {
        "type": ["object", "null"],
        "additionalProperties": {"anyOf": [{"$ref": "#/$defs/dress"}, {"type": "null"}]},
    },
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
                "readings": closed(
                    {n: reading_schema(n, d) for n, d in possible_readings(row).items()}
                ),
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


def reading_schema(name: str, default: str) -> Schema:
    """Return the schema of a reading."""
    return {
        "description": READINGS[name].summary,
        "enum": list(READINGS[name].choices),
        "default": default,
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


def _dress() -> Schema:
    """Return the schema of a quantised tensor."""
    several = {
        name: {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}
        for name, one in (
            ("scale", {"type": "number", "exclusiveMinimum": 0}),
            ("zero_point", {"type": "integer"}),
        )
    }
    own: dict[str, Schema] = {
        "type": {"enum": [*INPUT_TYPES]},
        "scale": several["scale"],
        "zero_point": {"anyOf": [several["zero_point"], {"type": "null"}]},
        "axis": {"type": ["integer", "null"]},
    }
    described = {name: {"description": DRESS_KEYS[name], **each} for name, each in own.items()}
    return {"type": "object", **closed(described), "required": ["type", "scale"]}


def _file() -> Schema:
    properties = {
        name: {"description": summary, "type": "string", "minLength": 1}
        for name, summary in FILE_KEYS.items()
    }
    return {"type": "object", **closed(properties), "required": ["file"]}


_NULL: Schema = {"type": "null"}
_TEXT: Schema = {"type": "string", "minLength": 1}
_CASE: Schema = {"$ref": "#/$defs/case"}
_NAME = f"^{LABEL.pattern}$"
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}


def suite_schema() -> Schema:
    """Return the schema of a suite, draft 2020-12.

    It covers names, types and choices. Only the reader checks which combinations an operator can
    express.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli suite",
        "description": "Many cases of recurrent operators, for `rnncli generate`.",
        "type": "object",
        **_described(SUITE_KEYS, _suite_properties()),
        "required": ["suite", "summary", "cases"],
        "$defs": {
            "case": {"type": "object", **_described(CASE_KEYS, _case_properties())},
            "axes": _axes(),
            "flags": {"type": "array", "items": _TEXT},
            **{_name(path): schema for path, schema in _settings().items()},
            **value_definitions(),
        },
    }


def _described(keys: Mapping[str, str], properties: Mapping[str, Schema]) -> Schema:
    return closed({name: {"description": keys[name], **properties[name]} for name in keys})


def _suite_properties() -> dict[str, Schema]:
    return {
        "suite": {"type": "string", "pattern": _NAME},
        "summary": _TEXT,
        "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": LARGEST_INTEGER},
        "golden": _choice(GOLDENS, DEFAULT_GOLDEN),
        "profile": _choice(PROFILES, DEFAULT_PROFILE),
        "score": {"type": ["boolean", "null"], "default": False},
        "notes": {"type": ["object", "null"], "additionalProperties": _TEXT},
        "defaults": {"anyOf": [_CASE, _NULL]},
        "cases": {
            "type": "object",
            "propertyNames": {"pattern": _NAME},
            "minProperties": 1,
            "additionalProperties": _CASE,
        },
    }


def _choice(names: Iterable[object], default: object) -> Schema:
    return {"enum": [*names, None], "default": default}


def _case_properties() -> dict[str, Schema]:
    label: Schema = {"type": "object", "minProperties": 1}
    labels = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}
    return {
        **{path[0]: _reference(path) for path in _settings() if len(path) == 1},
        "summary": {"type": ["string", "null"]},
        "flags": {"anyOf": [{"$ref": "#/$defs/flags"}, _NULL]},
        "axis_flags": {
            "type": ["object", "null"],
            "additionalProperties": {"$ref": "#/$defs/flags"},
        },
        **{key: {"type": ["boolean", "null"]} for key in Spelling._fields},
        "golden": _choice(GOLDENS, DEFAULT_GOLDEN),
        "profile": _choice(PROFILES, DEFAULT_PROFILE),
        "calls": _calls(),
        "horizon": {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": [case_plan.ALL, None]}]},
        "matrix": {"$ref": "#/$defs/axes"},
        "zip": {"$ref": "#/$defs/axes"},
        "strategy": _choice(STRATEGIES, "product"),
        "exclude": _items({**label, **closed(dict.fromkeys(_axis_paths(), labels))}),
        "include": _items({**label, **closed(dict.fromkeys(_axis_paths(), _SCALAR))}),
    }


def _calls() -> Schema:
    """Return the schema of a number of calls, or of a list of later calls."""
    own = closed({name: _reference((name,)) for name in case_plan.OF_A_LATER_CALL})
    return {"anyOf": [_choice(range(1, MOST_CALLS + 1), 1), _items(own)]}


def _axis_paths() -> dict[str, Path]:
    """Return the path that an axis of each name sets."""
    return {path[-1]: path for path in reversed(known_paths(OPERATORS.values()))}


def _axes() -> Schema:
    axes = {name: _axis(_reference(path)) for name, path in _axis_paths().items()}
    return {"type": ["object", "null"], **closed(axes)}


def _name(path: Path) -> str:
    return "_".join(("of", *path))


def _reference(path: Path) -> Schema:
    return {"$ref": f"#/$defs/{_name(path)}"}


def _items(schema: Schema) -> Schema:
    return {"type": ["array", "null"], "items": schema}


def _axis(value: Schema) -> Schema:
    """Return the schema of an axis: a list of values, bare or labelled, or {label: value}."""
    labelled = {"type": "object", "propertyNames": {"pattern": _NAME}, "minProperties": 1}
    one = {**labelled, "maxProperties": 1, "additionalProperties": value}
    bare = {"allOf": [_SCALAR, value]}
    return {
        "anyOf": [
            {"type": "array", "minItems": 1, "items": {"anyOf": [bare, one]}},
            {**labelled, "additionalProperties": value},
        ]
    }


def _settings() -> dict[Path, Schema]:
    """Return the schema of each path of a case, for any operator."""
    rows = OPERATORS.values()
    members: dict[Path, Schema] = {}
    for row in rows:
        for name in size_names(row):
            _allow(members, ("sizes", name), size_schema(row, name))
        for attribute in row.attributes.values():
            _allow(members, ("attributes", attribute.name), attribute_schema(attribute))
        for tensor in row.inputs:
            _allow(members, ("inputs", tensor.name), input_schema(tensor))
        for name, default in possible_readings(row).items():
            _allow(members, ("readings", name), reading_schema(name, default))
    sections: dict[Path, Schema] = {(name,): _section(name, members) for name in SECTIONS}
    dtypes = dict.fromkeys(dtype for row in rows for dtype in row.dtypes)
    types = dict.fromkeys(row.type for row in rows)
    return {
        ("op",): {"enum": [*OPERATORS, *types]},
        ("opset",): {"enum": [*sorted({row.version for row in rows}), None]},
        ("dtype",): _choice(dtypes, DEFAULT_DTYPE),
        **{
            (key,): _choice(dict.fromkeys(v for row in rows for v in c.allowed(row)), c.default)
            for key, c in CHOICES.items()
        },
        ("weights",): _choice(WEIGHTS, DEFAULT_WEIGHTS),
        ("quantise",): _GENERAL["quantise"],
        ("outputs",): _items({"enum": [*dict.fromkeys(o.name for r in rows for o in r.outputs)]}),
        ("breaks",): _breaks(),
        **sections,
        **members,
    }


def _allow(members: dict[Path, Schema], path: Path, schema: Schema) -> None:
    """Add one operator's schema of a path to those of others; null is always valid."""
    known = members.setdefault(path, {"anyOf": [_NULL]})["anyOf"]
    if schema not in known:
        known.append(schema)


def _section(name: str, members: Iterable[Path]) -> Schema:
    entries = {path[1]: _reference(path) for path in members if path[0] == name}
    return {"type": ["object", "null"], **closed(entries)}


def _breaks() -> Schema:
    kinds = {
        name: {
            "description": kind.summary,
            **({"type": "array", "items": _TEXT} if name == "drop" else {"type": "object"}),
        }
        for name, kind in breakage.KINDS.items()
    }
    return {"type": ["object", "null"], **closed(kinds), "minProperties": 1, "maxProperties": 1}
