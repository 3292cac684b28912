"""A YAML 1.2 reader (core schema) whose values know their place in the file.

PyYAML splits the text into events; this module interprets them. It decides which plain scalars are
numbers (PyYAML reads ``1e-5`` as text, ``no`` as False and ``1:30`` as 90), and refuses repeated
keys, tags and files that explode by aliases. `as_yaml` is the way back.
"""

from __future__ import annotations

import itertools
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import yaml

from rnncli.errors import ConfigError, Place, UnreadableFile, did_you_mean
from rnncli.files.reading import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

LARGEST_FILE = 1 << 20  # bytes; larger tensors belong in a separate file
MOST_NODES = 100_000  # counted after expanding aliases
DEEPEST_NESTING = 64

Scalar: TypeAlias = bool | int | float | str | None


class Key(str):
    """A key of a mapping: its text as written, with its place."""

    __slots__ = ("place",)
    place: Place

    def __new__(cls, text: str, place: Place) -> Self:
        """Return a key with its place."""
        key = super().__new__(cls, text)
        key.place = place
        return key

    def __reduce__(self) -> tuple[type[Self], tuple[str, Place]]:
        """Pickle the key with its place."""
        return type(self), (str(self), self.place)


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A value with its place; an alias yields the node of its anchor."""

    # a scalar, a tuple of nodes, or a dictionary from keys to nodes
    value: Scalar | tuple[YamlNode, ...] | dict[Key, YamlNode]
    place: Place  # the place where the value begins
    size: int = 1  # the number of nodes, including itself, with aliases expanded

    @property
    def plain(self) -> object:
        """The value without places, as scalars, lists and dictionaries."""
        if isinstance(self.value, dict):
            return {str(key): node.plain for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain for node in self.value]
        return self.value

    def child(self, step: str | int) -> YamlNode | None:
        """Return the value under a key or at an index, or None."""
        if isinstance(self.value, dict):
            return next((node for key, node in self.value.items() if key == step), None)
        within = isinstance(self.value, tuple) and isinstance(step, int) and step < len(self.value)
        return self.value[step] if within else None  # type: ignore[index,return-value]

    def place_of(self, path: tuple[str | int, ...]) -> Place:
        """Return the place of the value at a path, or of the nearest enclosing value."""
        node: YamlNode | None = self
        nearest = self
        for step in path:
            node = nearest.child(step)
            if node is None:
                break
            nearest = node
        return nearest.place

    def key_place(self, section: str, name: str) -> Place:
        """Return the place of a key in a section, or of the section."""
        node = self.child(section) or self
        keys = node.value if isinstance(node.value, dict) else ()
        return next((key.place for key in keys if key == name), node.place)


# The Python parser gives the same messages and places on every machine; libyaml, which PyYAML may
# lack, is ten times as fast.
_PARSER = yaml.Loader
_LIBYAML = getattr(yaml, "CLoader", _PARSER)


def read_yaml(path: str | Path, *, quickly: bool = False) -> YamlNode:
    """Read a YAML file.

    Args:
        path: the file.
        quickly: whether to parse it with libyaml, whose versions differ in what they accept: for
            files that are shipped. The messages about a malformed one are the usual ones.

    Raises:
        UnreadableFile: it cannot be read or is larger than 1 MiB.
        ConfigError: it is not one well-formed document; every finding has its place.
    """
    source = read_source(path)
    if quickly:
        with suppress(ConfigError):
            return parse_yaml(source, str(path), _LIBYAML)
    return parse_yaml(source, str(path))


def read_source(path: str | Path) -> bytes:
    """Return the bytes of a YAML file, or enough of a file that is too large to be refused.

    Raises:
        UnreadableFile: it cannot be read.
    """
    with open_regular(path, sys.maxsize, may_be_sparse=True) as file:
        return file.read(LARGEST_FILE + 1)


def parse_yaml(source: bytes | str, name: str, parser: type[yaml.Loader] = _PARSER) -> YamlNode:
    """Parse YAML text, or its UTF-8 bytes; empty text is a null.

    Raises:
        UnreadableFile: it is larger than 1 MiB.
        ConfigError: it is not one well-formed document; every finding has its place.
    """
    if len(source) > LARGEST_FILE:
        raise UnreadableFile(
            f"{name}: larger than {LARGEST_FILE >> 20} MiB; put large tensors in a .npz file "
            "and name it: {file: x.npz, key: X}"
        )
    # UTF-8, with or without a byte order mark, as YAML allows.
    if isinstance(source, str):
        text = source.removeprefix("\ufeff")
    elif source.startswith(_UTF16_OR_32):
        raise ConfigError([(Place(name, 1, 1), "the file is UTF-16 or UTF-32; save it as UTF-8")])
    else:
        try:
            text = source.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8", "replace")
            sentence = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
            raise ConfigError([(_place_at(before, name), sentence)]) from None
    if found := _CONTROL.search(text):
        sentence = f"the control character U+{ord(found[0]):04X} is not allowed in a YAML file"
        raise ConfigError([(_place_at(text[: found.start()], name), sentence)])
    return _Composer(text, name, parser).document()


_UTF16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


# U+0085, U+2028 and U+2029 break lines in YAML 1.1 but not in 1.2, and editors differ too.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)


def _place_at(before: str, name: str) -> Place:
    """Return the place that follows some text."""
    lines = re.split("\r\n|\r|\n", before)
    return Place(name, len(lines), len(lines[-1]) + 1)


class _Composer:
    """A builder of nodes from the parser's events, which also collects findings."""

    def __init__(self, text: str, name: str, parser: type[yaml.Loader]) -> None:
        self._name = name
        self._events = _events(text, name, parser)
        self._findings = Findings()
        self._anchors: dict[str, YamlNode | None] = {}  # None: the anchor's node is still open
        self._count = 0

    def document(self) -> YamlNode:
        root = YamlNode(None, Place(self._name, 1, 1))
        try:
            if (start := self._next_content()) is not None:
                if start.version not in (None, (1, 2)):
                    version = ".".join(map(str, start.version))
                    sentence = f"the file says YAML {version}; it would be read as YAML 1.2"
                    self._find(start, sentence)
                if start.tags:
                    self._find(start, "tags are refused; remove %TAG")
                root = self._compose(next(self._events), depth=1)
                if (second := self._next_content()) is not None:
                    self._find(second, "a second document begins here; a file holds one")
        except ConfigError as error:  # the parser stopped; earlier findings also count
            self._findings.extend(error.findings)
        self._findings.raise_any()
        return root

    def _next_content(self) -> yaml.DocumentStartEvent | None:
        """Return the start of the next document, or None at the end of the file."""
        return next((e for e in self._events if isinstance(e, yaml.DocumentStartEvent)), None)

    def _compose(self, event: yaml.NodeEvent, depth: int) -> YamlNode:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        self._count_nodes(event, 1)
        if depth > DEEPEST_NESTING:
            self._stop(event, f"nested more than {DEEPEST_NESTING} deep")
        if getattr(event, "tag", None) is not None:
            self._find(event, "tags are refused: a value is what it looks like")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = YamlNode(self._scalar(event), self._place(event))
        elif isinstance(event, yaml.SequenceStartEvent):
            items = tuple([self._compose(e, depth + 1) for e in self._until(yaml.SequenceEndEvent)])
            node = YamlNode(items, self._place(event), 1 + sum(item.size for item in items))
        else:
            node = self._mapping(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent) -> YamlNode:
        unknown = YamlNode(None, self._place(event))
        if event.anchor not in self._anchors:
            self._find(event, f"no anchor '&{_shortened(event.anchor)}' stands before this alias")
            return unknown
        node = self._anchors[event.anchor]
        if node is None:
            self._find(event, f"'*{_shortened(event.anchor)}' stands inside itself")
            return unknown
        self._count_nodes(event, node.size)
        return node

    def _mapping(self, start: yaml.NodeEvent, depth: int) -> YamlNode:
        entries: dict[Key, YamlNode] = {}
        for event in self._until(yaml.MappingEndEvent):
            # A key is its text, because all keys of these files are names, even ``no``.
            node = self._compose(event, depth + 1)
            if isinstance(event, yaml.AliasEvent) or not isinstance(event, yaml.ScalarEvent):
                self._find(event, "a key must be a plain name")
                key = Key(f"<{len(self._findings)}>", node.place)  # distinct: no false duplicates
            else:
                if event.value == "<<" and not event.style:
                    self._find(event, "merge keys (<<) are not YAML 1.2; write the entries out")
                if not event.value:
                    self._find(event, "a key is empty")
                key = Key(event.value, node.place)

            value = self._compose(next(self._events), depth + 1)
            if key in entries:
                first = next(k for k in entries if k == key).place
                self._find(event, f"'{_shortened(key)}' is already set on line {first.line}")
            entries.setdefault(key, value)
        size = 1 + len(entries) + sum(value.size for value in entries.values())
        return YamlNode(entries, self._place(start), size)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        # In other styles it stands as it is in the text, which has none.
        if event.style == '"' and (found := _CONTROL.search(event.value)):
            self._find(event, f"holds the control character U+{ord(found[0]):04X}")
        if event.style:  # None, or "" by libyaml, for a plain one
            return event.value
        try:
            return plain_scalar(event.value)
        except ValueError as error:
            self._find(event, str(error))
            return None

    def _until(self, end: type[yaml.Event]) -> Iterator[yaml.NodeEvent]:
        return itertools.takewhile(lambda event: not isinstance(event, end), self._events)

    def _count_nodes(self, event: yaml.Event, more: int) -> None:
        self._count += more
        if self._count > MOST_NODES:
            self._stop(event, f"more than {MOST_NODES:,} values, aliases expanded")

    def _place(self, event: yaml.Event) -> Place:
        return _place(self._name, event.start_mark)

    def _find(self, event: yaml.Event, sentence: str) -> None:
        self._findings.add(self._place(event), sentence)

    def _stop(self, event: yaml.Event, sentence: str) -> None:
        raise ConfigError([(self._place(event), sentence)])


