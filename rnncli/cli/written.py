"""Paths that commands write to, and the files that they must not replace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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


def refuse_lost_inputs(ctx: click.Context) -> None:
    """Refuse to replace a file that the command reads, or one that belongs to a pack.

    Folders are left to the commands that write them, which know their own.

    Raises:
        InvalidRequest: an option or argument names such a file; names both.
    """
    written = [row for row in ctx.command.params if isinstance(row.type, Written)]
    others = [row for row in ctx.command.params if row not in written]
    read = [text for row in others for text in texts([ctx.params.get(row.name or "")])]
    for row in written:
        for path in filter(_is_file, texts([ctx.params.get(row.name or "")])):
            if reason := _loss(path, read):
                raise InvalidRequest(f"{row.opts[-1]} {path}: is not replaced: {reason}")


def _loss(path: str, read: Iterable[str]) -> str:
    """Return why an existing file must not be replaced, or ""."""
    from rnncli.generating.leftovers import pack_around

    if any(_is_same(text, path) for text in read):
        return "it is an input of this command"
    pack = pack_around(path)
    return f"it belongs to the pack {pack}" if pack else ""


def _is_file(path: str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 -- Path.is_file can raise


def _is_same(text: str, path: str) -> bool:
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
        elif isinstance(value, tuple):
            yield from texts(value)
