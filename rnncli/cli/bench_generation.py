"""`rnncli bench generation`."""

from __future__ import annotations

from pathlib import Path

import click

from rnncli.cli.options import json_option, options_of
from rnncli.cli.repetition import Command
from rnncli.jobs.workers import Workers


@click.command(cls=Command)
@click.option("--cases", type=click.IntRange(30), default=6000, show_default=True, help="How many.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="How often.")
@options_of(Workers, default=Workers(jobs=2), only=["jobs"])
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder for temporary files.  [default: the system's]",
)
@json_option
def generation(
    *, cases: int, rounds: int, workers: Workers, scratch: Path | None, as_json: bool
) -> None:
    """Measure how many small vectors per second `rnncli generate` writes.

    The vectors are ONNX folders: with goldens in float64, the same in several processes, and
    certified. Rounds are interleaved, and medians are shown. The time of the files alone, which
    depends on the disk, is measured as well.
    """
    from rnncli.bench.durations import WAYS, file_cost, measure_generation
    from rnncli.bench.machine import surroundings
    from rnncli.reports.contests import show_generation
    from rnncli.reports.progress import progress_bar

    with progress_bar(rounds * len(WAYS), "packs") as progress:
        measured = measure_generation(cases, rounds, workers.jobs, scratch, progress.advance)
    show_generation(measured, file_cost(scratch), surroundings(), as_json=as_json)
