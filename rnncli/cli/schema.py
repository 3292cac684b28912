"""`rnncli schema`."""

from __future__ import annotations

import click

from rnncli.cli.command import command
from rnncli.cli.options import printed, row

# Name -> the function that makes the schema, imported on use.
SCHEMAS = {
    "config": "rnncli.cases.schemas:config_schema",
    "suite": "rnncli.cases.schemas:suite_schema",
    "manifest": "rnncli.packs.manifest:manifest_schema",
    "case": "rnncli.packs.raw_form:case_schema",
    "verification": "rnncli.reports.verification_schema:verification_schema",
    "claim": "rnncli.judging.claim:claim_schema",
    "harness": "rnncli.subjects.harness_messages:harness_schema",
}


@command(of=row(type=click.Choice([*SCHEMAS])), output=printed("the schema"))
def schema(of: str = "config", *, output: str = "") -> None:
    """Write the JSON Schema of what is read or printed.

    It describes configs, suites, manifests, case.json of packs in the layout raw, the lines of
    `rnncli verify --json` and `rnncli relate --json`, claims for `rnncli verify --claims`, or the
    messages of `rnncli verify --harness`.

    Editors use those of configs, suites and claims to complete and check YAML; programs that read
    packs and verifications, or answer as a harness, use the others. They ship in specs/schema as
    {config,suite,manifest,case,verification,claim,harness}.schema.json.

    \b
    rnncli schema suite -o suite.schema.json
    """
    import pkgutil
    from pathlib import Path

    from rnncli.cases.schemas import schema_text
    from rnncli.files.atomic import write_text
    from rnncli.files.seals import JSON

    text = schema_text(pkgutil.resolve_name(SCHEMAS[of])())
    if not output:
        click.echo(text, nl=False)
        return
    write_text(Path(output), text, JSON)
