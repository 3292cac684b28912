"""Claims about `rnncli score` as a user and a script meet it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rnncli.mutants.catalogue import STRUCTURAL
from rnncli.mutants.equivalence import always_seen
from rnncli.mutants.mutant import Change, Mutant

CORE = Path(__file__).parents[2] / "vectors" / "core"
SMALL = "rnn_7 or gru_7"
PEEPHOLES = "lstm_14_peepholes and not ragged"


def local(name, unseen=always_seen, **changes):
    """A mutant made here, by changing a recurrence."""

    def result(run, recurrence):
        return run(replace(recurrence, **changes))

    return Mutant(name, (), "", "", "", Change(result=result), unseen)


LOCALS = (
    local("no-bias", Wb=None, unseen=lambda r: "no input bias" if r.Wb is None else ""),
    local("no-recurrent-bias", Rb=None),
    local("right"),
)
STRUCTURES = [
    STRUCTURAL[name]
    for name in (
        "nan-in-padding-of-r-8",
        "unit-tail-not-activated-8",
        "kept-w",
        "sorting-y-left-sorted",
    )
]
FAMILIES = {
    **{mutant.id: "biases" for mutant in LOCALS},
    **{mutant.id: mutant.family for mutant in STRUCTURES},
}


@pytest.fixture
def few(monkeypatch):
    """Three mutants for each cell and four structural ones, in this process."""
    monkeypatch.setattr("rnncli.judging.scoring.kill_matrix.scored_of", lambda *_, **__: LOCALS)
    monkeypatch.setattr("rnncli.judging.scoring.kill_matrix.family_of", FAMILIES.get)
    monkeypatch.setattr("rnncli.judging.scoring.adequacy.structural_of", lambda _: STRUCTURES)


def tables(outcome):
    """The tables on standard output, which an empty line separates, as lists of rows."""
    return [[line.split("\t") for line in part.splitlines()] for part in outcome.out.split("\n\n")]


def test_a_pipe_gets_tables(rnncli, few):
    """Scores, survivors with reasons, what one vector alone kills; the sum is on stderr."""
    done = rnncli("score", CORE, "-k", f"rnn_7 or ({PEEPHOLES})")

    scores, families, structural, covered, survivors, missing, alone = tables(done)
    assert done.code == 0
    assert scores[0][:2] == ["by", "name"]
    assert [row[:2] for row in scores[1:]] == [
        ["cell", "RNN"],
        ["cell", "LSTM"],
        ["dtype", "float32"],
        ["all", "all"],
    ]
    assert ["RNN", "no-bias", "equivalent", "-", "never exercised: no input bias"] in survivors
    assert next(row for row in survivors if row[:2] == ["LSTM", "right"])[4].startswith("changes")
    assert alone[1][0] == "lstm_14_peepholes"
    killed, percent = scores[-1][4], float(scores[-1][-1])
    assert f"{killed} of 6 mutants are killed by 2 vectors: {percent:.1f} %\n" in done.err
    assert families[1] == ["biases", f"{killed} of 6", f"{percent:.3g}"]
    assert structural[1:] == [
        ["alignment", "2 of 2", "100", "2 of 2", "-", "-"],
        ["unit tails", "0 of 2", "0", "-", "0 of 2", "-"],
        ["kept buffers", "0 of 2", "0", "-", "-", "0 of 2"],
        ["sorting", "0 of 2", "0", "0 of 2", "-", "-"],
        ["all", "2 of 8", "25", "2 of 4", "0 of 2", "0 of 2"],
    ]
    assert covered[4] == ["H, units", "5, at most 5; beyond 4", "1; beyond 8, 16, 32, 64, 128, 256"]
    assert ["threads", "nothing"] in [line[:2] for line in covered]
    assert ["2", "never reached: H beyond 8", ""] in missing
    assert ["2", "never reached: second call", ""] in missing
    assert [line[2] for line in missing if "sorted by length" in line[1]] == [
        "sorting-y-left-sorted"
    ]
    assert done.err.endswith(
        "structural mutants: size-free 2 of 4, sized 0 of 2, second call 0 of 2: 25.0 %\n"
    )


def test_json_is_one_object(rnncli, few):
    """With all but the single margins."""
    done = rnncli("score", CORE, "-k", "lstm_14_p", "--json", "--minimise")
    record = json.loads(done.out)

    assert set(record) == {
        *("suite", "rule", "total", "cells", "dtypes", "survivors", "vectors", "unscored"),
        *("minimal", "families", "data_sets", "structural", "coverage"),
    }
    assert record["rule"] == "the pack's tolerances"
    structural = record["structural"]
    assert [each["name"] for each in structural["reach"]] == ["size-free", "sized", "second call"]
    assert structural["total"]["killed"] + len(structural["survivors"]) == 4
    assert {each["what"] for each in record["coverage"]} >= {"T, steps", "second calls", "threads"}
    assert record["total"]["killed"] + len(record["survivors"]) == record["total"]["mutants"]
    assert {each["id"] for each in record["vectors"]} >= set(record["minimal"]) != set()
    assert all(set(each["only"]) <= set(each["kills"]) for each in record["vectors"])


def test_matrix_holds_every_margin(rnncli, few, tmp_path):
    """A vector a line, an object a mutant."""
    path = tmp_path / "matrix.json"
    rnncli("score", CORE, "-k", f"lstm_7_plain or ({PEEPHOLES})", "--matrix", path)
    written = json.loads(path.read_text())["vectors"]
    vectors = {each["id"]: each["mutants"] for each in written}
    structural = written[1]["structural"]

    assert list(vectors) == ["lstm_7_plain", "lstm_14_peepholes"]
    assert all(set(each) == {mutant.id for mutant in LOCALS} for each in vectors.values())
    assert vectors["lstm_7_plain"]["no-bias"] == {"fate": "equivalent", "reason": "no input bias"}
    assert vectors["lstm_14_peepholes"]["no-bias"]["margin"] > 1
    assert vectors["lstm_14_peepholes"]["right"]["fate"] == "survived"
    assert {name: found["fate"] for name, found in structural.items()} == {
        "nan-in-padding-of-r-8": "killed",
        "unit-tail-not-activated-8": "equivalent",
        "kept-w": "equivalent",
        "sorting-y-left-sorted": "equivalent",
    }


def test_the_rule_is_chosen(rnncli, few):
    """Wide tolerances see nothing; ONNX's are named."""

    def total(*options):
        done = rnncli("score", CORE, "-k", PEEPHOLES, "--json", *options)
        record = json.loads(done.out)
        return record["rule"], record["total"]["killed"]

    assert total("--atol", "100") == ("atol 100", 0)
    assert total("--onnx") == ("ONNX's tolerances", 2)
    assert total("--rtol", "1e-3", "--atol", "1e-7")[1] == 2


