"""Conformance vectors as pytest items: a plug-in, and a decorator for a user's own test function.

    @rnncli.pytest.vectors("core", cases=Selected(require="operator=LSTM-14"))
    def test_lstm(vector):
        return my_lstm(**vector.inputs)

    pytest --rnncli=vectors/core --rnncli-subject=my_package.kernels:lstm

The function takes a vector and returns outputs, which are judged as in `rnncli verify`. It refuses
a case by raising NotImplementedError, ValueError or an rnncli error; any other exception is an
error of the test.
"""

from __future__ import annotations

import functools
import inspect
import os
import pkgutil
import shlex
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.selected import EVERY_CASE, Selected
from rnncli.options import asking, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.comparing.xfails import Xfails
    from rnncli.judging.report import JudgedCase
    from rnncli.packs.pack import Pack
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector

# The properties of a test's report that hold the verdict, and the folder of the case's pack.
VERDICT, IS_ANSWERED, PACK = "rnncli_verdict", "rnncli_answered", "rnncli_pack"
# That of a failure: the known bugs that give the outputs, with spaces between them.
BUGS = "rnncli_bugs"
# The exit status of a run in which no case of a pack was answered, as for `rnncli verify`.
NOTHING_ANSWERED = 5

# Why pytest must not be started so: it runs code and takes options from folders of tests.
BY_SPACE = (
    "after a space, pytest takes PACK for a folder of tests, and runs what a stranger has put there"
)
IN_PACK = (
    "pytest's own folder, {root}, lies in the pack, and pytest runs what a stranger has put there;"
    " start it elsewhere"
)
BY_NAME = "pytest runs this file, since the name of its folder begins with 'test'; rename the pack"


def selected_cases(
    pack: str | Path,
    rule: Rule,
    cases: Selected,
    xfails: str | Path = "",
    *,
    allow_refused: bool = False,
    trust: bool = False,
    beside: Path,
) -> Iterator[SelectedCase]:
    """Yield the selected cases; the other arguments are those of `vectors`.

    Paths may be relative to the folder `beside`, besides the working folder.

    Warns:
        rnncli.errors.RnncliWarning: a known failure matches no case of the pack, or every case.
    """
    from rnncli.errors import RnncliWarning
    from rnncli.judging.comparing.xfails import Xfails, read_xfails
    from rnncli.verifying.case_judging import shuffled
    from rnncli.verifying.verification import whole_pack

    whole = whole_pack(_resolved(pack, beside), trust=trust)
    part, requirements = cases.part, cases.requirements
    known = read_xfails(_resolved(xfails, beside)) if xfails else Xfails()
    for sentence in known.doubts(record.id for record in whole.manifest.cases):
        warnings.warn(sentence, RnncliWarning, stacklevel=2)
    records = {each.id: each for each in whole.select(cases.select)}
    for case_id in shuffled([*records][part.number - 1 :: part.of], cases.shuffle):
        record = records[case_id]
        yield SelectedCase(whole, record, requirements.reason(record), known, rule, allow_refused)


class SelectedCase(NamedTuple):
    """A case to run, unless `skipped` says why not, with the rules for judging it."""

    pack: Pack
    record: CaseRecord
    skipped: str
    xfails: Xfails
    rule: Any
    allow_refused: bool

    def judged(self, function: Callable[[Vector], Any]) -> JudgedCase:
        """Run a function on each data set in turn, and judge its outputs.

        For a case that must be refused, a valid case of the same kind runs as well: if that fails,
        a refusal shows nothing, and the case counts as skipped.
        """
        from rnncli.judging.explaining.hypotheses import explained
        from rnncli.judging.judgement import judge_session
        from rnncli.judging.report import JudgedCase
        from rnncli.subjects.function import FunctionSubject
        from rnncli.verifying.case_judging import session_calls_of
        from rnncli.verifying.probes import failing_probes, without_idle_refusals

        subject = FunctionSubject(function, raises=True)
        session = session_calls_of(subject, self.rule.declared(self.pack.read(self.record)))
        found = JudgedCase(self.record, explained(judge_session(session, self.rule)))
        if self.record.expect == "rejection":
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
        from rnncli.api.conformance import Judgement
        from rnncli.judging.comparing.verdict import FAILURES, JudgedAttempt, Verdict

        verdict, text = found.verdict, str(Judgement(self.record, JudgedAttempt(found)))
        if found.fits:  # first, as the line of a summary is cut, and has the id already
            first, *others = found.fits
            more = f" or {len(others)} more" * bool(others)
            text = text.replace(f"{found.id}: {verdict}", f"{first}{more}: {verdict}", 1)
        if expected := self.xfails.reason(found.id, verdict):
            if verdict in FAILURES:
                pytest.xfail(f"{verdict}: {expected}")
            pytest.fail(f"passes now; {expected}", pytrace=False)
        if verdict is Verdict.REFUSED and self.allow_refused:
            pytest.xfail(f"refused, which is allowed: {found.message}")
        if verdict in FAILURES:
            pytest.fail(text, pytrace=False)
        if verdict is Verdict.SKIPPED:
            pytest.skip(found.message)


