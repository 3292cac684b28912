"""`rnncli relate` from the command line."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from support.valid_records import valid_records

from rnncli import Selected, prepare, relate
from rnncli.verifying.relations.relating import source_of
from rnncli.verifying.relations.relations import RELATIONS

SUITE = """\
suite: two
summary: Two small cases.
seed: 11
defaults:
  sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 2}
cases:
  plain:
    op: RNN-14
  ragged:
    op: GRU-14
    inputs: {sequence_lens: [3, 1]}
"""
CONFIG = "op: LSTM-14\nsizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 3}\n"
NUMPY = ("--backend", "numpy")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with a suite and a config."""
    (tmp_path / "two.yaml").write_text(SUITE)
    (tmp_path / "lstm.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(text):
    """The objects of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def test_a_suite_needs_no_pack(place, rnncli):
    """Every relation of every case, none of which fails."""
    done = rnncli("relate", "two.yaml", *NUMPY, "--json")
    first, *found, last = valid_records(done.out)

    assert done.code == 0
    assert [each["id"] for each in found] == [
        f"{case}::{name}" for case in ("rnn_14_plain", "gru_14_ragged") for name in RELATIONS
    ]
    assert [each["flags"] for each in found] == [[name] for name in RELATIONS] * 2
    assert (0, "") == (last["fails"], last["shortfall"])
    assert first["pack"]["notes"] == {name: row.finds for name, row in RELATIONS.items()}


def test_sizes_are_those_given(place, rnncli):
    """A longer batch is compared element by element; written lengths become random ones."""
    sizes = ("--sizes", "hidden_size=9,batch_size=7", "--sizes", "seq_length=4")
    done = rnncli("relate", "two.yaml", *NUMPY, *sizes, "--json", "--relation", "weights")
    _, *found, _ = lines(done.out)

    assert done.code == 0
    assert [(4 + 1) * 7 * 9] * 2 == [
        sum(output["size"] for output in each["outputs"]) for each in found
    ]
    assert [each["message"] for each in found] == ["315 of 315 elements compared (derived)"] * 2


def test_a_config_is_one_case(place, rnncli):
    """It is called by its file."""
    done = rnncli("relate", "lstm.yaml", *NUMPY, "--relation", "split", "--json")
    _, found, _ = lines(done.out)

    assert ("lstm::split", "split", "pass") == (found["id"], found["relation"], found["verdict"])
    assert found["repeat"].endswith("--relation split -k id:lstm::split")


def test_workers_find_the_same(place, rnncli):
    """In the same order."""
    few = ("relate", "two.yaml", *NUMPY, "--json", "-k", "again or singles or tiles or cut")
    one, two = rnncli(*few), rnncli(*few, "-j", "2")

    def told(done):
        return [(r.get("id"), r.get("verdict"), r.get("margin")) for r in lines(done.out)]

    assert told(one) == told(two)


def test_a_large_case_is_judged_by_a_cheaper_bound(place, rnncli):
    """And says so."""
    sizes = ("--sizes", "hidden_size=512,seq_length=65,batch_size=1")
    done = rnncli("relate", "lstm.yaml", *NUMPY, *sizes, "-k", "units-permuted", "--json")
    _, found, _ = lines(done.out)

    assert done.code == 0
    assert found["message"].endswith("(perturbed)")


def test_junit_has_a_test_case_for_each_relation(place, rnncli):
    """In the suite of the operator; what does not apply counts as skipped."""
    rnncli("relate", "two.yaml", *NUMPY, "--junit", "out.xml")
    root = ET.parse(place / "out.xml").getroot()  # noqa: S314 -- our own
    suites = {suite.get("name"): suite for suite in root}

    assert root.get("name") == "rnncli relate two.relations"
    assert [case.get("name") for case in suites["GRU-14"].iter("testcase")] == [
        f"gru_14_ragged::{name}" for name in RELATIONS
    ]
    assert (suites["RNN-14"].get("failures"), suites["RNN-14"].get("skipped")) == ("0", "4")


def test_a_wrong_suite_is_no_case_that_does_not_apply(place, rnncli):
    """What is wrong at the sizes it was written for is told, with its place, at others as well."""
    (place / "two.yaml").write_text(SUITE.replace("[3, 1]", "[3, 1, 1]"))
    done = rnncli("relate", "two.yaml", *NUMPY)
    other = rnncli("relate", "two.yaml", *NUMPY, "--sizes", "seq_length=2")

    assert (done.code, other.code) == (2, 2)
    assert "two.yaml:11:29: sequence_lens must be [2]" in done.err
    assert done.err == other.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("two.yaml", "--results", "x"), "--results is about expected outputs"),
        (("two.yaml", *NUMPY, "--atol", "1"), "--atol is about expected outputs"),
        (("two.yaml", *NUMPY, "--diagnose"), "No such option"),
        (("two.yaml", *NUMPY, "--relation", "pading"), "did you mean 'padding'"),
        (("two.yaml", *NUMPY, "--sizes", "hiden_size=3"), "--sizes hiden_size=3: expected one of"),
        (("two.yaml", *NUMPY, "--sizes", "hidden_size=0"), "hidden_size, at least 1"),
        (("two.yaml", *NUMPY, "--sizes", "hidden_size"), "expected NAME=SIZE"),
        (("nothing", *NUMPY), "not a pack, no such file"),
        (
            ("two.yaml", *NUMPY, "--pack-digest", "0" * 12),
            "--pack-digest and --trust are for packs",
        ),
    ],
)
def test_wrong_requests(place, rnncli, arguments, said):
    """One line says what is wrong."""
    done = rnncli("relate", *arguments)

    assert done.code == 2
    assert said in " ".join(done.err.split())


@pytest.mark.parametrize(
    "option", [("--metamorphic",), ("--relation", "split"), ("--sizes", "batch_size=2")], ids=str
)
def test_verify_names_the_command_that_judges_relations(place, rnncli, option):
    """Its options of the release before are errors."""
    done = rnncli("verify", "two.yaml", *NUMPY, *option)

    assert done.code == 2
    assert "use `rnncli relate PACK ...`" in done.err


@pytest.mark.parametrize("suite", ["core", "two.yaml"])
def test_verify_of_a_suite_is_told_what_takes_it(place, rnncli, suite):
    """It is no pack, and there are two ways to go on."""
    done = rnncli("verify", suite, "--backend", "numpy")

    assert done.code == 2
    assert f"{suite}: not a pack of vectors: it is a suite or a config" in done.err
    assert "generate" in done.err
    assert "`rnncli relate` needs none" in done.err


def test_help_says_what_it_takes(rnncli):
    """The usage line names suites and configs; every relation is listed, in the table's order."""
    said = " ".join(rnncli("relate", "--help").out.split())

    assert "relate [OPTIONS] PACK|SUITE|CONFIG" in said
    assert ", ".join(RELATIONS) in said


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("tiles", ["rnn_14_plain::tiles", "gru_14_ragged::tiles"]),
        ("gru and (tiles or cut)", ["gru_14_ragged::cut", "gru_14_ragged::tiles"]),
        ("id:gru_14_ragged::cut", ["gru_14_ragged::cut"]),
        ("id:gru_14_ragged", [f"gru_14_ragged::{name}" for name in RELATIONS]),
    ],
)
def test_a_selection_is_of_cases_and_relations(place, rnncli, expression, wanted):
    """A word is true of a case, or of a relation of it."""
    _, *found, _ = lines(rnncli("relate", "two.yaml", *NUMPY, "--json", "-k", expression).out)

    assert [each["id"] for each in found] == wanted


