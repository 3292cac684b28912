"""Claims about judging outputs that are at hand, from Python."""

import subprocess
import sys

import numpy as np
import pytest
from support.judged import core
from support.tables import every

import rnncli
from rnncli.errors import InvalidRequest, Unsupported

CORE = core()
RESULTS = [v for v in CORE.values() if v.record.expect == "result"]


@every("vector", RESULTS, ids=lambda vector: vector.id)
def test_a_session_of_a_vectors_model_passes(vector):
    """And of its operator, whose weights are then inputs."""
    record = vector.record
    by_model = rnncli.judge(vector, vector.run(rnncli.prepare(vector.model)))
    node = rnncli.prepare(record.operator, outputs=record.outputs, **vector.attributes)
    by_node = rnncli.judge(vector, vector.run(node))

    assert by_model.verdict is by_node.verdict is rnncli.Verdict.PASS
    assert by_model.passed
    assert by_model.margin <= 1
    assert by_model.sentences == ()
    assert str(by_model) == f"{vector.id}: pass"


def test_a_case_of_a_report_answers_as_a_judgement_does():
    """With the same names, of the same types, right or wrong."""

    def wrong(vector):
        return {name: values + 1 for name, values in vector.answers.outputs.items()}

    for kernel, verdict in ((wrong, "differs"), (lambda v: v.answers.outputs, "pass")):
        report = rnncli.verify(
            "vectors/core", kernel, cases=rnncli.Selected(select="id:lstm_14_initial")
        )
        (case,) = report.cases
        vector = CORE["lstm_14_initial"]
        alone = rnncli.judge(vector, kernel(vector))
        names = ("id", "operator", "verdict", "margin", "sentences", "is_answered")

        assert [getattr(case, name) for name in names] == [getattr(alone, name) for name in names]
        assert type(case.verdict) is rnncli.Verdict
        assert (case.id, case.operator, case.verdict) == ("lstm_14_initial", "LSTM-14", verdict)
        assert bool(case.sentences) is (verdict == "differs")


def test_packs_vectors_and_cases_show_themselves_in_a_line():
    """Pytest and notebooks print them, and their tensors and records would fill pages."""
    pack = rnncli.open_pack("vectors/core")
    vector = pack.read(pack.case("lstm_14_initial"))
    report = rnncli.verify(
        "vectors/core",
        lambda v: v.answers.outputs,
        cases=rnncli.Selected(select="id:lstm_14_initial"),
    )

    assert repr(pack) == f"<rnncli pack vectors/core: {len(pack.manifest.cases)} cases>"
    assert repr(vector) == "<rnncli vector lstm_14_initial: LSTM-14>"
    assert repr(report.cases[0]) == "<rnncli case lstm_14_initial: pass>"


def test_a_bug_is_named_as_verify_names_it():
    """With where it begins and how far off it is."""
    vector = CORE["lstm_14_one_step"]
    session = rnncli.prepare(vector.model, backend="mutant:forget-bias-plus-one")

    found = rnncli.judge(vector, vector.run(session))

    assert found.verdict is rnncli.Verdict.DIFFERS
    assert not found.passed
    assert found.margin > 1000
    assert str(found).splitlines()[0] == "lstm_14_one_step: differs"
    assert any(line.startswith("Y: 30 of 30 differ") for line in found.sentences)
    assert any("fits forget-bias-plus-one" in line for line in found.sentences)


def test_outputs_may_stand_in_the_order_of_the_case():
    """Or alone, where there is one."""
    vector = CORE["lstm_14_one_step"]
    right = vector.answers.outputs
    alone = next(v for v in RESULTS if len(v.record.outputs) == 1)
    (only,) = alone.answers.outputs.values()

    assert rnncli.judge(vector, [*right.values()]).passed
    assert rnncli.judge(alone, only).passed
    assert rnncli.judge(alone, (only,)).passed
    wrong = rnncli.judge(vector, dict(list(right.items())[1:]))
    assert wrong.sentences[0] == "Y: is missing; the outputs are Y_h, Y_c"


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([], "got 0"),
        ("Y", "got 'Y'"),
        (None, "got None"),
        (np.zeros(3), "outputs must be arrays by name"),
        ({"Y": object(), "Y_h": 1, "Y_c": 1}, "output 'Y' is not an array"),
    ],
)
def test_what_are_no_outputs_is_refused(outputs, words):
    """It is no answer that could be wrong."""
    with pytest.raises(InvalidRequest, match=f"lstm_14_one_step: .*{words}"):
        rnncli.judge(CORE["lstm_14_one_step"], outputs)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [({}, CORE["gru_14_clip"], "that is the second argument"), ("gru_14_clip", {}, "read")],
)
def test_what_is_no_vector_is_refused(first, second, words):
    """Arguments that are exchanged, too."""
    with pytest.raises(InvalidRequest, match=words):
        rnncli.judge(first, second)


def test_an_exception_is_a_refusal():
    """Of a valid case a failure, in the words of the implementation."""
    found = rnncli.judge(CORE["lstm_14_one_step"], Unsupported("no LSTM here"))

    assert (found.verdict, found.passed) == (rnncli.Verdict.REFUSED, False)
    assert found.sentences == ("refused: no LSTM here",)


def test_tolerances_may_be_ones_own():
    """For all outputs or by output; a profile and numbers exclude each other."""
    vector = CORE["lstm_14_one_step"]
    off = {name: values + np.float32(1e-4) for name, values in vector.answers.outputs.items()}

    assert not rnncli.judge(vector, off).passed
    assert rnncli.judge(vector, off, rule=rnncli.Rule(atol=1e-3)).passed
    assert rnncli.judge(vector, off, rule=rnncli.Rule(rtol=1e-5)).verdict is rnncli.Verdict.DIFFERS
    assert rnncli.judge(vector, off, rule=rnncli.Rule(atol=dict.fromkeys(off, 1e-3))).passed
    assert not rnncli.judge(vector, off, rule=rnncli.Rule(atol={"Y": 1e-3})).passed
    assert rnncli.judge(vector, vector.answers.outputs, rule=rnncli.Rule(profile="four-ulp")).passed
    for options in (
        {"profile": "strict", "atol": 1e-3},
        {"profile": "nosuch"},
        {"atol": {"Z": 1e-3}},
        {"atol": -1},
        {"rtol": np.nan},
    ):
        with pytest.raises(InvalidRequest):
            rnncli.judge(vector, off, rule=rnncli.Rule(**options))


def test_outputs_may_change_once_they_are_judged():
    """A buffer that the next call fills is explained as it was."""
    vector = CORE["lstm_14_one_step"]
    session = rnncli.prepare(vector.model, backend="mutant:forget-bias-plus-one")
    first, second = (vector.run(session) for _ in range(2))
    told = str(rnncli.judge(vector, first))

    found = rnncli.judge(vector, second)
    for values in second.values():
        values[...] = 7

    assert str(found) == told


def test_right_outputs_are_judged_without_known_bugs():
    """A program that only asks whether all is well loads none of them."""
    code = """
import sys, rnncli
pack = rnncli.open_pack("vectors/core")
vector = pack.read(pack.case("gru_14_clip"))
assert rnncli.judge(vector, vector.answers.outputs)
sys.exit(any(name.startswith("rnncli.mutants") for name in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
