"""Claims about runs in which nothing was computed: docs/verdicts.md lists them, with exit codes."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_suite import small_suite

from rnncli.formats import pb, write_tensors
from rnncli.metamorphic import run as metamorphic
from rnncli.packs.generating.generation import GenerationPlan, generate
from rnncli.packs.manifest import JOURNAL, Manifest, sha256
from rnncli.packs.pack import open_pack
from rnncli.subjects.table import RuntimeRow
from rnncli.verifying import verification

ROOT = Path(__file__).parents[2]
CORE = ROOT / "vectors" / "core"
TWO = """\
suite: two
summary: Two small cases.
seed: 11
defaults:
  sizes: {seq_length: 2, batch_size: 2, input_size: 2, hidden_size: 2}
cases:
  plain:
    matrix: {op: [RNN-14, GRU-14]}
"""
ONE_SHAPE = TWO.replace("matrix: {op: [RNN-14, GRU-14]}", "matrix: {op: [RNN-7, RNN-14]}")
EMPTIES = TWO.replace("batch_size: 2", "batch_size: 0")
FIXED = """\
suite: fixed
summary: Inputs that are written out.
seed: 11
defaults:
  sizes: {seq_length: 2, batch_size: 2, input_size: 1, hidden_size: 1}
cases:
  plain:
    op: RNN-14
    inputs: {X: [[[1], [2]], [[3], [4]]]}
"""
REJECTIONS = TWO + "    breaks: {sizes: {W: {input_size: 4}}}\n"
TWICE = TWO + "    inputs: {sequence_lens: lengths}\n    calls: 2\n"
COARSE = """\
suite: coarse
summary: What a narrow accumulator cannot judge.
seed: 2026
cases:
  dtype:
    op: RNN-22
    dtype: bfloat16
    sizes: {seq_length: 40, batch_size: 1, input_size: 40, hidden_size: 8}
    inputs: {W: {normal: [0, 1]}}
"""


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """Packs of a few cases each, made once."""
    folder = tmp_path_factory.mktemp("packs")
    texts = {
        "two": TWO,
        "twice": TWICE,
        "one_shape": ONE_SHAPE,
        "empties": EMPTIES,
        "rejections": REJECTIONS,
        "coarse": COARSE,
    }
    for name, text in texts.items():
        assert (
            generate(GenerationPlan(suite=small_suite(text)), folder / name, lambda _: None).failed
            == []
        )
    return folder


@pytest.fixture
def place(packs, tmp_path, monkeypatch):
    """A folder with the packs and all that the commands name, which is the working folder."""
    for name in ("two", "twice", "one_shape", "empties", "rejections", "coarse"):
        (tmp_path / name).symlink_to(packs / name)
    (tmp_path / "fixed.yaml").write_text(FIXED)
    (tmp_path / "all.txt").write_text("* [refused, differs, crashed, timeout]  known\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kernel(body):
    """What makes `./kernel`, a program of the user's."""

    def make(place):
        (place / "kernel").write_text(f"#!/bin/sh\n{body}\n")
        (place / "kernel").chmod(0o755)

    return make


def harness(answer, *, start="version"):
    """What makes `./kernel`, a harness with one answer to each request, but for its number."""
    body = f"""\
read line
echo '{{"{start}":1,"implementation":{{"name":"k","version":"1"}}}}'
seq=0
while read line; do
  seq=$((seq + 1))
  echo "{{\\"seq\\":$seq,{answer}}}"
done"""
    return kernel(body)


def results(*ids, pack="two", copy=True):
    """What makes `results`: right outputs of some cases, or those under names not asked for."""

    def make(place):
        (place / "results").mkdir()
        for case_id in ids:
            source = place / pack / f"test_{case_id}/test_data_set_0"
            target = place / f"results/test_{case_id}/test_data_set_0"
            target.mkdir(parents=True)
            for path in source.glob("output_*.pb"):
                name, values = pb.read_named(path)
                (target / path.name).write_bytes(pb.serialize(name if copy else "Z", values))
                if not copy:
                    break

    return make


