"""`generate`, `verify`, `relate`, `score`, `diagnose`, `probe` as functions, which commands call.

A command's options are keyword arguments of its function: `--min-cases 20` is `min_cases=20`. Those
that several commands share are values: `-j 2` is `workers=Workers(jobs=2)`. Commands are made from
these functions, see `asking`: the signature has the names and defaults of options, the docstring
their helps. Options that only print or write a report belong to the command alone. Heavy imports
wait until a function is called, so that workers import at the same time as this process.
"""

from __future__ import annotations

import os
import re
import shlex
import threading
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rnncli.errors import InvalidRequest
from rnncli.jobs.workers import HERE, Workers
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.selected import ALL, EVERY_CASE, Selected
from rnncli.limits import Limits
from rnncli.options import OptionKind, asking, traits, words_of
from rnncli.packs.layouts import LAYOUTS
from rnncli.subjects.implementation import Implementation
from rnncli.talk.waiting import waiting_for
from rnncli.talk.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.generating.generation import GenerationReport
    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.report import VerificationReport
    from rnncli.packs.vector import Vector
    from rnncli.verifying.questions import ProbedDevice
    from rnncli.verifying.relations.relating import RelationPlan
    from rnncli.verifying.scoring import ScoreReport
    from rnncli.verifying.verification import DiagnosisReport, VerificationPlan

    Function: TypeAlias = Callable[[Vector], Any]
    # Called with the number of finished cases, the number of all cases, and the results so far in
    # words.
    Progress: TypeAlias = Callable[[int, int, str], None]
    PlanT = TypeVar("PlanT", bound=VerificationPlan)

PASSES, CASES = "What passes", "Which cases"

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


