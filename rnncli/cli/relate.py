"""`rnncli relate`."""

from __future__ import annotations

from typing import Any

import click

from rnncli.api import commands
from rnncli.cli.command import command
from rnncli.cli.options import refuse_models, row
from rnncli.cli.reporting import REPORTS, reported

TARGET = row(type=click.Path(), metavar="PACK|SUITE|CONFIG", callback=refuse_models)


@command(asks=commands.relate, target=TARGET, **REPORTS)
def relate(target: str, **asked: Any) -> int:
    """Judge an implementation without expected outputs, by how its own are related.

    Each case is run as it is and transformed: in another order, in parts, larger, later. The
    outputs must be related, whatever is right, so sizes may be those of real models. The target is
    a pack, a suite or a config, by path or name. Each relation of a case is a case of the report,
    CASE::RELATION, with the verdicts, options, reports and exit codes of `rnncli verify`; one that
    does not apply, or that would show nothing, is skipped.

    Relations are again, padding, nan-padding, longer, longer-259, cut, singles, tiles,
    sequences-permuted, sequences-repeated, sequences-repeated-261, units-permuted, units-added,
    units-added-149, inputs-permuted, inputs-added, inputs-added-293, split, reversed, directions,
    last-state, outputs, layout, weights, threads.

    \b
    rnncli relate core --runtime onnxruntime --sizes hidden_size=512,batch_size=64
    rnncli relate vectors/core --backend numba --relation split --relation tiles --html relate.html
    rnncli relate lstm.yaml --command './run_kernel {model} {inputs} {outputs}'
    """
    return reported(commands.relate, target, **asked).exit_code
