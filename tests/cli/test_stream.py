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
    assert case["repeat"].endswith(" --steps 3 --sequences 1 -k id:swapped::chunks-2")
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
    repeat = " --state c_in=h_out --dim T=9 --steps 2 --sequences 1 -k id:right::chunks-1"
    assert repeat in failed.out + failed.err
    assert unknown.code == 2
    assert "--state: no input 'h'" in unknown.err


def test_sizes_without_a_name_are_asked_for_and_taken(place, rnncli):
    """A window whose dimensions the model does not name."""
    proto = layers()
    for value in proto.graph.input:
        if value.name == "x":
            value.type.tensor_type.shape.dim[2].Clear()
    window = onnx.helper.make_tensor("window", onnx.TensorProto.INT64, [3], [-1, 4, 5])
    proto.graph.initializer.append(window)
    proto.graph.node[0].input[1] = "framed"
    reshape = onnx.helper.make_node("Reshape", ["x", "window"], ["framed"])
    proto.graph.node.insert(0, reshape)
    onnx.save(proto, place / "unnamed.onnx")

    asked = rnncli("stream", "unnamed.onnx", "--dim", "N=1")
    taken = rnncli("stream", "unnamed.onnx", "--dim", "N=1", "--shape", "x=1,4,5")

    assert asked.code == 2
    assert "give sizes, which have no name: dimension 2 of x (--shape x=N,4,N)" in asked.err
    assert taken.code == 0
