"""Claims about the commands as functions of Python."""

from __future__ import annotations

import inspect
import math
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path

import pytest
from support.asked import verified
from support.small_suite import small_suite

import rnncli
from rnncli import Implementation, Limits, Rule, Selected, Verdict, Workers
from rnncli.cli.judge import diagnose, relate, verify
from rnncli.cli.vectors import generate, score
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.generating.generation import GenerationPlan
from rnncli.generating.generation import generate as write_pack
from rnncli.limits import OF_SUBJECTS
from rnncli.options import traits_of, words_of

# Options that only print or write a report, or that bound the whole process.
REPORTS = {"as_json", "verbose", "junit", "markdown", "html", "plot", "save_xfails"}
OF_COMMANDS = {
    "generate": {"as_json", "max_memory"},
    "verify": REPORTS,
    "relate": REPORTS,
    "diagnose": {"as_json", "verbose"},
    "score": {"as_json", "verbose", "minimise", "matrix_file", "html_file"},
}
# Parameters of functions that commands have no option for.
OF_FUNCTIONS = {"progress"}
# Parameters whose fields are options -> what holds where they are not given.
VALUES = {
    "subject": (Implementation, {each.name: each.default for each in fields(Implementation)}),
    "limits": (Limits, asdict(OF_SUBJECTS)),
    "rule": (Rule, asdict(Rule())),
    "cases": (Selected, asdict(Selected())),
    "workers": (Workers, asdict(Workers())),
}

