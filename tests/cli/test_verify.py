"""Claims about `rnncli verify` as a user and a script meet it."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.valid_records import valid_records

from rnncli.files.formats import pb
from rnncli.subjects.runtimes import RuntimeRow
from rnncli.verifying.case_judging import shuffled

CORE = Path(__file__).parents[2] / "vectors" / "core"
RIGHT = "rnn_7_plain"

# A vendor's program that needs nothing but Python: it hands out results made elsewhere.
PROGRAM = """\
import pathlib, shutil, sys
results, case, outputs = sys.argv[1:]
source = pathlib.Path(results, f"test_{case}", "test_data_set_0")
if not source.is_dir():
    sys.exit(3)
for path in source.glob("output_*.pb"):
    shutil.copy(path, outputs)
"""


@pytest.fixture
def results(tmp_path):
    """Right results of two cases, one of which is spoilt."""
    for case in (RIGHT, "lstm_7_plain"):
        source = CORE / f"test_{case}" / "test_data_set_0"
        target = tmp_path / "results" / f"test_{case}" / "test_data_set_0"
        target.mkdir(parents=True)
        for path in source.glob("output_*.pb"):
            shutil.copy(path, target)
    path = tmp_path / "results/test_lstm_7_plain/test_data_set_0/output_0.pb"
    name, values = pb.read_named(path)
    values = values.copy()
    values[1, 0, 2, 3] += 1
    path.write_bytes(pb.serialize(name, values))
    return tmp_path / "results"


def test_a_right_subject_is_exit_0(rnncli):
    """A pipe gets a table by operator and flag; the last line on stderr has the counts."""
    done = rnncli("verify", CORE, "--backend", "numpy", "-k", "rnn_7 or gru_7")

    assert done.code == 0
    assert [(row["by"], row["name"], row["pass"]) for row in done.rows][:2] == [
        ("operator", "RNN-7", "1"),
        ("operator", "GRU-7", "1"),
    ]
    assert done.rows[-1]["by"] == "all"
    assert done.err.splitlines()[-1].endswith("2 pass. None fails")


def test_a_failure_says_what_where_by_how_much_and_how_to_repeat_it(rnncli, results):
    """The words of a failure, as a person reads them."""
    done = rnncli("verify", CORE, "--results", results, "-k", "rnn_7_plain or lstm_7_plain")
    lines = done.err.splitlines()

    assert done.code == 1
    assert lines[0] == "FAIL lstm_7_plain"
    assert lines[1].startswith("  Y: 1 of 60 differ")
    assert "worst at [1,0,2,3]: got " in lines[1]
    assert "first wrong at t=1, sequence 2, unit 3" in lines[2]
    assert any(line.startswith("  tests for GateOrder (finds: ") for line in lines)
    repeat = ("verify", str(CORE), "--results", str(results), "-k", "id:lstm_7_plain")
    assert f"  repeat: rnncli {shlex.join(repeat)}" in lines


def test_json_lines_fit_their_schema(rnncli, results):
    """One line of the run, one a case, one of the counts."""
    done = rnncli("verify", CORE, "--results", results, "-k", "rnn_7 or lstm_7", "--json")
    records = valid_records(done.out)

    assert [record["kind"] for record in records] == ["run", "case", "case", "summary"]
    assert records[-1]["verdicts"]["differs"] == 1


def test_reports_are_written_beside_the_table(rnncli, results, tmp_path):
    """JUnit loads, Markdown and the page name the failure; nothing else is written."""
    files = [
        *(("--junit", "v.xml"), ("--markdown", "v.md"), ("--html", "v.html")),
        ("--plot", "v.svg"),
    ]
    options = [part for option, name in files for part in (option, tmp_path / name)]
    done = rnncli("verify", CORE, "--results", results, "-k", "rnn_7 or lstm_7", *options)
    cases = ET.parse(tmp_path / "v.xml").getroot().iter("testcase")  # noqa: S314 -- our own file

    assert done.code == 1
    assert {case.get("name"): len(case) > 0 for case in cases} == {
        RIGHT: False,
        "lstm_7_plain": True,
    }
    for name in ("v.md", "v.html", "v.svg"):
        assert "lstm_7_plain" in (tmp_path / name).read_text(encoding="utf-8")


def test_a_bug_is_named_beside_the_verdicts(rnncli):
    """By the run that found it: on stderr, in JSON, and as `diagnose` names it."""
    select = (CORE, "--backend", "mutant:recurrent-bias-dropped", "-k", "rnn_14_r or rnn_7")
    done = rnncli("verify", *select, "--diagnose", "--json")
    records = valid_records(done.out)
    alone = rnncli("diagnose", *select, "--json")

    assert (done.code, alone.code) == (1, 1)
    causes = [record for record in records if record["kind"] in {"cause", "unexplained"}]
    assert causes == [json.loads(line) for line in alone.out.splitlines()]
    assert causes[0]["hypothesis"] == "recurrent-bias-dropped"
    failing = [r["id"] for r in records if r["kind"] == "case" and r["verdict"] == "differs"]
    assert causes[0]["explains"] == failing
    assert "RNN: recurrent-bias-dropped explains" in done.err


def test_nothing_wrong_needs_no_diagnosis(rnncli):
    """Exit 0, and a sentence that says so."""
    done = rnncli("verify", CORE, "--backend", "numpy", "-k", "rnn_7", "--diagnose")

    assert done.code == 0
    assert "no case to compare with known bugs" in done.err


VARIABLES = {"XFAILS": "known.txt", "REQUIRE": "layout=0", "ALLOW_REFUSED": "1", "SHARD": "1/2"}


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_repeat_line_has_what_the_run_concedes(
    rnncli, results, monkeypatch, tmp_path, by_variable
):
    """Whoever gave it: a variable may not be set where the line is copied to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "known.txt").write_text("rnn_7_plain known\n")
    options = []
    for name, value in VARIABLES.items():
        if by_variable:
            monkeypatch.setenv(f"RNNCLI_VERIFY_{name}", value)
        elif name != "SHARD":
            flag = f"--{name.lower().replace('_', '-')}"
            options += [flag] if value == "1" else [flag, value]
    select = "rnn_7_plain or lstm_7_plain"
    done = rnncli("verify", CORE, "--results", results, "-k", select, "--json", *options)
    repeat = next(json.loads(line) for line in done.out.splitlines()[1:-1])["repeat"]

    shard = ["--shard", "1/1"] * by_variable
    given = ["--require", "layout=0", "--xfails", "known.txt", "--allow-refused", *shard]
    begin = ["rnncli", "verify", str(CORE), "--results", str(results), *given, "-k"]
    assert shlex.split(repeat)[:-1] == begin


