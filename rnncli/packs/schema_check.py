"""A validator for the subset of JSON Schema that our schemas use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.files.paths import Identifier, RelativePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LONGEST_SHOWN = 60

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
_TEXT = {"type": "string"}
# Formats of texts that name files; other validators ignore them.
FORMATS: Mapping[str, Callable[[str], str]] = {
    "rnncli-path": RelativePath,
    "rnncli-identifier": Identifier,
}


def whole_object(properties: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    """Return the schema of an object that has these entries and no others."""
    names = list(required or properties)
    return {
        "type": "object",
        "properties": dict(properties),
        "required": names,
        "additionalProperties": False,
    }


def check(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Refuse a value that does not follow its schema.

    Args:
        value: the JSON data.
        schema: a schema with the keywords type, const, enum, anyOf, pattern, format, minimum,
            maximum, items, uniqueItems, properties, required and additionalProperties.
        where: the value's name in messages.

    Raises:
        InvalidRequest: the first violation, with its place.
    """
    for problem in _problems(value, schema):
        raise InvalidRequest(f"{where} {problem}, got {_shown(value)}")
    if "anyOf" in schema:
        _check_any(value, schema["anyOf"], where)
    if isinstance(value, list) and "items" in schema:
        _check_items(value, schema["items"], where)
    if isinstance(value, dict):
        _check_entries(value, schema, where)


def _check_any(value: Any, schemas: list[Mapping[str, Any]], where: str) -> None:
    """Refuse a value that follows none of the schemas, for the last one's reason."""
    for last, schema in enumerate(schemas, 1 - len(schemas)):
        try:
            check(value, schema, where)
        except InvalidRequest:
            if not last:
                raise
        else:
            return


def _check_items(values: list[Any], schema: Mapping[str, Any], where: str) -> None:
    if schema == _TEXT and {*map(type, values)} <= {str}:
        return  # most lists are of plain text, and a pack has tens of thousands of them
    for k, each in enumerate(values):
        check(each, schema, f"{where}[{k}]")


def _check_entries(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> None:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    names = schema.get("propertyNames", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise InvalidRequest(f"{where} has no '{name}'")
    for name, each in value.items():
        if name not in known and rest is False:
            raise InvalidRequest(f"{where} has an unknown entry {_shown(name)}")
        if names:
            check(name, names, f"a name in {where}")
        inner = known.get(name, rest)
        if isinstance(inner, dict):
            check(each, inner, f"{where}.{name}")


def _problems(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    kinds = schema.get("type")
    if kinds and not _is_any(value, [kinds] if isinstance(kinds, str) else kinds):
        yield f"must be {kinds if isinstance(kinds, str) else ' or '.join(kinds)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"must be one of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, str):
        yield from _problems_of_text(value, schema)
    elif isinstance(value, (int, float)):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"must be from {schema.get('minimum')} to {schema.get('maximum', 'any')}"
    elif schema.get("uniqueItems") and len({*map(repr, value)}) < len(value):
        yield "must not have duplicates"


def _problems_of_text(value: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield f"must match {schema['pattern']}"
    if "format" in schema:
        try:
            FORMATS[schema["format"]](value)
        except InvalidRequest as error:
            yield f"does not name a file: {error}"


def _is_any(value: Any, kinds: list[str]) -> bool:
    return any(
        isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in kinds
    )


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"an {'object' if isinstance(value, dict) else 'array'} of {len(value)}"
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
