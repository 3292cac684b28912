"""Claims about a suite for a device: cases within it that catch what can be caught there."""

import json
import warnings

import onnx
import pytest
from support.small_suite import TEXT, small_suite

from rnncli.cases.suite.suite import load_suite, parse_suite
from rnncli.errors import NothingSelected, UndefinedDefault
from rnncli.generating import tailoring
from rnncli.generating.production import make_vectors
from rnncli.generating.tailoring import POOL, TAILORED, candidates, record_of, tailored
from rnncli.jobs.workers import HERE
from rnncli.judging.device import Device
from rnncli.operators import operator_named

NPU = Device(
    "NPU 2.1",
    ["op=LSTM|GRU", "hidden_size%4=0,hidden_size<=8,seq_length<=3,batch_size=2", "clip=never"],
)


@pytest.fixture(scope="module")
def found():
    """The small suite for the device, beside a few candidates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tailoring, "MOST_CANDIDATES", 24)
        patch.setattr(tailoring, "AT_ONCE", 8)
        yield tailored(small_suite(), NPU, HERE, most=12)


@pytest.mark.filterwarnings("ignore::rnncli.errors.RnncliWarning")
def test_all_of_it_is_taken(found):
    """Also by the records of the vectors that are made of it."""
    needs = NPU.requirements

    assert 6 <= len(found.suite.entries) <= 13
    for vector in make_vectors(found.suite.entries):
        assert not needs.reason(vector.record), vector.record.id


def test_it_is_a_suite_that_says_all(found):
    """Its text alone makes the same cases again, with the same notes."""
    again = parse_suite(found.suite.source, "npu.yaml", found.suite.folder)

    assert [each.written for each in again.entries] == [e.written for e in found.suite.entries]
    assert again.notes == found.suite.notes
    assert found.suite.name == "small-npu-2.1"


def test_what_became_of_the_cases_is_counted(found):
    """Those of RNN are left out; ids of others say that they are moved."""
    lines = [*found.sentences]

    assert lines[0].startswith("18 cases: 0 as they are, 13 moved (sizes of ")
    assert lines[1] == "  left out 5: no version of RNN"
    assert len(lines) <= 10
    assert all("_from_" in each.id or each.flags == (TAILORED,) for each in found.suite.entries)
    assert found.own + found.candidates >= len(found.suite.entries)


def test_what_a_case_lacks_is_no_reason_for_it(found):
    """A case of clip without a clip is not one that finds bugs of clips."""
    assert "Clip" not in found.suite.notes
    assert "Gates" in found.suite.notes


def test_bugs_are_caught_or_outside(found):
    """A bug of clips is outside, one of the order of gates is not."""
    ids = {each.mutant for each in found.known - found.shown}

    assert found.seen <= found.shown < found.known
    assert "clip-ignored" in ids
    assert len(found.seen) > 0.8 * len(found.shown)


def test_candidates_depend_on_nothing_but_the_device(monkeypatch):
    """Nor on what was asked before; all are within."""
    monkeypatch.setattr(tailoring, "MOST_CANDIDATES", 12)
    some, again = candidates(NPU), candidates(Device("another name", NPU.require))

    assert json.dumps(some) == json.dumps(again)
    assert len(some) == 12
    sizes = {tuple(case["sizes"].values()) for case in some.values()}
    assert len(sizes) > 4


TFLITE = "tflite.UNIDIRECTIONAL_SEQUENCE_LSTM"


KINDS = {
    "LSTM-14": {"RNN", "GRU", "LSTM"},
    "LinearAttention-27": {"LinearAttention", "CausalConv"},
    TFLITE: {"IntegerLSTM"},
    f"{TFLITE}_PROJECTED": {"ProjectedLSTM"},
}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_candidates_have_cells_of_the_kind_that_was_asked_for(name, kind, monkeypatch):
    """An attention would say nothing of a device's integer LSTM."""
    monkeypatch.setattr(tailoring, "MOST_CANDIDATES", 12)

    found = candidates(Device("small", ["seq_length<=3"]), beside={operator_named(name)})

    assert len(found) == 12
    assert {operator_named(case["op"]).cell.name for case in found.values()} <= kind


def test_candidates_have_parts_of_several_cases():
    """A shipped case has few features at once, and a kernel may have one for two of them alone."""
    shipped = {
        (frozenset(each.written.get("inputs", ())), frozenset(each.written.get("attributes", ())))
        for name in POOL
        for each in load_suite(name).entries
    }

    found = candidates(NPU).values()
    crossed = [(frozenset(c["inputs"]), frozenset(c["attributes"])) for c in found]

    assert sum(each not in shipped for each in crossed) > len(crossed) / 3
    assert {len(c["outputs"]) for c in found} == {1, 2, 3}
    assert sum(c["calls"] != 1 for c in found) > len(crossed) / 4
    assert any(len({*c["attributes"].get("activations", ())}) > 2 for c in found)


def test_no_candidate_rests_on_a_value_that_nobody_specifies(monkeypatch):
    """Nor would `lint` find the suite of them to."""
    monkeypatch.setattr(tailoring, "MOST_CANDIDATES", 80)
    device = Device("any functions", ("op=LSTM|GRU, version=14, dtype=float32",))
    suite = tailoring._suite(device, candidates(device))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UndefinedDefault)
        lists = [of for each in suite.entries for of in each.case().node.activations]

    assert len({function.name for of in lists for function in of}) > 6


def test_another_question_is_chosen_before_the_same_once_more():
    """Of cases that catch the same, as one that asks for another output may find other bugs."""
    case = {"op": "LSTM-14", "sizes": {"hidden_size": 4}, "outputs": ["Y"]}
    cases = {"a": case, "b": case, "c": {**case, "outputs": ["Y_h"]}}

    assert tailoring._chosen(dict.fromkeys(cases, frozenset()), cases, 2, ["a"]) == ["a", "c"]


def test_a_node_names_the_output_that_its_schema_wants():
    """GRU-1 alone has one, Y_h; the model of a case that asks for Y is written all the same."""
    text = TEXT.replace("cases:", "cases:\n  one: {op: GRU-1, summary: One., outputs: [Y]}", 1)
    entry = parse_suite(text, "small.yaml", small_suite().folder).by_id["gru_1_one"]

    model = onnx.load_from_string(next(iter(make_vectors([entry]))).model)

    onnx.checker.check_model(model)
    assert [*model.graph.node[0].output] == ["Y", "Y_h"]
    assert [each.name for each in model.graph.output] == ["Y"]


def test_a_device_of_another_dialect_takes_nothing():
    """The error names the suite and the device."""
    webnn = Device("a browser", ["domain=webnn", "hidden_size<=0"])

    with pytest.raises(NothingSelected, match=r"small\.yaml: no case of it can be moved to a brow"):
        tailored(small_suite(), webnn, HERE)


def test_a_name_that_begins_with_its_operator_is_the_id():
    """So that a suite can have cases of one name for several operators."""
    text = TEXT.replace("  clip:\n", "  lstm_14_clip:\n")

    assert "lstm_14_clip" in parse_suite(text, "small.yaml", small_suite().folder).by_id


def test_a_record_is_known_before_its_case_is_made():
    """All that requirements ask of it but its tags."""
    suite = load_suite("smoke")
    entries = suite.entries[:8]

    for entry, vector in zip(entries, make_vectors(entries), strict=True):
        known, made = record_of(entry), vector.record
        for name in ("operator", "sizes", "attributes", "inputs", "outputs", "requirements"):
            assert getattr(known, name) == getattr(made, name), (entry.id, name)
        assert len(known.calls) == len(made.calls)
