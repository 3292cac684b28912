"""`rnncli compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rnncli.cli.command import Command, is_same_file
from rnncli.cli.options import json_option, tolerance_options, within_memory
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.reports.tables import print_json_line
from rnncli.talk.terminal import say


@click.command(cls=Command)
@click.argument("a", metavar="A", type=click.Path())
@click.argument("b", metavar="B", type=click.Path())
@tolerance_options
@within_memory
@json_option
def compare(a: str, b: str, *, as_json: bool, **tolerances: Any) -> int:
    """Compare two files or folders of tensors; exit 1 if they differ, 5 without an element.

    B holds the expected values. Of folders with test data sets only the outputs are compared.
    Without a tolerance, elements must be equal; -0.0 equals 0.0, and NaN equals NaN unless
    --no-equal-nan is given. With tolerances, an element agrees if |a - b| <= atol + rtol * |b|, or
    if the two are at most --max-ulp units in the last place apart.

    \b
    rnncli compare got.npz wanted.h5 --rtol 1e-5 --atol Y:1e-6
    """
    from rnncli.files.formats import read_outputs
    from rnncli.judging.comparing.comparison import compare as compare_tensors
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.reports.runs import print_comparison

    if is_same_file(a, b):
        raise InvalidRequest(f"{a}, {b}: one and the same, which shows nothing")
    tolerance = Tolerance.parse(**tolerances)
    if Path(a).is_dir() and Path(b).is_dir():
        say("only outputs are compared: neither inputs nor models")
    outputs = compare_tensors(read_outputs(a), read_outputs(b), tolerance)
    if as_json:
        for output in outputs:
            print_json_line(output.record())
    else:
        print_comparison(outputs)
    if outputs.exit_code == NothingSelected.exit_code:
        raise NothingSelected(f"{a}, {b}: no element to compare")
    return outputs.exit_code
