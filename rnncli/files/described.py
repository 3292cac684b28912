"""Records as classes: what an object in JSON holds is said once, by a msgspec struct.

Its annotations are the check and the documentation, and its JSON Schema follows from them. A right
value is checked by msgspec alone; only of a wrong one is the place looked for.
"""

from __future__ import annotations

import math
from functools import cache, partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import fields as fields_of

from rnncli.errors import InvalidRequest
from rnncli.files.paths import Identifier, RelativePath, are_plain
from rnncli.options import docstring_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LONGEST_SHOWN = 60
LARGEST = (1 << 63) - 1
RecordT = TypeVar("RecordT", bound="Described")

DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Described(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object that has these entries and no others; those that may be UNSET may be absent.

    A text in an entry's annotation, `Annotated[int, "the number of steps"]`, is its description. A
    default of an entry is for our own code: in JSON it must be there.
    """


class Distinct(Described):
    """A record whose lists that are `UNIQUE` have no duplicates."""

    def __post_init__(self) -> None:
        """Refuse one that has; this is one call a record, where a type of list is one a list."""
        for name in unique_lists(type(self)):
            items = getattr(self, name)
            if items is not UNSET and len({*items}) < len(items):
                raise ValueError(DUPLICATES)


class Sums(dict[str, str]):
    """SHA-256 of files, by path."""

    __slots__ = ()


Whole = Annotated[int, Meta(ge=0)]
Stored = Annotated[int, Meta(ge=0, le=LARGEST)]
"""A whole number of 64 bits."""
UNIQUE = Meta(extra_json_schema={"uniqueItems": True})
DUPLICATES = "must not have duplicates"
Texts = Annotated[list[str], UNIQUE]
"""A list without duplicates, an entry of a `Distinct`."""
Identifiers = Annotated[list[Identifier], UNIQUE]
"""Names of single files or folders, without duplicates."""
AtLeast0 = Annotated[float, Meta(ge=0)]
Digits = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]  # $ may be before a \n


def path_named(text: str, what: str = "", kind: type[RelativePath] = RelativePath) -> RelativePath:
    """Return a path; the sentence of the ValueError begins with `what`.

    Raises:
        ValueError: it is not one, as msgspec expects.
    """
    try:
        return kind(text)
    except InvalidRequest as error:
        raise ValueError(f"{what} does not name a file: {error}".lstrip()) from None


def _sums(sums: dict[str, str]) -> Any:
    if not are_plain(sums):
        for path in sums:
            path_named(path)
    return Sums(sums)


class OwnType(NamedTuple):
    """A type with a rule that msgspec does not have."""

    base: Any  # the type without the rule
    # makes a value of one of the base; a ValueError says which rule it breaks
    made: Callable[[Any], Any]
    keywords: Mapping[str, Any]  # the rule in JSON Schema. Other validators ignore our formats.


OWN_TYPES: dict[Any, OwnType] = {
    RelativePath: OwnType(str, path_named, {"format": "rnncli-path"}),
    Identifier: OwnType(str, partial(path_named, kind=Identifier), {"format": "rnncli-identifier"}),
    Sums: OwnType(dict[RelativePath, Digits], _sums, {"propertyNames": {"format": "rnncli-path"}}),
}


class _StandIn(type):
    """The class of a type that stands in annotations for one that has other JSON."""

    made: type

    def __instancecheck__(cls, value: Any) -> bool:
        """Whether a value is one of that type; msgspec asks it of what was made."""
        return isinstance(value, cls.made)


def own_type(
    name: str,
    base: Any,
    made: type,
    rule: Callable[[Any], Any] | None = None,
    keywords: Mapping[str, Any] | None = None,
) -> Any:
    """Return a type for annotations whose values in Python are of one type, in JSON of another.

    Args:
        name: its name.
        base: the type in JSON.
        made: the type in Python.
        rule: makes a value of one of the base, as of `OwnType`; by default the type does.
        keywords: the rule in JSON Schema.
    """
    kind = _StandIn(name, (), {"made": made})
    OWN_TYPES[kind] = OwnType(base, rule or made, keywords or {})
    return kind


if TYPE_CHECKING:
    Number = float
else:
    Number = own_type("Number", float | Literal["inf", "-inf", "nan"], float)
"""JSON has no infinity and no NaN: they are text."""

_NAMES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    tuple: "array",
    dict: "object",
}


def check(value: Any, kind: Any, where: str) -> None:
    """Refuse JSON data that is not of a class of records, or of another type of their fields.

    Raises:
        InvalidRequest: the first violation, with its place.
    """
    read(value, kind, where)


def read(value: Any, kind: Any, where: str) -> Any:
    """Return JSON data as a value of a kind, such as a record of a class; see `check`."""
    found = _converted(value, kind)
    if found is UNSET:
        fault = _fault(value, kind)
        raise InvalidRequest(f"{fault.before}{where}{fault.place} {fault.sentence}")
    return found


def _is(value: Any, kind: Any) -> bool:
    return _converted(value, kind) is not UNSET


def _converted(value: Any, kind: Any) -> Any:
    """Return JSON data as a value of a kind, or UNSET if it is not of that kind.

    Data that lacks an entry with a default would have more entries if it were written again.
    """
    try:
        found = msgspec.convert(value, kind, dec_hook=_made)
    except (msgspec.ValidationError, UnicodeError):  # UnicodeError: half a surrogate pair
        return UNSET
    repeats = _is_unique(kind) and isinstance(value, list) and len({*value}) < len(value)
    return UNSET if repeats or (_has_defaults(kind) and jsonable(found) != value) else found


def part_of(record: Described, kind: type[RecordT]) -> RecordT:
    """Return the part of a record that a class describes from which its own class derives."""
    return kind(*(getattr(record, name) for name in kind.__struct_fields__))


def jsonable(value: Any) -> Any:
    """Return records, or data with records in it, as JSON data: infinity and NaN become text."""
    if isinstance(value, msgspec.Struct):
        return jsonable(as_data(value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value


def as_data(record: Any) -> Any:
    """Return a record as JSON data in which numbers may be infinite or NaN."""
    return msgspec.to_builtins(
        record, enc_hook=lambda own: dict(own) if isinstance(own, dict) else str(own)
    )


def entries_of(record: Described) -> dict[str, Any]:
    """Return the entries of a record that are there, by name, with records in it as they are."""
    own = {name: getattr(record, name) for name in record.__struct_fields__}
    return {name: value for name, value in own.items() if value is not UNSET}


@cache
def _has_defaults(kind: Any) -> bool:
    """Whether msgspec takes an object of a class that lacks entries, itself or inside."""
    bare = _bare(kind)
    if not _is_record(bare):
        return any(map(_has_defaults, get_args(bare)))
    lax = any(not row.required and row.default is not UNSET for row in fields_of(bare))
    return lax or any(map(_has_defaults, _hints(bare).values()))


@cache
def _is_unique(kind: Any) -> bool:
    return any(UNIQUE in get_args(option) for option in _options(kind))


@cache
def unique_lists(kind: Any) -> list[str]:
    """Return the entries of a class that are lists without duplicates."""
    return [name for name, own in _hints(kind).items() if _is_unique(own)]


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _made(kind: Any, value: Any) -> Any:
    """Return a value as one of our own types; a ValueError becomes msgspec's own error."""
    own = OWN_TYPES[kind]
    return own.made(msgspec.convert(value, own.base, dec_hook=_made))


class _Fault(NamedTuple):
    """What is wrong with a value, and where in it."""

    sentence: str
    place: str = ""
    before: str = ""


def _fault(value: Any, kind: Any) -> _Fault:
    """Return the first fault of a wrong value."""
    for option in _options(kind):
        bare = _bare(option)
        inside: list[tuple[str, Any, Any]] = []  # place, value and type
        if _is_record(bare) and isinstance(value, dict):
            hints, known = _hints(bare), {row.encode_name for row in fields_of(bare)}
            if absent := [name for name in due(bare) if name not in value]:
                return _Fault(f"has no '{absent[0]}'")
            unknown = [name for name in value if name not in known]
            if unknown and bare.__struct_config__.forbid_unknown_fields:
                return _Fault(f"has an unknown entry {shown(unknown[0])}")
            inside = [(f".{n}", each, hints[n]) for n, each in value.items() if n in hints]
        elif get_origin(bare) is dict and isinstance(value, dict):
            of_names, of_values = get_args(bare)
            for name in value:
                if not _is(name, of_names):
                    return _Fault(_sentence(name, of_names), before="a name in ")
            inside = [(f".{n}", each, of_values) for n, each in value.items()]
        elif get_origin(bare) in {list, tuple} and isinstance(value, list):
            inside = [(f"[{k}]", each, get_args(bare)[0]) for k, each in enumerate(value)]
        for step, inner, inner_kind in inside:
            if not _is(inner, inner_kind):
                found = _fault(inner, inner_kind)
                return found._replace(place=f"{step}{found.place}")
    return _Fault(_sentence(value, kind))


def _options(kind: Any) -> list[Any]:
    """Return the types of a union, or the one type, without UNSET and annotations of unions."""
    union = _bare(kind)
    if get_origin(union) not in {Union, UnionType}:
        return [kind]
    options = [option for each in get_args(union) for option in _options(each)]
    return [each for each in options if each is not UnsetType]


@cache
def due(kind: Any) -> dict[str, None]:
    """Return the entries that a JSON object of a class must have, in their order."""
    return dict.fromkeys(row.encode_name for row in fields_of(kind) if row.default is not UNSET)


def _bare(kind: Any) -> Any:
    """Return a type without its annotations and rules."""
    base = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return OWN_TYPES[base].base if base in OWN_TYPES else base


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _sentence(value: Any, kind: Any) -> str:
    """Return why a value is not of a type, although what is in it is right."""
    told, options = shown(value), _options(kind)
    for option in options:
        if _is(value, _bare(option)) and not _is_record(option):
            return f"{_limit(value, option)}, got {told}"
        if _is_record(_bare(option)) and isinstance(value, dict):
            return _said(value, option)  # a rule about several entries
    choices = [repr(each) for option in options for each in _choices(_bare(option))]
    bare = [_bare(each) for each in options if not _choices(_bare(each))]
    names = ["object" if _is_record(each) else _NAMES[get_origin(each) or each] for each in bare]
    if len(choices) > 1 and not names:
        return f"must be one of {', '.join(choices)}, got {told}"
    return f"must be {' or '.join(dict.fromkeys((*names, *choices)))}, got {told}"


def _limit(value: Any, option: Any) -> str:
    """Return the limit that a value of the right type exceeds."""
    notes = get_args(option)[1:] if get_origin(option) is Annotated else ()
    limits = [note for note in notes if isinstance(note, Meta)]
    for meta in (each for each in limits if not _is(value, Annotated[_bare(option), each])):
        if meta.pattern is not None:
            return f"must match {meta.pattern}"
        if meta.ge is not None:
            return f"must be from {meta.ge} to {'any' if meta.le is None else meta.le}"
        if meta.max_length is not None:
            items = "characters" if isinstance(value, str) else "entries"
            return f"must have at most {meta.max_length} {items}"
        if meta is UNIQUE:
            return DUPLICATES
    return _said(value, option)


def _said(value: Any, kind: Any) -> str:
    """Return what our own rule says of a value."""
    try:
        msgspec.convert(value, kind, dec_hook=_made)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _choices(base: Any) -> list[Any]:
    return list(get_args(base)) if get_origin(base) is Literal else []


def shown(value: Any) -> str:
    """Return a value for a message: the size of an object or array, otherwise short ASCII."""
    if isinstance(value, (dict, list)):
        return f"an {'object' if isinstance(value, dict) else 'array'} of {len(value)}"
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a class, without references.

    Docstrings describe classes, and the texts in their annotations describe entries.
    """
    (root,), parts = msgspec.json.schema_components([kind], schema_hook=_schema)
    for row in {*subclasses(Described)}:
        if part := parts.get(row.__name__):
            del part["title"]
            if needed := due(row):
                part["required"] = [*needed]
            part["description"] = " ".join(docstring_of(row).split())
            for name, hint in _hints(row).items():
                notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
                entry = part["properties"][name]
                if texts := [note for note in notes if isinstance(note, str)]:
                    entry = {"description": texts[-1], **entry}
                part["properties"][name] = {k: v for k, v in entry.items() if k != "default"}
    found: dict[str, Any] = _inlined(root, parts)
    return found


def subclasses(kind: Any) -> Iterator[Any]:
    """Yield the classes that derive from a class, at any depth."""
    for row in kind.__subclasses__():
        yield row
        yield from subclasses(row)


def document(kind: Any, title: str, description: str) -> dict[str, Any]:
    """Return the JSON Schema of a file that holds one record, draft 2020-12."""
    schema = {name: value for name, value in schema_of(kind).items() if name != "description"}
    return {**_header(title, description), **schema}


def lines_document(title: str, description: str, lines: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the lines of a command, by their kinds, draft 2020-12."""
    return {
        **_header(title, description),
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in lines],
        "$defs": {kind: schema_of(line) for kind, line in lines.items()},
    }


def counts_schema(names: Iterable[str]) -> dict[str, Any]:
    """Return the keywords of an object with a count for each of some names, and no others."""
    listed = [*map(str, names)]
    return {"propertyNames": {"enum": listed}, "required": listed}


def _header(title: str, description: str) -> dict[str, Any]:
    return {"$schema": DRAFT, "title": title, "description": description}


def _schema(kind: Any) -> dict[str, Any]:
    """Return the schema of one of our own types."""
    own = OWN_TYPES[kind]
    return {**schema_of(own.base), **own.keywords}


def _inlined(value: Any, parts: Mapping[str, Any]) -> Any:
    """Return a schema in which each reference is replaced by what it names."""
    if isinstance(value, list):
        return [_inlined(each, parts) for each in value]
    if not isinstance(value, dict):
        return value
    named = parts[value["$ref"].rpartition("/")[2]] if "$ref" in value else {}
    own = {name: each for name, each in value.items() if name != "$ref"}
    return {name: _inlined(each, parts) for name, each in {**named, **own}.items()}
