"""`rnncli runtimes`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.cli.repetition import Command
from rnncli.reports.tables import print_records


@click.command(cls=Command)
@json_option
def runtimes(as_json: bool) -> None:
    """List the runtimes that can be judged.

    Installed packages add runtimes through the entry point group `rnncli.subjects`.
    """
    from rnncli.subjects.runtimes import describe_subjects

    rows = describe_subjects()
    print_records(("runtime", "what it is", "from"), rows, as_json=as_json)
