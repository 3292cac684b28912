"""`rnncli stream` from the command line."""

import json

import onnx
import pytest
from support.streamed_layers import LAYERS, layers

SWAPPED = LAYERS.replace("y, h_out, c_out", "y, c_out, h_out")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with a model whose states are swapped, and one that is right."""
    onnx.save(layers(SWAPPED), tmp_path / "swapped.onnx")
    onnx.save(layers(), tmp_path / "right.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_reports_and_known_failures_are_those_of_every_command(place, rnncli):
    """Lines, JUnit, the command that repeats a case, and xfails by ids of relations."""
    command = ["stream", "swapped.onnx", "--backend", "numpy", "--relation", "chunks-2"]
    (place / "known.txt").write_text("swapped::chunks-* states are swapped\n")

    failed = rnncli(*command, "--json", "--junit", "out.xml")
    lines = [json.loads(line) for line in failed.out.splitlines()]
    (case,) = (line for line in lines if line["kind"] == "case")

    assert (failed.code, case["id"], case["verdict"]) == (1, "swapped::chunks-2", "differs")
    assert case["repeat"].endswith("--relation chunks-2 -k id:swapped::chunks-2")
    assert "swapped::chunks-2" in (place / "out.xml").read_text()
    assert rnncli(*command, "--xfails", "known.txt").code == 0


def test_recorded_lines_are_reported_again(place, rnncli):
    """`rnncli report` reads what `stream --json` prints, with its exit code."""
    found = rnncli("stream", "swapped.onnx", "--backend", "numpy", "--json")
    (place / "run.jsonl").write_text(found.out)

    again = rnncli("report", "run.jsonl", "--html", "out.html")

    assert again.code == found.code == 1
    assert "swapped::chunks-1" in (place / "out.html").read_text()


def test_states_and_sizes_are_options(place, rnncli):
    """They decide, and stand in the command that repeats a case."""
    wrong = ["--state", "past_in=past_out", "--state", "h_in=c_out", "--state", "c_in=h_out"]

    passed = rnncli("stream", "swapped.onnx", *wrong)
    failed = rnncli("stream", "right.onnx", *wrong, "--dim", "T=9")
    unknown = rnncli("stream", "right.onnx", "--backend", "numpy", "--state", "h=h_out")

    assert passed.code == 0
    assert failed.code == 1
    assert " --state c_in=h_out --dim T=9 -k id:right::chunks-1" in failed.out + failed.err
    assert unknown.code == 2
    assert "--state: no input 'h'" in unknown.err
