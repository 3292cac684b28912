"""`rnncli generate`, `release`, `list`, `lint`, `score` and `trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from rnncli.api import commands
from rnncli.cli.command import command, hold
from rnncli.cli.options import (
    A_SUITE,
    FILE,
    MEMORY,
    PACK_OR_SUITE,
    SUITE,
    Name,
    Written,
    refuse_models,
    row,
)
from rnncli.jobs.workers import HERE, Workers
from rnncli.judging.selected import Selected
from rnncli.limits import UNLIMITED, Limits
from rnncli.packs.layouts import LAYOUTS, SINGLE_FILES
from rnncli.reports.tables import print_json_line, print_records, print_table
from rnncli.talk.terminal import say
from rnncli.talk.words import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

ARCHIVE = ("archive", "layout", "cases", "bytes", "sha256")
# Cases beyond which a pack of a folder for each is slow to copy.
MANY_CASES = 1000
STATEMENTS = "rnncli.verifying.tracing.statements"


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
    from rnncli.reports.inspection import show_generation
    from rnncli.reports.progress import progress_bar

    hold(limits)
    with progress_bar(unit="cases") as progress:
        report = commands.generate(suite, **asked, progress=progress.reach)
    traceback = click.get_current_context().find_root().meta.get("traceback", False)
    show_generation(report, is_check=asked["check"], as_json=as_json, traceback=traceback)
    if report.manifest and report.cases > MANY_CASES and LAYOUTS[asked["format"]].files:
        files = f"{len(report.manifest.sums())} files"
        say(
            f"{report.folder} has {files}; with --format npz or h5 the tensors of all cases are one"
        )
    return report.exit_code


@command(
    folder=row(type=Written(), metavar="DIR"),
    packs=row(type=click.Path(), nargs=-1, metavar="PACK...", callback=refuse_models),
    layouts=row("--format", type=click.Choice([n for n in LAYOUTS if n not in SINGLE_FILES])),
    limits=MEMORY,
)
def release(
    folder: str,
    packs: tuple[str, ...],
    *,
    layouts: tuple[str, ...] = ("onnx", "raw", "c"),
    as_json: bool = False,
    limits: Limits = UNLIMITED,
) -> None:
    """Write archives of packs to give away, reproducible to the byte.

    DIR gets SUITE-DIGEST-LAYOUT.tar.gz of each pack in each layout, and SHA256SUMS. An archive has
    the pack, the licence, a page on how to reach a first verdict without rnncli, must-pass.tsv with
    the cases of each feature, and judge.c where cases are as raw. Equal packs give equal bytes,
    wherever and whenever. DIR is new, empty, or an earlier release, which is replaced.

    \b
    rnncli release dist core tiles
    rnncli release dist my_pack --format hex

    Options:
        layouts: Layout of an archive (docs/howto/packs.md); may be given several times.
    """
    from pathlib import Path

    from rnncli.generating.release import release as write
    from rnncli.packs.pack import open_pack

    hold(limits)
    opened = [open_pack(pack) for pack in packs]
    archives = write(opened, [*dict.fromkeys(layouts)], Path(folder))
    records = [dict(zip(ARCHIVE, archive, strict=True)) for archive in archives]
    print_records(ARCHIVE, records, as_json=as_json)


@command(Selected, suite=A_SUITE)
def list(  # noqa: A001 -- the name of the command
    suite: str = "",
    *,
    select: str = "",
    device: str = "",
    table: bool = False,
    statements: bool = False,
    as_json: bool = False,
) -> None:
    """List the suites, or the cases of a suite or pack.

    SUITE is a YAML file, the name of a suite that ships with rnncli, or the folder of a pack. Ids
    are printed one per line: operator, version, name of the case, labels of its axes. --json adds
    dtype, flags, labels, the place of the weights, and the error in a case that must be rejected;
    for a pack, the whole record in the manifest.

    \b
    rnncli list
    rnncli list core
    rnncli list pairwise -k 'lstm_14 and reverse and not float16'
    rnncli list vectors/core --json --statements

    Options:
        table: Print a table: also dtype, sizes and features of each case.
        statements: With --json: add the statements of the specifications that each case checks.
    """
    if statements and not as_json:
        raise click.UsageError("--statements needs --json")
    from rnncli.cases.suite.suite import Entry, load_suite
    from rnncli.files.described import jsonable
    from rnncli.packs.pack import installed_packs, is_pack, open_pack
    from rnncli.reports.inspection import entry_record

    if not suite:
        if select or device or statements:
            raise click.UsageError("Missing argument 'SUITE', whose cases are selected.")
        from rnncli.cases.library import find_suite, suite_names
        from rnncli.cases.yaml_reader import read_yaml

        packs = {name: len(open_pack(name).manifest.cases) for name in installed_packs()}
        suites = [
            {
                "suite": name,
                "cases": packs.get(name),
                "summary": cast("dict[str, Any]", read_yaml(find_suite(name)).plain)["summary"],
            }
            for name in suite_names()
        ]
        print_records(("suite", "cases", "what it is"), suites, as_json=as_json)
        if as_json:
            return
        say(
            "`rnncli verify SUITE ...` judges by the vectors of a suite with a number of cases,"
            " which are here; `rnncli generate SUITE` makes those of the others"
        )
        return
    cases: Sequence[Any] = (open_pack(suite) if is_pack(suite) else load_suite(suite)).select(
        select
    )
    outside = ""
    if device or statements:
        from rnncli.verifying import scoring

        cases, outside = scoring.within(device, cases, suite)
    records = [entry_record(e) if isinstance(e, Entry) else jsonable(e) for e in cases]
    if statements:
        from rnncli.verifying.tracing.tracing import trace_all

        plan = scoring.ScoringPlan(suite=suite, selection=select, device=device)
        matrix = trace_all(plan, scoring.select(plan), lambda _: None)
        found = {case.id: [*case.found] for case in matrix.cases}
        records = [{**each, "statements": found[each["id"]]} for each in records]
    if as_json:
        for record in records:
            print_json_line(record)
    elif table:
        sizes = [e.written.get("sizes", {}) if isinstance(e, Entry) else e.sizes for e in cases]
        rows = [
            (
                *(each["id"], each["dtype"]),
                " ".join(f"{name[0]}{size}" for name, size in of.items()),
                " ".join(each["flags"]),
            )
            for each, of in zip(records, sizes, strict=True)
        ]
        print_table(("case", "dtype", "sizes", "features"), rows, whole=("sizes",))
    else:
        click.echo("\n".join(each["id"] for each in records))
    if outside:
        say(outside)


@command(files=row(type=click.Path(), nargs=-1, metavar="FILE...", callback=refuse_models))
def lint(files: tuple[str, ...], *, as_json: bool = False) -> int:
    """Check YAML files; list every finding with its place.

    FILE is a config, a suite, a claim or a device, the name of one that ships with rnncli, or - for
    standard input. Every case of a suite is read, and cases that must be rejected are checked to be
    invalid. Findings are printed as FILE:LINE:COLUMN: SENTENCE; if there are any, the exit code is
    1.

    \b
    rnncli lint my_suite.yaml configs/*.yaml
    rnncli lint core --json
    """
    from rnncli.running.target import findings_of

    found = 0
    for file in files:
        for place, sentence in findings_of(file):
            found += 1
            if as_json:
                print_json_line({**place._asdict(), "finding": sentence})
            else:
                click.echo(one_line(f"{place}: {sentence}"))
    return int(found > 0)


@command(
    asks=commands.score,
    suite=PACK_OR_SUITE,
    rule=row(only=("atol", "rtol")),
    minimise=row(after="onnx"),
    verbose=row("-v"),
    matrix_file=row("--matrix", type=FILE, metavar="FILE.json", after="min_structural"),
    html_file=row("--html", type=FILE, metavar="FILE", after="matrix_file"),
)
def score(
    suite: str,
    *,
    minimise: bool = False,
    verbose: bool = False,
    matrix_file: str | None = None,
    html_file: str | None = None,
    as_json: bool = False,
    **asked: Any,
) -> int:
    """Score vectors by the bugs they catch.

    Every known bug of a cell, a wrong kernel or mutant (`rnncli mutants` lists them), runs on every
    vector. One whose outputs exceed a vector's tolerances is caught, or killed; one that no vector
    catches survives, with the reason. One that implements another reading of the specification is
    acceptable, not a bug. Every data set of a vector counts, and the mutants killed by a single
    vector are listed. (`kills` in manifests covers the first data set.) Vectors that must be
    refused are not scored. The vectors of a suite, given as a YAML file or the name of a shipped
    one, are generated in memory.

    The score counts semantic mutants, which are wrong in the equations. Structural mutants, wrong
    in the data movement of a blocked kernel, are counted separately: those that small sizes show,
    those that only sizes beyond an edge show, and those that take a second call. The report also
    lists which sizes, second calls, threads, dtypes and operators the vectors cover and which they
    do not. A score shows what is missing; it proves nothing about bugs that have no mutant.

    \b
    rnncli score core -j 2
    rnncli score vectors/core -k 'lstm and not float16' --onnx --json
    rnncli score smoke --minimise --min-score 100
    rnncli score vectors/tiles --min-structural 80
    rnncli score core --html core.html

    Options:
        verbose: Print all tables on a terminal, with every mutant that is not killed.
        minimise: List a small set of vectors that kills what all of them kill.
        matrix_file: Also write the margin of every mutant in every vector.
        html_file: Also write a page that draws the kill matrix (extra `report`).
    """
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.scores import WRITERS, show_score
    from rnncli.reports.verification import check_reports, write_reports

    files = {"matrix": matrix_file, "html": html_file}
    check_reports(files)
    with progress_bar(unit="cases") as progress:
        report = commands.score(suite, **asked, progress=progress.reach)
    show_score(report.matrix, as_json=as_json, minimise=minimise, verbose=verbose)
    write_reports(report.matrix, files, WRITERS)
    for sentence in report.shortfalls:
        say(sentence)
    return report.exit_code


@command(
    Selected,
    suite=PACK_OR_SUITE,
    statement=row(type=Name("statement", f"{STATEMENTS}:STATEMENTS")),
    others=row("--with", type=SUITE, metavar="PACK|SUITE"),
    operator=row("--op", type=Name("operator", f"{STATEMENTS}:traced_operators", is_ours=True)),
    as_page=row("--page"),
    verbose=row("-v"),
)
def trace(
    suite: str | None = None,
    statement: str | None = None,
    *,
    others: tuple[str, ...] = (),
    select: str = "",
    device: str = "",
    operator: str = "",
    missing: bool = False,
    complete: bool = False,
    verbose: bool = False,
    as_page: bool = False,
    workers: Workers = HERE,
    as_json: bool = False,
) -> int:
    """Show which statements of the specifications a pack checks, and which it does not.

    Statements are the sentences of the operators' pages, in our words; --page lists them all. A
    case checks a statement if it exercises it and would notice a violation, which is computed from
    the case: a clip that no value reaches checks nothing. STATEMENT prints all cases of one
    statement. Statements about operators without a case in the pack are omitted.

    \b
    rnncli trace vectors/core --missing
    rnncli trace vectors/core lstm.clip.bounds
    rnncli trace core --op GRU --complete
    rnncli trace core --with smoke --with pairwise --with reject --op GRU-7 --complete

    Options:
        others: Another pack or suite whose cases count as well; may be repeated.
        operator: Only statements of one operator, such as LSTM, or of one version of it, such as
            LSTM-7, checked by cases of that version.
        missing: Print only statements that are unchecked or partly checked.
        verbose: Print every statement on a terminal.
        complete: Exit with 1 if a statement is not checked, also for lack of cases that run, or
            that must be refused.
        as_page: Print all statements, in Markdown.
    """
    from rnncli.reports import traceability

    if as_page:
        if suite or others or complete or missing:
            raise click.UsageError("--page prints all statements and takes no pack")
        click.echo(traceability.page(), nl=False)
        return 0
    if suite is None:
        raise click.UsageError("Missing argument 'PACK|SUITE'.")
    from rnncli.reports.progress import progress_bar
    from rnncli.verifying import scoring
    from rnncli.verifying.tracing.statements import statement_named
    from rnncli.verifying.tracing.tracing import INCOMPLETE, joined, trace_all

    asked = statement_named(statement) if statement else None
    workers.expect("rnncli.verifying.tracing.tracing")
    suites = (suite, *others)
    plans = [
        scoring.ScoringPlan(suite=e, selection=select, device=device, workers=workers)
        for e in suites
    ]
    selected = [scoring.select(plan) for plan in plans]
    with progress_bar(sum(len(each.outputs) for each in selected), "cases") as progress:
        traced = [trace_all(*each, progress.advance) for each in zip(plans, selected, strict=True)]
    matrix = joined(dict(zip(suites, traced, strict=True)))

    covered = [matrix.of(asked)] if asked else matrix.coverage(operator)
    if asked:
        traceability.show_statement(covered[0], as_json=as_json)
    else:
        traceability.show_matrix(
            matrix, covered, as_json=as_json, only_missing=missing, verbose=verbose
        )
    for name, each in zip(suites, selected, strict=True):
        if each.outside:
            say(f"{name}: {each.outside}")
    return int(complete and any(each.state in INCOMPLETE for each in covered))
