"""The JSON Schemas of configs and suites, from the tables of operators, fills and keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rnncli.cases.case import default_size, least_size, size_names
from rnncli.cases.config.inputs import FILE_KEYS, fills_for
from rnncli.cases.config.keys import CHOICES, DEFAULT_DTYPE, DRESS_KEYS, KEYS, LARGEST_SIZE, KeyRow
from rnncli.cases.fills import ALL, FILLS, KINDS
from rnncli.cases.suite import breakage
from rnncli.cases.suite.case_plan import CASE_KEYS, SUITE_KEYS
from rnncli.cases.suite.template import LABEL, SECTIONS, known_paths
from rnncli.operators import OPERATORS
from rnncli.operators.checking import possible_readings
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.cases.suite.template import Path
    from rnncli.operators import Attribute, Input, Operator

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
_NULL: Schema = {"type": "null"}
_TEXT: Schema = {"type": "string", "minLength": 1}
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
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
    of_operators = []
    for row in OPERATORS.values():
        needed = [name for name in size_names(row) if default_size(row, name) is None]
        own = {
            **{
                name: closed(each, required=needed if name == "sizes" else ())
                for name, each in sections(row).items()
            },
            "dtype": {"enum": [*row.dtypes, None]},
            **{key: {"enum": [*c.allowed(row), None]} for key, c in CHOICES.items()},
            "outputs": {"items": {"enum": [tensor.name for tensor in row.outputs]}},
        }
        is_of_it = {"properties": {"op": {"const": row.name}}, "required": ["op"]}
        properties = {key: own[key] for key in KEYS if key in own}
        of_operators.append({"if": is_of_it, "then": {"properties": properties}})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli config",
        "description": "One recurrent operator with its inputs, for `rnncli run`.",
        "type": "object",
        "properties": _described(KEYS),
        "required": ["op", "sizes"],
        "additionalProperties": False,
        "allOf": of_operators,
        "$defs": value_definitions(),
    }


def value_definitions() -> dict[str, Schema]:
    """Return the definitions of input values."""
    definitions: dict[str, Schema] = {}
    for name, fill in FILLS.items():
        # Its name, or a key with parameters in order or by name.
        values = {
            p.name: {"description": p.summary, **KINDS[p.kind].schema} for p in fill.parameters
        }
        several: Schema = {"type": "array", "maxItems": len(values)}
        if values:  # JSON Schema does not allow an empty list of schemas
            several["prefixItems"] = list(values.values())
        in_order = {
            "description": ", ".join(values) or "takes no values",
            "anyOf": [_NULL, *list(values.values())[:1], several],
        }
        spelled = {**closed({name: in_order, **values}), "required": [name], "type": "object"}
        definitions[f"fill_{name}"] = {
            "description": fill.summary,
            "anyOf": [{"const": name}, spelled],
        }
    for kind in ALL:
        names = (*(f"fill_{name}" for name in fills_for(kind)), "file", "list")
        definitions[kind] = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}
    files = {name: {"description": summary, **_TEXT} for name, summary in FILE_KEYS.items()}
    return {
        **definitions,
        "dress": {
            "type": "object",
            **closed(_described(DRESS_KEYS)),
            "required": ["type", "scale"],
        },
        "file": {"type": "object", **closed(files), "required": ["file"]},
        "list": {
            "description": "the values, as nested lists in the input's shape",
            "type": "array",
            "items": {"anyOf": [NUMBER, {"$ref": "#/$defs/list"}]},
        },
    }


def _described(keys: Mapping[str, KeyRow]) -> dict[str, Schema]:
    return {name: {"description": row.summary, **row.schema} for name, row in keys.items()}


def schema_text(schema: Schema) -> str:
    """Return a schema as text, as in the files of `specs/`."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def closed(properties: Mapping[str, Schema], *, required: Sequence[str] = ()) -> Schema:
    """Return an object schema without other keys, some of which may be required."""
    schema: Schema = {"properties": properties, "additionalProperties": False}
    return {**schema, "required": [*required]} if required else schema


def sections(row: Operator) -> dict[str, dict[str, Schema]]:
    """Return the schema of each name that a section of an operator's config may hold."""
    return {
        "sizes": {
            name: {"type": "integer", "minimum": least_size(row, name), "maximum": LARGEST_SIZE}
            for name in size_names(row)
        },
        "attributes": {each.name: attribute_schema(each) for each in row.attributes.values()},
        "inputs": {tensor.name: input_schema(tensor) for tensor in row.inputs},
        "readings": {
            name: {
                "description": READINGS[name].summary,
                "enum": list(READINGS[name].choices),
                "default": default,
            }
            for name, default in possible_readings(row).items()
        },
    }


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