def test_a_repeat_line_selects_one_case_under_the_same_limits(rnncli, tmp_path):
    """And none whose id begins with its; a timeout is that of the run."""
    (tmp_path / "program.py").write_text("raise SystemExit(1)")
    command = shlex.join([sys.executable, "-I", f"{tmp_path}/program.py", "{outputs}"])
    done = rnncli(
        "verify", CORE, "--command", command, "-k", "lstm_14_both", "--timeout", 7, "-j", 2,
    )  # fmt: skip
    repeat = next(line for line in done.err.splitlines() if line.startswith("  repeat: "))
    again = rnncli(*shlex.split(repeat)[2:])

    assert repeat.endswith(" --timeout 7.0 -k id:lstm_14_both")
    assert [line for line in again.err.splitlines() if line.startswith("FAIL ")] == [
        "FAIL lstm_14_both"
    ]


def test_skipped_cases_are_grouped_by_requirement(rnncli):
    """Not by every combination of what they are and have."""
    options = ("--require", "dtype=float32,operator=LSTM-14", "-k", "plain or both or float16")
    done = rnncli("verify", CORE, "--backend", "numpy", *options)
    lines = [line for line in done.err.splitlines() if line.startswith("skipped ")]

    assert len(lines) == 2
    assert any("requires operator LSTM-14, has RNN-7, " in line for line in lines)
    assert any("requires dtype float32, has float16" in line for line in lines)


