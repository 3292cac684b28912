"""How many of the planted bugs metamorphic relations catch, on random nodes of random sizes.

    PYTHONPATH=tests python -m kernels.relations --cases 20 --jobs 2

No expected output is made: a kernel with a bug is asked a node and transformed ones, and caught
when a relation of any of the nodes is broken. Of the held-out half only percentages are printed;
`--missed` lists bugs of the tuning half.
"""

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from functools import partial

from kernels.bug import TUNING
from kernels.random_cases import GATES, random_case
from kernels.switch_table import BUGS, KERNELS, groups, kernel_with

from rnncli.operators import operator_named
from rnncli.packs.vector import Attempt, Status
from rnncli.verifying.node_call import NodeCall
from rnncli.verifying.relations.judging import Asker, judge_case
from rnncli.verifying.relations.relations import relations_of


class KernelSubject:
    """A kernel as a subject: one session, which sees every call."""

    def __init__(self, session):
        self.session_of_all = session

    def attempt(self, vector):
        """Put a vector to it."""
        record = vector.record
        try:
            outputs = self.session_of_all(
                record.operator, vector.attributes, dict(vector.inputs), record.outputs
            )
        except Exception as error:  # noqa: BLE001 -- a bug may stop a kernel in any way
            return Attempt(Status.CRASHED, message=str(error))
        return Attempt(Status.RAN, outputs)


def call_of(cell, seed):
    """Return a random node as a call."""
    return call_of_case(random_case(cell, seed), f"{cell}_{seed}")


def call_of_case(case, name):
    """Return a node as a call."""
    row = operator_named(case.operator)
    inputs = {r.name: case.inputs[r.name] for r in row.inputs if r.name in case.inputs}
    readings = dict(row.readings)
    return NodeCall(name, case.operator, case.attributes, inputs, tuple(case.outputs), readings)


def failures(session, cells, count, first=0):
    """Yield each relation that fails in a session, for so many random nodes of each cell."""
    subject = KernelSubject(session)
    asker = Asker(subject, lambda: subject, "one thread")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            for cell in cells:
                call = call_of(cell, seed)
                found = judge_case([call], relations_of(call.row), asker, "standard")
                yield from (pair for pair in found if pair[1].fails)


def caught_by(count, bug_id):
    """Return a bug's id and the relation that finds it first, or ""."""
    bug = BUGS[bug_id]
    found = next(failures(kernel_with(bug), bug.cells.split(), count), None)
    return bug_id, "" if found is None else found[0] or "the case itself"


def score(count, jobs=1):
    """Return bug id -> the relation that finds it first, or ""."""
    if jobs == 1:
        return dict(map(partial(caught_by, count), BUGS))
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return dict(pool.imap_unordered(partial(caught_by, count), BUGS, chunksize=4))


def table(caught):
    """Yield the lines of the table: half, kind, number of bugs, percentage caught."""
    for half, kind, bugs in groups():
        share = sum(bool(caught[bug.id]) for bug in bugs) / len(bugs)
        yield [half, kind, str(len(bugs)), f"{100 * share:.1f} %"]


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20, help="Random nodes of each cell.")
    parser.add_argument("--jobs", type=int, default=1, help="Number of processes.")
    parser.add_argument("--missed", action="store_true", help="List what is missed, tuning half.")
    options = parser.parse_args(arguments)
    for name, kernel in KERNELS.items():
        for _, found in failures(kernel(), GATES, options.cases):
            parser.error(f"{found.id} fails the right {name}: {found.message}")
    caught = score(options.cases, options.jobs)
    for line in table(caught):
        sys.stdout.write("\t".join(line) + "\n")
    tuning = {b.id: caught[b.id] for b in BUGS.values() if b.half == TUNING}
    for relation, bugs in Counter(filter(None, tuning.values())).most_common():
        sys.stdout.write(f"first found by\t{relation}\t{bugs}\n")
    for bug_id in [b for b, relation in tuning.items() if not relation] if options.missed else ():
        sys.stdout.write(f"missed\t{bug_id}\t{BUGS[bug_id].what}\n")


if __name__ == "__main__":
    main()
