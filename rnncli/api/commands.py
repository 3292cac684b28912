"""`generate`, `verify`, `relate`, `score`, `diagnose` as functions, which the commands call.

A command's options are keyword arguments of its function: `--min-cases 20` is `min_cases=20`. Those
that several commands share are values: `-j 2` is `workers=Workers(jobs=2)`. Options that only print
or write a report belong to the command alone. Heavy imports wait until a
function is called, so that workers import at the same time as this process.
"""

from __future__ import annotations

import os
import re
import shlex
import threading
from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rnncli.errors import InvalidRequest
from rnncli.jobs.workers import HERE, Workers
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.selected import ALL, EVERY_CASE, Selected
from rnncli.limits import Limits
from rnncli.options import taking_values
from rnncli.subjects.implementation import Implementation
from rnncli.talk.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.generating.generation import GenerationReport
    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.report import VerificationReport
    from rnncli.packs.vector import Vector
    from rnncli.verifying.relations.relating import RelationPlan
    from rnncli.verifying.scoring import ScoreReport
    from rnncli.verifying.verification import DiagnosisReport, VerificationPlan

    Function: TypeAlias = Callable[[Vector], Any]
    # Called with the number of finished cases, the number of all cases, and the results so far in
    # words.
    Progress: TypeAlias = Callable[[int, int, str], None]
    PlanT = TypeVar("PlanT", bound=VerificationPlan)

# What carries the options that several functions share.
_VALUES: Mapping[str, type[Any]] = {
    "cases=Selected({}=...)": Selected,
    "rule=Rule({}=...)": Rule,
    "workers=Workers({}=...)": Workers,
    "Implementation({}=...)": Implementation,
    "Implementation(limits=Limits({}=...))": Limits,
}

# Held by the run of this process that judges: what it has open is the process's.
_TURN = threading.RLock()


def generate(
    suite: str | Path,
    *,
    output: str | Path = "",
    format: str = "onnx",  # noqa: A002 -- the name of the option
    check: bool = False,
    select: str = "",
    seed: int | None = None,
    weights: str = "",
    steps: bool = False,
    workers: Workers = HERE,
    progress: Progress | None = None,
) -> GenerationReport:
    """Write the conformance vectors of a suite as a pack, or check the pack that is there.

    Args:
        suite: a YAML file, or the name of a suite that ships with rnncli.
        output: the pack's folder: new, empty, or a pack of the same suite, which is brought up to
            date; by default `vectors/NAME`.
        format: the pack's layout: "onnx", "raw", "c" or "hex", a folder for each case; "npz" or
            "h5", one file. "c" and "hex" are not read back.
        check: write nothing; find missing, stale, altered and extra files.
        select: an expression that selects cases, as in `rnncli generate -k`.
        seed: replaces the suite's seed.
        weights: "constants" or "inputs": where models have W, R, B and P, instead of where the
            suite has them.
        steps: store the signals of every step, too: pre-activations, gates and states.
        workers: who does the work.
        progress: called with the number of finished cases, the number of all cases, and "".

    Returns:
        The report. `passed` is False exactly if cases could not be generated or a check found
        differences.

    Raises:
        rnncli.errors.InvalidRequest: a wrong suite or option, or a folder with other content.
        rnncli.errors.NothingSelected: no case is selected.
        rnncli.errors.Unsupported: an extra that the suite needs is not installed.
        KeyboardInterrupt: the run was interrupted; the message says what is kept.
    """
    modules = ("rnncli.generating.generation", "numpy.random", "rnncli.backends.certified_backend")
    if seed is not None and seed < 0:
        raise InvalidRequest(f"--seed {seed}: expected a number >= 0")
    workers.expect(*modules)
    from rnncli.cases.suite.case_plan import PLACES_OF_WEIGHTS
    from rnncli.cases.suite.suite import load_suite
    from rnncli.generating import generation
    from rnncli.packs.layouts import LAYOUTS

    read = load_suite(suite, seed=seed)
    if weights:
        place = PLACES_OF_WEIGHTS[_one_of("weights", weights, PLACES_OF_WEIGHTS)]
        read = read.with_weights(place)
    plan = generation.GenerationPlan(
        suite=read.with_steps() if steps else read,
        selection=select,
        layout=_one_of("format", format, tuple(LAYOUTS)),
        workers=workers,
    )
    folder = Path(output or f"vectors/{plan.suite.name}")
    done = _CaseCount(len(plan.entries()), progress)
    try:
        return (generation.check if check else generation.generate)(plan, folder, done.add)
    except KeyboardInterrupt:
        are = plural(done.count, "is", "are")
        there = f"{done.count} of {counted(done.total, 'case')} {are} in {folder}"
        kept = f"{there}; the same command goes on"
        raise KeyboardInterrupt(kept if done.count and not check else "") from None


