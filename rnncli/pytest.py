"""Conformance vectors as pytest items: a plug-in, and a decorator for a user's own test function.

    @rnncli.pytest.vectors("vectors/core", require="operator=LSTM-14,dtype=float32")
    def test_lstm(vector):
        return my_lstm(**vector.inputs)

    pytest --rnncli vectors/core --rnncli-subject my_package.kernels:lstm

The function takes a vector and returns outputs, which are judged as in `rnncli verify`. It refuses
a case by raising NotImplementedError, ValueError or an rnncli error; any other exception is an
error of the test.
"""

from __future__ import annotations

import functools
import inspect
import os
import pkgutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.comparing.xfails import Xfails
    from rnncli.judging.report import JudgedCase
    from rnncli.packs.pack import Pack
    from rnncli.packs.vector import Vector

# The properties of a test's report that hold the verdict.
VERDICT, IS_ANSWERED = "rnncli_verdict", "rnncli_answered"
# The exit status of a run in which no case was answered, as for `rnncli verify`.
NOTHING_ANSWERED = 5


class CaseSelection(NamedTuple):
    """The selection of a pack's cases and the rules for judging them.

    Attributes:
        pack: a folder that `rnncli generate` wrote.
        require: the function's capabilities, as in `rnncli verify --require`; cases that need more
            are skipped.
        select: an expression as in `rnncli verify -k`; "" selects all cases.
        xfails: a file of known failures, as in `rnncli verify --xfails`; "" for none.
        profile: a profile whose tolerances replace the pack's; "" for the pack's own.
        allow_refused: whether refusing a valid case is not a failure.
        trust: whether checksums are not verified.
    """

    pack: str | Path
    require: str = ""
    select: str = ""
    xfails: str | Path = ""
    profile: str = ""
    allow_refused: bool = False
    trust: bool = False

    def cases(self, beside: Path) -> Iterator[SelectedCase]:
        """Yield the selected cases.

        Args:
            beside: a folder that paths may also be relative to, besides the working folder.

        Raises:
            rnncli.errors.RnncliError: not a pack, an incomplete pack, or a wrong option.
        """
        from rnncli.judging.comparing.requirements import Requirements
        from rnncli.judging.comparing.rule import Rule
        from rnncli.judging.comparing.xfails import Xfails, read_xfails
        from rnncli.verifying.verification import whole_pack

        pack = whole_pack(_resolved(self.pack, beside), trust=self.trust)
        requirements = Requirements.parse([self.require] if self.require else [])
        xfails = read_xfails(_resolved(self.xfails, beside)) if self.xfails else Xfails()
        rule = Rule(self.profile)
        for record in pack.select(self.select):
            yield SelectedCase(
                pack, record, requirements.reason(record), xfails, rule, self.allow_refused
            )


class SelectedCase(NamedTuple):
    """A case to run, with the rules for judging it.

    Attributes:
        pack: its pack.
        record: its record in the manifest.
        skipped: the reason that it is not run, or "".
        xfails: the known failures.
        rule: the tolerances.
        allow_refused: whether refusing it is not a failure.
    """

    pack: Pack
    record: Mapping[str, Any]
    skipped: str
    xfails: Xfails
    rule: Any
    allow_refused: bool

    def judged(self, function: Callable[[Vector], Any]) -> JudgedCase:
        """Run a function on each data set in turn, and judge its outputs.

        For a case that must be refused, a valid case of the same kind runs as well: if that fails,
        a refusal shows nothing, and the case counts as skipped.
        """
        from rnncli.judging.report import JudgedCase
        from rnncli.judging.session_calls import judge_session
        from rnncli.subjects.function import FunctionSubject
        from rnncli.verifying.history import session_calls_of
        from rnncli.verifying.probes import failing_probes, without_idle_refusals

        subject = FunctionSubject(function, raises=True)
        session = session_calls_of(subject, self.pack.read(self.record))
        found = JudgedCase(self.record, judge_session(session, self.rule))
        if self.record["expect"] == "rejection":
            probed = failing_probes(subject, [self.record], self.rule)
            (found,) = without_idle_refusals([found], probed)
        return found

    def conclude(self, found: CaseVerdict) -> None:
        """End the test of a case according to its verdict; return if the case is right.

        Raises:
            pytest.fail.Exception: the case fails; the text is that of `rnncli verify`.
            pytest.xfail.Exception: it fails as expected, or its refusal is allowed.
            pytest.skip.Exception: it cannot be judged.
        """
        from rnncli.conformance import judgement
        from rnncli.judging.comparing.verdict import FAILURES, Verdict

        verdict, text = found.verdict, str(judgement(self.record, found))
        if expected := self.xfails.reason(found.id, verdict):
            if verdict in FAILURES:
                pytest.xfail(f"{verdict}: {expected}")
            pytest.fail(f"{text}\n  although expected to fail: {expected}", pytrace=False)
        if verdict is Verdict.REFUSED and self.allow_refused:
            pytest.xfail(f"refused, which is allowed: {found.message}")
        if verdict in FAILURES:
            pytest.fail(text, pytrace=False)
        if verdict is Verdict.SKIPPED:
            pytest.skip(found.message)


