"""Options that say what is judged and by which tolerances, and what becomes of them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.options import (
    ByteSize,
    Name,
    Pair,
    backend_names,
    compute_option,
    expect_workers,
    selection_option,
    with_options,
    worker_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from rnncli.judging.rule import Rule
    from rnncli.verifying.subject_spec import SubjectSpec
    from rnncli.verifying.verification import VerificationPlan

SUBJECTS = ("runtime", "backend", "results", "command")
# What a run is repeated with, where it is not what it is without an option.
LIMITS = {"threads": 1, "timeout": 60.0, "max_memory": None}
TOLERANCES = ("atol", "rtol", "max_ulp")
# Option -> the tolerance that replaces the pack's.
INSTEAD = {
    "--atol": "Absolute tolerance",
    "--rtol": "Tolerance relative to the expected value",
    "--max-ulp": "Tolerance in units in the last place",
}


def _runtimes() -> Iterable[str]:
    from rnncli.subjects.table import known_subjects

    return known_subjects()


def _profiles() -> Iterable[str]:
    from rnncli.profiles import PROFILES

    return PROFILES


def subject_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what names the implementation, and the limits it runs under."""
    options = (
        click.option(
            "--runtime",
            type=Name("name", _runtimes),
            help="Judge a runtime: onnxruntime, openvino, onnx-reference, tract, or one that an"
            " installed package adds; `rnncli runtimes` lists them.",
        ),
        click.option(
            "--backend",
            type=Name("name", backend_names),
            help="Judge a backend of rnncli; `rnncli backends` lists them.",
        ),
        click.option(
            "--results",
            metavar="PATH",
            help="Judge outputs that were made elsewhere: a folder laid out like the pack, or one"
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
            "--runtime-option",
            "settings",
            type=Pair("NAME=VALUE"),
            multiple=True,
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
            help="Seconds that one case may take before it is killed.",
        ),
        click.option(
            "--max-memory",
            type=ByteSize(),
            metavar="SIZE",
            help="Memory that the subject may take before it is killed, as in 512M or 2G.",
        ),
    )
    return with_options(options, function)


def instead_option(name: str) -> Callable[..., Any]:
    """Return the option of a tolerance that replaces the pack's."""
    tolerance = f"{INSTEAD[name]}, instead of the pack's, of all outputs or of output NAME."
    return click.option(name, multiple=True, metavar="[NAME:]NUMBER", help=tolerance)


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
    """Add what is judged, by which tolerances, on which cases of the pack, by how many workers."""
    options = (
        subject_options,
        rule_options,
        selection_option,
        click.option(
            "--require",
            "requirements",
            multiple=True,
            metavar="EXPR[,...]",
            help="Skip the cases that need more than the subject can do. A comma is an `and`, a"
            " bar an `or`: --require 'opset<=14' --require 'dtype=float32|float16'.",
        ),
        click.option(
            "--trust", is_flag=True, help="Judge without checking the pack's checksums first."
        ),
        worker_options,
    )
    return with_options(options, function)


def plan_of(name: str, pack: Path, options: dict[str, Any], **terms: Any) -> VerificationPlan:
    """Return what is judged, and how.

    Args:
        name: of the command, for the command line that repeats it.
        pack: its folder.
        options: those of `judging_options`, and the plan's own.
        terms: how cases are judged, beside subject and rule.
    """
    expect_workers(options, "rnncli.verifying.batch")
    from rnncli.judging.requirements import Requirements
    from rnncli.judging.xfails import Xfails
    from rnncli.verifying.batch import Terms
    from rnncli.verifying.verification import VerificationPlan

    command = ["rnncli", name, str(pack)]
    subject = subject_of(options, command)
    rule = rule_of(options, command)
    command += shuffling(options)
    requirements = Requirements.parse(options.pop("requirements"))
    return VerificationPlan(
        pack=pack,
        terms=Terms(subject, rule, **{"xfails": Xfails(), **terms}),
        requirements=requirements,
        command=shlex.join(command),
        **options,
    )


def shuffling(options: dict[str, Any]) -> list[str]:
    """Return --shuffle as the command line that repeats a run has it."""
    seed = options.get("shuffle")
    return [] if seed is None else ["--shuffle", f"{seed}"]


def subject_of(options: dict[str, Any], command: list[str]) -> SubjectSpec:
    """Return which implementation is judged; its options are added to the command line."""
    from rnncli.verifying.subject_spec import SubjectSpec

    given = {kind: name for kind in SUBJECTS if (name := options.pop(kind))}
    if len(given) != 1:
        listed = ", ".join(f"--{kind}" for kind in SUBJECTS)
        raise click.UsageError(f"say what to judge: one of {listed}")
    (kind, name), *_ = given.items()
    spec = SubjectSpec(
        kind=kind,
        name=name,
        compute=options.pop("compute"),
        settings=dict(options.pop("settings")),
        threads=options.pop("threads"),
        timeout=options.pop("timeout"),
        max_memory=options.pop("max_memory"),
    )
    command += [f"--{kind}", name]
    command += ["--compute", spec.compute] * (kind == "backend" and spec.compute != "float64")
    for limit, default in LIMITS.items():
        value = getattr(spec, limit)
        command += [f"--{limit.replace('_', '-')}", f"{value}"] * (value != default)
    for setting, value in spec.settings.items():
        command += ["--runtime-option", f"{setting}={value}"]
    return spec


def rule_of(options: dict[str, Any], command: list[str]) -> Rule:
    """Return by which tolerances is judged; they are added to the command line."""
    from rnncli.judging.rule import Rule
    from rnncli.judging.tolerance import Tolerance

    profile = options.pop("profile")
    given = {name: options.pop(name) for name in TOLERANCES}
    for name, values in (("profile", [profile] if profile else []), *given.items()):
        for value in values:
            command += [f"--{name.replace('_', '-')}", value]
    return Rule(profile, Tolerance.parse(**given) if any(given.values()) else None)
