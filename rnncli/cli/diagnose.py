"""`rnncli diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command
from rnncli.cli.judging_options import allowance_options, judging_options
from rnncli.cli.options import json_option, refuse_models

if TYPE_CHECKING:
    from rnncli.judging.selected import Selected
    from rnncli.subjects.implementation import Implementation


@click.command(cls=Command)
@click.argument("pack", type=click.Path(path_type=Path), callback=refuse_models)
@judging_options("select", "require")
@allowance_options
@json_option
def diagnose(
    pack: Path, *, subject: Implementation, selected: Selected, as_json: bool, **options: Any
) -> int:
    """Name the bug that explains an implementation's wrong outputs.

    Every case that differs is compared with other readings of the specification, with every mutant
    (`rnncli mutants` lists them) and with pairs of those; passing cases rule hypotheses out. The
    smallest set that explains the failures of a cell by value is the set of causes. For the
    remaining failures, the report says that no known bug explains them, what they have in common (a
    pattern, not a proof), and which hypotheses fit some of them but are contradicted by other
    cases. If only a later call of a session is wrong, it names the state kept from the call before,
    if that explains the outputs. No bug is sought for cases with an output that is missing or has
    another shape or dtype, or with no fault but an output that was not requested; they are listed
    apart. The exit code is that of `rnncli verify`: 1 if a case fails, 5 if none does, but none was
    answered. `rnncli verify --diagnose` adds the same causes to its verdicts.

    \b
    rnncli diagnose vectors/core --results from_device/
    rnncli diagnose vectors/core --runtime openvino --json
    """
    from rnncli.api import commands
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import show_diagnosis

    with progress_bar(unit="cases") as progress:
        report = commands.diagnose(
            pack, subject, cases=selected, **options, progress=progress.reach
        )
    show_diagnosis(report, as_json=as_json)
    return report.exit_code
