"""Options shared by several commands, one decorator each, and the types of their values."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.repetition import JoinableOption
from rnncli.packs.layouts import LAYOUTS, ONNX, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from click.shell_completion import CompletionItem


class Name(click.ParamType[str]):
    """A name from one of our tables, completed by the shell; the table is imported on use."""

    def __init__(self, name: str, known: Callable[[], Iterable[str]]) -> None:
        self.name = name
        self.known = known

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the known names."""
        del ctx, param
        folded = incomplete.casefold()
        from click.shell_completion import CompletionItem

        return [CompletionItem(n) for n in self.known() if n.casefold().startswith(folded)]


class Pair(click.ParamType[tuple[str, Any]]):
    """`NAME=VALUE`; the value is read by a function that raises ValueError on nonsense."""

    def __init__(
        self,
        name: str,
        read: Callable[[str], Any] = str,
        known: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.name = name
        self.read = read
        self.known = known

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

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the known pairs."""
        from click.shell_completion import CompletionItem

        del ctx, param
        return [CompletionItem(pair) for pair in self.known() if pair.startswith(incomplete)]


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


def _operators() -> Iterable[str]:
    from rnncli.operators import OPERATORS

    return OPERATORS


def backend_names() -> Iterable[str]:
    """Return the names of all backends, including those of installed packages."""
    from rnncli.backends import known_backends

    return known_backends()


def _readings() -> Iterable[str]:
    from rnncli.recurrence.readings import READINGS

    return [f"{name}={choice}" for name, row in READINGS.items() for choice in row.choices]


def _suites() -> Iterable[str]:
    from rnncli.cases.library import suite_names

    return suite_names()


class PathOrName(click.Path):
    """A path, or a name from one of our tables."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(path_type=str)
        self.names = Name("name", known)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the names, then files."""
        named = self.names.shell_complete(ctx, param, incomplete)
        return [*named, *super().shell_complete(ctx, param, incomplete)]


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


class Listed(click.ParamType[list[str]]):
    """A file of names, one a line, or `-` for standard input."""

    name = "file"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002
        ctx: click.Context | None,  # noqa: ARG002
    ) -> list[str]:
        """Read it from a file or a pipe of the shell, `<(command)`."""
        from rnncli.files.regular import read_standard_input, read_text, text_of

        if isinstance(value, list):
            return value
        listed = text_of(read_standard_input(), "<stdin>") if value == "-" else read_text(value)
        return listed.splitlines()


OPERATOR = Name("operator", _operators)
TARGET = click.Path(path_type=str, allow_dash=True)
SUITE = PathOrName(_suites)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON lines, one object per case."
)
selection_option = click.option(
    "-k",
    "--select",
    cls=JoinableOption,
    default="",
    metavar="EXPR",
    help="Only cases that EXPR selects: words joined by and, or, not and parentheses. A word is a"
    " part of an id, or a flag; id:ID is exactly one case: -k 'id:gru_14_clip or id:lstm_1_plain'.",
)
backend_option = click.option(
    "--backend",
    type=Name("name", backend_names),
    default="numpy",
    show_default=True,
    help="What evaluates the recurrent operators; `rnncli backends` lists them.",
)
compute_option = click.option(
    "--compute",
    type=click.Choice(["float64", "native"]),
    default="float64",
    show_default=True,
    help="float64: everything in float64, each output rounded once; native: the tensors' dtype.",
)


threads_option = click.option(
    "--threads",
    type=click.IntRange(1),
    envvar="RNNCLI_THREADS",
    show_envvar=True,
    help="Threads that share one evaluation if it is large enough.  [default: 1]",
)
memory_option = click.option(
    "--max-memory",
    type=ByteSize(),
    metavar="SIZE",
    help="Memory that a run may take, as in 512M or 2G.  [default: 768M, and 16 bytes for each byte"
    " of the files named]",
)


timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop a target that takes longer.  [default: no limit]",
)


def within_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --max-memory, and let the command take no more."""

    @functools.wraps(function)
    def bounded(*args: Any, max_memory: int | None, **options: Any) -> Any:
        from rnncli.budget import held

        with held(max_memory, named=filter(None, _texts(options.values()))):
            return function(*args, **options)

    return memory_option(bounded)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield every text among options, any of which may name a file."""
    for value in values:
        if isinstance(value, str | os.PathLike):
            yield os.fspath(value)
        elif isinstance(value, tuple):
            yield from _texts(value)


layout_option = click.option(
    "--format",
    type=click.Choice([*LAYOUTS]),
    default=ONNX,
    show_default=True,
    help=f"Layout of the pack. {described()}.",
)
weights_option = click.option(
    "--weights",
    type=click.Choice(["constants", "inputs"]),
    callback=lambda _, __, value: value or "",
    help="Where models have W, R, B and P: constants makes them initializers, inputs graph inputs."
    "  [default: as each case says]",
)
steps_option = click.option(
    "--steps",
    is_flag=True,
    help="Store the signals of every step, too: pre-activations, gates, cell and hidden states.",
)
readings_option = click.option(
    "--reading",
    "readings",
    type=Pair("NAME=VALUE", known=_readings),
    multiple=True,
    help="Choose how a contested point of the specification is read; `rnncli ops NAME` lists them.",
)


def with_options(
    options: Sequence[Callable[..., Any]], function: Callable[..., Any]
) -> Callable[..., Any]:
    """Decorate a command with options, or groups of them, listed in their order."""
    for option in reversed(options):
        function = option(function)
    return function


def worker_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add -j, --executor and --scheduler."""
    options = (
        click.option(
            "-j",
            "--jobs",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="Workers at the same time, with one BLAS thread each.",
        ),
        click.option(
            "--executor",
            type=click.Choice(["processes", "dask"]),
            default="processes",
            show_default=True,
            help="Run workers as processes on this machine, or on a Dask cluster (extra `dask`).",
        ),
        click.option(
            "--scheduler",
            default="",
            metavar="ADDRESS",
            help="Address of the Dask cluster; without it one with -j workers is started here.",
        ),
    )
    return with_options(options, function)


def expect_workers(options: Mapping[str, Any], *modules: str) -> None:
    """Let workers begin to import what they need, while this process reads what they work on.

    Args:
        options: of the command, those of `worker_options` among them.
        modules: by name.
    """
    if options["jobs"] > 1 and options["executor"] == "processes":
        from rnncli.executors.processes import prepare

        prepare(*modules)


def tolerance_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --atol, --rtol and --max-ulp, each of which may name one output, and --equal-nan."""
    options = (
        click.option(
            "--atol",
            multiple=True,
            metavar="[NAME:]NUMBER",
            help="Absolute tolerance, of all outputs or of one.",
        ),
        click.option(
            "--rtol",
            multiple=True,
            metavar="[NAME:]NUMBER",
            help="Tolerance relative to the value that is wanted, added to the absolute one.",
        ),
        click.option(
            "--max-ulp",
            multiple=True,
            metavar="[NAME:]NUMBER",
            help="Tolerance in units in the last place; an element within it agrees, too.",
        ),
        click.option(
            "--equal-nan/--no-equal-nan",
            default=True,
            show_default=True,
            help="Whether NaN equals NaN.",
        ),
    )
    return with_options(options, function)


def _shape(text: str) -> tuple[int, ...]:
    """Read `5,1,10`; nothing is the shape of a scalar."""
    sizes = tuple(int(size) for size in text.split(",")) if text else ()
    if any(size < 0 for size in sizes):
        raise ValueError
    return sizes


def _size(text: str) -> int:
    (size,) = _shape(text)
    return size


def _dims(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """Read `batch=2,seq=16`, given once or several times."""
    pair = Pair("NAME=SIZE", _size)
    return dict(pair.convert(part, None, None) for value in values for part in value.split(","))


dim_option = click.option(
    "--dim",
    "dims",
    multiple=True,
    callback=_dims,
    metavar="NAME=SIZE[,...]",
    help="Size of a symbolic dimension of a model's inputs, as in batch=2,seq=16.",
)


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a model is run on: inputs given, generated, or of one test data set."""
    options = (
        click.option(
            "-i",
            "--input",
            "input_files",
            type=Pair("NAME=FILE"),
            multiple=True,
            help="Read input NAME from FILE (.npy, .pb, or FILE.npz::KEY).",
        ),
        click.option(
            "--inputs",
            "inputs_from",
            default="",
            metavar="FILE",
            help="Read inputs by name from an .npz, an .h5 or a test_data_set folder.",
        ),
        click.option(
            "--seed",
            type=int,
            help="Seed of generated inputs, instead of the config's (0 for a model).",
        ),
        click.option(
            "--shape",
            "shapes",
            type=Pair("NAME=5,1,10", _shape),
            multiple=True,
            help="Shape of the generated input NAME of a model.",
        ),
        dim_option,
        click.option(
            "--data-set", type=click.IntRange(0), help="Run only this test data set of a model."
        ),
    )
    return with_options(options, function)
