"""What `rnncli diagnose` shows: a line for each cause, then what nothing explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rnncli.judging.hypotheses import sentence_of
from rnncli.reports.tables import is_drawn, print_json_line, print_table

if TYPE_CHECKING:
    from rnncli.judging.diagnosis import Diagnosis

COLUMNS = ("cell", "bug", "explains", "of", "predicts", "refuted by", "worst margin", "as well")


def show_diagnosis(diagnosis: Diagnosis, *, as_json: bool) -> None:
    """Print the causes: sentences on a terminal, a table in a pipe, JSON lines if asked."""
    if as_json:
        for cause in diagnosis.causes:
            print_json_line({"kind": "cause", **cause.record()})
        print_json_line({"kind": "unexplained", "cases": list(diagnosis.unexplained)})
        return
    if is_drawn():
        for cause in diagnosis.causes:
            click.echo(cause.sentence)
            click.echo(f"  {sentence_of(cause.hypothesis)}")
    else:
        print_table(
            COLUMNS,
            [
                (
                    *(cause.cell, cause.hypothesis, len(cause.explains), cause.of),
                    *(cause.predicts, len(cause.refuted), cause.margin),
                    ", ".join(cause.indistinguishable) or None,
                )
                for cause in diagnosis.causes
            ],
        )
    if diagnosis.unexplained:
        click.echo(f"nothing explains {', '.join(diagnosis.unexplained)}", err=True)
    elif not diagnosis.causes:
        click.echo("nothing differs: there is nothing to explain", err=True)