COMMANDS = {command.name: command for command in (generate, verify, relate, diagnose, score)}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A pack with valid cases of an LSTM, and one that must be refused."""
    folder = tmp_path_factory.mktemp("pack")
    plan = GenerationPlan(suite=small_suite(), selection="lstm")
    write_pack(plan, folder, lambda _: None)
    return folder


def right(vector):
    """The outputs of a vector, computed by its operator."""
    return vector.run(rnncli.prepare(vector.model))


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_keyword_arguments_with_the_same_defaults(name):
    """And nothing else is an argument, so that neither drifts from the other."""
    command = COMMANDS[name]
    context = command.make_context(name, ["PACK"])
    passed = [o for o in command.params if o.expose_value]  # --traceback is the group's
    options = {o.name for o in passed if o.param_type_name == "option"} - OF_COMMANDS[name]
    (first, *_), parameters = (
        [p.name for p in command.params if p.param_type_name == "argument"],
        inspect.signature(getattr(rnncli, name)).parameters,
    )
    values = [VALUES[each] for each in VALUES if each in parameters or each == "limits"]
    of_values = {each: default[each] for made, default in values for each in traits_of(made)}
    others = parameters.keys() - VALUES.keys() - OF_FUNCTIONS
    of_function = {each: parameters[each].default for each in others}
    wanted = {first: inspect.Parameter.empty, **of_values, **of_function}

    assert options <= wanted.keys()
    assert {o: context.params[o] for o in options} == {o: wanted[o] for o in options}
    assert of_function.keys() - {first} <= options


@pytest.mark.parametrize("name", COMMANDS)
def test_keyword_arguments_are_the_long_names_of_options(name):
    """`--min-cases` is `min_cases`."""
    for option in COMMANDS[name].params:
        if option.param_type_name == "option" and option.name not in OF_COMMANDS[name]:
            long = max(option.opts, key=len)
            assert option.name == long[2:].replace("-", "_")


EVERY_WAY = {
    "relation": ("again", "singles"),
    "states": {"h": "h_n"},
    "dims": {"n": 2, "t": 3},
    "shapes": {"X": [5, 1, 10], "sr": ()},
    "inputs": {"X": "x.npy"},
    "inputs_from": "set",
    "steps": 2,
    "sequences": 1,
    "save": "there",
    "xfails": Path("known"),
    "allow_refused": True,
    "allow_unexercised": True,
    "exitfirst": True,
    "min_cases": 2,
}


@pytest.mark.parametrize(
    ("function", "asked", "words"),
    [
        (
            rnncli.stream,
            EVERY_WAY,
            "--xfails known --allow-refused --allow-unexercised --relation again \
             --relation singles --state h=h_n --dim n=2 --dim t=3 --shape X=5,1,10 \
             --shape sr= -i X=x.npy --inputs set --steps 2 --sequences 1",
        ),
        (
            rnncli.relate,
            {"sizes": {"hidden_size": 5, "batch_size": 2}, "trust": True, "pack_digest": "0" * 12},
            "--trust --sizes hidden_size=5,batch_size=2",
        ),
        (rnncli.verify, {"min_cases": 2, "claims": "c.yaml", "diagnose": True}, ""),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_case_is_asked_for_again_as_the_run_asked_for_it(function, asked, words):
    """In the words of the command line; what concerns a run as a whole is left out."""
    given = {name: each.default for name, each in inspect.signature(function).parameters.items()}

    assert words_of(function, given | asked) == words.split()


def test_a_function_that_is_right_passes(pack):
    """Its refusal of the invalid case counts: it answers valid ones."""
    seen = []
    report = rnncli.verify(pack, right, progress=lambda *each: seen.append(each))

    assert report.passed
    assert report.exit_code == 0
    assert report.subject.name == "right"
    assert {case.verdict for case in report.cases} == {Verdict.PASS}
    assert seen[0] == (0, 6, "")
    assert seen[-1] == (6, 6, "6 pass")
    assert rnncli.verify(pack, right, cases=rnncli.Selected(select="shape")).passed
    with pytest.raises(NothingSelected, match="--min-cases requires 7"):
        rnncli.verify(pack, right, min_cases=7)


def refuses(vector):
    """Everything, as something that is not implemented at all does."""
    raise NotImplementedError


def breaks(vector):
    """As a slip does, which is no refusal."""
    return vector.no_such_attribute


@pytest.mark.parametrize(
    ("function", "options", "code", "verdicts"),
    [
        (refuses, {}, 1, {"refused", "skipped"}),
        (refuses, {"allow_refused": True}, 5, {"refused", "skipped"}),
        (refuses, {"select": "shape"}, 5, {"skipped"}),
        (breaks, {}, 1, {"crashed"}),
        (lambda vector: None, {}, 1, {"crashed"}),
        (lambda vector: {}, {}, 1, {"differs", "accepted"}),
    ],
)
def test_nothing_computed_is_never_passed(pack, function, options, code, verdicts):
    """Whatever is allowed, selected or refused."""
    report = verified(pack, function=function, **options)

    assert not report.passed
    assert report.exit_code == code
    assert {case.verdict for case in report.cases} == verdicts


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("cases", "lstm_14", "takes no str for 'cases'; write cases=Selected(select='lstm_14')"),
        ("cases", ["lstm_14"], "takes no list for 'cases'; write cases=Selected(...)"),
        ("rule", "strict", "write rule=Rule(profile='strict')"),
        ("workers", 4, "write workers=Workers(jobs=4)"),
    ],
)
def test_a_text_in_place_of_a_value_is_shown_its_place(name, value, written):
    """A text is what most people choose cases by, and the first field of the value."""
    with pytest.raises(TypeError, match=re.escape(written)):
        rnncli.verify("pack", right, **{name: value})


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("select", "write cases=Selected(select=...)"),
        ("profile", "write rule=Rule(profile=...)"),
        ("jobs", "write workers=Workers(jobs=...)"),
        ("runtime", "write Implementation(runtime=...)"),
        ("timeout", "write Implementation(limits=Limits(timeout=...))"),
        ("selct", "unexpected keyword argument 'selct'; did you mean 'select'?"),
        ("exitfrst", "unexpected keyword argument 'exitfrst'; did you mean 'exitfirst'?"),
    ],
)
def test_an_option_that_a_value_carries_is_shown_its_place(name, written):
    """Whoever writes it as an argument of the function learns how it is written."""
    with pytest.raises(TypeError, match=re.escape(written)):
        rnncli.verify("pack", right, **{name: "x"})


@pytest.mark.parametrize(
    ("value", "written", "meant"),
    [
        (rnncli.Implementation, "runtim", "runtime"),
        (rnncli.Limits, "time_out", "timeout"),
        (rnncli.Rule, "a_tol", "atol"),
        (rnncli.Selected, "selct", "select"),
        (rnncli.Workers, "job", "jobs"),
        (partial(rnncli.pytest.vectors, "core"), "xfail", "xfails"),
    ],
)
def test_a_misspelt_name_of_a_value_is_told_with_what_was_meant(value, written, meant):
    """As functions tell theirs."""
    with pytest.raises(TypeError, match=f"'{written}'; did you mean '{meant}'"):
        value(**{written: 1})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {},
            r"by one name: Implementation\(runtime=...\), or backend, results, command, harness",
        ),
        ({"backend": "numpy", "function": right}, "say what to judge"),
        ({"function": right, "jobs": 2}, "--jobs is not for a function"),
        ({"function": right, "timeout": 1}, "--timeout 1 has no effect on a function, only on"),
        ({"function": right, "max_memory": 1}, "--max-memory 1 has no effect on a function"),
        (
            {"runtime": "onnxruntime", "compute": "native"},
            "--compute native has no effect on --runtime, only on --backend",
        ),
        (
            {"backend": "numpy", "runtime_option": {"a": "1"}},
            "--runtime-option a=1 has no effect on --backend, only on --runtime",
        ),
        ({"command": "true {outputs}", "threads": 2}, "--threads 2 has no effect on --command"),
        ({"results": "there", "timeout": 5}, "--timeout 5 has no effect on --results"),
        ({"backend": "numpy", "jobs": 0}, "--jobs 0: expected a number >= 1"),
        ({"backend": "numpy", "max_memory": 0}, "--max-memory 0: expected a number of bytes >= 1"),
        (
            {"function": "numpy"},
            "is judged, not 'numpy'; write rnncli.Implementation",
        ),
        ({"backend": "numpy", "min_cases": 0}, "--min-cases 0: expected a number >= 1"),
        ({"backend": "numpy", "max_bias": 0}, "--max-bias 0: expected a number >= 1"),
        ({"backend": "numpy", "max_bias": 5, "rtol": 1}, "--max-bias and given tolerances exclude"),
        ({"backend": "numpy", "executor": "threads"}, "--executor threads: expected one of"),
        ({"backend": "numpy", "shard": "3/2"}, "--shard 3/2: expected i/n"),
        ({"backend": "numpy", "pack_digest": "abc"}, "expected 12 to 64 hexadecimal digits"),
        ({"backend": "numpy", "pack_digest": "0" * 12, "trust": True}, "--trust leaves unchecked"),
        ({"backend": "numpy", "atol": -1}, "write a number >= 0"),
        ({"backend": "numpy", "rtol": {"Y": float("nan")}}, "write a number >= 0"),
        ({"backend": "numpy", "rtol": 1, "profile": "strict"}, "exclude each other"),
        ({"backend": "numpy", "require": "oper=LSTM-14"}, "unknown field 'oper'"),
    ],
)
def test_a_wrong_request_is_said_as_the_command_says_it(pack, options, words):
    """An argument that nothing would honour is one, too."""
    with pytest.raises(InvalidRequest, match=words):
        verified(pack, **options)


def test_a_report_repeats_as_a_command(pack):
    """Tolerances and limits included; a function is repeated by whoever has it."""
    report = verified(
        pack,
        backend="numpy",
        threads=2,
        atol={"": 1e-9, "Y": 0.5},
        require=["dtype=float32", "operator=LSTM-14"],
        shuffle=3,
    )

    assert report.command == (
        f"rnncli verify {pack} --backend numpy --threads 2 --atol 1e-09 --atol Y:0.5 --shuffle 3"
        " --require dtype=float32,operator=LSTM-14"
    )
    assert report.rule == "atol 1e-09, atol 0.5 of Y"
    assert rnncli.verify(pack, right).command == ""


def test_diagnose_names_the_bug(pack):
    """And has passed only where there is none."""
    wrong = rnncli.diagnose(pack, rnncli.Implementation(backend="mutant:forget-bias-plus-one"))
    fine = rnncli.diagnose(pack, right)

    assert [cause.hypothesis for cause in wrong.diagnosis.causes] == ["forget-bias-plus-one"]
    assert (wrong.exit_code, wrong.passed) == (1, False)
    assert (fine.exit_code, fine.diagnosis.causes) == (0, ())
    assert not rnncli.diagnose(pack, refuses).passed


TWO = """\
suite: two
summary: Two cases.
seed: 1
defaults: {sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 2}}
cases:
  plain: {matrix: {op: [RNN-14, GRU-14]}}
