"""`rnncli verify`, `relate`, `stream`, `diagnose`, `smoke`, `claims`, `probe`, `report`, `site`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.api import commands
from rnncli.cli.command import command, hold
from rnncli.cli.options import (
    FILE,
    MODEL,
    PACK,
    RUNS,
    SHARED,
    Name,
    Written,
    printed,
    refuse_models,
    row,
)
from rnncli.errors import InvalidRequest
from rnncli.limits import OF_SMOKE, Limits
from rnncli.options import flag_of
from rnncli.talk.terminal import say
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.judging.report import VerificationReport

FILES: Mapping[str, Any] = {
    "junit": row(type=FILE, metavar="FILE", help="Also write JUnit XML."),
    "markdown": row(type=FILE, metavar="FILE", help="Also write Markdown."),
    "html": row(
        type=FILE,
        metavar="FILE",
        help="Also write one self-contained HTML page (extra `report`).",
    ),
    "plot": row(
        type=FILE,
        metavar="FILE",
        help="Also draw the margin of every case and errors over time, to FILE.png, .svg or .pdf"
        " (extra `report`).",
    ),
    "save_xfails": row(
        type=FILE,
        metavar="FILE",
        help="Also write every failure, with its cause, as a known one that --xfails FILE reads.",
    ),
}
VERBOSE = row(
    "-v",
    is_flag=True,
    help="Print every failing case by itself, and the counts by feature.",
)
REPORTS: Mapping[str, Any] = {
    name: row(*each.flags, **each.settings, section="Reports")
    for name, each in {"as_json": SHARED["as_json"], "verbose": VERBOSE, **FILES}.items()
}
# Options of the release before.
OF_RELATE = dict.fromkeys(["--metamorphic", "--relation", "--sizes"], "`rnncli relate PACK ...`")
SUBJECTS = ("runtime", "backend", "command", "harness")
# Exit codes of a run, from the best to the worst.
WORST_LAST = (0, 5, 1)


def reported(
    judge: Callable[..., VerificationReport],
    *what: Any,
    as_json: bool,
    verbose: bool,
    note: Callable[[VerificationReport], str] = lambda _: "",
    **asked: Any,
) -> int:
    """Call a function that judges, with its progress shown; print and write its report.

    What there is to note is said before the report, whose last line is its summary.
    """
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import check_reports, print_cases, show_report, write_reports
    from rnncli.verifying.verification import InterruptedRun

    files = {name: asked.pop(name) for name in FILES}
    check_reports(files)
    try:
        with progress_bar(unit="cases") as progress:
            report = judge(*what, **asked, progress=progress.reach)
    except InterruptedRun as stopped:
        if as_json:  # a run without a summary is one that has not ended
            print_cases(stopped.report)
        raise
    if said := note(report):
        say(said)
    show_report(report, as_json=as_json, verbose=verbose)
    write_reports(report, files)
    return report.exit_code


@command(asks=commands.verify, elsewhere=OF_RELATE, pack=PACK, **REPORTS)
def verify(pack: Path, **asked: Any) -> int:
    """Judge an implementation against a pack of conformance vectors.

    PACK is a folder, or the name of an installed pack, such as core (`rnncli list`). What is judged
    runs in a process of its own: a crash, a hang or garbage is a verdict on that case. The exit
    code is 1 if a case is silently wrong, refused, crashed, timed out or missing, and is neither a
    known failure nor allowed; it is 5 if none fails but fewer than --min-cases were answered, or if
    no refusal shows anything, since valid cases fail as well.

    \b
    rnncli verify core --runtime onnxruntime --require 'layout=0,dtype=float32'
    rnncli verify core --results from_device/ --junit verify.xml --html verify.html
    rnncli verify core --command './run_kernel {model} {inputs} {outputs}' --timeout 10
    rnncli verify core --harness 'python3 harness.py' -j 2
    rnncli verify core --runtime onnxruntime --claims claim.yaml
    rnncli verify core --backend numpy --compute native --profile strict
    """
    return reported(commands.verify, pack, **asked)


@command(
    asks=commands.relate,
    target=row(type=click.Path(), metavar="PACK|SUITE|CONFIG", callback=refuse_models),
    **REPORTS,
)
def relate(target: str, **asked: Any) -> int:
    """Judge an implementation without expected outputs, by how its own are related.

    Each case is run as it is and transformed: in another order, in parts, larger, later. The
    outputs must be related whatever the right ones are, so sizes may be those of real models. The
    target is a pack, a suite or a config, by path or name. Each relation of a case is a case of the
    report, CASE::RELATION, with the verdicts, options, reports and exit codes of `rnncli verify`;
    one that does not apply, or that would show nothing, is skipped.

    \b
    rnncli relate core --runtime onnxruntime --sizes hidden_size=512,batch_size=64
    rnncli relate core --backend numba --relation split --relation tiles --html relate.html
    rnncli relate lstm.yaml --command './run_kernel {model} {inputs} {outputs}'
    """
    return reported(commands.relate, target, **asked)


def _or_the_model_itself(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is judged: our own evaluation of the model, unless an option names another."""
    return told if any(told[kind] for kind in SUBJECTS) else {**told, "backend": "numpy"}