@pytest.mark.parametrize("target", ["two.yaml", "pack"])
def test_requirements_know_the_flags_of_a_case(place, rnncli, target):
    """Those of the case, not the relations of it: of a suite as of its pack."""
    (place / "two.yaml").write_text(f"{SUITE}    flags: [Short]\nnotes: {{Short: Ends early.}}\n")
    rnncli("generate", "two.yaml", "-o", "pack")
    flags = ("--relation", "again", "--require", "flags!=Short")
    done = rnncli("relate", target, *NUMPY, *flags, "--json")
    found = {each["id"]: each["verdict"] for each in lines(done.out)[1:-1]}

    assert done.code == 0
    assert found == {"rnn_14_plain::again": "pass", "gru_14_ragged": "skipped"}
    assert "requires flags without Short, has Short" in done.err


def test_known_failures_are_those_of_relations(place, rnncli):
    """One that is listed does not fail the run; one that is listed and holds does."""
    wrong = ("relate", "two.yaml", "--backend", "mutant:padding-computed", "--xfails", "known.txt")
    (place / "known.txt").write_text("gru_14_ragged::* [differs]  padding is computed\n")
    known = rnncli(*wrong, "-k", "padding or nan-padding or cut")
    gone = rnncli(*wrong, "-k", "padding or tiles")

    assert (known.code, gone.code) == (0, 1)
    assert "None fails but 3 that were expected to" in known.err
    assert "pass, although expected to fail: padding is computed" in gone.err


