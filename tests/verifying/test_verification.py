"""Claims about verification: what is right passes, what is wrong is named, nothing is hidden."""

import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from support.judged import core, mutated
from support.tables import every
from support.verified import generated, plan, verdicts, verify

from rnncli.cli.judge import verify as command
from rnncli.errors import InvalidRequest, NothingSelected, RnncliWarning
from rnncli.files.formats import pb
from rnncli.jobs.workers import EXECUTORS, Workers
from rnncli.judging.claim import Claim
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.selected import Selected
from rnncli.mutants.catalogue import MUTANTS
from rnncli.packs import manifest as manifest_module
from rnncli.packs import pack as pack_module
from rnncli.packs.manifest import JOURNAL, SPOOL
from rnncli.packs.pack import open_pack
from rnncli.subjects.implementation import Implementation
from rnncli.verifying.verification import CONCESSIONS, select

CORE = Path(__file__).parents[2] / "vectors" / "core"
DEVICE = Path(__file__).parents[1] / "data" / "device.yaml"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The pack of the small suite."""
    return generated(tmp_path_factory.mktemp("packs") / "small")


@pytest.fixture
def results(small, tmp_path):
    """The right results in a folder, as a device that needs no Python would leave them."""
    refuse(tmp_path / "results", "lstm_14_shape", "shape of W")
    for path in small.glob("test_*/test_data_set_0/output_*.pb"):
        copy = tmp_path / "results" / path.relative_to(small)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return tmp_path / "results"


def refuse(results, case_id, why):
    """Say that a case was refused."""
    (results / f"test_{case_id}").mkdir(parents=True)
    (results / f"test_{case_id}/refused.txt").write_text(why)


def spoil(results, case_id, position=0):
    """Change one element of an output."""
    path = results / f"test_{case_id}/test_data_set_0/output_{position}.pb"
    name, values = pb.read_named(path)
    values = values.copy()
    values.reshape(-1)[-1] += values.dtype.type(1)
    path.write_bytes(pb.serialize(name, values))


@pytest.mark.parametrize("backend", ["numpy", "certified"])
def test_our_backends_pass_the_committed_pack(backend):
    """Every case passes, and none is skipped; only ball arithmetic refuses NaN."""
    report = verify(CORE, Implementation(backend=backend))
    refuses_nan = {"numpy": Verdict.PASS, "certified": Verdict.REFUSED}[backend]

    assert len(report.cases) == len(open_pack(CORE).manifest.cases)
    for case in report.cases:
        has_nan = "non-portable" in case.record.tags
        assert case.verdict is (refuses_nan if has_nan else Verdict.PASS), case.id


def test_native_arithmetic_passes_the_committed_pack():
    """float32 sums stay well within the tolerances."""
    report = verify(CORE, Implementation(backend="numpy", compute="native"))

    assert not report.fails
    assert 0 < report.total.margin < 0.5


# What semantics.md says each runtime gets wrong, as what a case must have to show it.
DEVIATIONS = {
    "onnxruntime": {"NaN", "SigmoidTail", "Softplus", "Threshold"},
    "openvino": {
        *("float64", "P", "input_forget", "activations of two directions"),
        *("NaN", "Flush", "Layout"),
    },
    "onnx-reference": {"sequence_lens", "clip", "input_forget", "activations"},
    "tract": {
        *("reverse", "bidirectional", "clip", "input_forget", "activations"),
        "linear_before_reset=2",
    },
}


def traits(record):
    """What a case has that a runtime may not know, and what it was made to find."""
    needs = record.requirements
    found = {*needs.attributes, *needs.inputs, needs.dtype, needs.direction}
    found |= {*record.flags} | {f"{name}={v}" for name, v in record.attributes.items()}
    if {"activations", "bidirectional"} <= found:
        found.add("activations of two directions")
    return found


@pytest.mark.parametrize("runtime", DEVIATIONS)
def test_runtimes_get_no_false_alarm(runtime):
    """Whatever differs is a deviation that is known by name; nothing right is called wrong."""
    pytest.importorskip({"onnx-reference": "onnx"}.get(runtime, runtime))
    report = verify(CORE, Implementation(runtime=runtime))
    counts = Counter(verdicts(report).values())
    differing = [c for c in report.cases if c.verdict is Verdict.DIFFERS]

    assert counts[Verdict.PASS] >= 20
    assert counts[Verdict.CRASHED] == counts[Verdict.TIMEOUT] == 0
    for case in differing:
        assert DEVIATIONS[runtime] & traits(case.record), case.id
        is_of_its_shape = not any(output.problem for output in case.details.outputs)
        if is_of_its_shape and "Y" in case.record.outputs:
            assert case.details.localisation, case.id


@pytest.mark.parametrize("executor", EXECUTORS)
def test_verdicts_do_not_depend_on_who_works(small, executor):
    """Two workers say what one says, in the same order."""
    alone = verify(small)
    together = verify(small, workers=Workers(jobs=2, executor=executor))

    def said(report):
        return [structs.replace(case.details, seconds=0.0) for case in report.cases]

    assert said(together) == said(alone)


# Hands out results that were made elsewhere, and notes each time it is started.
PROGRAM = """
import pathlib, shutil, sys
results, log, case, outputs = sys.argv[1:]
with open(log, "a") as file:
    file.write(case + "\\n")
