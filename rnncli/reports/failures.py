"""Sentences about failing cases, for terminals, JUnit files and pages."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.judging.comparing.verdict import FAILURES, RIGHT, Verdict
from rnncli.numerics import dtype_named
from rnncli.packs.vector import STEPS
from rnncli.talk.words import (
    counted,
    index_text,
    listed,
    marked,
    one_line,
    times,
    up_to,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.judging.comparing.comparison import OutputComparison
    from rnncli.judging.comparing.requirements import Requirements, Term
    from rnncli.judging.comparing.verdict import CaseVerdict, OutputVerdict
    from rnncli.judging.report import JudgedCase, VerificationReport
    from rnncli.packs.record import CaseRecord


# Failures whose only content is the reason that nothing was computed.
UNTRIED = frozenset({Verdict.REFUSED, Verdict.MISSING})
# Failures that no message explains, but what differs or could not.
COMPARED = frozenset({Verdict.DIFFERS, Verdict.UNEXERCISED})
# Reasons are similar if this many first words agree.
WORDS_ALIKE = 16
# The number of ids listed for cases that are reported together.
MOST_NAMED = 4
# The parts in which similar reasons may differ: operators, versions, places in a source.
_VARYING = re.compile(r"\[with [^]]*\]|\S*(?:/|::)\S*|\w+:\w\S*|\b(?:RNN|GRU|LSTM)\b|[0-9]+")
# Fields of which each value is a feature of its own.
ALONE = frozenset({"attributes", "inputs", "outputs"})
# The largest probability by chance of a feature that all failures have and no passing case, and of
# one that a part of them has.
CHANCE, CHANCE_OF_A_PART = 0.02, 0.001
# An implementation may print megabytes before it dies; the beginning says why.
LONGEST_MESSAGE = 2000
MOST_LINES = 20
# Verdicts for which flags are informative: other cases have no outputs, or are right alone.
NOTED = FAILURES - {Verdict.REFUSED, Verdict.MISSING, Verdict.STALE, Verdict.UNEXERCISED}


def sentences(report: VerificationReport, case: JudgedCase) -> Iterator[str]:
    """Yield the sentences about a case: the error, its place and size, and how to repeat it."""
    lines = (*reasons(case), *diagnosed(report, case), *notes(report, case))
    yield from map(marked, (*lines, f"repeat: {report.repeat(case.details)}"))


class FailureGroup(NamedTuple):
    """Failing cases that have one cause: a bug that fits them all, a reason, a broken relation."""

    cases: Sequence[JudgedCase]  # in the pack's order
    # hypotheses that give the outputs of each; () if none does, or nothing is wrong by value
    fits: Sequence[str] = ()
    # what each has and no case that passes; None if nothing is known to be
    apart: Term | None = None

    @property
    def example(self) -> JudgedCase:
        """The smallest case, which is the shortest to repeat."""
        return min(self.cases, key=lambda case: math.prod(case.record.sizes.values()))

    @property
    def title(self) -> str:
        """The id of a single case, or the number of cases by operator."""
        if len(self.cases) == 1:
            return self.cases[0].id
        operators = Counter(case.operator_type for case in self.cases)
        by = ", ".join(f"{count} {name}" for name, count in operators.most_common())
        alone = f" of {name}" if len(operators) == 1 and (name := next(iter(operators))) else ""
        has = f" with {self.apart.field} {' or '.join(self.apart.values)}" if self.apart else ""
        return f"{len(self.cases)} cases{f' ({by})' if len(operators) > 1 else alone}{has}"

    def cause(self, report: VerificationReport) -> str:
        """Return what the cases have in common, in one sentence."""
        case, verdict = self.example, self.example.details
        if report.diagnosis and (
            report.diagnosis.cause_of(case.id) or report.diagnosis.doubt_of(case.id, self.fits)
        ):
            lines = diagnosed(report, case)
        elif self.fits:
            from rnncli.judging.explaining.hypotheses import naming

            against = max(each.details.against for each in self.cases)
            lines = iter([naming(self.fits, against)])
        elif verdict.right_with:
            lines = iter([unoptimised(verdict.right_with)])
        elif case.relation and len(self.cases) > 1 and verdict.verdict in COMPARED:
            lines = notes(report, case)
        elif verdict.message or verdict.expected or verdict.lacks_wrong_values:
            alike = len({each.details.message for each in self.cases}) > 1
            lines = (f"{line}{' (and alike)' * alike}" for line in reasons(case))
        elif len(self.cases) > 1:
            lines = iter([f"{verdict.verdict}: no known bug was found"])
        else:
            lines = reasons(case)
        return marked(next(lines))

    def sentences(self, report: VerificationReport) -> Iterator[str]:
        """Yield the sentences about a case, or of many the cause, an example and the ids."""
        if len(self.cases) == 1:
            yield from sentences(report, self.cases[0])
            return
        example, cause = self.example, self.cause(report)
        yield cause
        wrong = [each for each in example.details.outputs if each.verdict is Verdict.DIFFERS]
        line = next(reasons(example))
        if wrong and not example.details.message:
            worst = max(wrong, key=lambda output: output.margin)
            line = output_sentence(worst, example.record.dtype)
        if not cause.startswith(marked(line)):
            yield marked(f"{example.id}: {line}")
        place = example.details.localisation
        if place and not self.fits:
            yield marked(place.sentence)
        if not (example.relation or example.details.message or self.fits):
            yield from map(marked, notes(report, example, self.cases))
        if self.apart:
            from rnncli.judging.comparing.requirements import Requirements

            needs = Requirements((self.apart,))
            yield _left_out(report, "them and no case that passes", needs)
        yield marked(f"repeat {example.id}: {report.repeat(example.details)}")
        others = [case.id for case in self.cases if case is not example]
        yield marked(f"others: {listed(others, MOST_NAMED)}")

    def block(self, report: VerificationReport) -> Iterator[str]:
        """Yield the group as lines: its title, and the sentences indented."""
        yield f"FAIL {one_line(self.title)}"
        for sentence in self.sentences(report):
            yield "  " + sentence.replace("\n", "\n    ")

    def line(self, report: VerificationReport) -> str:
        """Return the group in one line, with its smallest case if that ran."""
        is_named = len(self.cases) == 1 or self.example.verdict in UNTRIED
        more = "" if is_named else f", such as {self.example.id}"
        return one_line(f"FAIL {self.title}{more}: {self.cause(report)}")


def failure_groups(report: VerificationReport) -> list[FailureGroup]:
    """Return the failing cases by cause: those with outputs first, then the most cases first.

    Cases that differ are together if one bug fits them all, first the bug that fits the most.
    Of those that no bug fits, what no passing case has sets some apart.
    """
    fitting: list[JudgedCase] = []
    groups: dict[Any, list[JudgedCase]] = {}
    for case in [case for case in report.cases if case.details.fails]:
        if (key := _cause_of(report, case)) is None:
            fitting.append(case)
        else:
            groups.setdefault(key, []).append(case)
    right = [case.record for case in report.cases if case.verdict in RIGHT]
    found = []
    for (kind, *_), cases in groups.items():
        if right and report.verb == "verify" and kind in FAILURES - UNTRIED:
            found += _set_apart(cases, right)
        else:
            found.append(FailureGroup(cases))
    while fitting:
        counts = Counter(name for case in fitting for name in case.details.fits)
        name = max(counts, key=counts.__getitem__)
        cases = [case for case in fitting if name in case.details.fits]
        same = [e for e in cases[0].details.fits if all(e in case.details.fits for case in cases)]
        found.append(FailureGroup(cases, same))
        fitting = [case for case in fitting if name not in case.details.fits]
    order = {case.id: k for k, case in enumerate(report.cases)}
    found.sort(key=lambda each: order[each.cases[0].id])
    return sorted(found, key=lambda each: (each.cases[0].verdict in UNTRIED, -len(each.cases)))


def _set_apart(cases: Sequence[JudgedCase], right: Sequence[CaseRecord]) -> list[FailureGroup]:
    """Divide failing cases by the features that none of the right cases has, unless by chance.

    That failing cases drawn at random were these is unlikely for a feature of all of them, and more
    so for one of a part, of which there are many to choose from.
    """
    from rnncli.judging.comparing.requirements import leaving_out

    found, left, every = [], [*cases], len(cases) + len(right)
    for term in leaving_out([case.record for case in cases], right).terms:
        alone = [(value,) for value in term.values]
        for values in alone if term.field in ALONE else [term.values]:
            apart = replace(term, values=values)
            having = [case for case in cases if apart.reason(case.record)]
            chance = math.comb(len(cases), len(having)) / math.comb(every, len(having))
            chosen = [case for case in left if case in having]
            if chosen and chance <= (CHANCE if having == [*cases] else CHANCE_OF_A_PART):
                left = [case for case in left if case not in chosen]
                found.append(FailureGroup(chosen, apart=apart))
    return [*found, FailureGroup(left)] if left else found


def _cause_of(report: VerificationReport, case: JudgedCase) -> tuple[Any, ...] | None:
    """Return what else fails for the same cause has, too; None if bugs that fit decide."""
    verdict = case.details
    if cause := report.diagnosis and report.diagnosis.cause_of(case.id):
        return ("cause", cause.hypothesis)
    if verdict.verdict not in FAILURES:
        return ("expected", verdict.expected)
    if verdict.fits:
        return None
    if verdict.verdict in COMPARED:
        problems = [_VARYING.sub("", each.problem) for each in verdict.outputs if each.problem]
        return (verdict.verdict, case.relation, verdict.right_with, *problems[:1])
    return (verdict.verdict, *_VARYING.sub("", verdict.message).split()[:WORDS_ALIKE])


def refused_groups(report: VerificationReport) -> list[FailureGroup]:
    """Return the refused cases that fail, grouped by reason, the largest group first."""
    groups = failure_groups(report)
    return [each for each in groups if each.cases[0].verdict is Verdict.REFUSED]


def refusals(report: VerificationReport) -> Iterator[str]:
    """Yield the reasons of refused cases, most frequent first, and what would skip those cases."""
    for group in refused_groups(report):
        message = excerpt(group.cases[0].details.message) or "no message"
        yield marked(f"refused {len(group.cases)}: {message}")
    if needs := untried(report):
        yield needs


def untried(report: VerificationReport) -> str:
    """Return the requirements that would skip the refused cases, or leave them out of a claim."""
    from rnncli.judging.comparing.requirements import Requirements, leaving_out

    refused = [
        case.record
        for case in report.cases
        if case.details.fails and case.verdict is Verdict.REFUSED
    ]
    kept = [case.record for case in report.cases if case.is_answered]
    needs = leaving_out(refused, kept) if kept else Requirements()
    count = sum(bool(needs.reason(record)) for record in refused)
    if not count:
        return ""
    of = "the" if count == len(refused) else f"{count} of the"
    return _left_out(report, f"{of} {counted(len(refused), 'refused case')}", needs)


def _left_out(report: VerificationReport, cases: str, needs: Requirements) -> str:
    """Return what skips some cases, or leaves them out of a claim."""
    if report.claim:
        return visible(f"to leave {cases} out of the claim: require {needs.expression}")
    return visible(f"to skip {cases}: --require {shlex.quote(needs.expression)}")


def foreign(report: VerificationReport) -> str:
    """Return that an implementation takes no operator of a pack's dialect, and what it may take."""
    from rnncli.operators import OPERATORS

    names = {case.operator for case in report.cases}
    dialects = {OPERATORS[name].dialect if name in OPERATORS else "" for name in names}
    if len(dialects) != 1 or any(case.verdict is not Verdict.REFUSED for case in report.cases):
        return ""
    (dialect,) = dialects
    if dialect in {"", "ONNX"}:
        return ""
    return (
        f"every case is refused, and all are of {dialect}: what takes ONNX models is judged by"
        " `core` or `tiles`; `rnncli list` names the packs"
    )


