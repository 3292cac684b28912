"""`rnncli diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rnncli.cli.judging_options import judging_options
from rnncli.cli.options import json_option


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@judging_options
@json_option
@click.pass_context
def diagnose(ctx: click.Context, /, pack: Path, as_json: bool, **options: Any) -> None:
    """Name the bug that explains an implementation's wrong outputs.

    Every case that differs is held against other readings of the specification and against every
    mutant (`rnncli mutants` lists them), then against two of those at once; all cases tell which of
    them it cannot be. The fewest that explain the failures of a cell by value are causes. Of the
    rest it says that no known bug explains them, what they have in common (a pattern, no proof),
    and what fits some of them although other cases speak against it. Of what is wrong at a later
    call of a session only, it says what of the call before was kept, if that gives what came out.
    The exit code is 1 when anything differs, crashes, hangs, or is invalid and accepted, and 5 when
    nothing differs but no case was answered.
    `rnncli verify --diagnose` says the same of causes beside its verdicts.

    \b
    rnncli diagnose vectors/core --results from_device/
    rnncli diagnose vectors/core --runtime openvino --json
    """
    from rnncli import commands
    from rnncli.reports.diagnosis import show_diagnosis_report
    from rnncli.reports.progress import progress_bar

    with progress_bar(unit="cases") as progress:
        report = commands.diagnose(pack, **options, progress=progress.reach)
    show_diagnosis_report(report, as_json=as_json)
    ctx.exit(report.exit_code)
