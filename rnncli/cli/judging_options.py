"""Options for the implementation to judge and the tolerances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.options import (
    ByteSize,
    Name,
    Pair,
    backend_names,
    compute_option,
    selection_option,
    weights_option,
    with_options,
    worker_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


# Option -> the tolerance it replaces.
INSTEAD = {
    "--atol": "Absolute tolerance",
    "--rtol": "Tolerance relative to the expected value",
    "--max-ulp": "Tolerance in units in the last place",
}


def _bound(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, float] | None:
    """Read `1e-5` and `Y:1e-5` as arguments of the commands' functions."""
    if not texts:
        return None
    from rnncli.judging.tolerances.tolerance import Bound

    bound = Bound.parse(texts)
    return {"": bound.default, **bound.by_output}


def _runtimes() -> Iterable[str]:
    from rnncli.subjects.table import known_subjects

    return known_subjects()


def _profiles() -> Iterable[str]:
    from rnncli.profiles import PROFILES

    return PROFILES


def subject_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the implementation and its limits."""
    options = (
        click.option(
            "--runtime",
            type=Name("name", _runtimes),
            help="Judge a runtime: onnxruntime, openvino, onnx-reference, tract, torch, opencv,"
            " iree, emx-onnx-cgen, mnn, or one that an installed package adds; `rnncli runtimes`"
            " lists them.",
        ),
        click.option(
            "--backend",
            type=Name("name", backend_names),
            help="Judge a backend of rnncli; `rnncli backends` lists them.",
        ),
        click.option(
            "--results",
            metavar="PATH",
            help="Judge outputs computed elsewhere: a folder laid out like the pack, or one"
            " .npz or .h5 with ID/outputs/NAME, and ID/calls/1/outputs/NAME for a second call. A"
            " case that the device refused has a file refused.txt (or a tensor ID/refused); a case"
            " without either is missing.",
        ),
        click.option(
            "--command",
            metavar="'PROG {model} {inputs} {outputs}'",
            help="Judge a program. It is started, without a shell, for each data set of each case."
            " {model} becomes the path of model.onnx; {inputs} of a test_data_set folder"
            " ({inputs.npz} or {inputs.h5}: of one file); {outputs} of an empty folder for"
            " output_K.pb ({outputs.npz} or {outputs.h5}: of one file to write); {case} of"
            " case.json, which has the operator, its attributes and sizes; {id} becomes the id of"
            " the case, and {here} the folder that rnncli was started in. The working folder is new"
            " and empty, and RNNCLI_CASE is the id. Exit code 3 refuses the case; any other but 0"
            " is a crash, except that 126 and 127 end the run.",
        ),
        click.option(
            "--harness",
            metavar="'PROG ARGS'",
            help="Judge a program that answers many cases. It is started once, without a shell, in"
            " the folder that rnncli was started in, and speaks a protocol of JSON lines on its"
            " standard input and output: start, run, stop (`rnncli schema harness`). It answers"
            " each case with outputs, a refusal or an error. `rnncli smoke` says whether it is"
            " wired right.",
        ),
        click.option(
            "--runtime-option",
            type=Pair("NAME=VALUE"),
            multiple=True,
            callback=lambda _, __, pairs: dict(pairs) or None,
            help="Pass a setting to the runtime, spelled as the runtime spells it.",
        ),
        compute_option,
        click.option(
            "--threads",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="Threads that a runtime or backend may use.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(0, min_open=True),
            default=60.0,
            show_default=True,
            help="Seconds after which the subject is killed on one case.",
        ),
        click.option(
            "--max-memory",
            type=ByteSize(),
            metavar="SIZE",
            help="Memory beyond which the subject is killed, such as 512M or 2G.",
        ),
        weights_option,
    )
    return with_options(options, function)


def instead_option(name: str) -> Callable[..., Any]:
    """Return the option for a tolerance that replaces the pack's."""
    tolerance = f"{INSTEAD[name]}, instead of the pack's, for all outputs or for output NAME."
    return click.option(
        name, multiple=True, metavar="[NAME:]NUMBER", callback=_bound, help=tolerance
    )


def rule_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --profile, --atol, --rtol and --max-ulp."""
    options = (
        click.option(
            "--profile",
            type=Name("name", _profiles),
            default="",
            help="Judge by the tolerances of another profile than the pack's.",
        ),
        *map(instead_option, INSTEAD),
    )
    return with_options(options, function)


def judging_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for implementation, tolerances, cases and workers."""
    options = (
        subject_options,
        rule_options,
        selection_option,
        click.option(
            "--require",
            multiple=True,
            metavar="EXPR[,...]",
            help="Skip the cases that need more than the subject can do. A comma is an `and`, a"
            " bar an `or`: --require 'opset<=14' --require 'dtype=float32|float16'.",
        ),
        click.option("--trust", is_flag=True, help="Do not verify the pack's checksums first."),
        worker_options,
    )
    return with_options(options, function)