def _events(text: str, name: str, parser: type[yaml.Loader]) -> Iterator[yaml.NodeEvent]:
    """Yield the parser's events; its errors become findings."""
    loader = parser(text)
    try:
        while loader.check_event():
            yield loader.get_event()  # type: ignore[no-untyped-call]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or loader.get_mark()
        problem = (error.problem or "malformed").replace("<stream end>", "the end of the file")
        if r"'\t'" in problem:
            problem = "a tab is not allowed here; use spaces"
        elif error.context is not None and error.context_mark is not None:
            problem = f"{problem} {error.context} (begun on line {error.context_mark.line + 1})"
        raise ConfigError([(_place(name, mark), problem)]) from None
    except (ValueError, OverflowError):  # chr(0x110000) or a version of 5,000 digits
        sentence = "an escape or a directive here names a number that does not exist"
        raise ConfigError([(_place(name, loader.get_mark()), sentence)]) from None
    finally:
        loader.dispose()


def _place(name: str, mark: Any) -> Place:
    return Place(name, mark.line + 1, mark.column + 1)


def _shortened(text: str | None) -> str:
    """Shorten text for messages."""
    text = text or ""
    return text if len(text) <= 40 else f"{text[:37]}..."


def _integer(text: str, base: int = 10) -> int:
    if len(text) > 400:
        raise ValueError(f"a number of {len(text)} digits; no tensor or attribute can hold it")
    return int(text, base)


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{_shortened(text)} is beyond float64; infinity is written .inf")
    return value


