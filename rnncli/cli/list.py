"""`rnncli list`."""

from __future__ import annotations

import click

from rnncli.cli.options import SUITE, json_option, selection_option
from rnncli.reports.tables import print_json_line


@click.command("list")
@click.argument("suite", type=SUITE)
@selection_option
@json_option
def list_cases(suite: str, selection: str, as_json: bool) -> None:
    """List the cases a suite expands to.

    SUITE is a YAML file, or the name of a suite that ships with rnncli. Ids are printed one a line:
    operator, version, name of the case, labels of its axes. With --json also dtype, flags, labels,
    where the weights stand, and what breaks a case that must be rejected.

    \b
    rnncli list core
    rnncli list pairwise -k 'lstm_14 and reverse and not float16'
    """
    from rnncli.cases.suite import load_suite
    from rnncli.reports.suites import entry_record

    entries = load_suite(suite).select(selection)
    if as_json:
        for entry in entries:
            print_json_line(entry_record(entry))
    else:
        click.echo("\n".join(entry.id for entry in entries))
