"""Packs of small suites, and their verification without a command."""

from support.small_suite import TEXT, small_suite

from rnncli.generating.generation import GenerationPlan, generate
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.comparing.xfails import Xfails, parse_xfails
from rnncli.subjects.implementation import Implementation
from rnncli.verifying.case_judging import JudgingTerms
from rnncli.verifying.verification import VerificationPlan, judge_all, select

NUMPY = Implementation(backend="numpy")


def generated(folder, text=TEXT):
    """The pack of a suite."""
    assert generate(GenerationPlan(suite=small_suite(text)), folder, lambda _: None).failed == ()
    return folder


def plan(pack, subject=NUMPY, rule=None, xfails="", **options):
    """A plan; options are those of the plan or of its terms."""
    names = ("allowed", "stop_at_failure", "diagnoses")
    terms = JudgingTerms(
        subject=subject,
        rule=rule or Rule(),
        xfails=parse_xfails(xfails, "xfails") if xfails else Xfails(),
        **{name: options.pop(name) for name in names if name in options},
    )
    return VerificationPlan(pack=pack, terms=terms, **options)


def verify(pack, subject=NUMPY, **options):
    """The report."""
    asked = plan(pack, subject, **options)
    return judge_all(asked, select(asked), lambda _: None)


def verdicts(report):
    """Verdict by id."""
    return {case.id: case.verdict for case in report.cases}
