"""Options as values, described once: in the docstring of the class or function that has them.

A field of a frozen class is an option: `Workers(jobs=2)` is what `-j 2` says on a command line,
whose flags and bounds are the field's and whose help is the docstring's. So is a keyword argument
of a function, see `asking`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache, wraps
from inspect import cleandoc, getsource, signature
from os import PathLike
from textwrap import dedent
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from rnncli.errors import InvalidRequest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

P = ParamSpec("P")
ReturnT = TypeVar("ReturnT")

# The longest time, seconds: clocks of systems overflow beyond some hundred years.
LONGEST = 1e9
# The level of `python -O` at which docstrings are gone.
WITHOUT_DOCSTRINGS = 2
# The argument of functions that is no option of a command.
PROGRESS = "progress"
# What a docstring says of an option that is described elsewhere.
AS_IN = "As in `"


class OptionKind(StrEnum):
    """What an option takes."""

    FLAG = "nothing"
    TEXT = "text"
    NAME = "one of the known names"
    LOOKED_UP = "a name that a table has, which is not imported before it is needed"
    PAIRS = "NAME=VALUE, any number of times"
    BOUNDS = "[NAME:]NUMBER, any number of times"
    SIZES = "NAME=SIZE[,...], repeated in one word"
    DIMENSIONS = "NAME=SIZE[,...], any number of times"
    SHAPES = "NAME=SIZE,..., any number of times"
    WORDS = "a text, any number of times"
    COUNT = "a whole number, with a least one"
    NUMBER = "a whole number"
    SECONDS = "seconds"
    BYTES = "a number of bytes"
    PERCENT = "a percentage"
    READ = "a path that is read"
    WRITTEN = "a path that is written"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTraits:
    """What a command line, and a check, must know of an option besides its text."""

    kind: OptionKind = OptionKind.TEXT  # what it takes
    # short flags, besides the one that is its name; or all of them, and perhaps what its value is
    # called on a command line, of which the name of its variable is made
    flags: tuple[str, ...] = ()
    least: int = 0  # the least number, of a count
    known: Collection[str] = ()  # the names that there are, of a name; "" stands for none of them
    table: str = ""  # "module:attribute" of the names, or of a function that returns them
    metavar: str = ""  # what stands for its value in help
    form: str = "NAME=VALUE"  # what a pair looks like, for the message on one that does not
    variable: str = ""  # the environment variable that gives its value where no default does
    joins: bool = False  # whether several values can be joined to one by `and`
    section: str = ""  # the title under which help lists it
    # whether it concerns a run as a whole: what repeats one of its cases does without
    once: bool = False

    def words(self, name: str, value: Any) -> list[str]:
        """Return the words by which a command line gives a value, of another kind than BOUNDS."""
        flag = next(iter(self.flags), flag_of(name))
        if self.kind is OptionKind.FLAG:
            return [flag]
        if isinstance(value, Mapping):
            shown = [
                f"{w}" if isinstance(w, str | int) else ",".join(map(str, w))
                for w in value.values()
            ]
            told = [f"{each}={what}" for each, what in zip(value, shown, strict=True)]
        else:
            told = [f"{value}"] if isinstance(value, str | int | PathLike) else [*value]
        if self.kind is OptionKind.SIZES:
            told = [",".join(told)]
        return [word for each in told for word in (flag, each)]


def option(default: Any, *flags: str, **rest: Any) -> Any:
    """Return a field that is an option; the arguments are those of `OptionTraits`."""
    return field(default=default, metadata={"option": traits(*flags, **rest)})


def traits(*flags: str, kind: OptionKind = OptionKind.TEXT, **rest: Any) -> OptionTraits:
    """Return the traits of an argument that is an option; see `asking`."""
    return OptionTraits(kind=kind, flags=flags, **rest)


def flag_of(name: str) -> str:
    """Return a field as it is written on a command line."""
    return f"--{name.replace('_', '-')}"


def traits_of(owner: Any) -> dict[str, OptionTraits]:
    """Return the options among the fields of a class, or of its value, or `asking` a function."""
    if callable(owner) and not isinstance(owner, type):
        return dict(getattr(owner, "traits", {}))
    return {each.name: each.metadata["option"] for each in fields(owner) if each.metadata}


def asking(
    values: Mapping[str, type[Any]], *others: Any, **own: OptionTraits
) -> Callable[[Callable[P, ReturnT]], Callable[P, ReturnT]]:
    """Decorate a function that asks what a command asks: its keyword arguments are options.

    Those that are values, `cases=Selected(...)`, bring the options of their class. Any other is an
    option by itself: its name, default and line in the docstring are all that one needs that is a
    flag, a text or a number. An argument that the function does not take is a TypeError, which says
    where a field of that name goes.

    Args:
        values: class of a value by how a field of it is written, ``cases=Selected({}=...)``.
        others: classes and functions that have some of these options; theirs are the traits, and
            also the text where the docstring says "As in `verify`", or nothing.
        own: the traits of other options.
    """

    def decorate(function: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
        taken = signature(function).parameters
        rows = {n: row for other in others for n, row in traits_of(other).items() if n in taken}
        rows |= own
        for name, each in taken.items():
            if (
                each.kind is each.KEYWORD_ONLY
                and name != PROGRESS
                and not is_dataclass(each.default)
            ):
                is_number = "int" in str(each.annotation)
                plain = OptionKind.NUMBER if is_number else OptionKind.TEXT
                kind = OptionKind.FLAG if each.default is False else plain
                rows.setdefault(name, OptionTraits(kind=kind))

        @wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> ReturnT:
            for name, told in given.items():
                if name not in taken:
                    for written, value in values.items():
                        if name in traits_of(value):
                            raise TypeError(
                                f"{function.__name__}() takes no '{name}'; "
                                f"write {written.format(name)}"
                            )
                    known = (
                        *taken,
                        *(each for value in values.values() for each in traits_of(value)),
                    )
                    raise _unexpected(function.__name__, name, known)
                refuse_another_value(function.__name__, name, told, taken[name].default)
            return function(*args, **given)

        checked.__dict__.update(traits=rows, others=others)
        return checked

    return decorate


def _unexpected(function: str, name: str, known: Iterable[str]) -> TypeError:
    said = f"{function}() got an unexpected keyword argument '{name}'"
    return TypeError(f"{said}{did_you_mean(name, known)}")


class OptionValues:
    """A value whose fields are options; a name that none of them has is a TypeError."""

    __slots__ = ()

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuse unknown names, with the one that was meant."""
        names = cls.__dataclass_fields__  # type: ignore[attr-defined]
        for name in given:
            if name not in names:
                raise _unexpected(cls.__name__, name, names)
        return super().__new__(cls)