# The core schema of YAML 1.2.2, section 10.3.2; anything that matches no row is text.
_CORE: tuple[tuple[re.Pattern[str], Callable[[str], Scalar]], ...] = (
    (re.compile(r"null|Null|NULL|~|"), lambda _: None),
    (re.compile(r"true|True|TRUE|false|False|FALSE"), lambda text: text.lower() == "true"),
    (re.compile(r"[-+]?[0-9]+"), _integer),
    (re.compile(r"0o[0-7]+"), lambda text: _integer(text[2:], 8)),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: _integer(text[2:], 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), _finite),
    (re.compile(r"[-+]?(\.inf|\.Inf|\.INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"\.nan|\.NaN|\.NAN"), lambda _: float("nan")),
)


# Characters with which one that is no text begins.
_BEGINNINGS = frozenset("~nNtTfF.+-0123456789")


def plain_scalar(text: str) -> Scalar:
    """Return the value of an unquoted scalar in YAML 1.2's core schema.

    Raises:
        ValueError: a number too large for float64 or an integer of 400 digits.
    """
    if text and text[0] not in _BEGINNINGS:
        return text
    for pattern, convert in _CORE:
        if pattern.fullmatch(text):
            return convert(text)
    return text


def shown(node: YamlNode) -> str:
    """Return a value as text for messages."""
    if isinstance(node.value, tuple):
        return f"a list of {len(node.value)}"
    if isinstance(node.value, dict):
        return "a mapping"
    if isinstance(node.value, str):
        return f"'{node.value:.40}'"
    if node.value is None or isinstance(node.value, bool):
        return {None: "null", True: "true", False: "false"}[node.value]
    return f"{node.value}"[:40]


def read_mapping(
    node: YamlNode,
    whole: str,
    what: str,
    known: Iterable[str] | None,
    findings: Findings,
    *,
    place_of: Callable[[str], str] = lambda _: "",
) -> dict[Key, YamlNode]:
    """Return a mapping's entries; none for other values, which are findings.

    Messages call it `whole`, and a key that is not known `what`; None allows any key. Where a key
    belongs that is not known, `place_of` says in words, or "".
    """
    if not isinstance(node.value, dict):
        findings.add(node.place, f"{whole} must be a mapping, NAME: VALUE, got {shown(node)}")
        return {}
    for key in node.value:
        if known is not None and key not in known:
            place = place_of(key)
            found = f"unknown {what} '{key:.40}'; {place}" if place else unknown(what, key, known)
            findings.add(key.place, found)
    return dict(node.value)


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """Return a message about an unknown word, with a suggestion."""
    hint = did_you_mean(word, known) or f" (there are {', '.join(known)})"
    return f"unknown {what} '{word:.40}'{hint}"


MOST_FINDINGS = 100
LONGEST_SENTENCE = 500


class Findings(list[tuple["Place", str]]):
    """Places and sentences, in the order found."""

    def add(self, place: Place, sentence: str) -> None:
        """Add a finding.

        Raises:
            ConfigError: there are a hundred; a hostile file may have any number.
        """
        if len(sentence) > LONGEST_SENTENCE:  # it may quote a long name
            sentence = f"{sentence[:LONGEST_SENTENCE]}..."
        self.append((place, sentence))
        if len(self) == MOST_FINDINGS:
            self.append((place, f"{MOST_FINDINGS} findings; the rest of the file was not checked"))
            self.raise_any()

    def raise_any(self) -> None:
        """Raise if there are findings.

        Raises:
            ConfigError: all findings, in file order.
        """
        if self:
            raise ConfigError(sorted(dict.fromkeys(self), key=lambda finding: finding[0][1:]))


class _Dumper(yaml.SafeDumper):
    """A dumper with lists but of sentences and short mappings on one line, without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values again, so that readers need not look elsewhere."""
        del data
        return True


# Ids, whose class is one of text, are written as text.
_Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))


def _represent_list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.Node:
    are_sentences = any(isinstance(each, str) and each.count(" ") > MOST_WORDS for each in values)
    style = False if are_sentences else None
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=style)


MOST_WORDS = 5  # of what is not a sentence
_Dumper.add_representer(list, _represent_list)


def as_yaml(record: Mapping[str, Any]) -> str:
    """Return a record as YAML, in its own order."""
    return yaml.dump(
        dict(record),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
