"""`rnncli mutants`, and `--backend mutant:ID`."""

import json

from rnncli.mutants.catalogue import (
    EVERY,
    MUTANTS,
    STRUCTURAL,
    mutants_of,
    scored_of,
    structural_of,
)


def test_every_mutant_is_listed(rnncli):
    """One line each, tab-separated in a pipe."""
    assert [row["mutant"] for row in rnncli("mutants").rows] == list(EVERY)


def test_those_of_a_cell_can_be_asked_for(rnncli):
    """In any case of its letters."""
    listed = [row["mutant"] for row in rnncli("mutants", "--cell", "lstm").rows]

    assert listed == [row.id for row in (*mutants_of("LSTM"), *structural_of("LSTM"))]


def test_a_cell_that_is_not_there_is_refused(rnncli):
    """With those that are."""
    outcome = rnncli("mutants", "--cell", "MGU")

    assert outcome.code == 2
    assert "'MGU' is not one of RNN, GRU, LSTM" in outcome.err


def test_one_is_explained(rnncli):
    """With what goes wrong, what is seen, and how to run it."""
    row, page = MUTANTS["z-inverted"], rnncli("mutants", "z-inverted").out

    for words in (row.sentence, row.effect, row.family, "--backend mutant:z-inverted"):
        assert words in page


def test_json_holds_the_same(rnncli):
    """One object a line, or one alone."""
    records = [json.loads(line) for line in rnncli("mutants", "--json").out.splitlines()]
    (one,) = map(json.loads, rnncli("mutants", "z-inverted", "--json").out.splitlines())

    assert [record["id"] for record in records] == list(EVERY)
    assert one in records
    assert one["cells"] == ["GRU"]


def test_a_misspelt_id_is_suggested(rnncli):
    """As a usage error, here and where a backend is named."""
    for call in (["mutants", "z-invertd"], ["run", "gru_7", "--backend", "mutant:z-invertd"]):
        outcome = rnncli(*call)

        assert outcome.code == 2
        assert "unknown mutant 'z-invertd'; did you mean 'z-inverted'?" in outcome.err


def test_it_runs_where_a_backend_runs(rnncli):
    """For its cell, and is refused for another by name."""
    right, wrong = (
        json.loads(rnncli("run", "gru_7", "--json", "--backend", name).out)
        for name in ("numpy", "mutant:z-inverted")
    )
    refused = rnncli("run", "lstm_14", "--backend", "mutant:z-inverted")

    assert right["runs"][0]["outputs"] != wrong["runs"][0]["outputs"]
    assert refused.code == 3
    assert "LSTM-14: backend 'mutant:z-inverted' is a bug of GRU, not of LSTM" in refused.err


def test_backends_mention_them(rnncli):
    """As a family, not one by one."""
    assert "mutant:ID" in {row["backend"] for row in rnncli("backends").rows}


def test_finer_variants_name_and_do_not_count(rnncli):
    """They are listed and explained; no suite is scored by them."""
    lines = rnncli("mutants", "--json").out.splitlines()
    records = {record["id"]: record for record in map(json.loads, lines)}

    assert records["biases-dropped"]["scored"]
    assert not records["input-bias-of-f-dropped"]["scored"]
    assert "suites are not scored by it" in rnncli("mutants", "activation-g-is-relu").out
    assert "no suite" not in rnncli("mutants", "biases-dropped").out
    assert len(scored_of("LSTM", quantised=True, dressed=True)) == sum(
        record["kind"] == "semantic" and "LSTM" in record["cells"] for record in records.values()
    )


def test_structural_ones_say_their_sizes(rnncli):
    """In JSON and on their own page; the list says what it takes to see them."""
    name = "unit-tail-not-activated-8"
    (listed,) = (row for row in rnncli("mutants").rows if row["mutant"] == name)
    record = json.loads(rnncli("mutants", name, "--json").out)

    assert listed["kind"] == "sized"
    assert (record["kind"], record["sizes"]) == ("structural", STRUCTURAL[name].size.words)
    assert record["sizes"] in rnncli("mutants", name).out


def test_a_structural_one_is_a_backend(rnncli):
    """One that small sizes do not reach is right there."""
    right, tail, nan = (
        json.loads(rnncli("run", "gru_7", "--json", "--backend", name).out)["runs"][0]["outputs"]
        for name in ("numpy", "mutant:unit-tail-not-activated-64", "mutant:nan-in-padding-of-r-8")
    )

    assert right == tail != nan


def test_the_edit_is_shown(rnncli):
    """As a diff of the lines of the kernel that `ops --kernel` prints; a function has none."""
    page, kernel = rnncli("mutants", "z-inverted").out, rnncli("ops", "GRU-14", "--kernel").out

    assert page.endswith(
        "    - new = ((1 - z) * hidden + z * H,)\n    + new = (z * hidden + (1 - z) * H,)\n"
    )
    assert "new = ((1 - z) * hidden + z * H,)\n" in kernel
    assert "forget" not in kernel
    assert "kernel" not in rnncli("mutants", "operands-in-tf32").out
    assert rnncli("ops", "--kernel").code == 2
