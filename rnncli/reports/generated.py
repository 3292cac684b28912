"""The output of `rnncli generate`: the pack, the findings of a check and the failed cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.reports.tables import print_json_line, print_table
from rnncli.talk.terminal import say
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rnncli.generating.generation import GenerationReport
    from rnncli.packs.manifest import Manifest


def show_pack(
    folder: Path, manifest: Manifest, *, as_json: bool, reused: int | None = None
) -> None:
    """Print the written pack: one line, or one object.

    `reused` is the number of cases left by an earlier run; None if the format cannot reuse any.
    """
    record: dict[str, Any] = {
        "pack": str(folder),
        "suite": manifest.header["suite"],
        "layout": manifest.header["layout"],
        "cases": len(manifest.cases),
        **({} if reused is None else {"reused": reused}),
        "files": manifest.file_count,
        "digest": manifest.digest,
    }
    if as_json:
        print_json_line(record)
    else:
        print_table(tuple(record), [tuple(record.values())])


def show_generation(
    report: GenerationReport, *, is_check: bool, as_json: bool, traceback: bool
) -> None:
    """Print the written pack or the findings of a check, and the failed cases."""
    for message in report.warnings:
        say(f"warning: {message}")
    if report.manifest:
        show_pack(report.folder, report.manifest, reused=report.reused, as_json=as_json)
    elif is_check and not report.failed:
        _show_findings(report.folder, report.findings, report.cases, as_json=as_json)
    for made in report.failed:
        click.echo(made.error, err=True)
        if traceback and made.traceback:
            click.echo(made.traceback, err=True)
    if report.failed:
        so = "nothing was compared" if is_check else "no pack was written"
        kept = "" if is_check else "; the others are kept, and the next run goes on with them"
        say(f"{counted(len(report.failed), 'case')} could not be made, so {so}{kept}")


def _show_findings(
    folder: Path, findings: Sequence[tuple[str, str]], cases: int, *, as_json: bool
) -> None:
    if as_json:
        for path, word in findings:
            print_json_line({"path": path, "finding": word})
    elif findings:
        print_table(("finding", "path"), [(word, path) for path, word in findings])
    stale = counted(len(findings), "file is", "files are")
    sentence = f"{stale} not as the suite has them" if findings else "clean"
    say(f"{folder}: {counted(cases, 'case')}, {sentence}")
