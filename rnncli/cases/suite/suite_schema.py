"""The JSON Schema of suites, generated from the tables of configs and suites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.cases.config.case_shapes import size_names
from rnncli.cases.config.keys import CHOICES, DEFAULT_DTYPE, LARGEST_INTEGER
from rnncli.cases.config.schema import (
    Schema,
    attribute_schema,
    closed,
    input_schema,
    reading_schema,
    size_schema,
    value_definitions,
)
from rnncli.cases.suite.axes import LABEL, known_paths
from rnncli.cases.suite.breakage import KINDS
from rnncli.cases.suite.expansion import STRATEGIES
from rnncli.cases.suite.settings import SECTIONS
from rnncli.cases.suite.suite_keys import (
    ALL,
    CASE_KEYS,
    DEFAULT_GOLDEN,
    DEFAULT_PROFILE,
    DEFAULT_WEIGHTS,
    GOLDENS,
    MOST_CALLS,
    SUITE_KEYS,
    WEIGHTS,
)
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.cases.suite.settings import Path

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
        "empty_names": {"type": ["boolean", "null"]},
        "golden": _choice(GOLDENS, DEFAULT_GOLDEN),
        "profile": _choice(PROFILES, DEFAULT_PROFILE),
        "calls": _choice(range(1, MOST_CALLS + 1), 1),
        "horizon": {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": [ALL, None]}]},
        "matrix": {"$ref": "#/$defs/axes"},
        "zip": {"$ref": "#/$defs/axes"},
        "strategy": _choice(STRATEGIES, "product"),
        "exclude": _items({**label, **closed(dict.fromkeys(_axis_paths(), labels))}),
        "include": _items({**label, **closed(dict.fromkeys(_axis_paths(), _SCALAR))}),
    }


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
        for name in row.readings:
            _allow(members, ("readings", name), reading_schema(name, row))
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
        for name, kind in KINDS.items()
    }
    return {"type": ["object", "null"], **closed(kinds), "minProperties": 1, "maxProperties": 1}
