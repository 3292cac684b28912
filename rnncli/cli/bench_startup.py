"""`rnncli bench startup`."""

from __future__ import annotations

import click

from rnncli.cli.options import json_option
from rnncli.cli.repetition import Command


@click.command(cls=Command)
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True, help="How often.")
@json_option
def startup(*, rounds: int, as_json: bool) -> None:
    """Measure whole processes, from start to end.

    `rnncli --help` is compared with a click program without commands, and `rnncli run` on a model
    with one tiny node with a program that runs the same model with ONNX Runtime, if installed.
    Rounds are interleaved, and medians are shown.
    """
    from rnncli.bench.durations import PROCESSES, measure_startup
    from rnncli.bench.machine import NO_PYC, notes
    from rnncli.reports.contests import show_startup
    from rnncli.reports.progress import progress_bar

    noted = notes([NO_PYC])  # before our own load
    with progress_bar(rounds * len(PROCESSES), "processes", still=True) as progress:
        measured = measure_startup(rounds, progress.advance)
    show_startup(measured, noted, as_json=as_json)
