"""A hook of mkdocs: writes the reference pages from the code while the site is built.

No page that is made here is kept in the repository, so none can be out of date.
"""

from __future__ import annotations

import html
import inspect
import re
from typing import TYPE_CHECKING

import click
from mkdocs.structure.files import File

from rnncli.cli.group import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, before mkdocs reads what there is."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content="\n".join(page())))
    return files


def code(text: str) -> str:
    """Return text that is shown as code, also in a cell of a table."""
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def prose(text: str) -> str:
    """Return a sentence of a help text or docstring as Markdown; pages it names become links."""
    escaped = html.escape(text, quote=False).replace("|", "&#124;").replace("*", "\\*")
    return re.sub(r"docs/([\w/]+)\.md", r"[\1](../\1.md)", escaped)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return the lines of a table, a blank line below it."""
    yield from (
        "",
        *(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)),
        "",
    )


def fenced(text: str, language: str = "text") -> Iterator[str]:
    """Return the lines of a block of code."""
    yield from ("", f"```{language}", text, "```", "")


def command_line() -> Iterator[str]:
    """Return the page on every command, from click."""
    context = click.Context(cli, info_name="rnncli")
    yield "# Commands"
    yield from _help(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        yield from _command(command, click.Context(command, info_name=name, parent=context))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"\n## {context.info_name}\n"
    yield from fenced(
        " ".join([context.command_path, *command.collect_usage_pieces(context)]), "sh"
    )
    yield from _help(command)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            yield f"\n{code(record[0])}"
            yield f":   {prose(record[1])}"


def _help(command: click.Command) -> Iterator[str]:
    """Return the paragraphs of a help text; click keeps the lines of those that begin with \\b."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield from fenced(paragraph.removeprefix("\b\n"), "sh")
        else:
            yield f"\n{prose(paragraph)}\n"


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "reference/cli.md": command_line,
}