def second_results(place):
    """Make `results`: right outputs of the first calls, zeros of the second ones."""
    results(*BOTH, pack="twice")(place)
    for case_id in BOTH:
        target = place / f"results/test_{case_id}/test_data_set_1"
        shutil.copytree(place / f"twice/test_{case_id}/test_data_set_1", target)
        for path in target.glob("output_*.pb"):
            name, values = pb.read_named(path)
            path.write_bytes(pb.serialize(name, np.zeros_like(values)))


def runtime(name):
    """What makes a runtime of `second_calls` known by name."""

    def make(place):
        patch = pytest.MonkeyPatch()
        row = RuntimeRow(f"second_calls:{name}", "keeps too much")
        patch.setattr("rnncli.subjects.table.known_subjects", lambda: {"keeping": row})
        return patch.undo

    return make


def refusals(pack):
    """What makes `results` in which every case of a pack is refused."""

    def make(place):
        for record in open_pack(place / pack).manifest.cases:
            (place / f"results/test_{record['id']}").mkdir(parents=True)
            (place / f"results/test_{record['id']}/refused.txt").touch()

    return make


def altered(pattern, number):
    """What makes `altered`, a copy of the pack with a number in all elements of some files."""

    def make(place):
        shutil.copytree(place / "two", place / "altered")
        for path in (place / "altered").glob(f"test_*/test_data_set_0/{pattern}"):
            name, values = pb.read_named(path)
            path.write_bytes(pb.serialize(name, np.full_like(values, number)))

    return make


def zeros_for_zeros(place):
    """Make `altered`, a pack that expects zeros, and `results` that are zeros."""
    altered("output_*.pb", 0)(place)
    results(*BOTH, pack="altered")(place)


def journal_of_nothing(place):
    """Make `new`, whose journal says that every case is whole, and no other file is there."""
    unfinished(place)
    for path in (place / "new").glob("test_*"):
        shutil.rmtree(path)


def journal_of_zeros(place):
    """Make `new`, a pack in the making that somebody altered together with its journal."""
    unfinished(place)
    journal = place / "new" / JOURNAL
    text = journal.read_text()
    for path in (place / "new").glob("test_*/test_data_set_0/output_*.pb"):
        name, values = pb.read_named(path)
        before = sha256(path.read_bytes())
        path.write_bytes(pb.serialize(name, np.zeros_like(values)))
        text = text.replace(before, sha256(path.read_bytes()))
    journal.write_text(text)


def unfinished(place):
    """Make `new`, in which all of `two` is made but not finished, and its suite."""
    (place / "two.yaml").write_text(TWO)
    made = []

    def done(count):
        made.extend([None] * count)
        if len(made) == len(BOTH):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(GenerationPlan(suite=small_suite(TWO)), place / "new", done)


def nothing_in_it(place):
    """Make `none`, a pack without cases."""
    header = open_pack(place / "two").manifest.header
    (place / "none").mkdir()
    for name, content in Manifest(header, ()).contents().items():
        (place / "none" / name).write_bytes(content)


def other_reading(place):
    """Make `results` as another reading of the specification has them."""
    source = CORE / "test_gru_14_alpha_order/readings/alpha-order=positional"
    target = place / "results/test_gru_14_alpha_order/test_data_set_0"
    target.mkdir(parents=True)
    for path in source.glob("output_*.pb"):
        shutil.copy(path, target)


def tensors(**arrays):
    """What makes `a.npz` and `b.npz`."""

    def make(place):
        write_tensors(place / "a.npz", arrays)
        write_tensors(place / "b.npz", arrays)

    return make


