"""`rnncli backends`, `rnncli runtimes` and `rnncli formats`: tables that packages add rows to."""

from __future__ import annotations

import click

from rnncli.cli.command import Command
from rnncli.cli.options import json_option
from rnncli.reports.tables import print_records


@click.command(cls=Command)
@json_option
def backends(as_json: bool) -> None:
    """List the compute backends.

    Installed packages add backends through the entry point group `rnncli.backends`.
    """
    from rnncli.backends.backend_table import describe_backends

    print_records(("backend", "what it is", "from"), describe_backends(), as_json=as_json)


@click.command(cls=Command)
@json_option
def runtimes(as_json: bool) -> None:
    """List the runtimes that can be judged.

    Installed packages add runtimes through the entry point group `rnncli.subjects`.
    """
    from rnncli.subjects.runtimes import describe_subjects

    print_records(("runtime", "what it is", "from"), describe_subjects(), as_json=as_json)


@click.command(cls=Command)
@json_option
def formats(as_json: bool) -> None:
    """List the file formats of tensors.

    Installed packages add formats through the entry point group `rnncli.formats`.
    """
    from rnncli.files.formats import describe_formats

    print_records(("extension", "what it is", "from"), describe_formats(), as_json=as_json)