def _resolved(path: str | Path, beside: Path) -> Path:
    """Return a path relative to the working folder or to another one, or an installed pack."""
    from rnncli.packs.pack import find_pack

    if not Path(path).exists() and (beside / path).exists():
        return beside / path
    return find_pack(path)


@asking({"cases=Selected({}=...)": Selected, "rule=Rule({}=...)": Rule})
def vectors(
    pack: str | Path,
    *,
    rule: Rule = PACK_RULE,
    cases: Selected = EVERY_CASE,
    xfails: str | Path = "",
    allow_refused: bool = False,
    trust: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to make a test of each case of a pack and judge its outputs.

    Args:
        pack: a folder that `rnncli generate` wrote; relative to the working folder, or else to the
            test's file.
        rule: the tolerances.
        cases: which cases; those that need more than the function can do are skipped.
        xfails: a file of known failures, as in `rnncli verify --xfails`.
        allow_refused: whether refusing a valid case is not a failure.
        trust: whether checksums are not verified.

    Returns:
        A decorator. The function takes `vector` and may take fixtures; it returns arrays by name,
        or a list of them in the order of `vector.record.outputs`.

    Raises:
        rnncli.errors.RnncliError: not a pack, an incomplete pack, or a wrong option.
    """
    from rnncli.errors import RnncliError

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
        here = Path(inspect.getfile(function)).parent
        given_cases = selected_cases(
            pack, rule, cases, xfails, allow_refused=allow_refused, trust=trust, beside=here
        )
        try:
            parameters = [
                pytest.param(
                    case,
                    id=str(case.record.id),
                    marks=[pytest.mark.skip(reason=case.skipped)] if case.skipped else [],
                )
                for case in given_cases
            ]
        except RnncliError as error:  # whose sentence says all: pytest shows no frames of ours
            raise error.with_traceback(None) from None
        test: Callable[..., Any] = pytest.mark.parametrize("vector", parameters)(judged)
        return test

    return decorate


def _judged(item: pytest.Item, case: SelectedCase, function: Callable[[Vector], Any]) -> None:
    """Judge a case and record the verdict in its test's report.

    Raises:
        pytest.fail.Exception: it fails, or the function ends the session with any exit code.
    """
    try:
        found = case.judged(function)
    except pytest.exit.Exception as error:
        pytest.fail(f"the function ends the session: {error}", pytrace=False)
    item.user_properties += [
        (VERDICT, f"{found.verdict}"),
        (IS_ANSWERED, found.is_answered),
        (BUGS, " ".join(found.details.fits)),
    ]
    case.conclude(found.details)


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
        "require": ("EXPR", texts_of(Selected)["require"]),
        "select": ("EXPR", texts_of(Selected)["select"]),
        "xfails": ("FILE", "File of known failures, as in `rnncli verify --xfails`."),
        "profile": ("NAME", texts_of(Rule)["profile"]),
    }
    for name, (metavar, text) in options.items():
        group.addoption(f"--rnncli-{name}", default="", metavar=metavar, help=text)
    for name, text in {
        "allow-refused": "Do not fail if it refuses valid cases.",
        "trust": "Do not compare the pack's files with their checksums.",
    }.items():
        group.addoption(f"--rnncli-{name}", action="store_true", help=text)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Refuse a pack that pytest takes for a folder of tests, before it runs what lies there.

    Raises:
        pytest.UsageError: it is named after a space, or holds pytest's root, or has a name by which
            pytest finds a conftest.py.
    """
    words = shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    if "--rnncli" in (*words, *early_config.invocation_params.args):
        raise pytest.UsageError(f"write --rnncli=PACK: {BY_SPACE}")
    for pack in _packs(early_config.known_args_namespace.rnncli):
        root = early_config.rootpath
        if root.resolve().is_relative_to(pack.resolve()):
            raise pytest.UsageError(f"--rnncli={pack}: {IN_PACK.format(root=root)}")
        if pack.name.startswith("test") and (pack / "conftest.py").exists():
            raise pytest.UsageError(f"{pack / 'conftest.py'}: {BY_NAME}")
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Collect the packs, in addition to the paths on the command line if there are any.

    Raises:
        pytest.UsageError: an option of ours lacks another.
    """
    config.pluginmanager.register(AnswerCount(), "rnncli answers")
    if not config.getoption("--rnncli"):
        given = [n for n, told in vars(config.option).items() if n.startswith("rnncli_") and told]
        for name in given:
            raise pytest.UsageError(f"--{name.replace('_', '-')} needs --rnncli=PACK")
        return
    if not config.getoption("--rnncli-subject"):
        raise pytest.UsageError("--rnncli needs --rnncli-subject MODULE:FUNCTION")
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []


def _packs(named: Sequence[str]) -> list[Path]:
    """Return the folders that --rnncli names, written as pytest writes those that it visits.

    The name of an installed pack stands for its folder.
    """
    if not named:  # of most runs of pytest
        return []
    from rnncli.packs.pack import find_pack

    folders = map(find_pack, dict.fromkeys(named))
    return [Path(os.path.normpath(folder.absolute())) for folder in folders]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Look for no tests in a pack that lies in a folder of tests."""
    return collection_path in _packs(config.getoption("--rnncli")) or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the named packs to what the session collects: as paths they would be run as tests are."""
    report = yield
    if isinstance(collector, pytest.Session) and report.passed:
        for pack in _packs(collector.config.getoption("--rnncli")):
            # A folder beside or above pytest's root has no name relative to it.
            name = Path(os.path.relpath(pack, collector.config.rootpath)).as_posix()
            found = PackCollector.from_parent(collector, name=pack.name, path=pack, nodeid=name)
            report.result.append(found)
    return report


class PackCollector(pytest.Collector):
    """The cases of a pack; not a `pytest.Directory`, whose conftest.py pytest runs."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each case.

        Raises:
            pytest.Collector.CollectError: the pack, the function or an option is wrong.
        """
        from rnncli.errors import RnncliError

        def told(name: str) -> Any:
            return self.config.getoption(f"--rnncli-{name}")

        try:
            found = selected_cases(
                self.path,
                Rule(profile=told("profile")),
                Selected(select=told("select"), require=told("require")),
                told("xfails"),
                allow_refused=told("allow-refused"),
                trust=told("trust"),
                beside=self.config.rootpath,
            )
            cases = [*found]
            function = _subject(self.config)
        except (RnncliError, ImportError, AttributeError, ValueError) as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            item = CaseItem.from_parent(
                self, name=str(case.record.id), case=case, function=function
            )
            yield item


def _subject(config: pytest.Config) -> Any:
    """Import the function of --rnncli-subject, also from the folder that pytest was started in."""
    here = str(config.invocation_params.dir)
    if here not in sys.path:  # `python -m pytest` has put it there, the script `pytest` has not
        sys.path.append(here)  # last: its other files take no module's place
    from rnncli.errors import InvalidRequest, did_you_mean

    asked = config.getoption("--rnncli-subject")
    try:
        return pkgutil.resolve_name(asked)
    except AttributeError as error:
        module, _, name = asked.partition(":")
        found = vars(sys.modules[module]) if module in sys.modules else {}
        functions = [each for each, value in found.items() if callable(value)]
        raise InvalidRequest(
            f"--rnncli-subject {asked}: {error}{did_you_mean(name, functions)}"
        ) from error


class CaseItem(pytest.Item):
    """A case to run with the function of --rnncli-subject."""

    def __init__(
        self, *, case: SelectedCase, function: Callable[[Vector], Any], **rest: Any
    ) -> None:
        super().__init__(**rest)
        self.case, self.function = case, function
        self.extra_keyword_matches.update(case.record.flags)
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
    case = item.case if isinstance(item, CaseItem) else parameters.get("vector")
    if isinstance(case, SelectedCase):
        item.user_properties += [(PACK, str(case.pack.folder)), (IS_ANSWERED, False)]


class AnswerCount:
    """Counts of answered and unanswered cases of a run, by pack, and of failures by cause."""

    def __init__(self) -> None:
        self._asked: dict[str, Counter[bool]] = {}
        self._failed: list[list[str]] = []  # of each failure its known bugs, or else what it is

    @property
    def _void(self) -> dict[str, int]:
        """The packs of which no case was answered, with the number of cases that were asked."""
        counts = self._asked.items()
        return {pack: asked[False] for pack, asked in counts if asked[False] and not asked[True]}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case when its test begins, and an answer, in the process that reports.

        `--setup-only` and `--setup-plan` call no test, so that none is answered.
        """
        known = dict(report.user_properties)
        if PACK in known:
            counts = self._asked.setdefault(str(known[PACK]), Counter())
            counts[False] += report.when == "setup"
            counts[True] += report.when == "call" and bool(known[IS_ANSWERED])
            if VERDICT in known and report.failed:
                from rnncli.judging.comparing.verdict import FAILURES

                verdict = str(known[VERDICT])
                cause = verdict if verdict in FAILURES else "right although known to fail"
                self._failed.append(str(known[BUGS]).split() or [cause])
                if crash := getattr(report.longrepr, "reprcrash", None):  # of the summary's line
                    crash.message = crash.message.removeprefix("Failed: ")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a run in which no case of a pack was answered, since it would show nothing of it."""
        if not exitstatus and self._void:
            session.exitstatus = NOTHING_ANSWERED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the causes of failures, and the reason that a run without answers fails."""
        from rnncli.talk.words import counted, visible

        causes, left = [], self._failed
        while left:
            cause, count = Counter(name for names in left for name in names).most_common(1)[0]
            causes.append(f"{count} {cause}")
            left = [names for names in left if cause not in names]
        if causes:
            terminalreporter.write_line(f"rnncli: failures by cause: {', '.join(causes)}", red=True)
        for pack, count in self._void.items():
            cases = f"{counted(count, 'case')} of {visible(pack)}"
            terminalreporter.write_line(f"rnncli: none of {cases} was answered", red=True)