@asking(
    _VALUES,
    *(Selected, Implementation),
    output=traits("-o", kind=OptionKind.WRITTEN, metavar="DIR"),
    format=traits(kind=OptionKind.NAME, known=LAYOUTS),
    golden=traits(kind=OptionKind.NAME, known=("certified", "float64")),
    seed=traits(kind=OptionKind.COUNT),
    max_cases=traits(kind=OptionKind.COUNT, least=1, metavar="N"),
    save_suite=traits(kind=OptionKind.WRITTEN, metavar="FILE.yaml"),
)
def generate(
    suite: str | Path,
    *,
    output: str | Path = "",
    format: str = "onnx",  # noqa: A002 -- the name of the option
    check: bool = False,
    select: str = "",
    seed: int | None = None,
    weights: str = "",
    golden: str = "",
    steps: bool = False,
    device: str | Path = "",
    max_cases: int | None = None,
    save_suite: str | Path = "",
    workers: Workers = HERE,
    progress: Progress | None = None,
) -> GenerationReport:
    """Write the conformance vectors of a suite as a pack, or check the pack that is there.

    Args:
        suite: a YAML file, or the name of a suite that ships with rnncli.
        output: The folder of the pack: new, empty, or a pack of the same suite, which is brought up
            to date.  [default: vectors/SUITE]
        format: Layout of the pack (docs/howto/packs.md).
        check: Write nothing; list missing, stale, altered and extra files; exit with 1 if any.
        select: As in `Selected`.
        seed: Seed of the inputs, instead of the suite's.
        weights: As in `Implementation`.
        golden: Expected values computed in float64 and rounded once, or proved (extra `certified`),
            instead of what the suite says of each case.
        steps: Also store the signals of every step: pre-activations, gates, cell and hidden states.
        device: Move the cases into what a device takes, as FILE says (docs/howto/limits.md), keep
            those that still catch a bug, and add others for bugs that those do not catch.
        max_cases: With --device: at most so many cases.  [default: 40]
        save_suite: With --device: also write the chosen cases as a suite, of which `rnncli
            generate` makes the same pack without a search.
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
    from rnncli.cases.suite.case_plan import WEIGHTS
    from rnncli.cases.suite.suite import load_suite
    from rnncli.generating import generation

    read, tailored = load_suite(suite, seed=seed), None
    if device and weights:
        raise InvalidRequest("--weights and --device exclude each other: a device has `weights=`")
    if check and save_suite:
        raise InvalidRequest("--check writes nothing, and --save-suite does")
    if device:
        from rnncli.files.atomic import write_text
        from rnncli.files.seals import YAML
        from rnncli.generating.tailoring import MOST_CANDIDATES, MOST_CASES
        from rnncli.generating.tailoring import tailored as tailor
        from rnncli.judging.device import read_device

        trying = _CaseCount(len(read.select(select)) + MOST_CANDIDATES, progress)
        most = max_cases or MOST_CASES
        told = read_device(device)
        tailored = tailor(read, told, workers, selection=select, most=most, done=trying.add)
        read, select = tailored.suite, ""
        if save_suite:
            write_text(Path(save_suite), str(read.source), YAML)
    elif save_suite or max_cases:
        raise InvalidRequest(f"--{'save-suite' if save_suite else 'max-cases'} is for --device")
    if weights:
        read = read.with_weights(_one_of("weights", weights, WEIGHTS))
    if golden:
        read = read.with_golden(_one_of("golden", golden, ("certified", "float64")))
    plan = generation.GenerationPlan(
        suite=read.with_steps() if steps else read,
        selection=select,
        layout=_one_of("format", format, tuple(LAYOUTS)),
        workers=workers,
    )
    folder = Path(output or f"vectors/{plan.suite.name}")
    done = _CaseCount(len(plan.entries()), progress)
    try:
        report = (generation.check if check else generation.generate)(plan, folder, done.add)
        return replace(report, tailored=tailored)
    except KeyboardInterrupt:
        are = plural(done.count, "is", "are")
        there = f"{done.count} of {counted(done.total, 'case')} {are} in {folder}"
        kept = f"{there}; the same command goes on"
        raise KeyboardInterrupt(kept if done.count and not check else "") from None


@asking(
    _VALUES,
    xfails=traits(kind=OptionKind.READ, section=PASSES),
    trust=traits(kind=OptionKind.FLAG, section=CASES),
    allow_refused=traits(kind=OptionKind.FLAG, section=PASSES),
    allow_missing=traits(kind=OptionKind.FLAG, section=PASSES),
    exitfirst=traits("-x", kind=OptionKind.FLAG, section=PASSES, once=True),
    min_cases=traits(kind=OptionKind.COUNT, least=1, section=PASSES, once=True),
    max_bias=traits(kind=OptionKind.COUNT, least=1, metavar="Z", section=PASSES, once=True),
    pack_digest=traits(metavar="HEX", section=PASSES, once=True),
    claims=traits(kind=OptionKind.READ, metavar="FILE", section=PASSES, once=True),
    diagnose=traits(kind=OptionKind.FLAG, section="Reports", once=True),
)
def verify(
    pack: str | Path,
    subject: Implementation | Function,
    *,
    rule: Rule = PACK_RULE,
    cases: Selected = EVERY_CASE,
    trust: bool = False,
    workers: Workers = HERE,
    xfails: str | Path | None = None,
    exitfirst: bool = False,
    min_cases: int = 1,
    max_bias: int | None = None,
    pack_digest: str = "",
    allow_refused: bool = False,
    allow_missing: bool = False,
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
        trust: Do not compare the pack's files with their checksums.
        workers: who does the work; a function runs in this process.
        xfails: File of known failures: each line has an id or pattern, then the reason. A known
            failure that passes fails the run.
        exitfirst: Stop at the first failure.
        min_cases: Exit with 5 if fewer cases are answered. A case is answered if outputs of the
            implementation were judged; one that was refused, missing, crashed or skipped is not.
        max_bias: Exit with 1 if the errors within the tolerances lean one way over the pack, by
            more than Z standard errors beyond what functions cause; sound kernels stay below 5.
        pack_digest: Exit with 2 unless the digest of the pack, which covers every file, begins with
            HEX. `rnncli generate` and `rnncli inspect` print it.
        allow_refused: Do not fail if the implementation refuses valid cases.
        allow_missing: Do not fail if --results has nothing for a case.
        claims: Judge exactly what FILE claims, as `rnncli claims` writes it; the refusal of a
            claimed case fails. No other selection, tolerance or allowance may be given.
        diagnose: Name the bug behind wrong outputs, as `rnncli diagnose` does.
        progress: called with the number of judged cases, the number of all cases, and the number
            with each verdict in words.

    Returns:
        The report: `report.passed`, `report.exit_code` and, in the pack's order, `report.cases`. A
        run in which no computed output could be judged has not passed. `report.diagnosis` names
        bugs if `diagnose` asks for them.

    Raises:
        rnncli.errors.InvalidRequest: a wrong pack or option.
        rnncli.errors.NothingSelected: no cases are left to judge, or fewer than `min_cases`.
        rnncli.errors.Unsupported: the runtime or an extra is not installed.
    """
    asked = locals()
    workers.expect("rnncli.verifying.case_judging")
    from rnncli.verifying.verification import VerificationPlan, claiming

    plan = _plan(VerificationPlan, verify, pack, asked)
    return _judged(claiming(plan, Path(claims)) if claims else plan, progress)


