"""Claims about programs that speak the harness protocol: whatever they do, the run goes on."""

import errno
import json
import shlex
import sys
from pathlib import Path
from unittest.mock import Mock

import jsonschema
import numpy as np
import pytest
from support import hostile_harness as hostile
from support.second_calls import SHAPES, twice

import rnncli
from rnncli.cases.library import specs_folder
from rnncli.cases.schemas import schema_text
from rnncli.errors import InvalidRequest
from rnncli.files.described import schema_of
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge_session
from rnncli.limits import Limits
from rnncli.packs.vector import Status
from rnncli.subjects.harness import HarnessSubject
from rnncli.subjects.harness_messages import MESSAGES, harness_schema
from rnncli.verifying.case_judging import session_calls_of

COMMAND = shlex.join([sys.executable, "-I", "-S", hostile.__file__])
CORE = Path(__file__).parents[2] / "vectors" / "core"
MIB = 1 << 20
PATIENT = 120  # seconds, of which a machine with much to do may need some


@pytest.fixture(scope="module")
def subject():
    """One program for all that does not take its time."""
    subject = HarnessSubject(COMMAND, limits=Limits(timeout=PATIENT))
    yield subject
    subject.close()


def answered(attempt):
    """Whether an attempt is that of a program in good health."""
    return attempt.status is Status.RAN and np.array_equal(
        attempt.outputs["Y"], np.float32(hostile.NUMBERS).reshape(hostile.SHAPE)
    )


@pytest.mark.parametrize("way", hostile.CRASHES)
def test_a_crash_is_a_verdict_and_the_next_vector_runs(subject, called, way):
    """Dying and answers that are none concern one vector only, and the message says what came."""
    attempt = subject.attempt(called(way))

    assert attempt.status is Status.CRASHED
    assert attempt.message.isprintable()
    assert attempt.message.startswith(hostile.CRASHES[way][1])
    assert attempt.outputs == {}
    assert answered(subject.attempt(called("good")))


@pytest.mark.parametrize("way", hostile.REFUSALS)
def test_skipped_is_a_refusal(subject, called, way):
    """With its reason and the address of its issue, fit for a terminal."""
    attempt = subject.attempt(called(way))

    assert (attempt.status, attempt.message) == (Status.REFUSED, hostile.REFUSALS[way][1].strip())


@pytest.mark.parametrize("way", hostile.SPOILS)
def test_the_files_of_a_vector_have_a_place_whatever_one_before_it_did(called, way):
    """To its folder, to that of the next one, and to the one of both: a new process has another."""
    subject = HarnessSubject(COMMAND, limits=Limits(timeout=PATIENT))
    try:
        assert subject.attempt(called(way)).message == "spoilt"
        assert answered(subject.attempt(called("good")))
    finally:
        subject.close()


def test_a_program_that_leaves_no_place_has_crashed(called, monkeypatch):
    """Where a new process does so, too; a full disk is no doing of a program."""
    subject = HarnessSubject(COMMAND, limits=Limits(timeout=PATIENT))
    try:
        subject.describe()
        Path(f"{subject._process._folder}/1").mkdir()
        attempt = subject.attempt(called("good"))
        assert attempt.status is Status.CRASHED
        assert attempt.message == "left no place for the files of the next case: File exists"

        full = OSError(errno.ENOSPC, "No space left on device")
        monkeypatch.setattr("rnncli.subjects.harness.put_file", Mock(side_effect=full))
        with pytest.raises(OSError, match="No space left"):
            subject.attempt(called("good"))
    finally:
        subject.close()


@pytest.mark.parametrize("way", hostile.HANGS)
def test_a_hang_is_a_timeout_and_the_next_vector_runs(called, family, way):
    """The program is ended, even one that is stopped and deaf or has answered half."""
    subject = HarnessSubject(COMMAND, limits=Limits(timeout=0.4))
    try:
        assert subject.attempt(called(way)).status is Status.TIMEOUT
        subject.timeout = PATIENT
        assert answered(subject.attempt(called("good")))
    finally:
        subject.close()
    assert family.is_gone()


def test_a_memory_hog_is_a_crash(called, family):
    """Resident memory counts, as for every subject."""
    subject = HarnessSubject(COMMAND, limits=Limits(max_memory=200 * MIB))
    try:
        attempt = subject.attempt(called("eat"))
        assert attempt.status is Status.CRASHED
        assert "MiB of memory, more than it may" in attempt.message
        assert answered(subject.attempt(called("good")))
    finally:
        subject.close()
    assert family.is_gone()


def test_a_program_that_closes_its_output_is_ended(called, family, monkeypatch):
    """It lives, but nothing can come from it any more."""
    monkeypatch.setattr("rnncli.supervision.connection.SECONDS_TO_BE_BURIED", 0.2)
    subject = HarnessSubject(COMMAND)
    try:
        attempt = subject.attempt(called("close"))
        assert attempt.status is Status.CRASHED
        assert attempt.message == "gave garbage: fell silent without an answer"
    finally:
        subject.close()
    assert family.is_gone()