def input_schema(row: Input) -> Schema:
    """Return the schema of an input."""
    values = {"$ref": f"#/$defs/{row.kind}"}
    if row.optional:
        return {"description": row.summary, "anyOf": [values, {"type": "null"}]}
    return {"description": row.summary, **values}


def suite_schema() -> Schema:
    """Return the schema of a suite, draft 2020-12.

    It covers names, types and choices. Only the reader checks which combinations an operator can
    express.
    """
    settings = _settings()
    case = _described(CASE_KEYS)
    for (name,) in [path for path in settings if len(path) == 1]:
        case[name] = {"description": CASE_KEYS[name].summary, **_reference((name,))}
    # The path that an axis of each name sets.
    paths = {path[-1]: path for path in reversed(known_paths(OPERATORS.values()))}
    labels = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}
    for name, label in (("exclude", labels), ("include", _SCALAR)):
        own = closed(dict.fromkeys(paths, label))
        case[name]["items"] = {"type": "object", "minProperties": 1, **own}
    axes = {name: _axis(_reference(path)) for name, path in paths.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli suite",
        "description": "Many cases of recurrent operators, for `rnncli generate`.",
        "type": "object",
        **closed(_described(SUITE_KEYS)),
        "required": ["suite", "summary", "cases"],
        "$defs": {
            "case": {"type": "object", **closed(case)},
            "axes": {"type": ["object", "null"], **closed(axes)},
            "flags": {"type": "array", "items": _TEXT},
            **{_name(path): schema for path, schema in settings.items()},
            **value_definitions(),
        },
    }


def _name(path: Path) -> str:
    return "_".join(("of", *path))


def _reference(path: Path) -> Schema:
    return {"$ref": f"#/$defs/{_name(path)}"}


def _axis(value: Schema) -> Schema:
    """Return the schema of an axis: a list of values, bare or labelled, or {label: value}."""
    labelled = {
        "type": "object",
        "propertyNames": {"pattern": f"^{LABEL.pattern}$"},
        "minProperties": 1,
    }
    one = {**labelled, "maxProperties": 1, "additionalProperties": value}
    bare = {"allOf": [_SCALAR, value]}
    return {
        "anyOf": [
            {"type": "array", "minItems": 1, "items": {"anyOf": [bare, one]}},
            {**labelled, "additionalProperties": value},
        ]
    }


def _settings() -> dict[Path, Schema]:
    """Return the schema of each path of a case, for any operator; null is always valid."""
    rows = OPERATORS.values()
    members: dict[Path, Schema] = {}
    for row in rows:
        own = {(n, each): v for n, schemas in sections(row).items() for each, v in schemas.items()}
        for path, schema in own.items():
            known = members.setdefault(path, {"anyOf": [_NULL]})["anyOf"]
            if schema not in known:
                known.append(schema)
    whole = {
        name: closed({path[1]: _reference(path) for path in members if path[0] == name})
        for name in SECTIONS
    }
    dtypes = dict.fromkeys(dtype for row in rows for dtype in row.dtypes)
    types = dict.fromkeys(row.type for row in rows)
    choices = {
        key: dict.fromkeys(v for row in rows for v in choice.allowed(row))
        for key, choice in CHOICES.items()
    }
    outputs = dict.fromkeys(tensor.name for row in rows for tensor in row.outputs)
    breaks = {
        name: {
            "description": kind.summary,
            **({"type": "array", "items": _TEXT} if name == "drop" else {"type": "object"}),
        }
        for name, kind in breakage.KINDS.items()
    }
    return {
        ("op",): {"enum": [*OPERATORS, *types]},
        ("opset",): {"enum": [*sorted({row.version for row in rows}), None]},
        ("dtype",): {"enum": [*dtypes, None], "default": DEFAULT_DTYPE},
        **{
            (key,): {"enum": [*names, None], "default": CHOICES[key].default}
            for key, names in choices.items()
        },
        ("weights",): CASE_KEYS["weights"].schema,
        ("quantise",): KEYS["quantise"].schema,
        ("outputs",): {"type": ["array", "null"], "items": {"enum": [*outputs]}},
        ("breaks",): {
            "type": ["object", "null"],
            **closed(breaks),
            "minProperties": 1,
            "maxProperties": 1,
        },
        **{(name,): {"type": ["object", "null"], **own} for name, own in whole.items()},
        **members,
    }
