"""Claims about which rows of which tests run."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import sampling
from support.transcripts import Transcript

HERE = Path(__file__).parent
MADE = """
import pytest

@pytest.mark.parametrize("number", range(40))
def test_many(number): ...

@pytest.mark.parametrize("number", range(2))
def test_few(number): ...

def test_one(): ...

@pytest.mark.parametrize("number", range(9))
def test_slow(number): ...

def test_slowest(): ...
"""
LISTED = "1 tests/test_made.py::test_slow\n0 tests/test_made.py::test_slowest\n"
SAMPLE = {"test_many": 40, "test_few": 2, "test_one": 1, "test_slow": 1}
ALL = {"test_many": 40, "test_few": 2, "test_one": 1, "test_slow": 9, "test_slowest": 1}


@pytest.fixture
def collect(tmp_path):
    """Return a function: what pytest is given -> the rows that run of each test, what it says."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_made.py").write_text(MADE)
    (tmp_path / "sample.txt").write_text(LISTED)
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\n\nfrom support import sampling\n\n"
        "sampling.LISTED = Path('sample.txt').absolute()\npytest_plugins = ['support.sampling']\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    path = str(HERE)

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        ran = [line for line in done.stdout.splitlines() if "PASSED" in line]
        tests = [line[line.index("test_made.py::") :].split("::")[1] for line in ran]
        names = [test.split("[")[0].split()[0] for test in tests]
        return {name: names.count(name) for name in names}, done.stdout

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_all_tests_are_a_sample_that_says_what_it_leaves_out(collect, workers):
    """Of tests that are listed so many rows, all of the others."""
    ran, said = collect(*workers)

    left_out = sum(ALL.values()) - sum(SAMPLE.values())
    assert ran == SAMPLE
    assert f"a sample of {sum(SAMPLE.values())} tests; with --all there are {left_out} more" in said


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
@pytest.mark.parametrize("named", ["--all", "tests", "tests/test_made.py"])
def test_all_rows_run_if_asked_for_or_named(collect, named, workers):
    """Whoever names tests works on them."""
    ran, said = collect(named, *workers)

    assert ran == ALL
    assert "a sample" not in said


@pytest.mark.skipif(not shutil.which("git"), reason="git says what is changed")
def test_all_rows_run_of_a_file_that_git_says_is_changed(collect, tmp_path):
    """It is what a developer has just written."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    assert collect()[0] == ALL


def test_the_sample_is_the_same_in_every_order():
    """A row that is added changes little of which others run."""
    rows = [f"row {k}" for k in range(40)]

    chosen = sampling.sampled(rows, 4)
    assert sampling.sampled(rows[::-1], 4) == chosen
    assert len({*sampling.sampled([*rows, "new"], 4)} & {*chosen}) >= 3


# Of each test the seconds of its rows, in the order of their digests.
TAKEN = {
    "test_quick": [0.01] * 20,
    "test_one": [0.5],
    "test_long": [0.2] * 3,
    "test_longer": [0.5, 0.5],
    "test_made_once": [0.0, 0.0, 9.0],
    "test_kept": [5.0],
}


def test_rows_are_listed_that_take_long(tmp_path, monkeypatch):
    """Or none, where one is dear: what it makes for all, the first to run would make."""
    monkeypatch.setattr(sampling, "LISTED", tmp_path / "sample.txt")
    monkeypatch.setattr(sampling, "KEPT", {"tests/test_made.py::test_kept"})
    sampling.LISTED.write_text("1 tests/test_made.py::test_quick\n1 tests/test_other.py::test\n")
    cases = "".join(
        f'<testcase classname="tests.test_made" name="{name}[{row}]"><properties>'
        f'<property name="{sampling.PROCESSOR}" value="{seconds}"/></properties></testcase>'
        for name, taken in TAKEN.items()
        for row, seconds in zip(sampling.sampled(map(str, range(20)), 20), taken, strict=False)
    )
    (tmp_path / "all.xml").write_text(f"<testsuite>{cases}</testsuite>")

    assert [*sampling.taking_long([tmp_path / "all.xml"])] == [
        "1 tests/test_made.py::test_long",
        "1 tests/test_made.py::test_longer",
        "0 tests/test_made.py::test_made_once",
        "1 tests/test_other.py::test",
    ]


def names_of(path):
    """Return the claims of a transcript, or the functions of a test file."""
    if path.suffix == ".txt":
        return Transcript(path).claims
    tree = ast.walk(ast.parse(path.read_text("utf-8")))
    return [node.name for node in tree if isinstance(node, ast.FunctionDef)]


def test_what_is_listed_is_a_test():
    """A test that is renamed is listed, or kept, by its new name."""
    named = {*sampling.listed(), *sampling.KEPT}
    files = {test.partition("::")[0] for test in named}
    known = {f"{file}::{name}" for file in files for name in names_of(HERE.parent / file)}

    assert sorted(named - known) == []
