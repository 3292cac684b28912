"""`rnncli release`."""

from __future__ import annotations

import click

from rnncli.cli.command import Command, Written
from rnncli.cli.options import json_option, refuse_models, within_memory
from rnncli.packs.layouts import LAYOUTS, SINGLE_FILES

HEADER = ("archive", "layout", "cases", "bytes", "sha256")


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=Written())
@click.argument(
    "packs", metavar="PACK...", type=click.Path(), nargs=-1, required=True, callback=refuse_models
)
@click.option(
    "--format",
    "layouts",
    type=click.Choice([name for name in LAYOUTS if name not in SINGLE_FILES]),
    multiple=True,
    default=("onnx", "raw", "c"),
    show_default=True,
    help="Layout of an archive (docs/howto/packs.md); may be given several times.",
)
@json_option
@within_memory
def release(
    folder: str, packs: tuple[str, ...], layouts: tuple[str, ...], *, as_json: bool
) -> None:
    """Write archives of packs to give away, reproducible to the byte.

    DIR gets SUITE-DIGEST-LAYOUT.tar.gz of each pack in each layout, and SHA256SUMS. An archive has
    the pack, the licence, a page on how to reach a first verdict without rnncli, must-pass.tsv with
    the cases of each feature, and, as raw, judge.c. Equal packs give equal bytes, wherever and
    whenever. DIR is new, empty, or an earlier release, which is replaced.

    \b
    rnncli release dist vectors/core vectors/tiles
    rnncli release dist my_pack --format hex
    """
    from pathlib import Path

    from rnncli.generating.release import release as write
    from rnncli.packs.pack import open_pack
    from rnncli.reports.tables import print_json_line, print_table

    opened = [open_pack(pack) for pack in packs]
    archives = write(opened, list(dict.fromkeys(layouts)), Path(folder))
    if not as_json:
        print_table(HEADER, archives)
        return
    for archive in archives:
        print_json_line(dict(zip(HEADER, archive, strict=True)))
