"""`rnncli schema`."""

from __future__ import annotations

import click


@click.command()
@click.option("-o", "--output", default="", metavar="FILE", help="Write it there, not to stdout.")
def schema(output: str) -> None:
    """Write the JSON Schema of operator configs.

    Editors use it to complete and check YAML: it ships as specs/schema.json.
    """
    from pathlib import Path

    from rnncli.cases.schema import schema_text
    from rnncli.formats.atomic import atomic_file

    if not output:
        click.echo(schema_text(), nl=False)
        return
    with atomic_file(Path(output)) as temporary:
        temporary.write_text(schema_text(), encoding="utf-8")
