"""`rnncli formats`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.reports.tables import print_records


@click.command()
@json_option
def formats(as_json: bool) -> None:
    """List the file formats of tensors.

    Installed packages add formats through the entry point group `rnncli.formats`.
    """
    from rnncli.formats import format_with, known_formats

    records = (
        {"extension": ext, "summary": format_with(ext).summary, "from": where}
        for ext, where in known_formats().items()
    )
    print_records(("extension", "what it is", "from"), records, as_json=as_json)
