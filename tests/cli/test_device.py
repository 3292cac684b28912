"""Claims about `--device` as a user meets it."""

from __future__ import annotations

import json

import pytest
from support.small_suite import TEXT as SMALL
from support.tables import every

from rnncli.generating import tailoring

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

    ran = rnncli(*asked)
    assert ran.code == 5
    assert "requires hidden_size a multiple of 16, has 5" in ran.out + ran.err


def test_lint_finds_what_a_device_gets_wrong(rnncli, tmp_path):
    """With its place."""
    path = tmp_path / "npu.yaml"
    path.write_text(TEXT.replace("opset", "opsat").replace("version", "varsion"))

    ran = rnncli("lint", str(path))
    assert ran.code == 1
    assert ran.out.startswith(f"{path}:3:5: 'require'[0] cannot require")


@pytest.fixture
def few(monkeypatch):
    """Few candidates, so that a search is short."""
    monkeypatch.setattr(tailoring, "MOST_CANDIDATES", 8)


def test_a_suite_for_a_device_makes_the_same_pack_without_a_search(rnncli, tmp_path, few):
    """What was found is kept as YAML that people read."""
    (tmp_path / "npu.yaml").write_text(TEXT.replace("version=14", "opset<=22"))
    (tmp_path / "small.yaml").write_text(SMALL)
    asked = ["--device", str(tmp_path / "npu.yaml"), "-o", str(tmp_path / "pack")]
    saved = ["--save-suite", str(tmp_path / "saved.yaml"), "--max-cases", "4"]

    ran = rnncli("generate", str(tmp_path / "small.yaml"), *asked, *saved)
    assert ran.code == 0, ran.err
    assert "18 cases: 0 as they are, 13 moved" in ran.err
    assert "\nsmall-npu-x-2.1\t" not in ran.out
    ran = rnncli("generate", str(tmp_path / "saved.yaml"), "-o", str(tmp_path / "pack"), "--check")
    assert (ran.code, ran.err) == (0, f"{tmp_path / 'pack'}: 4 cases, clean\n")


def test_only_what_a_device_shows_counts(rnncli, tmp_path, few):
    """A bug that no case within it shows is outside, and lowers no score."""
    (tmp_path / "gru.yaml").write_text("device: gru\nrequire: ['op=GRU, clip=never, layout=0']\n")
    asked = ["score", "smoke", "--device", str(tmp_path / "gru.yaml"), "--json"]

    ran = rnncli(*asked)
    record = json.loads(ran.out)
    assert ran.code == 0
    assert record["device"] == "gru"
    assert record["outside"] > 50
    assert [each["name"] for each in record["cells"]] == ["GRU"]
    assert "outside: " in ran.err
    assert not any("clip" in each["mutant"] for each in record["survivors"])


def test_a_device_lists_and_traces_what_it_takes(rnncli, tmp_path):
    """By suite and by pack; nothing that it takes is exit 5, with what makes some."""
    device = tmp_path / "gru.yaml"
    device.write_text("device: gru\nrequire: ['op=GRU, layout=0']\n")

    for where in ("core", "vectors/core"):
        ran = rnncli("list", where, "--device", str(device))
        assert ran.code == 0
        assert all(name.startswith("gru_") for name in ran.out.split())
        assert ran.err == "outside of gru: 132 of 188 cases, 126 of them since it requires op GRU\n"
    ran = rnncli("trace", "smoke", "gru.y.order", "--device", str(device), "--with", "core")
    assert ran.code == 0
    assert ran.err.splitlines()[-1].startswith("core: outside of gru: 132 of 188 cases, 126 of")
    ran = rnncli("list", "webnn", "--device", str(device))
    assert ran.code == 5
    assert f"`rnncli generate SUITE --device {device}` moves cases into it" in ran.err


def test_options_of_a_device_need_one(rnncli):
    """Otherwise they would be ignored."""
    ran = rnncli("generate", "smoke", "--max-cases", "3", "-o", "nowhere")
    assert (ran.code, ran.err) == (2, "--max-cases is for --device\n")


def test_options_that_contradict_a_device_are_refused(rnncli, tmp_path):
    """Before a search, whose result would not be what was asked for."""
    device, saved = tmp_path / "gru.yaml", tmp_path / "saved.yaml"
    device.write_text("device: gru\nrequire: ['op=GRU']\n")
    asked = ("generate", "smoke", "--device", str(device), "-o", str(tmp_path / "pack"))

    for option in (["--weights", "initializers"], ["--check", "--save-suite", str(saved)]):
        ran = rnncli(*asked, *option)
        assert ran.code == 2
        assert option[0] in ran.err
    assert not saved.exists()


def test_bugs_are_outside_only_if_others_were_tried(rnncli, tmp_path, monkeypatch):
    """Otherwise every score would be 100 %."""
    monkeypatch.setattr(tailoring, "candidates", lambda *_, beside: {})
    (tmp_path / "gru.yaml").write_text("device: gru\nrequire: ['op=GRU, layout=0']\n")

    ran = rnncli(
        "score", "smoke", "--device", str(tmp_path / "gru.yaml"), "--min-structural", "100"
    )
    assert ran.code == 1
    assert "outside: 0 mutants, which 0 other cases within gru did not show either" in ran.err
