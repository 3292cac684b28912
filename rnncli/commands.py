"""`generate`, `verify`, `score` and `diagnose` as functions; the commands of these names call them.

A command's options are keyword arguments of its function: `--min-cases 20` is `min_cases=20`.
Options that only print or write a report belong to the command alone. Heavy imports wait until a
function is called, so that workers import at the same time as this process.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rnncli.errors import InvalidRequest
from rnncli.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.report import VerificationReport
    from rnncli.judging.tolerances.tolerance import Limit
    from rnncli.packs.generating.report import GenerationReport
    from rnncli.packs.vector import Vector
    from rnncli.scoring.report import ScoreReport
    from rnncli.verifying.diagnosis_report import DiagnosisReport
    from rnncli.verifying.verification import VerificationPlan

    Function: TypeAlias = Callable[[Vector], Any]
    # Called with the number of finished cases, the number of all cases, and the results so far in
    # words.
    Progress: TypeAlias = Callable[[int, int, str], None]

# Held by the run of this process that judges: what it has open is the process's.
_TURN = threading.RLock()
# The least values of numeric options.
LEAST = {"jobs": 1, "threads": 1, "min_cases": 1, "seed": 0}


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
    jobs: int = 1,
    executor: str = "processes",
    scheduler: str = "",
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
        jobs: the number of processes that work at the same time.
        executor: "processes" of this machine, or "dask".
        scheduler: the address of a Dask cluster; "" starts one here.
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
    modules = ("rnncli.packs.generating.batch", "numpy.random", "rnncli.backends.certified_backend")
    _begin(modules, jobs=jobs, executor=executor, seed=seed)
    from rnncli.cases.suite.suite import load_suite
    from rnncli.packs.generating.generation import GenerationPlan
    from rnncli.packs.generating.report import check_pack, write_pack
    from rnncli.packs.layouts import LAYOUTS

    read = load_suite(suite, seed=seed)
    read = read.with_weights(_place_of(weights)) if weights else read
    plan = GenerationPlan(
        suite=read.with_steps() if steps else read,
        selection=select,
        layout=_one_of("format", format, tuple(LAYOUTS)),
        jobs=jobs,
        executor=executor,
        scheduler=scheduler,
    )
    folder = Path(output or f"vectors/{plan.suite.name}")
    done = _CaseCount(len(plan.entries()), progress)
    try:
        return (check_pack if check else write_pack)(plan, folder, done.add)
    except KeyboardInterrupt:
        are = plural(done.count, "is", "are")
        there = f"{done.count} of {counted(done.total, 'case')} {are} in {folder}"
        kept = f"{there}; the same command goes on"
        raise KeyboardInterrupt(kept if done.count and not check else "") from None


def verify(
    pack: str | Path,
    function: Function | None = None,
    *,
    runtime: str | None = None,
    backend: str | None = None,
    results: str | Path | None = None,
    command: str | None = None,
    harness: str | None = None,
    runtime_option: Mapping[str, str] | None = None,
    compute: str = "float64",
    threads: int = 1,
    timeout: float = 60.0,
    max_memory: int | None = None,
    weights: str = "",
    profile: str = "",
    atol: Limit | None = None,
    rtol: Limit | None = None,
    max_ulp: Limit | None = None,
    select: str = "",
    require: str | Sequence[str] = (),
    trust: bool = False,
    jobs: int = 1,
    executor: str = "processes",
    scheduler: str = "",
    xfails: str | Path | None = None,
    allow_refused: bool = False,
    allow_missing: bool = False,
    exitfirst: bool = False,
    min_cases: int = 1,
    pack_digest: str = "",
    shard: str = "1/1",
    shuffle: int | None = None,
    diagnose: bool = False,
    progress: Progress | None = None,
) -> VerificationReport:
    """Judge an implementation against a pack of conformance vectors.

    Exactly one of `function`, `runtime`, `backend`, `results`, `command` and `harness` names it.
    All but functions and results run in their own process.

    Args:
        pack: a folder that `generate` wrote.
        function: takes a vector and returns its outputs, by name or in order. It refuses a case by
            raising NotImplementedError, ValueError or an rnncli error; any other exception is a
            crash of that case. It runs in this process, without `timeout` and `max_memory`.
        runtime: the name of a runtime; `rnncli runtimes` lists them.
        backend: the name of a backend of rnncli.
        results: outputs computed elsewhere: a folder laid out like the pack, an .npz or .h5 file.
        command: a program and its arguments, as in `rnncli verify --command`.
        harness: a program that speaks the harness protocol, and its arguments.
        runtime_option: the runtime's settings, in its own spelling.
        compute: a backend's arithmetic: "float64" or "native".
        threads: the number of threads a runtime or backend may use.
        timeout: seconds per case, after which the implementation is killed.
        max_memory: limit on memory, bytes, beyond which it is killed; None for no limit.
        weights: "constants" or "inputs": where models have W, R, B and P, instead of where the
            pack's have them.
        profile: a profile whose tolerances replace the pack's.
        atol: an absolute tolerance that replaces the pack's; a number for all outputs, or by
            output.
        rtol: the same, relative to the expected value.
        max_ulp: the same, in units in the last place.
        select: an expression that selects cases, as in `rnncli verify -k` has it.
        require: the implementation's capabilities, such as "opset<=14,dtype=float32"; cases that
            need more are skipped. Several must all hold.
        trust: whether the pack's checksums are not verified.
        jobs: the number of processes that work at the same time.
        executor: "processes" of this machine, or "dask".
        scheduler: the address of a Dask cluster; "" starts one here.
        xfails: a file of known failures, as in `rnncli verify --xfails`.
        allow_refused: whether refusing a valid case is not a failure.
        allow_missing: whether a case without results is not a failure.
        exitfirst: whether the run ends at the first failure.
        min_cases: the number of cases that must be answered for the run to pass.
        pack_digest: the required beginning of the pack's digest, 12 digits or more.
        shard: "i/n": every n-th case, starting with the i-th.
        shuffle: the seed for the order of the cases; None for the pack's order.
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
    options = {name: value for name, value in locals().items() if name != "progress"}
    return _judged(_verification_plan("verify", **options), progress)


