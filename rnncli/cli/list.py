"""`rnncli list`."""

from __future__ import annotations

from typing import Any

import click

from rnncli.cli.command import Command
from rnncli.cli.options import SUITE, json_option, option_of, refuse_models
from rnncli.judging.selected import Selected
from rnncli.reports.tables import print_json_line


@click.command("list", cls=Command)
@click.argument("suite", type=SUITE, callback=refuse_models)
@option_of(Selected, "select")
@click.option(
    "--statements",
    is_flag=True,
    help="With --json: add the statements of the specifications that each case checks.",
)
@json_option
def list_cases(suite: str, select: str, *, statements: bool, as_json: bool) -> None:
    """List the cases of a suite or pack.

    SUITE is a YAML file, the name of a suite that ships with rnncli, or the folder of a pack. Ids
    are printed one per line: operator, version, name of the case, labels of its axes. --json adds
    dtype, flags, labels, the place of the weights, and the error in a case that must be rejected;
    for a pack, the whole record in the manifest.

    \b
    rnncli list core
    rnncli list pairwise -k 'lstm_14 and reverse and not float16'
    rnncli list vectors/core --json --statements
    """
    if statements and not as_json:
        raise click.UsageError("--statements needs --json")
    records = _records(suite, select)
    if statements:
        found = _statements(suite, select)
        records = [{**each, "statements": found[each["id"]]} for each in records]
    if as_json:
        for record in records:
            print_json_line(record)
    else:
        click.echo("\n".join(each["id"] for each in records))


def _records(suite: str, selection: str) -> list[dict[str, Any]]:
    from rnncli.cases.suite.suite import load_suite
    from rnncli.files.described import jsonable
    from rnncli.packs.pack import is_pack, open_pack
    from rnncli.reports.inspection import entry_record

    if is_pack(suite):
        return [jsonable(record) for record in open_pack(suite).select(selection)]
    return [entry_record(entry) for entry in load_suite(suite).select(selection)]


def _statements(suite: str, selection: str) -> dict[str, list[str]]:
    """Return the ids of the statements that each case checks, by case id."""
    from rnncli.verifying.scoring import ScoringPlan, select
    from rnncli.verifying.tracing.tracing import trace_all

    plan = ScoringPlan(suite=suite, selection=selection)
    matrix = trace_all(plan, select(plan), lambda _: None)
    return {case.id: list(case.found) for case in matrix.cases}