def test_min_score_fails(rnncli, few):
    """Exit 1 below it, 0 at it."""
    select = ("score", CORE, "-k", PEEPHOLES, "--min-score")

    assert [rnncli(*select, percent).code for percent in (66, 67)] == [0, 1]
    assert rnncli(*select, 67).err.endswith("% is less than --min-score 67\n")


def test_min_structural_fails(rnncli, few):
    """It counts the structural mutants alone, and --min-score does not count them."""
    select = ("score", CORE, "-k", PEEPHOLES, "--min-structural")

    assert [rnncli(*select, percent).code for percent in (25, 26)] == [0, 1]
    assert rnncli(*select, 25, "--min-score", 67).code == 1


def test_a_suite_is_made_in_memory(rnncli, few, tmp_path, monkeypatch):
    """It scores what its pack scores, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    made, packed = (
        json.loads(rnncli("score", source, "-k", SMALL, "--json").out) for source in ("core", CORE)
    )

    assert made == packed
    assert list(tmp_path.iterdir()) == []


def test_several_workers_agree(rnncli):
    """-j 2 prints what -j 1 does, with the real mutants."""
    one, two = (
        rnncli("score", CORE, "-k", "rnn_14_a or rnn_7", "--minimise", "-j", jobs)
        for jobs in (1, 2)
    )

    assert one.code == two.code == 0
    assert one.out == two.out


def test_a_page_is_written_beside_the_table(rnncli, tmp_path):
    """With the picture."""
    path = tmp_path / "score.html"
    done = rnncli("score", CORE, "-k", SMALL, "--html", path)

    assert done.code == 0
    assert "Every mutant in every vector" in path.read_text(encoding="utf-8")
