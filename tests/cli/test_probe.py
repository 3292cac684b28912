"""Claims about `rnncli probe` as a user meets it."""

from support.tables import every


def test_what_onnxruntime_refuses_is_a_device_that_every_command_reads(rnncli, tmp_path):
    """Batch first is refused, and so it says; what is written again replaces what we wrote."""
    path = tmp_path / "ort.yaml"
    asked = ("probe", "GRU", "--runtime", "onnxruntime", "--require", "version=14|7", "-o", path)

    ran = rnncli(*asked)
    assert (ran.code, ran.out) == (0, "")
    assert "refused; outputs were not judged\n" in ran.err
    text = path.read_text()
    assert '  - "op=GRU"\n  - "version=14|7"\n' in text
    assert "\n  # refused: 1: " in text.partition('  - "layout=0"\n')[0]
    assert rnncli("lint", path).code == 0
    listed = rnncli("list", "core", "--device", path)
    assert all(name.startswith(("gru_14_", "gru_7_")) for name in listed.out.split())
    assert rnncli(*asked).code == 0


def test_a_file_of_somebody_else_stays(rnncli, tmp_path):
    """Also one that was written here and changed since."""
    path = tmp_path / "mine.yaml"
    path.write_text("mine")

    ran = rnncli("probe", "RNN", "--backend", "numpy", "-o", path)
    assert ran.code == 2
    assert "is not replaced" in ran.err
    assert path.read_text() == "mine"


# What a single case meets.
ONE = (
    "version=14,dtype=float32,weights=inputs,direction=forward,inputs==none,outputs==Y"
    ",seq_length=1,batch_size=1,input_size=1,hidden_size=1"
)
WRONG = {
    "nobody": (["LSTM"], 2, "say what to judge"),
    "no operator": (["LSTM-14", "--backend", "numpy"], 2, "'LSTM-14' is not one of RNN, GRU"),
    "no requirement": (
        ["RNN", "--backend", "numpy", "--require", "hiden_size=4"],
        2,
        "unknown field 'hiden_size'; did you mean",
    ),
    "nothing is taken": (
        ["RNN", "--command", "false {outputs}", "--require", ONE],
        5,
        "takes none of 1 case; RNN: crashed ended with exit code 1",
    ),
    "no such runtime": (["RNN", "--runtime", "ort"], 2, "ort"),
    "nothing known exists": (
        ["webnn.gru", "--backend", "numpy", "--require", "version=14"],
        5,
        "webnn.gru: no case meets what --require says",
    ),
}


@every("words, code, sentence", WRONG.values(), ids=str)
def test_what_cannot_be_asked_is_said(rnncli, words, code, sentence):
    """With the exit code of its kind."""
    ran = rnncli("probe", *words)

    assert (ran.code, ran.out) == (code, "")
    assert sentence in ran.err
