"""`rnncli lint`."""

from __future__ import annotations

import click

from rnncli.cli.command import command
from rnncli.cli.options import refuse_models, row
from rnncli.reports.tables import print_json_line
from rnncli.talk.words import one_line


@command(files=row(type=click.Path(), nargs=-1, metavar="FILE...", callback=refuse_models))
def lint(files: tuple[str, ...], *, as_json: bool = False) -> int:
    """Check YAML files; list every finding with its place.

    FILE is a config, a suite or a claim, the name of one that ships with rnncli, or - for standard
    input.
    Every case of a suite is read, and cases that must be rejected are checked to be invalid.
    Findings are printed as FILE:LINE:COLUMN: SENTENCE; the exit code is 1 if there are any.

    \b
    rnncli lint my_suite.yaml configs/*.yaml
    rnncli lint core --json
    """
    from rnncli.running.target import findings_of

    found = 0
    for file in files:
        for place, sentence in findings_of(file):
            found += 1
            if as_json:
                print_json_line({**place._asdict(), "finding": sentence})
            else:
                click.echo(one_line(f"{place}: {sentence}"))
    return int(found > 0)
