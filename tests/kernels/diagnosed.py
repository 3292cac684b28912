"""What `diagnose` makes of the planted bugs: named rightly, sensibly, not at all, or misleadingly.

    PYTHONPATH=tests python -m kernels.diagnosed vectors/core --jobs 2

Each bug's kernel runs over the packs, and what comes out is diagnosed. `names.txt` says which names
are right for a bug, which are sensible, and what a pattern may be about. It was written before any
bug was diagnosed, and may be changed for the tuning half alone.

- right: a cause has a right name, and all others are right or sensible;
- sensible: a cause has a sensible name, or the first pattern is about what the bug is about;
- none: no cause is named;
- misleading: any cause has another name.

A cause goes by its name and the first two that are said to be as good. Of the held-out half nothing
is printed but how many bugs there are of each kind. `--pairs` plants two random bugs of one kernel
and of one half at once: both are named, one is, none, or the diagnosis is misleading.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path

from kernels.bug import HELD_OUT, TUNING
from kernels.score import vectors
from kernels.switch_table import BUGS, KERNELS

from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.diagnosis import Investigation
from rnncli.judging.explaining.fitting import parts_of
from rnncli.judging.explaining.hypotheses import evidence_of_failure, evidence_of_pass, explained
from rnncli.judging.judgement import judged
from rnncli.mutants.catalogue import mutants_of
from rnncli.packs.vector import Attempt, Status

NAMES = Path(__file__).with_name("names.txt")
RIGHT, SENSIBLE, NONE, MISLEADING = "right", "sensible", "none", "misleading"
BOTH, ONE = "both", "one"
UNSEEN = "unseen"  # no case differs
PAIRS = 30
# A cause that cannot be told from many others is not named rightly by the last of them.
AS_GOOD = 3


@dataclass(frozen=True, slots=True)
class Expected:
    """What a bug may be called.

    Attributes:
        right, sensible: names with wildcards.
        topics: what a pattern may be about.
    """

    right: tuple[str, ...]
    sensible: tuple[str, ...]
    topics: tuple[str, ...]

    def kind_of(self, name):
        """Return how good one name is."""
        if any(fnmatchcase(name, each) for each in self.right):
            return RIGHT
        return SENSIBLE if any(fnmatchcase(name, each) for each in self.sensible) else MISLEADING


@cache
def expected():
    """Return bug id -> what it may be called."""
    lines = NAMES.read_text().splitlines()
    rows = [
        [cell.strip() for cell in line.split("|")] for line in lines if not line.startswith("#")
    ]
    return {name: Expected(*map(_words, cells)) for name, *cells in rows}


def _words(cell):
    return tuple(cell.split()) if cell != "-" else ()


ORDER = (RIGHT, SENSIBLE, MISLEADING)


def best(kinds):
    """Return the best of some kinds."""
    return min(kinds, key=ORDER.index)


def kind_of_cause(names, bugs):
    """Return how good a cause is that any of some names stands for, and which bugs it names.

    What is at work at once counts as the worst of its parts.
    """
    return min(
        (_kind_of_name(name, bugs) for name in names), key=lambda found: ORDER.index(found[0])
    )


def _kind_of_name(name, bugs):
    found = [_kind_of_part(part, bugs) for part in parts_of(name)]
    return max((kind for kind, _ in found), key=ORDER.index), frozenset().union(
        *(named for _, named in found)
    )


def _kind_of_part(part, bugs):
    kinds = {bug: expected()[bug].kind_of(part) for bug in bugs}
    kind = best(kinds.values())
    return kind, frozenset(bug for bug in bugs if kinds[bug] == kind != MISLEADING)


def names_of(cause):
    """Return the names that a cause goes by."""
    return (cause.hypothesis, *cause.indistinguishable)[:AS_GOOD]


def has_true_pattern(diagnosis, bug):
    """Whether the first pattern of a cell is about what the bug is about."""
    topics = set(expected()[bug].topics)
    return any(topics & set(pattern.topics) for pattern in diagnosis.patterns)


def classify(diagnosis, bug):
    """Return how good a diagnosis of one bug is."""
    kinds = {kind_of_cause(names_of(cause), [bug])[0] for cause in diagnosis.causes}
    if MISLEADING in kinds:
        return MISLEADING
    if kinds:
        return best(kinds)
    return SENSIBLE if has_true_pattern(diagnosis, bug) else NONE


def classify_pair(diagnosis, bugs):
    """Return how good a diagnosis of two bugs at once is."""
    found = [kind_of_cause(names_of(cause), bugs) for cause in diagnosis.causes]
    if any(kind == MISLEADING for kind, _ in found):
        return MISLEADING
    named = frozenset().union(*(bugs for _, bugs in found))
    named |= {bug for bug in bugs if has_true_pattern(diagnosis, bug)}
    return (NONE, ONE, BOTH)[len(named)]


def attempts(session, folder):
    """Yield the vectors of a pack and what a session makes of them, in order."""
    for vector in vectors(folder):
        asked = (vector.record.operator, vector.attributes, vector.inputs)
        try:
            yield vector, Attempt(Status.RAN, session(*asked, vector.record.outputs))
        except Exception as error:  # noqa: BLE001 -- a bug may stop a kernel in any way
            yield vector, Attempt(Status.CRASHED, message=str(error))


def diagnosis_of(kernel, names, folder):
    """Return what is said of a kernel with some bugs, or None where no case differs."""
    begin = investigation_of(kernel, names, folder)
    return begin and begin().diagnosis()


def investigation_of(kernel, names, folder):
    """Return what begins an investigation of such a kernel, or None where no case differs."""
    read, failures = {}, []
    for vector, attempt in attempts(KERNELS[kernel](names), folder):
        found = judged(vector, attempt)
        verdict = explained(found)
        if verdict.verdict in {Verdict.PASS, Verdict.DIFFERS}:
            read[vector.id] = vector
        if verdict.verdict is Verdict.DIFFERS:
            mutants = mutants_of(vector.recurrence.cell.name)
            fits = verdict.fits or None
            failures.append(evidence_of_failure(found.measured, mutants, fits))
    cells = {each.cell for each in failures}
    asked = [vector for vector in read.values() if vector.recurrence.cell.name in cells]
    rule_out = cache(lambda names: list(_ruled_out(asked, names)))
    if not failures:
        return None
    return partial(Investigation, failures, rule_out, read.__getitem__, PACK_RULE)


def _ruled_out(asked, names):
    for vector in asked:
        mutants = [m for m in mutants_of(vector.recurrence.cell.name) if m.id in names]
        yield evidence_of_pass(vector, mutants, PACK_RULE)


def measured(folder, bugs):
    """Return (kind, causes in words) of a bug, or of several at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = [BUGS[bug] for bug in bugs]
        found = diagnosis_of(rows[0].kernel, [row.name for row in rows], folder)
    if found is None:
        return bugs, UNSEEN, ()
    kind = classify_pair(found, bugs) if len(bugs) > 1 else classify(found, bugs[0])
    patterns = [each.sentence for each in found.patterns]
    doubts = [each.doubt for each in found.doubts]
    return bugs, kind, (*(cause.sentence for cause in found.causes), *doubts, *patterns)


