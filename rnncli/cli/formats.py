"""`rnncli formats`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.reports.tables import print_json_line, print_table


@click.command()
@json_option
def formats(as_json: bool) -> None:
    """List the file formats of tensors.

    Installed packages add formats through the entry point group `rnncli.formats`.
    """
    from rnncli.formats import format_with, known_formats

    rows = [(ext, format_with(ext).summary, where) for ext, where in known_formats().items()]
    if as_json:
        for ext, summary, where in rows:
            print_json_line({"extension": ext, "summary": summary, "from": where})
    else:
        print_table(("extension", "what it is", "from"), rows)