@command(
    asks=commands.stream,
    model=MODEL,
    subject=row(
        only=(*SUBJECTS, "runtime_option", "compute", "host"), complete=_or_the_model_itself
    ),
    cases=row(only=("select", "shard", "shuffle")),
    **REPORTS,
)
def stream(model: str, **asked: Any) -> int:
    """Judge a whole model, or its runtime, on a stream: states, steps and batches.

    A model is called on a stream: on all steps at once if its axis of time is free, otherwise call
    after call, with each state fed back. The stream is then run in other ways: in chunks, each
    sequence alone, again in one session, after other shapes, with other states. Outputs may
    differ by bounds measured on the model in float64; not at all where calls are repeated.

    Inputs are the given ones, those of the test data sets beside the model, or generated. An array
    with one more axis than its input, and test data sets, are successive calls; if time is free,
    they are joined. States begin as given, or as zeros.

    Without an option that names what is judged, it is the model. Each relation is a case of the
    report, MODEL::RELATION, as in `rnncli verify`; one that does not apply is skipped.

    \b
    rnncli stream model.onnx
    rnncli stream denoiser.onnx --runtime onnxruntime --html stream.html
    rnncli stream vad.onnx --runtime openvino --dim sequence=576 --state state=stateN
    """
    hold(asked["subject"].limits, model, asked["inputs_from"], asked["inputs"])

    def saved(report: VerificationReport) -> str:
        save = asked["save"]
        if not save or any(case.details.narrowed for case in report.cases):
            return ""
        return f"{save}: nothing was saved, since no relation differs"

    return reported(commands.stream, model, note=saved, **asked)


@command(
    asks=commands.diagnose,
    pack=PACK,
    cases=row(only=("select", "require", "device")),
    verbose=row("-v", is_flag=True, help="Print all causes, and their edits of kernels."),
)
def diagnose(pack: Path, *, as_json: bool = False, verbose: bool = False, **asked: Any) -> int:
    """Name the bug that explains an implementation's wrong outputs.

    Every case that differs is compared with other readings of the specification, every known bug
    (`rnncli mutants` lists them) and pairs of those; passing cases rule hypotheses out. The
    smallest set that explains the failures of a cell by value is the set of causes. For the
    remaining failures, the report says that no known bug explains them, what they have in common (a
    pattern, not a proof), and which hypotheses fit some of them but are contradicted by other
    cases, all with --json. If only a later call of a session is wrong, it names the state kept from
    the call before, if that explains the outputs. No bug is sought for cases with an output that is
    missing or has another shape or dtype, or whose only fault is an output that was not requested;
    they are listed separately. The exit code is that of `rnncli verify`: 1 if a case fails, 5 if
    none does, but none was answered. `rnncli verify --diagnose` adds the same causes to its
    verdicts.

    \b
    rnncli diagnose core --results from_device/
    rnncli diagnose core --runtime openvino --json
    """
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import show_diagnosis

    with progress_bar(unit="cases") as progress:
        report = commands.diagnose(pack, **asked, progress=progress.reach)
    show_diagnosis(report, as_json=as_json, verbose=verbose)
    return report.exit_code