@taking_values(_VALUES)
def verify(
    pack: str | Path,
    subject: Implementation | Function,
    *,
    rule: Rule = PACK_RULE,
    cases: Selected = EVERY_CASE,
    workers: Workers = HERE,
    xfails: str | Path | None = None,
    allow_refused: bool = False,
    allow_missing: bool = False,
    exitfirst: bool = False,
    min_cases: int = 1,
    trust: bool = False,
    pack_digest: str = "",
    claims: str | Path | None = None,
    diagnose: bool = False,
    progress: Progress | None = None,
) -> VerificationReport:
    """Judge an implementation against a pack of conformance vectors.

    Args:
        pack: a folder that `generate` wrote.
        subject: what is judged, and the limits of each case; a function stands for
            `Implementation(function=function)`.
        rule: the tolerances.
        cases: which cases, and in which order.
        workers: who does the work; a function runs in this process.
        xfails: a file of known failures, as in `rnncli verify --xfails`.
        allow_refused: whether refusing a valid case is not a failure.
        allow_missing: whether a case without results is not a failure.
        exitfirst: whether the run ends at the first failure.
        min_cases: the number of cases that must be answered for the run to pass.
        trust: whether the pack's checksums are not verified.
        pack_digest: the required beginning of the pack's digest, 12 digits or more.
        claims: a file of what the subject claims, as in `rnncli verify --claims`, which excludes
            other selections, tolerances and allowances.
        diagnose: whether `report.diagnosis` names the bugs behind wrong outputs.
        progress: called with the number of judged cases, the number of all cases, and the number
            with each verdict in words.

    Returns:
        The report: `report.passed`, `report.exit_code` and, in the pack's order, `report.cases`. A
        run in which no computed output could be judged has not passed.

    Raises:
        rnncli.errors.InvalidRequest: a wrong pack or option.
        rnncli.errors.NothingSelected: no cases are left to judge, or fewer than `min_cases`.
        rnncli.errors.Unsupported: the runtime or an extra is not installed.
    """
    workers.expect("rnncli.verifying.case_judging")
    from rnncli.verifying.verification import VerificationPlan, claiming

    plan = _plan(
        VerificationPlan,
        "verify",
        Path(pack),
        subject,
        rule=rule,
        cases=cases,
        workers=workers,
        xfails=xfails,
        allowed={"refused": allow_refused, "missing": allow_missing},
        stop_at_failure=exitfirst,
        min_cases=min_cases,
        trust=trust,
        digest=pack_digest,
        diagnoses=diagnose,
    )
    return _judged(claiming(plan, Path(claims)) if claims else plan, progress)


