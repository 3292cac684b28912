"""Commands from functions, which neither guess nor destroy: a file that must stay stays."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from copy import copy
from dataclasses import is_dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.group import HelpContext, traceback_option
from rnncli.cli.options import SHARED, TYPES, Row, Written, texts
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.limits import OF_SUBJECTS
from rnncli.options import (
    PROGRESS,
    OptionKind,
    default_of,
    docstring_of,
    flag_of,
    texts_of,
    traits_of,
)
from rnncli.subjects.implementation import KINDS, Implementation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.limits import Limits

# Option with one value -> how to get what several values would mean.
SEVERAL = {
    "--runtime": "for several, one run each with --json, then `rnncli site`",
    "--against": "for several, one run each",
}

_YAML = re.compile(r"\.ya?ml(::|$)", re.IGNORECASE)

# Titles of a help's options, in their order; the last is that of options without one.
SECTIONS = (
    *("What is judged", "Inputs", "Which cases", "Tolerances", "What passes", "Reports", "Running"),
    "Options",
)
# The sections that a help of more lines than these only names the options of.
FOLDED, MOST_LINES = SECTIONS[1:-1], 60
# What the context of a help has in which everything is described.
IN_FULL = "rnncli.help in full"
SUBJECT = "subject"
# Where a command lists the options of a value.
TITLES = {
    SUBJECT: "What is judged",
    "limits": "Running",
    "rule": "Tolerances",
    "cases": "Which cases",
    "workers": "Running",
}


class Option(click.Option):
    """An option with the title that it stands under, and whether its values are expressions."""

    def __init__(self, *args: Any, section: str = "", joins: bool = False, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.section, self.joins = section or SECTIONS[-1], joins


def command(
    *others: Any,
    asks: Callable[..., Any] | None = None,
    elsewhere: Mapping[str, str] | None = None,
    cls: type[Command] | None = None,
    **rows: Row,
) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a command of a function; see `Command` for the arguments."""
    return lambda function: (cls or Command)(
        function, *others, asks=asks, elsewhere=elsewhere or {}, rows=rows
    )