def pairs(half, count=PAIRS):
    """Return random pairs of bugs of a half, each of one kernel and one cell at least."""
    rng = random.Random(f"pairs of {half}")  # noqa: S311 -- nothing is kept secret
    rows = [bug for bug in BUGS.values() if bug.half == half and not bug.shown_by]
    found = {}
    while len(found) < count:
        a, b = sorted(rng.sample(rows, 2), key=lambda bug: bug.id)
        if a.kernel == b.kernel and set(a.cells.split()) & set(b.cells.split()):
            found[a.id, b.id] = None
    return list(found)


def singles(half):
    """Return the bugs of a half."""
    return [(bug.id,) for bug in BUGS.values() if bug.half == half]


def counts(kinds):
    """Return how many there are of each kind, in words."""
    order = (BOTH, ONE, RIGHT, SENSIBLE, NONE, MISLEADING)
    found = Counter(kinds)
    return ", ".join(f"{found[kind]} {kind}" for kind in order if found[kind])


def main(arguments=None):
    """Print the counts of each half, and each bug of the tuning half."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="Pack.")
    parser.add_argument("--jobs", type=int, default=1, help="Number of processes.")
    parser.add_argument("--pairs", action="store_true", help="Two bugs at once.")
    parser.add_argument("--half", choices=(TUNING, HELD_OUT), help="One half only.")
    parser.add_argument("-k", default="", help="Only bugs of the tuning half that have this.")
    options = parser.parse_args(arguments)
    halves = [options.half] if options.half else [TUNING] if options.k else [TUNING, HELD_OUT]
    for half in halves:
        work = [
            each for each in (pairs if options.pairs else singles)(half) if options.k in str(each)
        ]
        kinds = []
        for bugs, kind, said in _all(work, options):
            kinds.append(kind)
            if half == TUNING and kind != UNSEEN:
                sys.stdout.write(f"{kind}\t{' '.join(bugs)}\n")
                sys.stdout.writelines(f"\t\t{sentence}\n" for sentence in said)
        seen = [kind for kind in kinds if kind != UNSEEN]
        sys.stdout.write(f"{half}: {len(seen)} seen: {counts(seen)}\n")


def _all(work, options):
    measure = partial(measured, options.folder)
    if options.jobs == 1:
        return map(measure, work)
    pool = multiprocessing.get_context("spawn").Pool(options.jobs)
    return pool.imap(measure, work, chunksize=2)


if __name__ == "__main__":
    main()
