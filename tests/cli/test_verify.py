"""Claims about `rnncli verify` as a user and a script meet it."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from support.valid_records import valid_records

from rnncli.files.formats import pb
from rnncli.subjects.runtimes import RuntimeRow
from rnncli.verifying.case_judging import shuffled

CORE = Path(__file__).parents[2] / "vectors" / "core"
RIGHT = "rnn_7_plain"


@pytest.fixture
def results(tmp_path):
    """Right results of two cases, one of which is spoilt."""
    for case in (RIGHT, "lstm_7_plain"):
        source = CORE / f"test_{case}" / "test_data_set_0"
        target = tmp_path / "results" / f"test_{case}" / "test_data_set_0"
        target.mkdir(parents=True)
        for path in source.glob("output_*.pb"):
            shutil.copy(path, target)
    path = tmp_path / "results/test_lstm_7_plain/test_data_set_0/output_0.pb"
    name, values = pb.read_named(path)
    values = values.copy()
    values[1, 0, 2, 3] += 1
    path.write_bytes(pb.serialize(name, values))
    return tmp_path / "results"


def test_json_lines_fit_their_schema(rnncli, results):
    """One line of the run, one a case, one of the counts."""
    done = rnncli("verify", CORE, "--results", results, "-k", "rnn_7 or lstm_7", "--json")
    records = valid_records(done.out)

    assert [record["kind"] for record in records] == ["run", "case", "case", "summary"]
    assert records[-1]["verdicts"]["differs"] == 1


SIZES = """\
suite: sizes
summary: Cases of two sizes, interleaved.
seed: 11
defaults:
  sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 2}
  op: RNN-14
cases:
  one: {}
  wide: {sizes: {hidden_size: 5}}
  two: {}
"""


@pytest.fixture
def keeping(tmp_path, monkeypatch, rnncli):
    """A runtime that keeps weights by shape from case to case, and a pack that shows it."""
    row = RuntimeRow("support.second_calls:KeepsWeightsByShape", "keeps too much")
    monkeypatch.setattr("rnncli.subjects.runtimes.known_subjects", lambda: {"keeping": row})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.yaml").write_text(SIZES)
    assert rnncli("generate", "sizes.yaml", "-o", "pack").code == 0
    return ("verify", "pack", "--runtime", "keeping", "--json")


def judged(done):
    """Each case by its id."""
    return {record["id"]: record for record in valid_records(done.out) if record["kind"] == "case"}


def test_a_case_that_another_one_spoils_is_stale_and_its_command_shows_it(rnncli, keeping):
    """The command names both; alone the case passes."""
    (stale,) = [each for each in judged(rnncli(*keeping)).values() if each["verdict"] == "stale"]
    again = judged(rnncli(*shlex.split(stale["repeat"])[1:], "--json"))

    assert (stale["id"], stale["after"]) == ("rnn_14_two", ["rnn_14_one"])
    assert {name: each["verdict"] for name, each in again.items()} == {
        "rnn_14_one": "pass",
        "rnn_14_two": "stale",
    }
    assert rnncli(*keeping, "-k", "id:rnn_14_two").code == 0


def test_another_order_shows_it_elsewhere_and_its_command_has_the_seed(rnncli, keeping):
    """Which case comes first, a seed decides; reports keep the pack's order."""
    orders = ((seed, shuffled(("rnn_14_one", "rnn_14_two"), seed)) for seed in range(20))
    seed = next(seed for seed, (first, _) in orders if first == "rnn_14_two")
    found = judged(rnncli(*keeping, "--shuffle", seed))
    (stale,) = [each for each in found.values() if each["verdict"] == "stale"]
    again = judged(rnncli(*shlex.split(stale["repeat"])[1:], "--json"))

    assert [*found] == ["rnn_14_one", "rnn_14_wide", "rnn_14_two"]
    assert (stale["id"], stale["after"]) == ("rnn_14_one", ["rnn_14_two"])
    assert f"--shuffle {seed}" in stale["repeat"]
    assert again["rnn_14_one"]["verdict"] == "stale"


def test_relations_are_asked_in_another_order_too(rnncli, keeping):
    """The report keeps that of the cases."""
    options = ("--relation", "weights", "--shuffle", "3")
    done = rnncli("relate", "pack", "--backend", "numpy", "--json", *options)
    first, *found, _ = (json.loads(line) for line in done.out.splitlines())

    assert done.code == 0
    assert [each["id"].removesuffix("::weights") for each in found] == [
        *("rnn_14_one", "rnn_14_wide", "rnn_14_two")
    ]
    assert "--shuffle 3" in first["command"]


def test_a_suite_is_told_the_pack_that_lies_beside_it(rnncli, tmp_path, monkeypatch):
    """As in a checkout whose rnncli is installed without it."""
    pack = tmp_path / "vectors" / "edge"
    pack.mkdir(parents=True)
    (pack / "manifest.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    told = rnncli("verify", "edge", "--backend", "numpy").err

    assert (
        told
        == f"edge: not a pack of vectors: it is a suite, whose pack is {Path('vectors/edge')}\n"
    )
