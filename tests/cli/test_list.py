"""`rnncli list`, and cases of suites as targets of other commands."""

from __future__ import annotations

import json

import pytest
import yaml
from support.shipped import suite as shipped

from rnncli.cases.library import suite_names
from rnncli.cases.suite.suite import load_suite
from rnncli.cli.options import NAMED_TARGET, SUITE
from rnncli.files.formats import read_tensors

SUITE_TEXT = """\
suite: small
summary: A few cases.
notes: {Reverse: walks forward, Lengths: reads beyond the end}
cases:
  walk:
    op: RNN-14
    flags: [Reverse]
    sizes: {seq_length: 2, batch_size: 2, input_size: 1, hidden_size: 3}
    matrix: {direction: [forward, reverse]}
  lengths:
    op: RNN-14
    flags: [Lengths]
    sizes: {seq_length: 2, batch_size: 2, input_size: 1, hidden_size: 3}
    inputs: {sequence_lens: lengths}
    breaks: {inputs: {sequence_lens: [1, 3]}}
"""
IDS = ["rnn_14_walk_forward", "rnn_14_walk_reverse", "rnn_14_lengths"]


@pytest.fixture
def suite(tmp_path):
    """A suite of two valid cases and one that must be rejected."""
    path = tmp_path / "small.yaml"
    path.write_text(SUITE_TEXT)
    return path


def test_ids_one_a_line(rnncli, suite):
    """In the order of the file."""
    assert rnncli("list", suite).out.splitlines() == IDS


@pytest.mark.parametrize("name", suite_names())
def test_shipped_suites_are_listed_by_name(rnncli, name):
    """From wherever one is; as JSON, NaN of a broken clip included."""
    found = rnncli("list", name, "--json")
    records = [json.loads(line, parse_constant=pytest.fail) for line in found.out.splitlines()]

    assert (found.code, found.err) == (0, "")
    assert [record["id"] for record in records] == [entry.id for entry in shipped(name).entries]


def test_selection(rnncli, suite):
    """`-k` as everywhere; nothing selected is exit 5, no expression exit 2."""
    assert rnncli("list", suite, "-k", "reverse and not forward").out.splitlines() == IDS[:2][1:]
    assert rnncli("list", suite, "-k", "Lengths").out.splitlines() == IDS[2:]
    nothing = rnncli("list", suite, "-k", "bidirectional")
    assert (nothing.code, nothing.out) == (5, "")
    assert "'bidirectional' selects no case of 3; no case has 'bidirectional'" in nothing.err
    assert rnncli("list", suite, "-k", "not").code == 2


def test_json_has_what_is_known_of_a_case(rnncli, suite):
    """One object on each line."""
    _, reverse, lengths = map(json.loads, rnncli("list", suite, "--json").out.splitlines())

    assert reverse == {
        "id": "rnn_14_walk_reverse",
        "operator": "RNN-14",
        "dtype": "float32",
        "flags": ["Reverse"],
        "labels": {"direction": "reverse"},
        "weights": "inputs",
        "golden": "certified",
        "profile": "standard",
        "calls": 1,
        "horizon": None,
        "breaks": None,
    }
    assert lengths["breaks"] == {"inputs": {"sequence_lens": [1, 3]}}


def test_a_missing_or_wrong_suite_is_exit_2(rnncli, tmp_path):
    """With its findings."""
    assert rnncli("list", "smok").code == 2
    (tmp_path / "x.yaml").write_text("suite: x\nsumary: y\n")
    wrong = rnncli("list", tmp_path / "x.yaml")
    assert wrong.code == 2
    assert "x.yaml:2:1: unknown key 'sumary'; did you mean 'summary'?" in wrong.err


def test_names_of_suites_are_completed():
    """Behind files, because bash drops what it was offered before those."""
    offered = [(item.type, item.value) for item in SUITE.shell_complete(None, None, "three")]

    assert offered == [("file", "three"), ("plain", "three-way")]