class Command(click.Command):
    """A command from a function, whose parameters are its arguments and options.

    It refuses a second value of an option that has one, and an empty text. Nor does it replace a
    file that it reads, or one of a pack. It ends with the exit code that its function returns, 0
    for None.

    A flag may be repeated, not contradicted. Environment variables and defaults are not on the
    command line, and may be overridden there.

    Args:
        function: its positional parameters are arguments, its keywords options; a keyword whose
            default is a value, such as `HERE`, has the options of its class. The docstring is the
            help, and describes options after "Options:".
        others: functions and classes that describe options which this one has by the same name.
        asks: a function of Python whose options come first, and are handed on as keywords.
        elsewhere: options that users look for here in vain, each with what to use.
        rows: what click must know besides, by name; also of more options, which are handed on.
    """

    context_class = HelpContext

    def __init__(
        self,
        function: Callable[..., Any],
        *others: Any,
        asks: Callable[..., Any] | None,
        elsewhere: Mapping[str, str],
        rows: Mapping[str, Row],
    ) -> None:
        text, _, _ = docstring_of(function).partition("\n\nOptions:\n")
        super().__init__(function.__name__, callback=function, help=text)
        self.elsewhere = elsewhere
        # Name on the command line -> keyword of the function.
        self.renamed: dict[str, str] = {}
        # Keyword of the function -> a value or class, and the fields that the command line gives.
        self.values: dict[str, tuple[Any, list[str]]] = {}

        own = signature(function).parameters
        for name, each in own.items():
            if each.kind is each.POSITIONAL_OR_KEYWORD:
                settings = {"required": each.default is each.empty, **rows[name].settings}
                if each.default is not each.empty:
                    settings["default"] = each.default
                self.params.append(click.Argument([name], **settings))

        asked = signature(asks).parameters if asks else {}
        judges = SUBJECT in asked
        if judges:
            subject = rows.get(SUBJECT, Row())
            only = subject.only or [name for name in traits_of(Implementation) if name != "host"]
            self._add_value(SUBJECT, Implementation, only, TITLES[SUBJECT])
            self._add_value("limits", OF_SUBJECTS, (), TITLES["limits"])
            self.complete = subject.settings.get("complete", dict)
        keywords = [e for e in (*asked.values(), *own.values()) if e.kind is e.KEYWORD_ONLY]
        defaults = {each.name: each.default for each in keywords if each.name != PROGRESS}
        handed_on = [name for name in rows if name not in {SUBJECT, *own, *asked}]
        defaults |= {name: rows[name].settings.get("default") for name in handed_on}
        told = texts_of(function)
        for name, default in defaults.items():
            row = rows.get(name) or (SHARED.get(name) if name not in asked else None) or Row()
            if is_dataclass(default):
                value = row.settings.get("default", default)
                self._add_value(name, value, row.only, TITLES[name])
                continue
            if row.settings or row.flags or name in told:
                option = option_from(row, name, default, told.get(name, ""))
            else:
                owner = next(e for e in (asks, *others) if e and name in traits_of(e))
                title = traits_of(owner)[name].section if judges and owner is asks else ""
                option = option_of(owner, name, default, title)
            names = [each.name for each in self.params]
            self.params.insert(names.index(row.after) + 1 if row.after else len(names), option)
            self.renamed[str(option.name)] = name
        self.params.append(traceback_option())

    def _add_value(self, keyword: str, value: Any, only: Sequence[str], section: str) -> None:
        """Add the options of a class or of a value of it, or some of them."""
        fields = [name for name in traits_of(value) if not only or name in only]
        is_class = isinstance(value, type)
        for name in fields:
            default = default_of(value, name) if is_class else getattr(value, name)
            owner = value if is_class else type(value)
            self.params.append(option_of(owner, name, default, section))
        self.values[keyword] = value, fields

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: an option is given twice, names a file to write that must stay, or is
                not of this command; a variable of this command is that of no option.
        """
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        for name in (arg.partition("=")[0] for arg in args):
            if name in self.elsewhere:
                raise click.UsageError(f"{name}: use {self.elsewhere[name]}", ctx)
        self._refuse_values(ctx, args)
        rest = super().parse_args(ctx, args)

        # A variable that sets no option is refused as an unknown option is.
        prefix = f"{ctx.auto_envvar_prefix}_"
        known = [f"{prefix}{row.name}".upper() for row in self.params if row.name]
        for name in sorted(os.environ):
            if ctx.auto_envvar_prefix and name.startswith(prefix) and name not in known:
                hint = did_you_mean(name, known)
                raise click.UsageError(f"the variable {name} sets no option{hint}", ctx)
        refuse_losses(ctx)
        return rest

    def _refuse_values(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse an empty value, and a second one of an option that has one."""
        every = [copy(each) for each in self.params]
        for each in every:
            if isinstance(each, click.Option) and not each.count:
                each.multiple = True
        given, _, _ = click.Command(self.name, params=every).make_parser(ctx).parse_args([*args])
        for option in self.params:
            values = given.get(option.name or "", [])
            if not isinstance(option, click.Option) or option.multiple or option.count:
                continue
            flag = option.opts[0]
            if "" in values and isinstance(option.type, click.types.StringParamType | click.Path):
                sentence = f"{flag} is given an empty text, perhaps from an unset variable"
                raise click.UsageError(sentence, ctx)
            if len(values) < 2 or (option.is_flag and len({*values}) == 1):
                continue
            if option.is_flag:
                names = {True: flag, False: option.secondary_opts[0]}
                sentence = f"{names[values[0]]} and {names[not values[0]]} are both given"
            else:
                listed = " and ".join(f"'{value}'" for value in values)
                sentence = f"{flag} takes one value, and is given {len(values)}: {listed}"
            if hint := SEVERAL.get(flag):
                sentence += f"; {hint}"
            if getattr(option, "joins", False):
                names_cases = all(value.lower().startswith("id:") for value in values)
                word = " or " if names_cases else " and "  # a case has one id
                joined = word.join(f"({value})" for value in values)
                sentence += f"; for all of them: {flag} {quote(joined)}"
            raise click.UsageError(sentence, ctx)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help; one that is long only names the options that many commands have."""
        text = super().get_help(ctx)
        if ctx.meta.setdefault(IN_FULL, text.count("\n") < MOST_LINES):
            return text
        return super().get_help(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the options, each under the title of its section."""
        found: dict[str, list[click.Option]] = {title: [] for title in SECTIONS}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option):
                found[getattr(option, "section", SECTIONS[-1])].append(option)
        named = []
        for title, options in found.items():
            if options and (title not in FOLDED or ctx.meta.get(IN_FULL, True)):
                records = [option.get_help_record(ctx) for option in options]
                with formatter.section(title):
                    formatter.write_dl([*filter(None, records)])
            elif options:
                named.append((title, ", ".join("/".join(each.opts) for each in options)))
        if named:
            with formatter.section(f"More, which `rnncli help {ctx.info_name}` describes"):
                formatter.write_dl(named)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        given = {self.renamed.get(name, name): value for name, value in ctx.params.items()}
        for keyword, (value, fields) in self.values.items():
            told = {name: given.pop(name) for name in fields}
            given[keyword] = self.complete(told) if keyword == SUBJECT else replace(value, **told)
        if SUBJECT in given:
            kinds = [kind for kind in KINDS if kind in given[SUBJECT]]
            if sum(bool(given[SUBJECT][kind]) for kind in kinds) != 1:
                words = ", ".join(f"--{kind}" for kind in kinds)
                raise InvalidRequest(f"say what to judge: one of {words}")
            given[SUBJECT] = Implementation(**given[SUBJECT], limits=given.pop("limits"))
        assert self.callback
        ctx.exit(ctx.invoke(self.callback, **given) or 0)


