"""Options shared by several commands, one decorator each, and the types of their values."""

from __future__ import annotations

import functools
import math
import pkgutil
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from rnncli.cli.command import JoinableOption, Written, texts
from rnncli.limits import Limits
from rnncli.models.evaluation_settings import HOSTS
from rnncli.options import LONGEST, OptionKind, default_of, flag_of, texts_of, traits_of
from rnncli.packs.layouts import LAYOUTS, ONNX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
            self.fail(f"expected {self.name}, got '{value}'", param, ctx)
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


def _readings(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from rnncli.recurrence.readings import READINGS

    pairs = (f"{name}={choice}" for name, row in READINGS.items() for choice in row.choices)
    return [pair for pair in pairs if pair.startswith(incomplete)]


class PathOrName(click.Path):
    """A path, or a name from one of our tables."""

    def __init__(self, table: str, *, allow_dash: bool = False) -> None:
        super().__init__(path_type=str, allow_dash=allow_dash)
        self.names = Name("name", table)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer files and names; bash drops what stands before the word that asks for files."""
        named = self.names.shell_complete(ctx, param, incomplete)
        return [*super().shell_complete(ctx, param, incomplete), *named]


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


def refuse_models(_: click.Context, __: click.Parameter, value: Any) -> Any:
    """Refuse a model where a pack, a suite or the lines of a run are read: a callback.

    Raises:
        InvalidRequest: it says what is for models.
    """
    from rnncli.errors import InvalidRequest
    from rnncli.packs.pack import model_hint

    for each in value if isinstance(value, tuple) else (value,):
        if each and (hint := model_hint(each)):
            raise InvalidRequest(f"{each}: {hint}")
    return value


def printed_option(what: str) -> Callable[..., Any]:
    """Return the option that writes to a file what is printed without it."""
    return click.option(
        "-o",
        "--output",
        type=Written("without -o it is printed"),
        default="",
        metavar="FILE",
        help=f"Write {what} to FILE instead of standard output.",
    )


def from_option(what: str) -> Callable[..., Any]:
    """Return the option that reads more targets."""
    return click.option(
        "--from",
        "from_file",
        type=Listed(),
        help=f"Read {what} from a file: one per line, or YAML, in which each has its own `dim`,"
        " `shape`, `inputs` and `expected` outputs (docs/howto/evaluate.md).",
    )


OPERATOR = Name("operator", "rnncli.operators:OPERATORS")
BACKENDS = "rnncli.backends:known_backends"
SECONDS = Number(0, LONGEST, min_open=True)
TARGET = click.Path(path_type=str, allow_dash=True)
NAMED_TARGET = PathOrName("rnncli.cases.library:target_names", allow_dash=True)
SUITE = PathOrName("rnncli.cases.library:suite_names")

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON lines, one object per case."
)
backend_option = click.option(
    "--backend",
    type=Name("name", BACKENDS),
    default="numpy",
    show_default=True,
    help="What evaluates the recurrent operators; `rnncli backends` lists them.",
)


host_option = click.option(
    "--host",
    type=click.Choice(HOSTS),
    default=HOSTS[0],
    show_default=True,
    help="What evaluates the other nodes of models: onnx, its reference with corrections, or"
    " onnxruntime, faster and in the model's own types (extra `runtimes`).",
)


def within_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --max-memory, and let the command take no more."""
    return options_of(Limits, only=["max_memory"])(_held(function))


def within_limits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --timeout, which the command minds, and --max-memory; let it take no more memory."""
    return options_of(Limits, only=["timeout", "max_memory"])(_held(function, "limits"))


def _held(function: Callable[..., Any], *passed: str) -> Callable[..., Any]:
    """Hold the memory of a command; pass its limits on if their name is given."""

    @functools.wraps(function)
    def bounded(*args: Any, limits: Limits, **options: Any) -> Any:
        from rnncli.limits.budget import held

        with held(limits.max_memory, named=filter(None, texts(options.values()))):
            return function(*args, **dict.fromkeys(passed, limits), **options)

    return bounded


layout_option = click.option(
    "--format",
    type=click.Choice([*LAYOUTS]),
    default=ONNX,
    show_default=True,
    help="Layout of the pack (docs/howto/packs.md).",
)
steps_option = click.option(
    "--steps",
    is_flag=True,
    help="Store the signals of every step, too: pre-activations, gates, cell and hidden states.",
)
readings_option = click.option(
    "--reading",
    "readings",
    type=Pair("NAME=VALUE"),
    shell_complete=_readings,
    multiple=True,
    help="Choose how a contested point of the specification is read; `rnncli ops NAME` lists them.",
)


def grouped(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options, or groups of them, in their order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def section(
    title: str, *options: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options, as `grouped`, which the help lists under a title."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        before = len(getattr(function, "__click_params__", ()))
        found: Any = grouped(*options)(function)
        for option in found.__click_params__[before:]:
            option.section = title
        return cast("Callable[..., Any]", found)

    return decorate


def options_of(
    values: type[Any],
    *,
    default: Any = None,
    only: Sequence[str] = (),
    completed: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a class, and hands their value to the command.

    Args:
        values: a class whose fields are options; the command's argument has its name in small
            letters.
        default: has the value of each option that is not given; by default the class says it.
        only: the fields that the command has; all by default.
        completed: adds to what is given, by field, what the command takes without it.
    """
    name = values.__name__.lower()
    rows = [each for each in traits_of(values) if not only or each in only]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def given(*args: Any, **options: Any) -> Any:
            told = completed({each: options.pop(each) for each in rows})
            made = values(**told) if default is None else replace(default, **told)
            return function(*args, **{name: made}, **options)

        return grouped(*(option_of(values, each, default) for each in rows))(given)

    return decorate


def option_of(values: type[Any], name: str, default: Any = None) -> Callable[..., Any]:
    """Return the option for a field of a class; see `options_of`."""
    row = traits_of(values)[name]
    value = getattr(default, name) if default else default_of(values, name)
    kind = _TYPES[row.kind]

    def read(_: click.Context, __: click.Parameter, told: Any) -> Any:
        found = kind.read(told)
        return value if found is None else found

    return click.option(
        *row.flags,
        flag_of(name),
        name,
        cls=JoinableOption if row.joins else click.Option,
        type=kind.type(row),
        multiple=kind.multiple,
        callback=read,
        default=value or None,
        show_default=bool(value),
        metavar=row.metavar or None,
        envvar=row.variable if row.variable and value is None else None,
        show_envvar=bool(row.variable) and value is None,
        help=texts_of(values)[name],
    )


class OptionType(NamedTuple):
    """How options of a kind are read.

    Attributes:
        type: the type of one value.
        multiple: whether it may be given several times.
        read: turns what the command line has into the field's value; None stands for the default.
    """

    type: Callable[[OptionTraits], click.ParamType[Any]]
    multiple: bool = False
    read: Callable[[Any], Any] = lambda value: value


def _bound(texts: Sequence[str]) -> dict[str, float] | None:
    """Read `1e-5` and `Y:1e-5`; none are None."""
    if not texts:
        return None
    from rnncli.judging.tolerances.tolerance import Bound

    return Bound.parse(texts).numbers


_TYPES: Mapping[OptionKind, OptionType] = {
    OptionKind.TEXT: OptionType(lambda _: click.STRING),
    OptionKind.NAME: OptionType(lambda row: click.Choice([*row.known])),
    OptionKind.LOOKED_UP: OptionType(lambda row: Name("name", row.table)),
    OptionKind.COUNT: OptionType(lambda row: click.IntRange(row.least)),
    OptionKind.NUMBER: OptionType(lambda _: click.INT),
    OptionKind.SECONDS: OptionType(lambda _: SECONDS),
    OptionKind.BYTES: OptionType(lambda _: ByteSize()),
    OptionKind.PAIRS: OptionType(
        lambda _: Pair("NAME=VALUE"), multiple=True, read=lambda pairs: dict(pairs) or None
    ),
    OptionKind.BOUNDS: OptionType(lambda _: click.STRING, multiple=True, read=_bound),
    OptionKind.WORDS: OptionType(lambda _: click.STRING, multiple=True),
}


# Each of the first three may name one output.
tolerance_options = grouped(
    *(
        click.option(name, multiple=True, metavar="[NAME:]NUMBER", help=text)
        for name, text in {
            "--atol": "Absolute tolerance, of all outputs or of one.",
            "--rtol": "Tolerance relative to the value that is wanted, added to the absolute one.",
            "--max-ulp": "Tolerance in units in the last place; an element within it agrees, too.",
        }.items()
    ),
    click.option(
        "--equal-nan/--no-equal-nan",
        default=True,
        show_default=True,
        help="Whether NaN equals NaN.",
    ),
)


def _shape(text: str) -> tuple[int, ...]:
    """Read `5,1,10`; nothing is the shape of a scalar."""
    sizes = tuple(int(size) for size in text.split(",")) if text else ()
    if any(size < 0 for size in sizes):
        raise ValueError
    return sizes


def _size(text: str) -> int:
    (size,) = _shape(text)
    return size


def read_sizes(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """Read `batch=2,seq=16`, given once or several times."""
    pair = Pair("NAME=SIZE", _size)
    return dict(pair.convert(part, None, None) for value in values for part in value.split(","))


dim_option = click.option(
    "--dim",
    "dims",
    multiple=True,
    callback=read_sizes,
    metavar="NAME=SIZE[,...]",
    help="Size of a symbolic dimension of a model's inputs, as in batch=2,seq=16.",
)


shape_option = click.option(
    "--shape",
    "shapes",
    type=Pair("NAME=5,1,10", _shape),
    multiple=True,
    help="Shape of the generated input NAME of a model.",
)


# What a model is run on: inputs given, generated, or of one test data set.
given_options = grouped(
    click.option(
        "-i",
        "--input",
        "input_files",
        type=Pair("NAME=FILE|VALUE"),
        multiple=True,
        help="Input NAME from FILE (.npy, .pb, or FILE.npz::KEY), or a number or list, such as"
        " sr=8000 or x=[[1,2.5],[3,4]], in the input's own type.",
    ),
    click.option(
        "--inputs",
        "inputs_from",
        default="",
        metavar="FILE",
        help="Read inputs by name from an .npz, an .h5 or a test_data_set folder.",
    ),
)
input_options = grouped(
    given_options,
    click.option(
        "--seed",
        type=int,
        help="Seed of generated inputs, instead of the config's (0 for a model).",
    ),
    shape_option,
    dim_option,
    click.option(
        "--data-set", type=click.IntRange(0), help="Run only this test data set of a model."
    ),
)
