"""Claims about probes: who refuses everything has refused nothing."""

import shlex
import sys
import warnings
from types import SimpleNamespace

import pytest
from support.small_suite import small_suite
from support.tables import every
from support.verified import generated, verdicts, verify

from rnncli.errors import RnncliWarning
from rnncli.generating.production import make_vectors
from rnncli.jobs.workers import Workers
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge
from rnncli.judging.selected import Selected
from rnncli.operators import OPERATORS
from rnncli.subjects.implementation import Implementation
from rnncli.subjects.own_backend import BackendRuntime
from rnncli.subjects.runtime import put
from rnncli.verifying.probes import PROFILE, ProbeKind, probe_of, unprobed

REJECTIONS = """\
suite: rejections
summary: Invalid nodes, and nothing else.
seed: 11
defaults:
  sizes: {seq_length: 3, batch_size: 3, input_size: 3, hidden_size: 5}
cases:
  shape:
    matrix: {op: [GRU-14, LSTM-14], weights: [inputs, initializers]}
    breaks: {sizes: {W: {input_size: 4}}}
"""
# Of every operator: those that it has no axis of are left out.
SIZES = (
    *(("seq_length", 3), ("batch_size", 2), ("input_size", 3), ("hidden_size", 4)),
    *(("q_num_heads", 4), ("kv_num_heads", 2), ("key_size", 3), ("value_size", 5)),
    *(("channels", 3), ("kernel_size", 4)),
)
REFUSES_ALL = "import sys; sys.exit(3)"
FAILS_ALL = "raise SystemExit('no device')"
ANSWERS_ALL = "pass"


@pytest.fixture(scope="module")
def rejections(tmp_path_factory):
    """A pack in which every case must be refused."""
    return generated(tmp_path_factory.mktemp("packs") / "rejections", REJECTIONS)


def command(tmp_path, text):
    """A program of the user's."""
    (tmp_path / "program.py").write_text(text)
    return Implementation(
        command=shlex.join([sys.executable, "-I", "-S", f"{tmp_path}/program.py", "{outputs}"]),
    )


@every("operator", [name for name, row in OPERATORS.items() if row.cell.projects])
@every("weights", ["inputs", "initializers"])
@every("direction", ["forward", "bidirectional"])
def test_a_probe_is_a_valid_case_of_its_kind(operator, weights, direction):
    """Of every operator, with all its optional inputs: our own backend passes it."""
    optional = tuple(row.name for row in OPERATORS[operator].inputs if row.optional)
    kind = ProbeKind(operator, "float32", weights, direction, 0, optional, SIZES)
    vector = probe_of(kind)
    verdict = judge(vector, put(BackendRuntime({}, 1).run, vector), PROFILE)

    assert verdict.verdict is Verdict.PASS
    assert vector.model
    assert set(optional) <= {*vector.inputs}


@every("inputs", [(), ("decay",), ("beta",), ("decay", "beta", "past_state")])
def test_a_probe_of_a_linear_recurrence_has_the_rule_that_its_gates_need(inputs):
    """Each selection of gates is that of one rule."""
    vector = probe_of(
        ProbeKind("LinearAttention-27", "float32", "inputs", "forward", 0, inputs, SIZES)
    )

    assert set(inputs) == {*vector.inputs} - {"query", "key", "value"}
    assert vector.attributes["update_rule"] == {
        (): "linear",
        ("decay",): "gated",
        ("beta",): "delta",
    }.get(inputs, "gated_delta")


def test_a_probe_of_many_heads_is_valid():
    """Sizes have a bound, and numbers of heads stay multiples of each other."""
    sizes = {**dict(SIZES), "q_num_heads": 18, "kv_num_heads": 6}
    record = SimpleNamespace(
        operator="LinearAttention-27",
        dtype="float32",
        weights="inputs",
        sizes=sizes,
        requirements=SimpleNamespace(direction="forward", layout=0, inputs=()),
    )
    heads = probe_of(ProbeKind.of(record)).attributes

    assert (heads["q_num_heads"], heads["kv_num_heads"]) == (6, 6)


@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_what_works_is_judged_by_what_it_refuses(rejections, executor):
    """Whoever works."""
    report = verify(rejections, workers=Workers(executor=executor))

    assert {*verdicts(report).values()} == {Verdict.PASS}
    assert (report.total.answered, report.shortfall) == (4, "")


