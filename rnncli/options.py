"""Options as values: each is a field of a frozen class, described in the class's docstring alone.

`Workers(jobs=2)` is what `-j 2` says on a command line, whose flags and bounds are the field's and
whose help is the docstring's.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import wraps
from inspect import cleandoc, getsource, signature
from textwrap import dedent
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

P = ParamSpec("P")
ReturnT = TypeVar("ReturnT")

# The longest time, seconds: clocks of systems overflow beyond some hundred years.
LONGEST = 1e9
# The level of `python -O` at which docstrings are gone.
WITHOUT_DOCSTRINGS = 2


class OptionKind(StrEnum):
    """What an option takes."""

    TEXT = "text"
    NAME = "one of the known names"
    LOOKED_UP = "a name that a table has, which is not imported before it is needed"
    PAIRS = "NAME=VALUE, any number of times"
    BOUNDS = "[NAME:]NUMBER, any number of times"
    WORDS = "a text, any number of times"
    COUNT = "a whole number, with a least one"
    NUMBER = "a whole number"
    SECONDS = "seconds"
    BYTES = "a number of bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTraits:
    """What a command line, and a check, must know of an option besides its text.

    Attributes:
        kind: what it takes.
        flags: short flags, besides the one that is the field's name.
        least: the least number, of a count.
        known: the names that there are, of a name; "" stands for none of them.
        table: "module:attribute" of the names, or of a function that returns them.
        metavar: what stands for its value in help.
        variable: the environment variable that gives its value where no default does.
        joins: whether several values can be joined to one by `and`.
    """

    kind: OptionKind = OptionKind.TEXT
    flags: tuple[str, ...] = ()
    least: int = 0
    known: Collection[str] = ()
    table: str = ""
    metavar: str = ""
    variable: str = ""
    joins: bool = False


def option(default: Any, *flags: str, kind: OptionKind = OptionKind.TEXT, **traits: Any) -> Any:
    """Return a field that is an option; the arguments are those of `OptionTraits`."""
    return field(
        default=default, metadata={"option": OptionTraits(kind=kind, flags=flags, **traits)}
    )


def flag_of(name: str) -> str:
    """Return a field as it is written on a command line."""
    return f"--{name.replace('_', '-')}"


def traits_of(values: Any) -> dict[str, OptionTraits]:
    """Return the fields of a class, or of a value of it, that are options."""
    return {each.name: each.metadata["option"] for each in fields(values) if each.metadata}


def taking_values(
    values: Mapping[str, type[Any]],
) -> Callable[[Callable[P, ReturnT]], Callable[P, ReturnT]]:
    """Decorate a function whose options are fields of values, not arguments of its own.

    An argument that it does not take is a TypeError, which says where a field of that name goes.

    Args:
        values: class of a value by how a field of it is written, ``cases=Selected({}=...)``.
    """

    def decorate(function: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
        taken = signature(function).parameters

        @wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> ReturnT:
            for name in given:
                if name not in taken:
                    for written, value in values.items():
                        if name in traits_of(value):
                            raise TypeError(
                                f"{function.__name__}() takes no '{name}'; "
                                f"write {written.format(name)}"
                            )
            return function(*args, **given)

        return checked

    return decorate


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


def texts_of(values: type[Any]) -> dict[str, str]:
    """Return what the docstring of a class says of each of its attributes."""
    _, _, listed = docstring_of(values).partition("\nAttributes:\n")
    listed, _, _ = listed.partition("\n\n")
    found = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", listed, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for name, text in found}


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