for path in pathlib.Path(results, f"test_{case}", "test_data_set_0").glob("output_*.pb"):
    shutil.copy(path, outputs)
"""


def test_a_diagnosis_needs_no_second_execution(small, results, tmp_path):
    """Each case is put to the subject once, the wrong one too; nothing explains that one."""
    spoil(results, "gru_14_gates_forward_inputs")
    program, log = tmp_path / "program.py", tmp_path / "log"
    program.write_text(PROGRAM)
    command = shlex.join([sys.executable, *map(str, (program, results, log)), "{id}", "{outputs}"])
    report = verify(small, Implementation(command=command), diagnoses=True)

    assert sorted(log.read_text().split()) == sorted(verdicts(report))
    assert report.diagnosis is not None
    assert not report.diagnosis.causes
    assert report.diagnosis.unexplained == ("gru_14_gates_forward_inputs",)


# Cases in which one of three bugs shows, and which.
BUGS = {
    "lstm_14_clip": "clip-ignored",
    "lstm_14_clip_scope": "clip-ignored",
    "lstm_14_ragged": "lengths-ignored",
    "lstm_14_constants": "lengths-ignored",
    "lstm_14_peepholes": "peepholes-dropped",
    "lstm_14_input_forget_peepholes": "peepholes-dropped",
}


def test_bugs_that_cases_show_one_by_one_are_found_together(tmp_path):
    """A case in which all of them are at work is explained by what the others named."""
    crowded, every = "lstm_22_narrow_both_float16", sorted({*BUGS.values()})
    for case_id in (*BUGS, crowded):
        outputs = mutated(core()[case_id], [MUTANTS[name] for name in every])
        folder = tmp_path / f"test_{case_id}" / "test_data_set_0"
        folder.mkdir(parents=True)
        for k, (name, values) in enumerate(outputs.items()):
            (folder / f"output_{k}.pb").write_bytes(pb.serialize(name, values))
    spec = Implementation(results=str(tmp_path))
    selection = " or ".join(f"id:{case_id}" for case_id in (*BUGS, crowded))
    report = verify(CORE, spec, cases=Selected(select=selection), diagnoses=True)

    cause = report.diagnosis.cause_of(crowded)
    assert sorted(cause.parts) == every
    for case_id, name in BUGS.items():
        cause = report.diagnosis.cause_of(case_id)
        assert name in (cause.hypothesis, *cause.indistinguishable)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_diagnosis_does_not_depend_on_who_works(small, jobs):
    """The bug is named for each cell, and only where it is asked for."""
    bug = Implementation(backend="mutant:biases-dropped")
    asked = {"cases": Selected(select="gates and inputs"), "workers": Workers(jobs=jobs)}
    found = verify(small, bug, diagnoses=True, **asked).diagnosis

    assert [(cause.cell, cause.hypothesis) for cause in found.causes] == [
        (cell, "biases-dropped") for cell in ("RNN", "GRU", "LSTM")
    ]
    assert found.unexplained == ()
    assert verify(small, bug, **asked).diagnosis is None


def test_right_results_pass_and_a_wrong_one_differs(small, results):
    """One element off by one is one case that differs, with where and by how much."""
    spoil(results, "lstm_14_clip")
    report = verify(small, Implementation(results=str(results)))
    wrong = [case.details for case in report.cases if case.details.fails]

    assert [verdict.id for verdict in wrong] == ["lstm_14_clip"]
    assert wrong[0].verdict is Verdict.DIFFERS
    assert wrong[0].outputs[0].differing == 1
    assert wrong[0].margin > 100
    assert report.fails


def test_a_manifest_is_read_once(small, monkeypatch):
    """For selecting the cases and for judging them; and anew by the next run."""
    read = []
    monkeypatch.setattr(pack_module, "read_manifest", lambda path: read.append(path) or first)
    first = manifest_module.read_manifest(small)

    for runs in (1, 2):
        assert not verify(small, cases=Selected(select="clip"), diagnoses=True).fails
        assert read == [small] * runs


def test_a_giant_file_of_results_is_refused_by_its_size(small, tmp_path):
    """Nothing of it is read, so what it holds does not matter."""
    with (tmp_path / "results.npz").open("wb") as stream:
        stream.truncate(1 << 40)

    with pytest.raises(InvalidRequest, match=r"results\.npz: has at least 1099511627776 bytes"):
        verify(small, Implementation(results=f"{tmp_path}/results.npz"))


def test_a_known_failure_fails_no_run_and_a_cured_one_does(small, results):
    """An entry of the list excuses its case; when the case passes, the entry is news."""
    spec = Implementation(results=str(results))
    spoil(results, "lstm_14_clip")

    assert not verify(small, spec, xfails="lstm_14_clip  their bug 12").fails
    cured = verify(small, spec, xfails="lstm_14_clip  bug 12\nrnn_7_gates_* cured long ago")
    assert {c.id for c in cured.cases if c.details.fails} == {
        f"rnn_7_gates_{d}_{w}"
        for d in ("forward", "bidirectional")
        for w in ("inputs", "initializers")
    }


@pytest.mark.parametrize(
    ("case_id", "refused", "verdict"),
    [
        ("gru_14_gates_forward_inputs", "clip", Verdict.REFUSED),
        ("gru_14_gates_forward_inputs", "", Verdict.MISSING),
        ("lstm_14_shape", "", Verdict.MISSING),
    ],
)
def test_what_gives_no_outputs_fails_unless_allowed(small, results, case_id, refused, verdict):
    """A valid case may be refused only where an option says so; an invalid one must be.

    That nobody ran it does not show that it was.
    """
    shutil.rmtree(results / f"test_{case_id}")
    if refused:
        refuse(results, case_id, refused)
    spec = Implementation(results=str(results))
    report = verify(small, spec)

    assert verdicts(report)[case_id] is verdict
    assert report.fails
    assert case_id == "lstm_14_shape" or verdicts(report)["lstm_14_shape"] is Verdict.PASS
    (other,) = {Verdict.REFUSED, Verdict.MISSING} - {verdict}
    assert verify(small, spec, allowed=frozenset({other})).fails
    allowed = verify(small, spec, allowed=frozenset({verdict}))
    assert not allowed.fails
    assert (allowed.total.allowed, allowed.total.expected) == (1, 0)
    assert allowed.total.answered == allowed.total.cases - 1


def test_what_must_be_refused_and_runs_is_accepted(small, results):
    """Outputs for an invalid node are silently wrong, and counted apart."""
    (results / "test_lstm_14_shape/refused.txt").unlink()
    folder = results / "test_lstm_14_shape" / "test_data_set_0"
    folder.mkdir()
    (folder / "output_0.pb").write_bytes(pb.serialize("Y", np.zeros(3, np.float32)))
    report = verify(small, Implementation(results=str(results)))

    assert verdicts(report)["lstm_14_shape"] is Verdict.ACCEPTED
    assert report.fails


def test_the_first_failure_can_be_the_last(small, results):
    """-x judges nothing after the first failure."""
    spoil(results, "gru_14_gates_forward_inputs")
    spec = Implementation(results=str(results))
    report = verify(small, spec, stop_at_failure=True)

    assert report.cases[-1].id == "gru_14_gates_forward_inputs"
    assert len(report.cases) < len(verify(small, spec).cases)


@pytest.mark.parametrize("of", [1, 3, 18])
def test_shards_are_all_cases_once(small, of):
    """Every case is in exactly one of n shards."""
    asked = [plan(small, cases=Selected(shard=f"{k}/{of}")) for k in range(1, of + 1)]
    seen = [case_id for each in asked for case_id in select(each).asked]

    assert sorted(seen) == sorted(verdicts(verify(small)))


def test_the_cases_of_a_shard_are_judged(small):
    """Those, and no others."""
    shard = {"cases": Selected(shard="2/3")}

    assert [*verdicts(verify(small, **shard))] == [*select(plan(small, **shard)).asked]


def test_requirements_skip_with_the_reason(small):
    """What a subject cannot do is not held against it, and not hidden."""
    report = verify(small, cases=Selected(require="opset<=14,dtype=float32"))
    skipped = [c.details for c in report.cases if c.verdict is Verdict.SKIPPED]

    assert {verdict.id.split("_")[1] for verdict in skipped} == {"22"}
    assert all("opset" in verdict.message or "dtype" in verdict.message for verdict in skipped)
    assert not report.fails


@every(
    "options, said",
    [
        ({"cases": Selected(shard="19/19")}, "shard 19/19 is empty"),
        (
            {"cases": Selected(require="dtype=bfloat16"), "min_cases": 2},
            "only 1 case to judge; --min-cases requires 2; 17 were",
        ),
    ],
)
def test_too_few_cases_are_an_error(small, options, said):
    """More shards than cases, and an almost empty run: somebody would be green for nothing."""
    with pytest.raises(NothingSelected, match=said):
        select(plan(small, **options))


def test_a_pack_that_was_touched_is_refused(small, tmp_path):
    """Unless it is trusted, which is said by an option."""
    pack = Path(shutil.copytree(small, tmp_path / "pack"))
    spoil(pack, "lstm_14_clip")

    with pytest.raises(InvalidRequest, match=r"output_0\.pb is altered; verify --trust"):
        verify(pack)
    with pytest.warns(RnncliWarning, match="--trust does not compare"):
        assert verdicts(verify(pack, trust=True))["lstm_14_clip"] is Verdict.DIFFERS


@every(
    "made, path, said",
    [
        ("empty", "nothing", "not a pack of vectors: no such folder"),
        ("empty", ".", "not a pack of vectors: it has no manifest.json"),
        *((name, ".", "an unfinished pack; .* -o {}` goes on with") for name in (JOURNAL, SPOOL)),
    ],
)
def test_what_is_no_pack_is_said_to_be_none(tmp_path, made, path, said):
    """A missing folder, one without a manifest, and an unfinished one, which a command finishes."""
    folder = tmp_path / f"holds-{made}" / path
    (tmp_path / f"holds-{made}" / made).mkdir(parents=True, exist_ok=True)

    with pytest.raises(InvalidRequest, match=said.format(folder)):
        select(plan(folder))


def test_other_tolerances_can_be_asked_for(small, results):
    """A profile or numbers replace the pack's, and the report says so."""
    spoil(results, "lstm_14_clip")
    spec = Implementation(results=str(results))
    loose = verify(small, spec, rule=Rule(atol=2))
    strict = verify(small, spec, rule=Rule(profile="strict"))

    assert (loose.fails, loose.rule) == (False, "atol 2")
    assert (strict.fails, strict.rule) == (True, "profile strict")


