"""Public bug reports: what models each, which case shows it, and the page that lists them.

    PYTHONPATH=tests python -m support.public_reports

writes docs/reports.md from docs/reports.yaml. A row names a mutant of `rnncli mutants`, or a
planted bug of the tuning half of `kernels`, or says why nothing models it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import yaml
from kernels.score import SOUND, verdict_of
from kernels.switch_table import BUGS, kernel_with
from support.judged import core

from rnncli.backends.backend import Compute
from rnncli.cases.library import find_suite
from rnncli.cases.suite.suite import load_suite
from rnncli.generating.production import make_vectors
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.scoring.adequacy import Fate, Trial, best_of, unscored
from rnncli.mutants.catalogue import mutant_named

DOCS = Path(__file__).parents[2] / "docs"
DATA, PAGE = DOCS / "reports.yaml", DOCS / "reports.md"
CORE = "core"


@dataclass(frozen=True, slots=True)
class Report:
    """One row.

    Attributes:
        report: the thread, `owner/name#number`.
        year: when it was opened; 0 if that could not be read.
        state: merged (a pull request), closed or open, when it was last read, or "not read".
        kind: what it is a bug of.
        operator: the operators it is about, separated by spaces.
        what: what was wrong.
        also: other threads on the same bug.
        mutant: the mutant that models it, or "".
        planted: the planted bug that models it, or "".
        unmodelled: why neither does, or "".
        case: `SUITE::ID` of a case that shows it, or "".
        fate: what becomes of the mutant there: killed, or acceptable as another reading.
        runtime: the runtime of `rnncli runtimes` that fails on the case today, or "".
    """

    report: str
    state: str
    kind: str
    operator: str
    what: str
    year: int = 0
    also: tuple[str, ...] = ()
    mutant: str = ""
    planted: str = ""
    unmodelled: str = ""
    case: str = ""
    fate: str = Fate.KILLED.value
    runtime: str = ""

    @property
    def suite(self):
        """The suite of the case, or ""."""
        return self.case.partition("::")[0]

    @property
    def case_id(self):
        """The id of the case, or ""."""
        return self.case.partition("::")[2]

    @property
    def caught(self):
        """By what, in the runtime or by its model: a suite's name, `as a reading`, or `nothing`."""
        if not self.case:
            return "nothing"
        return self.suite if self.fate == Fate.KILLED else "as a reading"


@cache
def reports():
    """Return the rows, in the order of the file."""
    rows = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return tuple(Report(**{**row, "also": tuple(row.get("also", ()))}) for row in rows)


@cache
def vector_of(case):
    """Return the vector of a case: core's own, of other suites with goldens in float64."""
    suite, _, case_id = case.partition("::")
    if suite == CORE:
        return core()[case_id]
    entry = replace(_suite(suite).entry(case_id), golden="float64")
    (vector,) = make_vectors([entry])
    if isinstance(vector, Exception):
        raise vector
    return vector


@cache
def _suite(name):
    return load_suite(find_suite(name))


def mutant_fate(mutant_id, vector):
    """Return what becomes of a mutant in a vector."""
    mutant = mutant_named(mutant_id)
    if mutant.equivalent_when(vector.recurrence):
        return Fate.EQUIVALENT
    session, calls = mutant.session(), [Trial(call, PACK_RULE) for call in vector.calls]
    order = vector.call_order[: getattr(mutant, "calls", 1)]
    outcomes = (calls[k].outcome(session(calls[k].recurrence, Compute.FLOAT64)) for k in order)
    return best_of(outcomes).fate


def cells_match(mutant_id, vector):
    """Whether a mutant is one of a vector's cell, and the vector says something of mutants."""
    cell = vector.recurrence.cell.name
    return not unscored(vector) and cell in mutant_named(mutant_id).cells


@cache
def killed_by_core(mutant_id):
    """Return the first case of core that kills a mutant, or ""."""
    cases = ((k, v) for k, v in core().items() if cells_match(mutant_id, v))
    return next((k for k, v in cases if mutant_fate(mutant_id, v) is Fate.KILLED), "")


@cache
def planted_session(bug_id):
    """Return a kernel with a planted bug that has run core, and the cases of core that failed."""
    session = kernel_with(BUGS[bug_id])
    return session, tuple(k for k, v in core().items() if fails(session, v))


def fails(session, vector):
    """Whether a kernel is wrong on a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return verdict_of(session, vector) not in SOUND


def planted_is_caught(bug_id, case):
    """Whether a case catches a planted bug: one of core in core's order, another one after core."""
    session, failed = planted_session(bug_id)
    suite, _, case_id = case.partition("::")
    return case_id in failed if suite == CORE else fails(session, vector_of(case))


