"""Claims about all that commands write: it takes the place of nothing but their own, unchanged."""

from __future__ import annotations

import errno
import os
import shlex
import shutil

import click
import numpy as np
import onnx
import pytest
from support.small_suite import TEXT, small_suite
from support.streamed_layers import LAYERS, layers
from support.tables import every

from rnncli.cli.command import Written
from rnncli.cli.group import COMMANDS, cli
from rnncli.files.formats import write_tensors
from rnncli.generating.generation import GenerationPlan, generate

JUDGE = "verify P --backend numpy"
# Command -> a command line of it without what it writes.
COMMAND_LINES = {
    "verify": JUDGE,
    "relate": "relate P --backend numpy --relation again",
    "stream": "stream swapped.onnx --relation chunks-2",
    "report": "report run.jsonl",
    "site": "site run.jsonl",
    "score": "score P",
    "bench": "bench tiny --op RNN --vs '' --backend numpy --rounds 1 --seconds 0.001",
    "claims": "claims P --from run.jsonl",
    "probe": "probe RNN --backend numpy",
    "schema": "schema suite",
    "run": "run m.onnx",
    "convert": "convert in.npz",
    "extract": "extract m.onnx",
    "generate": "generate small.yaml -k clip",
    "release": "release",
}
# What writes files -> the name of one.
FILES = {
    **{f"{JUDGE} --{kind}": "x" for kind in ("html", "markdown", "junit", "save-xfails")},
    **{f"{JUDGE} --plot x.{kind}": "" for kind in ("png", "svg", "pdf")},
    "score P --matrix": "x",
    "score P --html": "x",
    f"{COMMAND_LINES['bench']} -o": "x",
    "claims P --from run.jsonl -o": "x",
    "probe RNN --backend numpy -o": "x",
    "schema suite -o": "x",
    "site run.jsonl -o site --markdown": "x",
    **{f"run m.onnx {option}": "x.npz" for option in ("-o", "--save-inputs", "--steps")},
    "run m.onnx -o ": "x.h5",
    "convert in.npz": "x.h5",
    "convert one.npz": "x.pb",
    "convert w.npz --from torch": "x.onnx",
    "convert w.npz --from torch --to keras": "x.npz",
    **{
        f"run m.onnx lstm_14_clip {options}": "outs/m.npz"
        for options in ("--format npz -o outs", "--save-inputs outs", "--steps outs")
    },
}
# What writes a folder named `out`.
FOLDERS = (
    "run m.onnx -o out",
    "extract m.onnx -o out",
    "convert P out --format raw",
    "release out P --format c",
    "site run.jsonl -o out",
    "stream swapped.onnx --relation chunks-2 --save out",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A pack, a run against it, models, tensors, weights and a suite."""
    folder = tmp_path_factory.mktemp("made")
    generate(GenerationPlan(suite=small_suite(), selection="clip"), folder / "P", lambda _: None)
    shutil.copy(folder / "P/test_lstm_14_clip/model.onnx", folder / "m.onnx")
    onnx.save(layers(LAYERS.replace("y, h_out, c_out", "y, c_out, h_out")), folder / "swapped.onnx")
    (folder / "small.yaml").write_text(TEXT)
    write_tensors(folder / "in.npz", {"a": np.ones(3), "b": np.zeros(2)})
    write_tensors(folder / "one.npz", {"a": np.ones(3)})
    shapes = {"weight_ih": (16, 3), "weight_hh": (16, 4), "bias_ih": 16, "bias_hh": 16}
    weights = {f"{name}_l0": np.ones(shape, np.float32) for name, shape in shapes.items()}
    write_tensors(folder / "w.npz", weights)
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch, rnncli):
    """A folder with all of it, in which commands run."""
    if not (made / "run.jsonl").exists():
        lines = rnncli("verify", made / "P", "--backend", "numpy", "--json").out
        (made / "run.jsonl").write_text(lines)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    """Every file below a folder, and where each link leads."""
    return {
        path: path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
    }


def written():
    """Every option or argument that is written to, of any command."""
    rows = ((name, row) for name in COMMANDS for row in cli.get_command(None, name).params)
    return [(name, row) for name, row in rows if isinstance(row.type, Written)]


def lines_of(row, command, place):
    """The words that write to a place."""
    words = shlex.split(COMMAND_LINES[command])
    if isinstance(row, click.Option):
        return [*words, row.opts[-1], place]
    return [*words, place, *(["P"] if command == "release" else [])]


def test_every_command_that_writes_is_here():
    """A new one is in this test from its first day."""
    assert {name for name, _ in written()} == COMMAND_LINES.keys()


@every("command, row", written())
@pytest.mark.parametrize("kind", ["file", "link", "hard link"])
def test_a_file_of_somebody_else_stays(here, rnncli, command, row, kind):
    """By its own name or by a link, whatever its extension; it is said before anything runs."""
    place = "x.svg" if row.name == "plot" else "x.npz" if command == "convert" else "x"
    for name in ("theirs", place):
        (here / name).unlink(missing_ok=True)
    (here / "theirs").write_text("ten years of work")
    if kind == "file":
        (here / "theirs").rename(here / place)
    elif kind == "link":
        (here / place).symlink_to("theirs")
    else:
        os.link("theirs", place)
    before = contents(here)
    done = rnncli(*lines_of(row, command, place))

    assert done.code == 2, done
    assert f"{place}: " in done.err
    assert before == contents(here)


@pytest.mark.parametrize(("words", "name"), FILES.items())
def test_a_file_of_an_earlier_run_is_replaced_and_an_edited_one_stays(here, rnncli, words, name):
    """Read by itself, it is as it was; through a link, it is written where that leads."""
    line = shlex.split(f"{words} {'' if 'outs' in name else name}")
    path = here / (name or line[-1])
    ran = [rnncli(*line).code, rnncli(*line).code]
    first = path.read_bytes()
    kept = path.rename(here / "elsewhere")
    path.symlink_to(kept)
    ran.append(rnncli(*line).code)
    path.write_bytes(first[:-200] + b"mine" + first[-200:])
    before = contents(here)
    done = rnncli(*line)

    assert ran == [0, 0, 0]
    assert (path.is_symlink(), kept.is_file()) == (True, True)
    assert done.code == 2
    assert "rnncli did not write" in done.err
    assert before == contents(here)


def planted(folder):
    """Files of somebody else below an output: what each is, and what makes it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    inner = next(path.parent for path in files if path.parent.name != ".")

    def linked():
        files[-1].rename(folder.parent / "moved")
        files[-1].symlink_to(folder.parent / "moved")

    return {
        "a file": lambda: (folder / "CNAME").write_text("a.org"),
        "a file in a folder": lambda: (inner / "notes").write_text("mine"),
        "a folder": (folder / ".git").mkdir,
        "a link": lambda: (folder / "link").symlink_to("..", target_is_directory=True),
        "a pipe": lambda: os.mkfifo(folder / "pipe"),
        "an edited file": lambda: files[-1].write_text("mine"),
        "a file become a link": linked,
    }


@pytest.mark.parametrize("line", FOLDERS)
def test_a_folder_is_replaced_only_while_all_of_it_is_ours(here, rnncli, line):
    """And a link to it stays a link; the first that is not ours is in the sentence."""
    folder = here / "out"
    assert {rnncli(*line.split()).code for _ in range(2)} <= {0, 1}
    shutil.copytree(folder, here / "whole", symlinks=True)
    for name in planted(folder):
        shutil.rmtree(folder)
        shutil.copytree(here / "whole", folder, symlinks=True)
        target = folder if "--save" not in line else folder / "swapped_chunks-2"
        planted(target)[name]()
        before = contents(here)
        done = rnncli(*line.split())

        assert done.code == 2, (name, done)
        assert "the folder holds other files: " in done.err
        assert before == contents(here)
        (here / "moved").unlink(missing_ok=True)
    shutil.rmtree(folder)
    (here / "whole").rename(here / "real")
    folder.symlink_to("real")
    assert rnncli(*line.split()).code in {0, 1}
    assert folder.is_symlink()


# What would be lost -> the command line, and the sentence.
LOSSES = {
    "a model that is run": ("run m.onnx -o m.onnx", "is not replaced: it is an input"),
    "inputs": ("run m.onnx --inputs in.npz -o in.npz", "is not replaced: it is an input"),
    "an input": ("run m.onnx -i X=in.npz::a --save-inputs in.npz", "rnncli did not write it"),
    "a test case": ("run P/test_lstm_14_clip -o P/test_lstm_14_clip", "it is an input"),
    "a pack that is released": ("release P P", "it is an input"),
    "what a config names": ("run named.yaml -o sealed.npz", "is not replaced: it is an input"),
    "a read-only file": ("convert in.npz read-only.npz", "made read-only since"),
    "two reports": (f"{JUDGE} --html x --junit x", "is the same path as that of --"),
    "outputs and inputs": ("run m.onnx -o x.npz --save-inputs ./x.npz", "is the same path"),
}


@every("name", LOSSES)
def test_what_is_read_or_also_written_is_not_replaced(here, rnncli, name):
    """It is said before anything runs."""
    line, sentence = LOSSES[name]
    for sealed in ("sealed.npz", "read-only.npz"):
        rnncli("convert", "one.npz", sealed)
    (here / "read-only.npz").chmod(0o444)
    (here / "named.yaml").write_text("op: RNN-14\ninputs: {X: {file: sealed.npz, key: a}}\n")
    before = contents(here)
    done = rnncli(*line.split())

    assert done.code == 2
    assert sentence in done.err
    assert before == contents(here)


def test_standard_output_is_not_replaced(here, spawned):
    """`--json --html x > x` would lose the lines."""
    with (here / "x").open("w") as stream:
        done = spawned(*JUDGE.split(), "--json", "--html", "x", stdout=stream)

    assert done.code == 2
    assert "it is the standard output of this command" in done.err


@pytest.mark.parametrize("name", ["x.npz", "x.h5", "x.pb"])
def test_a_disk_that_fills_up_at_the_seal_leaves_the_earlier_file(here, rnncli, monkeypatch, name):
    """A file is sealed before it takes the earlier one's place."""
    rnncli("convert", "one.npz", name)
    before = contents(here)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("rnncli.files.atomic.put_seal", full)
    done = rnncli("convert", "one.npz", name)

    assert (done.code, "No space left on device" in done.err) == (2, True)
    assert before == contents(here)


def test_a_file_without_a_place_for_a_seal_is_replaced_by_itself_alone(here, rnncli):
    """Of .npy nobody can tell who wrote it."""
    once, twice = (rnncli("convert", "one.npz", "x.npy").code for _ in range(2))
    write_tensors(here / "one.npz", {"a": np.zeros(3)})
    done = rnncli("convert", "one.npz", "x.npy")

    assert (once, twice, done.code) == (0, 0, 2)
    assert np.load("x.npy").tolist() == [1, 1, 1]