@asking(
    _VALUES,
    verify,
    relation=traits(
        kind=OptionKind.LOOKED_UP,
        table="rnncli.verifying.relations.relations:RELATIONS",
        section=CASES,
    ),
    sizes=traits(kind=OptionKind.SIZES, metavar="NAME=SIZE[,...]", section="Inputs"),
)
def relate(
    target: str | Path,
    subject: Implementation | Function,
    *,
    rule: Rule = PACK_RULE,
    cases: Selected = EVERY_CASE,
    trust: bool = False,
    workers: Workers = HERE,
    relation: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    allow_refused: bool = False,
    xfails: str | Path | None = None,
    exitfirst: bool = False,
    min_cases: int = 1,
    pack_digest: str = "",
    progress: Progress | None = None,
) -> VerificationReport:
    """Judge an implementation without expected outputs, by how its own are related.

    Args:
        target: a pack's folder, the YAML file of a suite or config, or the name of a shipped one.
        subject: as in `verify`; recorded results cannot run transformed cases.
        rule: its profile is that of the bounds; it has no other tolerance.
        cases: which cases and relations, whose ids are CASE::RELATION, and in which order.
        trust: As in `verify`.
        workers: who does the work; a function runs in this process.
        relation: Only this relation (docs/relations.md explains each).
        sizes: Sizes of every case of a suite or config, as in hidden_size=512,batch_size=64.
        allow_refused: As in `verify`.
        xfails: As in `verify`, by ids of relations or of cases that fail as they are.
        exitfirst: As in `verify`.
        min_cases: As in `verify`; a relation is a case.
        pack_digest: As in `verify`.
        progress: called with the number of judged relations, the number of all, and the number
            with each verdict in words.

    Returns:
        The report, in which each relation of each case is a case.

    Raises:
        rnncli.errors.InvalidRequest: a wrong target or option.
        rnncli.errors.NothingSelected: nothing is left to judge, or less than `min_cases`.
        rnncli.errors.Unsupported: the runtime or an extra is not installed.
    """
    asked = locals()
    workers.expect("rnncli.verifying.relations.relating")
    from rnncli.verifying.relations.relating import RelationPlan

    own = {"relations": tuple(relation), "sizes": tuple((sizes or {}).items())}
    plan = _plan(RelationPlan, relate, target, asked, **own)
    return _related(plan, progress)


