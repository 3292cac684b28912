"""Options given more often than they have values: an error, where click keeps the last."""

from __future__ import annotations

from copy import copy
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.written import refuse_lost_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class JoinableOption(click.Option):
    """An option whose values can be joined to one."""

    def joined(self, values: Sequence[str]) -> str:
        """Return the option that means all of several values."""
        return f"{self.opts[0]} {quote(' and '.join(f'({value})' for value in values))}"


class Command(click.Command):
    """A command that refuses a second value of an option that has one.

    Nor does it replace a file that it reads, or one of a pack.

    A flag may be repeated, not contradicted. Environment variables and defaults are not on the
    command line, and may be overridden there.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: an option is given twice, or names a file to write that must stay.
        """
        if not ctx.resilient_parsing:
            for option, values in self._given(ctx, args):
                _refuse_several(option, ctx, values)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            refuse_lost_inputs(ctx)
        return rest

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


def _refuse_several(option: click.Option, ctx: click.Context, values: Sequence[Any]) -> None:
    if len(values) < 2 or (option.is_flag and len({*values}) == 1):
        return
    if option.is_flag:
        names = {True: option.opts[0], False: option.secondary_opts[0]}
        sentence = f"{names[values[0]]} and {names[not values[0]]} are both given"
    else:
        listed = " and ".join(f"'{value}'" for value in values)
        sentence = f"{option.opts[0]} is given {len(values)} times: {listed}"
    if isinstance(option, JoinableOption):
        sentence += f"; for all of them: {option.joined(values)}"
    raise click.UsageError(sentence, ctx)
