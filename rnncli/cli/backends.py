"""`rnncli backends`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.reports.tables import print_json_line, print_table


@click.command()
@json_option
def backends(as_json: bool) -> None:
    """List the compute backends.

    Installed packages add backends through the entry point group `rnncli.backends`.
    """
    from rnncli.backends.table import describe_backends

    rows = describe_backends()
    if as_json:
        for row in rows:
            print_json_line(row)
    else:
        print_table(("backend", "what it is", "from"), [tuple(row.values()) for row in rows])
