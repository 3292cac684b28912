"""`rnncli backends`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.cli.repetition import Command
from rnncli.reports.tables import print_records


@click.command(cls=Command)
@json_option
def backends(as_json: bool) -> None:
    """List the compute backends.

    Installed packages add backends through the entry point group `rnncli.backends`.
    """
    from rnncli.backends.backend_table import describe_backends

    rows = describe_backends()
    print_records(("backend", "what it is", "from"), rows, as_json=as_json)
