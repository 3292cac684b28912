"""Pages of results are of the packs that ship."""

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rnncli.reports.result_files import read_results
from rnncli.reports.site import results_of
from rnncli.subjects.runtimes import SUBJECTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/results/runtimes.md"
TEXT = PAGE.read_text("utf-8")
# name -> its version and the command that judged it
JUDGED = {
    name: (version, command)
    for name, version, command in re.findall(r"^- (\S+) (\S+) on \S+: `(.*)`$", TEXT, re.MULTILINE)
}
# A feature of 13 cases, of all three operators, which most runtimes get wrong or refuse somewhere.
FEATURE = "Clip"


def row(name):
    """The cells of a row of the table: runtime -> what it says."""
    first, found = (
        re.search(rf"^\| {each} \| (.*) \|$", TEXT, re.MULTILINE)[1].split(" | ")
        for each in ("feature", name)
    )
    return dict(zip(first[1:], found[1:], strict=True))


def counts(cell, cases):
    """How often each verdict is in a cell of so many cases, whatever feature it names."""
    found = Counter()
    for count, word in re.findall(r"(?:(\d+) )?(wrong|refused|lossy|crashed|other reading)", cell):
        found[word] += int(count or cases)
    return found


def test_every_flag_of_the_core_pack_is_a_row():
    """With as many cases as the pack has of it today; `rnncli site --markdown` wrote it."""
    cases = json.loads((ROOT / "vectors/core/manifest.json").read_text("utf-8"))["cases"]
    flags = Counter(flag for case in cases for flag in case["flags"])
    rows = re.findall(r"^\| (\w[\w ]*) \| (\d+) \|", TEXT, re.MULTILINE)

    assert {name: int(n) for name, n in rows} == {**flags, "all cases": len(cases)}


def test_every_runtime_is_a_column():
    """And ONNX Runtime Web, which the harness in docs/harnesses judges; QNN has units alone."""
    known = {*SUBJECTS, "onnxruntime-web"} - {"onnxruntime-qnn"}
    assert {*row("all cases")} == {*JUDGED} == known


@pytest.mark.parametrize("name", JUDGED)
def test_the_page_says_what_a_runtime_does(name, tmp_path):
    """Its own command, for the cases of one feature, gives the counts that the table has.

    Which feature is to blame is known from the cases of all.
    """
    version, command = JUDGED[name]
    if "--harness" in command and not (ROOT / "node_modules" / name).exists():
        pytest.skip(f"no {name} in node_modules")
    written = tmp_path / "results.jsonl"
    words = [sys.executable, "-m", *shlex.split(command), "-k", FEATURE, "--json"]
    with written.open("wb") as stream:
        done = subprocess.run(
            words, cwd=ROOT, stdout=stream, stderr=subprocess.PIPE, text=True, check=False
        )
    if "is not installed" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode in {0, 1}, done.stderr
    ((runtime,),) = (pack.runtimes for pack in results_of(read_results(written)))
    if runtime.version != version:
        pytest.skip(f"the page is of {version}, not of {runtime.version}")

    cases = len(runtime.by_flag[FEATURE])
    assert counts(runtime.cell(FEATURE).words, cases) == counts(row(FEATURE)[name], cases)
