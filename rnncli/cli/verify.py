"""`rnncli verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command
from rnncli.cli.judging_options import (
    allowance_options,
    gate_options,
    judging_options,
    report_options,
)
from rnncli.cli.options import refuse_models, section

if TYPE_CHECKING:
    from rnncli.judging.report import VerificationReport
    from rnncli.judging.selected import Selected
    from rnncli.subjects.implementation import Implementation


# Options of the release before.
OF_RELATE = dict.fromkeys(["--metamorphic", "--relation", "--sizes"], "`rnncli relate PACK ...`")


@click.command(cls=Command, elsewhere=OF_RELATE)
@click.argument("pack", type=click.Path(path_type=Path), callback=refuse_models)
@judging_options()
@gate_options
@allowance_options
@section(
    "What passes",
    click.option(
        "--claims",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Judge exactly what FILE claims, as `rnncli claims` writes it; a refusal inside fails."
        " No other selection, tolerance or allowance goes with it.",
    ),
)
@section(
    "Reports",
    click.option(
        "--diagnose",
        is_flag=True,
        help="Name the bug behind wrong outputs, as `rnncli diagnose` does.",
    ),
)
@report_options
def verify(
    pack: Path, *, subject: Implementation, selected: Selected, **options: Any
) -> VerificationReport:
    """Judge an implementation against a pack of conformance vectors.

    One of --runtime, --backend, --results, --command and --harness names it. All but results run in
    their own process: a crash, a hang or garbage is a verdict on that case, and the run continues.
    The exit code is 1 if a case is silently wrong, refused, crashed, timed out or missing and is
    neither a known failure nor allowed; it is 5 if no case fails but fewer than --min-cases were
    answered. With --claims it is 0 only if all that is claimed is right. If a pack has invalid
    cases that must be refused, valid cases of the same operators run as well: if those fail, a
    refusal shows nothing, and the exit code is 5.

    \b
    rnncli verify vectors/core --runtime onnxruntime --require 'layout=0,dtype=float32'
    rnncli verify vectors/core --results from_device/ --junit verify.xml --html verify.html
    rnncli verify vectors/core --command './run_kernel {model} {inputs} {outputs}' --timeout 10
    rnncli verify vectors/core --harness 'python3 harness.py' -j 2
    rnncli verify vectors/core --runtime onnxruntime --claims claim.yaml
    rnncli verify vectors/core --backend numpy --compute native --profile strict
    """
    from rnncli.api import commands

    return commands.verify(pack, subject, cases=selected, **options)
