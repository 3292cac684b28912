"""A run of all of tests/ makes claims on some rows of their tables; with `--all`, on all rows.

So does a run of some files, folders or names, which is what one types while working on them.

Rows are chosen by a digest of their ids: the same on every machine and in every process, and a new
row changes little of which others run. Of a test file that git says is changed, all rows run.

`sample.txt` lists the tests whose rows take more than `SECONDS` together, and how many rows of each
are in the sample: so many as fit, at least one, and none if any takes more than `LONGEST`. All
others run whole. It is written from reports of runs on an idle machine, of all tests first and then
of the sample, where others pay for what is made once:

    pytest --all --junitxml=all.xml && PYTHONPATH=tests python -m support.sampling all.xml
"""

import os
import subprocess
import sys
from collections import defaultdict
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import settings
from support import examples

# Seconds of a processor: of the rows of a test that are in the sample, and of a single one.
SECONDS, LONGEST = 0.3, 0.6
# What is in the sample all the same: most bugs of the backend that it runs are seen by it alone.
KEPT = {"tests/backends/test_numpy_backend.py::test_no_case_of_the_committed_packs_fails"}
LISTED = Path(__file__).with_name("sample.txt")
PROCESSOR = "processor"  # the property of a test in a report: seconds, of its children as well
COUNTS = "counts of the sample"
# Functions that return the seconds so far of processes that no test waits for.
ELSEWHERE = []


def pytest_addoption(parser):
    """Add the option."""
    parser.addoption(
        "--all", action="store_true", help="run every row of every test, as named tests do, and CI"
    )


def pytest_configure(config):
    """Choose what runs: everything that is named, or a sample of all there is."""
    config.pluginmanager.register(Seconds())
    named = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.keyword
    if not config.option.all and not named:
        settings.load_profile(examples.FEW)
        config.pluginmanager.register(Sample(config))


class Sample:
    """Leaves out rows while tests are collected, since each costs a millisecond there.

    Attributes:
        rows: the number of rows of each test that is listed.
        whole: the test files of which all rows run.
        counts: how many rows are left out, and how many run.
    """

    def __init__(self, config):
        self.rows, self.whole, self.config = listed(), changed(config.rootpath), config
        self.counts = [0, 0]

    @pytest.hookimpl(trylast=True)
    def pytest_generate_tests(self, metafunc):
        """Keep the rows of a test that run, and at least one."""
        calls = metafunc._calls
        most = max(1, self.most(metafunc.definition))
        kept = set(sampled([call.id for call in calls], most))
        self.counts[0] += len(calls) - len(kept)
        calls[:] = [call for call in calls if call.id in kept]

    def pytest_collection_modifyitems(self, config, items):
        """Leave out the tests of which no row runs."""
        left_out = [item for item in items if not self.most(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if self.most(item)]
        self.counts = [self.counts[0] + len(left_out), len(items)]
        if hasattr(config, "workeroutput"):
            config.workeroutput[COUNTS] = self.counts

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Keep what a worker of pytest-xdist counted; all count the same."""
        self.counts = getattr(node, "workeroutput", {}).get(COUNTS, self.counts)

    def pytest_terminal_summary(self, terminalreporter):
        """Say in one line what was left out."""
        left_out, ran = self.counts
        terminalreporter.write_line(
            f"a sample of {ran:,} tests; with --all there are {left_out:,} more: the other rows of"
            " tables, and what takes long"
        )

    def most(self, item):
        """Return how many rows of a test run."""
        rows = {} if item.path in self.whole else self.rows
        return rows.get(function_of(item.nodeid), sys.maxsize)


class Seconds:
    """Notes what each test takes of a processor, its fixtures and the processes it uses too."""

    def __init__(self):
        self.before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self):
        """Begin."""
        self.before = taken()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """End, for the last of the test's reports."""
        if call.when == "teardown":
            item.user_properties.append((PROCESSOR, f"{taken() - self.before:.3f}"))


def taken():
    """Return the seconds so far of this process, and of those that work for it."""
    return sum(os.times()[:4]) + sum(seconds() for seconds in ELSEWHERE)


def function_of(nodeid):
    """Return the test function of a row."""
    return nodeid.partition("[")[0]


def sampled(rows, most):
    """Return some rows, by a digest of their ids."""
    return sorted(rows, key=lambda row: sha256(row.encode()).digest())[:most]


def listed():
    """Return the number of rows of each test that is listed."""
    lines = LISTED.read_text("utf-8").splitlines()
    return {test: int(most) for most, test in (line.split(" ", 1) for line in lines)}


def changed(root):
    """Return the test files that git says are changed or new; none without git."""
    command = ["git", "status", "--porcelain", "-z", "-uall", "--no-renames", "--", "tests"]
    try:
        said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return set()
    return {root / line[3:] for line in said.split("\0") if line.endswith((".py", ".txt"))}


def taking_long(reports):
    """Yield the lines of the list: of each test, how many rows are quick enough, if not all.

    Of a test that did not run, what was listed.
    """
    found = listed()
    for test, rows in seconds_of(reports).items():
        taken = [*accumulate(rows[row] for row in sampled(rows, len(rows)))]
        fitting = sum(total <= SECONDS for total in taken) or 1
        # What one row paid for all, whichever is the first to run would pay.
        fitting *= max(rows.values()) <= LONGEST
        found.pop(test, None)
        if fitting < len(taken) and test not in KEPT:
            found[test] = fitting
    yield from (f"{most} {test}" for test, most in sorted(found.items()))


def seconds_of(reports):
    """Return what each row of each test took of a processor; skipped modules took nothing."""
    seconds = defaultdict(dict)
    for case in (case for report in reports for case in ET.parse(report).iter("testcase")):  # noqa: S314 -- our own reports
        taken = case.find(f".//property[@name='{PROCESSOR}']")
        if taken is not None:
            test, _, row = case.get("name").removesuffix("]").partition("[")
            name = case.get("classname")
            stem, end = (name[:-4], "txt") if name.endswith(".txt") else (name, "py")
            file = f"{stem.replace('.', '/')}.{end}"
            seconds[f"{file}::{test}"][row] = float(taken.get("value"))
    return seconds


if __name__ == "__main__":
    lines = [f"{line}\n" for line in taking_long(sys.argv[1:])]
    LISTED.write_text("".join(lines), "utf-8")