def sentences_of(case: JudgedCase) -> tuple[str, ...]:
    """Return the error of a case, its place and size, and the known bugs that give its outputs."""
    return tuple(map(marked, (*reasons(case), *fitting(case.details))))


def reasons(case: JudgedCase) -> Iterator[str]:
    """Yield what is wrong with a case or why it is not simply right, and for which later call."""
    verdict = case.details
    place = f"test_data_set_{verdict.data_set}: " if verdict.data_set else ""
    if verdict.allowed:
        yield f"{place}allowed by {verdict.allowed}"
    if verdict.expected:
        known = "expected to fail:" if verdict.verdict in FAILURES else "passes now;"
        yield f"{place}{known} {verdict.expected}"
    if verdict.verdict is Verdict.ACCEPTABLE:
        yield f"{place}acceptable: answers as {verdict.reading} has it"
    elif verdict.verdict is Verdict.ACCEPTED:
        yield f"{place}accepted, although invalid: {excerpt(verdict.message)}"
    elif message := excerpt(verdict.message):
        yield f"{place}{verdict.verdict}: {message}"
    elif verdict.verdict in FAILURES and not verdict.outputs:
        yield f"{place}{verdict.verdict}: no message"
    yield from (f"{place}{line}" for line in located(verdict, case.record.dtype))


