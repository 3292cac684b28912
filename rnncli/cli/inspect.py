"""`rnncli inspect`."""

from __future__ import annotations

import click

from rnncli.cli.options import TARGET, json_option
from rnncli.reports.tables import print_json_line


@click.command()
@click.argument("target", type=TARGET)
@json_option
def inspect(target: str, as_json: bool) -> None:
    """Show a config with every default filled in, or a model's recurrent nodes.

    A config is printed as YAML that gives the same case. Of a model: its inputs and outputs, then
    each recurrent node with its place, attributes (defaults included) and the shapes of its inputs.
    """
    from rnncli.reports.inspection import as_text, model_record
    from rnncli.running.target import Case, describe, load_target

    loaded = load_target(target)
    if isinstance(loaded, Case):
        record = describe(loaded)
        print_json_line(record) if as_json else click.echo(as_text(record), nl=False)
    else:
        record = model_record(loaded)
        print_json_line(record) if as_json else click.echo(as_text(record), nl=False)
