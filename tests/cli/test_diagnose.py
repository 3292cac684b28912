"""Claims about `rnncli diagnose` as a user and a script meet it."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.judged import core

from rnncli.mutants.catalogue import MUTANTS

CORE = Path(__file__).parents[2] / "vectors" / "core"
FEW = "rnn_14_initial or rnn_14_both or rnn_7"
DROPPED = ("diagnose", CORE, "--backend", "mutant:recurrent-bias-dropped", "-k", FEW)


def test_a_pipe_gets_a_line_a_cause(rnncli):
    """The bug, how many failures it explains, which passes it predicts; exit 1."""
    done = rnncli(*DROPPED)
    (row,) = done.rows

    assert done.code == 1
    assert (row["cell"], row["bug"]) == ("RNN", "recurrent-bias-dropped")
    assert row["explains"] == row["of"]
    assert (row["refuted by"], float(row["worst margin"]) <= 1) == ("0", True)


def test_a_terminal_gets_sentences(rnncli, monkeypatch):
    """What explains how much, and what goes wrong."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = rnncli(*DROPPED)

    assert "RNN: recurrent-bias-dropped explains " in done.out
    assert f"\n  {MUTANTS['recurrent-bias-dropped'].sentence}\n" in done.out


def test_json_is_a_line_a_cause_and_one_of_the_rest(rnncli):
    """Ids, so that a script can go on from there."""
    cause, rest = map(json.loads, rnncli(*DROPPED, "--json").out.splitlines())

    assert (cause["kind"], cause["hypothesis"]) == ("cause", "recurrent-bias-dropped")
    assert len(cause["explains"]) == cause["of"]
    assert rest == {"kind": "unexplained", "cases": []}


def test_what_nothing_explains_is_said(rnncli, tmp_path):
    """A bug that is none of ours is not given the name of one."""
    folder = tmp_path / "test_rnn_7_plain" / "test_data_set_0"
    folder.mkdir(parents=True)
    for path in (CORE / "test_rnn_7_plain" / "test_data_set_0").glob("output_*.pb"):
        content = bytearray(path.read_bytes())
        content[-1] ^= 0x80  # the sign of the last element alone
        (folder / path.name).write_bytes(content)

    done = rnncli("diagnose", CORE, "--results", tmp_path, "-k", "rnn_7_plain")

    assert done.code == 1
    assert done.out == ""
    lines = done.err.splitlines()
    said = lines.index("no known bug explains rnn_7_plain")
    assert "a pattern, no proof: only the last unit is wrong, in 1 case" in lines[said + 1 :]


def test_failures_without_a_wrong_value_are_no_failures_to_explain(rnncli, tmp_path):
    """An output that nobody requested and one of another dtype say nothing of a bug."""
    ids = ("lstm_14_y_only", "lstm_14_cell_only", "rnn_7_plain")
    right = {name: core()[name].answers.outputs for name in ids}
    more = {
        "lstm_14_y_only/Y_h": np.zeros(1, np.float32),
        "rnn_7_plain/Y": np.float64(right["rnn_7_plain"]["Y"]),
    }
    got = {f"{name}/{k}": value for name in ids for k, value in right[name].items()}
    np.savez(tmp_path / "got.npz", **(got | more))

    done = rnncli("diagnose", CORE, "--results", tmp_path / "got.npz", "-k", " or ".join(ids))

    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "no case to compare with known bugs",
        "fails without a wrong value: rnn_7_plain, lstm_14_y_only",
        "Y: dtype is float64, wanted float32, in 1 case",
        "Y_h: was not requested, in 1 case",
    ]


def test_a_case_whose_outputs_cannot_all_be_compared_is_not_called_unknown(rnncli, tmp_path):
    """Nor does it count as a pass, which would rule out the bug of another case."""
    ids = ("rnn_14_wide", "rnn_14_ragged")
    right = {name: core()[name].answers.outputs for name in ids}
    got = {f"{name}/{k}": np.zeros_like(value) for name in ids for k, value in right[name].items()}
    got |= {f"rnn_14_ragged/{k}": value for k, value in right["rnn_14_ragged"].items()}
    got |= {"rnn_14_ragged/Y_h": np.zeros_like(right["rnn_14_ragged"]["Y_h"])}
    got |= {"rnn_14_wide/Y": np.zeros(3, np.float32)}
    np.savez(tmp_path / "got.npz", **got)
    asked = (CORE, "--results", tmp_path / "got.npz", "-k", " or ".join(ids))

    done = rnncli("diagnose", *asked)
    assert done.code == 1
    assert [(row["bug"], row["refuted by"]) for row in done.rows] == [("last-h-at-t-minus-1", "0")]
    assert done.err.splitlines() == [
        "compared with no known bug, since not every output can be: rnn_14_wide",
        "Y: shape is [3], wanted [4, 1, 3, 5], in 1 case",
    ]
    told = rnncli("verify", *asked, "--diagnose").err
    assert "none, since not every output can be compared with those of known bugs" in told
    assert "no known bug" not in told.replace("those of known bugs", "")


def test_nothing_wrong_is_exit_0(rnncli):
    """There is nothing to explain."""
    done = rnncli("diagnose", CORE, "--backend", "numpy", "-k", FEW)

    assert (done.code, done.out) == (0, "")
    assert done.err == "no case to compare with known bugs\n4 of 4 cases answered: 4 pass\n"


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ([], 2, "say what to judge"),
        (["--backend", "mutant:recurrent-bias-droped"], 2, "did you mean"),
        (["--backend", "numpy", "-k", "transformer"], 5, "selects no case"),
        (["--backend", "numpy", "--require", "opsett=14"], 2, "did you mean 'opset'"),
    ],
)
def test_a_wrong_request_is_said_before_anything_runs(rnncli, options, code, sentence):
    """As `verify` says it."""
    done = rnncli("diagnose", CORE, *options)

    assert (done.code, done.out) == (code, "")
    assert sentence in done.err


def test_several_workers_agree(rnncli):
    """-j 2 prints what -j 1 does."""
    assert rnncli(*DROPPED).out == rnncli(*DROPPED, "-j", 2).out
