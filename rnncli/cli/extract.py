"""`rnncli extract`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command, Written
from rnncli.cli.options import (
    TARGET,
    ByteSize,
    Name,
    from_option,
    input_options,
    json_option,
    layout_option,
    steps_option,
    within_limits,
)
from rnncli.generating import MOST_BYTES, MOST_CASES
from rnncli.talk.terminal import say

if TYPE_CHECKING:
    from rnncli.generating.extraction import Captures, Extraction, ExtractionPlan
    from rnncli.models.observation import Occurrence
    from rnncli.packs.manifest import Manifest
    from rnncli.running.request import ListedTarget
    from rnncli.verifying.exercise import Exercise

# The size limit of a protobuf message.
LARGEST = 2_000_000_000


@click.command(cls=Command)
@click.argument("model", type=TARGET, required=False, default="")
@from_option("models")
@click.option(
    "-o",
    "--output",
    type=Written(path_type=Path),
    required=True,
    metavar="DIR",
    help="The folder of the pack: new, empty, or an earlier extraction of a model of that name,"
    " which is replaced. Of models that are listed, each has a folder of its own in it.",
)
@input_options
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME_OR_PATTERN",
    help="Only nodes with this name, or at this place as `rnncli inspect` prints it; * stands for"
    " any characters, ? for one.",
)
@click.option(
    "--max-cases",
    type=click.IntRange(1),
    default=MOST_CASES,
    show_default=True,
    help="Largest number of cases; every node's first execution comes before any second one.",
)
@click.option(
    "--max-bytes",
    type=ByteSize(LARGEST),
    default=f"{MOST_BYTES >> 20}M",
    show_default=True,
    metavar="SIZE",
    help="Largest size of a case: inputs, weights and outputs together; larger cases are omitted.",
)
@click.option(
    "--golden",
    type=click.Choice(["float64", "certified"]),
    default="float64",
    show_default=True,
    help="Expected values computed in float64 and rounded once, or proved (extra `certified`).",
)
@click.option(
    "--profile",
    type=Name("name", "rnncli.numerics.profiles:PROFILES"),
    default="standard",
    show_default=True,
    help="Profile of the tolerances: which roundings of an implementation they allow for.",
)
@click.option(
    "--inner",
    is_flag=True,
    help="Only the operator inside a quantised unit, on real numbers; by default the unit, with"
    " DequantizeLinear and QuantizeLinear, and golden levels that are proved.",
)
@layout_option
@steps_option
@within_limits
@json_option
def extract(model: str, from_file: list[Any] | None, **options: Any) -> int:
    """Write the recurrent nodes of a model, as they run in it, as a pack.

    MODEL is a model file, or a folder or archive with one, or model.xml of OpenVINO, which then
    runs it (extra `runtimes`). It runs once, on the given inputs, those
    of its test data sets, or generated ones, of 16 steps and 3 sequences where these are free. Each
    execution of a recurrent node, including those in
    If, Loop, Scan and functions, becomes a case with the node's weights and activations, expected
    outputs and the tolerance of each element. Weights stored in the model are stored in the case's
    model. Expected outputs follow from the values that reached the node here; they do not test the
    nodes before it. Of an execution in which errors grow until they may be anything, the first
    steps become the case. A node between DequantizeLinear and QuantizeLinear becomes a case with
    those, whose levels are proved (extra `certified`).

    \b
    rnncli extract model.onnx -o pack
    rnncli extract model.onnx -o pack --inputs real.npz --node '*/lstm_1' --max-cases 4
    rnncli extract --from models.yaml -o packs/
    """
    from rnncli.errors import RnncliError, explain, worst_code
    from rnncli.reports.generated import show_packs
    from rnncli.running.target import short_names
    from rnncli.running.tasks import all_targets

    if model and from_file is not None:
        raise click.UsageError("MODEL and --from are both given")
    listed = all_targets([model] if model else (), from_file or ())
    root, as_json = options.pop("output"), options.pop("as_json")
    folders = [root] if model else [root / n for n in short_names([e.target for e in listed])]
    if not model:
        root.mkdir(parents=True, exist_ok=True)
    made, codes = [], set()
    for each, folder in zip(listed, folders, strict=True):
        try:
            made.append((folder, _extract(each, folder, dict(options))))
        except RnncliError as error:
            if model:
                raise
            sentence, code = explain(error)  # the next one is tried all the same
            click.echo(sentence, err=True)
            codes.add(code)
    if made:
        show_packs(made, as_json=as_json)
    return worst_code(codes)


def _extract(listed: ListedTarget, folder: Path, options: dict[str, Any]) -> Manifest:
    from rnncli.generating.extraction import ExtractionPlan, require
    from rnncli.running.target import short_names

    plan = ExtractionPlan(
        short_names([listed.target])[0],
        **{name: options.pop(name) for name in ("golden", "profile")},
        layout=options.pop("format"),
        steps=options.pop("steps"),
    )
    require(plan, folder)
    captures, exercise = _capture(listed, options)
    report = _write(plan, captures, folder)
    missing = [f"not exercised: {each}" for each in exercise.missing()]
    told = (*report.left_out, *report.shortened, *report.replaced)
    for message in (*captures.warnings(), *told, *missing):
        say(f"warning: {message}")
    return report.manifest


def _capture(listed: ListedTarget, options: dict[str, Any]) -> tuple[Captures, Exercise]:
    """Run the model and record its recurrent nodes, and what they put to the test."""
    from rnncli.cases.case import Case
    from rnncli.errors import InvalidRequest
    from rnncli.generating.extraction import Captures
    from rnncli.judging.tolerances.tolerance import EXACT
    from rnncli.limits.deadline import watched
    from rnncli.models.ir_model import read_ir
    from rnncli.running.execution import run_model
    from rnncli.running.request import Request
    from rnncli.running.target import is_ir, load_target
    from rnncli.verifying.exercise import Exercise

    target = listed.target
    ir = read_ir(Path(target)) if is_ir(target) else None
    loaded = load_target(target) if ir is None else ir.recurrent
    if isinstance(loaded, Case):
        raise InvalidRequest(f"{target}: is a config of one operator; `extract` is for models")
    limits = {name: options.pop(name) for name in ("max_cases", "max_bytes")}
    unevaluated = None if ir is None else ir.unevaluated
    units = not options.pop("inner")
    captures = Captures(
        loaded, options.pop("nodes"), **limits, unevaluated=unevaluated, units=units
    )
    for name in ("input_files", "shapes"):
        options[name] = dict(options[name])
    exercise = Exercise(loaded)

    def observe(occurrence: Occurrence) -> None:
        captures.add(occurrence)
        exercise.add(occurrence)

    request = listed.asked(Request(tolerance=EXACT, judged=True, **options))
    with watched(request.limits.timeout, target):
        if ir is None:
            for _ in run_model(loaded, request, observe):
                pass  # the model's own outputs are not needed
        else:
            from rnncli.running.ir_execution import run_ir

            run_ir(ir, request, captures.add)
    return captures, exercise


def _write(plan: ExtractionPlan, captures: Captures, folder: Path) -> Extraction:
    from rnncli.generating.extraction import extract as write_pack
    from rnncli.reports.progress import progress_bar

    chosen = captures.chosen()
    with progress_bar(len(chosen), "cases") as progress:
        return write_pack(plan, chosen, folder, progress.advance)