def diagnose(
    pack: str | Path,
    function: Function | None = None,
    *,
    runtime: str | None = None,
    backend: str | None = None,
    results: str | Path | None = None,
    command: str | None = None,
    harness: str | None = None,
    runtime_option: Mapping[str, str] | None = None,
    compute: str = "float64",
    threads: int = 1,
    timeout: float = 60.0,
    max_memory: int | None = None,
    weights: str = "",
    profile: str = "",
    atol: Limit | None = None,
    rtol: Limit | None = None,
    max_ulp: Limit | None = None,
    select: str = "",
    require: str | Sequence[str] = (),
    trust: bool = False,
    jobs: int = 1,
    executor: str = "processes",
    scheduler: str = "",
    progress: Progress | None = None,
) -> DiagnosisReport:
    """Name the bug that explains an implementation's wrong outputs.

    Args:
        pack: a folder that `generate` wrote.
        function: as in `verify`, like all other arguments.
        runtime: the name of a runtime.
        backend: the name of a backend of rnncli.
        results: outputs computed elsewhere.
        command: a program and its arguments.
        harness: a program that speaks the harness protocol, and its arguments.
        runtime_option: the runtime's settings.
        compute: a backend's arithmetic: "float64" or "native".
        threads: the number of threads a runtime or backend may use.
        timeout: seconds per case.
        max_memory: limit on memory, bytes; None for no limit.
        weights: "constants" or "inputs".
        profile: a profile whose tolerances replace the pack's.
        atol: an absolute tolerance that replaces the pack's.
        rtol: a relative tolerance that replaces the pack's.
        max_ulp: a tolerance in units in the last place that replaces the pack's.
        select: an expression that selects cases.
        require: the implementation's capabilities; cases that need more are skipped.
        trust: whether the pack's checksums are not verified.
        jobs: the number of processes that work at the same time.
        executor: "processes" of this machine, or "dask".
        scheduler: the address of a Dask cluster; "" starts one here.
        progress: as in `verify`.

    Returns:
        The report: its `diagnosis` has the causes and the failures that no known bug explains. It
        has `passed` if no output is wrong and at least one case was answered.

    Raises:
        rnncli.errors.InvalidRequest: a wrong pack or option.
        rnncli.errors.NothingSelected: no case is left to judge.
        rnncli.errors.Unsupported: the runtime or an extra is not installed.
    """
    options = {name: value for name, value in locals().items() if name != "progress"}
    plan = _verification_plan("diagnose", **options, diagnose=True)
    from rnncli.verifying.diagnosis_report import diagnosis_report

    return diagnosis_report(_judged(plan, progress), plan)


