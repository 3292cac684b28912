"""Packs of quantised units: what they hold, in which layouts, and how they are judged."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from support.odd_json import FORMAT_CHECKER

from rnncli.cases.suite.suite import parse_suite, suite_findings
from rnncli.errors import ConfigError, InvalidRequest, Unsupported
from rnncli.files.described import jsonable
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.generating.production import IllConditioned, make_vectors
from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.fitting import WrongOutputs
from rnncli.judging.judgement import judge
from rnncli.models.evaluator import prepare
from rnncli.models.loading import model_from
from rnncli.mutants.catalogue import mutant_named
from rnncli.packs.conversion import convert_pack, with_weights
from rnncli.packs.layouts import LAYOUTS
from rnncli.packs.pack import open_pack
from rnncli.packs.raw_form import case_schema
from rnncli.packs.vector import attempt_of
from rnncli.verifying.node_call import NodeCall

SPLIT = "split-constants-with-zero-point-are-zero"
TEXT = """
suite: some-units
summary: Units of three operators.
cases:
  unit:
    sizes: {seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 4}
    inputs: {B: uniform, sequence_lens: [3, 2], initial_h: uniform}
    outputs: [Y, Y_h]
    calls: 2
    quantise:
      X: {type: uint8, scale: 0.02, zero_point: 128}
      W: {type: int8, scale: [0.02, 0.01, 0.016], axis: 1}
      R: {type: uint8, scale: 0.01, zero_point: 100}
      B: {type: int32, scale: 0.0002}
      initial_h: {type: int16, scale: 0.00004}
      Y: {type: uint8, scale: 0.008, zero_point: 128}
      Y_h: {type: uint16, scale: 0.00003, zero_point: 32768}
    matrix: {op: [LSTM-14, GRU-22, RNN-14], weights: [inputs, initializers]}
"""


def entries(text=TEXT):
    """The cases of a suite."""
    return parse_suite(text, "units.yaml", Path()).entries


@pytest.fixture(scope="module")
def vectors():
    """The vectors of all cases."""
    return list(make_vectors(entries()))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A pack of them, opened."""
    folder = tmp_path_factory.mktemp("units") / "pack"
    plan = GenerationPlan(suite=parse_suite(TEXT, "units.yaml", Path()))
    assert generate(plan, folder, lambda _: None).failed == ()
    return open_pack(folder)


def same(one, other):
    """Whether vectors have the same tensors."""
    pairs = zip(one.tensors(), other.tensors(), strict=True)
    return all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in pairs)


def test_a_vector_is_integers_outside_and_judged_by_levels(vectors):
    """Its own answers pass; a level more is wrong, where no tolerance allows it."""
    for vector in vectors:
        assert {n: v.dtype.name for n, v in vector.inputs.items()} == {
            "X": "uint8",
            "W": "int8",
            "R": "uint8",
            "B": "int32",
            "sequence_lens": "int32",
            "initial_h": "int16",
        }
        answers = vector.answers
        assert {n: v.dtype.name for n, v in answers.outputs.items()} == {
            "Y": "uint8",
            "Y_h": "uint16",
        }
        assert not answers.tolerances["Y"].any()
        assert judge(vector, attempt_of(vector, answers.outputs)).verdict is Verdict.PASS
        moved = {**answers.outputs, "Y": answers.outputs["Y"] + np.uint8(1)}
        found = judge(vector, attempt_of(vector, moved))
        assert found.verdict is Verdict.DIFFERS
        assert found.outputs[0].max_ulp == 1


def test_the_model_of_a_vector_gives_its_levels(vectors):
    """By our own host operators, which know nothing of units."""
    for vector in vectors:
        model = model_from(onnx.ModelProto.FromString(vector.model))
        made = prepare(model).outputs(vector.fed)
        assert judge(vector, attempt_of(vector, made)).verdict is Verdict.PASS


def test_tolerances_of_another_profile_are_levels_too(vectors):
    """Those of bfloat16 products reach levels of 16 bits that float32 does not."""
    vector = vectors[0]
    strict = Rule(profile="strict").answers(vector).tolerances
    standard = Rule(profile="standard").answers(vector).tolerances

    for name, wanted in vector.answers.tolerances.items():
        assert (standard[name] == wanted).all()
        assert (strict[name] <= wanted).all()


@pytest.mark.parametrize(
    "layout", [n for n, row in LAYOUTS.items() if not row.whose and row.reader]
)
def test_layouts_keep_units(pack, tmp_path, layout):
    """All tensors and scales; the model is the same once it is made again."""
    convert_pack(pack, tmp_path / "other", layout)
    other = open_pack(tmp_path / "other")

    for record in pack.manifest.cases:
        mine, theirs = pack.read(record), other.read(other.case(record.id))
        assert same(mine, theirs)
        assert mine.record.quantise == theirs.record.quantise
        moved = with_weights(with_weights(theirs, "inputs"), "initializers")
        assert judge(moved, attempt_of(moved, moved.answers.outputs)).verdict is Verdict.PASS


@pytest.mark.parametrize("layout", [name for name, row in LAYOUTS.items() if row.whose])
def test_other_layouts_refuse_units(pack, tmp_path, layout):
    """They have models of a dialect, and units are ONNX's."""
    with pytest.raises(Unsupported, match=f"is not .*{LAYOUTS[layout].whose}"):
        convert_pack(pack, tmp_path / "other", layout)


def test_a_raw_case_says_its_scales(pack, tmp_path):
    """As the schema allows."""
    convert_pack(pack, tmp_path / "raw", "raw")
    record = pack.manifest.cases[0]
    case = json.loads((tmp_path / "raw" / f"test_{record.id}" / "case.json").read_text())

    jsonschema.validate(case, case_schema(), format_checker=FORMAT_CHECKER)
    assert case["quantise"] == jsonable(record.quantise)
    assert case["quantise"]["W"]["axis"] == -2


