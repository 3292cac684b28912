"""Claims about `--device` as a user meets it."""

from __future__ import annotations

from support.tables import every

TEXT = """\
device: "npu-x 2.1"
require:
  - "op=LSTM|GRU, version=14"
  - "hidden_size%16=0, hidden_size<=256, seq_length<=8"
"""


@every(
    "command", [["verify", "--backend", "numpy"], ["relate", "--backend", "numpy"]], ids=" ".join
)
def test_what_a_device_lacks_is_skipped_and_nothing_left_is_no_success(rnncli, command, tmp_path):
    """The command that repeats a case says the device, too."""
    path = tmp_path / "npu.yaml"
    path.write_text(TEXT)
    asked = [command[0], "vectors/core", *command[1:], "--device", str(path)]

    out, err, code = rnncli(*asked)
    assert code == 5
    assert "requires hidden_size%16 0, has 5" in out + err


def test_lint_finds_what_a_device_gets_wrong(rnncli, tmp_path):
    """With its place."""
    path = tmp_path / "npu.yaml"
    path.write_text(TEXT.replace("opset", "opsat").replace("version", "varsion"))

    out, _, code = rnncli("lint", str(path))
    assert code == 1
    assert out.startswith(f"{path}:3:5: 'require'[0] cannot require")
