"""Benches in plain Verilog: they read cases by $readmemh, and judge.c judges their outputs."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support import judge_c
from support.asked import verified

from rnncli.packs.conversion import convert_pack
from rnncli.packs.pack import open_pack

HERE = Path(__file__).parent
VECTORS = HERE.parents[1] / "vectors"
INTEGER_CASES = ("types_u8", "types_s8", "axis_initializers")
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
    """The committed packs as files for the benches and for the judge."""
    root = tmp_path_factory.mktemp("packs")
    for name in ("core", "units"):
        (root / name).mkdir()
        for layout in ("hex", "raw"):
            convert_pack(open_pack(VECTORS / name), root / name / layout, layout)
    return root


def simulate(folder, pack, case_id, sources, *options):
    """Compile a bench for a case and run it; return the folder of its results."""
    header = (pack / f"test_{case_id}" / "case.svh").read_text()
    (folder / "case.vh").write_text(header.replace(f"`define {case_id}_", "`define "))
    outputs = folder / "results" / f"test_{case_id}" / "outputs"
    outputs.mkdir(parents=True)
    files = [HERE / source for source in sources]
    command = ["iverilog", "-Wall", *options, "-I", HERE, "-I", folder, "-o", "bench", *files]
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
    sources = ["bench.v", "lstm_cell.v"]
    results = simulate(tmp_path, packs / "core/hex", case_id, sources, *options)

    said = judge_c.run(judge, packs / "core/raw", results, case_id)
    assert said.cases[case_id][0] == verdict
    assert said.code == (verdict != "pass")


REFUSED = {
    "lstm_14_clip": "has no attribute direction",
    "lstm_14_peepholes": "has no peepholes",
    "gru_14_clip": "is not an LSTM but GRU-14",
    "lstm_22_dtype_bfloat16": "is for float32, not bfloat16",
}


@pytest.mark.parametrize("case_id", REFUSED)
def test_what_a_cell_in_verilog_cannot_run_is_refused(judge, packs, tmp_path, case_id):
    """With the reason, by the features of the case, instead of outputs."""
    results = simulate(tmp_path, packs / "core/hex", case_id, ["bench.v", "lstm_cell.v"])

    said = judge_c.run(judge, packs / "core/raw", results, case_id)
    assert said.cases[case_id][0] == "refused"
    told = (results / f"test_{case_id}" / "refused.txt").read_text()
    assert told == f"{REFUSED[case_id]}\n"


@pytest.mark.parametrize("case_id", [f"rnn_14_{of}" for of in INTEGER_CASES])
@pytest.mark.parametrize("verdict", ["pass", "differs"])
def test_integers_in_verilog_are_judged(judge, packs, tmp_path, case_id, verdict):
    """The cell in integers gives every level; without the half before its shift, others."""
    options = ["-DBROKEN"] if verdict == "differs" else []
    sources = ["rnn_unit_bench.v", "rnn_unit_cell.v"]
    results = simulate(tmp_path, packs / "units/hex", case_id, sources, *options)

    said = judge_c.run(
        judge, "--reading", "requantise=state", packs / "units/raw", results, case_id
    )
    assert said.cases[case_id][0] == verdict
    if verdict == "differs" and case_id == "rnn_14_axis_initializers":  # Y_h has levels of Y
        asked = {"select": f"id:{case_id}", "reading": {"requantise": "state"}}
        (case,) = verified(VECTORS / "units", results=str(results), **asked).cases
        assert "round=truncate" in case.details.fits
