"""Claims about conformance vectors as pytest items, each in a pytest of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.beside import beside
from support.forked import forked_pytest
from support.judged import core

from rnncli.api.pytest_plugin import IS_ANSWERED, PACK, AnswerCount
from rnncli.cases.suite.suite import load_suite
from rnncli.generating.generation import GenerationPlan, generate

CORE = Path(__file__).parents[2] / "vectors" / "core"
CASES = "id:lstm_14_one_step or id:gru_14_both or id:rnn_14_constants or id:lstm_14_twice"
KERNELS = """
import os
import numpy as np
import rnncli

def right(vector):
    return rnncli.evaluate(
        vector.record.operator, vector.inputs,
        outputs=vector.record.outputs, **vector.attributes
    )

def wrong(vector):
    if not vector.id.startswith("lstm"):
        return right(vector)
    session = rnncli.prepare(vector.model, backend="mutant:forget-bias-plus-one")
    return vector.run(session)

def stale(vector):
    answers = right(vector)
    kept = globals().setdefault("KEPT", {}).setdefault(vector.id, answers)
    return kept

def wrong_for_all(vector):
    return {name: values + 1 for name, values in right(vector).items()}

def refuses(vector):
    raise NotImplementedError("not in this release")

def breaks(vector):
    return {}["no such key"]

def forgets(vector):
    right(vector)

def ends(vector):
    import pytest
    pytest.exit("all is well", returncode=0)

def dies(vector):
    if vector.id == "gru_14_both":
        os.kill(os.getpid(), 9)
    return right(vector)
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs pytest in a folder with those kernels and gives its output."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*arguments, kernel="right", select=CASES, pack=True):
        packed = [f"--rnncli={CORE}", f"--rnncli-subject=kernels:{kernel}"] if pack else []
        chosen = [f"--rnncli-select={select}"] if pack else []
        words = ("-rA", "-p", "no:cacheprovider", *map(str, (*packed, *chosen, *arguments)))
        return beside(forked_pytest, tmp_path, *words)

    return run


def counts(output):
    """The counts of pytest's last line, by word; after a minute it says the time twice."""
    last = re.findall(r"^=+ (.*) in [\d.]+s( \([\d:]+\))? =+$", output, re.MULTILINE)[-1][0]
    return {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}


def test_the_function_may_lie_in_the_folder_where_pytest_is_started(tmp_path):
    """The script `pytest` finds it as `python -m pytest` does."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    script = "import sys; sys.path.remove(''); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run(
        [
            *(sys.executable, "-c", script, "-q", "-p", "no:cacheprovider"),
            *(f"--rnncli={CORE}", "--rnncli-subject=kernels:right"),
            "--rnncli-select=id:gru_14_both",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


BY_NAME = """\
import rnncli
import kernels

@rnncli.pytest.vectors("core", cases=rnncli.Selected(select="id:gru_14_both"))
def test_it(vector):
    return kernels.right(vector)
