"""The building blocks of the JSON Schemas of printed lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.packs.manifest import Field

TEXT = {"type": "string"}
WHOLE = {"type": "integer", "minimum": 0}
YES = {"type": "boolean"}
SECONDS = {"type": "number", "minimum": 0}
# JSON has no infinity and no NaN.
NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]}


def list_of(items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


def named(items: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping with any names."""
    return {"type": "object", "additionalProperties": items}


def or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional value."""
    return {"anyOf": [schema, {"type": "null"}]}


def object_of(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": {
            name: {"description": row.summary, **row.schema} if row.summary else {**row.schema}
            for name, row in fields.items()
        },
        "required": list(fields),
        "additionalProperties": False,
    }


def lines_schema(
    title: str,
    description: str,
    lines: Mapping[str, Mapping[str, Field]],
    parts: Mapping[str, Mapping[str, Field]] | None = None,
) -> dict[str, Any]:
    """Return the JSON Schema of a line, draft 2020-12.

    Args:
        title: the command that prints it.
        description: the kinds of lines.
        lines: kind -> fields.
        parts: other objects that fields refer to, by name.
    """
    objects = {**lines, **(parts or {})}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in lines],
        "$defs": {kind: object_of(fields) for kind, fields in objects.items()},
    }