def hold(limits: Limits, *named: Any) -> None:
    """Hold the memory of the command that runs: its limit, or what the files named allow.

    Args:
        limits: those of the command.
        named: values of options that may name files; by default all.
    """
    from rnncli.limits import held

    context = click.get_current_context()
    files = filter(None, texts(named or context.params.values()))
    context.with_resource(held(limits.max_memory, named=files))


def option_from(row: Row, name: str, default: Any, text: str) -> Option:
    """Return the option for a row, with the text of its docstring unless it has its own."""
    flag = flag_of(name)
    settings: dict[str, Any] = {"default": default, "show_default": bool(default)}
    if default is Parameter.empty:
        settings = {"required": True}
    settings |= row.settings
    settings["help"] = text or settings["help"]
    if isinstance(default, bool):
        settings |= {"is_flag": True}
        flag = f"{flag}/--no-{flag[2:]}" if default else flag
    if isinstance(default, tuple):
        settings |= {"multiple": True, "default": default or None}
    flags = row.flags if any(each[:2] == "--" for each in row.flags) else (*row.flags, flag)
    is_named = any(each[0] != "-" for each in flags)
    return Option([*flags, *([] if is_named else [name])], **settings)


def option_of(owner: Any, name: str, default: Any, section: str = "") -> Option:
    """Return the option that a class or a function describes."""
    row, text = traits_of(owner)[name], texts_of(owner)[name]
    section = row.section or section
    if row.kind is OptionKind.FLAG:
        return option_from(Row(row.flags, settings={"section": section}), name, default, text)
    kind = TYPES[row.kind]

    def read(_: click.Context, __: click.Parameter, told: Any) -> Any:
        found = kind.read(told)
        return default if found is None else found

    has_variable = bool(row.variable) and default is None
    return option_from(
        Row(
            row.flags,
            settings={
                "type": kind.type(row),
                "multiple": kind.multiple or default == (),
                "callback": read,
                "default": default or None,
                "metavar": row.metavar or None,
                "envvar": row.variable if has_variable else None,
                "show_envvar": has_variable,
                "joins": row.joins,
                "section": section,
            },
        ),
        name,
        default,
        text,
    )


def refuse_losses(ctx: click.Context) -> None:
    """Refuse to replace what the command reads or also writes, and any file that is not ours.

    What lies in folders is left to the commands that write them, which know their own.

    Raises:
        InvalidRequest: an option or argument names such a file or folder; names both.
    """
    written = [row for row in ctx.command.params if isinstance(row.type, Written)]
    # A choice, such as a layout, is no path, even where a folder has its name.
    others = [
        row
        for row in ctx.command.params
        if row not in written and not isinstance(row.type, click.Choice)
    ]
    read = [text for row in others for text in texts([ctx.params.get(row.name or "")])]
    taken: dict[str, str] = {}
    if ctx.command.name == "generate":  # brings a folder up to date, which may be called as a suite
        read = [text for text in read if not Path(text).is_dir()]
    for row in written:
        name = row.opts[-1]
        for path in filter(None, texts([ctx.params.get(row.name or "")])):
            other = taken.setdefault(os.path.realpath(path), name)
            if other != name:
                raise InvalidRequest(f"{name} {path}: is the same path as that of {other}")
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
