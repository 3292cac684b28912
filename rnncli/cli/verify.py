"""`rnncli verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rnncli.cli.judging_options import judging_options
from rnncli.cli.metamorphic import refuse_relation_options, relation_options, verify_relations
from rnncli.cli.options import Written, json_option
from rnncli.cli.repetition import Command


@click.command(cls=Command)
@click.argument("pack", metavar="PACK|SUITE|CONFIG", type=click.Path(path_type=Path))
@judging_options
@relation_options
@click.option(
    "--xfails",
    type=click.Path(path_type=Path),
    help="File of known failures: each line has an id or pattern, then the reason. A known failure"
    " that passes fails the run.",
)
@click.option(
    "--allow-refused", is_flag=True, help="Do not fail if the subject refuses valid cases."
)
@click.option(
    "--allow-missing", is_flag=True, help="Do not fail if --results has nothing for a case."
)
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first failure.")
@click.option(
    "--min-cases",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Exit with 5 if fewer cases are answered. A case is answered if outputs of the subject"
    " were judged; one that was refused, missing, crashed or skipped is not.",
)
@click.option(
    "--pack-digest",
    default="",
    metavar="HEX",
    help="Exit with 2 unless the digest of the pack, which covers every file, begins with HEX."
    " `rnncli generate` and `rnncli inspect` print it.",
)
@click.option("--shard", default="1/1", metavar="i/n", help="Judge part i of n: every n-th case.")
@click.option(
    "--shuffle",
    type=int,
    metavar="SEED",
    help="Run the cases in a random order, to find state that is kept from case to case. Reports"
    " keep the order of the pack.",
)
@click.option(
    "--diagnose",
    is_flag=True,
    help="Name the bug behind wrong outputs, as `rnncli diagnose` does.",
)
@json_option
@click.option(
    "--junit", type=Written("--json prints there"), metavar="FILE", help="Also write JUnit XML."
)
@click.option(
    "--markdown", type=Written("--json prints there"), metavar="FILE", help="Also write Markdown."
)
@click.option(
    "--html",
    type=Written("--json prints there"),
    metavar="FILE",
    help="Also write one self-contained HTML page (extra `report`).",
)
@click.option(
    "--plot",
    type=Written("--json prints there"),
    metavar="FILE",
    help="Also draw the margin of every case and errors over time, to FILE.png, .svg or .pdf (extra"
    " `report`).",
)
@click.pass_context
def verify(ctx: click.Context, /, pack: Path, **options: Any) -> None:
    """Judge an implementation against a pack of conformance vectors.

    One of --runtime, --backend, --results, --command and --harness names it. PACK may be a suite or
    a config only with --metamorphic, which needs no expected outputs. All but results run in their
    own process: a crash, a hang or garbage is a verdict on that case, and the run continues. The
    exit code is 1 if a case is silently wrong, refused, crashed, timed out or missing and is
    neither a known failure nor allowed; it is 5 if no case fails but fewer than --min-cases were
    answered. If a pack has invalid cases that must be refused, valid cases of the same operators
    run as well: if those fail, a refusal shows nothing, and the exit code is 5.

    \b
    rnncli verify vectors/core --runtime onnxruntime --require 'layout=0,dtype=float32'
    rnncli verify vectors/core --results from_device/ --junit verify.xml --html verify.html
    rnncli verify vectors/core --command './run_kernel {model} {inputs} {outputs}' --timeout 10
    rnncli verify vectors/core --harness 'python3 harness.py' -j 2
    rnncli verify vectors/core --backend numpy --compute native --profile strict
    rnncli verify core --metamorphic --runtime onnxruntime --sizes hidden_size=512,batch_size=64
    """
    if options.pop("metamorphic"):
        ctx.exit(verify_relations(pack, options))
    refuse_relation_options(options)
    from rnncli import commands
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import check_reports, show_report, write_reports

    files = {name: options.pop(name) for name in ("junit", "markdown", "html", "plot")}
    check_reports(files)
    as_json = options.pop("as_json")
    with progress_bar(unit="cases") as progress:
        report = commands.verify(pack, **options, progress=progress.reach)
    show_report(report, as_json=as_json)
    write_reports(report, files)
    ctx.exit(report.exit_code)
