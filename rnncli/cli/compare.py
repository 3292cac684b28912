"""`rnncli compare`."""

from __future__ import annotations

from pathlib import Path

import click

from rnncli.cli.command import command, hold, is_same_file
from rnncli.cli.options import MEMORY, row
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.limits import UNLIMITED, Limits
from rnncli.reports.tables import print_json_line
from rnncli.talk.terminal import say


@command(
    a=row(type=click.Path(), metavar="A"), b=row(type=click.Path(), metavar="B"), limits=MEMORY
)
def compare(
    a: str,
    b: str,
    *,
    atol: tuple[str, ...] = (),
    rtol: tuple[str, ...] = (),
    max_ulp: tuple[str, ...] = (),
    equal_nan: bool = True,
    limits: Limits = UNLIMITED,
    as_json: bool = False,
) -> int:
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
    hold(limits)
    tolerance = Tolerance.parse(atol=atol, rtol=rtol, max_ulp=max_ulp, equal_nan=equal_nan)
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
