"""`rnncli convert`."""

from __future__ import annotations

import click


@click.command()
@click.argument("source", metavar="A", type=click.Path())
@click.argument("destination", metavar="B", type=click.Path())
def convert(source: str, destination: str) -> None:
    """Convert tensors from one file format to another.

    Formats are told by extension, a folder is an ONNX test case (`rnncli formats` lists them).
    Every tensor keeps its name, dtype, shape and bits. Inputs and outputs of a test case become
    test_data_set_0/inputs/NAME and test_data_set_0/outputs/NAME in a file, and back; its model goes
    from folder to folder only.
    """
    from rnncli import formats
    from rnncli.running.tasks import as_path

    formats.convert(source, as_path(destination))
