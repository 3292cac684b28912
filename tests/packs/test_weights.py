"""Claims about `--weights`: models take W, R, B and P elsewhere, and compute the same."""

import shlex
import sys

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from support.asked import verified
from support.judged import core
from support.second_calls import TEXT, twice
from support.tables import every

import rnncli
from rnncli.cli.group import cli
from rnncli.errors import InvalidRequest
from rnncli.operators.node import WEIGHTS
from rnncli.packs.conversion import with_weights
from rnncli.packs.vector import Vector
from rnncli.subjects.function import FunctionSubject
from rnncli.verifying.case_judging import session_calls_of

ELSEWHERE = {"inputs": "initializers", "initializers": "inputs"}


def small(ids):
    """Those core vectors whose operator is ONNX's LSTM, which has all four kinds of weights."""
    return [case_id for case_id in ids if case_id.startswith("lstm_14")]


def moved(vector):
    """The vector with its weights in the other place."""
    return with_weights(vector, ELSEWHERE[vector.record.weights])


@every("case_id", core())
def test_a_vector_keeps_all_but_its_model(case_id):
    """Moving the weights there and back gives the committed model, byte for byte."""
    vector = core()[case_id]
    other = moved(vector)

    assert other.model != vector.model
    assert (other.id, other.answers, other.alternatives) == (
        vector.id,
        vector.answers,
        vector.alternatives,
    )
    assert other.record.weights == other.record.requirements.weights
    assert moved(other).model == vector.model
    assert with_weights(vector, vector.record.weights) is vector


@every("case_id", small(core()))
def test_a_model_has_its_weights_where_they_are_asked_for(case_id):
    """As initializers they are no graph inputs; the values are those of the vector."""
    vector = with_weights(core()[case_id], "initializers")
    graph = onnx.load_from_string(vector.model).graph
    held = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}

    assert {*held} == {name for name in vector.inputs if name in WEIGHTS}
    assert [each.name for each in graph.input] == [n for n in vector.inputs if n not in held]
    for name, values in held.items():
        assert values.tobytes() == vector.inputs[name].tobytes()


@every("case_id", small(core()))
def test_a_model_computes_the_same_wherever_its_weights_are(case_id):
    """Bit for bit, evaluated by rnncli."""
    vector = core()[case_id]
    if vector.record.expect == "rejection":
        pytest.skip("computes nothing")
    found = [each.run(rnncli.prepare(each.model)) for each in (vector, moved(vector))]

    assert {n: v.tobytes() for n, v in found[0].items()} == {
        n: v.tobytes() for n, v in found[1].items()
    }


def test_calls_with_other_weights_have_models_and_sessions_of_their_own():
    """A session has one model, which holds the weights of one call only."""
    vector = twice()["lstm_14_clip"]
    constants, back = moved(vector), moved(moved(vector))

    assert vector.has_one_model
    assert not constants.has_one_model
    assert back.has_one_model
    one, several = (session_calls_of(FunctionSubject(_right), each) for each in (vector, constants))
    assert (list(one.order), list(several.order)) == ([0, 1, 0], [0, 1])
    for call, attempt in enumerate(several.attempts):
        for name, values in attempt.outputs.items():
            np.testing.assert_allclose(
                values, vector.calls[call].answers.outputs[name], rtol=1e-5, atol=1e-6
            )


def _right(vector: Vector):
    return vector.run(rnncli.prepare(vector.model))


def test_a_pack_is_generated_with_weights_in_one_place(tmp_path):
    """The same ids, inputs and outputs of the first calls; without the option the same bytes."""
    suite = tmp_path / "twice.yaml"
    suite.write_text(TEXT)
    packs = {}
    for name in ("", "inputs", "initializers"):
        rnncli.generate(suite, output=tmp_path / f"pack_{name}", weights=name)
        packs[name] = rnncli.open_pack(tmp_path / f"pack_{name}")
    plain, *others = packs.values()

    for pack, place in zip(others, ("inputs", "initializers"), strict=True):
        for old, new in zip(plain.vectors(), pack.vectors(), strict=True):
            assert (old.id, new.record.weights) == (new.id, place)
            for role in ("inputs", "outputs"):
                before, after = (
                    getattr(each if role == "inputs" else each.answers, role) for each in (old, new)
                )
                assert {n: v.tobytes() for n, v in before.items()} == {
                    n: v.tobytes() for n, v in after.items()
                }
    assert rnncli.generate(
        suite, output=tmp_path / "pack_initializers", weights="initializers", check=True
    ).passed
    assert not rnncli.generate(suite, output=tmp_path / "pack_initializers", check=True).passed


MODELS = """
import json, sys
import onnx
for line in sys.stdin:
    request = json.loads(line)
    if request["cmd"] == "start":
        print(json.dumps({"version": 1, "implementation": {"name": "m", "version": "1"}}))
    if request["cmd"] == "run":
        held = [each.name for each in onnx.load(request["model"]).graph.initializer]
        lists = (held, request["initializers"], [request["case"]["weights"]])
        said = "; ".join(map(",".join, lists))
        print(json.dumps({"seq": request["seq"], "skipped": True, "message": said}))
    sys.stdout.flush()
"""


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("initializers", {"W,R; W,R; initializers", "W,R,B; W,R,B; initializers"}),
        ("inputs", {"; ; inputs"}),
    ],
)
def test_verify_asks_with_weights_in_one_place(tmp_path, weights, said):
    """Of a committed pack, for all its cases; --require sees the place that is asked for."""
    (tmp_path / "prog.py").write_text(MODELS)
    report = verified(
        "vectors/core",
        harness=shlex.join([sys.executable, f"{tmp_path}/prog.py"]),
        weights=weights,
        select="id:gru_14_constants or id:gru_7_plain",
        require=f"weights={weights}",
    )

    assert {case.details.message for case in report.cases} == said
    assert f"--weights {weights}" in report.command


def test_relations_are_judged_with_weights_in_one_place():
    """The relation that moves the weights moves them back."""
    arguments = ["vectors/core", "-k", "id:gru_7_plain::weights"]
    done = CliRunner().invoke(
        cli, ["relate", *arguments, "--runtime", "onnx-reference", "--weights", "initializers"]
    )

    assert done.exit_code == 0, done.output
    assert "1 pass" in done.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"backend": "numpy", "weights": "inputs"}, "--weights inputs has no effect on --backend"),
        ({"runtime": "onnxruntime", "weights": "here"}, "--weights here: expected one of"),
    ],
)
def test_a_wrong_place_is_an_error(options, sentence):
    """Before anything runs."""
    with pytest.raises(InvalidRequest, match=sentence):
        verified("vectors/core", **options)