def test_a_command_is_judged(rnncli, results, tmp_path):
    """A program in any language: it exits with 3 to refuse."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = shlex.join(
        [sys.executable, f"{tmp_path}/program.py", str(results), "{id}", "{outputs}"]
    )
    done = rnncli("verify", CORE, "--command", command, "-k", "plain and (rnn or lstm_7)", "--json")
    verdicts = {
        record["id"]: record["verdict"]
        for record in map(json.loads, done.out.splitlines())
        if record["kind"] == "case"
    }

    assert verdicts == {RIGHT: "pass", "lstm_7_plain": "differs", "rnn_22_plain": "refused"}


def test_a_program_that_does_not_start_is_no_verdict(rnncli, tmp_path):
    """The run stops at its first case: nothing that was allowed makes it green."""
    program = tmp_path / "ld.sh"
    program.write_text("#!/bin/sh\necho 'error while loading libk.so' >&2; exit 127\n")
    program.chmod(0o755)
    done = rnncli("verify", CORE, "--command", f"{program} {{outputs}}", *LENIENT)

    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(
        f"the program could not be started: {program} ended with exit code 127: error while"
        " loading libk.so\n"
    )


LENIENT = ("--allow-refused", "--allow-missing", "--min-cases", 60)


def test_one_result_is_not_sixty(rnncli, results):
    """What is missing may be allowed, but is no answer."""
    shutil.rmtree(results / "test_lstm_7_plain")
    strict = rnncli("verify", CORE, "--results", results, "--allow-refused")
    allowed = rnncli("verify", CORE, "--results", results, *LENIENT)

    assert (strict.code, allowed.code) == (1, 5)
    assert "187 missing. None fails; 187 allowed: missing results" in allowed.err
    assert allowed.err.endswith("\nonly 1 case answered; --min-cases requires 60\n")


def test_known_failures_are_no_failures(rnncli, results, tmp_path):
    """With a list of them the exit code is 0; an entry for no case is a warning."""
    (tmp_path / "xfails").write_text("lstm_7_plain  our bug 7\nlstm_8_*  gone\n")
    done = rnncli(
        "verify", CORE, "--results", results, "-k", "rnn_7 or lstm_7",
        "--xfails", tmp_path / "xfails",
    )  # fmt: skip

    assert done.code == 0
    assert "xfails:2:1: 'lstm_8_*' matches no case of the pack" in done.err


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ([], 2, "say what to judge: one of --runtime, --backend, --results, --command"),
        (["--runtime", "onnxruntime", "--backend", "numpy"], 2, "say what to judge"),
        (["--runtime", "onnxrunntime"], 2, "did you mean 'onnxruntime'"),
        (["--backend", "numpi"], 2, "did you mean 'numpy'"),
        (["--backend", "numpy", "-k", "transformer"], 5, "selects no case"),
        (
            ["--backend", "numpy", "--min-cases", "1000"],
            5,
            "only 188 cases to judge; --min-cases requires 1000",
        ),
        (["--backend", "numpy", "--require", "opsett=14"], 2, "did you mean 'opset'"),
        (["--backend", "numpy", "--require", "opset>=99"], 5, "were skipped"),
        (["--backend", "numpy", "--profile", "strickt"], 2, "did you mean 'strict'"),
        (["--backend", "numpy", "--profile", "strict", "--rtol", "1"], 2, "exclude each other"),
        (["--backend", "numpy", "--atol", "Z:1"], 2, "unknown output 'Z'"),
        (["--backend", "numpy", "--shard", "3/2"], 2, "expected i/n"),
        (["--backend", "numpy", "--max-memory", "much"], 2, "200M"),
        (["--backend", "numpy", "--xfails", "nothing"], 2, "nothing"),
        (["--backend", "numpy", "--junit", "no/such/folder/v.xml"], 2, "there is no folder"),
        (["--backend", "numpy", "--plot", "x.gif"], 2, "a plot is .png, .svg, .pdf, not '.gif'"),
        (["--results", "nothing"], 2, "nothing"),
        (["--command", "no-such-program {model}"], 2, "no-such-program"),
    ],
)
def test_a_wrong_request_is_said_before_anything_runs(rnncli, options, code, sentence):
    """The exit code tells what kind of wrong, the last line says what."""
    done = rnncli("verify", CORE, *options)

    assert done.code == code
    assert sentence in done.err
    assert done.out == ""


SIZES = """\
suite: sizes
summary: Cases of two sizes, interleaved.
seed: 11
defaults:
  sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 2}
  op: RNN-14
