"""The group of all commands, which turns any failure into one line and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

import click

from rnncli import __version__
from rnncli.errors import RnncliWarning, did_you_mean, explain
from rnncli.jobs import signals
from rnncli.talk.terminal import LISTENERS, OUTPUT, say, say_text
from rnncli.talk.waiting import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PIPE_CLOSED = 141
COMPLETE = "_RNNCLI_COMPLETE"

# Group of commands -> name -> the first line of its help.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Evaluate": {
        "run": "Evaluate models, operator configs and suites; print a summary, write outputs.",
        "compare": "Compare two files or folders of tensors; exit 1 if they"
        " differ, 5 without an element.",
        "convert": "Convert tensors, or a pack, from one file format to another.",
        "bench": "Measure speed, as ratios within one run.",
    },
    "Vectors": {
        "generate": "Write the conformance vectors of a suite as a pack.",
        "extract": "Write the recurrent nodes of a model, as they run in it, as a pack.",
        "release": "Write archives of packs to give away, reproducible to the byte.",
        "list": "List the suites, or the cases of a suite or pack.",
        "score": "Score vectors by the bugs they catch.",
        "trace": "Show which statements of the specifications a pack checks,"
        " and which it does not.",
        "lint": "Check YAML files; list every finding with its place.",
    },
    "Judge": {
        "verify": "Judge an implementation against a pack of conformance vectors.",
        "relate": "Judge an implementation without expected outputs, by how its own are related.",
        "stream": "Judge a whole model, or its runtime, on a stream: states, steps and batches.",
        "diagnose": "Name the bug that explains an implementation's wrong outputs.",
        "smoke": "Check in a second whether a harness is wired right.",
        "claims": "Write what an implementation claims, from a run, for `rnncli verify --claims`.",
        "probe": "Write what an implementation takes, from what it refuses, for `--device`.",
        "report": "Report runs again from the lines that `rnncli verify --json` printed.",
        "site": "Write a static site of runtimes by features from results of"
        " `rnncli verify --json`.",
    },
    "Look up": {
        "help": "Describe a command in full, or list profiles, readings and the like.",
        "inspect": "Show a config with every default filled in, a case of a"
        " suite, a model or a pack.",
        "ops": "List the operators, or show one in full.",
        "backends": "List the compute backends.",
        "runtimes": "List the runtimes that can be judged.",
        "mutants": "List the known bugs of kernels, or explain one.",
        "formats": "List the file formats of tensors.",
        "schema": "Write the JSON Schema of what is read or printed.",
    },
}
COMMANDS = {name: text for rows in GROUPS.values() for name, text in rows.items()}
# What `rnncli help` lists besides commands -> the table, each row with a summary.
TOPICS = {
    "executors": "rnncli.jobs.workers:EXECUTORS",
    "exit-codes": "rnncli.errors:EXIT_CODES",
    "fills": "rnncli.cases.fills:FILLS",
    "layouts": "rnncli.packs.layouts:LAYOUTS",
    "profiles": "rnncli.numerics.profiles:PROFILES",
    "readings": "rnncli.recurrence.readings:READINGS",
    "relations": "rnncli.verifying.relations.relations:RELATIONS",
    "stream-relations": "rnncli.verifying.relations.relations:STREAM_RELATIONS",
}
HELPED = (*COMMANDS, *TOPICS)
# Module -> the commands in it; any other command has a module of its own.
ROOMS = {
    "tensors": ("compare", "convert"),
    "vectors": ("generate", "release", "list", "lint", "score", "trace"),
    "judge": GROUPS["Judge"],
    "look_up": GROUPS["Look up"],
}

# A non-breaking hyphen, which is printed as a plain one.
UNBROKEN = "\u2011"


class WholeWordsFormatter(click.HelpFormatter):
    """A help formatter that breaks no name and no option at a hyphen."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", UNBROKEN))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write a list of options."""
        unbroken = [(name, text.replace("-", UNBROKEN)) for name, text in rows]
        super().write_dl(unbroken, col_max, col_spacing)

    def getvalue(self) -> str:
        """Return the text."""
        return super().getvalue().replace(UNBROKEN, "-")


class HelpContext(click.Context):
    """A context whose help keeps words whole."""

    formatter_class = WholeWordsFormatter


class LazyGroup(click.Group):
    """A group whose `--help` imports no command."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = next((room for room, names in ROOMS.items() if cmd_name in names), cmd_name)
        command: click.Command = getattr(import_module(f"rnncli.cli.{module}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for an unknown one, and help for a topic."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            topic = f"; `rnncli help {args[0]}` lists them" if args[0] in TOPICS else ""
            ctx.fail(f"no such command '{args[0]}'{topic or did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, in their groups."""
        del ctx
        for title, rows in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([*rows.items()])


def traceback_option() -> click.Option:
    """Return the option that shows tracebacks, which the group has and every command."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            ctx.find_root().meta["traceback"] = True

    return click.Option(
        ["--traceback"],
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Show the Python traceback of a failure.",
    )


@click.group(cls=LazyGroup, params=[traceback_option()])
@click.version_option(__version__, prog_name="rnncli", allow_from_autoenv=False)
def cli() -> None:
    """Evaluate recurrent neural operators exactly as their specifications say.

    RNN, GRU, LSTM and linear recurrences of ONNX, OpenVINO's and WebNN's sequences and cells,
    TFLite's integer LSTM and quantised units, from a YAML config or inside any .onnx model. Tables
    go to standard output, as tab-separated lines in a pipe; messages go to standard error. Every
    option can also be set by the variable RNNCLI_<COMMAND>_<OPTION>.
    """


def run() -> int:
    """Run the command line and return the exit code; show a traceback only on request.

    Raises:
        KeyboardInterrupt: a signal came.
    """
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", RnncliWarning)
    LISTENERS[:] = [say]
    code = _settled(_invoke)
    # What is left is printed before the exit code is decided, since that may fail.
    return _settled(lambda _: sys.stdout.flush()) or code


def _invoke(meta: dict[str, Any]) -> int:
    """Complete words for a shell, or invoke the group, whose streams make its text printable."""
    # A shell asks without arguments: with some, a variable that is left over judges nothing.
    if COMPLETE in os.environ and not sys.argv[1:]:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "rnncli", COMPLETE, os.environ[COMPLETE])
    try:
        with cli.make_context(
            "rnncli", sys.argv[1:], auto_envvar_prefix="RNNCLI", color=True
        ) as ctx:
            try:
                with waiting("".join(sys.argv[1:2])):
                    cli.invoke(ctx)
            finally:
                meta.update(ctx.meta)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return 0


def _settled(function: Callable[[dict[str, Any]], int | None]) -> int:
    """Call a function and return an exit code, also of an exception; print its reason."""
    meta: dict[str, Any] = {}
    try:
        return function(meta) or 0
    except KeyboardInterrupt:
        raise
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Exception as error:
        if meta.get("traceback"):
            import traceback

            traceback.print_exc()
        if signals.FIRST.number is not None:  # an interrupted library raised something else
            raise KeyboardInterrupt from error
        if isinstance(error, BrokenPipeError) and error.filename == OUTPUT:
            return PIPE_CLOSED  # obvious
        sentence, code = explain(error)
        say_text(sentence)
        return code


def _show_warning(  # noqa: PLR0917 -- the signature of warnings.showwarning
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print our own warnings on one line; warnings of libraries concern developers only."""
    del filename, lineno, file, line
    if issubclass(category, RnncliWarning):
        say(f"warning: {message}")