def located(verdict: CaseVerdict, dtype: str) -> Iterator[str]:
    """Yield how wrong the outputs of a case are, and where that begins."""
    for output in verdict.outputs:
        if output.verdict is Verdict.DIFFERS:
            yield output_sentence(output, dtype)
    if verdict.localisation:
        yield verdict.localisation.sentence
    if verdict.right_with:
        yield unoptimised(verdict.right_with)


def unoptimised(right_with: str) -> str:
    """Return the sentence about what is right without a runtime's optimisations."""
    return f"right with --runtime-option {right_with}: its graph optimisations are what fails"


def diagnosed(report: VerificationReport, case: JudgedCase) -> Iterator[str]:
    """Yield the cause of a differing case: from the diagnosis of the run, or fitting this case."""
    if case.verdict is Verdict.STALE:
        yield from fitting(case.details)
    if case.verdict is not Verdict.DIFFERS:
        return
    cause = report.diagnosis.cause_of(case.id) if report.diagnosis else None
    if cause is not None:
        from rnncli.judging.explaining.hypotheses import sentence_of

        yield f"diagnosis: {cause.hypothesis}: {sentence_of(cause.hypothesis)}"
    elif doubt := report.diagnosis and report.diagnosis.doubt_of(case.id, case.details.fits):
        from rnncli.judging.explaining.hypotheses import sentence_of

        yield f"doubtful: {doubt.doubt}: {sentence_of(doubt.hypothesis)}"
    elif case.details.fits:
        yield from fitting(case.details)
    elif report.diagnosis is not None and case.id in report.diagnosis.unexplained:
        yield "diagnosis: no known bug gives these outputs"
    elif report.diagnosis is not None:
        # One output of a first call is wrong, and another cannot be compared.
        problems = any(output.problem for output in case.details.outputs)
        if problems and not (case.details.lacks_wrong_values or case.details.data_set):
            yield "diagnosis: none, since not every output can be compared with those of known bugs"


