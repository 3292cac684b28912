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
            help="A runtime: onnxruntime, openvino, onnx-reference, tract, or one that a package"
            " adds (entry points rnncli.subjects).",
        ),
        click.option("--backend", type=Name("name", backend_names), help="A backend of rnncli."),
        click.option(
            "--results",
            metavar="PATH",
            help="Outputs that were made elsewhere: a folder laid out like the pack, or one .npz or"
            " .h5 with ID/outputs/NAME, and ID/calls/1/outputs/NAME of a second call. A case that"
            " the device refused has a file refused.txt (or a tensor ID/refused); one of which"
            " there is nothing is missing.",
        ),
        click.option(
            "--command",
            metavar="'PROG {model} {inputs} {outputs}'",
            help="A program, started for each data set of each case, without a shell: {model} is"
            " model.onnx, {inputs} a test_data_set folder ({inputs.npz}, {inputs.h5}: a file),"
            " {outputs} a folder to put output_K.pb in ({outputs.npz}, {outputs.h5}: a file),"
            " {id} the case. Its working folder is new and empty, RNNCLI_CASE is the id; exit"
            " code 3 refuses the case, any other but 0 is a crash, and 126 and 127 end the run.",
        ),
        click.option(
            "--runtime-option",
            "settings",
            type=Pair("NAME=VALUE"),
            multiple=True,
            help="A setting of the runtime, as it spells it.",
        ),
        compute_option,
        click.option(
            "--threads",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="How many a runtime or backend may use.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(0, min_open=True),
            default=60.0,
            show_default=True,
            help="Seconds for one case; then it is killed.",
        ),
        click.option(
            "--max-memory",
            type=ByteSize(),
            metavar="SIZE",
            help="As in 512M or 2G; then it is killed.",
        ),
    )
    return with_options(options, function)


def rule_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --profile, --atol, --rtol and --max-ulp."""
    options = (
        click.option(
            "--profile",
            type=Name("name", _profiles),
            default="",
            help="Judge by the tolerances of another profile than the pack's.",
        ),
        click.option("--atol", multiple=True, metavar="[NAME:]NUMBER", help="Instead: absolute."),
        click.option("--rtol", multiple=True, metavar="[NAME:]NUMBER", help="Instead: relative."),
        click.option("--max-ulp", multiple=True, metavar="[NAME:]NUMBER", help="Instead: in ulp."),
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
            help="What the subject can do, as in"
            " opset<=14,dtype=float32|float16,weights=initializers; other cases are skipped.",
        ),
        click.option("--trust", is_flag=True, help="Do not check the pack's checksums first."),
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
