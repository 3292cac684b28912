"""`rnncli generate`."""

from __future__ import annotations

from typing import Any

import click

from rnncli.api import commands
from rnncli.cli.command import command, hold
from rnncli.cli.options import A_SUITE, MEMORY
from rnncli.limits import UNLIMITED, Limits


@command(asks=commands.generate, suite=A_SUITE, limits=MEMORY)
def generate(suite: str, *, limits: Limits = UNLIMITED, as_json: bool = False, **asked: Any) -> int:
    """Write the conformance vectors of a suite as a pack.

    SUITE is a YAML file, or the name of a suite that ships with rnncli (`rnncli list` names them).
    A pack is a folder: test_ID/ for each case, with model.onnx, inputs, expected outputs and the
    tolerance of each element; manifest.json, which describes each case; and SHA256SUMS. The same
    suite gives the same bytes on every machine, with any -j and --executor.

    An interrupted run keeps its finished cases; the same command continues from there.

    \b
    rnncli generate core
    rnncli generate specs/suites/core.yaml --check
    rnncli generate three-way -o pack --format h5 -j 8
    """
    from rnncli.reports.generated import show_generation
    from rnncli.reports.progress import progress_bar

    hold(limits)
    with progress_bar(unit="cases") as progress:
        report = commands.generate(suite, **asked, progress=progress.reach)
    traceback = click.get_current_context().find_root().meta.get("traceback", False)
    show_generation(report, is_check=asked["check"], as_json=as_json, traceback=traceback)
    return report.exit_code
