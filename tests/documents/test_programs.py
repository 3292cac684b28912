"""Programs of the documentation that judge by themselves: what is wrong is not green there."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support import shipped

from rnncli.generating.generation import GenerationPlan, generate

BENCH = Path(__file__).parents[2] / "docs/programs/bench.c"
RIGHT = "= tanhf(sum);"
KERNELS = {
    RIGHT: 0,
    "= 0 * tanhf(sum) / 0.0f;": 1,
    "= tanhf(sum) / 0.0f;": 1,
    "= tanhf(sum) + (u == H - 1) * 1e-5f;": 1,
}


@pytest.mark.parametrize(("kernel", "status"), KERNELS.items(), ids=["right", "NaN", "inf", "off"])
def test_the_bench_agrees_with_a_right_kernel_alone(kernel, status, tmp_path):
    """A NaN is no less wrong than another number, though no comparison with it is true."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    asked = GenerationPlan(suite=shipped.suite("core"), selection="id:rnn_14_ragged", layout="c")
    generate(asked, tmp_path / "core_c", print)
    source = BENCH.read_text("utf-8")
    assert source.count(RIGHT) == 1
    (tmp_path / "bench.c").write_text(source.replace(RIGHT, kernel))

    command = ["gcc", "-w", f"-I{tmp_path / 'core_c'}", "-o", tmp_path / "bench"]
    subprocess.run([*command, tmp_path / "bench.c", "-lm"], check=True)
    done = subprocess.run([tmp_path / "bench"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, ["agrees\n", "differs\n"][status])
