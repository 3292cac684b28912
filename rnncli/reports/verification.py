"""The output of `rnncli verify`, counts and a block per failure, and of `rnncli diagnose`."""

from __future__ import annotations

import pkgutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rnncli.errors import InvalidRequest
from rnncli.files.described import as_data
from rnncli.judging.comparing.verdict import MEANINGS, Verdict
from rnncli.judging.explaining.hypotheses import edit_of, sentence_of
from rnncli.judging.explaining.patterns import MOST_SHOWN
from rnncli.recurrence.readings import PRESETS, READINGS
from rnncli.reports.failures import FailureGroup, excerpt, failure_groups, foreign, untried
from rnncli.reports.screen import TerminalRows
from rnncli.reports.tables import draw_table, drawn, is_drawn, print_json_line, print_table
from rnncli.reports.verification_schema import CASE_NAMES, RunLine, TallyLine
from rnncli.talk.terminal import say, say_text, show_text
from rnncli.talk.words import counted, listed, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.figure import Figure

    from rnncli.judging.explaining.diagnosis import Cause, Diagnosis
    from rnncli.judging.report import JudgedCase, Tally, VerificationReport
    from rnncli.verifying.verification import DiagnosisReport, UndiagnosedFailures

COLUMNS = ("by", "name", "cases", *MEANINGS, "expected", "allowed", "fails", "worst margin")
CAUSES = (
    *("cell", "bug", "explains", "of", "predicts", "refuted by", "worst margin", "as well"),
    *("where", "contradicted by", "means"),
)
# The beginning of reasons from `--require`; the reasons of one case are separated by semicolons.
REQUIRES = "requires "
MOST_NAMED = 8
# Reasons for skipped cases that a terminal shows.
MOST_REASONS = 3
# Columns of a table on a terminal that stay even if zero everywhere.
ALWAYS = {"name", "cases", Verdict.PASS, "worst margin"}


# Kind of file -> its writer, imported on use.
WRITERS = {
    "junit": "rnncli.reports.ci:write_junit",
    "markdown": "rnncli.reports.ci:write_markdown",
    "html": "rnncli.reports.html:write_html",
    "plot": "rnncli.reports.plots:write_plot",
    "save_xfails": "rnncli.reports.ci:write_xfails",
}


