"""Claims about runs in which nothing was computed; a page of the site lists them, with exit codes.

Those of commands are transcripts, `transcripts/green_*.txt`; those of functions and of pytest are
here.
"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support.beside import beside
from support.forked import forked_pytest
from support.small_suite import small_suite
from support.transcripts import Transcript
from support.ways import altered, plain, plus_one, refuse

from rnncli import compare, judge
from rnncli.api import commands
from rnncli.errors import InvalidRequest
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.packs.pack import open_pack

ROOT = Path(__file__).parents[2]
TWO = """\
suite: two
summary: Two small cases.
seed: 11
defaults:
  sizes: {seq_length: 2, batch_size: 2, input_size: 2, hidden_size: 2}
cases:
  plain:
    matrix: {op: [RNN-14, GRU-14]}
"""
PACKS = {
    "two": TWO,
    "empties": TWO.replace("batch_size: 2", "batch_size: 0"),
    "rejections": TWO + "    breaks: {sizes: {W: {input_size: 4}}}\n",
}


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """Packs of a few cases each, made once."""
    folder = tmp_path_factory.mktemp("packs")
    for name, text in PACKS.items():
        plan = GenerationPlan(suite=small_suite(text))
        assert not generate(plan, folder / name, lambda _: None).failed
    return folder


@pytest.fixture
def place(packs, tmp_path, monkeypatch):
    """A folder with the packs and all that is named, which is the working folder."""
    for name in PACKS:
        (tmp_path / name).symlink_to(packs / name)
    (tmp_path / "two.yaml").write_text(TWO)
    (tmp_path / "all.txt").write_text("* [refused, differs, crashed, timeout]  known\n")
    monkeypatch.setattr(np, "abs", np.abs)  # which a function below alters
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(outputs, pack="two", rule=PACK_RULE):
    """The judgement on what a function gives for the first case of a pack."""
    packed = open_pack(pack)
    vector = packed.read(packed.manifest.cases[0])
    return judge(vector, outputs(vector), rule=rule)


def replace(vector):
    """Write what is expected, and give it."""
    zeros = {name: np.zeros_like(values) for name, values in vector.answers.outputs.items()}
    vector.answers.outputs.update(zeros)
    return zeros


def end(vector):
    """End the process, as if all were well."""
    raise SystemExit(0)


def end_at_once(vector):
    """End the process without a word to anyone."""
    os._exit(0)


def blinding(vector):
    """Make all numbers zero in size, and give wrong ones."""
    np.abs = lambda values, *_, **__: np.zeros(np.shape(values))
    return plus_one(vector)


class Ended(NamedTuple):
    """A command that has ended, as a report: it passed if it ended with 0."""

    exit_code: int
    said: str

    @property
    def passed(self):
        """Whether its exit code says so."""
        return self.exit_code == 0

    def __bool__(self):
        return self.passed

    def __str__(self):
        return self.said


def refused(function):
    """What a function that is refused leaves behind."""
    with pytest.raises(InvalidRequest) as raised:
        function()
    return Ended(raised.value.exit_code, str(raised.value))


def pytest_of(body, *options, pack="two"):
    """What runs pytest on a pack, whose function has one line."""

    def run():
        Path("kernels.py").write_text(f"def kernel(vector):\n    {body}\n")
        words = (f"--rnncli={pack}", "--rnncli-subject=kernels:kernel", "-pno:cacheprovider")
        return Ended(*beside(forked_pytest, Path.cwd(), *words, *options))

    return run


def pytest_of_an_altered_pack():
    """Run pytest on a pack whose expected outputs somebody altered."""
    altered("output_*.pb", 0)
    return pytest_of(RIGHT, pack="altered")()


def pytest_of_an_xfail():
    """Run pytest on a test of wrong outputs that the user marks."""
    Path("test_marked.py").write_text(f"""\
import pytest, rnncli

@pytest.mark.xfail
@rnncli.pytest.vectors({str(Path("two").absolute())!r})
def test_kernel(vector):
    return {{name: values + 1 for name, values in vector.answers.outputs.items()}}