@asking(
    _VALUES,
    verify,
    allow_unexercised=traits(kind=OptionKind.FLAG, section=PASSES),
    relation=traits(
        kind=OptionKind.LOOKED_UP,
        table="rnncli.verifying.relations.streaming:STREAM_RELATIONS",
        section=CASES,
    ),
    states=traits("--state", kind=OptionKind.PAIRS, form="INPUT=OUTPUT", section="Inputs"),
    dims=traits("--dim", kind=OptionKind.DIMENSIONS, metavar="NAME=SIZE[,...]", section="Inputs"),
    shapes=traits("--shape", kind=OptionKind.SHAPES, form="NAME=5,1,10", section="Inputs"),
    inputs=traits(
        *("-i", "--input", "input_files"),
        kind=OptionKind.PAIRS,
        form="NAME=FILE|VALUE",
        section="Inputs",
    ),
    inputs_from=traits("--inputs", metavar="FILE", section="Inputs"),
    steps=traits(kind=OptionKind.COUNT, least=1, metavar="N", section="Inputs"),
    sequences=traits(kind=OptionKind.COUNT, least=1, metavar="N", section="Inputs"),
    save=traits(kind=OptionKind.WRITTEN, metavar="DIR", section="Reports", once=True),
)
def stream(
    model: str | Path,
    subject: Implementation | Function,
    *,
    cases: Selected = EVERY_CASE,
    workers: Workers = HERE,
    relation: Sequence[str] = (),
    states: Mapping[str, str] | None = None,
    inputs: Mapping[str, str] | None = None,
    inputs_from: str = "",
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    steps: int | None = None,
    sequences: int | None = None,
    save: str | Path | None = None,
    allow_refused: bool = False,
    allow_unexercised: bool = False,
    xfails: str | Path | None = None,
    exitfirst: bool = False,
    min_cases: int = 1,
    progress: Progress | None = None,
) -> VerificationReport:
    """Judge a whole model, or its runtime, on a stream: states, steps and batches.

    An input with one more axis than the model has it has a call in each row. If none are given, the
    inputs are those of the test data sets beside the model, or else generated ones.

    Args:
        model: the model's file.
        subject: a backend, a runtime that runs whole models, or a function from a vector to its
            outputs by name, whose record has no operator; a backend shows the model itself.
        cases: which relations, whose ids are MODEL::RELATION, and in which order.
        workers: who does the work; a function runs in this process.
        relation: Only this relation (docs/howto/stream.md explains each).
        states: A state: an input, and the output of the previous call that it continues; replaces
            the pairs that are found, which `rnncli inspect MODEL` shows.
        inputs: Read input NAME from FILE (.npy, .pb, or FILE.npz::KEY), or give it as a number or
            list in its own type, such as sr=8000 or x=[[1,2.5],[3,4]].
        inputs_from: Read inputs by name from an .npz, an .h5 or a test_data_set folder.
        dims: Size of a symbolic dimension of a model's inputs, as in batch=2,seq=16.
        shapes: Shape of the generated input NAME of a model.
        steps: Only the first N steps, or N calls of a model that takes a fixed number at each.
        sequences: Only the first N sequences of the batch.
        save: Write each relation that fails as an ONNX test case DIR/MODEL_RELATION, with a data
            set for each call and the outputs that it must have; `rnncli run` shows what differs.
        allow_refused: As in `verify`.
        allow_unexercised: Do not fail, with exit code 5, where a wrong recurrent node would have
            agreed as well, as in one step from a zero state, or with all lengths those of X.
        xfails: As in `verify`, by ids of relations.
        exitfirst: As in `verify`.
        min_cases: As in `verify`; a relation is a case.
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
    asked = locals()
    workers.expect("rnncli.verifying.relations.relating")
    from rnncli.verifying.relations.streaming import StreamPlan

    plan = _plan(
        StreamPlan,
        stream,
        model,
        asked,
        relations=tuple(relation),
        states=tuple((states or {}).items()),
        dims=tuple((dims or {}).items()),
        shapes=tuple((name, tuple(shape)) for name, shape in (shapes or {}).items()),
        inputs=tuple((inputs or {}).items()),
        inputs_from=inputs_from,
        steps=steps or 0,
        sequences=sequences or 0,
        save=Path(save) if save else None,
    )
    return _related(plan, progress)


@asking(_VALUES, verify)
def diagnose(
    pack: str | Path,
    subject: Implementation | Function,
    *,
    rule: Rule = PACK_RULE,
    cases: Selected = EVERY_CASE,
    trust: bool = False,
    workers: Workers = HERE,
    allow_refused: bool = False,
    allow_missing: bool = False,
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
    asked = locals()
    workers.expect("rnncli.verifying.case_judging")
    from rnncli.verifying.verification import VerificationPlan, diagnosis_report

    plan = _plan(VerificationPlan, diagnose, pack, {**asked, "diagnose": True})
    return diagnosis_report(_judged(plan, progress), plan)


@asking(
    _VALUES,
    Selected,
    min_score=traits(kind=OptionKind.PERCENT, metavar="PERCENT"),
    min_structural=traits(kind=OptionKind.PERCENT, metavar="PERCENT"),
)
def score(
    suite: str | Path,
    *,
    select: str = "",
    device: str | Path = "",
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
        select: As in `Selected`.
        device: Score only the cases that a device takes, as FILE says (docs/howto/limits.md),
            and count only mutants that some case within it shows.
        rule: the tolerances by which mutants are judged.
        onnx: ONNX's tolerances instead of the pack's: --rtol 1e-3 --atol 1e-7.
        min_score: Exit with 1 if less than this percentage of the semantic mutants is killed.
        min_structural: Exit with 1 if less than this percentage of the structural mutants is
            killed.
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
    from rnncli.generating.tailoring import MOST_CANDIDATES
    from rnncli.verifying.scoring import ONNX_RULE, ScoreReport, ScoringPlan, score_all
    from rnncli.verifying.scoring import select as select_cases

    if onnx and rule != PACK_RULE:
        raise InvalidRequest(f"--onnx and {rule.text} exclude each other")
    plan = ScoringPlan(
        suite=str(suite),
        selection=select,
        device=device,
        rule=ONNX_RULE if onnx else rule,
        workers=workers,
    )
    selected = select_cases(plan)
    # Beside the cases, others within the device.
    done = _CaseCount(len(selected.outputs) + (MOST_CANDIDATES if device else 0), progress)
    return ScoreReport(score_all(plan, selected, done.add), min_score, min_structural)


@asking(_VALUES, require=traits(kind=OptionKind.WORDS, metavar="EXPR[,...]"))
def probe(
    operators: str | Sequence[str],
    subject: Implementation | Function,
    *,
    require: str | Sequence[str] = (),
    progress: Progress | None = None,
) -> ProbedDevice:
    """Ask an implementation what it takes, and describe it as a device.

    Args:
        operators: names without versions, such as LSTM or webnn.gru; none for RNN, GRU and LSTM.
        subject: as in `verify`; recorded results cannot be asked.
        require: Ask only within EXPR, which is known and becomes part of the device, such as
            batch_size=1,dtype=float16 (docs/howto/limits.md). Terms such as X.type=uint8|int8 ask
            quantised operators.
        progress: called with the number of questions, a number of them that is usual, and the
            question.

    Returns:
        The device, all answers that it rests on, and its text with what was refused in comments.

    Raises:
        rnncli.errors.InvalidRequest: an operator or option is wrong.
        rnncli.errors.NothingSelected: it takes none of what was asked.
        rnncli.errors.Unsupported: the runtime or an extra is not installed.
        KeyboardInterrupt: the run was interrupted; `found` has what was answered, if it was.
    """
    from rnncli.judging.comparing.requirements import Requirements
    from rnncli.judging.device import FAMILIES
    from rnncli.verifying.questions import USUAL, probed

    if not isinstance(subject, Implementation):
        subject = Implementation(function=subject)
    if not subject.can_be_asked:
        raise InvalidRequest("--results are recorded: they cannot be asked; name what made them")
    names = [operators] if isinstance(operators, str) else [*operators]
    for name in names:
        _one_of("operator", name, FAMILIES)
    names = [*dict.fromkeys(names)] or ["RNN", "GRU", "LSTM"]
    texts = [require] if isinstance(require, str) else [*require]
    texts += [f"weights={subject.weights}"] if subject.weights else []
    known = Requirements.parse(filter(None, texts))
    done = _CaseCount(USUAL * len(names), progress)
    with _TURN:
        return probed(names, subject, known, lambda note: done.add(1, note))


def _plan(
    made: Callable[..., PlanT],
    function: Callable[..., Any],
    pack: str | Path,
    asked: Mapping[str, Any],
    **own: Any,
) -> PlanT:
    """Return the plan of a run, and with it the command line that repeats a case of it.

    Args:
        made: the class of the plan.
        function: the function that is asked for it, named as its command.
        pack: what it is about.
        asked: the arguments of the function, by name; those of `verify` stand for those it lacks.
        own: what this class of plans has besides.

    Raises:
        InvalidRequest: arguments contradict each other.
    """
    asked = {"rule": PACK_RULE, "xfails": None, "trust": False, "pack_digest": "", **asked}
    subject, workers, cases, rule = (asked[n] for n in ("subject", "workers", "cases", "rule"))
    least, digest = asked.get("min_cases", 1), asked["pack_digest"]
    if least < 1:
        raise InvalidRequest(f"--min-cases {least}: expected a number >= 1")
    if (bias := asked.get("max_bias")) is not None:
        if bias < 1:
            raise InvalidRequest(f"--max-bias {bias}: expected a number >= 1")
        if rule.tolerance is not None:
            raise InvalidRequest(
                "--max-bias and given tolerances exclude each other: a bias is measured in derived"
                " tolerances"
            )
        own["max_bias"] = bias
    if digest and not re.fullmatch("[0-9a-fA-F]{12,64}", digest):
        raise InvalidRequest(f"--pack-digest {digest}: expected 12 to 64 hexadecimal digits")
    if digest and asked["trust"]:
        raise InvalidRequest("--trust leaves unchecked what --pack-digest covers")
    from rnncli.judging.comparing.verdict import Verdict
    from rnncli.judging.comparing.xfails import Xfails, read_xfails
    from rnncli.verifying.case_judging import JudgingTerms

    if not isinstance(subject, Implementation):
        subject = Implementation(function=subject)
    if subject.function and not workers.are_here:
        raise InvalidRequest("--jobs is not for a function, which runs in this process")

    name = function.__name__
    words = ["rnncli", name, str(pack), *subject.options, *rule.options, *cases.order]
    words += cases.limits
    words += words_of(function, asked)
    if f"RNNCLI_{name}_SHARD".upper() in os.environ:
        # It would leave a part of the one case that is selected.
        words += ["--shard", str(ALL)]
    return made(
        pack=Path(pack),
        terms=JudgingTerms(
            subject,
            rule,
            read_xfails(Path(asked["xfails"])) if asked["xfails"] else Xfails(),
            allowed=frozenset(each for each in Verdict if asked.get(f"allow_{each}")),
            stop_at_failure=asked.get("exitfirst", False),
            diagnoses=asked.get("diagnose", False),
        ),
        cases=cases,
        min_cases=least,
        trust=asked["trust"],
        digest=digest,
        workers=workers,
        command="" if subject.function else shlex.join(words),
        **own,
    )


def _judged(plan: VerificationPlan, progress: Progress | None) -> VerificationReport:
    from rnncli.verifying.verification import judge_all, select

    selected = select(plan)
    counting = _counting(len(selected.asked), progress)
    with _TURN, nullcontext() if progress else waiting_for("rnncli.verify"):
        return judge_all(plan, selected, counting)


def _related(plan: RelationPlan, progress: Progress | None) -> VerificationReport:
    from rnncli.verifying.relations.relating import judge_all, select

    with _TURN, nullcontext() if progress else waiting_for("rnncli.relate"):
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