def test_names_of_configs_are_completed():
    """For `run`, which takes a config or a suite by its name."""
    offered = [item.value for item in NAMED_TARGET.shell_complete(None, None, "lstm_14_peep")]

    assert "lstm_14_peepholes" in offered


def test_run_of_a_suite_runs_every_valid_case(rnncli, suite, tmp_path):
    """Each in an entry of its own name; those that must be rejected are left to `verify`."""
    outcome = rnncli("run", suite, "-o", tmp_path / "out", "--format", "npz")

    assert outcome.code == 0
    assert sorted(path.stem for path in (tmp_path / "out").iterdir()) == IDS[:2]
    assert {row["target"] for row in outcome.rows} == {f"{suite}::{name}" for name in IDS[:2]}


def test_run_of_one_case(rnncli, suite, tmp_path):
    """By id; the seed of the command line is the suite's."""
    target = f"{suite}::rnn_14_walk_reverse"
    assert (
        rnncli("run", target, "-o", tmp_path / "a.npz", "--save-inputs", tmp_path / "i.npz").code
        == 0
    )
    assert rnncli("run", target, "-o", tmp_path / "b.npz", "--seed", "3").code == 0
    inputs = load_suite(suite).entry("rnn_14_walk_reverse").case().inputs

    saved = read_tensors(tmp_path / "i.npz")
    assert all((saved[name] == values).all() for name, values in inputs.items())
    assert (read_tensors(tmp_path / "a.npz")["Y"] != read_tensors(tmp_path / "b.npz")["Y"]).any()


def test_run_of_a_case_that_must_be_rejected_rejects_it(rnncli, suite):
    """As any invalid node."""
    outcome = rnncli("run", f"{suite}::rnn_14_lengths")

    assert outcome.code == 2
    assert "sequence_lens[1] must be between 0 and seq_length = 2, got 3" in outcome.err


def test_run_of_nothing_but_rejections_is_exit_5(rnncli):
    """Nothing could be evaluated."""
    assert rnncli("run", "reject").code == 5


def test_run_of_an_unknown_case_suggests_one(rnncli, suite):
    """And of a suite with findings, shows them."""
    assert (
        "did you mean 'rnn_14_walk_reverse'?" in rnncli("run", f"{suite}::rnn_14_walk_revers").err
    )
    suite.write_text(SUITE_TEXT.replace("summary", "sumary"))
    assert "unknown key 'sumary'" in rnncli("run", suite).err


def test_inspect_shows_a_case_in_full(rnncli, suite):
    """With what its flags find; a suite itself is not one case."""
    shown = yaml.safe_load(rnncli("inspect", f"{suite}::rnn_14_lengths").out)

    assert shown["id"] == "rnn_14_lengths"
    assert shown["inputs"]["sequence_lens"] == "lengths"
    assert shown["flags"] == {"Lengths": "reads beyond the end"}
    assert shown["breaks"] == {"inputs": {"sequence_lens": [1, 3]}}
    assert "name one of its cases" in rnncli("inspect", suite).err


def test_lint_reads_every_case(rnncli, spawned, suite):
    """A finding in a case has its id; standard input is read as well."""
    assert rnncli("lint", suite, "core", "reject").code == 0
    wrong = SUITE_TEXT.replace("matrix:", "attributes: {clip: -1}\n    matrix:")
    suite.write_text(wrong)
    found = rnncli("lint", suite)
    assert found.code == 1
    assert found.out.startswith(f"{suite}:9:24: attribute 'clip' must be greater than 0")
    assert found.out.endswith("[rnn_14_walk_forward]\n")
    assert spawned("lint", "-", stdin=wrong).out.startswith("<stdin>:9:24: attribute 'clip'")


def test_a_suite_on_standard_input_is_no_target(spawned):
    """A case of it would have no name."""
    refused = spawned("run", "-", stdin=SUITE_TEXT)

    assert refused.code == 2
    assert "<stdin>: is a suite; name one of its cases" in refused.err