def relu(place):
    """Make `case`, a model without a recurrent node and without expected outputs."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 14)]
    (place / "case").mkdir()
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, place / "case" / "model.onnx")


def empty(*names):
    """What makes empty files, or folders where the name ends with a slash."""

    def make(place):
        for name in names:
            (place / name).mkdir() if name.endswith("/") else (place / name).touch()

    return make


def unexecutable(place):
    """Make `./kernel` that may not be executed."""
    (place / "kernel").write_text("#!/bin/sh\n")


def without_interpreter(place):
    """Make `./kernel` whose first line names an interpreter that is not there."""
    (place / "kernel").write_text("#!/no/such/interpreter\n")
    (place / "kernel").chmod(0o755)


def zeros(place):
    """Make a program that writes zeros in the shapes of the model's outputs."""
    (place / "zeros.py").write_text(
        "import sys, numpy, onnx\n"
        "outputs = onnx.load(sys.argv[1]).graph.output\n"
        "shapes = {o.name: [d.dim_value for d in o.type.tensor_type.shape.dim] for o in outputs}\n"
        "made = {name: numpy.zeros(shape, 'f4') for name, shape in shapes.items()}\n"
        "numpy.savez(sys.argv[2], **made)\n"
    )


def writer(values):
    """What makes a program that writes the same for whatever it is asked, in a shape of its own."""

    def make(place):
        (place / "zeros.py").write_text(
            "import sys, numpy, onnx\n"
            "outputs = onnx.load(sys.argv[1]).graph.output\n"
            "shapes = [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in outputs]\n"
            f"made = [{values} for k, shape in enumerate(shapes)]\n"
            "named = {o.name: m.astype('f4') for o, m in zip(outputs, made)}\n"
            "numpy.savez(sys.argv[2], **named)\n"
        )

    return make


def no_workers(place):
    """Make every executor return nothing."""
    patch = pytest.MonkeyPatch()
    for module in (verification, metamorphic):
        patch.setattr(module, "executor_named", lambda _: lambda *_, **__: iter(()))
    return patch.undo


def nothing(_):
    """Make nothing."""


COMMAND = ("--command", "./kernel {outputs}")
XFAILS = ("--xfails", "all.txt")
NUMPY = ("--backend", "numpy")
RELATIONS = ("--metamorphic",)
PROGRAM = ("--command", f"{sys.executable} {{here}}/zeros.py {{model}} {{outputs.npz}}")
BOTH = ("rnn_14_plain", "gru_14_plain")
RESULTS = ("--results", "results")
HARNESS = ("--harness", "./kernel")
CRASH, REFUSE = kernel("exit 1"), kernel("exit 3")

