"""Claims about folders that come from anybody: no Python that lies in one of them is imported."""

import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.foreign_folders import WatchedPython, plant

from rnncli.cli.group import COMMANDS
from rnncli.jobs.workers import EXECUTORS
from rnncli.packs.manifest import JOURNAL, MANIFEST
from rnncli.subjects.implementation import FUNCTION, KINDS
from rnncli.subjects.runtimes import SUBJECTS

SUITE = """\
suite: tiny
summary: Two cases.
seed: 1
golden: float64
defaults: {sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 2}}
cases:
  rnn: {op: RNN-14}
  lstm: {op: LSTM-14}
"""
# It refuses everything, as --command and as --harness.
PROGRAM = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["cmd"] == "start":
        about = {"name": "none", "version": "1"}
        print(json.dumps({"version": 1, "implementation": about}), flush=True)
    elif asked["cmd"] == "run":
        print(json.dumps({"seq": asked["seq"], "skipped": True, "message": "no"}), flush=True)
sys.exit(3 if len(sys.argv) > 1 else 0)
"""
KERNELS = """\
def right(vector):
    import rnncli
    return vector.run(rnncli.prepare(vector.model))
"""
PYTEST = "--rnncli=../pack --rnncli-subject=kernels:right -p no:cacheprovider"
VERIFY = "verify ../pack --allow-refused"
RELATE = VERIFY.replace("verify", "relate")
# Command -> its command lines, in a folder beside those of strangers.
COMMAND_LINES = {
    "run": ("run ../model/model.onnx -o ../ran.npz", "run ../suite/tiny.yaml -o ../ran"),
    "generate": ("generate ../suite/tiny.yaml -o ../written",),
    "verify": (f"{VERIFY} --results ../results --html ../page.html --plot ../plot.svg",),
    "relate": (f"{RELATE} --backend numpy --html ../related.html",),
    "stream": ("stream ../model/model.onnx --backend numpy --html ../streamed.html",),
    "smoke": ("smoke --harness {program}",),
    "score": ("score ../pack",),
    "trace": ("trace ../pack",),
    "diagnose": ("diagnose ../pack --backend mutant:gates-i-o-swapped",),
    "claims": ("claims ../pack --from ../results/verified.jsonl -o ../claim.yaml",),
    "probe": ("probe RNN --backend numpy -o ../device.yaml",),
    "report": ("report ../results/verified.jsonl --html ../again.html --plot ../again.svg",),
    "site": ("site ../results/verified.jsonl -o ../pages",),
    "extract": ("extract ../model/model.onnx -o ../extracted",),
    "release": ("release ../released ../pack",),
    "list": ("list ../suite/tiny.yaml",),
    "inspect": ("inspect ../pack", "inspect ../model/model.onnx"),
    "lint": ("lint ../suite/tiny.yaml",),
    "compare": ("compare ../results/test_rnn_14/test_data_set_0 ../pack/test_rnn_14",),
    "convert": ("convert ../pack ../converted --format raw",),
    "bench": (
        "bench tiny --op RNN --vs onnx-reference --backend numpy --rounds 1 --seconds 0.001",
        "bench generation --cases 30 --rounds 1",
        "bench startup --rounds 1",
    ),
    "ops": ("ops LSTM-14",),
    "backends": ("backends",),
    "runtimes": ("runtimes",),
    "mutants": ("mutants",),
    "formats": ("formats",),
    "schema": ("schema manifest",),
    "help": ("help verify",),
}
# Executor -> its command lines; one worker is no worker.
WORKERS = {
    "processes": (
        "generate ../suite/tiny.yaml -o ../by_processes -j 2",
        "run ../model/model.onnx ../suite/tiny.yaml -j 2",
        "score ../pack -j 2",
        f"{VERIFY} --backend numpy -j 2",
    ),
    "dask": (
        "generate ../suite/tiny.yaml -o ../by_dask -j 2 --executor dask",
        f"{VERIFY} --backend numpy -j 2 --executor dask",
    ),
}
# Kind of implementation -> its command lines.
JUDGED = {
    "runtime": tuple(
        f"{VERIFY} --runtime {name}"
        for name, row in SUBJECTS.items()
        if not row.package or find_spec(row.package)
    ),
    "backend": (f"{VERIFY} --backend numpy",),
    "results": (f"{VERIFY} --results ../results",),
    "command": (f"{VERIFY} --command '{{program}} {{{{outputs}}}}'",),
    "harness": (f"{VERIFY} --harness {{program}}",),
}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python that tells what it imports."""
    return WatchedPython(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def world(python, tmp_path_factory):
    """Folders of strangers with something to read, and modules to import in all of them."""
    world = tmp_path_factory.mktemp("world")
    folders = {
        name: world / name for name in ("here", "pack", "model", "results", "suite", "home", "tmp")
    }
    for name in ("here", "suite", "home", "tmp", "home/.local", "home/.config"):
        (world / name).mkdir()
    (world / "suite" / "tiny.yaml").write_text(SUITE)
    quiet = {"HOME": str(world / "home"), "TMPDIR": str(world / "tmp")}
    made = python.run(
        "rnncli", "generate", "tiny.yaml", "-o", folders["pack"], cwd=world / "suite", **quiet
    )
    assert made.code == 0, made.err
    shutil.copytree(world / "pack" / "test_rnn_14", world / "model")
    shutil.copytree(world / "pack", world / "results")
    for name in (MANIFEST, JOURNAL):  # results, and neither a pack nor one that is being made
        (world / "results" / name).unlink()
    words = ("verify", world / "pack", "--results", world / "results", "--json")
    verified = python.run("rnncli", *words, cwd=world)
    (world / "results" / "verified.jsonl").write_text(verified.out)
    for folder in [*world.rglob("*"), world]:
        if folder.is_dir():
            plant(folder, python.markers)
    program = world / "program"
    program.with_suffix(".py").write_text(PROGRAM)
    # No path with a blank can be in a first line.
    program.write_text(f'#!/bin/sh\nexec \'{sys.executable}\' -I "$0.py" "$@"\n')
    program.chmod(0o755)
    return world


def offences(python, world, lines):
    """Return what went wrong with each command line, and the number of processes watched."""
    found, processes = [], 0
    home = {"HOME": str(world / "home"), "TMPDIR": str(world / "tmp")}
    for line in lines:
        words = shlex.split(line.format(program=world / "program"))
        done = python.run("rnncli", *words, cwd=world / "here", **home)
        processes += done.processes
        names = [Path(path).relative_to(world).as_posix() for path in done.imported]
        found += [f"{line}: imports {', '.join(names)}"] * bool(names)
        found += [f"{line}: ends with {done.code}: {done.err}"] * (done.code not in {0, 1, 5})
    return found, processes


def test_every_command_executor_and_kind_of_implementation_is_here():
    """What is new is in this test from its first day."""
    assert COMMAND_LINES.keys() == COMMANDS.keys()
    assert WORKERS.keys() == EXECUTORS.keys()
    assert JUDGED.keys() == KINDS.keys() - {FUNCTION}


def test_an_import_is_noticed(python, world):
    """Of a process of Python that is started as one should not."""
    done = python.run("python", "-c", "import json", cwd=world / "here")

    assert done.imported == [str(world / "here" / "json" / "__init__.py")]
    assert done.processes == 1


@pytest.mark.parametrize(
    "table", [COMMAND_LINES, WORKERS, JUDGED], ids=["commands", "executors", "implementations"]
)
def test_nothing_of_a_stranger_is_imported(python, world, table):
    """From no folder that a command works in, reads or writes, nor from a home."""
    lines = [line for lines in table.values() for line in lines]
    found, processes = offences(python, world, lines)
    sys.stdout.write(f"{len(lines)} command lines, {processes} processes, {len(found)} faults")

    assert not found, "\n".join(found)


def test_numba_takes_no_settings_from_the_working_folder(python, world):
    """They could name the folder of the code that it loads; it does not start."""
    pytest.importorskip("numba")
    settings = world / "settings" / ".numba_config.yaml"
    settings.parent.mkdir()
    settings.write_text(f"cache_dir: {world / 'tmp'}\n")
    words = ("run", "../model/model.onnx", "--backend", "numba")
    done = python.run("rnncli", *words, cwd=settings.parent)

    assert done.code == 2
    assert done.err.startswith(f"{settings}: Numba would take its settings from this file")


@pytest.mark.parametrize(("folder", "more"), [("here", ""), ("clean", " -n 2")])
def test_the_plug_in_of_pytest_imports_no_other_file(python, world, folder, more):
    """Of a pack none, and of the working folder the one that the user names."""
    (world / folder).mkdir(exist_ok=True)
    (world / folder / "kernels.py").write_text(KERNELS)
    for name in ("conftest.py", "pytest.ini"):  # pytest itself reads them here and above
        (world / folder / name).unlink(missing_ok=True)
        (world / name).unlink(missing_ok=True)
    done = python.run("pytest", *shlex.split(PYTEST + more), cwd=world / folder)

    assert done.code == 0, done.out
    assert done.imported == [str(world / folder / "kernels.py")]
