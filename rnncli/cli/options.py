"""Types of the values of options, and what options are that several commands have."""

from __future__ import annotations

import math
import os
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rnncli.errors import InvalidRequest
from rnncli.models.evaluation_settings import HOSTS
from rnncli.options import LONGEST, OptionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from click.shell_completion import CompletionItem

    from rnncli.options import OptionTraits


def names_in(table: str) -> list[str]:
    """Return the names in a table, "module:attribute" of a mapping or of what returns one."""
    found = pkgutil.resolve_name(table)
    return list(found() if callable(found) else found)


class Name(click.types.StringParamType):
    """A name from one of our tables, completed by the shell; the table is imported on use.

    Args:
        name: what the name is called in help.
        table: see `names_in`.
        is_ours: whether another name is refused, and one in other letters taken for ours.
    """

    def __init__(self, name: str, table: str, *, is_ours: bool = False) -> None:
        self.name, self.table, self.is_ours = name, table, is_ours

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take any name, or one of ours."""
        if not self.is_ours or (param and value == param.default):
            return str(value)
        known = {name.casefold(): name for name in names_in(self.table)}
        if value.casefold() not in known:
            self.fail(f"'{value}' is not one of {', '.join(known.values())}", param, ctx)
        return known[value.casefold()]

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the known names."""
        del ctx, param
        folded = incomplete.casefold()
        from click.shell_completion import CompletionItem

        known = names_in(self.table)
        return [CompletionItem(n) for n in known if n.casefold().startswith(folded)]


class Pair(click.ParamType[tuple[str, Any]]):
    """`NAME=VALUE`; the value is read by a function that raises ValueError on nonsense."""

    def __init__(self, name: str, read: Callable[[str], Any] = str) -> None:
        self.name, self.read = name, read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Split at the first `=`; tensor names may hold anything else."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name:
            whole = f"; a file of all inputs is --inputs {value}" if "=FILE" in self.name else ""
            self.fail(f"expected {self.name}, got '{value}'{whole}", param, ctx)
        try:
            return name, self.read(text)
        except ValueError:
            self.fail(f"expected {self.name}, got '{value}'", param, ctx)


class Number(click.FloatRange):
    """A finite number within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse infinity and NaN, which no bound leaves out."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"expected a finite number, got '{value}'", param, ctx)
        return number


class ByteSize(click.ParamType[int]):
    """A number of bytes: `500000`, `64K`, `200M`, `2G`, `2GiB`; the letters are powers of 1024.

    Args:
        most: what may be asked for.
    """

    name = "size"

    def __init__(self, most: int = 1 << 60) -> None:
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number and perhaps a letter."""
        match = re.fullmatch(r"([0-9]{1,18})([KMGT]?)(?:I?B)?", str(value), re.IGNORECASE)
        if not match:
            self.fail(f"expected a size such as 200M, got '{value}'", param, ctx)
        size = int(match[1]) << (10 * " KMGT".index(match[2].upper() or " "))
        if size > self.most:
            self.fail(f"at most {self.most} bytes, got '{value}'", param, ctx)
        return size


class PathOrName(click.Path):
    """A path, or a name from one of our tables."""

    def __init__(self, table: str, *, allow_dash: bool = False, path_type: type[Any] = str) -> None:
        super().__init__(path_type=path_type, allow_dash=allow_dash)
        self.names = Name("name", table)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer files and names; bash drops what stands before the word that asks for files."""
        named = self.names.shell_complete(ctx, param, incomplete)
        return [*super().shell_complete(ctx, param, incomplete), *named]


class Written(click.Path):
    """A path that is written to; `-`, which elsewhere is standard output, is refused.

    Args:
        instead: what is printed there, and how, for the message; or "".
        path_type: as of `click.Path`.
    """

    def __init__(self, instead: str = "", path_type: type[Any] = str) -> None:
        super().__init__(path_type=path_type)
        self.instead = instead

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take any other path, one that does not exist as well."""
        if str(value) == "-":
            self.fail(
                "'-' is not a path: files are not written to standard output"
                f"{self.instead and f'; {self.instead}'} (a file of that name is './-')",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class Listed(click.ParamType[list[Any]]):
    """A file of targets, one a line, or `-` for standard input; or YAML, see `read_targets`."""

    name = "file"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002
        ctx: click.Context | None,  # noqa: ARG002
    ) -> list[Any]:
        """Read it from a file or a pipe of the shell, `<(command)`."""
        from rnncli.files.reading import read_standard_input, read_text, text_of

        if isinstance(value, list):
            return value
        if value.lower().endswith((".yaml", ".yml")):
            from rnncli.running.target_list import read_targets

            return list(read_targets(value))
        listed = text_of(read_standard_input(), "<stdin>") if value == "-" else read_text(value)
        return listed.splitlines()


def texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield every text among values of options, any of which may name a file."""
    for value in values:
        if isinstance(value, str | os.PathLike):
            yield os.fspath(value)
        elif isinstance(value, tuple | list):
            yield from texts(value)
        elif isinstance(value, Mapping):
            yield from texts([*value, *value.values()])


class OptionType(NamedTuple):
    """How options of a kind are read."""

    type: Callable[[OptionTraits], click.ParamType[Any] | None]  # the type of one value
    multiple: bool = False  # whether it may be given several times
    # turns what the command line has into the field's value; None stands for the default
    read: Callable[[Any], Any] = lambda value: value


def _bound(told: Sequence[str]) -> dict[str, float] | None:
    """Read `1e-5` and `Y:1e-5`; none are None."""
    if not told:
        return None
    from rnncli.judging.tolerances.tolerance import Bound

    return Bound.parse(told).numbers


def _shape(text: str) -> tuple[int, ...]:
    """Read `5,1,10`; nothing is the shape of a scalar."""
    sizes = tuple(int(size) for size in text.split(",")) if text else ()
    if any(size < 0 for size in sizes):
        raise ValueError
    return sizes


def _size(text: str) -> int:
    (size,) = _shape(text)
    return size


def _sizes(told: Sequence[str]) -> dict[str, int]:
    """Read `batch=2,seq=16`, given once or several times."""
    pair = Pair("NAME=SIZE", _size)
    return dict(pair.convert(part, None, None) for value in told for part in value.split(","))


SECONDS = Number(0, LONGEST, min_open=True)
PERCENT = Number(0, 100)
TYPES: Mapping[OptionKind, OptionType] = {
    OptionKind.FLAG: OptionType(lambda _: None),
    OptionKind.TEXT: OptionType(lambda _: click.STRING),
    OptionKind.NAME: OptionType(lambda row: click.Choice([*row.known])),
    OptionKind.LOOKED_UP: OptionType(lambda row: Name("name", row.table)),
    OptionKind.COUNT: OptionType(lambda row: click.IntRange(row.least)),
    OptionKind.NUMBER: OptionType(lambda _: click.INT),
    OptionKind.SECONDS: OptionType(lambda _: SECONDS),
    OptionKind.PERCENT: OptionType(lambda _: PERCENT),
    OptionKind.BYTES: OptionType(lambda _: ByteSize()),
    OptionKind.READ: OptionType(lambda _: click.Path(path_type=Path)),
    OptionKind.WRITTEN: OptionType(lambda _: Written()),
    OptionKind.PAIRS: OptionType(lambda row: Pair(row.form), True, lambda told: dict(told) or None),
    OptionKind.SHAPES: OptionType(
        lambda row: Pair(row.form, _shape), True, lambda told: dict(told) or None
    ),
    OptionKind.SIZES: OptionType(lambda _: click.STRING, True, lambda told: _sizes(told) or None),
    OptionKind.DIMENSIONS: OptionType(lambda _: click.STRING, True, _sizes),
    OptionKind.BOUNDS: OptionType(lambda _: click.STRING, True, _bound),
    OptionKind.WORDS: OptionType(lambda _: click.STRING, True),
}


class Row(NamedTuple):
    """What a command must know of an argument or option besides what its function says."""

    flags: tuple[str, ...] = ()  # as of `OptionTraits`; none of an argument
    only: Sequence[str] = ()  # the fields of a value that are options; all by default
    after: str = ""  # the option that it follows in help
    settings: Mapping[str, Any] = MappingProxyType({})  # those of `Option` or `click.Argument`


def row(*flags: str, only: Sequence[str] = (), after: str = "", **settings: Any) -> Row:
    """Return a row."""
    return Row(flags, only, after, settings)


def refuse_models(_: click.Context, __: click.Parameter, value: Any) -> Any:
    """Refuse a model where a pack, a suite or the lines of a run are read: a callback.

    Raises:
        InvalidRequest: it says what is for models.
    """
    from rnncli.packs.pack import model_hint

    for each in value if isinstance(value, tuple) else (value,):
        if each and (hint := model_hint(each)):
            raise InvalidRequest(f"{each}: {hint}")
    return value


def _readings(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from rnncli.recurrence.readings import READINGS

    pairs = (f"{name}={choice}" for name, row in READINGS.items() for choice in row.choices)
    return [pair for pair in pairs if pair.startswith(incomplete)]


def printed(what: str) -> Row:
    """Return the option that writes to a file what is printed without it."""
    return row(
        "-o",
        type=Written("without -o it is printed"),
        metavar="FILE",
        help=f"Write {what} to FILE instead of standard output.",
    )


def more_targets(what: str) -> Row:
    """Return the option that reads more targets."""
    return row(
        "--from",
        type=Listed(),
        help=f"Read {what} from a file: one per line, or YAML with `inputs`, `dim` and so on of"
        " each (docs/howto/evaluate.md).",
    )


OPERATOR = Name("operator", "rnncli.operators:OPERATORS")
BACKENDS = "rnncli.backends:known_backends"
SUITE = PathOrName("rnncli.cases.library:suite_names")
NAMED_TARGET = PathOrName("rnncli.cases.library:target_names", allow_dash=True)
# Arguments of several commands.
MODEL = row(type=click.Path(path_type=str, allow_dash=True))
PACK = row(
    type=PathOrName("rnncli.packs.pack:installed_packs", path_type=Path), callback=refuse_models
)
A_SUITE = row(type=SUITE, callback=refuse_models)
PACK_OR_SUITE = row(type=SUITE, metavar="PACK|SUITE", callback=refuse_models)
RUNS = row(
    type=click.Path(path_type=Path), nargs=-1, metavar="RUN.jsonl...", callback=refuse_models
)
# What is printed with --json is not written to a file called '-'.
FILE = Written("--json prints there")
MEMORY = row(only=["max_memory"])
NUMBERS = "[NAME:]NUMBER"

# Options that several commands have by the same name.
SHARED: Mapping[str, Row] = {
    "as_json": row("--json", is_flag=True, help="Print JSON, one object per line."),
    "backend": row(
        type=Name("name", BACKENDS),
        section="Running",
        help="What evaluates the recurrent operators; `rnncli backends` lists them.",
    ),
    "host": row(
        type=click.Choice(HOSTS),
        section="Running",
        help="What evaluates the other nodes of models: onnx, its reference with corrections, or"
        " onnxruntime, faster and in the model's own types (extra `runtimes`).",
    ),
    "readings": row(
        "--reading",
        type=Pair("NAME=VALUE"),
        shell_complete=_readings,
        multiple=True,
        section="Tolerances",
        help="Choose how a contested point of the specification is read; `rnncli ops NAME` lists"
        " them.",
    ),
    "seed": row(
        type=int,
        section="Inputs",
        help="Seed of generated inputs, instead of the config's (0 for a model).",
    ),
    "data_set": row(
        type=click.IntRange(0), section="Inputs", help="Run only this test data set of a model."
    ),
    # Each of these three may name one output.
    "atol": row(
        multiple=True,
        metavar=NUMBERS,
        section="Tolerances",
        help="Absolute tolerance, of all outputs or of one.",
    ),
    "rtol": row(
        multiple=True,
        metavar=NUMBERS,
        section="Tolerances",
        help="Tolerance relative to the expected value, added to the absolute one.",
    ),
    "max_ulp": row(
        multiple=True,
        metavar=NUMBERS,
        section="Tolerances",
        help="Tolerance in units in the last place; an element within it agrees, too.",
    ),
    "equal_nan": row(section="Tolerances", help="Whether NaN equals NaN."),
}
