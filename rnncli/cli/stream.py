"""`rnncli stream`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command, Written
from rnncli.cli.judging_options import (
    allow_refused_option,
    allow_unexercised_option,
    judging_options,
    report_options,
    run_gate_options,
)
from rnncli.cli.options import (
    TARGET,
    Name,
    Pair,
    dim_option,
    given_options,
    section,
    shape_option,
)

if TYPE_CHECKING:
    from rnncli.judging.report import VerificationReport
    from rnncli.judging.selected import Selected
    from rnncli.subjects.implementation import Implementation


SUBJECTS = ("runtime", "backend", "command", "harness")


def _or_the_model_itself(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is judged: our own evaluation of the model, unless an option names another."""
    is_named = any(told[kind] for kind in SUBJECTS)
    return told if is_named else {**told, "backend": "numpy"}


@click.command(cls=Command)
@click.argument("model", type=TARGET)
@judging_options(
    *("select", "shard", "shuffle"),
    subject=(*SUBJECTS, "runtime_option", "compute", "host"),
    completed=_or_the_model_itself,
    of_packs=False,
)
@click.option(
    "--relation",
    type=Name("name", "rnncli.verifying.relations.streaming:STREAM_RELATIONS"),
    multiple=True,
    help="Only this relation (docs/howto/stream.md explains each).",
)
@click.option(
    "--state",
    "states",
    type=Pair("INPUT=OUTPUT"),
    multiple=True,
    help="A state: an input, and the output of the call before that it continues; instead of the"
    " pairs that are found, which `rnncli inspect MODEL` shows.",
)
@given_options
@dim_option
@shape_option
@click.option(
    "--steps",
    type=click.IntRange(1),
    metavar="N",
    help="Only the first N steps, or N calls of a model that takes a fixed number at each.",
)
@click.option(
    "--sequences",
    type=click.IntRange(1),
    metavar="N",
    help="Only the first N sequences of the batch.",
)
@click.option(
    "--save",
    type=Written(),
    metavar="DIR",
    help="Write each relation that fails as an ONNX test case DIR/MODEL_RELATION, with a data set"
    " for each call and the outputs that it must have; `rnncli run` shows what differs.",
)
@allow_refused_option
@section("What passes", allow_unexercised_option)
@run_gate_options
@report_options
def stream(
    model: str,
    *,
    subject: Implementation,
    selected: Selected,
    states: tuple[tuple[str, str], ...],
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    input_files: tuple[tuple[str, str], ...],
    save: str | None,
    **options: Any,
) -> VerificationReport:
    """Judge the states, steps and batches of a whole model, and what runs it.

    A model is called on a stream: on all steps at once if its axis of time is free, otherwise call
    after call, with each state fed back. Then the same is asked in another way: in chunks, each
    sequence alone, again in one session, after other shapes, with other states. States and axes
    are those that `rnncli inspect MODEL` shows. Outputs may differ by bounds that are measured on
    the model in float64, or not at all where the very same calls are repeated.

    Inputs are the given ones, otherwise those of the test data sets beside the model, or otherwise
    generated. An array with one more axis than its input, and test data sets, are successive calls;
    if time is free, they are joined. States begin as given, otherwise as zeros.

    Without --runtime, --backend, --command or --harness, the model itself is judged, by the backend
    numpy. Each relation is a case of the report, MODEL::RELATION, with the verdicts, options,
    reports and exit codes of `rnncli verify`; one that does not apply is skipped, with the reason.

    Relations are again, singles, float64, sizes, steps-used, chunks-1, chunks-2, chunks-7, padding,
    states-used, states-renewed.

    \b
    rnncli stream model.onnx
    rnncli stream denoiser.onnx --runtime onnxruntime --html stream.html
    rnncli stream vad.onnx --runtime openvino --dim sequence=576 --state state=stateN
    """
    from rnncli.api import commands
    from rnncli.limits.budget import held

    files = (model, options["inputs_from"], *(file for _, file in input_files))
    with held(subject.limits.max_memory, named=filter(None, files)):
        report = commands.stream(
            model,
            subject,
            cases=selected,
            states=dict(states),
            shapes=dict(shapes),
            inputs=dict(input_files),
            save=save,
            **options,
        )
    if save and not any(case.details.narrowed for case in report.cases):
        click.echo(f"{save}: nothing was saved, since no relation differs", err=True)
    return report