@command(
    elsewhere={"--command": "`rnncli verify core -k plain --command ...`; a harness stays up"},
    harness=row(metavar="'PROG ARGS'"),
    limits=row(only=["timeout"]),
)
def smoke(*, harness: str, limits: Limits = OF_SMOKE, as_json: bool = False) -> int:
    """Check in a second whether a harness is wired right.

    The program is started and runs a tiny RNN, GRU and LSTM of ONNX, each called twice; it may
    refuse two of the three. If it refuses all, it is sent those of WebNN, then of OpenVINO, then
    linear attention and convolution. It must refuse a case whose activation or update rule does not
    exist, and end with exit code 0 after stop. The exit code is 0 if all is well, 1 if a check
    fails, 2 if the program does not start or does not speak the protocol, and 5 if it refuses all
    cases.

    \b
    rnncli smoke --harness ./harness
    rnncli smoke --harness 'docker run -i --rm image' --timeout 60

    Options:
        harness: The program, as for `rnncli verify --harness`.
    """
    from rnncli.reports.tables import print_records
    from rnncli.verifying.smoke import conclusion_of, exit_code_of, smoke_checks

    checks = smoke_checks(harness, limits)
    records = [{"sent": c.name, "result": str(c.result), "sentence": c.sentence} for c in checks]
    print_records(("sent", "result", "what it did"), records, as_json=as_json)
    say(f"{harness}: {conclusion_of(checks)}")
    return exit_code_of(checks)


@command(
    pack=PACK,
    runs=row("--from", multiple=True, type=click.Path(path_type=Path), metavar="RUN.jsonl"),
    output=printed("the claim"),
)
def claims(pack: Path, *, runs: tuple[Path, ...], output: str = "") -> None:
    """Write what an implementation claims, from a run, for `rnncli verify --claims`.

    The claim covers the cases that the run judged right; its requirements leave out what was
    refused, wrong or skipped. Right cases that no requirement separates from wrong ones are left
    out, too, and named. The run must be one of the whole pack, by its own tolerances, and conform
    to the claim; otherwise nothing is written. A claim is short YAML for people to read: the more
    it requires of a case, the less it claims, and `cases` is the number of cases it covers.

    \b
    rnncli verify core --runtime onnxruntime --json > run.jsonl
    rnncli claims core --from run.jsonl -o claim.yaml
    rnncli verify core --runtime onnxruntime --claims claim.yaml

    Options:
        runs: Lines that `rnncli verify PACK --json` printed for the whole pack; several times for
            the shards of a run.
    """
    from rnncli.files.atomic import write_text
    from rnncli.files.seals import YAML
    from rnncli.reports.result_files import read_results, whole_runs
    from rnncli.reports.verification import skips
    from rnncli.verifying.claims import claim_of
    from rnncli.verifying.verification import whole_pack

    opened = whole_pack(pack)
    reports = [*whole_runs(each for path in runs for each in read_results(path, opened))]
    if len(reports) > 1:
        raise InvalidRequest(f"a claim is written from one run, and there are {len(reports)}")
    found = claim_of(reports[0], opened)
    if output:
        write_text(Path(output), found.claim.text, YAML)
    else:
        click.echo(found.claim.text, nl=False)
    for sentence in (*skips(found.claimed), *found.sentences, found.claimed.conformance):
        say(sentence)


