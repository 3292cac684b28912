"""Conformance vectors as pytest items: a plug-in, and a decorator for a user's own test function.

    @rnncli.pytest.vectors("vectors/core", require="operator=LSTM-14,dtype=float32")
    def test_lstm(vector):
        return my_lstm(**vector.inputs)

    pytest --rnncli vectors/core --rnncli-subject my_package.kernels:lstm

The function gets a vector and returns outputs, which are judged as `rnncli verify` judges them. It
refuses a case by NotImplementedError, ValueError or an error of rnncli; anything else that it
raises is an error of the test.
"""

from __future__ import annotations

import functools
import inspect
import os
import pkgutil
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

# The properties of a test's report that say how its case was judged.
VERDICT, IS_ANSWERED = "rnncli_verdict", "rnncli_answered"
# What ends a run in which no case was answered, as `rnncli verify` does.
NOTHING_ANSWERED = 5


class CaseSelection(NamedTuple):
    """Which cases of a pack are asked, and how they are judged.

    Attributes:
        pack: a folder that `rnncli generate` wrote.
        require: what the function can do, as `rnncli verify --require` has it; others are skipped.
        select: an expression as of `rnncli verify -k`; "" for all cases.
        xfails: a file of known failures, as of `rnncli verify --xfails`; "" for none.
        profile: whose tolerances judge instead of the pack's; "" for the pack's.
        allow_refused: whether refusing a valid case is no failure.
        trust: whether checksums are left unchecked.
    """

    pack: str | Path
    require: str = ""
    select: str = ""
    xfails: str | Path = ""
    profile: str = ""
    allow_refused: bool = False
    trust: bool = False

    def cases(self, beside: Path) -> Iterator[AskedCase]:
        """Yield the selected cases.

        Args:
            beside: a folder that paths may be relative to, where they are not to this process's.

        Raises:
            rnncli.errors.RnncliError: no pack, one that is not whole, or an option that is wrong.
        """
        from rnncli.judging.comparing.requirements import Requirements
        from rnncli.judging.comparing.rule import Rule
        from rnncli.judging.comparing.xfails import Xfails, read_xfails
        from rnncli.verifying.verification import whole_pack

        pack = whole_pack(_found(self.pack, beside), trust=self.trust)
        requirements = Requirements.parse([self.require] if self.require else [])
        xfails = read_xfails(_found(self.xfails, beside)) if self.xfails else Xfails()
        rule = Rule(self.profile)
        for record in pack.select(self.select):
            yield AskedCase(
                pack, record, requirements.reason(record), xfails, rule, self.allow_refused
            )


class AskedCase(NamedTuple):
    """One case to ask.

    Attributes:
        pack: that holds it.
        record: what the manifest says of it.
        skipped: why it is not asked, or "".
        xfails: what is known to fail.
        rule: by which tolerances.
        allow_refused: whether refusing it is no failure.
    """

    pack: Pack
    record: Mapping[str, Any]
    skipped: str
    xfails: Xfails
    rule: Any
    allow_refused: bool

    def judged(self, function: Callable[[Vector], Any]) -> JudgedCase:
        """Ask a function, each data set in turn, and judge what it returns.

        Of a case that must be refused a valid one of its kind is asked, too: where that fails, a
        refusal shows nothing, and the case counts as skipped.
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
        """End the test of a case as its verdict wants it; one that is right goes on.

        Raises:
            pytest.fail.Exception: it fails; the text is that of `rnncli verify`.
            pytest.xfail.Exception: it fails as expected, or is refused, which is allowed.
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


