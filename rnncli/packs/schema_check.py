"""A validator for the subset of JSON Schema that our schemas use."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from rnncli.errors import InvalidRequest
from rnncli.files.paths import Identifier, RelativePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Check: TypeAlias = "Callable[[Any], None]"
"""Raises `ViolationError` for a value that does not follow a schema."""

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


class ViolationError(Exception):
    """What is wrong with a value, and where in it.

    The place is put together on the way out, so that a right value costs no text.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.place = ""
        self.before = ""

    def told(self, where: str) -> str:
        """Return the whole sentence about a value of some name."""
        return f"{self.before}{where}{self.place} {self.sentence}"


class SchemaCheck:
    """The check of values by one schema, compiled on first use.

    Args:
        schema: a schema with the keywords type, const, enum, anyOf, pattern, format, minimum,
            maximum, items, uniqueItems, properties, propertyNames, required and
            additionalProperties.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema

    def __call__(self, value: Any, where: str) -> None:
        """Refuse a value that does not follow the schema.

        Args:
            value: the JSON data.
            where: the value's name in messages.

        Raises:
            InvalidRequest: the first violation, with its place.
        """
        try:
            self._check(value)
        except ViolationError as error:
            raise InvalidRequest(error.told(where)) from None

    @cached_property
    def _check(self) -> Check:
        return _compiled(self.schema)


def check(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Refuse a value that does not follow its schema, see `SchemaCheck`.

    Raises:
        InvalidRequest: the first violation, with its place.
    """
    SchemaCheck(schema)(value, where)


def _compiled(schema: Mapping[str, Any]) -> Check:
    """Return the check of a schema: those of its keywords, in the order of the table."""
    checks = [make(schema) for keywords, make in _KEYWORDS if not keywords.isdisjoint(schema)]
    if len(checks) == 1:
        return checks[0]

    def check_all(value: Any) -> None:
        for each in checks:
            each(value)

    return check_all


def _of_type(schema: Mapping[str, Any]) -> Check:
    kinds: list[str] = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    known = [_TYPES[kind] for kind in kinds]
    types = tuple(t for each in known for t in (each if isinstance(each, tuple) else (each,)))
    takes_bool, named = "boolean" in kinds, " or ".join(kinds)

    def check_type(value: Any) -> None:
        # True and False are integers of Python, and not of JSON.
        if not isinstance(value, types) or (value.__class__ is bool and not takes_bool):
            raise ViolationError(f"must be {named}, got {_shown(value)}")

    return check_type


def _of_const(schema: Mapping[str, Any]) -> Check:
    wanted = schema["const"]

    def check_const(value: Any) -> None:
        if value != wanted:
            raise ViolationError(f"must be {wanted!r}, got {_shown(value)}")

    return check_const


def _of_enum(schema: Mapping[str, Any]) -> Check:
    choices = schema["enum"]

    def check_enum(value: Any) -> None:
        if value not in choices:
            listed = ", ".join(map(repr, choices))
            raise ViolationError(f"must be one of {listed}, got {_shown(value)}")

    return check_enum


def _of_pattern(schema: Mapping[str, Any]) -> Check:
    pattern = schema["pattern"]
    matches = re.compile(pattern).fullmatch

    def check_pattern(value: Any) -> None:
        if isinstance(value, str) and not matches(value):
            raise ViolationError(f"must match {pattern}, got {_shown(value)}")

    return check_pattern


def _of_format(schema: Mapping[str, Any]) -> Check:
    named = FORMATS[schema["format"]]

    def check_format(value: Any) -> None:
        if isinstance(value, str):
            try:
                named(value)
            except InvalidRequest as error:
                sentence = f"does not name a file: {error}, got {_shown(value)}"
                raise ViolationError(sentence) from None

    return check_format


def _of_range(schema: Mapping[str, Any]) -> Check:
    least, most = schema.get("minimum"), schema.get("maximum")

    def check_range(value: Any) -> None:
        if isinstance(value, (int, float)) and not (
            (least is None or least <= value) and (most is None or value <= most)
        ):
            above = "any" if most is None else most
            raise ViolationError(f"must be from {least} to {above}, got {_shown(value)}")

    return check_range


def _of_unique(schema: Mapping[str, Any]) -> Check:
    is_due = schema["uniqueItems"]

    def check_unique(value: Any) -> None:
        if is_due and isinstance(value, list) and len({*map(repr, value)}) < len(value):
            raise ViolationError(f"must not have duplicates, got {_shown(value)}")

    return check_unique


def _of_any(schema: Mapping[str, Any]) -> Check:
    *others, last = map(_compiled, schema["anyOf"])

    def check_any(value: Any) -> None:
        for each in others:
            try:
                each(value)
            except ViolationError:
                continue
            return
        last(value)  # whose reason is given

    return check_any


def _of_items(schema: Mapping[str, Any]) -> Check:
    check_item = _compiled(schema["items"])

    def check_items(value: Any) -> None:
        if isinstance(value, list):
            k = 0
            try:
                for k, each in enumerate(value):  # noqa: B007 -- names the item that is wrong
                    check_item(each)
            except ViolationError as error:
                error.place = f"[{k}]{error.place}"
                raise

    return check_items


def _of_entries(schema: Mapping[str, Any]) -> Check:
    known = {name: _compiled(inner) for name, inner in schema.get("properties", {}).items()}
    rest = schema.get("additionalProperties", True)
    check_other = _compiled(rest) if isinstance(rest, dict) else None
    check_name = _compiled(schema["propertyNames"]) if "propertyNames" in schema else None
    required = schema.get("required", ())

    def check_entries(value: Any) -> None:
        if not isinstance(value, dict):
            return
        for name in required:
            if name not in value:
                raise ViolationError(f"has no '{name}'")
        for name, each in value.items():
            inner = known.get(name, check_other)
            if rest is False and inner is None:
                raise ViolationError(f"has an unknown entry {_shown(name)}")
            if check_name:
                _check_name(check_name, name)
            if inner:
                try:
                    inner(each)
                except ViolationError as error:
                    error.place = f".{name}{error.place}"
                    raise

    return check_entries


def _check_name(check_name: Check, name: str) -> None:
    try:
        check_name(name)
    except ViolationError as error:
        error.before = "a name in "
        raise


# Keywords of which one is in a schema -> the check of that schema by them.
_KEYWORDS: tuple[tuple[frozenset[str], Callable[[Mapping[str, Any]], Check]], ...] = (
    (frozenset({"type"}), _of_type),
    (frozenset({"const"}), _of_const),
    (frozenset({"enum"}), _of_enum),
    (frozenset({"pattern"}), _of_pattern),
    (frozenset({"format"}), _of_format),
    (frozenset({"minimum", "maximum"}), _of_range),
    (frozenset({"uniqueItems"}), _of_unique),
    (frozenset({"anyOf"}), _of_any),
    (frozenset({"items"}), _of_items),
    (
        frozenset({"properties", "propertyNames", "required", "additionalProperties"}),
        _of_entries,
    ),
)


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"an {'object' if isinstance(value, dict) else 'array'} of {len(value)}"
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
