"""`rnncli release`."""

from __future__ import annotations

import click

from rnncli.cli.command import command, hold
from rnncli.cli.options import MEMORY, Written, refuse_models, row
from rnncli.limits import UNLIMITED, Limits
from rnncli.packs.layouts import LAYOUTS, SINGLE_FILES

HEADER = ("archive", "layout", "cases", "bytes", "sha256")


@command(
    folder=row(type=Written(), metavar="DIR"),
    packs=row(type=click.Path(), nargs=-1, metavar="PACK...", callback=refuse_models),
    layouts=row("--format", type=click.Choice([n for n in LAYOUTS if n not in SINGLE_FILES])),
    limits=MEMORY,
)
def release(
    folder: str,
    packs: tuple[str, ...],
    *,
    layouts: tuple[str, ...] = ("onnx", "raw", "c"),
    as_json: bool = False,
    limits: Limits = UNLIMITED,
) -> None:
    """Write archives of packs to give away, reproducible to the byte.

    DIR gets SUITE-DIGEST-LAYOUT.tar.gz of each pack in each layout, and SHA256SUMS. An archive has
    the pack, the licence, a page on how to reach a first verdict without rnncli, must-pass.tsv with
    the cases of each feature, and, as raw, judge.c. Equal packs give equal bytes, wherever and
    whenever. DIR is new, empty, or an earlier release, which is replaced.

    \b
    rnncli release dist vectors/core vectors/tiles
    rnncli release dist my_pack --format hex

    Options:
        layouts: Layout of an archive (docs/howto/packs.md); may be given several times.
    """
    from pathlib import Path

    from rnncli.generating.release import release as write
    from rnncli.packs.pack import open_pack
    from rnncli.reports.tables import print_json_line, print_table

    hold(limits)
    opened = [open_pack(pack) for pack in packs]
    archives = write(opened, list(dict.fromkeys(layouts)), Path(folder))
    if not as_json:
        print_table(HEADER, archives)
        return
    for archive in archives:
        print_json_line(dict(zip(HEADER, archive, strict=True)))
