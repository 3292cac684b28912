"""A bench in cocotb: it reads a raw pack, drives a cell in Verilog, and `verify` judges that."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.asked import verified
from support.documentation import Runner, blocks, checkout

from rnncli.judging.comparing.verdict import Verdict
from rnncli.packs.conversion import convert_pack
from rnncli.packs.pack import open_pack

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CORE = ROOT / "vectors" / "core"
PAGE = ROOT / "docs" / "howto" / "hardware.md"
BENCH = HERE / "cocotb_bench.py"
CASES = ("lstm_7_plain", "lstm_14_initial", "lstm_14_ragged")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cocotb") is None or not shutil.which("iverilog"),
    reason="needs cocotb, of the extra of that name, and iverilog",
)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """The committed pack as raw files."""
    folder = tmp_path_factory.mktemp("pack") / "core_raw"
    convert_pack(open_pack(CORE), folder, "raw")
    return folder


def run_bench(pack, results, *words):
    """Run the bench, as a user does."""
    command = [sys.executable, BENCH, pack, results, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def judged(results, case_ids):
    """The verdict and the message on each case."""
    selection = " or ".join(f"id:{case_id}" for case_id in case_ids)
    report = verified(CORE, results=str(results), select=selection)
    return {case.id: (case.verdict, case.details.message) for case in report.cases}


@pytest.mark.parametrize(
    ("options", "verdict"), [((), Verdict.PASS), (("-DBROKEN",), Verdict.DIFFERS)]
)
def test_a_cell_in_verilog_is_judged(pack, tmp_path, options, verdict):
    """The behavioural cell passes; with two gates exchanged it differs."""
    done = run_bench(pack, tmp_path / "results", *CASES, *options)
    assert done.returncode == 0, done.stderr

    assert judged(tmp_path / "results", CASES) == dict.fromkeys(CASES, (verdict, ""))


REFUSED = {
    "rnn_14_ragged": "is not an LSTM but RNN-14",
    "lstm_14_clip": "has no attribute clip, direction",
    "lstm_14_peepholes": "has no peepholes",
}


def test_what_the_cell_cannot_run_is_refused(pack, tmp_path):
    """With the reason, and without a simulation."""
    done = run_bench(pack, tmp_path / "results", *REFUSED)
    assert done.returncode == 0, done.stderr

    assert judged(tmp_path / "results", REFUSED) == {
        case_id: (Verdict.REFUSED, reason) for case_id, reason in REFUSED.items()
    }
    assert not (tmp_path / "results" / "build").exists()


def test_a_bench_that_fails_is_no_result(pack, tmp_path):
    """A file of inputs that is not there ends the run, with the log's name."""
    shutil.copytree(pack / "test_lstm_7_plain", tmp_path / "pack" / "test_lstm_7_plain")
    (tmp_path / "pack" / "test_lstm_7_plain" / "inputs" / "X.bin").unlink()
    done = run_bench(tmp_path / "pack", tmp_path / "results", "lstm_7_plain")

    assert done.returncode == 1
    assert "test_lstm_7_plain: the bench failed; " in done.stderr
    verdict, _ = judged(tmp_path / "results", ["lstm_7_plain"])["lstm_7_plain"]
    assert verdict is Verdict.MISSING


def test_the_page_shows_the_bench(tmp_path):
    """Its commands print what it says."""
    text = PAGE.read_text("utf-8")
    shown = [block for block in blocks(text) if block.title.startswith("not run: needs cocotb")]
    runner = Runner(PAGE, checkout(tmp_path))
    runner.sh("rnncli convert vectors/core core_raw --format raw")

    assert len(shown) == 1
    assert [found for block in shown for found in runner.console(block, text)] == []
