"""Claims about new processes of Python: each is started in one way, which imports nothing here."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rnncli
from rnncli.jobs.interpreter import SAFE_PATH, children_have, python, python_like_this

PACKAGE = Path(rnncli.__file__).parent
STARTERS = {"python", "python_like_this"}
# What starts a program that is not Python: the user's, and a C compiler.
OTHER_PROGRAMS = {"supervision/supervisor.py", "subjects/runtimes/emx_onnx.py"}
# What starts processes of Python in a library, which have to be told.
LIBRARIES = {"ProcessPoolExecutor", "LocalCluster", "Process", "Pool", "Manager"}
OWN_STARTS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen"}
WAYS = ("exec", "spawn")


def called(node):
    """The last part of the name of what a call calls."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def places(module, tree):
    """Where a module starts a process in a way of its own."""
    told = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and any(called(item.context_expr) == "children_have" for item in node.items)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        words = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Call) else ""
        if words == "sys.executable":
            yield f"{module}:{node.lineno}: {words}"
        name, owner = called(node), words.partition(".")[0]
        if owner == "subprocess" and name and name[0] != "_":
            starts = node.args and called(node.args[0]) in STARTERS
            if not starts and module not in OTHER_PROGRAMS:
                yield f"{module}:{node.lineno}: {words}"
        if owner == "os" and (name in OWN_STARTS or name.startswith(WAYS)):
            yield f"{module}:{node.lineno}: {words}"
        is_start = name in LIBRARIES or name == "ensure_running"
        if is_start and id(node) not in told:
            yield f"{module}:{node.lineno}: {words}"


def test_every_process_of_python_is_started_in_one_way():
    """By its command line, or in an environment that says the same to what a library starts."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if module != "jobs/interpreter.py":
            found += places(module, ast.parse(path.read_text(encoding="utf-8")))

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run([sys.executable, '-c', '1'])",
        "subprocess.Popen(['python3', 'x.py'])",
        "os.execv('python3', ['python3'])",
        "os.fork()",
        "ProcessPoolExecutor(2)",
        "multiprocessing.Process(target=f)",
        "forkserver.ensure_running()",
        "resource_tracker.ensure_running()",
    ],
)
def test_another_way_is_noticed(line):
    """Whatever starts it."""
    assert [*places("x.py", ast.parse(line))]


def test_such_a_process_imports_nothing_of_its_folder(tmp_path):
    """Its path is that of this one where asked for, and never begins with the folder."""
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    program = "import json, sys; print(json.dumps([sys.path, sys.argv[1:]]))"
    path, words = _said(python("-c", program, "a", "b"), tmp_path)
    assert not {"", str(tmp_path)} & {*path}
    assert words == ["a", "b"]

    assert _said(python_like_this(program, "a", "b"), tmp_path) == [sys.path, ["a", "b"]]


def _said(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_what_children_have_is_theirs_alone(monkeypatch):
    """The environment is afterwards as before, whether or not a variable was set."""
    monkeypatch.setenv("RNNCLI_TEST_SET", "before")
    monkeypatch.delenv(SAFE_PATH, raising=False)
    with children_have({"RNNCLI_TEST_SET": "1", "RNNCLI_TEST_NEW": "2"}):
        assert [os.environ[name] for name in ("RNNCLI_TEST_SET", "RNNCLI_TEST_NEW")] == ["1", "2"]
        assert os.environ[SAFE_PATH]

    assert os.environ["RNNCLI_TEST_SET"] == "before"
    assert not {SAFE_PATH, "RNNCLI_TEST_NEW"} & {*os.environ}


def test_workers_that_cannot_be_told_are_not_started():
    """Python with -E does not read the variable; with -P or -I it hands that on."""
    program = "from rnncli.jobs.interpreter import children_have\nwith children_have({}): pass"
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{program}"]
    codes = {}
    for options in (("-E",), ("-E", "-P"), ("-I",)):
        done = subprocess.run(
            [command[0], *options, *command[1:]], capture_output=True, check=False
        )
        codes[options] = (done.returncode, b"start it with -I" in done.stderr)

    assert codes == {("-E",): (1, True), ("-E", "-P"): (0, False), ("-I",): (0, False)}


def test_the_module_imports_nothing_of_the_working_folder(tmp_path):
    """`python -m rnncli`, once Python has found it."""
    for name in ("click", "numpy", "gc", "signal", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    command = [sys.executable, "-m", "rnncli", "ops"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, "LSTM-14" in done.stdout) == (0, True), done.stderr
