"""Pages of results are of the packs that ship."""

import json
import re
import shlex
import subprocess
import sys
from collections import Counter

import pytest
from support.runtime_results import LINE, PAGE, ROOT, cells, with_cells
from support.shipped import suite

from rnncli.reports.result_files import read_results
from rnncli.reports.site import results_of
from rnncli.subjects.runtimes import SUBJECTS

TEXT = PAGE.read_text("utf-8")
# name -> its version and the command that judged it
JUDGED = {name: (version, command) for name, version, _, command in LINE.findall(TEXT)}
# A feature of 13 cases, of all three operators, which most runtimes get wrong or refuse somewhere.
FEATURE = "Clip"
# Whose whole runs are quick enough to be repeated here.
QUICK = [
    *(("onnxruntime", "units"), ("onnxruntime", "linear")),
    *(("onnxruntime", "quantised_tiles"), ("opencv", "units")),
]


CORE, PACKS, TFLITE = (cells(TEXT, name) for name in ("core", "Packs", "TFLite's LSTM"))


TABLE = """\
## Packs

| pack | cases | one |
| --- | ---: | --- |
| `core` | 3 | 3 pass |
| `edge` | 2 | - |

- more
"""


def test_a_runtime_that_is_judged_again_gets_its_cells():
    """The others stay; a new one gets a column, in which a dash is no run."""
    again = with_cells(TABLE, "Packs", "one", {"edge": "2 refused"})
    both = with_cells(again, "Packs", "two", {"core": "1 pass, 2 differ"})

    assert cells(both, "Packs") == {
        "core": (3, {"one": "3 pass", "two": "1 pass, 2 differ"}),
        "edge": (2, {"one": "2 refused", "two": "-"}),
    }
    assert with_cells(both, "Packs", "two", {}) == both
    assert both.partition("\n\n- ")[2] == "more\n"


def counts(cell, cases):
    """How often each verdict is in a cell of so many cases, whatever feature it names."""
    found = Counter()
    for count, word in re.findall(r"(?:(\d+) )?(wrong|refused|lossy|crashed|other reading)", cell):
        found[word] += int(count or cases)
    return found


def test_every_flag_of_the_core_pack_is_a_row():
    """With as many cases as the pack has of it today; `support.runtime_results` wrote it."""
    cases = json.loads((ROOT / "vectors/core/manifest.json").read_text("utf-8"))["cases"]
    flags = Counter(flag for case in cases for flag in case["flags"])

    assert {name: n for name, (n, _) in CORE.items()} == {**flags, "all cases": len(cases)}


def test_every_suite_is_a_row():
    """Of as many cases as it has, all of which a cell counts; a dash stands for no run."""
    assert {name: n for name, (n, _) in (PACKS | TFLITE).items()} == {
        path.stem: len(suite(path.stem).entries) for path in (ROOT / "specs/suites").glob("*.yaml")
    }
    for count, row in (*PACKS.values(), *TFLITE.values()):
        for words in {*row.values()} - {"-"}:
            assert sum(map(int, re.findall(r"\d+", words))) == count


@pytest.mark.parametrize(
    ("suite_name", "name"), [(row, name) for row in TFLITE for name in TFLITE[row][1]]
)
def test_the_page_says_what_an_interpreter_does(suite_name, name, tmp_path):
    """A run of the whole suite gives the words of its cell."""
    pack = tmp_path / "lstm"
    rnncli = [sys.executable, "-m", "rnncli"]
    subprocess.run([*rnncli, "generate", suite_name, "-o", str(pack)], check=True)
    judged = [*rnncli, "verify", str(pack), "--runtime", name, "--allow-refused"]
    done = subprocess.run(judged, capture_output=True, text=True, check=False)
    if "is not installed" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    version = re.search(rf"{name} (\S+) against", done.stderr)[1]
    if version not in TEXT:
        pytest.skip(f"the page is not of {name} {version}")

    assert f" s: {TFLITE[suite_name][1][name]}. " in " ".join(done.stderr.split())


@pytest.mark.parametrize(("name", "pack"), QUICK)
def test_the_page_says_what_a_runtime_does_with_a_pack(name, pack):
    """A run of the whole pack gives the words of its cell."""
    judged = [sys.executable, "-m", "rnncli", "verify", f"vectors/{pack}", "--runtime", name]
    done = subprocess.run(judged, cwd=ROOT, capture_output=True, text=True, check=False)
    if "is not installed" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    if f"{name} {JUDGED[name][0]} " not in done.stderr:
        pytest.skip(f"the page is of {name} {JUDGED[name][0]}")

    assert f" s: {PACKS[pack][1][name]}. " in done.stderr


def test_every_runtime_is_a_column():
    """And what harnesses in docs/harnesses judge; QNN has units alone."""
    others = {name for name, (_, command) in JUDGED.items() if "--harness" in command}
    assert {*JUDGED} - others == {*SUBJECTS} - {"onnxruntime-qnn", *TFLITE["tflite"][1]}
    assert all({*JUDGED} == {*row} for _, row in (*CORE.values(), *PACKS.values()))


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
    assert counts(runtime.cell(FEATURE).words, cases) == counts(CORE[FEATURE][1][name], cases)
