"""`rnncli relate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command
from rnncli.cli.judging_options import (
    allow_refused_option,
    gate_options,
    judging_options,
    report_options,
)
from rnncli.cli.options import Name, read_sizes, refuse_models

if TYPE_CHECKING:
    from rnncli.judging.report import VerificationReport
    from rnncli.judging.selected import Selected
    from rnncli.subjects.implementation import Implementation


@click.command(cls=Command)
@click.argument("target", metavar="PACK|SUITE|CONFIG", type=click.Path(), callback=refuse_models)
@judging_options()
@click.option(
    "--relation",
    type=Name("name", "rnncli.verifying.relations.relations:RELATIONS"),
    multiple=True,
    help="Only this relation (docs/relations.md explains each).",
)
@click.option(
    "--sizes",
    multiple=True,
    callback=lambda *given: read_sizes(*given) or None,
    metavar="NAME=SIZE[,...]",
    help="Sizes of every case of a suite or config, as in hidden_size=512,batch_size=64.",
)
@allow_refused_option
@gate_options
@report_options
def relate(
    target: str, *, subject: Implementation, selected: Selected, **options: Any
) -> VerificationReport:
    """Judge an implementation without expected outputs, by relations between its own.

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
    from rnncli.api import commands

    return commands.relate(target, subject, cases=selected, **options)
