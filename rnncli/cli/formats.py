"""`rnncli formats`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.cli.repetition import Command
from rnncli.reports.tables import print_records


@click.command(cls=Command)
@json_option
def formats(as_json: bool) -> None:
    """List the file formats of tensors.

    Installed packages add formats through the entry point group `rnncli.formats`.
    """
    from rnncli.files.formats import describe_formats

    records = describe_formats()
    print_records(("extension", "what it is", "from"), records, as_json=as_json)
