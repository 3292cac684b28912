"""`rnncli relate` from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

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
NUMPY = ("--backend", "numpy")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder, in which suites are written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(text):
    """The objects of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def test_help_says_what_it_takes(rnncli):
    """The usage line names suites and configs; a wrong relation lists every one, in order."""
    said = " ".join(rnncli("relate", "--help").out.split())

    assert "relate [OPTIONS] PACK|SUITE|CONFIG" in said
    wrong = rnncli("relate", "smoke", "--backend", "numpy", "--relation", "nosuch").err
    assert ", ".join(RELATIONS) in wrong


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