def show_report(
    report: VerificationReport, *, as_json: bool = False, verbose: bool = False
) -> None:
    """Print a report: data to stdout; failures and the counts in words to stderr."""
    if as_json:
        print_cases(report)
        if report.diagnosis is not None:
            for record in diagnosis_records(report.diagnosis):
                print_json_line(record)
        print_json_line(summary_record(report))

    screen = TerminalRows(verbose=verbose)
    last = closing(report, MOST_REASONS if screen.width else sys.maxsize)
    screen.take(last)
    below = []  # the causes with their edits, on a terminal in a half of its rows
    if report.diagnosis is not None:
        found = [*diagnosed_edits(report.diagnosis)]
        blocks = [[line, *(f"    {each}" for each in edit if is_drawn())] for line, edit in found]
        below = screen.fitted(blocks, [line for line, _ in found], _more_causes, screen.rows // 2)
    if not as_json:
        lines = _failure_lines(report, screen, verbose=verbose)
        if not is_drawn():  # where both streams are one, what failed is not above a long table
            _show_counts(report, screen, verbose=verbose)
            sys.stdout.flush()
        for line in lines:
            say_text(line)
        if is_drawn():
            _show_counts(report, screen, verbose=verbose)
    sys.stdout.flush()
    for line in below:
        say_text(line)
    colour = "green" if report.passed else "red" if report.exit_code == 1 else "yellow"
    for sentence in last:
        say(sentence, colour if sentence.startswith(report.title) else "")


def print_cases(report: VerificationReport) -> None:
    """Print the lines of JSON on a run and its cases, as far as they were judged."""
    print_json_line(run_record(report))
    for case in report.cases:
        print_json_line(case_record(report, case))


def _more_causes(_: int) -> str:
    return "-v shows every cause and what it edits in a kernel"


def _failure_lines(report: VerificationReport, screen: TerminalRows, *, verbose: bool) -> list[str]:
    """Return a block of lines for each cause of failures, or for each case that fails."""
    groups = failure_groups(report)
    if verbose:
        groups = [FailureGroup([case]) for case in report.cases if case.details.fails]

    def rest(shown: int) -> str:
        left = sum(len(group.cases) for group in groups[shown:])
        others = f"{counted(left, 'more case fails', 'more cases fail')}; " if left else ""
        return f"{others}-v shows every case, as do --json, --html and --junit"

    blocks = [[*group.block(report)] for group in groups]
    return screen.fitted(blocks, [group.line(report) for group in groups], rest)


def _show_counts(report: VerificationReport, screen: TerminalRows, *, verbose: bool) -> None:
    """Print one table in a pipe; on a terminal that of operators or relations that has room."""
    if not is_drawn():
        operators = [_row("operator", tally) for tally in report.by_operator]
        features = [_row(report.flag_noun, tally) for tally in report.by_flag]
        print_table(COLUMNS, [*operators, *features, _row("all", report.total)])
        return
    tables = {"operator": report.by_operator, report.flag_noun: report.by_flag}
    by = "operator" if report.verb == "verify" else report.flag_noun
    for name, tallies in tables.items():
        if not tallies or not (verbose or (name == by and screen.has_table(len(tallies)))):
            continue
        # Without columns that are zero everywhere, and with zeros left blank.
        rows = [dict(zip(COLUMNS, _row(name, tally), strict=True)) for tally in tallies]
        columns = [each for each in COLUMNS[1:] if each in ALWAYS or any(row[each] for row in rows)]
        heading = [name if each == "name" else each for each in columns]
        draw_table(heading, [[drawn(row[each]) for each in columns] for row in rows])


def plot(report: VerificationReport, cases: Sequence[str] = ()) -> Figure:
    """Return the plot of a verification; see `plots.plot_verification`."""
    from rnncli.reports.pages import PLOT_NEEDS, check_extra

    check_extra("a plot", PLOT_NEEDS)
    from rnncli.reports.plots import plot_verification

    return plot_verification(report, cases)


def write_reports(
    report: Any, files: Mapping[str, str | None], writers: Mapping[str, str] = WRITERS
) -> None:
    """Write a report to files by kind, a key of `writers`; "" or None is no file.

    Raises:
        rnncli.errors.InvalidRequest: a file cannot be written.
        rnncli.errors.Unsupported: the extra `report` is not installed; `check_reports` finds that
            before the judging.
    """
    for kind, path in files.items():
        if path:
            pkgutil.resolve_name(writers[kind])(Path(path), report)


def check_reports(files: Mapping[str, str | None]) -> None:
    """Check that reports can be written: their folders exist and their packages are installed.

    Raises:
        rnncli.errors.InvalidRequest: a folder is missing.
        rnncli.errors.Unsupported: the extra `report` is not installed.
    """
    for path in filter(None, files.values()):
        if not Path(path).parent.is_dir():
            raise InvalidRequest(f"cannot write {path}: there is no folder {Path(path).parent}")
    if files.get("html"):
        from rnncli.reports.pages import check_extra

        check_extra()
    if plot := files.get("plot"):
        from rnncli.reports.pages import check_plot

        check_plot(plot)


def closing(report: VerificationReport, most: int = sys.maxsize) -> list[str]:
    """Return readings of acceptable cases, reasons for skipped ones, then a line with all counts.

    Of more reasons than `most` the others are counted. A line before the counts gives requirements
    that would skip refused cases; lines after them report errors that lean one way, too few
    answered cases, and last whether the implementation conforms to its claim.
    """
    verdicts = (case.details for case in report.cases)
    readings = Counter(each.reading for each in verdicts if each.verdict is Verdict.ACCEPTABLE)
    lines = []
    for reading, count in readings.most_common():
        name, _, choice = reading.partition("=")
        line = f"acceptable {count}: as {reading} has it"
        if name == "preset" and choice in PRESETS:
            whose = f" ({READINGS[name].meanings[choice]})" if PRESETS[choice] else ""
            line += f"{whose}: --reading {reading} judges by that"
        lines.append(line)
    reasons = [*skips(report)]
    more = len(reasons) - most
    lines += reasons[:most] if more > 1 else reasons
    lines += [f"skipped for {more} more reasons; -v shows them"] * (more > 1)
    lines += filter(None, [untried(report)])
    total = report.total
    cases = counted(total.cases, "case")
    known = f" ({total.answered} answered)" if total.answered != total.cases else ""
    last = f"{report.title}: {cases}{known} in {report.seconds:.3g} s"
    sole = sole_cause(report)
    named = f"; what differs fits {sole}" if sole else ""
    whole = f"{last}: {total.summary}. {outcome(total)}{named}" if total.cases else last
    rest = (*biased_sentences(report), report.shortfall, foreign(report), report.conformance)
    return [*lines, whole, *filter(None, rest)]


def sole_cause(report: VerificationReport) -> str:
    """Return the one known bug or reading that all failing cases that differ fit, or ""."""
    failing = [case.details for case in report.cases if case.details.fails]
    differing = [each for each in failing if each.verdict is Verdict.DIFFERS]
    found: list[set[str]] = [{*each.fits} if not each.against else set() for each in differing]
    if report.diagnosis:
        causes = (report.diagnosis.cause_of(each.id) for each in differing)
        found = [{c.hypothesis, *c.indistinguishable} if c else set() for c in causes]
    shared = set.intersection(*found) if found else set()
    return shared.pop() if len(shared) == 1 else ""


def biased_sentences(report: VerificationReport) -> Iterator[str]:
    """Yield a sentence for each dtype whose errors lean one way within all tolerances."""
    fails = f": fails, since --max-bias is {report.max_bias}" if report.max_bias else ""
    yield from (f"{bias.sentence}{fails}" for bias in report.excesses)


def skips(report: VerificationReport) -> Iterator[str]:
    """Yield the reasons for skipped cases, most frequent first; a case may have several."""
    messages = (case.details.message for case in report.cases if case.verdict is Verdict.SKIPPED)
    cases: Counter[str] = Counter()
    have: dict[str, Counter[str]] = {}
    for message in messages:
        for why in message.split("; ") if message.startswith(REQUIRES) else [message]:
            reason, _, has = why.partition(", has ")
            cases[reason] += 1
            have.setdefault(reason, Counter()).update(filter(None, has.split(", ")))
    for reason, count in cases.most_common():
        found = have[reason]
        named = ", ".join([*found][:MOST_NAMED])
        more = ", ..." * (len(found) > MOST_NAMED)
        has = f", has {named}{more}" if named else ""
        yield f"skipped {count}: {visible(excerpt(f'{reason}{has}'))}"


def outcome(total: Tally) -> str:
    """Return the number of failing cases, of expected failures and of allowed verdicts."""
    fails = counted(total.fails, "fails", "fail") if total.fails else "None fails"
    joined = "; {} more {} expected to" if total.fails else " but {} that {} expected to"
    were = "was" if total.expected == 1 else "were"
    known = joined.format(total.expected, were) if total.expected else ""
    allowed = f"; {total.allowed} allowed: {total.allowances}" if total.allowed else ""
    return f"{fails}{known}{allowed}"


def _row(by: str, tally: Tally) -> tuple[Any, ...]:
    counts = (tally.cases, *tally.counts.values(), tally.expected, tally.allowed, tally.fails)
    return by, visible(tally.name), *counts, tally.margin


def run_record(report: VerificationReport) -> dict[str, Any]:
    """Return the first line of JSON: the subject, the pack and the rule."""
    entries = {name: getattr(report, name) for name in RunLine.__struct_fields__ if name != "kind"}
    known = {name: value for name, value in entries.items() if value is not msgspec.UNSET}
    return {"kind": "run", **known, "shard": str(report.shard)}


def case_record(report: VerificationReport, case: JudgedCase) -> dict[str, Any]:
    """Return the line of JSON for a case."""
    return {
        "kind": "case",
        **as_data(case.details),
        "margin": case.margin,
        "fails": case.details.fails,
        "answered": case.is_answered,
        **{name: getattr(case.record, name) for name in CASE_NAMES},
        **({} if case.relation is None else {"relation": case.relation}),
        "cause": cause_in(report.diagnosis, case.id),
        "repeat": report.repeat(case.details),
    }


def cause_in(diagnosis: Diagnosis | None, case_id: str) -> str:
    """Return the hypothesis that explains a case, or ""."""
    cause = diagnosis and diagnosis.cause_of(case_id)
    return cause.hypothesis if cause else ""


def summary_record(report: VerificationReport) -> dict[str, Any]:
    """Return the last line of JSON: the counts."""
    return {
        "kind": "summary",
        **_tally_record(report.total),
        "operators": {tally.name: _tally_record(tally) for tally in report.by_operator},
        "flags": {tally.name: _tally_record(tally) for tally in report.by_flag},
        "wall_seconds": report.seconds,
        "shortfall": report.shortfall,
        **({"biases": [as_data(each) for each in biases]} if (biases := report.biases) else {}),
    }


def _tally_record(tally: Tally) -> dict[str, Any]:
    verdicts = {str(verdict): count for verdict, count in tally.counts.items()}
    others = {name: getattr(tally, name) for name in TallyLine.__struct_fields__[2:]}
    return {"cases": tally.cases, "verdicts": verdicts, **others}


def show_diagnosis(report: DiagnosisReport, *, as_json: bool, verbose: bool = False) -> None:
    """Print the causes, the unanswered cases, and the failures that no bug is sought for.

    Causes are sentences on a terminal, a table in a pipe, and JSON lines if asked.
    """
    diagnosis, total = report.diagnosis, report.verification.total
    below = []
    if total.answered < total.cases or not total.fails:
        below.append(answered_sentence(report.verification))
    for failures in report.undiagnosed:
        below += undiagnosed_sentences(failures)
    if as_json:
        for record in diagnosis_records(diagnosis):
            print_json_line(record)
    else:
        cases = {case.id: case.details for case in report.verification.cases}
        names = diagnosis.unexplained[:1]
        repeats = [f"repeat {name}: {report.verification.repeat(cases[name])}" for name in names]
        below = [*_unexplained(diagnosis), *repeats, *below]
    screen = TerminalRows(verbose=verbose)
    screen.take(below)
    if is_drawn() and not as_json:
        blocks = [
            [
                sentence_of_causes(causes),
                f"  {sentence_of(name)}",
                *(f"    {line}" for line in edit_of(name)),
            ]
            for name, causes in diagnosis.by_hypothesis.items()
        ]
        lines = [f"{first}.{means[1:]}" for first, means, *_ in blocks]
        for line in screen.fitted(blocks, lines, _more_causes):
            show_text(one_line(line))
    elif diagnosis.causes and not as_json:
        rows = [
            (
                *(cause.cell, cause.hypothesis, len(cause.explains), cause.of),
                *(cause.predicts, len(cause.refuted), cause.margin, cause.others or None),
                *(cause.where or None, len(cause.contradicted), sentence_of(cause.hypothesis)),
            )
            for cause in diagnosis.causes
        ]
        print_table(CAUSES, rows)
    sys.stdout.flush()
    for sentence in below:
        say(sentence)


def sentence_of_causes(causes: Sequence[Cause]) -> str:
    """Return what a hypothesis explains in each cell, in one line."""
    first, *others = causes
    if not others:
        return first.sentence
    parts = []
    for each in causes:
        facts = (
            each.others and f"as does {each.others}",
            each.where,
            f"contradicted by {listed(each.contradicted, 1)}" * bool(each.contradicted),
        )
        told = "; ".join(filter(None, facts))
        parts.append(f"{len(each.explains)} of {each.of} of {each.cell}{told and f' ({told})'}")
    seen = sum(each.predicts + len(each.refuted) for each in causes)
    passes = f", and predicts {sum(each.predicts for each in causes)} of {seen} passes"
    return f"{first.hypothesis} explains failures: {', '.join(parts)}{passes if seen else ''}"


def answered_sentence(report: VerificationReport) -> str:
    """Return how many cases were answered, and how."""
    total = report.total
    return f"{total.answered} of {counted(total.cases, 'case')} answered: {total.summary}"


def undiagnosed_sentences(failures: UndiagnosedFailures) -> Iterator[str]:
    """Yield the cases that no bug is sought for, with explanations, problems and patterns."""
    after = {
        each.id: f" after {listed(each.after, 1)}" * bool(each.after) for each in failures.verdicts
    }
    yield f"{failures.title}: {listed([f'{name}{cause}' for name, cause in after.items()], 1)}"
    kept = Counter(name for verdict in failures.verdicts for name in verdict.fits)
    for name, count in kept.most_common(MOST_SHOWN):
        yield f"{name} fits {count} of these {len(failures.verdicts)}: {sentence_of(name)}"
    outputs = (output for verdict in failures.verdicts for output in verdict.outputs)
    problems = Counter(f"{each.name}: {each.problem}" for each in outputs if each.problem)
    for problem, count in problems.most_common(MOST_SHOWN):
        yield visible(f"{excerpt(problem)}, in {counted(count, 'case')}")
    for pattern in failures.patterns:
        yield f"a pattern, no proof: {pattern.sentence}"


def diagnosis_records(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    """Yield JSON lines for each cause, doubt and pattern, then one for the unexplained."""
    for cause in diagnosis.causes:
        yield {
            "kind": "cause",
            **as_data(cause),
            "sentence": cause.sentence,
            "means": sentence_of(cause.hypothesis),
        }
    for doubt in diagnosis.doubts:
        yield {"kind": "doubt", **as_data(doubt), "sentence": doubt.doubt}
    for pattern in diagnosis.patterns:
        yield {"kind": "pattern", **pattern.record()}
    yield {"kind": "unexplained", "cases": list(diagnosis.unexplained)}


def diagnosis_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield a line for each cause, then the failures that no known bug explains."""
    yield from (sentence for sentence, _ in diagnosed_edits(diagnosis))


def diagnosed_edits(diagnosis: Diagnosis) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield those lines, each with the lines of the edit of a kernel that the cause is."""
    for name, causes in diagnosis.by_hypothesis.items():
        yield f"{sentence_of_causes(causes)}. {sentence_of(name)}", edit_of(name)
    yield from ((sentence, ()) for sentence in _unexplained(diagnosis))


def _unexplained(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the failures that no known bug explains, with patterns; or a line if there are none."""
    if diagnosis.unexplained:
        rest = "the rest: " if diagnosis.causes else ""
        yield f"no known bug explains {rest}{diagnosis.left}"
        yield from (f"a pattern, no proof: {each.sentence}" for each in diagnosis.patterns)
        likely = [each for each in diagnosis.doubts if 1 < len(each.explains) >= each.of / 2]
        yield from (f"doubtful: {each.doubt}" for each in likely[:MOST_SHOWN])
    elif not diagnosis.causes:
        yield "no case to compare with known bugs"