@taking_values(_VALUES)
def relate(
    target: str | Path,
    subject: Implementation | Function,
    *,
    rule: Rule = PACK_RULE,
    cases: Selected = EVERY_CASE,
    workers: Workers = HERE,
    relation: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    xfails: str | Path | None = None,
    allow_refused: bool = False,
    exitfirst: bool = False,
    min_cases: int = 1,
    trust: bool = False,
    pack_digest: str = "",
    progress: Progress | None = None,
) -> VerificationReport:
    """Judge an implementation without expected outputs, by relations between its own.

    Args:
        target: a pack's folder, the YAML file of a suite or config, or the name of a shipped one.
        subject: as in `verify`; recorded results cannot run transformed cases.
        rule: its profile is that of the bounds; it has no other tolerance.
        cases: which cases and relations, whose ids are CASE::RELATION, and in which order.
        workers: who does the work; a function runs in this process.
        relation: the names of the relations to judge; all by default.
        sizes: sizes that replace those of every case of a suite or config.
        xfails: a file of known failures, by ids of relations or of cases that fail as they are.
        allow_refused: whether refusing a valid case is not a failure.
        exitfirst: whether the run ends at the first failure.
        min_cases: the number of relations that must be judged for the run to pass.
        trust: whether a pack's checksums are not verified.
        pack_digest: the required beginning of a pack's digest, 12 digits or more.
        progress: called with the number of judged relations, the number of all, and the number
            with each verdict in words.

    Returns:
        The report, in which each relation of each case is a case.

    Raises:
        rnncli.errors.InvalidRequest: a wrong target or option.
        rnncli.errors.NothingSelected: nothing is left to judge, or less than `min_cases`.
        rnncli.errors.Unsupported: the runtime or an extra is not installed.
    """
    workers.expect("rnncli.verifying.relations.relating")
    from rnncli.verifying.relations.relating import RelationPlan

    told = ",".join(f"{name}={size}" for name, size in (sizes or {}).items())
    chosen = [word for name in relation for word in ("--relation", name)]
    plan = _plan(
        partial(RelationPlan, relations=tuple(relation), sizes=tuple((sizes or {}).items())),
        "relate",
        Path(target),
        subject,
        rule=rule,
        cases=cases,
        workers=workers,
        xfails=xfails,
        allowed={"refused": allow_refused},
        stop_at_failure=exitfirst,
        min_cases=min_cases,
        trust=trust,
        digest=pack_digest,
        more=[*chosen, *(["--sizes", told] if told else [])],
    )
    return _related(plan, progress)


@taking_values(_VALUES)
def stream(
    model: str | Path,
    subject: Implementation | Function,
    *,
    cases: Selected = EVERY_CASE,
    workers: Workers = HERE,
    relation: Sequence[str] = (),
    states: Mapping[str, str] | None = None,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Mapping[str, str] | None = None,
    inputs_from: str = "",
    steps: int | None = None,
    sequences: int | None = None,
    save: str | Path | None = None,
    xfails: str | Path | None = None,
    allow_refused: bool = False,
    allow_unexercised: bool = False,
    exitfirst: bool = False,
    min_cases: int = 1,
    progress: Progress | None = None,
) -> VerificationReport:
    """Judge the states, steps and batches of a whole model, and what runs it.

    Args:
        model: the model's file.
        subject: a backend, a runtime that runs whole models, or a function from a vector to its
            outputs by name, whose record has no operator; a backend shows the model itself.
        cases: which relations, whose ids are MODEL::RELATION, and in which order.
        workers: who does the work; a function runs in this process.
        relation: the names of the relations to judge; all by default.
        states: input -> the output that it continues, instead of the pairs that are found.
        dims: sizes of symbolic dimensions.
        shapes: shapes of inputs, for dimensions without a name.
        inputs: input -> a file or numbers, as `rnncli stream -i` takes them; an array with one more
            axis than the input has a call in each row.
        inputs_from: an .npz, an .h5 or a test_data_set folder with inputs by name. If none are
            given, those of the test data sets beside the model, or else generated ones.
        steps: only so many of the first steps, or as many calls of a model that takes a fixed
            number of steps at each; all by default.
        sequences: only so many of the first sequences of the batch; all by default.
        save: the folder to write an ONNX test case of each relation that fails into.
        xfails: a file of known failures, by ids of relations.
        allow_refused: whether refusing a call is not a failure.
        allow_unexercised: whether it is none if a wrong recurrent node would agree as well.
        exitfirst: whether the run ends at the first failure.
        min_cases: the number of relations that must be judged for the run to pass.
        progress: as in `relate`.

    Returns:
        The report, in which each relation is a case.

    Raises:
        rnncli.errors.InvalidRequest: a wrong model or option.
        rnncli.errors.NothingSelected: the model has neither states nor free axes, or less than
            `min_cases` is left to judge.
        rnncli.errors.Unsupported: the subject runs no whole models, or the model cannot be
            evaluated in float64.
    """
    workers.expect("rnncli.verifying.relations.relating")
    from rnncli.verifying.relations.streaming import StreamPlan

    pairs, sizes = tuple((states or {}).items()), tuple((dims or {}).items())
    words = [("--relation", name) for name in relation]
    words += [("--state", f"{begin}={end}") for begin, end in pairs]
    words += [("--dim", f"{name}={size}") for name, size in sizes]
    asked = tuple((name, tuple(shape)) for name, shape in (shapes or {}).items())
    words += [("--shape", f"{name}={','.join(map(str, shape))}") for name, shape in asked]
    told = tuple((inputs or {}).items())
    words += [("-i", f"{name}={file}") for name, file in told]
    words += [("--inputs", inputs_from)] if inputs_from else []
    words += [("--steps", f"{steps}")] if steps else []
    words += [("--sequences", f"{sequences}")] if sequences else []
    plan = _plan(
        partial(
            StreamPlan,
            relations=tuple(relation),
            states=pairs,
            dims=sizes,
            shapes=asked,
            inputs=told,
            inputs_from=inputs_from,
            steps=steps or 0,
            sequences=sequences or 0,
            save=Path(save) if save else None,
        ),
        "stream",
        Path(model),
        subject,
        rule=PACK_RULE,
        cases=cases,
        workers=workers,
        xfails=xfails,
        allowed={"refused": allow_refused, "unexercised": allow_unexercised},
        stop_at_failure=exitfirst,
        min_cases=min_cases,
        trust=False,
        more=[*chain.from_iterable(words)],
    )
    return _related(plan, progress)