def score(
    suite: str | Path,
    *,
    select: str = "",
    atol: Limit | None = None,
    rtol: Limit | None = None,
    onnx: bool = False,
    min_score: float | None = None,
    min_structural: float | None = None,
    jobs: int = 1,
    executor: str = "processes",
    scheduler: str = "",
    progress: Progress | None = None,
) -> ScoreReport:
    """Score vectors by the bugs they catch.

    Args:
        suite: a pack's folder, a suite's YAML file, or the name of one that ships with rnncli.
        select: an expression that selects cases, as in `rnncli score -k` has it.
        atol: an absolute tolerance for mutants; a number for all outputs, or by output.
        rtol: the same, relative to the expected value.
        onnx: judge by ONNX's own tolerances, rtol 1e-3 and atol 1e-7.
        min_score: the percentage of semantic mutants that must be killed for the score to pass.
        min_structural: the same for structural mutants.
        jobs: the number of processes that work at the same time.
        executor: "processes" of this machine, or "dask".
        scheduler: the address of a Dask cluster; "" starts one here.
        progress: called with the number of scored cases, the number of all cases, and "".

    Returns:
        The report: `report.matrix` says for every vector which mutants it kills.

    Raises:
        rnncli.errors.InvalidRequest: a wrong suite, pack or option.
        rnncli.errors.NothingSelected: no case is selected, or none can be scored.
        rnncli.errors.Unsupported: an extra that the suite needs is not installed.
    """
    _begin(("rnncli.scoring.scoring", "numpy.random"), jobs=jobs, executor=executor)
    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.scoring.report import ScoreReport
    from rnncli.scoring.scoring import ONNX_RULE, ScoringPlan, score_all
    from rnncli.scoring.scoring import select as select_cases

    given = Tolerance.given(atol, rtol)
    if onnx and given:
        raise InvalidRequest(f"--onnx and {Rule('', given).text} exclude each other")
    plan = ScoringPlan(
        suite=str(suite),
        selection=select,
        rule=ONNX_RULE if onnx else Rule("", given),
        jobs=jobs,
        executor=executor,
        scheduler=scheduler,
    )
    selected = select_cases(plan)
    done = _CaseCount(len(selected.outputs), progress)
    return ScoreReport(score_all(plan, selected, done.add), min_score, min_structural)


