"""`rnncli runtimes`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.reports.tables import print_json_line, print_table


@click.command()
@json_option
def runtimes(as_json: bool) -> None:
    """List the runtimes that can be judged.

    Installed packages add runtimes through the entry point group `rnncli.subjects`.
    """
    from rnncli.subjects.table import describe_subjects

    rows = describe_subjects()
    if as_json:
        for row in rows:
            print_json_line(row)
    else:
        print_table(("runtime", "what it is", "from"), [tuple(row.values()) for row in rows])