@command(
    asks=commands.probe,
    operators=row(
        type=Name("operator", "rnncli.judging.device:FAMILIES", is_ours=True),
        nargs=-1,
        metavar="[OPERATOR]...",
    ),
    subject=row(only=("runtime", "backend", "command", "harness", "runtime_option", "compute")),
    output=printed("the device"),
)
def probe(operators: tuple[str, ...] = (), *, output: str = "", **asked: Any) -> None:
    """Write what an implementation takes, from what it refuses, for `--device`.

    OPERATOR is a name without version, such as LSTM or webnn.gru; without any, RNN, GRU and LSTM
    are asked. A case is sought that the implementation takes. Then one setting after the other is
    changed in it: version, element type, place of the weights, attributes, functions, inputs, sets
    of outputs, a second call, and each size up to 1024. What is refused becomes the simplest
    requirement that fits all answers, with what was refused in a comment. At the end, several
    settings are changed at once; what is then refused is told, since no requirement says it.

    Only refusals count, as in `rnncli verify`. Outputs are not judged: an implementation that
    computes nonsense takes everything. A crash or a timeout limits nothing; it is told. The file is
    a beginning: read it and change it. An interrupt leaves what was answered before it; a comment
    says what was not asked. The exit code is 5 if no case is taken.

    \b
    rnncli probe LSTM GRU --runtime openvino -o openvino.yaml
    rnncli probe --harness ./harness --require batch_size=1 -o npu.yaml
    rnncli generate core --device npu.yaml
    """
    from rnncli.files.atomic import write_text
    from rnncli.files.seals import YAML
    from rnncli.reports.progress import progress_bar
    from rnncli.verifying.questions import InterruptedProbe

    interrupt = None
    try:
        with progress_bar(unit="questions") as progress:
            found = commands.probe(operators, **asked, progress=progress.reach)
    except InterruptedProbe as stopped:
        found, interrupt = stopped.found, stopped
    if output:
        write_text(Path(output), found.text, YAML)
    else:
        click.echo(found.text, nl=False)
    for sentence in found.sentences:
        say(sentence)
    if interrupt:
        raise interrupt


@command(
    runs=RUNS,
    since=row("--since", multiple=True, type=click.Path(path_type=Path), metavar="RUN.jsonl"),
    pack=row("--pack", type=PACK.settings["type"], metavar="PACK"),
    as_json=SHARED["as_json"],
    verbose=VERBOSE,
    **FILES,
)
def report(
    runs: tuple[Path, ...],
    *,
    since: tuple[Path, ...] = (),
    pack: Path | None = None,
    as_json: bool = False,
    verbose: bool = False,
    **files: str | None,
) -> int:
    """Report runs again from the lines that `rnncli verify --json` printed.

    It prints what `rnncli verify` printed, and the exit code is that of the run, or of the worst of
    several: 1 if a case fails, 5 if too few were answered. A file holds one run or several, one
    after the other. The shards of a run are joined, and all must be there; a run that is
    incomplete, or contradicts itself in a verdict or a count, is an error. A plot shows no errors
    over time, since the lines do not have them. Files are written for one run; `rnncli site` makes
    pages of several.

    Lines are text that anybody can write: they prove nothing of an implementation unless you ran
    `rnncli verify` yourself. With --pack they must at least be of that pack: the cases, expected
    values and tolerances that they tell.

    With --since it reports cases broken, fixed, failing by another bug or no longer judged, and
    margins that changed by a factor of 2 or more. The exit code is 1 if a case broke, 5 if one is
    no longer judged or neither run answered any.

    \b
    rnncli verify core --runtime onnxruntime --json > run.jsonl
    rnncli report run.jsonl --html run.html --junit run.xml
    rnncli report shard_1.jsonl shard_2.jsonl --markdown summary.md
    rnncli report vendor.jsonl --pack core
    rnncli report --since main.jsonl pull_request.jsonl --markdown comment.md

    Options:
        since: Report what changed since this earlier run (docs/howto/review.md); several times for
            the shards of one.
        pack: Refuse lines that are not of this pack, or have not each of its cases once.
    """
    from rnncli.reports.result_files import read_results, whole_runs
    from rnncli.reports.verification import check_reports, show_report, write_reports
    from rnncli.verifying.recorded_runs import provenance, require_every_case
    from rnncli.verifying.verification import whole_pack

    check_reports(files)
    opened = whole_pack(pack) if pack else None
    earlier, reports = (
        [*whole_runs(each for path in paths for each in read_results(path, opened))]
        for paths in (since, runs)
    )
    if opened:
        for each in (*earlier, *reports):
            require_every_case(each, opened)
    if since:
        return _changes(earlier, reports, files, as_json=as_json, verbose=verbose)
    written = [name for name, path in files.items() if path]
    if written and len(reports) > 1:
        raise InvalidRequest(
            f"{flag_of(written[0])} is written for one run, and there are {len(reports)};"
            " `rnncli site` makes pages of several"
        )
    for each in reports:
        say(provenance(each, str(pack or "")))
        show_report(each, as_json=as_json, verbose=verbose)
        write_reports(each, files)
    return max((each.exit_code for each in reports), key=WORST_LAST.index)


