"""The options of `rnncli verify --metamorphic`, and the run they describe."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.options import Name, expect_workers, with_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from rnncli.metamorphic.run import RelationPlan
    from rnncli.metamorphic.verdict import RelationVerdict

# Options of `verify` about expected outputs, which metamorphic runs do not have.
OF_GOLDENS = (
    *("atol", "rtol", "max_ulp"),
    *("results", "xfails", "allow_missing", "diagnose", "plot"),
)
OF_RELATIONS = ("relation", "sizes")


def _relations() -> Iterable[str]:
    from rnncli.metamorphic.relations import RELATIONS

    return RELATIONS


def _sizes(_: click.Context, param: click.Parameter, values: Sequence[str]) -> Any:
    """Read `hidden_size=512,batch_size=64`, given once or several times."""
    if not values:
        return ()
    from rnncli.metamorphic.targets import read_sizes

    pair = "NAME=SIZE, NAME being seq_length, batch_size, input_size or hidden_size"
    try:
        return tuple(read_sizes(part) for value in values for part in value.split(","))
    except ValueError as error:
        raise click.BadParameter(f"expected {pair}, got '{error}'", param=param) from None


def relation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --metamorphic and the options that need it."""
    options = (
        click.option(
            "--metamorphic",
            is_flag=True,
            help="Judge without expected outputs: run each case and transformed cases, whose"
            " outputs must be related. PACK may then also be a suite or config, by path or name.",
        ),
        click.option(
            "--relation",
            type=Name("name", _relations),
            multiple=True,
            help="Only this relation, with --metamorphic: again, padding, nan-padding, longer, cut,"
            " singles, tiles, sequences-permuted, sequences-repeated, units-permuted, units-added,"
            " inputs-permuted, inputs-added, split, reversed, directions, last-state, outputs,"
            " layout, weights, threads. docs/metamorphic.md explains each.",
        ),
        click.option(
            "--sizes",
            multiple=True,
            callback=_sizes,
            metavar="NAME=SIZE[,...]",
            help="Sizes of every case of a suite or config, with --metamorphic, as in"
            " hidden_size=512,batch_size=64.",
        ),
    )
    return with_options(options, function)


def refuse_relation_options(options: dict[str, Any]) -> None:
    """Remove the options of relations in a run without --metamorphic.

    Raises:
        click.UsageError: one of them was given.
    """
    _refuse([name for name in OF_RELATIONS if options.pop(name)], "needs --metamorphic")


def _refuse(names: Sequence[str], why: str) -> None:
    for name in names:
        raise click.UsageError(f"--{name.replace('_', '-')} {why}")


def verify_relations(pack: Path, options: dict[str, Any]) -> int:
    """Judge an implementation by relations and return the exit code."""
    from rnncli.metamorphic.run import judge_relations, selected
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.relations import WRITERS, show_relations
    from rnncli.reports.verification import check_reports, write_reports

    files = {kind: options.pop(kind) for kind in WRITERS}
    as_json = options.pop("as_json")
    plan = relation_plan(pack, options)
    check_reports(files)
    cases = selected(plan)
    each = len(plan.relations)
    with progress_bar(sum(cases.values()) * each, "relations") as progress:
        told: Counter[tuple[str, int]] = Counter()
        broken = 0

        def done(verdict: RelationVerdict) -> None:
            nonlocal broken
            broken += verdict.fails
            # A verdict on a data set without outputs stands for all the remaining ones.
            call = (verdict.case, verdict.data_set)
            count = 1 if verdict.relation else each - told[call]
            told[call] += count
            progress.advance(count, f"{verdict.case} {verdict.relation}, {broken} fail")

        report = judge_relations(plan, cases, done)
    show_relations(report, as_json=as_json)
    write_reports(report, files, WRITERS)
    return report.exit_code


def relation_plan(target: Path, options: dict[str, Any]) -> RelationPlan:
    """Return the plan for the options.

    Args:
        target: a pack, suite or config.
        options: the options of `verify`.

    Raises:
        click.UsageError: one of them is about expected outputs.
    """
    _refuse([n for n in OF_GOLDENS if options.pop(n)], "is about expected outputs; leave it out")
    expect_workers(options, "rnncli.metamorphic.run")
    from rnncli.judging.comparing.requirements import Requirements
    from rnncli.metamorphic.relations import RELATIONS
    from rnncli.metamorphic.run import RelationPlan
    from rnncli.metamorphic.targets import CallTarget
    from rnncli.profiles import profile_named
    from rnncli.subjects.subject_spec import LIMITS, NAMED, SubjectSpec
    from rnncli.verifying.verification import Shard

    relations, sizes = options.pop("relation"), options.pop("sizes")
    for name in set(relations) - set(RELATIONS):
        raise click.UsageError(unknown_relation(name))
    subject = SubjectSpec.chosen(
        {kind: options.pop(kind) for kind in NAMED if kind in options},
        settings=options.pop("runtime_option") or {},
        **{name: options.pop(name) for name in LIMITS},
    )
    profile = profile_named(options.pop("profile") or "standard").name
    command = ["rnncli", "verify", str(target), "--metamorphic", *subject.options]
    command += ["--profile", profile] * (profile != "standard")
    command += [] if options["shuffle"] is None else ["--shuffle", f"{options['shuffle']}"]
    if sizes:
        command += ["--sizes", ",".join(f"{name}={size}" for name, size in sizes)]
    return RelationPlan(
        target=CallTarget(str(target), sizes, options.pop("pack_digest"), options.pop("trust")),
        subject=subject,
        relations=tuple(name for name in RELATIONS if name in relations or not relations),
        profile=profile,
        requirements=Requirements.parse(options.pop("require")),
        stop_at_failure=options.pop("exitfirst"),
        selection=options.pop("select"),
        shard=Shard.parse(options.pop("shard")),
        command=shlex.join(command),
        **options,
    )


def unknown_relation(name: str) -> str:
    """Return the message for an unknown name, with a suggestion."""
    from rnncli.errors import did_you_mean
    from rnncli.metamorphic.relations import RELATIONS

    hint = did_you_mean(name, RELATIONS) or f"; known: {', '.join(RELATIONS)}"
    return f"unknown relation '{name}'{hint}"