# way -> what is made, the command, words of standard error.
WAYS = {
    "program that does not start": (
        kernel("echo 'libk.so: no such file' >&2; exit 127"),
        ("verify", "two", *COMMAND, "--allow-refused"),
        "could not be started",
    ),
    "program that may not be executed": (
        unexecutable,
        ("verify", "two", *COMMAND),
        "is not executable",
    ),
    "program whose interpreter is missing": (
        without_interpreter,
        ("verify", "two", *COMMAND, "--allow-refused"),
        "interpreter",
    ),
    "program that always fails, every case in --xfails": (
        CRASH,
        ("verify", "two", *COMMAND, *XFAILS),
        "no case was answered",
    ),
    "program that never ends, every case in --xfails": (
        kernel("exec sleep 60"),
        ("verify", "two", *COMMAND, *XFAILS, "--timeout", "0.1"),
        "no case was answered",
    ),
    "program that writes nothing, every case in --xfails": (
        kernel("exit 0"),
        ("verify", "two", *COMMAND, *XFAILS),
        "no case was answered",
    ),
    "program that refuses everything": (
        REFUSE,
        ("verify", "two", *COMMAND, "--allow-refused"),
        "no case was answered",
    ),
    "program that refuses everything, by two workers": (
        REFUSE,
        ("verify", "two", *COMMAND, "--allow-refused", "-j", "2"),
        "no case was answered",
    ),
    "program that refuses everything, by dask": (
        REFUSE,
        ("verify", "two", *COMMAND, "--allow-refused", "--executor", "dask"),
        "no case was answered",
    ),
    "program that refuses everything, pack of invalid cases": (
        REFUSE,
        ("verify", "rejections", *COMMAND),
        "because valid cases fail as well",
    ),
    "program that always fails, pack of invalid cases": (
        CRASH,
        ("verify", "rejections", *COMMAND),
        "2 crashed. 2 fail",
    ),
    "harness that does not start": (
        kernel("exit 7"),
        ("verify", "two", *HARNESS, "--allow-refused"),
        "the program does not start: ended with exit code 7",
    ),
    "harness of another protocol": (
        harness(r"\"skipped\":true", start="dialects"),
        ("verify", "two", *HARNESS, "--allow-refused"),
        "the answer to start has no 'version'",
    ),
    "harness that refuses everything": (
        harness(r"\"skipped\":true,\"message\":\"no\""),
        ("verify", "two", *HARNESS, "--allow-refused"),
        "no case was answered",
    ),
    "harness that gives no outputs, every case in --xfails": (
        harness(r"\"outputs\":{}"),
        ("verify", "two", *HARNESS, *XFAILS),
        "no case was answered",
    ),
    "harness that answers nonsense, every case in --xfails": (
        harness(r"\"result\":0"),
        ("verify", "two", *HARNESS, *XFAILS),
        "no case was answered",
    ),
    "smoke of a harness that refuses everything": (
        harness(r"\"skipped\":true,\"message\":\"no\""),
        ("smoke", *HARNESS),
        "refused every case",
    ),
    "smoke of a harness that gives no outputs": (
        harness(r"\"outputs\":{}"),
        ("smoke", *HARNESS),
        "4 checks of 6 failed",
    ),
    "results of one case of many": (
        results("rnn_14_plain"),
        ("verify", "two", *RESULTS, "--allow-missing", "--min-cases", "2"),
        "only 1 case answered; --min-cases requires 2",
    ),
    "results of one case of many, not allowed": (
        results("rnn_14_plain"),
        ("verify", "two", *RESULTS, "--allow-refused"),
        "1 pass, 1 missing. 1 fails",
    ),
    "results of the first call of every case": (
        results(*BOTH, pack="twice"),
        ("verify", "twice", *RESULTS),
        "2 missing. 2 fail",
    ),
    "results of the first call of every case, allowed": (
        results(*BOTH, pack="twice"),
        ("verify", "twice", *RESULTS, "--allow-missing"),
        "no case was answered",
    ),
    "results of two calls, the second one wrong": (
        second_results,
        ("verify", "twice", *RESULTS),
        "2 differ. 2 fail",
    ),
    "runtime that answers only the first call": (
        runtime("RefusesAgain"),
        ("verify", "twice", "--runtime", "keeping", "--allow-refused"),
        "2 stale. 2 fail",
    ),
    "runtime that keeps what it was asked first": (
        runtime("KeepsLengths"),
        ("verify", "twice", "--runtime", "keeping"),
        "2 stale. 2 fail",
    ),
    "runtime that keeps what another case was asked": (
        runtime("KeepsWeightsByShape"),
        ("verify", "one_shape", "--runtime", "keeping"),
        "1 pass, 1 stale. 1 fails",
    ),
    "diagnose of what only a later call gets wrong": (
        runtime("KeepsLengths"),
        ("diagnose", "twice", "--runtime", "keeping"),
        "lengths-of-call-before fits 2 of these 2: sequence_lens of the call before is read.",
    ),
    "diagnose of what only other cases of its process make wrong": (
        runtime("KeepsWeightsByShape"),
        ("diagnose", "one_shape", "--runtime", "keeping"),
        "wrong only after other cases of the same process: ",
    ),
    "diagnose of what passes or takes the process down": (
        runtime("DiesOfGRU"),
        ("diagnose", "two", "--runtime", "keeping"),
        "1 of 2 cases answered: 1 pass, 1 crashed",
    ),
    "results of other cases": (
        results("rnn_14_plain"),
        ("verify", "two", *RESULTS, "--allow-missing", "-k", "gru"),
        "no case was answered",
    ),
    "results of nothing": (
        results(),
        ("verify", "two", *RESULTS, "--allow-missing"),
        "holds no results",
    ),
    "results that say that all was refused": (
        refusals("two"),
        ("verify", "two", *RESULTS, "--allow-refused"),
        "no case was answered",
    ),
    "results with none of the outputs asked for": (
        results(*BOTH, copy=False),
        ("verify", "two", *RESULTS, *XFAILS),
        "no case was answered",
    ),
    "results that are the pack itself": (
        nothing,
        ("verify", "two", "--results", "two"),
        "whose outputs are the expected ones",
    ),
    "outputs without an element": (
        nothing,
        ("verify", "empties", *NUMPY),
        "2 pass. None fails\nno case was answered",
    ),
    "every case skipped by --require": (
        nothing,
        ("verify", "two", *NUMPY, "--require", "opset>=99"),
        "2 were skipped",
    ),
    "a shard without cases": (
        nothing,
        ("verify", "two", *NUMPY, "--shard", "3/3"),
        "shard 3/3 is empty",
    ),
    "a selection without cases": (nothing, ("verify", "two", *NUMPY, "-k", "no"), "no case of 2"),
    "a pack without cases": (nothing_in_it, ("verify", "none", *NUMPY), "no case of 0"),
    "tolerances wider than the values": (
        nothing,
        ("verify", "two", "--backend", "numpy", "--atol", "1e300"),
        "no case was answered",
    ),
    "tolerances that are not finite": (
        nothing,
        ("verify", "two", *NUMPY, "--atol", "inf"),
        "write a number",
    ),
    "a profile wider than the values": (
        nothing,
        ("verify", "coarse", *NUMPY, "--profile", "dtype-accumulator"),
        "no case was answered",
    ),
    "a pack with tolerances that are not finite": (
        altered("tolerance_*.pb", np.nan),
        ("verify", "altered", *NUMPY, "--trust"),
        "negative, infinite or NaN",
    ),
    "a pack with tolerances wider than its values": (
        altered("tolerance_*.pb", 1e30),
        ("verify", "altered", *NUMPY, "--trust"),
        "no case was answered",
    ),
    "expected values that were altered": (
        altered("output_*.pb", 0),
        ("verify", "altered", *NUMPY),
        "is altered",
    ),
    "a pack in another's place": (
        nothing,
        ("verify", "two", *NUMPY, "--pack-digest", "0123456789abcdef"),
        "is another pack",
    ),
    "stop at the first failure": (CRASH, ("verify", "two", *COMMAND, "-x"), "1 crashed. 1 fails"),
    "workers that return nothing": (no_workers, ("verify", "two", *NUMPY), "fewer cases"),
    "diagnose of a program that always fails": (
        CRASH,
        ("diagnose", "two", *COMMAND),
        "0 of 2 cases answered: 2 crashed",
    ),
    "diagnose of a program that refuses everything": (
        REFUSE,
        ("diagnose", "two", *COMMAND),
        "0 of 2 cases answered: 2 refused",
    ),
    "score of invalid cases": (nothing, ("score", "rejections"), "no case can be scored"),
    "score of outputs without an element": (
        nothing,
        ("score", "empties", "--min-score", "1"),
        "0.0 %",
    ),
    "compare two empty files": (tensors(), ("compare", "a.npz", "b.npz"), "no element"),
    "compare tensors without an element": (
        tensors(Y=np.zeros((0, 3), np.float32)),
        ("compare", "a.npz", "b.npz"),
        "no element",
    ),
    "compare by tolerances that are not finite": (
        tensors(Y=np.zeros(3, np.float32)),
        ("compare", "a.npz", "b.npz", "--rtol", "inf"),
        "write a number",
    ),
    "run of no target": (empty("list"), ("run", "--from", "list"), "no target"),
    "generate --check of no case": (
        nothing,
        ("generate", "core", "--check", "-k", "no_such", "-o", "two"),
        "selects no case",
    ),
    "generate --check of an empty folder": (
        empty("new/"),
        ("generate", "smoke", "--check", "-k", "rnn_7", "-o", "new"),
        "not as the suite has them",
    ),
    "generate --check of no folder": (
        nothing,
        ("generate", "smoke", "--check", "-o", "new"),
        "no such folder",
    ),
    "generate resumed by a journal of what is not there": (
        journal_of_nothing,
        ("generate", "two.yaml", "-o", "new"),
        "",
    ),
    "lint of an empty file": (empty("a.yaml"), ("lint", "a.yaml"), ""),
    "extract without a recurrent node": (
        relu,
        ("extract", "case/model.onnx", "-o", "new"),
        "no recurrent node",
    ),
    "relations of a program that refuses everything": (
        REFUSE,
        ("verify", "two", *RELATIONS, *COMMAND, "--allow-refused"),
        "relations of no case were judged",
    ),
    "relations of a program that always fails": (
        CRASH,
        ("verify", "two", *RELATIONS, *COMMAND),
        "2 crashed",
    ),
    "relations of a program that writes zeros": (
        zeros,
        ("verify", "two", *RELATIONS, *PROGRAM, "--relation", "singles"),
        "relations of no case were judged",
    ),
    "relations of a program that writes a number for each output": (
        writer("numpy.full(shape, k)"),
        ("verify", "two", *RELATIONS, *PROGRAM, "--relation", "singles"),
        "relations of no case were judged",
    ),
    "relations of a program that writes NaN": (
        writer("numpy.full(shape, numpy.nan)"),
        ("verify", "two", *RELATIONS, *PROGRAM, "--relation", "singles", "--relation", "again"),
        "relations of no case were judged",
    ),
    "relations of a program that writes another shape": (
        writer("numpy.arange(3)"),
        ("verify", "two", *RELATIONS, *PROGRAM, "--relation", "singles"),
        "2 broken. 2 fail",
    ),
    "relations of a program that writes nothing": (
        kernel("exit 0"),
        ("verify", "two", *RELATIONS, *COMMAND, "--relation", "singles"),
        "2 broken. 2 fail",
    ),
    "relations of a program that never ends": (
        kernel("exec sleep 60"),
        ("verify", "two", *RELATIONS, *COMMAND, "--timeout", "0.1"),
        "2 timeout, 8 not applicable. 2 fail",
    ),
    "relations of a runtime that refuses every session": (
        runtime("RefusesAgain"),
        (
            *("verify", "twice", *RELATIONS, "--runtime", "keeping", "--allow-refused"),
            *("--relation", "again"),
        ),
        "relations of no case were judged",
    ),
    "relations of a shard without cases": (
        nothing,
        ("verify", "two", *RELATIONS, *NUMPY, "--shard", "3/3"),
        "no case to judge",
    ),
    "relations of a selection without cases": (
        nothing,
        ("verify", "two", *RELATIONS, *NUMPY, "-k", "no"),
        "no case of 2",
    ),
    "relations that apply to no case": (
        nothing,
        ("verify", "two", *RELATIONS, *NUMPY, "--relation", "padding"),
        "relations of no case were judged",
    ),
    "relations that need what --require excludes": (
        nothing,
        (
            *("verify", "two", *RELATIONS, *NUMPY, "--relation", "weights"),
            *("--require", "weights=inputs"),
        ),
        "relations of no case were judged",
    ),
    "relations of outputs without an element": (
        nothing,
        ("verify", "empties", *RELATIONS, *NUMPY, "--relation", "weights"),
        "relations of no case were judged",
    ),
    "relations at sizes that no case has": (
        nothing,
        ("verify", "fixed.yaml", *RELATIONS, *NUMPY, "--sizes", "batch_size=3"),
        "relations of no case were judged",
    ),
    "relations of fewer cases than required": (
        nothing,
        ("verify", "two", *RELATIONS, *NUMPY, "--relation", "weights", "--min-cases", "3"),
        "--min-cases requires 3",
    ),
    "relations of a pack of invalid cases": (
        nothing,
        ("verify", "rejections", *RELATIONS, *NUMPY),
        "no valid case",
    ),
    "relations of results": (
        results(*BOTH),
        ("verify", "two", *RELATIONS, *RESULTS),
        "--results is about expected outputs",
    ),
    "relations of workers that return nothing": (
        no_workers,
        ("verify", "two", *RELATIONS, *NUMPY, "-j", "2"),
        "fewer cases",
    ),
    "every failure in --xfails, all computed": (
        nothing,
        ("verify", "two", "--backend", "mutant:input-weights-transposed", *XFAILS),
        "matches every case: no failure would count",
    ),
    "every case acceptable": (
        other_reading,
        ("verify", CORE, *RESULTS, "-k", "gru_14_alpha_order"),
        "1 acceptable",
    ),
    "results that say that all was refused, pack of invalid cases": (
        refusals("rejections"),
        ("verify", "rejections", *RESULTS),
        "results cannot run a valid case",
    ),
    "expected values that were altered, trusted": (
        zeros_for_zeros,
        ("verify", "altered", *RESULTS, "--trust"),
        "2 pass",
    ),
    "copies of the expected values": (results(*BOTH), ("verify", "two", *RESULTS), "2 pass"),
    "relations of another function": (
        nothing,
        (
            *("verify", "two", *RELATIONS, "--backend", "mutant:input-weights-transposed"),
            *("--relation", "singles"),
        ),
        "2 hold. None fails",
    ),
    "generate resumed where files and journal were altered together": (
        journal_of_zeros,
        ("generate", "two.yaml", "-o", "new"),
        "",
    ),
    "score that is not asked to judge": (nothing, ("score", "empties"), "0.0 %"),
    "diagnose of what is right": (nothing, ("diagnose", "two", *NUMPY), "nothing to explain"),
    "run of a case without expected outputs": (relu, ("run", "case"), ""),
    "run of outputs without an element": (nothing, ("run", "empties"), ""),
}


