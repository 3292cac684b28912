"""Commands that neither guess nor destroy: an option has one value, a file that must stay stays."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from copy import copy
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.options import docstring_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


# Option with one value -> how to get what several values would mean.
SEVERAL = {
    "--runtime": "for several, one run each with --json, then `rnncli site`",
}

_YAML = re.compile(r"\.ya?ml(::|$)", re.IGNORECASE)

# Titles of a help's options, in their order; the last is that of options without one.
SECTIONS = (
    *("What is judged", "Which cases", "Tolerances", "What passes", "Reports", "Running"),
    "Options",
)


class JoinableOption(click.Option):
    """An option whose values can be joined to one."""

    def joined(self, values: Sequence[str]) -> str:
        """Return the option that means all of several values."""
        return f"{self.opts[0]} {quote(' and '.join(f'({value})' for value in values))}"


class Command(click.Command):
    """A command that refuses a second value of an option that has one, and an empty text.

    Nor does it replace a file that it reads, or one of a pack. It ends with the exit code that its
    function returns, 0 for None.

    A flag may be repeated, not contradicted. Environment variables and defaults are not on the
    command line, and may be overridden there.

    Args:
        elsewhere: options that users look for here in vain, each with what to use.
        rest: as of `click.Command`.
    """

    def __init__(self, *args: Any, elsewhere: Mapping[str, str] | None = None, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.help = self.help or docstring_of(self.callback)
        self.elsewhere = elsewhere or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: an option is given twice, names a file to write that must stay, or is
                not of this command; a variable of this command is that of no option.
        """
        if not ctx.resilient_parsing:
            for name in (arg.partition("=")[0] for arg in args):
                if name in self.elsewhere:
                    raise click.UsageError(f"{name}: use {self.elsewhere[name]}", ctx)
            for option, values in self._given(ctx, args):
                _refuse_wrong(option, ctx, values)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            self._refuse_unknown_variables(ctx)
            refuse_losses(ctx)
        return rest

    def _refuse_unknown_variables(self, ctx: click.Context) -> None:
        """Refuse a variable that sets no option, as an unknown option is refused."""
        prefix = f"{ctx.auto_envvar_prefix}_"
        known = [f"{prefix}{row.name}".upper() for row in self.params if row.name]
        for name in sorted(os.environ):
            if ctx.auto_envvar_prefix and name.startswith(prefix) and name not in known:
                hint = did_you_mean(name, known)
                raise click.UsageError(f"the variable {name} sets no option{hint}", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the options, each under the title of its section."""
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record and isinstance(option, click.Option):
                rows[getattr(option, "section", SECTIONS[-1])].append(record)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        ctx.exit(super().invoke(ctx) or 0)

    def _given(self, ctx: click.Context, args: list[str]) -> Iterator[tuple[click.Option, Any]]:
        """Yield each option that has one value, with all that the command line gives it."""
        parser = click.Command(self.name, params=[*map(_keeping_all, self.params)]).make_parser(ctx)
        given, _, _ = parser.parse_args([*args])
        for option in self.params:
            if isinstance(option, click.Option) and not option.multiple and not option.count:
                yield option, given.get(option.name or "", [])


def _keeping_all(parameter: click.Parameter) -> click.Parameter:
    if not isinstance(parameter, click.Option) or parameter.count:
        return parameter
    keeping = copy(parameter)
    keeping.multiple = True
    return keeping


def _refuse_wrong(option: click.Option, ctx: click.Context, values: Sequence[Any]) -> None:
    if "" in values and isinstance(option.type, click.types.StringParamType | click.Path):
        raise click.UsageError(
            f"{option.opts[0]} is given an empty text, as of an unset variable", ctx
        )
    if len(values) < 2 or (option.is_flag and len({*values}) == 1):
        return
    if option.is_flag:
        names = {True: option.opts[0], False: option.secondary_opts[0]}
        sentence = f"{names[values[0]]} and {names[not values[0]]} are both given"
    else:
        listed = " and ".join(f"'{value}'" for value in values)
        sentence = f"{option.opts[0]} is given {len(values)} times: {listed}"
    if hint := SEVERAL.get(option.opts[0]):
        sentence += f"; {hint}"
    if isinstance(option, JoinableOption):
        sentence += f"; for all of them: {option.joined(values)}"
    raise click.UsageError(sentence, ctx)


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


def refuse_losses(ctx: click.Context) -> None:
    """Refuse to replace what the command reads or also writes, and any file that is not ours.

    What lies in folders is left to the commands that write them, which know their own.

    Raises:
        InvalidRequest: an option or argument names such a file or folder; names both.
    """
    written = [row for row in ctx.command.params if isinstance(row.type, Written)]
    others = [row for row in ctx.command.params if row not in written]
    read = [text for row in others for text in texts([ctx.params.get(row.name or "")])]
    taken: dict[str, str] = {}
    if ctx.command.name == "generate":  # brings a folder up to date, which may be called as a suite
        read = [text for text in read if not Path(text).is_dir()]
    for row in written:
        name = row.opts[-1]
        for path in filter(None, texts([ctx.params.get(row.name or "")])):
            other = taken.setdefault(os.path.realpath(path), name)
            if other != name:
                raise InvalidRequest(f"{name} {path}: is the same place as that of {other}")
            if reason := _loss(path, read):
                raise InvalidRequest(f"{name} {path}: is not replaced: {reason}")


def _loss(path: str, read: Sequence[str]) -> str:
    """Return why an existing file or folder must not be replaced, or ""."""
    if Path(path).is_file() and (suites := [text for text in read if _YAML.search(text)]):
        from rnncli.cases.suite.suite import files_named

        read = [*read, *(name for text in suites for name in files_named(text))]
    if any(is_same_file(text, path) for text in read):
        return "it is an input of this command"
    if not Path(path).is_file():
        return ""
    from rnncli.files.seals import THEIRS, is_ours
    from rnncli.generating.leftovers import pack_around

    if pack := pack_around(path):
        return f"it belongs to the pack {pack}"
    with suppress(OSError):  # it may be closed
        if os.path.samestat(os.fstat(1), Path(path).stat()):
            return "it is the standard output of this command"
    if is_ours(Path(path)) or Path(path).suffix.lower() == ".npy":  # see `write_output`
        return ""
    return f"{THEIRS}; choose another name, or remove it"


def is_same_file(text: str, path: str) -> bool:
    """Whether a text names a file that exists."""
    try:
        return Path(text).samefile(path)
    except (OSError, ValueError):
        return False


def texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield every text among options, any of which may name a file."""
    for value in values:
        if isinstance(value, str | os.PathLike):
            yield os.fspath(value)
        elif isinstance(value, tuple | list):
            yield from texts(value)
