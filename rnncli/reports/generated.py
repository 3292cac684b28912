"""The output of `rnncli generate`: the pack, the findings of a check and the failed cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.reports.tables import print_json_line, print_records, print_table
from rnncli.talk.terminal import say
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rnncli.generating.generation import GenerationReport
    from rnncli.packs.manifest import Manifest


def show_packs(made: Iterable[tuple[Path, Manifest]], *, as_json: bool) -> None:
    """Print written packs: a line each, or an object."""
    records = [pack_record(*each) for each in made]
    print_records(tuple(records[0]), records, as_json=as_json)


def pack_record(folder: Path, manifest: Manifest, reused: int | None = None) -> dict[str, Any]:
    """Return the entries of a written pack's line.

    `reused` is the number of cases left by an earlier run; None if the format cannot reuse any.
    """
    return {
        "pack": str(folder),
        "suite": manifest.header["suite"],
        "layout": manifest.header["layout"],
        "cases": len(manifest.cases),
        **({} if reused is None else {"reused": reused}),
        "files": manifest.file_count,
        "digest": manifest.digest,
    }


def show_generation(
    report: GenerationReport, *, is_check: bool, as_json: bool, traceback: bool
) -> None:
    """Print the written pack or the findings of a check, and the failed cases."""
    for message in report.warnings:
        say(f"warning: {message}")
    if report.manifest:
        record = pack_record(report.folder, report.manifest, report.reused)
        print_records(tuple(record), [record], as_json=as_json)
    elif is_check and not report.failed:
        if as_json:
            for path, word in report.findings:
                print_json_line({"path": path, "finding": word})
        elif report.findings:
            print_table(("finding", "path"), [(word, path) for path, word in report.findings])
        stale = counted(len(report.findings), "file is", "files are")
        sentence = f"{stale} not as the suite has them" if report.findings else "clean"
        say(f"{report.folder}: {counted(report.cases, 'case')}, {sentence}")
    for made in report.failed:
        click.echo(made.error, err=True)
        if traceback and made.traceback:
            click.echo(made.traceback, err=True)
    if report.failed:
        so = "nothing was compared" if is_check else "no pack was written"
        kept = "" if is_check else "; the others are kept, and the next run goes on with them"
        say(f"{counted(len(report.failed), 'case')} could not be made, so {so}{kept}")