def _changes(
    earlier: Sequence[VerificationReport],
    later: Sequence[VerificationReport],
    files: Mapping[str, str | None],
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    """Print and write what changed between two runs."""
    from rnncli.reports.changes import WRITERS, RunChanges, show_changes
    from rnncli.reports.verification import write_reports

    if others := [name for name, path in files.items() if path and name not in WRITERS]:
        raise InvalidRequest(f"{flag_of(others[0])} is written of a run, not of what changed")
    if max(len(earlier), len(later)) > 1:
        raise InvalidRequest(
            f"--since compares one run with one, and there are {len(earlier)} and {len(later)}"
        )
    changes = RunChanges(earlier[0], later[0])
    show_changes(changes, as_json=as_json, verbose=verbose)
    write_reports(changes, files, WRITERS)
    return changes.exit_code


@command(
    results=row(**{**RUNS.settings, "metavar": "RESULTS.jsonl..."}),
    output=row("-o", type=Written(path_type=Path)),
    markdown=row(type=Written(path_type=Path), metavar="FILE"),
)
def site(
    results: tuple[Path, ...], *, output: Path = Path("site"), markdown: Path | None = None
) -> None:
    """Write a static site of runtimes by features from results of `rnncli verify --json`.

    A file holds one run or several, one after the other; several runs of one runtime become its
    history, ordered by date. The shards of a run are joined, and all must be there. There is a page
    for each runtime (its versions over time), for each feature (the bug it finds, and which
    runtimes have it), for each case, and for the newest run of each runtime; badges are as
    shields.io reads them. The site fetches nothing and works from a folder (extra `report`).

    \b
    rnncli verify core --runtime onnxruntime --json > onnxruntime.jsonl
    rnncli verify core --runtime openvino --json > openvino.jsonl
    rnncli site onnxruntime.jsonl openvino.jsonl -o site

    Options:
        output: Folder of the site: new, empty, or an older site, which is replaced.
        markdown: Also write the tables of packs and of features by runtimes as Markdown.
    """
    from rnncli.files.atomic import write_text
    from rnncli.files.seals import MARKUP
    from rnncli.reports.pages import check_extra
    from rnncli.reports.result_files import read_results
    from rnncli.reports.site import as_markdown, results_of, write_site

    check_extra("a site")
    packs = results_of(report for path in results for report in read_results(path))
    pages = write_site(output, packs)
    if markdown is not None:
        write_text(markdown, as_markdown(packs), MARKUP)
    runtimes = sum(len(pack.runtimes) for pack in packs)
    say(f"{output}: {counted(pages, 'page')} on {counted(runtimes, 'runtime')}")
