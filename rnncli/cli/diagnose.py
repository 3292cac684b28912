"""`rnncli diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.judging_options import judging_options, plan_of
from rnncli.cli.options import json_option
from rnncli.errors import NothingSelected
from rnncli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.judging.features import Features
    from rnncli.judging.verdict import CaseVerdict
    from rnncli.verifying.verification import Selected


# What is said of cases that are right alone -> whether other cases came before.
LATER = {
    "wrong at a later call only": False,
    "wrong only after other cases of the same process": True,
}


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@judging_options
@json_option
@click.pass_context
def diagnose(ctx: click.Context, /, pack: Path, as_json: bool, **options: Any) -> None:
    """Name the bug that explains an implementation's wrong outputs.

    Every case that differs is held against other readings of the specification and against every
    mutant (`rnncli mutants` lists them), then against two of those at once; all cases tell which of
    them it cannot be. The fewest that explain the failures of a cell by value are causes. Of the
    rest it says that no known bug explains them, what they have in common (a pattern, no proof),
    and what fits some of them although other cases speak against it. Of what is wrong at a later
    call of a session only, it says what of the call before was kept, if that gives what came out.
    The exit code is 1 when anything differs, crashes, hangs, or is invalid and accepted, and 5 when
    nothing differs but no case was answered.
    `rnncli verify --diagnose` says the same of causes beside its verdicts.

    \b
    rnncli diagnose vectors/core --results from_device/
    rnncli diagnose vectors/core --runtime openvino --json
    """
    from rnncli.judging.diagnosis import Diagnosis
    from rnncli.judging.verdict import Verdict
    from rnncli.reports.diagnosis import show_diagnosis, show_later
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import counts
    from rnncli.verifying.verification import judge_all, select

    plan = plan_of("diagnose", pack, options, diagnoses=True)
    selected = select(plan)
    with progress_bar(len(selected.ids), "cases") as progress:
        report = judge_all(plan, selected, lambda _: progress.advance(1))
    found = report.diagnosis or Diagnosis()
    show_diagnosis(found, as_json=as_json)
    total = report.total
    if total.answered < total.cases:
        say(f"{total.answered} of {total.cases} cases answered: {counts(total)}")
    unseen = [case.verdict for case in report.cases if _is_unseen(case.verdict)]
    answered = {case.record["id"] for case in report.cases if case.is_answered}
    for title, after_others in LATER.items():
        if some := [verdict for verdict in unseen if bool(verdict.after) == after_others]:
            features = _right_at_all(selected, answered, unseen, later=not after_others)
            show_later(title, some, features)
    differs = found.causes or found.unexplained or unseen
    if not differs and report.shortfall:
        ctx.exit(NothingSelected.exit_code)
    silent = {Verdict.REFUSED, Verdict.MISSING}
    # A refusal is no wrong output; who wants it to fail asks `verify`.
    fails = any(case.verdict.fails and case.verdict.verdict not in silent for case in report.cases)
    ctx.exit(int(bool(differs) or fails))


def _right_at_all(
    selected: Selected, answered: set[str], wrong: Sequence[CaseVerdict], *, later: bool
) -> tuple[list[Features], list[Features]]:
    """Return what cases have that are wrong by what came before, and those that are right.

    Args:
        selected: all that were asked.
        answered: those that were answered.
        wrong: what is said of the wrong ones.
        later: whether only cases with a later call count.
    """
    from rnncli.judging.features import features_of

    failing = {verdict.id for verdict in wrong}
    vectors = (selected.pack.read(record) for record in selected.asked if record["id"] in answered)
    several = [vector for vector in vectors if vector.later or not later]
    return (
        [features_of(vector) for vector in several if vector.id in failing],
        [features_of(vector) for vector in several if vector.id not in failing],
    )


def _is_unseen(verdict: CaseVerdict) -> bool:
    """Whether a case is right at its first call, which alone is held against the bugs."""
    from rnncli.judging.verdict import Verdict

    later = verdict.data_set and verdict.verdict is Verdict.DIFFERS
    return bool(later) or verdict.verdict is Verdict.STALE