"""


def test_an_installed_pack_is_found_by_its_name(run, tmp_path):
    """By the option and by the decorator, where no such folder is."""
    (tmp_path / "test_by_name.py").write_text(BY_NAME)
    chosen = ("--rnncli=core", "--rnncli-subject=kernels:right", "--rnncli-select=id:gru_14_both")
    _, output = run(*chosen, "test_by_name.py", pack=False)

    assert counts(output) == {"passed": 2}


def test_the_line_of_the_summary_has_the_bug(run):
    """Whoever reads the last lines alone sees it, and how many failures have which cause."""
    _, output = run(kernel="wrong", select="id:lstm_14_one_step or id:lstm_14_twice")
    lines = [line for line in output.splitlines() if line.startswith("FAILED")]

    assert len(lines) == 2
    assert all(line.partition(" - ")[2].startswith("forget-bias-plus-one") for line in lines)
    assert output.count("rnncli: failures by cause: 2 forget-bias-plus-one\n") == 1


def test_each_case_is_an_item(run):
    """Named by its id, beneath its pack."""
    code, output = run()

    assert (code, counts(output)) == (0, {"passed": 4})
    for case in ("lstm_14_one_step", "gru_14_both", "rnn_14_constants", "lstm_14_twice"):
        assert f"core::{case}" in output


def test_a_failure_reads_as_that_of_verify(run):
    """With no traceback through this package."""
    code, output = run(kernel="wrong", select="id:lstm_14_one_step")

    assert (code, counts(output)) == (1, {"failed": 1})
    assert "Y: 30 of 30 differ" in output
    assert "fits forget-bias-plus-one" in output
    assert "pytest.py" not in output


def test_a_second_call_is_asked(run):
    """A function that answers from what it kept is found out."""
    code, output = run(kernel="stale")

    assert (code, counts(output)) == (1, {"failed": 1, "passed": 3})
    assert "lstm_14_twice" in output
    assert "test_data_set_1: " in output


def test_workers_share_the_items(run):
    """And one that dies is a failure."""
    pytest.importorskip("xdist")

    code, output = run("-n", "2")
    assert (code, counts(output)["passed"]) == (0, 4)
    code, output = run("-n", "2", kernel="dies")
    assert (code, counts(output)["failed"]) == (1, 1)
    assert "crashed while running" in output


def test_items_are_selected_as_others_are(run):
    """By id and by flag, and by file and id."""
    code, output = run("-k", "gru_14_both or rnn_14_constants")
    assert (code, counts(output)["passed"]) == (0, 2)

    flag = core()["lstm_14_one_step"].record.flags[0]
    code, output = run("-k", flag)
    assert code == 0
    assert "core::lstm_14_one_step" in output


def test_what_it_cannot_do_is_skipped(run):
    """With the reason."""
    code, output = run("--rnncli-require", "operator=LSTM-14")

    assert (code, counts(output)) == (0, {"passed": 2, "skipped": 2})
    assert "requires operator LSTM-14, has GRU-14" in output


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_a_run_without_an_answer_does_not_end_well(run, options):
    """Neither where all is refused, which is allowed, nor where all is skipped."""
    code, output = run("--rnncli-allow-refused", *options, kernel="refuses")
    assert (code, counts(output)) == (5, {"xfailed": 4})
    assert re.search(r"rnncli: none of 4 cases of .+ was answered", output)

    code, output = run("--rnncli-require", "operator=RNN-1", *options)
    assert (code, counts(output)) == (5, {"skipped": 4})


def test_each_pack_needs_an_answer_of_its_own():
    """One that nothing was answered of is not green for standing beside another."""
    count = AnswerCount()
    for pack, answered in (("P", True), ("P", False), ("Q", False), ("R", True)):
        known = [(PACK, pack), (IS_ANSWERED, False)]
        for when, more in (("setup", []), ("call", [(IS_ANSWERED, answered)])):
            report = SimpleNamespace(when=when, passed=True, user_properties=known + more)
            count.pytest_runtest_logreport(report)
    session, said = SimpleNamespace(exitstatus=0), []
    count.pytest_sessionfinish(session, 0)
    count.pytest_terminal_summary(SimpleNamespace(write_line=lambda line, **_: said.append(line)))

    assert (session.exitstatus, said) == (5, ["rnncli: none of 1 case of Q was answered"])


def test_a_known_failure_that_is_every_case_is_told(run, tmp_path):
    """As `verify` tells it: no failure would count."""
    (tmp_path / "known.txt").write_text("* known\n")
    _, output = run("--rnncli-xfails", tmp_path / "known.txt", kernel="wrong")

    assert "'*' matches every case: no failure would count" in output


def test_a_refusal_shows_something_only_of_what_answers_valid_cases(run, tmp_path_factory):
    """Who refuses everything, or is broken, refuses what is invalid, too."""
    pack = tmp_path_factory.mktemp("packs") / "reject"
    generate(GenerationPlan(suite=load_suite("reject"), selection="gru_14"), pack, lambda _: None)

    code, output = run(f"--rnncli={pack}", "--rnncli-subject=kernels:right", pack=False)
    assert (code, list(counts(output))) == (0, ["passed"])
    for kernel in ("refuses", "wrong_for_all"):
        code, output = run(f"--rnncli={pack}", f"--rnncli-subject=kernels:{kernel}", pack=False)
        assert (code, list(counts(output))) == (5, ["skipped"])
        assert "a refusal shows nothing, since a valid case of GRU" in output


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("refuses", "refused: not in this release"),
        ("breaks", "KeyError: 'no such key'"),
        ("ends", "the function ends the session: all is well"),
        ("forgets", "TypeError: the function returned None; it must return the outputs"),
    ],
)
def test_what_gives_no_outputs_fails(run, kernel, words):
    """In the words of the implementation, or with the traceback of its error."""
    code, output = run(kernel=kernel)

    assert (code, counts(output)) == (1, {"failed": 4})
    assert words in output


def test_known_failures_are_expected_and_noticed_when_gone(run, tmp_path):
    """As `rnncli verify --xfails` does."""
    (tmp_path / "known.txt").write_text("lstm_14_* a bias too many, https://example.com/1\n")

    code, output = run("--rnncli-xfails", "known.txt", kernel="wrong")
    assert (code, counts(output)) == (0, {"passed": 2, "xfailed": 2})
    assert "a bias too many" in output

    code, output = run("--rnncli-xfails", "known.txt")
    assert (code, counts(output)) == (1, {"failed": 2, "passed": 2})
    assert (
        "passes now; known.txt:1 'lstm_14_*': narrow or remove that line (a bias too many" in output
    )
    assert "rnncli: failures by cause: 2 right although known to fail\n" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rnncli-subject", "kernels:nosuch"], "has no attribute 'nosuch'"),
        (["--rnncli-subject", "kernels:rihgt"], "did you mean 'right'?"),
        (["--rnncli-subject", "nosuch:right"], "No module named 'nosuch'"),
        (["--rnncli-require", "opset~3"], "opset~3"),
        (["--rnncli-profile", "nosuch"], "nosuch"),
        (["--rnncli-select", "nosuch"], "'nosuch' selects no case"),
        (["--rnncli-subject", ""], "--rnncli needs --rnncli-subject MODULE:FUNCTION"),
        (["--rnncli=kernels.py"], "kernels.py: not a pack of vectors"),
        (["--rnncli=nosuch"], "nosuch: not a pack of vectors"),
    ],
)
def test_a_wrong_request_is_an_error(run, arguments, words):
    """Whatever else passes."""
    code, output = run(*arguments)

    assert code not in (0, 1)
    assert words in output
    assert "_pytest/" not in output


def test_options_without_a_pack_are_an_error(run):
    """They would judge nothing."""
    for option in ("--rnncli-subject=kernels:right", "--rnncli-allow-refused"):
        code, output = run(option, pack=False)

        assert code == pytest.ExitCode.USAGE_ERROR
        assert f"{option.partition('=')[0]} needs --rnncli=PACK" in output


def test_a_pack_may_be_named_by_a_path_that_goes_up(run, tmp_path):
    """Pytest writes the folder without `..`, and collects nothing that it does not recognise."""
    named = os.path.relpath(CORE, tmp_path)
    assert ".." in named
    code, output = run(
        *(f"--rnncli={named}", "--rnncli-subject=kernels:right", f"--rnncli-select={CASES}"),
        pack=False,
    )
    assert (code, counts(output)) == (0, {"passed": 4})


def test_an_altered_pack_is_refused(run, tmp_path):
    """Unless it is trusted."""
    import shutil

    shutil.copytree(CORE, tmp_path / "core")
    manifest = json.loads((tmp_path / "core" / "manifest.json").read_text())
    manifest["notes"] = {}
    (tmp_path / "core" / "manifest.json").write_text(json.dumps(manifest))

    code, output = run("--rnncli=core", "--rnncli-subject=kernels:right", pack=False)
    assert code == 2
    assert "manifest.json" in output


@pytest.fixture
def strange(tmp_path):
    """Return a function that makes a pack with code and settings for pytest, which tell."""

    def strange(name):
        plan = GenerationPlan(suite=load_suite("smoke"), selection="gru_14")
        generate(plan, tmp_path / name, lambda _: None)
        code = f"open({str(tmp_path / 'told')!r}, 'w').close()\ndef test(): pass\n"
        for file in ("conftest.py", "test_strange.py", "strange.py", "json.py"):
            (tmp_path / name / file).write_text(code)
        for file, table in SETTINGS.items():
            (tmp_path / name / file).write_text(f"[{table}]\naddopts = '-p strange'\n")
        return tmp_path / name

    return strange


SETTINGS = {
    "pytest.ini": "pytest",
    "pyproject.toml": "tool.pytest.ini_options",
    "setup.cfg": "tool:pytest",
    "tox.ini": "pytest",
}
STRANGE = ("--rnncli=packs/core", "--rnncli-subject=kernels:right")


def test_a_pack_is_no_folder_of_tests(run, strange, tmp_path):
    """Nothing in it is run or taken for settings: alone, by workers, and beside or within tests."""
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    (tmp_path / "packs").mkdir()
    strange("packs/core")
    passed = len([*(tmp_path / "packs" / "core").glob("*/model.onnx")])

    for more, others in ((), 0), (("-n", "2"), 0), ((".",), 1), (("test_own.py::test_own",), 1):
        code, output = run(*STRANGE, *more, pack=False)
        assert (code, counts(output)["passed"]) == (0, passed + others), output
        assert "packs/core::gru_14" in output
    assert not (tmp_path / "told").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--rnncli core", "write --rnncli=PACK: after a space, pytest takes"),
        ("--rnncli=core --rootdir=core", "lies in the pack, and pytest runs what"),
        ("--rnncli=test_core", "the name of its folder begins with 'test'"),
    ],
)
def test_what_pytest_would_run_is_refused_first(run, strange, tmp_path, line, words):
    """Where it takes the pack for its own folder, whatever an option says."""
    pack = strange("test_core" if "test_core" in line else "core")
    for file in SETTINGS:
        (pack / file).unlink()

    code, output = run(*line.split(), "--rnncli-subject=kernels:right", pack=False)
    assert (code, words in output) == (4, True), output
    assert not (tmp_path / "told").exists()


DECORATED = """
import pytest
import rnncli
from kernels import {kernel}