def refuse_another_value(function: str, name: str, value: Any, default: Any) -> None:
    """Refuse what is no value where one is wanted, such as a text for `cases=Selected(...)`.

    Raises:
        TypeError: it says how that is written; a text is most likely the first field.
    """
    wanted = type(default)
    if is_dataclass(wanted) and not isinstance(value, wanted):
        field_of = f"{fields(wanted)[0].name}={value!r}" if isinstance(value, str | int) else "..."
        raise TypeError(
            f"{function}() takes no {type(value).__name__} for '{name}'; write"
            f" {name}={wanted.__name__}({field_of})"
        )


def words_of(function: Any, asked: Mapping[str, Any]) -> list[str]:
    """Return how a command line asks what the arguments of a function ask of each case."""
    defaults = signature(function).parameters
    return [
        word
        for name, row in traits_of(function).items()
        if not row.once and asked[name] and asked[name] != defaults[name].default
        for word in row.words(name, asked[name])
    ]


def default_of(values: type[Any], name: str) -> Any:
    """Return the default of a field."""
    return next(each.default for each in fields(values) if each.name == name)


def docstring_of(documented: Any) -> str:
    """Return a class's or function's docstring; `python -OO` leaves it in the source alone."""
    if sys.flags.optimize < WITHOUT_DOCSTRINGS:
        return cleandoc(documented.__doc__ or "")
    (definition,) = ast.parse(dedent(getsource(documented))).body
    assert isinstance(definition, ast.ClassDef | ast.FunctionDef)
    return ast.get_docstring(definition) or ""


@cache
def texts_of(owner: Any) -> Mapping[str, str]:
    """Return what the docstring of a class says of its attributes, or of a function its options."""
    listed = re.split(r"\n(?:Attributes|Args|Options):\n", docstring_of(owner))[-1]
    listed, _, _ = listed.partition("\n\n")
    found = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", listed, re.MULTILINE)
    texts = {name: re.sub(r"\n\s+", " ", text) for name, text in found}
    for other in getattr(owner, "others", ()):
        for name, text in texts_of(other).items():
            if texts.get(name, AS_IN).startswith(AS_IN):
                texts[name] = text
    return texts


def check(values: Any) -> None:
    """Refuse values that no option takes.

    Raises:
        InvalidRequest: one of them; the sentence names the option.
    """
    for name, traits in traits_of(values).items():
        value = getattr(values, name)
        if value is not None and (wanted := _wanted(traits, value)):
            raise InvalidRequest(f"{flag_of(name)} {value}: expected {wanted}")


def _wanted(traits: OptionTraits, value: Any) -> str:
    """Return what was expected in place of a value, or ""."""
    if traits.kind is OptionKind.COUNT and value < traits.least:
        return f"a number >= {traits.least}"
    if traits.kind is OptionKind.SECONDS and not 0 < value <= LONGEST:
        return f"seconds, more than 0 and at most {LONGEST:.0f}"
    if traits.kind is OptionKind.BYTES and value < 1:
        return "a number of bytes >= 1"
    if traits.kind is OptionKind.NAME and value and value not in traits.known:
        return f"one of {', '.join(traits.known)}"
    return ""