@pytest.mark.parametrize(
    ("text", "said"), [(REFUSES_ALL, "refused: exit code 3, no message"), (FAILS_ALL, "crashed: ")]
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_who_fails_valid_cases_has_refused_nothing(rejections, tmp_path, text, said, jobs):
    """It is not green, and the case that shows it is named."""
    asked = {"workers": Workers(jobs=jobs), "allowed": frozenset({Verdict.REFUSED})}
    report = verify(rejections, command(tmp_path, text), **asked)

    assert not report.passed
    if text is REFUSES_ALL:
        assert {*verdicts(report).values()} == {Verdict.SKIPPED}
        assert report.cases[0].details.message == (
            "a refusal shows nothing, since a valid case of GRU-14 in float32 fails as well: "
            + said
        )
        assert report.shortfall == (
            "4 refusals of invalid cases cannot be judged, because valid cases fail as well;"
            " no case was answered"
        )


def test_what_runs_although_invalid_is_said_whatever_the_probe(rejections, tmp_path):
    """A program that writes nothing fails its probe, and accepts what it must refuse."""
    report = verify(rejections, command(tmp_path, ANSWERS_ALL))

    assert {*verdicts(report).values()} == {Verdict.ACCEPTED}
    assert report.fails


def test_one_operator_that_works_does_not_speak_for_another(rejections):
    """A mixture is not green either, but what can be judged is."""
    mutant = Implementation(backend="mutant:peepholes-dropped")
    report = verify(rejections, mutant)
    found = {case.record.operator: case.verdict for case in report.cases}

    assert found == {"GRU-14": Verdict.SKIPPED, "LSTM-14": Verdict.PASS}
    assert report.shortfall == (
        "2 refusals of invalid cases cannot be judged, because valid cases fail as well"
    )
    assert verify(rejections, mutant, cases=Selected(require="operator=LSTM-14")).passed


@pytest.mark.parametrize("name", ["LinearAttention-27", "com.microsoft.LinearAttention"])
@pytest.mark.parametrize(
    ("inputs", "rule"),
    [
        ((), "linear"),
        (("decay",), "gated"),
        (("beta",), "delta"),
        (("decay", "beta"), "gated_delta"),
    ],
)
def test_a_probe_reads_every_gate_it_has(name, inputs, rule):
    """ONNX Runtime's update rules ignore gates that they lack; no probe has such a one."""
    vector = probe_of(ProbeKind(name, "float32", "inputs", "forward", 0, inputs, SIZES))

    assert vector.attributes["update_rule"] == rule
    assert {*inputs} <= {*vector.inputs}


def test_valid_cases_speak_for_their_operator_alone():
    """An invalid case of another needs a probe."""
    valid, invalid, other = (
        SimpleNamespace(operator=operator, expect=expect)
        for operator, expect in (
            *(("GRU-14", "result"), ("GRU-14", "rejection"), ("LSTM-14", "rejection")),
        )
    )

    assert unprobed([valid, invalid, other]) == [other]


def test_results_say_what_was_refused_with_a_warning(rejections, tmp_path):
    """They cannot be asked; what they do not say is missing."""
    for case_id in ("gru_14_shape_inputs", "lstm_14_shape_inputs"):
        (tmp_path / f"test_{case_id}").mkdir()
        (tmp_path / f"test_{case_id}/refused.txt").write_text("W")
    results = Implementation(results=str(tmp_path))
    with pytest.warns(RnncliWarning, match="results cannot run a valid case"):
        report = verify(rejections, results)

    assert [*verdicts(report).values()] == [Verdict.PASS, Verdict.MISSING] * 2


def test_valid_cases_of_the_pack_are_probes(tmp_path):
    """A pack that has both needs no other; none of them answered, no refusal is an answer."""
    pack = generated(tmp_path / "small")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right = verify(pack)
    refused = verify(pack, command(tmp_path, REFUSES_ALL), allowed=[Verdict.REFUSED])

    assert right.passed
    assert not refused.fails
    assert refused.shortfall.endswith("no case was answered")
    shape = next(c for c in refused.cases if c.id == "lstm_14_shape")
    assert shape.details.message == (
        "a refusal shows nothing, since the valid case lstm_14_clip fails as well: refused: exit"
        " code 3, no message"
    )


def test_the_suite_has_cases_that_must_be_refused():
    """So the claims above hold of some."""
    vectors = make_vectors(list(small_suite(REJECTIONS).select("shape")))

    assert {vector.record.expect for vector in vectors} == {"rejection"}