cases:
  one: {}
  wide: {sizes: {hidden_size: 5}}
  two: {}
"""


@pytest.fixture
def keeping(tmp_path, monkeypatch, rnncli):
    """A runtime that keeps weights by shape from case to case, and a pack that shows it."""
    row = RuntimeRow("support.second_calls:KeepsWeightsByShape", "keeps too much")
    monkeypatch.setattr("rnncli.subjects.runtimes.known_subjects", lambda: {"keeping": row})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.yaml").write_text(SIZES)
    assert rnncli("generate", "sizes.yaml", "-o", "pack").code == 0
    return ("verify", "pack", "--runtime", "keeping", "--json")


def judged(done):
    """Each case by its id."""
    return {record["id"]: record for record in valid_records(done.out) if record["kind"] == "case"}


def test_a_case_that_another_one_spoils_is_stale_and_its_command_shows_it(rnncli, keeping):
    """The command names both; alone the case passes."""
    (stale,) = [each for each in judged(rnncli(*keeping)).values() if each["verdict"] == "stale"]
    again = judged(rnncli(*shlex.split(stale["repeat"])[1:], "--json"))

    assert (stale["id"], stale["after"]) == ("rnn_14_two", ["rnn_14_one"])
    assert {name: each["verdict"] for name, each in again.items()} == {
        "rnn_14_one": "pass",
        "rnn_14_two": "stale",
    }
    assert rnncli(*keeping, "-k", "id:rnn_14_two").code == 0


def test_another_order_shows_it_elsewhere_and_its_command_has_the_seed(rnncli, keeping):
    """Which case comes first, a seed decides; reports keep the pack's order."""
    orders = ((seed, shuffled(("rnn_14_one", "rnn_14_two"), seed)) for seed in range(20))
    seed = next(seed for seed, (first, _) in orders if first == "rnn_14_two")
    found = judged(rnncli(*keeping, "--shuffle", seed))
    (stale,) = [each for each in found.values() if each["verdict"] == "stale"]
    again = judged(rnncli(*shlex.split(stale["repeat"])[1:], "--json"))

    assert [*found] == ["rnn_14_one", "rnn_14_wide", "rnn_14_two"]
    assert (stale["id"], stale["after"]) == ("rnn_14_one", ["rnn_14_two"])
    assert f"--shuffle {seed}" in stale["repeat"]
    assert again["rnn_14_one"]["verdict"] == "stale"


def test_relations_are_asked_in_another_order_too(rnncli, keeping):
    """The report keeps that of the cases."""
    options = ("--relation", "weights", "--shuffle", "3")
    done = rnncli("relate", "pack", "--backend", "numpy", "--json", *options)
    first, *found, _ = (json.loads(line) for line in done.out.splitlines())

    assert done.code == 0
    assert [each["id"].removesuffix("::weights") for each in found] == [
        *("rnn_14_one", "rnn_14_wide", "rnn_14_two")
    ]
    assert "--shuffle 3" in first["command"]