@taking_values(_VALUES)
def diagnose(
    pack: str | Path,
    subject: Implementation | Function,
    *,
    rule: Rule = PACK_RULE,
    cases: Selected = EVERY_CASE,
    workers: Workers = HERE,
    allow_refused: bool = False,
    allow_missing: bool = False,
    trust: bool = False,
    progress: Progress | None = None,
) -> DiagnosisReport:
    """Name the bug that explains an implementation's wrong outputs.

    The arguments are those of `verify`.

    Returns:
        The report: its `diagnosis` has the causes and the failures that no known bug explains. It
        has `passed` if its `verification` has.

    Raises:
        rnncli.errors.InvalidRequest: a wrong pack or option.
        rnncli.errors.NothingSelected: no case is left to judge.
        rnncli.errors.Unsupported: the runtime or an extra is not installed.
    """
    workers.expect("rnncli.verifying.case_judging")
    from rnncli.verifying.verification import VerificationPlan, diagnosis_report

    plan = _plan(
        VerificationPlan,
        "diagnose",
        Path(pack),
        subject,
        rule=rule,
        cases=cases,
        workers=workers,
        allowed={"refused": allow_refused, "missing": allow_missing},
        trust=trust,
        diagnoses=True,
    )
    return diagnosis_report(_judged(plan, progress), plan)


def score(
    suite: str | Path,
    *,
    select: str = "",
    rule: Rule = PACK_RULE,
    onnx: bool = False,
    min_score: float | None = None,
    min_structural: float | None = None,
    workers: Workers = HERE,
    progress: Progress | None = None,
) -> ScoreReport:
    """Score vectors by the bugs they catch.

    Args:
        suite: a pack's folder, a suite's YAML file, or the name of one that ships with rnncli.
        select: an expression that selects cases, as in `rnncli score -k` has it.
        rule: the tolerances by which mutants are judged.
        onnx: judge by ONNX's own tolerances, rtol 1e-3 and atol 1e-7.
        min_score: the percentage of semantic mutants that must be killed for the score to pass.
        min_structural: the same for structural mutants.
        workers: who does the work.
        progress: called with the number of scored cases, the number of all cases, and "".

    Returns:
        The report: `report.matrix` says for every vector which mutants it kills.

    Raises:
        rnncli.errors.InvalidRequest: a wrong suite, pack or option.
        rnncli.errors.NothingSelected: no case is selected, or none can be scored.
        rnncli.errors.Unsupported: an extra that the suite needs is not installed.
    """
    workers.expect("rnncli.verifying.scoring", "numpy.random")
    from rnncli.verifying.scoring import ONNX_RULE, ScoreReport, ScoringPlan, score_all
    from rnncli.verifying.scoring import select as select_cases

    if onnx and rule != PACK_RULE:
        raise InvalidRequest(f"--onnx and {rule.text} exclude each other")
    plan = ScoringPlan(
        suite=str(suite),
        selection=select,
        rule=ONNX_RULE if onnx else rule,
        workers=workers,
    )
    selected = select_cases(plan)
    done = _CaseCount(len(selected.outputs), progress)
    return ScoreReport(score_all(plan, selected, done.add), min_score, min_structural)