@pytest.fixture
def factor():
    return 1

@rnncli.pytest.vectors({pack!r}, cases=rnncli.Selected(select={select!r}{of_cases}){more})
def test_kernel(vector, factor):
    outputs = {kernel}(vector)
    return outputs and {{name: factor * values for name, values in outputs.items()}}
"""


@pytest.fixture
def decorated(run, tmp_path):
    """Return a function that runs a test file with the decorator."""

    def decorated(*arguments, kernel="right", of_cases="", more="", pack=str(CORE)):
        text = DECORATED.format(
            kernel=kernel, of_cases=of_cases, more=more, pack=pack, select=CASES
        )
        (tmp_path / "test_user.py").write_text(text)
        return run(*arguments, pack=False)

    return decorated


def test_a_test_function_of_ones_own_is_judged(decorated):
    """Three lines, and fixtures beside."""
    code, output = decorated()
    assert (code, counts(output)) == (0, {"passed": 4})
    assert "test_user.py::test_kernel[gru_14_both]" in output

    code, output = decorated(kernel="wrong")
    assert (code, counts(output)) == (1, {"failed": 2, "passed": 2})
    assert "fits forget-bias-plus-one" in output

    code, output = decorated(kernel="forgets")
    assert (code, counts(output)) == (1, {"failed": 4})


def test_it_judges_without_the_plug_in_too(decorated):
    """Where plug-ins are not loaded, outputs are not simply dropped."""
    code, output = decorated("-p", "no:rnncli", kernel="wrong")

    assert (code, counts(output)) == (1, {"failed": 2, "passed": 2})


def test_its_options_are_those_of_the_plug_in(decorated):
    """Requirements, refusals, and a run without an answer."""
    code, output = decorated(of_cases=", require='operator=LSTM-14'")
    assert (code, counts(output)) == (0, {"passed": 2, "skipped": 2})

    code, output = decorated("-n", "2", kernel="refuses", more=", allow_refused=True")
    assert (code, counts(output)) == (5, {"xfailed": 4})

    code, output = decorated(pack="nosuch")
    assert code == 2
    assert "nosuch: not a pack of vectors" in output
    assert len(re.findall(r"/rnncli/\S+\.py:\d+: in ", output)) == 1  # a single frame of ours


def test_pytest_without_a_pack_is_left_alone(tmp_path):
    """Nothing of NumPy or onnx is loaded for the tests of others."""
    (tmp_path / "test_other.py").write_text(
        "import sys\ndef test_other():\n    assert 'rnncli.api.pytest_plugin' in sys.modules\n"
        "    assert not {'numpy', 'onnx'} & {*sys.modules}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "test_other.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, counts(done.stdout)) == (0, {"passed": 1}), done.stdout