@pytest.mark.parametrize("way", ["answer_and_die", "twice"])
def test_what_comes_after_an_answer_is_not_the_next_vector_s(subject, called, way):
    """A death after the answer, or an answer to a request that was not sent."""
    assert answered(subject.attempt(called(way)))
    assert answered(subject.attempt(called("good")))
    assert answered(subject.attempt(called("good")))


@pytest.mark.parametrize("way", ["forks", "talks"])
def test_what_a_program_starts_and_says_beside_does_not_matter(called, family, way):
    """Children, orphans and megabytes on standard error end with it."""
    subject = HarnessSubject(COMMAND)
    try:
        assert answered(subject.attempt(called(way)))
        assert answered(subject.attempt(called("good")))
    finally:
        subject.close()
    assert family.is_gone()


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("abort", "the program does not start: died of SIGABRT"),
        ("leave", "the program does not start: ended with exit code 7"),
        ("text", "gave garbage: wrote 'Hello!', which is not JSON"),
        ("nothing", "the answer to start has no 'version'"),
        ("version_2", "speaks version 2 of the protocol, not 1"),
        ("version_is_true", "the answer to start.version must be 1, got True"),
        ("nameless", "the answer to start.implementation has no 'name'"),
        ("about_is_text", "the answer to start.implementation must be object"),
    ],
)
def test_a_program_that_does_not_start_is_an_error(called, family, way, sentence):
    """No vector has reached it."""
    with pytest.raises(InvalidRequest) as error:
        HarnessSubject(f"{COMMAND} {way}").attempt(called("good"))
    assert str(error.value).startswith(f"--harness {COMMAND} {way}: ")
    assert sentence in str(error.value)
    assert family.is_gone()


@pytest.mark.parametrize(("way", "is_message"), [("text", True), ("list", True), ("nan", False)])
def test_who_prints_beside_the_answers_is_told_where_to(called, way, is_message):
    """A message goes to standard error; an answer that is malformed is where it belongs."""
    subject = HarnessSubject(COMMAND)
    try:
        message = subject.attempt(called(way)).message
    finally:
        subject.close()
    assert message.endswith("alone, messages belong on standard error") == is_message


def test_a_program_that_never_answers_start_is_an_error(called, family, monkeypatch):
    """After the time that a slow one may take."""
    monkeypatch.setattr("rnncli.subjects.kept_process.SECONDS_TO_START", 0.2)
    with pytest.raises(InvalidRequest, match=r"does not start within 0\.3 s"):
        HarnessSubject(f"{COMMAND} quiet", limits=Limits(timeout=0.3)).attempt(called("good"))
    assert family.is_gone()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no program './prog'"),
        ("#!/no/such/interpreter\n", "prog: No such file or directory; the interpreter named"),
        ("#!/bin/sh\necho 'libk.so: not found' >&2; exit 127\n", "code 127: libk.so: not found"),
    ],
)
def test_a_program_that_cannot_be_started_is_an_error(
    tmp_path, monkeypatch, called, content, sentence
):
    """In the words that --command has for it."""
    monkeypatch.chdir(tmp_path)
    if content:
        (tmp_path / "prog").write_text(content)
        (tmp_path / "prog").chmod(0o755)

    with pytest.raises(InvalidRequest) as error:
        HarnessSubject("./prog").attempt(called("good"))
    assert sentence in str(error.value)


RECORDS = """
import json, os, shutil, sys
for k, line in enumerate(sys.stdin):
    request = json.loads(line)
    with open(sys.argv[1], "a") as file:
        file.write(line)
    if request["cmd"] == "start":
        print(json.dumps({"version": 1, "implementation": {"name": "r", "version": "1"}}))
    if request["cmd"] == "run":
        for name in [row["file"] for row in request["inputs"].values()] + [request["model"]]:
            shutil.copy(name, os.path.join(sys.argv[2], f"{k}-{os.path.basename(name)}"))
        print(json.dumps({"seq": request["seq"], "outputs": {}}))
    sys.stdout.flush()
"""


@pytest.fixture
def recorded(tmp_path):
    """A program that keeps what it is sent, the lines that it was sent, and its files."""
    (tmp_path / "prog.py").write_text(RECORDS)
    (tmp_path / "files").mkdir()
    lines, files = tmp_path / "lines", tmp_path / "files"
    command = shlex.join(
        [sys.executable, "-I", "-S", f"{tmp_path}/prog.py", str(lines), str(files)]
    )
    return command, lambda: [json.loads(line) for line in lines.read_text().splitlines()], files


def test_a_program_gets_what_it_is_promised(recorded, core):
    """Messages that follow the schema, files of the promised sizes, and a model."""
    command, lines, files = recorded
    vector = core("lstm_14_constants")
    subject = HarnessSubject(command)
    subject.attempt(vector)
    subject.close()
    start, run, stop = lines()

    for name, message in (("start", start), ("run", run), ("stop", stop)):
        jsonschema.validate(message, schema_of(MESSAGES[name]))
        jsonschema.validate(message, harness_schema())
    assert (files / "1-1.onnx").read_bytes() == vector.model
    assert {*run["initializers"]} == {*vector.initializers} != set()
    assert run["outputs"] == vector.record.outputs
    assert run["case"]["attributes"] == vector.record.attributes
    assert "expect" not in run["case"]
    for name, row in run["inputs"].items():
        content = (files / f"1-{Path(row['file']).name}").read_bytes()
        values = np.frombuffer(content, f"<{np.dtype(row['dtype']).str[1:]}")
        np.testing.assert_array_equal(values.reshape(row["shape"]), vector.inputs[name])