def _found(path: str | Path, beside: Path) -> Path:
    """Return a path as it is from here, or else from another folder."""
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
    """Make a test of each case of a pack: the decorated function's outputs are judged.

    Args:
        pack: a folder that `rnncli generate` wrote; relative to the working folder, or else to the
            test's file.
        require: what the function can do, such as `opset<=14,dtype=float32`; others are skipped.
        select: an expression as of `rnncli verify -k`; "" for all cases.
        xfails: a file of known failures, as of `rnncli verify --xfails`.
        profile: whose tolerances judge instead of the pack's.
        allow_refused: whether refusing a valid case is no failure.
        trust: whether checksums are left unchecked.

    Returns:
        A decorator. The function takes `vector` and may take fixtures; it returns arrays by name,
        or a list of them in the order of `vector.record["outputs"]`.

    Raises:
        rnncli.errors.RnncliError: no pack, one that is not whole, or an option that is wrong.
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
        def judged(*args: Any, vector: AskedCase, request: Any, **fixtures: Any) -> None:
            if "request" in signature.parameters:
                fixtures["request"] = request
            call = functools.partial(function, *args, **fixtures)
            _judged(request.node, vector, lambda each: call(vector=each))

        judged.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        cases = [_parameter(case) for case in asked.cases(Path(inspect.getfile(function)).parent)]
        test: Callable[..., Any] = pytest.mark.parametrize("vector", cases)(judged)
        return test

    return decorate


def _parameter(case: AskedCase) -> Any:
    marks = [pytest.mark.skip(reason=case.skipped)] if case.skipped else []
    return pytest.param(case, id=case.record["id"], marks=marks)


def _judged(item: pytest.Item, case: AskedCase, function: Callable[[Vector], Any]) -> None:
    """Judge a case, and let the report of its test know the verdict."""
    found = case.judged(function)
    item.user_properties += [
        (VERDICT, f"{found.verdict.verdict}"),
        (IS_ANSWERED, found.is_answered),
    ]
    case.conclude(found.verdict)


# The plug-in: options, the items of packs, and what is said at the end.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --rnncli and its options."""
    group = parser.getgroup("rnncli", "conformance vectors of recurrent operators")
    group.addoption(
        "--rnncli", action="append", default=[], metavar="PACK", help="Judge by a pack of vectors."
    )
    options = {
        "subject": ("MODULE:FUNCTION", "What is judged: takes a vector, returns outputs by name."),
        "require": ("EXPR", "What it can do, as of `rnncli verify --require`; others are skipped."),
        "select": ("EXPR", "Only cases that EXPR selects, as of `rnncli verify -k`."),
        "xfails": ("FILE", "Known failures, as of `rnncli verify --xfails`."),
        "profile": ("NAME", "Judge by the tolerances of another profile than the pack's."),
    }
    for name, (metavar, text) in options.items():
        group.addoption(f"--rnncli-{name}", default="", metavar=metavar, help=text)
    for name, text in {
        "allow-refused": "Let it refuse valid cases.",
        "trust": "Do not check the pack's checksums first.",
    }.items():
        group.addoption(f"--rnncli-{name}", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Collect the packs beside what is named on the command line, or else nothing but them."""
    config.pluginmanager.register(AnswerCount(), "rnncli answers")
    packs = [str(Path(pack).absolute()) for pack in config.getoption("--rnncli")]
    if not packs:
        return
    if not config.getoption("--rnncli-subject"):
        raise pytest.UsageError("--rnncli needs --rnncli-subject MODULE:FUNCTION")
    from rnncli.packs.pack import is_pack

    for pack in packs:
        if not is_pack(pack):  # pytest would look for tests in it, and find none
            raise pytest.UsageError(f"--rnncli {pack}: not a pack of vectors: no manifest.json")
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    config.args = [*(config.args if is_named else ()), *packs]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take a pack that was named for a collection of cases."""
    named = (Path(pack).absolute() for pack in parent.config.getoption("--rnncli"))
    if path not in named:
        return None
    # A folder beside or above pytest's root has no name of its own there.
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
            function = pkgutil.resolve_name(self.config.getoption("--rnncli-subject"))
        except (RnncliError, ImportError, AttributeError, ValueError) as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            item = CaseItem.from_parent(self, name=case.record["id"], case=case, function=function)
            yield item


class CaseItem(pytest.Item):
    """One case, put to the function of --rnncli-subject."""

    def __init__(self, *, case: AskedCase, function: Callable[[Vector], Any], **rest: Any) -> None:
        super().__init__(**rest)
        self.case, self.function = case, function
        self.extra_keyword_matches.update(case.record["flags"])
        if case.skipped:
            self.add_marker(pytest.mark.skip(reason=case.skipped))

    def runtest(self) -> None:
        """Ask the function and judge what it returns."""
        _judged(self, self.case, self.function)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case is, and how reports call it."""
        return self.path, 0, f"{self.path.name}: {self.name}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the test of a case, so that its report tells even if it is skipped."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if isinstance(item, CaseItem) or isinstance(parameters.get("vector"), AskedCase):
        item.user_properties.append((IS_ANSWERED, False))


class AnswerCount:
    """How many cases of a run were answered, and how many were not."""

    def __init__(self) -> None:
        self._asked: Counter[bool] = Counter()

    @property
    def _is_void(self) -> bool:
        return bool(self._asked[False]) and not self._asked[True]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case when its test is over; in the process that reports."""
        is_last = report.when == "call" or (report.when == "setup" and not report.passed)
        answers = [bool(value) for name, value in report.user_properties if name == IS_ANSWERED]
        if is_last and answers:
            self._asked[answers[-1]] += 1

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Let a run of which no case was answered not end well: it would show nothing."""
        if not exitstatus and self._is_void:
            session.exitstatus = NOTHING_ANSWERED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say why such a run fails."""
        if self._is_void:
            count = self._asked[False]
            terminalreporter.write_line(f"rnncli: none of {count} cases was answered", red=True)