def documented():
    """The exit code of each way, as the page has it."""
    text = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
    _, _, text = text.partition("## Ways to a green run")
    rows = re.findall(r"^\| (.+?) \|.*\| (\d+) \|$", text, re.MULTILINE)
    return {way: int(code) for way, code in rows}


CODES = documented()


def test_every_way_that_is_documented_is_tried():
    """And none that is not."""
    assert [*WAYS] == [*CODES]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_is_greener_than_the_page_says(rnncli, place, way):
    """Exit code and words."""
    make, command, words = WAYS[way]
    undo = make(place)
    done = rnncli(*command)
    if undo:
        undo()

    assert done.code == CODES[way], done.err
    assert words in done.err


@pytest.mark.parametrize("option", [("--rtol", "1e9"), ("--max-ulp", "1e30"), ("--rtol", "nan")])
def test_other_tolerances_are_no_way_either(rnncli, place, option):
    """Relative, in units in the last place, and no number at all."""
    assert rnncli("verify", "two", *NUMPY, *option).code in {2, 5}


def test_a_digest_that_fits_is_no_obstacle(rnncli, place):
    """In whole or its beginning, in any case; but not where files are not checked."""
    digest = open_pack(place / "two").manifest.digest

    for text in (digest, digest[:12].upper()):
        assert rnncli("verify", "two", *NUMPY, "--pack-digest", text).code == 0
    wrong = rnncli("verify", "two", *NUMPY, "--pack-digest", digest, "--trust")
    assert (wrong.code, "--trust leaves unchecked" in wrong.err) == (2, True)
    assert rnncli("verify", "two", *NUMPY, "--pack-digest", "abc").code == 2


def test_reports_of_a_run_without_answers_are_not_green(rnncli, place):
    """Whoever reads only one of them is told."""
    REFUSE(place)
    options = ("--junit", "v.xml", "--markdown", "v.md", "--html", "v.html", "--json")
    done = rnncli("verify", "two", *COMMAND, "--allow-refused", *options)

    assert done.code == 5
    assert json.loads(done.out.splitlines()[-1])["shortfall"] == "no case was answered"
    assert '<failure message="no case was answered"' in (place / "v.xml").read_text()
    assert (place / "v.md").read_text().startswith("## ⚠️ ./kernel")
    assert "No case was answered" in (place / "v.html").read_text()