def fitting(verdict: CaseVerdict) -> Iterator[str]:
    """Yield the known bugs that produce the outputs of a differing case."""
    if verdict.fits:
        from rnncli.judging.explaining.hypotheses import naming

        yield naming(verdict.fits, verdict.against)


def is_explained(report: VerificationReport, case: JudgedCase) -> bool:
    """Whether a diagnosis names the cause of a case, or only a few known bugs fit it, undoubted."""
    if report.diagnosis and report.diagnosis.cause_of(case.id):
        return True
    if report.diagnosis and report.diagnosis.doubt_of(case.id, case.details.fits):
        return False
    from rnncli.judging.explaining.hypotheses import MOST_FITS_NAMED

    return 0 < len(case.details.fits) <= MOST_FITS_NAMED and not case.details.against


def notes(
    report: VerificationReport, case: JudgedCase, alike: Sequence[JudgedCase] = ()
) -> Iterator[str]:
    """Yield what a failed case tests for, unless more is known or nothing ran.

    That is what its flags find that no passing case of its operator has, whatever the version. Of a
    single case all flags of which pass elsewhere, it is what the case is.

    Args:
        report: the run.
        case: the case.
        alike: the cases that fail with it, all of which have those flags.
    """
    if case.relation and case.verdict in FAILURES:
        finds = report.pack.notes.get(case.relation, "not explained by the pack")
        yield f"asked: {case.record.summary} (finds: {finds})"
    elif case.verdict in NOTED and not is_explained(report, case):
        # An output that is missing or of another shape, or a signal that is wrong where the outputs
        # are right, has nothing to do with what the case tests for.
        wrong = [each for each in case.details.outputs if each.verdict is Verdict.DIFFERS]
        if wrong and all(each.problem or each.name.startswith(f"{STEPS}/") for each in wrong):
            return
        sound = report.sound_flags.get(case.operator_type, set())
        flags = [flag for flag in case.record.flags if flag not in sound]
        for flag in flags:
            if all(flag in each.record.flags for each in alike):
                note = report.pack.notes.get(flag, "not explained by the pack")
                yield f"tests for {flag}: {note}"
        if case.record.flags and case.record.summary and not (flags or alike):
            yield f"the case: {case.record.summary}"


def output_sentence(output: OutputVerdict, dtype: str) -> str:
    """Return the sentence about an output that differs."""
    if output.problem or output.worst is None:
        return f"{output.name}: {excerpt(output.problem) or output.verdict}"
    allowed = f"+- {output.worst.tolerance:.3g}" if output.worst.tolerance else "exactly"
    factor = f" ({times(output.margin)} tolerance)" if math.isfinite(output.margin) else ""
    return f"{differing(output, dtype)} {allowed}{factor}"


def differing(output: OutputVerdict | OutputComparison, dtype: str) -> str:
    """Return how many elements of an output differ, and the worst one, but not its tolerance."""
    from rnncli.judging.comparing.comparison import UNNAMED  # a run that judges nothing needs none

    assert output.worst
    got, wanted = map(dtype_named(dtype).text, (output.worst.got, output.worst.wanted))
    sides = getattr(output, "sides", UNNAMED)
    return (
        f"{output.name}: {output.differing} of {output.size} differ{up_to(output.max_ulp)},"
        f" worst at {index_text(output.worst.index)}: {sides.told(got, wanted)}"
    )


def excerpt(message: str) -> str:
    """Return the beginning of an implementation's message."""
    whole = message.strip()
    kept = "\n".join(whole[:LONGEST_MESSAGE].splitlines()[:MOST_LINES])
    more = len(whole) - len(kept)
    return f"{kept} ... and {more} more characters" if more > 0 else kept