def caught_by_core(row):
    """Return the first case of core that catches what models a row, or ""."""
    if row.mutant:
        return killed_by_core(row.mutant)
    return next(iter(planted_session(row.planted)[1]), "")


def project(report):
    """Return the name of a report's repository."""
    return report.report.partition("#")[0]


def counts(rows):
    """Return title -> counts, of the tables at the top of the page."""
    modelled = [row for row in rows if not row.unmodelled]
    return {
        "shown by": Counter(row.caught for row in modelled),
        "kind": Counter(row.kind for row in modelled),
        "repository": Counter(project(row) for row in modelled),
    }


def page(rows):
    """Return the text of docs/reports.md."""
    modelled = [row for row in rows if not row.unmodelled]
    left = [row for row in rows if row.unmodelled]
    threads = len({name for row in rows for name in (row.report, *row.also)})
    found = counts(rows)
    caught = found["shown by"]
    suites = sum(n for by, n in caught.items() if by not in {CORE, "nothing", "as a reading"})
    return "\n".join(
        [
            HEAD.format(
                rows=len(rows),
                threads=threads,
                projects=len({project(row) for row in rows}),
                modelled=len(modelled),
                core=caught[CORE],
                others=suites,
                readings=caught["as a reading"],
                nothing=caught["nothing"],
                caught=sum(bool(row.runtime) for row in rows),
                left=len(left),
            ),
            *_tally("shown by", found["shown by"]),
            "",
            *_tally("kind", found["kind"]),
            "",
            *_tally("repository", found["repository"]),
            "",
            "## Reports that are modelled",
            "",
            "| report | year | operators | what was wrong | bug | shown by |",
            "|---|---:|---|---|---|---|",
            *map(_line, sorted(modelled, key=lambda row: row.kind)),
            "",
            TAIL,
            "",
            "| report | year | operators | what was wrong | why nothing models it |",
            "|---|---:|---|---|---|",
            *(f"| {_start(row)} | {row.unmodelled} |" for row in left),
            "",
        ]
    )


HEAD = """\
# Public bug reports, and the vectors that show them

Written by `PYTHONPATH=tests python -m support.public_reports` from `docs/reports.yaml`;
`tests/documents/test_public_reports.py` computes every row and fails where this page says anything
else.

This page has {rows} bugs of RNN, GRU, LSTM and linear recurrences that were reported in public
({threads} threads of {projects} repositories): bugs of kernels, compilers, converters, exporters
and runtimes. What was wrong is told in our words and as far as the thread tells it, which is often
less than the cause; years and states are those of the day a thread was read, where it could be.

{modelled} of them are modelled: by a mutant, which `rnncli mutants ID` explains, or by a planted
bug of `tests/kernels`, with the kernel's name before a colon. A converter's bug is modelled by the
kernel that would give the same numbers. Of these {modelled}:

- `core` shows {core};
- another suite shows {others} that `core` does not;
- {readings} give what another reading of the specification has: `verify` names it and lets it pass;
- no suite shows {nothing}.

A case *catches* a bug if the runtime itself fails on it, in the version that the tests have:
{caught} of them. The others are mended there, or are of programs that rnncli does not start: the
case is shown to fail by the model, and the table says "by its mutant" or "by its planted bug".

The last table has {left} more, which nothing here models. All planted bugs named here are of the
half that suites may be tuned on.
"""

TAIL = "## Reports that nothing models"


def _tally(title, counter):
    yield f"| {title} | reports |"
    yield "|---|---:|"
    for name, number in sorted(counter.items(), key=lambda item: (-item[1], item[0])):
        yield f"| {_name(title, name)} | {number} |"


def _name(title, name):
    plain = title == "kind" or name in {"nothing", "as a reading"}
    return name if plain else f"`{name}`" if title == "shown by" else name


def _start(row):
    threads = ", ".join(map(_link, (row.report, *row.also)))
    return f"{threads} ({row.state}) | {row.year or '-'} | {row.operator} | {row.what}"


def _link(thread):
    """Return a link to an issue, which leads to a pull request of that number as well."""
    repository, _, number = thread.partition("#")
    return f"[{thread}](https://github.com/{repository}/issues/{number})"


def _line(row):
    bug = f"`{row.mutant or row.planted}`"
    model = "by its mutant" if row.mutant else "by its planted bug"
    by = f"in {row.runtime} itself" if row.runtime else model
    shown = f"`{row.suite}` {row.case_id}, {by}" if row.case else "nothing"
    reading = "" if row.fate == Fate.KILLED else ", as another reading"
    return f"| {_start(row)} | {bug} | {shown}{reading} |"


def main():
    """Write the page."""
    PAGE.write_text(page(reports()), encoding="utf-8")


if __name__ == "__main__":
    main()
