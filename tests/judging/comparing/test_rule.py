"""By which tolerances vectors are judged."""

import numpy as np
import pytest
from msgspec.structs import replace as with_entries
from support.judged import core, ran, vectors_of
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.judging.comparing.rule import PACK_RULE, Rule, _derived
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge
from rnncli.packs.record import UNKNOWN

PLAIN = "rnn_7_plain"


def same_bits(a, b):
    """Compare tensors by name."""
    return {n: t.tobytes() for n, t in a.items()} == {n: t.tobytes() for n, t in b.items()}


@every("case_id", core())
def test_a_pack_holds_what_its_profile_derives(case_id):
    """Tolerances derived again from the manifest are the pack's, bit for bit, alternatives' too."""
    vector = core()[case_id]
    profile = vector.record.profile

    assert same_bits(_derived(vector, "", profile), vector.answers.tolerances)
    for reading, answers in vector.alternatives.items():
        assert same_bits(_derived(vector, reading, profile), answers.tolerances)


def test_an_infinite_attribute_is_read_back():
    """JSON has no infinity: the manifest says "inf", also within a list."""
    (vector,) = vectors_of(
        "{op: LSTM-14, sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 3},"
        " attributes: {clip: .inf}}"
    )
    assert vector.record.attributes["clip"] == "inf"

    assert same_bits(_derived(vector, "", "standard"), vector.answers.tolerances)


@pytest.mark.parametrize("case_id", [PLAIN, "lstm_14_clip_scope"])
def test_another_profile_replaces_every_tolerance(case_id):
    """Strict is narrower, sums in the dtype are at least as wide, exact is 0; answers stay."""
    vector = core()[case_id]
    for reading in ("", *vector.alternatives):
        pack = PACK_RULE.answers(vector, reading)
        strict = Rule(profile="strict").answers(vector, reading)
        tf32 = Rule(profile="tf32").answers(vector, reading)
        exact = Rule(profile="exact").answers(vector, reading)

        for name, tolerance in pack.tolerances.items():
            assert strict.outputs[name] is pack.outputs[name]
            assert (strict.tolerances[name] < tolerance).any()
            assert (strict.tolerances[name] <= tolerance).all()
            assert (tf32.tolerances[name] > tolerance).any()
            assert not exact.tolerances[name].any()


def test_given_tolerances_replace_the_packs():
    """They are atol + rtol |wanted|, each by output."""
    vector = core()["lstm_14_initial"]
    rule = Rule(atol={"": 0.5, "Y_h": 0.25}, rtol={"Y": 0.5})

    found = rule.answers(vector)

    size = np.abs(vector.answers.outputs["Y"].astype(np.float64))
    assert np.array_equal(found.tolerances["Y"], 0.5 + 0.5 * size)
    assert (found.tolerances["Y_h"] == 0.25).all()
    assert (found.tolerances["Y_c"] == 0.5).all()


def test_units_in_the_last_place_are_given_by_output():
    """--max-ulp 1 passes the neighbour of every element, and --max-ulp Y_h:1 that of one output."""
    vector = core()[PLAIN]
    near = {
        name: np.nextafter(values, np.float32(2)) for name, values in vector.answers.outputs.items()
    }

    def verdicts(**bounds):
        found = judge(vector, ran(near), Rule(**bounds))
        return [output.verdict for output in found.outputs]

    assert verdicts(max_ulp=1) == [Verdict.PASS, Verdict.PASS]
    assert verdicts(max_ulp={"Y_h": 1}) == [Verdict.DIFFERS, Verdict.PASS]
    assert verdicts(max_ulp=0.5) == [Verdict.DIFFERS, Verdict.DIFFERS]


def test_what_must_be_infinite_must_be_infinite_under_any_rule():
    """A relative tolerance of infinity allows nothing."""
    tolerance = Rule(rtol=1, atol=1)
    wanted = np.full((1, 1, 1), np.inf, np.float32)
    vector = core()[PLAIN]
    answers = type(vector.answers)({"Y": wanted}, {"Y": np.zeros_like(wanted)})
    altered = type(vector)(
        vector.id, b"", vector.inputs, (), answers, {}, with_entries(vector.record, outputs=["Y"])
    )

    assert not tolerance.answers(altered).tolerances["Y"].any()


def test_a_rule_is_checked_when_it_is_made():
    """Misspelt profiles, both at once, and outputs that no case has."""
    records = [vector.record for vector in core().values()]
    rule = Rule(atol={"Y_x": 1})

    with pytest.raises(InvalidRequest, match="did you mean 'strict'"):
        Rule(profile="strikt")
    with pytest.raises(InvalidRequest, match="exclude each other"):
        Rule(profile="strict", atol=0)
    with pytest.raises(InvalidRequest, match="unknown output 'Y_x'; did you mean"):
        rule.check(records)
    Rule(atol={"Y_c": 1}).check(records)
    PACK_RULE.check(records)


def test_a_profile_too_wide_to_judge_by_skips():
    """A pass under tolerances of any size says nothing; a case far off still differs."""
    (vector,) = vectors_of(
        "{op: RNN-14, dtype: float16,"
        " sizes: {seq_length: 10, batch_size: 1, input_size: 40, hidden_size: 30},"
        " inputs: {R: {weights: 2.0}}}"
    )
    rule = Rule(profile="dtype-accumulator")
    right = vector.answers.outputs
    wrong = {name: values + values.dtype.type(9) for name, values in right.items()}

    found = judge(vector, ran(right), rule)

    assert found.verdict is Verdict.SKIPPED
    assert "profile 'dtype-accumulator' cannot judge this: Y is ill-conditioned" in found.message
    assert judge(vector, ran(right)).verdict is Verdict.PASS
    assert judge(vector, ran(wrong), rule).verdict is Verdict.DIFFERS


@pytest.mark.parametrize(
    ("reading", "is_told"),
    [
        ({"requantise": "gates"}, True),
        ({"requantise": "state"}, False),
        ({"round": "half-up"}, False),  # of which no pack stores answers
        (None, False),
    ],
)
def test_a_reading_that_no_case_tells_from_another_is_told(reading, is_told):
    """Whoever declares it is judged as if not, and learns nothing of it."""
    own = {"requantise": "outputs", "round": "half-even"}
    record = with_entries(UNKNOWN, readings=own, alternatives=["requantise=state"])
    said = [*Rule(reading=reading).doubts([record, UNKNOWN])]

    assert [each.partition(":")[0] for each in said] == ["--reading requantise=gates"] * is_told