TWICE = SUITE.replace("lens: [3, 1]}\n", "lens: [3, 1]}\n    calls: 2\n")


@pytest.mark.parametrize("weights", ["inputs", "initializers"])
def test_every_data_set_of_a_case_is_transformed(place, rnncli, weights):
    """A suite's and its pack's alike: the second one is other data for the same model."""
    defaults = f"defaults:\n  weights: {weights}\n"
    (place / "two.yaml").write_text(TWICE.replace("defaults:\n", defaults))
    assert rnncli("generate", "two.yaml", "-o", "pack").code == 0
    second = source_of("pack").make("gru_14_ragged", {})[1].inputs["X"]

    def wrong_in_the_second(vector):
        outputs = vector.run(prepare(vector.model))
        is_second = np.array_equal(vector.inputs["X"], second)
        return {name: values + is_second for name, values in outputs.items()}

    padding = Selected(select="id:gru_14_ragged::padding")
    for target in ("two.yaml", "pack"):
        report = relate(target, wrong_in_the_second, cases=padding)
        (case,) = report.cases
        assert (case.id, case.details.data_set) == ("gru_14_ragged::padding", 1)
        assert case.verdict == "differs"
        assert "test_data_set_1: differs: Y at t 0" in str(report)
        assert rnncli("relate", target, *NUMPY, "-k", "gru and padding").code == 0


def test_second_data_sets_of_a_suite_are_those_of_its_pack(place, rnncli):
    """Bit for bit, weights that the model holds included."""
    defaults = "defaults:\n  weights: initializers\n"
    (place / "two.yaml").write_text(TWICE.replace("defaults:\n", defaults))
    rnncli("generate", "two.yaml", "-o", "pack")
    suite, pack = (source_of(name).make("gru_14_ragged", {}) for name in ("two.yaml", "pack"))

    assert [call.data_set for call in suite] == [0, 1]
    for one, other in zip(suite, pack, strict=True):
        assert {n: v.tobytes() for n, v in one.inputs.items()} == {
            n: v.tobytes() for n, v in other.inputs.items()
        }


def test_reports_are_written_beside_the_table(place, rnncli):
    """JUnit, Markdown and a page, of a run that fails."""
    files = [("--junit", "v.xml"), ("--markdown", "v.md"), ("--html", "v.html")]
    options = [part for pair in files for part in pair]
    done = rnncli("relate", "two.yaml", "--backend", "mutant:padding-computed", *options)

    assert done.code == 1
    for _, name in files:
        assert "gru_14_ragged" in (place / name).read_text(encoding="utf-8")