KEEPS = """
import json, os, sys
import numpy as np
from rnncli.operators import evaluate
models = {}
for line in sys.stdin:
    request, outputs = json.loads(line), {}
    if request["cmd"] == "start":
        print(json.dumps({"version": 1, "implementation": {"name": "k", "version": "1"}}))
    if request["cmd"] == "run":
        rows, case = {**request["inputs"], **request["initializers"]}, request["case"]
        read = lambda row: np.fromfile(row["file"], row["dtype"]).reshape(row["shape"])
        inputs = {name: read(row) for name, row in rows.items()}
        if KEPT in inputs:
            inputs[KEPT] = models.setdefault(request["model"], inputs[KEPT])
        made = evaluate(
            case["operator"], inputs, attributes=case["attributes"], outputs=case["outputs"]
        )
        for name, values in made.items():
            values.tofile(os.path.join(request["dir"], name))
            row = {"file": name, "dtype": str(values.dtype), "shape": values.shape}
            outputs[name] = row
        print(json.dumps({"seq": request["seq"], "outputs": outputs}))
    sys.stdout.flush()
"""


@pytest.mark.parametrize("vector", [twice()["lstm_14_given"], twice(SHAPES)["gru_14_fed"]])
@pytest.mark.parametrize(("kept", "verdict"), [("X", Verdict.STALE), ("none", Verdict.PASS)])
def test_state_kept_from_call_to_call_is_found(tmp_path, vector, kept, verdict):
    """Calls of one session, also of other sizes, are compared with those in a new process."""
    (tmp_path / "prog.py").write_text(KEEPS.replace("KEPT", repr(kept)))
    subject = HarnessSubject(shlex.join([sys.executable, f"{tmp_path}/prog.py"]))
    try:
        found = judge_session(session_calls_of(subject, vector), PACK_RULE).verdict
    finally:
        subject.close()
    assert found.verdict is verdict, found.message


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_pack_is_judged_by_one_program_for_each_worker(tmp_path, jobs):
    """`verify` and `diagnose` take a harness wherever they take a command."""
    (tmp_path / "prog.py").write_text(KEEPS.replace("KEPT", "None"))
    command = shlex.join([sys.executable, f"{tmp_path}/prog.py"])
    report = rnncli.verify(
        CORE,
        rnncli.Implementation(harness=command),
        cases=rnncli.Selected(select="rnn_7"),
        workers=rnncli.Workers(jobs=jobs),
    )

    assert report.passed
    assert {case.verdict for case in report.cases} <= {Verdict.PASS, Verdict.ACCEPTABLE}
    assert report.subject.about["name"] == "k"
    assert "--harness" in report.command


def test_its_files_are_gone_afterwards(recorded, core):
    """The folder of a program ends with it."""
    command, lines, _ = recorded
    subject = HarnessSubject(command)
    subject.attempt(core("rnn_7_plain"))
    folder = Path(lines()[1]["dir"]).parent

    assert [each.name for each in folder.iterdir()] == ["1.onnx"]
    subject.close()
    assert not folder.exists()


def test_calls_of_one_session_have_one_model(recorded, core):
    """A program may keep what it has loaded; another case has another model."""
    command, lines, _ = recorded
    vectors = twice()
    subject = HarnessSubject(command)
    subject.session([vectors["lstm_14_given"].calls[k] for k in (0, 1, 0)])
    subject.attempt(vectors["gru_14_single"])
    subject.close()
    models = [line["model"] for line in lines() if line["cmd"] == "run"]

    assert models[0] == models[1] == models[2] != models[3]


def test_it_says_what_it_runs():
    """What the program says of itself, and the limits it runs under."""
    subject = HarnessSubject(COMMAND, limits=Limits(timeout=2.5, max_memory=1 << 30))
    try:
        assert subject.describe() == {
            "name": "hostile",
            "version": "6.66",
            "language": "Python",
            "operators": "LSTM",
            "protocol": "1",
            "timeout": "2.5",
            "max_memory": str(1 << 30),
        }
    finally:
        subject.close()


def test_a_program_that_ignores_stop_is_ended(called, family, monkeypatch):
    """After the time that a slow one may take."""
    monkeypatch.setattr("rnncli.subjects.harness.SECONDS_TO_STOP", 0.1)
    subject = HarnessSubject(f"{COMMAND} deaf")
    subject.describe()
    subject.close()

    assert family.is_gone()


def test_the_committed_schema_is_current():
    """`rnncli schema harness` writes it; nobody edits it."""
    schema = harness_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    path = specs_folder() / "schema/harness.schema.json"

    assert path.read_text(encoding="utf-8") == schema_text(schema)
