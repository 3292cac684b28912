"""Claims about packs of linear recurrences: they are scored, and bugs are named by their cases."""

import json

import pytest

SUITE = """\
suite: lin
summary: Linear recurrences.
seed: 3
cases:
  la:
    op: LinearAttention-27
    summary: Every input.
    sizes: {batch_size: 2, q_num_heads: 4, kv_num_heads: 2, value_size: 3}
    inputs: {past_state: normal, decay: {uniform: [-1.0, 0.0]}, beta: {uniform: [0.0, 1.0]}}
    outputs: [output, present_state]
    matrix:
      seq_length: [1, 6, 20]
      key_size: [4, 9]
      scale: [0.0, 0.5]
  cv:
    op: CausalConvWithState-27
    summary: Every input.
    sizes: {batch_size: 2, channels: 3}
    inputs: {bias: normal, past_state: normal}
    outputs: [output, present_state]
    matrix:
      activation: [silu, none]
      seq_length: [2, 12]
      kernel_size: [1, 4, 6]
"""


@pytest.fixture
def pack(rnncli, tmp_path):
    """A pack of both operators."""
    (tmp_path / "lin.yaml").write_text(SUITE)
    done = rnncli("generate", tmp_path / "lin.yaml", "-o", tmp_path / "pack")
    assert done.code == 0, done.err
    return tmp_path / "pack"


def test_bugs_are_named_by_cases(rnncli, pack):
    """Those of the equations by their ids; those of chunks and blocks by what failures share."""
    for bug in ("decay-after-write", "present-window-of-outputs"):
        done = rnncli("diagnose", pack, "--backend", f"mutant:{bug}", "--json")
        lines = [json.loads(line) for line in done.out.splitlines()]

        assert bug in {line.get("hypothesis") for line in lines}

    for bug, pattern in (
        ("chunk-outputs-lack-state-16", "steps are wrong from step 16 on"),
        ("keys-tail-dropped-8", "all 6 failures occur where key_size > 4"),
    ):
        done = rnncli("diagnose", pack, "--backend", f"mutant:{bug}")

        assert "no known bug explains" in done.out + done.err
        assert pattern in done.out + done.err


def test_a_pack_is_scored_by_the_bugs_of_its_operators(rnncli, pack):
    """A bug that it does not show is one that it cannot, for a reason that is said."""
    (record,) = map(json.loads, rnncli("score", pack, "--json").out.splitlines())
    cells = {each["name"]: each for each in record["cells"]}

    assert [*cells] == ["LinearAttention", "CausalConv"]
    assert all(each["survived"] == 0 < each["killed"] for each in cells.values())
    assert "dk and dv differ" in json.dumps(record)
