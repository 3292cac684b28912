"""`rnncli stream`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.api import commands
from rnncli.cli.command import command, hold
from rnncli.cli.options import MODEL, row
from rnncli.cli.reporting import REPORTS, reported

if TYPE_CHECKING:
    from rnncli.judging.report import VerificationReport

SUBJECTS = ("runtime", "backend", "command", "harness")


def _or_the_model_itself(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is judged: our own evaluation of the model, unless an option names another."""
    is_named = any(told[kind] for kind in SUBJECTS)
    return told if is_named else {**told, "backend": "numpy"}


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
    hold(asked["subject"].limits, model, asked["inputs_from"], asked["inputs"])

    def saved(report: VerificationReport) -> str:
        save = asked["save"]
        if not save or any(case.details.narrowed for case in report.cases):
            return ""
        return f"{save}: nothing was saved, since no relation differs"

    return reported(commands.stream, model, note=saved, **asked).exit_code