def _verification_plan(
    name: str,
    pack: str | Path,
    function: Function | None,
    *,
    require: str | Sequence[str],
    xfails: str | Path | None = None,
    allow_refused: bool = False,
    allow_missing: bool = False,
    exitfirst: bool = False,
    pack_digest: str = "",
    shard: str = "1/1",
    shuffle: int | None = None,
    diagnose: bool,
    **options: Any,
) -> VerificationPlan:
    """Return the plan for options of `verify`: the only place where options become a plan.

    The command's name goes into the command line that repeats the run.
    """
    workers = {each: options.pop(each) for each in ("jobs", "executor", "scheduler")}
    least = {each: options[each] for each in ("threads", "min_cases") if each in options}
    _begin(
        ("rnncli.verifying.case_judging",),
        jobs=workers["jobs"],
        executor=workers["executor"],
        **least,
    )
    from rnncli.judging.comparing.requirements import Requirements
    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.comparing.verdict import Verdict
    from rnncli.judging.comparing.xfails import Xfails, read_xfails
    from rnncli.judging.tolerances.tolerance import Tolerance
    from rnncli.subjects.subject_spec import LIMITS, NAMED, SubjectSpec
    from rnncli.verifying.case_judging import JudgingTerms
    from rnncli.verifying.verification import Shard, VerificationPlan

    if function is not None and (workers["jobs"], workers["executor"]) != (1, "processes"):
        raise InvalidRequest("--jobs is not for a function, which runs in this process")
    if options["weights"]:
        _place_of(options["weights"])
    subject = SubjectSpec.chosen(
        {kind: str(options.pop(kind) or "") for kind in NAMED},
        function,
        settings=dict(options.pop("runtime_option") or {}),
        **{each: options.pop(each) for each in LIMITS},
    )
    rule = Rule(
        options.pop("profile"),
        Tolerance.given(*(options.pop(each) for each in ("atol", "rtol", "max_ulp"))),
    )
    allowed = {Verdict.REFUSED: allow_refused, Verdict.MISSING: allow_missing}
    order = [] if shuffle is None else ["--shuffle", f"{shuffle}"]
    words = ["rnncli", name, str(pack), *subject.options, *rule.options, *order]
    return VerificationPlan(
        pack=Path(pack),
        terms=JudgingTerms(
            subject,
            rule,
            read_xfails(Path(xfails)) if xfails else Xfails(),
            allowed=frozenset(verdict for verdict, is_allowed in allowed.items() if is_allowed),
            stop_at_failure=exitfirst,
            diagnoses=diagnose,
        ),
        selection=options.pop("select"),
        shard=Shard.parse(shard),
        requirements=Requirements.parse([require] if isinstance(require, str) else require),
        digest=_digest(pack_digest, trust=options["trust"]),
        shuffle=shuffle,
        command="" if function else shlex.join(words),
        **workers,
        **options,
    )


def _digest(text: str, *, trust: bool) -> str:
    if text and not re.fullmatch("[0-9a-fA-F]{12,64}", text):
        raise InvalidRequest(f"--pack-digest {text}: expected 12 to 64 hexadecimal digits")
    if text and trust:
        raise InvalidRequest("--trust leaves unchecked what --pack-digest covers")
    return text


def _judged(plan: VerificationPlan, progress: Progress | None) -> VerificationReport:
    from rnncli.verifying.verification import judge_all, select

    selected = select(plan)
    done = _CaseCount(len(selected.ids), progress)
    verdicts: Counter[str] = Counter()

    def count(verdict: CaseVerdict) -> None:
        verdicts[verdict.verdict] += 1
        done.add(1, ", ".join(f"{number} {name}" for name, number in verdicts.items()))

    with _TURN:
        return judge_all(plan, selected, count)


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


def _begin(modules: Sequence[str], *, jobs: int, executor: str, **numbers: int | None) -> None:
    """Check numbers and names, and let workers start to import modules.

    Args:
        modules: the modules that workers need.
        jobs: the number of workers.
        executor: the kind of workers.
        numbers: other options; None if not given.

    Raises:
        InvalidRequest: a number is too small, or the executor is unknown.
    """
    from rnncli.executors.table import EXECUTORS

    for name, number in {"jobs": jobs, **numbers}.items():
        if number is not None and number < LEAST[name]:
            raise InvalidRequest(
                f"--{name.replace('_', '-')} {number}: expected a number >= {LEAST[name]}"
            )
    _one_of("executor", executor, EXECUTORS)
    if jobs > 1 and executor == "processes":
        from rnncli.executors.processes import prepare

        prepare(*modules)


def _place_of(weights: str) -> str:
    """Return what records call a place of weights."""
    from rnncli.cases.suite.keys import PLACES_OF_WEIGHTS

    return PLACES_OF_WEIGHTS[_one_of("weights", weights, PLACES_OF_WEIGHTS)]


def _one_of(name: str, value: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    if value not in known:
        raise InvalidRequest(f"--{name} {value}: expected one of {', '.join(known)}")
    return value
