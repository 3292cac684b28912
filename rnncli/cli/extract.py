"""`rnncli extract`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.api import commands
from rnncli.cli.command import command, hold
from rnncli.cli.options import MODEL, ByteSize, Name, Written, more_targets, row
from rnncli.generating import MOST_BYTES, MOST_CASES
from rnncli.limits import UNLIMITED, Limits
from rnncli.models.evaluation_settings import HOSTS
from rnncli.talk.terminal import say, say_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.generating.extraction import ExtractionPlan
    from rnncli.models.observation import Occurrence
    from rnncli.packs.manifest import Manifest
    from rnncli.running.request import ListedTarget, Request

# The size limit of a protobuf message.
LARGEST = 2_000_000_000


@command(
    *(commands.generate, commands.stream),
    model=MODEL,
    from_file=more_targets("models"),
    output=row("-o", type=Written(path_type=Path), metavar="DIR"),
    nodes=row("--node", metavar="NAME_OR_PATTERN"),
    max_cases=row(type=click.IntRange(1)),
    max_bytes=row(type=ByteSize(LARGEST), default=f"{MOST_BYTES >> 20}M", metavar="SIZE"),
    golden=row(type=click.Choice(["float64", "certified"])),
    profile=row(type=Name("name", "rnncli.numerics.profiles:PROFILES")),
    limits=row(only=["timeout", "max_memory"]),
)
def extract(
    model: str = "",
    *,
    from_file: list[Any] | None = None,
    output: Path,
    inputs: Mapping[str, str] | None = None,
    inputs_from: str = "",
    seed: int | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
    data_set: int | None = None,
    nodes: tuple[str, ...] = (),
    max_cases: int = MOST_CASES,
    max_bytes: int = MOST_BYTES,
    golden: str = "float64",
    profile: str = "standard",
    inner: bool = False,
    format: str = "onnx",  # noqa: A002 -- the name of the option
    steps: bool = False,
    host: str = HOSTS[0],
    limits: Limits = UNLIMITED,
    as_json: bool = False,
) -> int:
    """Write the recurrent nodes of a model, as they run in it, as a pack.

    MODEL is a model file, or a folder or archive with one, or model.xml of OpenVINO, which then
    runs it (extra `runtimes`), or model.tflite, whose LSTMs are taken (extra `tflite`);
    LiteRT runs what is before them (extra `litert`), unless -i gives what they read. It runs once,
    on the given inputs, those of its test data sets, or generated ones, of 16 steps and 3 sequences
    where these are free. Each execution of a recurrent node, including those in If, Loop, Scan and
    functions, becomes a case with the node's weights and activations, expected outputs and the
    tolerance of each element. Weights stored in the model are stored in the case's model. Expected
    outputs follow from the values that reached the node here; they do not test the nodes before it.
    If errors grow without bound during an execution, only its first steps become the case. A node
    between DequantizeLinear and QuantizeLinear becomes a case with those, whose levels are proved
    (extra `certified`).

    \b
    rnncli extract model.onnx -o pack
    rnncli extract model.onnx -o pack --inputs real.npz --node '*/lstm_1' --max-cases 4
    rnncli extract --from models.yaml -o packs/

    Options:
        output: The folder of the pack: new, empty, or an earlier extraction of a model of that
            name, which is replaced. Each model of a list gets a folder of its own in it.
        nodes: Only nodes with this name, or at this place as `rnncli inspect` prints it; * stands
            for any characters, ? for one.
        max_cases: Largest number of cases; every node's first execution comes before any second
            one.
        max_bytes: Largest size of a case: inputs, weights and outputs together; larger cases are
            omitted.
        golden: Expected values computed in float64 and rounded once, or proved (extra `certified`).
        profile: Profile of the tolerances: which roundings of an implementation they allow for.
        inner: Only the operator inside a quantised one, on real numbers; by default all of it, with
            DequantizeLinear and QuantizeLinear, and expected levels that are proved.
    """
    from rnncli.errors import RnncliError, explain, worst_code
    from rnncli.generating.extraction import ExtractionPlan
    from rnncli.judging.tolerances.tolerance import EXACT
    from rnncli.reports.inspection import show_packs
    from rnncli.running.request import Request
    from rnncli.running.target import short_names
    from rnncli.running.tasks import all_targets

    hold(limits)
    if model and from_file is not None:
        raise click.UsageError("MODEL and --from are both given")
    request = Request(
        tolerance=EXACT,
        judged=True,
        input_files=inputs or {},
        inputs_from=inputs_from,
        seed=seed,
        shapes=shapes or {},
        dims=dims or {},
        data_set=data_set,
        host=host,
        limits=limits,
    )
    chosen = {"max_cases": max_cases, "max_bytes": max_bytes, "units": not inner}
    listed = all_targets([model] if model else (), from_file or ())
    names = short_names([each.target for each in listed])
    if not model:
        output.mkdir(parents=True, exist_ok=True)
    made, codes = [], set()
    for each, name in zip(listed, names, strict=True):
        folder = output if model else output / name
        (own,) = short_names([each.target])
        plan = ExtractionPlan(own, golden=golden, profile=profile, layout=format, steps=steps)
        try:
            made.append((folder, _extract(each, folder, plan, request, nodes=nodes, chosen=chosen)))
        except RnncliError as error:
            if model:
                raise
            sentence, code = explain(error)  # the next one is tried all the same
            say_text(sentence)
            codes.add(code)
    if made:
        show_packs(made, as_json=as_json)
    return worst_code(codes)


def _extract(
    listed: ListedTarget,
    folder: Path,
    plan: ExtractionPlan,
    request: Request,
    *,
    nodes: tuple[str, ...],
    chosen: Mapping[str, Any],
) -> Manifest:
    """Run a model, record its recurrent nodes and what they put to the test; write the pack."""
    from rnncli.cases.case import Case
    from rnncli.errors import InvalidRequest
    from rnncli.generating.extraction import Captures, require
    from rnncli.generating.extraction import extract as write_pack
    from rnncli.limits import watched
    from rnncli.reports.progress import progress_bar
    from rnncli.running.execution import run_model
    from rnncli.running.native_models import read_native, run_native
    from rnncli.running.target import load_target
    from rnncli.verifying.exercise import Exercise

    require(plan, folder)
    target = listed.target
    native = read_native(target)
    loaded = native.recurrent if native else load_target(target)
    if isinstance(loaded, Case):
        raise InvalidRequest(f"{target}: is a config of one operator; `extract` is for models")
    captures = Captures(loaded, nodes, unevaluated=native.unevaluated if native else None, **chosen)
    exercise = Exercise(loaded)

    def observe(occurrence: Occurrence) -> None:
        captures.add(occurrence)
        exercise.add(occurrence)

    asked = listed.asked(request)
    with watched(asked.limits.timeout, target):
        if native:
            run_native(target, native, asked, captures.add)
        else:
            for _ in run_model(loaded, asked, observe):
                pass  # the model's own outputs are not needed

    occurrences = captures.chosen()
    with progress_bar(len(occurrences), "cases") as progress:
        report = write_pack(plan, occurrences, folder, progress.advance)
    missing = [f"not exercised: {each}" for each in exercise.missing()]
    told = (*report.left_out, *report.shortened, *report.replaced)
    for message in (*captures.warnings(), *told, *missing):
        say(f"warning: {message}")
    return report.manifest