def _resolved(path: str | Path, beside: Path) -> Path:
    """Return a path relative to the working folder, or else to another folder."""
    return Path(path) if Path(path).exists() else beside / path


def vectors(
    pack: str | Path,
    *,
    require: str = "",
    select: str = "",
    xfails: str | Path = "",
    profile: str = "",
    allow_refused: bool = False,
    trust: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to make a test of each case of a pack and judge its outputs.

    Args:
        pack: a folder that `rnncli generate` wrote; relative to the working folder, or else to the
            test's file.
        require: the function's capabilities, such as `opset<=14,dtype=float32`; cases that need
            more are skipped.
        select: an expression as in `rnncli verify -k`; "" selects all cases.
        xfails: a file of known failures, as in `rnncli verify --xfails`.
        profile: a profile whose tolerances replace the pack's.
        allow_refused: whether refusing a valid case is not a failure.
        trust: whether checksums are not verified.

    Returns:
        A decorator. The function takes `vector` and may take fixtures; it returns arrays by name,
        or a list of them in the order of `vector.record["outputs"]`.

    Raises:
        rnncli.errors.RnncliError: not a pack, an incomplete pack, or a wrong option.
    """
    asked = CaseSelection(pack, require, select, xfails, profile, allow_refused, trust)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        if "vector" not in signature.parameters:
            raise TypeError(f"{function.__name__}() must take `vector`")
        given = list(signature.parameters.values())
        if "request" not in signature.parameters:
            given.append(inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(function)
        def judged(*args: Any, vector: SelectedCase, request: Any, **fixtures: Any) -> None:
            if "request" in signature.parameters:
                fixtures["request"] = request
            call = functools.partial(function, *args, **fixtures)
            _judged(request.node, vector, lambda each: call(vector=each))

        judged.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        cases = [_parameter(case) for case in asked.cases(Path(inspect.getfile(function)).parent)]
        test: Callable[..., Any] = pytest.mark.parametrize("vector", cases)(judged)
        return test

    return decorate


def _parameter(case: SelectedCase) -> Any:
    marks = [pytest.mark.skip(reason=case.skipped)] if case.skipped else []
    return pytest.param(case, id=case.record["id"], marks=marks)


def _judged(item: pytest.Item, case: SelectedCase, function: Callable[[Vector], Any]) -> None:
    """Judge a case and record the verdict in its test's report."""
    found = case.judged(function)
    item.user_properties += [
        (VERDICT, f"{found.verdict.verdict}"),
        (IS_ANSWERED, found.is_answered),
    ]
    case.conclude(found.verdict)


# The plug-in: options, items of packs, and the summary at the end.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --rnncli and its options."""
    group = parser.getgroup("rnncli", "conformance vectors of recurrent operators")
    group.addoption(
        "--rnncli",
        action="append",
        default=[],
        metavar="PACK",
        help="Judge a function by a pack of vectors.",
    )
    options = {
        "subject": (
            "MODULE:FUNCTION",
            "The function to judge: takes a vector, returns outputs by name.",
        ),
        "require": (
            "EXPR",
            "Its capabilities, as in `rnncli verify --require`; other cases are skipped.",
        ),
        "select": ("EXPR", "Run only the cases that EXPR selects, as in `rnncli verify -k`."),
        "xfails": ("FILE", "File of known failures, as in `rnncli verify --xfails`."),
        "profile": ("NAME", "Judge by the tolerances of another profile than the pack's."),
    }
    for name, (metavar, text) in options.items():
        group.addoption(f"--rnncli-{name}", default="", metavar=metavar, help=text)
    for name, text in {
        "allow-refused": "Do not fail if it refuses valid cases.",
        "trust": "Do not check the pack's checksums first.",
    }.items():
        group.addoption(f"--rnncli-{name}", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Collect the packs, in addition to the paths on the command line if there are any."""
    config.pluginmanager.register(AnswerCount(), "rnncli answers")
    packs = _named_packs(config)
    if not packs:
        return
    if not config.getoption("--rnncli-subject"):
        raise pytest.UsageError("--rnncli needs --rnncli-subject MODULE:FUNCTION")
    from rnncli.errors import InvalidRequest
    from rnncli.packs.pack import is_pack

    for pack in packs:  # pytest would look for tests in a folder that is not a pack
        try:
            reason = "" if is_pack(pack) else f"{pack}: not a pack of vectors: no manifest.json"
        except InvalidRequest as error:
            reason = str(error)
        if reason:
            raise pytest.UsageError(f"--rnncli {reason}")
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    config.args = [*(config.args if is_named else ()), *packs]


def _named_packs(config: pytest.Config) -> list[str]:
    """Return the folders that --rnncli names, written as pytest writes those it collects."""
    return [os.path.normpath(Path(pack).absolute()) for pack in config.getoption("--rnncli")]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the cases of a pack named by an option."""
    if str(path) not in _named_packs(parent.config):
        return None
    # A folder beside or above pytest's root has no name relative to it.
    name = Path(os.path.relpath(path, parent.config.rootpath)).as_posix()
    return PackCollector.from_parent(parent, path=path, nodeid=name)


class PackCollector(pytest.Directory):
    """The cases of a pack."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each case.

        Raises:
            pytest.Collector.CollectError: the pack, the function or an option is wrong.
        """
        from rnncli.errors import RnncliError

        options = {
            name: self.config.getoption(f"--rnncli-{name.replace('_', '-')}")
            for name in CaseSelection._fields
            if name != "pack"
        }
        try:
            cases = [*CaseSelection(self.path, **options).cases(self.config.rootpath)]
            function = _subject(self.config)
        except (RnncliError, ImportError, AttributeError, ValueError) as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            item = CaseItem.from_parent(self, name=case.record["id"], case=case, function=function)
            yield item


def _subject(config: pytest.Config) -> Any:
    """Import the function of --rnncli-subject, also from the folder that pytest was started in."""
    here = str(config.invocation_params.dir)
    if here not in sys.path:  # `python -m pytest` has put it there, the script `pytest` has not
        sys.path.insert(0, here)
    return pkgutil.resolve_name(config.getoption("--rnncli-subject"))


class CaseItem(pytest.Item):
    """A case to run with the function of --rnncli-subject."""

    def __init__(
        self, *, case: SelectedCase, function: Callable[[Vector], Any], **rest: Any
    ) -> None:
        super().__init__(**rest)
        self.case, self.function = case, function
        self.extra_keyword_matches.update(case.record["flags"])
        if case.skipped:
            self.add_marker(pytest.mark.skip(reason=case.skipped))

    def runtest(self) -> None:
        """Run the function and judge its outputs."""
        _judged(self, self.case, self.function)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the case's path and its name in reports."""
        return self.path, 0, f"{self.path.name}: {self.name}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a case's test so that its report is recognised even if it is skipped."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if isinstance(item, CaseItem) or isinstance(parameters.get("vector"), SelectedCase):
        item.user_properties.append((IS_ANSWERED, False))


class AnswerCount:
    """Counts of answered and unanswered cases of a run."""

    def __init__(self) -> None:
        self._asked: Counter[bool] = Counter()

    @property
    def _is_void(self) -> bool:
        return bool(self._asked[False]) and not self._asked[True]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case when its test has finished, in the process that reports."""
        is_last = report.when == "call" or (report.when == "setup" and not report.passed)
        answers = [bool(value) for name, value in report.user_properties if name == IS_ANSWERED]
        if is_last and answers:
            self._asked[answers[-1]] += 1

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a run in which no case was answered, since it would show nothing."""
        if not exitstatus and self._is_void:
            session.exitstatus = NOTHING_ANSWERED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the reason that such a run fails."""
        if self._is_void:
            from rnncli.words import counted

            count = counted(self._asked[False], "case")
            terminalreporter.write_line(f"rnncli: none of {count} was answered", red=True)