""")
    return Ended(*beside(forked_pytest, Path.cwd(), "test_marked.py", "-pno:cacheprovider"))


def check_of_an_altered_pack():
    """Compare an altered pack with its suite."""
    altered("output_*.pb", 0)
    return commands.generate("two.yaml", output="altered", check=True)


RIGHT = "return vector.answers.outputs"
# way -> what gives a report, words of it, its exit code.
WAYS = {
    "comparison of tensors without an element": (
        lambda: compare({"Y": np.zeros((0, 3))}, {"Y": np.zeros((0, 3))}),
        "",
        5,
    ),
    "comparison of outputs with themselves": (
        lambda: refused(lambda: compare(*[{"Y": np.arange(3.0)}] * 2)),
        "compared with themselves",
        2,
    ),
    "comparison of what differs": (lambda: compare({"Y": np.zeros(3)}, {"Y": np.ones(3)}), "", 1),
    "judgement of what differs": (lambda: judged(plus_one), "differs", 1),
    "judgement of an error that is no refusal": (
        lambda: judged(lambda _: KeyError("typo"), pack="rejections"),
        "crashed",
        1,
    ),
    "judgement of outputs without an element": (lambda: judged(plain, pack="empties"), "pass", 5),
    "judgement by tolerances wider than the values": (
        lambda: judged(plus_one, rule=Rule(atol=1e300)),
        "skipped",
        5,
    ),
    "report of a function that refuses everything": (
        lambda: commands.verify("two", refuse, allow_refused=True),
        "no case was answered",
        5,
    ),
    "report of a function that replaces what is expected": (
        lambda: commands.verify("two", replace),
        "2 differ. 2 fail",
        1,
    ),
    "report of a function that ends the process": (
        lambda: commands.verify("two", end),
        "2 crashed. 2 fail",
        1,
    ),
    "report of a function that ends the process at once": (
        lambda: commands.verify("two", end_at_once),
        "2 crashed. 2 fail",
        1,
    ),
    "report of a diagnosis of wrong outputs": (lambda: commands.diagnose("two", plus_one), "", 1),
    "report of a check of an altered pack": (check_of_an_altered_pack, "altered", 1),
    "report of a score that is too low": (
        lambda: commands.score("empties", min_score=1),
        "0.0 %",
        1,
    ),
    "pytest of a function that refuses everything": (
        pytest_of("raise NotImplementedError"),
        "refused",
        1,
    ),
    "pytest of a function that refuses everything, allowed": (
        pytest_of("raise NotImplementedError", "--rnncli-allow-refused"),
        "none of 2 cases",
        5,
    ),
    "pytest of a function that returns nothing": (
        pytest_of("pass"),
        "the function returned None",
        1,
    ),
    "pytest of a function that ends the process": (
        pytest_of("raise SystemExit(0)"),
        "the function ends the session",
        1,
    ),
    "pytest of a function that ends the process at once": (
        pytest_of("import os; os._exit(0)"),
        "the function ends the session",
        1,
    ),
    "pytest that only sets up": (pytest_of(RIGHT, "--setup-plan"), "none of 2 cases", 5),
    "pytest that only sets up, and does": (pytest_of(RIGHT, "--setup-only"), "none of 2 cases", 5),
    "pytest of a function that fails, every case in --rnncli-xfails": (
        pytest_of("return {}", "--rnncli-xfails=all.txt"),
        "none of 2 cases",
        5,
    ),
    "pytest of a selection without cases": (
        pytest_of(RIGHT, "--rnncli-select=nothing"),
        "selects no case",
        2,
    ),
    "pytest of cases that need what the function lacks": (
        pytest_of(RIGHT, "--rnncli-require=opset>=99"),
        "none of 2 cases",
        5,
    ),
    "pytest of an altered pack": (pytest_of_an_altered_pack, "is altered", 1),
    "pytest of outputs without an element": (
        pytest_of(RIGHT, pack="empties"),
        "none of 2 cases",
        5,
    ),
    "pytest that only collects": (pytest_of(RIGHT, "--collect-only"), "2 tests collected", 0),
    "pytest of a function that ends the process in C": (
        pytest_of("import ctypes; ctypes.CDLL(None)._exit(0)"),
        "",
        0,
    ),
    "pytest of what the user marks as xfail": (pytest_of_an_xfail, "2 xfailed", 0),
    "a function that alters the judge": (lambda: commands.verify("two", blinding), "2 pass", 0),
    "pytest that lists fixtures": (pytest_of(RIGHT, "--fixtures"), "no tests ran", 0),
}


def shown():
    """The exit code of the last command of each transcript of a way, helpers of the shell aside."""
    found = {}
    for path in (Path(__file__).parent / "transcripts").glob("green_*.txt"):
        for way, parts in Transcript(path).claims.items():
            *_, last = (part for part in parts if "rnncli " in part.text)
            code = re.search(r"^\[(\d+)\]$", last.shown, re.MULTILINE)
            found[way] = int(code[1]) if code else 0
    return found


def test_the_page_lists_every_way_with_its_exit_code():
    """Those of commands as their transcripts show it, the others as they are tried here."""
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")
    text = "\n".join(runpy.run_path(str(ROOT / "docs/site/reference.py"))["empty_runs"]())
    rows = re.findall(r"^\| (.+?) \|.*\| (\d+) \|$", text, re.MULTILINE)

    assert {way: int(code) for way, code in rows} == {
        **shown(),
        **{way: code for way, (_, _, code) in WAYS.items()},
    }


@pytest.mark.parametrize("way", WAYS)
def test_no_way_is_greener_than_the_page_says(place, way):
    """Exit code and words; a report is true only if it passed."""
    ask, words, code = WAYS[way]
    report = ask()

    assert bool(report) is report.passed is (report.exit_code == 0)
    assert report.exit_code == code, str(report)
    assert words in str(report)