REFUSED = {
    "golden: float64": "levels of a quantised unit are proved",
    "horizon: 2": "a case that claims a horizon cannot be quantised yet",
    "breaks: {drop: [X]}": "a case that must be refused cannot be quantised yet",
}


@pytest.mark.parametrize(("line", "sentence"), REFUSED.items())
def test_what_units_cannot_be_yet_is_refused(line, sentence):
    """Nothing is accepted and ignored."""
    text = TEXT.replace("    calls: 2\n", f"    {line}\n")

    for made in make_vectors(entries(text)[:1]):
        assert isinstance(made, InvalidRequest)
        assert sentence in str(made)


def test_relations_of_units_are_refused(vectors):
    """Their scales would have to be selected with their units."""
    with pytest.raises(Unsupported, match="no relation or statement is known of quantised units"):
        NodeCall.of_vector(vectors[0])


def test_a_bug_of_units_is_named_by_its_levels(vectors):
    """The outputs of an LSTM whose R is folded to zero fit that bug, and not another."""
    vector = vectors[0]
    bug, other = (mutant_named(name) for name in (SPLIT, "recurrent-bias-dropped"))
    wrong = vector.node.outputs_of(bug.run(vector.recurrence))
    found = WrongOutputs(MeasuredAttempt(vector, wrong))

    fits = found.fitting([(bug,), (other,)])

    assert vector.record.operator == "LSTM-14"
    assert judge(vector, attempt_of(vector, wrong)).verdict is Verdict.DIFFERS
    assert [fit.hypothesis for fit in fits] == [(bug,)]


STATE = "requantise=state"


def test_a_device_is_judged_by_what_it_declares(vectors):
    """Levels of another reading are wrong, and named, until the reading is declared."""
    vector = vectors[0]
    other = vector.alternatives[STATE]
    declared = Rule(reading={"requantise": "state"})

    undeclared = judge(vector, attempt_of(vector, other.outputs))
    assert (undeclared.verdict, undeclared.reading) == (Verdict.DIFFERS, STATE)
    assert f"--reading {STATE}" in undeclared.message
    assert judge(vector, attempt_of(vector, other.outputs), declared).verdict is Verdict.PASS
    default = judge(vector, attempt_of(vector, vector.answers.outputs), declared)
    assert (default.verdict, default.reading) == (Verdict.DIFFERS, "requantise=outputs")


def test_choices_that_round_the_same_have_one_answer(vectors):
    """8-bit states over the range of 8-bit outputs are the levels of these outputs."""
    for vector in vectors:
        assert vector.node.roundings["state-type=int8"] == STATE
        assert "state-type=int8" not in vector.alternatives
        as_int8 = Rule(reading={"state-type": "int8"}).declared(vector)
        assert as_int8.answers is vector.alternatives.get(STATE, vector.answers)


def test_every_call_of_a_case_is_under_the_declared_reading(vectors):
    """Each has answers of its own."""
    for vector in vectors:
        found = Rule(reading={"round": "truncate"}).declared(vector)
        for call, own in zip(found.calls, vector.calls, strict=True):
            assert call.answers is own.alternatives["round=truncate"]
            assert call.record.readings["round"] == "truncate"


@pytest.mark.parametrize(
    ("readings", "sentence"),
    [
        ({"requantise": "gates"}, "requantise=gates rounds nothing: 'quantise' has no pre or gate"),
        (
            {"round": "up"},
            "reading 'round' must be half-even or half-away or truncate or toward-zero or half-up",
        ),
        ({"quant-scope": "row"}, "unknown reading 'quant-scope'"),
    ],
)
def test_readings_that_a_unit_cannot_have_are_refused(readings, sentence):
    """By name, before anything is computed."""
    written = "".join(f"      {name}: {choice}\n" for name, choice in readings.items())
    text = TEXT.replace("    calls: 2\n", f"    calls: 2\n    readings:\n{written}")

    with pytest.raises(ConfigError) as refusal:
        [entry.case() for entry in entries(text)]
    assert sentence in str(refusal.value)


def test_a_unit_may_have_other_readings_of_its_own():
    """Then the text of the nodes is the alternative, and the model does not give the answers."""
    text = TEXT.replace("    calls: 2\n", "    readings: {requantise: state, round: truncate}\n")
    for vector in make_vectors(entries(text)):
        assert vector.record.readings["requantise"] == "state"
        assert "requantise=outputs" in vector.alternatives
        model = model_from(onnx.ModelProto.FromString(vector.model))
        answers = prepare(model).outputs(vector.fed)
        plain = Rule(reading={"requantise": "outputs", "round": "half-even"})
        assert judge(vector, attempt_of(vector, answers), plain).verdict is Verdict.PASS


@pytest.mark.parametrize("scale", [1000, 3e38])
def test_a_unit_of_one_level_is_refused(scale):
    """A kernel that fills its outputs with a zero point would pass."""
    coarse = TEXT.replace("scale: 0.008,", f"scale: {scale},").replace("0.00003,", f"{scale},")

    for made in make_vectors(entries(coarse)):
        assert isinstance(made, IllConditioned)
        assert "shows nothing: each output is one number throughout; a smaller scale" in str(made)
    assert not any(isinstance(made, Exception) for made in make_vectors(entries()))
    told = [sentence for _, sentence in suite_findings(coarse, "units.yaml", Path())]
    assert len(told) == 1
    assert told[0].startswith("shows nothing: each output is one number throughout; a smaller")
    assert suite_findings(TEXT, "units.yaml", Path()) == []
