"""A bench in plain Verilog: it reads cases by $readmemh, and judge.c judges its outputs."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support import judge_c

from rnncli.packs.conversion import convert_pack
from rnncli.packs.pack import open_pack

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "vectors" / "core"
PROGRAMS = ("gcc", "iverilog", "vvp")

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason=f"needs {', '.join(PROGRAMS)}"
)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """The judge, compiled."""
    return judge_c.compiled(tmp_path_factory.mktemp("judge"))


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """The committed pack as files for the bench and for the judge."""
    root = tmp_path_factory.mktemp("packs")
    for layout in ("hex", "raw"):
        convert_pack(open_pack(CORE), root / layout, layout)
    return root


def simulate(folder, pack, case_id, *options):
    """Compile the bench for a case and run it; return the folder of its results."""
    header = (pack / f"test_{case_id}" / "case.svh").read_text()
    (folder / "case.vh").write_text(header.replace(f"`define {case_id}_", "`define "))
    outputs = folder / "results" / f"test_{case_id}" / "outputs"
    outputs.mkdir(parents=True)
    sources = [HERE / "bench.v", HERE / "lstm_cell.v"]
    command = ["iverilog", "-Wall", *options, "-I", HERE, "-I", folder, "-o", "bench", *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    run = ["vvp", "-n", "bench", f"+pack={pack}", f"+outputs={outputs}"]
    assert subprocess.run(run, cwd=folder, capture_output=True, check=True).stdout == b""
    return folder / "results"


@pytest.mark.parametrize("case_id", ["lstm_7_plain", "lstm_14_initial", "lstm_14_ragged"])
@pytest.mark.parametrize("verdict", ["pass", "differs"])
def test_a_cell_in_verilog_is_judged(judge, packs, tmp_path, case_id, verdict):
    """The behavioural cell passes; with two gates exchanged it differs."""
    options = ["-DBROKEN"] if verdict == "differs" else []
    results = simulate(tmp_path, packs / "hex", case_id, *options)

    said = judge_c.run(judge, packs / "raw", results, case_id)
    assert said.cases[case_id][0] == verdict
    assert said.code == (verdict != "pass")
