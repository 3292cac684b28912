"""`rnncli list`."""

from __future__ import annotations

import click

from rnncli.cli.command import command
from rnncli.cli.options import A_SUITE
from rnncli.judging.selected import Selected
from rnncli.reports.tables import print_json_line


@command(Selected, suite=A_SUITE)
def list(  # noqa: A001 -- the name of the command
    suite: str, *, select: str = "", statements: bool = False, as_json: bool = False
) -> None:
    """List the cases of a suite or pack.

    SUITE is a YAML file, the name of a suite that ships with rnncli, or the folder of a pack. Ids
    are printed one per line: operator, version, name of the case, labels of its axes. --json adds
    dtype, flags, labels, the place of the weights, and the error in a case that must be rejected;
    for a pack, the whole record in the manifest.

    \b
    rnncli list core
    rnncli list pairwise -k 'lstm_14 and reverse and not float16'
    rnncli list vectors/core --json --statements

    Options:
        statements: With --json: add the statements of the specifications that each case checks.
    """
    if statements and not as_json:
        raise click.UsageError("--statements needs --json")
    from rnncli.cases.suite.suite import load_suite
    from rnncli.files.described import jsonable
    from rnncli.packs.pack import is_pack, open_pack
    from rnncli.reports.inspection import entry_record

    if is_pack(suite):
        records = [jsonable(record) for record in open_pack(suite).select(select)]
    else:
        records = [entry_record(entry) for entry in load_suite(suite).select(select)]
    if statements:
        from rnncli.verifying import scoring
        from rnncli.verifying.tracing.tracing import trace_all

        plan = scoring.ScoringPlan(suite=suite, selection=select)
        matrix = trace_all(plan, scoring.select(plan), lambda _: None)
        found = {case.id: [*case.found] for case in matrix.cases}
        records = [{**each, "statements": found[each["id"]]} for each in records]
    if as_json:
        for record in records:
            print_json_line(record)
    else:
        click.echo("\n".join(each["id"] for each in records))
