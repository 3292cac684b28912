"""`rnncli verify --metamorphic` from the command line."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from rnncli.metamorphic.targets import CallTarget, source_of
from rnncli.reports.relations_schema import relations_schema

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
NUMPY = ("--metamorphic", "--backend", "numpy")


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
    done = rnncli("verify", "two.yaml", *NUMPY, "--json")
    first, *found, last = lines(done.out)

    for line in (first, *found, last):
        jsonschema.validate(line, relations_schema())
    assert done.code == 0
    assert {"rnn_14_plain", "gru_14_ragged"} == {each["case"] for each in found}
    assert (0, 2, "") == (last["fails"], last["judged"], last["shortfall"])
    assert first["relations"][0] == "again"


def test_sizes_are_those_given(place, rnncli):
    """A longer batch is compared element by element; written lengths become random ones."""
    sizes = ("--sizes", "hidden_size=9,batch_size=7", "--sizes", "seq_length=4")
    done = rnncli("verify", "two.yaml", *NUMPY, *sizes, "--json", "--relation", "weights")
    _, *found, _ = lines(done.out)

    assert done.code == 0
    assert [(4 + 1) * 7 * 9] * 2 == [each["elements"] for each in found]


def test_a_config_is_one_case(place, rnncli):
    """It is called by its file."""
    done = rnncli("verify", "lstm.yaml", *NUMPY, "--relation", "split", "--json")
    _, found, _ = lines(done.out)

    assert ("lstm", "holds", "derived") == (found["case"], found["verdict"], found["equality"])
    assert "--relation split" in found["repeat"]


def test_workers_find_the_same(place, rnncli):
    """In the same order."""
    one = rnncli("verify", "two.yaml", *NUMPY, "--json")
    two = rnncli("verify", "two.yaml", *NUMPY, "--json", "-j", "2")

    def told(done):
        return [(r.get("case"), r.get("relation"), r.get("margin")) for r in lines(done.out)]

    assert told(one) == told(two)


def test_a_large_case_is_judged_by_a_cheaper_bound(place, rnncli):
    """And says so."""
    sizes = ("--sizes", "hidden_size=512,seq_length=65,batch_size=1")
    done = rnncli("verify", "lstm.yaml", *NUMPY, *sizes, "--relation", "units-permuted")

    assert done.code == 0
    assert "perturbed" in done.out


def test_junit_has_a_suite_for_each_relation(place, rnncli):
    """What does not apply counts as skipped."""
    rnncli("verify", "two.yaml", *NUMPY, "--junit", "out.xml")
    root = ET.parse(place / "out.xml").getroot()  # noqa: S314 -- our own
    suites = {suite.get("name"): suite for suite in root}

    assert ("2", "0", "0") == tuple(
        suites["again"].get(k) for k in ("tests", "failures", "skipped")
    )
    assert suites["padding"].get("skipped") == "1"


def test_a_wrong_suite_is_no_case_that_does_not_apply(place, rnncli):
    """What is wrong at the sizes it was written for is said, with its place."""
    (place / "two.yaml").write_text(SUITE.replace("[3, 1]", "[3, 1, 1]"))
    done = rnncli("verify", "two.yaml", *NUMPY)
    other = rnncli("verify", "two.yaml", *NUMPY, "--sizes", "seq_length=2")

    assert done.code == 2
    assert "two.yaml:" in done.err
    assert other.code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("two.yaml", "--metamorphic", "--results", "x"), "--results is about expected outputs"),
        (("two.yaml", *NUMPY, "--atol", "1"), "--atol is about expected outputs"),
        (("two.yaml", *NUMPY, "--diagnose"), "--diagnose is about expected outputs"),
        (("two.yaml", *NUMPY, "--plot", "x.png"), "--plot is about expected outputs"),
        (("two.yaml", *NUMPY, "--relation", "pading"), "did you mean 'padding'"),
        (("two.yaml", *NUMPY, "--sizes", "hiden_size=3"), "expected NAME=SIZE"),
        (("two.yaml", *NUMPY, "--sizes", "hidden_size=0"), "expected NAME=SIZE"),
        (("two.yaml", "--backend", "numpy", "--relation", "split"), "needs --metamorphic"),
        (("two.yaml", "--backend", "numpy", "--sizes", "batch_size=2"), "needs --metamorphic"),
        (("nothing", *NUMPY), "not a pack, no such file"),
        (
            ("two.yaml", *NUMPY, "--pack-digest", "0" * 12),
            "--pack-digest and --trust are for packs",
        ),
        (("lstm.yaml", *NUMPY, "-k", "lstm"), "is a single case"),
    ],
)
def test_wrong_requests(place, rnncli, arguments, said):
    """One line says what is wrong."""
    done = rnncli("verify", *arguments)

    assert done.code == 2
    assert said in " ".join(done.err.split())


@pytest.mark.parametrize("suite", ["core", "two.yaml"])
def test_a_suite_without_metamorphic_is_told_what_takes_it(place, rnncli, suite):
    """It is no pack, and there are two ways to go on."""
    done = rnncli("verify", suite, "--backend", "numpy")

    assert done.code == 2
    assert f"{suite}: not a pack of vectors: it is a suite or a config" in done.err
    assert "generate" in done.err
    assert "--metamorphic" in done.err


def test_help_says_what_it_takes(rnncli):
    """The usage line names suites and configs, the text under which option."""
    said = " ".join(rnncli("verify", "--help").out.split())

    assert "verify [OPTIONS] PACK|SUITE|CONFIG" in said
    assert "PACK may be a suite or a config only with --metamorphic" in said


TWICE = SUITE.replace("lens: [3, 1]}\n", "lens: [3, 1]}\n    calls: 2\n")


@pytest.mark.parametrize("weights", ["inputs", "initializers"])
def test_every_data_set_of_a_case_is_transformed(place, rnncli, weights):
    """A suite's and its pack's alike: the second one is other data for the same model."""
    defaults = f"defaults:\n  weights: {weights}\n"
    (place / "two.yaml").write_text(TWICE.replace("defaults:\n", defaults))
    assert rnncli("generate", "two.yaml", "-o", "pack").code == 0
    told = {}
    for target in ("two.yaml", "pack"):
        done = rnncli("verify", target, *NUMPY, "--json", "--relation", "padding", "-k", "gru")
        assert done.code == 0
        _, *found, last = lines(done.out)
        told[target] = [(each["case"], each["data_set"], each["elements"]) for each in found]
        assert (last["cases"], last["verdicts"]["holds"]) == (1, 2)

    assert told["two.yaml"] == told["pack"]
    assert [data_set for _, data_set, _ in told["pack"]] == [0, 1]


def test_second_data_sets_of_a_suite_are_those_of_its_pack(place, rnncli):
    """Bit for bit, weights that the model holds included."""
    defaults = "defaults:\n  weights: initializers\n"
    (place / "two.yaml").write_text(TWICE.replace("defaults:\n", defaults))
    rnncli("generate", "two.yaml", "-o", "pack")
    suite, pack = (
        source_of(CallTarget(name), "").make("gru_14_ragged") for name in ("two.yaml", "pack")
    )

    assert [call.data_set for call in suite] == [0, 1]
    for one, other in zip(suite, pack, strict=True):
        assert {n: v.tobytes() for n, v in one.inputs.items()} == {
            n: v.tobytes() for n, v in other.inputs.items()
        }


def test_reports_are_written_beside_the_table(place, rnncli):
    """JUnit, Markdown and a page, of a run that fails."""
    files = [("--junit", "v.xml"), ("--markdown", "v.md"), ("--html", "v.html")]
    options = [part for pair in files for part in pair]
    subject = ("--metamorphic", "--backend", "mutant:padding-computed")
    done = rnncli("verify", "two.yaml", *subject, *options)

    assert done.code == 1
    for _, name in files:
        assert "gru_14_ragged" in (place / name).read_text(encoding="utf-8")