# Options of `rnncli verify` that do not make less of a run: the implementation, the workers, the
# reports, and those that only ask for more.
FULL = {
    *("--runtime", "--backend", "--results", "--command", "--harness", "--runtime-option"),
    *("--compute", "--threads", "--timeout", "--max-memory", "--jobs", "--executor"),
    *("--scheduler", "--json", "--junit", "--markdown", "--html", "--plot", "--min-cases"),
    *("--pack-digest", "--shuffle", "--diagnose", "--exitfirst", "--max-bias", "--verbose"),
    "--save-xfails",
}
CONCEDING = {
    "--profile": {"rule": Rule(profile="strict")},
    "--atol": {"rule": Rule(atol=0.05)},
    "--rtol": {"rule": Rule(rtol={"Y": 0.05})},
    "--max-ulp": {"rule": Rule(max_ulp=4)},
    "--reading": {"rule": Rule(reading={"zero-length": "initial"})},
    "--weights": {"subject": Implementation(harness="true", weights="initializers")},
    "--select": {"cases": Selected(select="gru")},
    "--shard": {"cases": Selected(shard="1/2")},
    "--require": {"cases": Selected(require="opset<=14")},
    "--device": {"cases": Selected(device=DEVICE)},
    "--xfails": {"xfails": "* known"},
    "--allow-unexercised": {"allowed": frozenset({Verdict.UNEXERCISED})},
    "--allow-refused": {"allowed": frozenset({Verdict.REFUSED})},
    "--allow-missing": {"allowed": frozenset({Verdict.MISSING})},
    "--trust": {"trust": True},
    "--claims": {
        "claim": Claim("mine", "small", "0" * 64, 1, ["layout=0"]),
        "cases": Selected(require="layout=0"),
    },
}


def test_every_option_of_verify_is_a_concession_or_is_not():
    """A new option must say whether a run with it still judges the whole pack by its own rule."""
    own = {max(each.opts, key=len) for each in command.params if each.param_type_name == "option"}

    # --traceback is added where a command is first looked up; one concession is of `stream` alone.
    assert own - {"--traceback"} == FULL | ({*CONCESSIONS} - {"--allow-unexercised"})
    assert {*CONCESSIONS} == {*CONCEDING}


def test_a_plan_names_its_concessions(small):
    """And the report of its run does, too; without any it is the whole pack by its own rule."""
    found = {option: plan(small, **asked).concessions for option, asked in CONCEDING.items()}

    assert found == {option: (option,) for option in CONCEDING}
    assert plan(small).concessions == ()
    assert verify(small, cases=Selected(shard="1/2")).concessions == ("--shard",)