def _plan(
    made: Callable[..., PlanT],
    name: str,
    pack: Path,
    subject: Implementation | Function,
    *,
    rule: Rule,
    cases: Selected,
    workers: Workers,
    xfails: str | Path | None = None,
    allowed: Mapping[str, bool],
    stop_at_failure: bool = False,
    min_cases: int = 1,
    trust: bool,
    digest: str = "",
    diagnoses: bool = False,
    more: Sequence[str] = (),
) -> PlanT:
    """Return the plan, of a class, for arguments of `verify`.

    The command's name goes into the command line that repeats the run.
    """
    if min_cases < 1:
        raise InvalidRequest(f"--min-cases {min_cases}: expected a number >= 1")
    if digest and not re.fullmatch("[0-9a-fA-F]{12,64}", digest):
        raise InvalidRequest(f"--pack-digest {digest}: expected 12 to 64 hexadecimal digits")
    if digest and trust:
        raise InvalidRequest("--trust leaves unchecked what --pack-digest covers")
    from rnncli.judging.comparing.verdict import Verdict
    from rnncli.judging.comparing.xfails import Xfails, read_xfails
    from rnncli.verifying.case_judging import JudgingTerms

    asked = subject if isinstance(subject, Implementation) else Implementation(function=subject)
    if asked.function and not workers.are_here:
        raise InvalidRequest("--jobs is not for a function, which runs in this process")
    flags = {"--trust": trust, **{f"--allow-{verdict}": allowed[verdict] for verdict in allowed}}
    words = [
        *("rnncli", name, str(pack), *asked.options, *rule.options, *cases.order),
        *(("--require", needs) if (needs := cases.requirements.expression) else ()),
        *(("--xfails", str(xfails)) if xfails else ()),
        *(flag for flag, is_given in flags.items() if is_given),
        # One that a variable gives would leave a part of the one case that is selected.
        *(("--shard", str(ALL)) if f"RNNCLI_{name}_SHARD".upper() in os.environ else ()),
        *more,
    ]
    return made(
        pack=pack,
        terms=JudgingTerms(
            asked,
            rule,
            read_xfails(Path(xfails)) if xfails else Xfails(),
            allowed=frozenset(Verdict(verdict) for verdict, is_so in allowed.items() if is_so),
            stop_at_failure=stop_at_failure,
            diagnoses=diagnoses,
        ),
        cases=cases,
        min_cases=min_cases,
        trust=trust,
        digest=digest,
        workers=workers,
        command="" if asked.function else shlex.join(words),
    )


def _judged(plan: VerificationPlan, progress: Progress | None) -> VerificationReport:
    from rnncli.verifying.verification import judge_all, select

    selected = select(plan)
    counting = _counting(len(selected.asked), progress)
    with _TURN:
        return judge_all(plan, selected, counting)


def _related(plan: RelationPlan, progress: Progress | None) -> VerificationReport:
    from rnncli.verifying.relations.relating import judge_all, select

    with _TURN:
        selected = select(plan)
        return judge_all(plan, selected, _counting(sum(map(len, selected.values())), progress))


def _counting(total: int, progress: Progress | None) -> Callable[[CaseVerdict], None]:
    """Return a function that counts each verdict, and tells how many of each there are."""
    done = _CaseCount(total, progress)
    verdicts: Counter[str] = Counter()

    def count(verdict: CaseVerdict) -> None:
        verdicts[verdict.verdict] += 1
        done.add(1, ", ".join(f"{number} {name}" for name, number in verdicts.items()))

    return count


class _CaseCount:
    """A counter of finished cases.

    Args:
        total: the number of cases.
        progress: called at once, and whenever more cases finish.
    """

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.count, self.total = 0, total
        self._progress = progress
        self.add(0)

    def add(self, more: int, note: str = "") -> None:
        """Count more cases."""
        self.count += more
        if self._progress:
            self._progress(self.count, self.total, note)


def _one_of(name: str, value: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    if value not in known:
        raise InvalidRequest(f"--{name} {value}: expected one of {', '.join(known)}")
    return value