"""


def test_generate_writes_and_checks(tmp_path):
    """A check finds what does not belong there; a case that cannot be made is a failure."""
    suite, broken = tmp_path / "two.yaml", tmp_path / "broken.yaml"
    suite.write_text(TWO)
    broken.write_text(TWO.replace("seq_length: 2, ", ""))
    pack = tmp_path / "pack"

    written = rnncli.generate(suite, output=pack)
    clean = rnncli.generate(suite, output=pack, check=True)
    (pack / "more.txt").write_text("")
    altered = rnncli.generate(suite, output=pack, check=True)

    assert (written.passed, written.cases, written.folder) == (True, 2, pack)
    assert written.manifest.digest == rnncli.open_pack(pack).manifest.digest
    assert (clean.passed, clean.findings) == (True, ())
    assert (altered.exit_code, altered.findings) == (1, (("more.txt", "extra"),))
    failed = rnncli.generate(broken, output=tmp_path / "broken")
    assert (failed.exit_code, len(failed.failed), failed.manifest) == (2, 2, None)
    with pytest.raises(InvalidRequest, match="--format zip: expected one of onnx, "):
        rnncli.generate(suite, output=pack, format="zip")


def test_score_passes_by_what_it_must_kill(pack):
    """And says by which tolerances."""
    plain = rnncli.score(pack)
    strict = rnncli.score(pack, min_score=100, min_structural=100)
    wide = rnncli.score(pack, onnx=True)

    assert plain.passed
    assert not strict.passed
    assert strict.exit_code == 1
    assert plain.matrix.total.percent < 100
    assert (plain.matrix.rule, wide.matrix.rule) == ("the pack's tolerances", "ONNX's tolerances")
    assert wide.matrix.total.killed <= plain.matrix.total.killed
    with pytest.raises(InvalidRequest, match=r"--onnx and rtol 0\.1 exclude each other"):
        rnncli.score(pack, onnx=True, rule=rnncli.Rule(rtol=0.1))


def test_a_script_needs_no_guard_for_workers(pack, tmp_path):
    """It is not run once more by each of them."""
    script = tmp_path / "script.py"
    script.write_text(
        "import rnncli\n"
        f"subject = rnncli.Implementation(backend='numpy')\n"
        "some = {'cases': rnncli.Selected(select='lstm'), 'workers': rnncli.Workers(jobs=2)}\n"
        f"print(rnncli.verify({str(pack)!r}, subject, **some).passed)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_threads_take_turns(pack):
    """Each run has its own implementation."""
    subjects = ({"backend": "numpy"}, {"function": right}, {"function": refuses}) * 2
    with ThreadPoolExecutor(len(subjects)) as pool:
        runs = [pool.submit(verified, pack, **subject) for subject in subjects]

    assert [run.result().passed for run in runs] == [True, True, False] * 2


@pytest.mark.parametrize("timeout", [math.nan, math.inf, 0, -1, 1e300])
def test_a_timeout_is_a_time(pack, timeout):
    """From Python as on the command line."""
    with pytest.raises(InvalidRequest, match=r"--timeout .*: expected seconds, more than 0"):
        verified(pack, backend="numpy", timeout=timeout)
