"""How many of the planted bugs the packs of a folder catch.

    rnncli generate core -o packs/core
    ...
    PYTHONPATH=tests python -m kernels.score packs

The folder holds packs, each named as its suite. For each half of the bugs, their kind, and whether
they depend on sizes, the table says how many there are and which percentage the suites catch. A
kernel is one session for each suite, which runs the suite's cases in order, as an implementation
under test does, and each case's data sets in turn and the first again: what it keeps between calls
counts, and a case is caught if any call of it is wrong. Cases that must be refused, or are of an
operator that is not ONNX's, are not put to it.

Of the held-out half only percentages are printed; `--missed` lists bugs of the tuning half.
"""

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

from kernels.bug import HELD_OUT, TUNING
from kernels.switch_table import BUGS, KERNELS, groups, kernel_with
from kernels.tiles_node import COLUMNS as CELLS

from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge
from rnncli.packs.pack import is_pack, open_pack
from rnncli.packs.vector import Attempt, Status

SOUND = {Verdict.PASS, Verdict.ACCEPTABLE, Verdict.SKIPPED}
# What a column counts: the suites of it. A column shows if the folder has them all.
COLUMNS = {
    "core": {"core"},
    "core+smoke+diagnostic": {"core", "smoke", "diagnostic"},
    "core+tiles": {"core", "tiles"},
}
LARGE = "large"
EVERYTHING = "everything"


@cache
def vectors(folder):
    """Return the vectors of a pack that a kernel can be asked."""
    return [v for v in open_pack(folder).vectors() if is_asked(v.record)]


def is_asked(record):
    """Whether a case must give a result, of an operator that the kernels know."""
    cell = record.operator.partition("-")[0]
    return record.expect == "result" and not record.domain and cell in CELLS and not record.quantise


def verdict_of(session, vector):
    """Return the verdict on one call of a case."""
    try:
        outputs = session(
            vector.record.operator, vector.attributes, vector.inputs, vector.record.outputs
        )
    except Exception as error:  # noqa: BLE001 -- a bug may stop a kernel in any way
        return judge(vector, Attempt(Status.CRASHED, message=str(error))).verdict
    return judge(vector, Attempt(Status.RAN, outputs)).verdict


def catches(folder, session):
    """Whether any call of a case of a pack fails in a session; cases after it are not run."""
    calls = (vector.calls[k] for vector in vectors(folder) for k in vector.call_order)
    return any(verdict_of(session, call) not in SOUND for call in calls)


def caught_by(bug_id, folders):
    """Return the names of the suites that catch a bug."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return {f.name for f in folders if catches(f, kernel_with(BUGS[bug_id]))}


def _row(arguments):
    return arguments[0], caught_by(*arguments)


def score(folders, jobs=1):
    """Return bug id -> the names of the suites that catch it."""
    work = [(bug_id, folders) for bug_id in BUGS]
    if jobs == 1:
        return dict(map(_row, work))
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return dict(pool.imap_unordered(_row, work, chunksize=8))


def columns_of(names):
    """Return column -> its suites, of the columns whose suites are there."""
    found = {title: suites for title, suites in COLUMNS.items() if suites <= names}
    if LARGE in names:
        found["all but large"] = names - {LARGE}
    return {**found, EVERYTHING: names}


def table(caught, columns):
    """Yield the lines of the table: half, kind, number of bugs, percentage by column."""
    yield ["half", "kind", "bugs", *columns]
    for half, kind, bugs in groups():
        yield [half, kind, str(len(bugs)), *_percentages(bugs, caught, columns)]


def _percentages(bugs, caught, columns):
    counts = Counter(t for bug in bugs for t, suites in columns.items() if suites & caught[bug.id])
    return [f"{100 * counts[title] / len(bugs):.1f} %" for title in columns]


def held_out(caught):
    """Return the percentage of the held-out half that any suite catches."""
    bugs = [b.id for b in BUGS.values() if b.half == HELD_OUT]
    return 100 * sum(map(bool, map(caught.get, bugs))) / len(bugs)


def missed(caught, suites):
    """Return the ids of the tuning half that none of some suites catches."""
    return [b.id for b in BUGS.values() if b.half == TUNING and not suites & caught[b.id]]


def false_alarms(folders):
    """Return (kernel, suite) where a suite fails a right kernel: its percentage says nothing."""
    return [
        (name, folder.name)
        for name, kernel in KERNELS.items()
        for folder in folders
        if catches(folder, kernel())
    ]


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="Folder of packs, each named as its suite.")
    parser.add_argument("--jobs", type=int, default=1, help="Number of processes.")
    parser.add_argument("--missed", metavar="COLUMN", help="List what it misses, tuning half.")
    parser.add_argument(
        "--min-held-out",
        type=float,
        metavar="PERCENT",
        default=0.0,
        help="Exit with 1 if all packs together catch less of the held-out half.",
    )
    options = parser.parse_args(arguments)
    folders = sorted(path for path in options.folder.iterdir() if is_pack(path))
    if not folders:
        parser.error(f"{options.folder}: holds no pack")
    columns = columns_of({folder.name for folder in folders})
    if options.missed not in {None, *columns}:
        parser.error(f"no column {options.missed}; there are {', '.join(columns)}")
    if alarms := false_alarms(folders):
        parser.error("; ".join(f"suite {suite} fails the right {name}" for name, suite in alarms))
    caught = score(folders, options.jobs)
    for line in table(caught, columns):
        sys.stdout.write("\t".join(line) + "\n")
    for bug_id in missed(caught, columns[options.missed]) if options.missed else ():
        sys.stdout.write(f"missed\t{bug_id}\t{BUGS[bug_id].what}\n")
    return int(held_out(caught) < options.min_held_out)


if __name__ == "__main__":
    sys.exit(main())
