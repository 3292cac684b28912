"""Packs of linear recurrences: every form of them is judged alike."""

import subprocess
import sys

import pytest

import rnncli


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A few cases of the suite `linear`: two types, two calls, no step, fewer steps than taps."""
    folder = tmp_path_factory.mktemp("packs") / "linear"
    select = "id:linearattention_27_types_float16_float32 or decode_gated_float16 or empty or t2_w7"
    rnncli.generate("linear", output=folder, select=select, golden="float64")
    return folder


@pytest.mark.parametrize("form", ["raw", "npz", "h5"])
def test_a_converted_pack_is_passed_by_our_own_backend(pack, form, tmp_path):
    """With the inputs, outputs and tolerances of the ONNX test cases."""
    words = ("convert", pack, tmp_path / "converted", "--format", form)
    subprocess.run([sys.executable, "-m", "rnncli", *words], check=True)
    found = rnncli.verify(tmp_path / "converted", rnncli.Implementation(backend="numpy"))

    assert found.passed
    assert len(found.cases) == len(rnncli.open_pack(pack).manifest.cases) > 8
