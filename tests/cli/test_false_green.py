"""Claims about runs in which nothing was computed: docs/verdicts.md lists them, with exit codes."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from msgspec import structs
from onnx import TensorProto, helper
from support.beside import beside
from support.forged_packs import (
    forged,
    with_other_reading,
    with_wide_tolerances,
    with_zeros,
    without_sums,
)
from support.forked import forked_pytest
from support.rivals import on_little_data
from support.small_suite import small_suite

from rnncli import compare, judge
from rnncli.api import commands
from rnncli.errors import InvalidRequest
from rnncli.files.described import jsonable
from rnncli.files.formats import pb, write_tensors
from rnncli.files.reading import sha256
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.jobs.workers import Workers
from rnncli.judging.claim import Claim
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.selected import Selected
from rnncli.packs.manifest import JOURNAL, SUMS, Manifest
from rnncli.packs.pack import open_pack
from rnncli.reports.verification import case_record, run_record, summary_record
from rnncli.subjects.runtimes import RuntimeRow

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
NO_STEPS = TWO + "    inputs: {sequence_lens: [0, 0], initial_h: normal}\n"
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
        "no_steps": NO_STEPS,
        "rejections": REJECTIONS,
        "coarse": COARSE,
    }
    for name, text in texts.items():
        plan = GenerationPlan(suite=small_suite(text))
        assert not generate(plan, folder / name, lambda _: None).failed
    return folder


@pytest.fixture
def place(packs, tmp_path, monkeypatch):
    """A folder with the packs and all that the commands name, which is the working folder."""
    for name in ("two", "twice", "one_shape", "empties", "no_steps", "rejections", "coarse"):
        (tmp_path / name).symlink_to(packs / name)
    (tmp_path / "fixed.yaml").write_text(FIXED)
    (tmp_path / "two.yaml").write_text(TWO)
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
        row = RuntimeRow(f"support.second_calls:{name}", "keeps too much")
        patch.setattr("rnncli.subjects.runtimes.known_subjects", lambda: {"keeping": row})
        return patch.undo

    return make


def refusals(pack):
    """What makes `results` in which every case of a pack is refused."""

    def make(place):
        for record in open_pack(place / pack).manifest.cases:
            (place / f"results/test_{record['id']}").mkdir(parents=True)
            (place / f"results/test_{record['id']}/refused.txt").touch()

    return make


def claimed(cases, *require, pack="two", make=None):
    """What makes `claim.yaml` on a pack, and more."""

    def make_all(place):
        manifest = open_pack(place / pack).manifest
        claim = Claim("mine", manifest.header["suite"], manifest.digest, cases, [*require])
        (place / "claim.yaml").write_text(claim.text)
        return make(place) if make else None

    return make_all


def altered(pattern, number):
    """What makes `altered`, a copy of the pack with a number in all elements of some files.

    For None each element is one more than it was.
    """

    def make(place):
        shutil.copytree(place / "two", place / "altered")
        for path in (place / "altered").glob(f"test_*/test_data_set_0/{pattern}"):
            name, values = pb.read_named(path)
            changed = values + 1 if number is None else np.full_like(values, number)
            path.write_bytes(pb.serialize(name, changed))

    return make


def forged_pack(change, amend=dict):
    """What makes `altered`, a pack of other vectors and records, whose digest fits."""

    def make(place):
        forged(place / "two", place / "altered", change, amend)

    return make


def agreed(number):
    """What makes `altered`, a pack that expects a number, and `results` that are that number."""

    def make(place):
        altered("output_*.pb", number)(place)
        results(*BOTH, pack="altered")(place)

    return make


def unlisted(place):
    """Make `altered`, a pack that expects zeros, and whose manifest lists no file."""
    altered("output_*.pb", 0)(place)
    without_sums(place / "altered")


def forging(place):
    """Make `altered`, and `./kernel`, which puts another pack in its place."""
    shutil.copytree(place / "two", place / "altered")
    forged(place / "two", place / "forged", with_zeros)
    kernel(f"cp -rf '{place}/forged/.' '{place}/altered/'")(place)


def zeros_for_zeros(place):
    """Make `altered`, a pack that expects zeros, and `results` that are zeros."""
    altered("output_*.pb", 0)(place)
    results(*BOTH, pack="altered")(place)


def other_sums(place):
    """Make `altered`, a pack whose SHA256SUMS are another pack's."""
    shutil.copytree(place / "two", place / "altered")
    shutil.copy(place / "twice" / SUMS, place / "altered" / SUMS)


def half_expected(place):
    """Make `case`, a folder with two data sets, of which only the first has outputs."""
    source = place / "two/test_rnn_14_plain"
    shutil.copytree(source, place / "case")
    (place / "case/test_data_set_1").mkdir()
    for path in source.glob("test_data_set_0/input_*.pb"):
        shutil.copy(path, place / "case/test_data_set_1")


def measured(*implementations, baseline):
    """What makes `before.json`, a stored run of `bench`, in which none of these could run."""

    def make(place):
        terms = {"baseline": baseline, "threads": 1, "compute": "native"}
        terms |= {"call": "evaluate", "clock": "wall", "statistic": "median"}
        key = {"workload": "tiny", "operator": "RNN", "sizes": "T 5, B 2, I 3, H 4, float32"}
        rows = [
            {**key, "implementation": name, "baseline": baseline, "ratio": None}
            for name in implementations
        ]
        (place / "before.json").write_text(json.dumps({"terms": terms, "results": rows}))
        patch = pytest.MonkeyPatch()
        on_little_data(patch)
        return patch.undo

    return make


def without_outputs(place):
    """Make `altered`, a pack whose expected outputs are gone."""
    shutil.copytree(place / "two", place / "altered")
    for path in (place / "altered").glob("test_*/*/[ot]*_?.pb"):
        path.unlink()


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
    """Make `new`, in which all of `two` is made but not finished."""
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


def linked(place):
    """Make `a.npz`, and a second name of it."""
    tensors(Y=np.arange(3))(place)
    (place / "link.npz").hardlink_to(place / "a.npz")


def different_tensors(place):
    """Make `a.npz` and `b.npz`, of other values."""
    write_tensors(place / "a.npz", {"Y": np.zeros(3, np.float32)})
    write_tensors(place / "b.npz", {"Y": np.ones(3, np.float32)})


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


def variables(**values):
    """What sets variables of the environment."""

    def make(place):
        patch = pytest.MonkeyPatch()
        for name, value in values.items():
            patch.setenv(name, value)
        return patch.undo

    return make


def unexecutable(place):
    """Make `./kernel` that may not be executed."""
    (place / "kernel").write_text("#!/bin/sh\n")


def without_interpreter(place):
    """Make `./kernel` whose first line names an interpreter that is not there."""
    (place / "kernel").write_text("#!/no/such/interpreter\n")
    (place / "kernel").chmod(0o755)


def writer(values):
    """What makes a program that writes the same for whatever it is asked, by the outputs' shapes.

    They follow from X, since the cases have as many units as inputs.
    """

    def make(place):
        (place / "writes.py").write_text(
            "import sys, numpy\n"
            "T, *rest = numpy.load(sys.argv[1])['X'].shape\n"
            "shapes = {'Y': (T, 1, *rest), 'Y_h': (1, *rest)}\n"
            f"made = [({values}).astype('f4') for k, shape in enumerate(shapes.values())]\n"
            "numpy.savez(sys.argv[2], **dict(zip(shapes, made)))\n"
        )

    return make


def no_workers(place):
    """Make every executor return nothing."""
    patch = pytest.MonkeyPatch()
    patch.setattr(Workers, "run", lambda *_: iter(()))
    return patch.undo


def nothing(_):
    """Make nothing."""


def plain(vector):
    """Return the expected outputs."""
    return vector.answers.outputs


def recorded(change=lambda lines: lines, kernel=None, **options):
    """What makes `run.jsonl`, the lines of a run, altered."""

    def make(place):
        report = commands.verify("two", kernel or plus_one, **options)
        (place / "run.jsonl").write_text("\n".join(change(lines_of(report))))

    return make


def lines_of(report):
    """The lines of a report, whose summary counts the cases as they are."""
    records = [
        run_record(report),
        *(case_record(report, case) for case in report.cases),
        summary_record(report),
    ]
    return [json.dumps(jsonable(record)) for record in records]


def rewritten(change, kernel=None):
    """What makes `run.jsonl`, the lines of a run whose report is altered before it is counted."""

    def make(place):
        report = change(commands.verify("two", kernel or plus_one))
        (place / "run.jsonl").write_text("\n".join(lines_of(report)))

    return make


def called(verdict):
    """What calls each case of a report so, and leaves its outputs as they are."""

    def change(report):
        cases = [
            case._replace(details=structs.replace(case.details, verdict=verdict))
            for case in report.cases
        ]
        return dataclasses.replace(report, cases=cases)

    return change


def cut(report):
    """A report without its last case."""
    return dataclasses.replace(report, cases=report.cases[:-1])


def shards(*settings):
    """What makes `run.jsonl`, the shards of a run, each with other settings."""

    def make(place):
        lines = []
        for k, about in enumerate(settings, 1):
            shard = Selected(shard=f"{k}/{len(settings)}")
            report = commands.verify("two", plain, cases=shard)
            subject = structs.replace(report.subject, about=about)
            lines += lines_of(dataclasses.replace(report, subject=subject))
        (place / "run.jsonl").write_text("\n".join(lines))

    return make


def judged(outputs, pack="two", rule=PACK_RULE):
    """The judgement on what a function gives for the first case of a pack."""
    packed = open_pack(pack)
    vector = packed.read(packed.manifest.cases[0])
    return judge(vector, outputs(vector), rule=rule)


def plus_one(vector):
    """Wrong outputs."""
    return {name: values + 1 for name, values in vector.answers.outputs.items()}


def replace(vector):
    """Write what is expected, and give it."""
    zeros = {name: np.zeros_like(values) for name, values in vector.answers.outputs.items()}
    vector.answers.outputs.update(zeros)
    return zeros


def end(vector):
    """End the process, as if all were well."""
    raise SystemExit(0)


def blinding(vector):
    """Make all numbers zero in size, and give wrong ones."""
    np.abs = lambda values, *_, **__: np.zeros(np.shape(values))
    return plus_one(vector)


def restored(_):
    """Make NumPy what it was, afterwards."""
    patch = pytest.MonkeyPatch()
    patch.setattr(np, "abs", np.abs)
    return patch.undo


def marked(mark):
    """What makes `test_marked.py`, a test of wrong outputs that the user marks."""

    def make(place):
        text = f"""\
import pytest, rnncli

@pytest.mark.{mark}
@rnncli.pytest.vectors({str(place / "two")!r})
def test_kernel(vector):
    return {{name: values + 1 for name, values in vector.answers.outputs.items()}}
"""
        (place / "test_marked.py").write_text(text)

    return make


def end_at_once(vector):
    """End the process without a word to anyone."""
    os._exit(0)


def refuse(vector):
    """Refuse what is asked."""
    raise NotImplementedError(vector.id)


def refused(function):
    """What a function that is refused leaves behind."""
    with pytest.raises(InvalidRequest) as raised:
        function()
    return Ended(raised.value.exit_code, str(raised.value))


class Ended(NamedTuple):
    """A command that has ended, as a report: it passed if it ended with 0."""

    exit_code: int
    said: str

    @property
    def passed(self):
        """Whether its exit code says so."""
        return self.exit_code == 0

    def __bool__(self):
        return self.passed

    def __str__(self):
        return self.said


def pytest_of(body, *options, pack="two"):
    """What runs pytest on a pack, whose function has one line."""

    def run():
        Path("kernels.py").write_text(f"def kernel(vector):\n    {body}\n")
        words = (f"--rnncli={pack}", "--rnncli-subject=kernels:kernel", "-pno:cacheprovider")
        return Ended(*beside(forked_pytest, Path.cwd(), *words, *options))

    return run


RIGHT = "return vector.answers.outputs"
COMMAND = ("--command", "./kernel {outputs}")
XFAILS = ("--xfails", "all.txt")
NUMPY = ("--backend", "numpy")
WRONG = ("--backend", "mutant:input-weights-transposed")
PROGRAM = ("--command", f"'{sys.executable}' {{here}}/writes.py {{inputs.npz}} {{outputs.npz}}")
BOTH = ("rnn_14_plain", "gru_14_plain")
RESULTS = ("--results", "results")
HARNESS = ("--harness", "./kernel")
CLAIMS = ("--claims", "claim.yaml")
CRASH, REFUSE = kernel("exit 1"), kernel("exit 3")

BENCH = (
    *("bench", "tiny", "--op", "RNN", "--backend", "numpy", "--rounds", "1", "--seconds", "1e-4"),
    *("--against", "before.json", "--max-slowdown", "5"),
)

# way -> what is made, the command, words of standard error; or a function that gives a report,
# words of it.
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
    "sequences without a step": (
        nothing,
        ("verify", "no_steps", *NUMPY),
        "no case was answered",
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
        "is too wide",
    ),
    "a pack with tolerances wider than `generate` allows": (
        forged_pack(with_wide_tolerances),
        ("verify", "altered", *NUMPY),
        "is too wide",
    ),
    "a pack that contests what its cases do not": (
        forged_pack(
            with_other_reading("zero-length=initial"),
            lambda case: {**case, "alternatives": ["zero-length=initial"]},
        ),
        ("verify", "altered", *NUMPY),
        "without a tag reading:zero-length",
    ),
    "a pack whose other reading is its own": (
        forged_pack(
            with_other_reading("zero-length=zero"),
            lambda case: {
                **case,
                "alternatives": ["zero-length=zero"],
                "tags": ["reading:zero-length"],
            },
        ),
        ("verify", "altered", *NUMPY),
        "is the case's own",
    ),
    "a pack that lists no files": (unlisted, ("verify", "altered", *NUMPY), "is not listed"),
    "expected values that were altered": (
        altered("output_*.pb", 0),
        ("verify", "altered", *NUMPY),
        "is altered",
    ),
    "program that forges the pack while it is judged": (
        forging,
        ("verify", "altered", *COMMAND),
        "is altered",
    ),
    "a pack in another's place": (
        nothing,
        ("verify", "two", *NUMPY, "--pack-digest", "0123456789abcdef"),
        "is another pack",
    ),
    "a claim that is refused inside": (
        claimed(2, make=REFUSE),
        ("verify", "two", *COMMAND, *CLAIMS),
        "does not conform to the claim of mine: two, 0 of 2",
    ),
    "a claim with allowances": (
        claimed(2, make=REFUSE),
        ("verify", "two", *COMMAND, *CLAIMS, "--allow-refused"),
        "without --allow-refused",
    ),
    "a claim with known failures": (
        claimed(2),
        ("verify", "two", *WRONG, *CLAIMS, *XFAILS),
        "without --xfails",
    ),
    "a claim that leaves out more than it says": (
        claimed(2, "operator!=GRU-14"),
        ("verify", "two", *NUMPY, *CLAIMS),
        "the claim has 2 cases, found 1",
    ),
    "a claim that leaves out everything": (
        claimed(2, "opset>99"),
        ("verify", "two", *NUMPY, *CLAIMS),
        "the claim has 2 cases, found 0",
    ),
    "a claim of no case": (
        claimed(0, "opset>99"),
        ("verify", "two", *NUMPY, *CLAIMS),
        "'cases' must be from 1",
    ),
    "a claim on another pack": (
        claimed(2, pack="twice"),
        ("verify", "two", *NUMPY, *CLAIMS),
        "the claim is on two, digest",
    ),
    "a claim without an entry": (
        empty("claim.yaml"),
        ("verify", "two", *NUMPY, *CLAIMS),
        "claim.yaml:1:1: a claim must be a mapping",
    ),
    "a claim of outputs without an element": (
        claimed(2, pack="empties"),
        ("verify", "empties", *NUMPY, *CLAIMS),
        "does not conform to the claim of mine: two, 2 of 2",
    ),
    "a claim of invalid cases by what refuses everything": (
        claimed(2, pack="rejections", make=REFUSE),
        ("verify", "rejections", *COMMAND, *CLAIMS),
        "does not conform to the claim of mine: two, 0 of 2",
    ),
    "a claim of invalid cases by results": (
        claimed(2, pack="rejections", make=refusals("rejections")),
        ("verify", "rejections", *RESULTS, *CLAIMS),
        "--claims: recorded results cannot run a valid case",
    ),
    "claims from a run that answered nothing": (
        recorded(kernel=refuse, allow_refused=True),
        ("claims", "two", "--from", "run.jsonl"),
        "no case to claim: 2 refused",
    ),
    "claims from a run of a part": (
        recorded(kernel=plain, cases=Selected(select="gru")),
        ("claims", "two", "--from", "run.jsonl"),
        "was judged with --select",
    ),
    "claims from a run by other tolerances": (
        recorded(rule=Rule(atol=0.5)),
        ("claims", "two", "--from", "run.jsonl"),
        "was judged with --atol",
    ),
    "claims from a run without its failures": (
        recorded(lambda lines: [lines[0], lines[-1]]),
        ("claims", "two", "--from", "run.jsonl"),
        "does not count its cases",
    ),
    "a pack that expects nothing but NaN": (
        agreed(np.nan),
        ("verify", "altered", *RESULTS, "--trust"),
        "no case was answered",
    ),
    "a pack that expects one number throughout": (
        agreed(0.25),
        ("verify", "altered", *RESULTS, "--trust"),
        "each output is one number throughout",
    ),
    "a variable that asks for the version": (
        variables(RNNCLI_VERSION="1"),
        ("verify", "two", *WRONG),
        "2 differ. 2 fail",
    ),
    "a variable that asks for a completion": (
        variables(_RNNCLI_COMPLETE="bash_source"),
        ("verify", "two", *WRONG),
        "2 differ. 2 fail",
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
    "diagnose of a program that refuses everything, allowed": (
        REFUSE,
        ("diagnose", "two", *COMMAND, "--allow-refused"),
        "0 of 2 cases answered: 2 refused",
    ),
    "diagnose of results of one case of many": (
        results("rnn_14_plain"),
        ("diagnose", "two", *RESULTS),
        "1 of 2 cases answered: 1 pass, 1 missing",
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
    "compare by tolerances as wide as the values": (
        different_tensors,
        ("compare", "a.npz", "b.npz", "--rtol", "1"),
        "",
    ),
    "compare by tolerances that are not finite": (
        tensors(Y=np.zeros(3, np.float32)),
        ("compare", "a.npz", "b.npz", "--rtol", "inf"),
        "write a number",
    ),
    "compare a file with itself": (
        tensors(Y=np.zeros(3, np.float32)),
        ("compare", "a.npz", "./a.npz"),
        "one and the same",
    ),
    "compare a file with a hard link to it": (
        linked,
        ("compare", "a.npz", "link.npz"),
        "one and the same",
    ),
    "run of a case with tolerances wider than `generate` allows": (
        altered("tolerance_*.pb", 1e30),
        ("run", "altered"),
        "is too wide",
    ),
    "run by tolerances wider than the values": (
        altered("output_*.pb", 0.1),
        ("run", "altered", "--atol", "1e30"),
        "",
    ),
    "comparison of tensors without an element": (
        nothing,
        lambda: compare({"Y": np.zeros((0, 3))}, {"Y": np.zeros((0, 3))}),
        "",
    ),
    "comparison of outputs with themselves": (
        nothing,
        lambda: refused(lambda: compare(*[{"Y": np.arange(3.0)}] * 2)),
        "compared with themselves",
    ),
    "comparison of what differs": (
        nothing,
        lambda: compare({"Y": np.zeros(3)}, {"Y": np.ones(3)}),
        "",
    ),
    "judgement of what differs": (nothing, lambda: judged(plus_one), "differs"),
    "judgement of an error that is no refusal": (
        nothing,
        lambda: judged(lambda _: KeyError("typo"), pack="rejections"),
        "crashed",
    ),
    "judgement of outputs without an element": (
        nothing,
        lambda: judged(lambda vector: vector.answers.outputs, pack="empties"),
        "pass",
    ),
    "judgement by tolerances wider than the values": (
        nothing,
        lambda: judged(plus_one, rule=Rule(atol=1e300)),
        "skipped",
    ),
    "report of a run that failed": (
        recorded(),
        ("report", "run.jsonl"),
        "2 differ. 2 fail",
    ),
    "report of a run that answered nothing": (
        recorded(kernel=refuse, allow_refused=True),
        ("report", "run.jsonl"),
        "no case was answered",
    ),
    "report of a run without its summary": (
        recorded(lambda lines: lines[:-1]),
        ("report", "run.jsonl"),
        "which is incomplete: it has no summary",
    ),
    "report of a run that is cut off in a line": (
        recorded(lambda lines: [*lines[:-1], lines[-1][:40]]),
        ("report", "run.jsonl"),
        "line 4 is not JSON",
    ),
    "report of a run without its failures": (
        recorded(lambda lines: [lines[0], lines[-1]]),
        ("report", "run.jsonl"),
        "does not count its cases",
    ),
    "report of a failure that is called a pass": (
        recorded(lambda lines: [line.replace('"fails": true', '"fails": false') for line in lines]),
        ("report", "run.jsonl"),
        "has fails False, but its other entries make it True",
    ),
    "report of a failure whose verdict is a pass": (
        rewritten(called(Verdict.PASS)),
        ("report", "run.jsonl"),
        "is 'pass', with Y 'differs'",
    ),
    "report of a failure whose verdict is skipped": (
        rewritten(called(Verdict.SKIPPED)),
        ("report", "run.jsonl"),
        "is 'skipped', with Y 'differs'",
    ),
    "report of a run that is cut by a case": (
        rewritten(cut, plain),
        ("report", "run.jsonl"),
        "has 1 case, and 2 are due",
    ),
    "report of shards with other settings": (
        shards({"compute": "native"}, {"compute": "exact"}),
        ("report", "run.jsonl"),
        "lacks shard 2/2; another run has subject's compute 'exact', and this has 'native'",
    ),
    "site of a failure whose verdict is a pass": (
        rewritten(called(Verdict.PASS)),
        ("site", "run.jsonl", "-o", "pages"),
        "is 'pass', with Y 'differs'",
    ),
    "claims from a failure whose verdict is a pass": (
        rewritten(called(Verdict.PASS)),
        ("claims", "two", "--from", "run.jsonl"),
        "is 'pass', with Y 'differs'",
    ),
    "report of a shard without the others": (
        recorded(kernel=plain, cases=Selected(shard="1/2")),
        ("report", "run.jsonl"),
        "lacks shard 2/2",
    ),
    "report of an empty file": (empty("run.jsonl"), ("report", "run.jsonl"), "is empty"),
    "report of a function that refuses everything": (
        nothing,
        lambda: commands.verify("two", refuse, allow_refused=True),
        "no case was answered",
    ),
    "report of a function that replaces what is expected": (
        nothing,
        lambda: commands.verify("two", replace),
        "2 differ. 2 fail",
    ),
    "report of a function that ends the process": (
        nothing,
        lambda: commands.verify("two", end),
        "2 crashed. 2 fail",
    ),
    "report of a function that ends the process at once": (
        nothing,
        lambda: commands.verify("two", end_at_once),
        "2 crashed. 2 fail",
    ),
    "report of a diagnosis of wrong outputs": (
        nothing,
        lambda: commands.diagnose("two", plus_one),
        "",
    ),
    "report of a check of an altered pack": (
        altered("output_*.pb", 0),
        lambda: commands.generate("two.yaml", output="altered", check=True),
        "altered",
    ),
    "report of a score that is too low": (
        nothing,
        lambda: commands.score("empties", min_score=1),
        "0.0 %",
    ),
    "pytest of a function that refuses everything": (
        nothing,
        pytest_of("raise NotImplementedError"),
        "refused",
    ),
    "pytest of a function that refuses everything, allowed": (
        nothing,
        pytest_of("raise NotImplementedError", "--rnncli-allow-refused"),
        "none of 2 cases",
    ),
    "pytest of a function that returns nothing": (
        nothing,
        pytest_of("pass"),
        "the function returned None",
    ),
    "pytest of a function that ends the process": (
        nothing,
        pytest_of("raise SystemExit(0)"),
        "the function ends the session",
    ),
    "pytest of a function that ends the process at once": (
        nothing,
        pytest_of("import os; os._exit(0)"),
        "the function ends the session",
    ),
    "pytest that only sets up": (nothing, pytest_of(RIGHT, "--setup-plan"), "none of 2 cases"),
    "pytest that only sets up, and does": (
        nothing,
        pytest_of(RIGHT, "--setup-only"),
        "none of 2 cases",
    ),
    "pytest of a function that fails, every case in --rnncli-xfails": (
        nothing,
        pytest_of("return {}", "--rnncli-xfails=all.txt"),
        "none of 2 cases",
    ),
    "pytest of a selection without cases": (
        nothing,
        pytest_of(RIGHT, "--rnncli-select=nothing"),
        "selects no case",
    ),
    "pytest of cases that need what the function lacks": (
        nothing,
        pytest_of(RIGHT, "--rnncli-require=opset>=99"),
        "none of 2 cases",
    ),
    "pytest of an altered pack": (
        altered("output_*.pb", 0),
        pytest_of(RIGHT, pack="altered"),
        "is altered",
    ),
    "pytest of outputs without an element": (
        nothing,
        pytest_of(RIGHT, pack="empties"),
        "none of 2 cases",
    ),
    "site of a run without its summary": (
        recorded(lambda lines: lines[:-1]),
        ("site", "run.jsonl", "-o", "pages"),
        "which is incomplete: it has no summary",
    ),
    "site of a run without its failures": (
        recorded(lambda lines: [lines[0], lines[-1]]),
        ("site", "run.jsonl", "-o", "pages"),
        "does not count its cases",
    ),
    "site of a shard without the others": (
        recorded(kernel=plain, cases=Selected(shard="1/2")),
        ("site", "run.jsonl", "-o", "pages"),
        "lacks shard 2/2",
    ),
    "site of no run": (empty("run.jsonl"), ("site", "run.jsonl", "-o", "pages"), "is empty"),
    "run of no target": (empty("list"), ("run", "--from", "list"), "no target"),
    "run of a pack whose outputs are gone": (
        without_outputs,
        ("run", "altered"),
        "output_0.pb is missing",
    ),
    "run by tolerances of what expects nothing": (
        relu,
        ("run", "case", "--rtol", "1e-3"),
        "no expected outputs to compare with",
    ),
    "run by tolerances of inputs of one's own": (
        nothing,
        ("run", "two/test_rnn_14_plain", "--seed", "1", "--rtol", "1e-3"),
        "no expected outputs to compare with",
    ),
    "run of a data set without expected outputs": (
        half_expected,
        ("run", "case"),
        "case test_data_set_1: no expected outputs",
    ),
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
    "trace that only writes its page": (
        nothing,
        ("trace", "two", "--complete", "--page"),
        "--page is about all statements",
    ),
    "inspect of a pack with other sums": (other_sums, ("inspect", "altered"), ""),
    "inspect of a pack without cases": (nothing_in_it, ("inspect", "none"), "without cases"),
    "bench against a run that measured nothing": (
        measured(baseline="onnx-reference"),
        (*BENCH, "--vs", "onnx-reference"),
        "nothing in the file was measured in this run",
    ),
    "bench against a run that failed": (
        measured("onnx-reference", "numpy", baseline="onnx-reference"),
        (*BENCH, "--vs", "onnx-reference"),
        "no backend of rnncli ran in the file",
    ),
    "bench of what is compared with itself": (
        measured("numpy", baseline="numpy"),
        (*BENCH, "--vs", ""),
        "nothing in the file was measured in this run",
    ),
    "extract without a recurrent node": (
        relu,
        ("extract", "case/model.onnx", "-o", "new"),
        "no recurrent node",
    ),
    "relations of a program that refuses everything": (
        REFUSE,
        ("relate", "two", *COMMAND, "--allow-refused"),
        "no case was answered",
    ),
    "relations of a program that always fails": (
        CRASH,
        ("relate", "two", *COMMAND),
        "2 crashed",
    ),
    "relations of a program that always fails, every case in --xfails": (
        CRASH,
        ("relate", "two", *COMMAND, *XFAILS),
        "no case was answered",
    ),
    "relations of a program that writes nothing, every case in --xfails": (
        kernel("exit 0"),
        ("relate", "two", *COMMAND, *XFAILS),
        "no case was answered",
    ),
    "relations of a program that writes zeros": (
        writer("numpy.zeros(shape)"),
        ("relate", "two", *PROGRAM, "--relation", "singles"),
        "no case was answered",
    ),
    "relations of a program that writes a number for each output": (
        writer("numpy.full(shape, k)"),
        ("relate", "two", *PROGRAM, "--relation", "singles"),
        "no case was answered",
    ),
    "relations of a program that writes NaN": (
        writer("numpy.full(shape, numpy.nan)"),
        ("relate", "two", *PROGRAM, "--relation", "singles", "--relation", "again"),
        "no case was answered",
    ),
    "relations of a program that writes another shape": (
        writer("numpy.arange(3)"),
        ("relate", "two", *PROGRAM, "--relation", "singles"),
        "2 differ. 2 fail",
    ),
    "relations of a program that writes nothing": (
        kernel("exit 0"),
        ("relate", "two", *COMMAND, "--relation", "singles"),
        "2 differ. 2 fail",
    ),
    "relations of a program that never ends": (
        kernel("exec sleep 60"),
        ("relate", "two", *COMMAND, "--timeout", "0.1"),
        "2 timeout, 8 skipped. 2 fail",
    ),
    "relations of a runtime that refuses every session": (
        runtime("RefusesAgain"),
        (
            *("relate", "twice", "--runtime", "keeping", "--allow-refused"),
            *("--relation", "again"),
        ),
        "no case was answered",
    ),
    "relations of a shard without cases": (
        nothing,
        ("relate", "two", *NUMPY, "--shard", "3/3"),
        "no relation of a case to judge",
    ),
    "relations of a selection without cases": (
        nothing,
        ("relate", "two", *NUMPY, "-k", "no"),
        "selects no case of",
    ),
    "relations that apply to no case": (
        nothing,
        ("relate", "two", *NUMPY, "--relation", "padding"),
        "no case was answered",
    ),
    "relations that need what --require excludes": (
        nothing,
        (
            *("relate", "two", *NUMPY, "--relation", "weights"),
            *("--require", "weights=inputs"),
        ),
        "no case was answered",
    ),
    "relations of outputs without an element": (
        nothing,
        ("relate", "empties", *NUMPY, "--relation", "weights"),
        "no case was answered",
    ),
    "relations at sizes that no case has": (
        nothing,
        ("relate", "fixed.yaml", *NUMPY, "--sizes", "batch_size=3"),
        "no case was answered",
    ),
    "relations of fewer cases than required": (
        nothing,
        ("relate", "two", *NUMPY, "--relation", "weights", "--min-cases", "3"),
        "--min-cases requires 3",
    ),
    "relations of a pack of invalid cases": (
        nothing,
        ("relate", "rejections", *NUMPY),
        "has no valid case",
    ),
    "relations of results": (
        results(*BOTH),
        ("relate", "two", *RESULTS),
        "--results is about expected outputs",
    ),
    "relations of workers that return nothing": (
        no_workers,
        ("relate", "two", *NUMPY, "-j", "2"),
        "fewer cases",
    ),
    "every failure in --xfails, all computed": (
        nothing,
        ("verify", "two", *WRONG, *XFAILS),
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
        agreed(None),
        ("verify", "altered", *RESULTS, "--trust"),
        "2 pass",
    ),
    "copies of the expected values": (results(*BOTH), ("verify", "two", *RESULTS), "2 pass"),
    "relations of another function": (
        nothing,
        ("relate", "two", *WRONG, "--relation", "singles"),
        "2 pass. None fails",
    ),
    "generate resumed where files and journal were altered together": (
        journal_of_zeros,
        ("generate", "two.yaml", "-o", "new"),
        "",
    ),
    "score that is not asked to judge": (nothing, ("score", "empties"), "0.0 %"),
    "diagnose of what is right": (
        nothing,
        ("diagnose", "two", *NUMPY),
        "no case to compare with known bugs",
    ),
    "compare files of NaN": (tensors(Y=np.full(3, np.nan)), ("compare", "a.npz", "b.npz"), ""),
    "convert of a pack without cases": (
        nothing_in_it,
        ("convert", "none", "new", "--format", "npz"),
        "",
    ),
    "help among the options": (nothing, ("verify", "two", *NUMPY, "--help"), ""),
    "pytest that only collects": (nothing, pytest_of(RIGHT, "--collect-only"), "2 tests collected"),
    "pytest of a function that ends the process in C": (
        nothing,
        pytest_of("import ctypes; ctypes.CDLL(None)._exit(0)"),
        "",
    ),
    "pytest of what the user marks as xfail": (
        marked("xfail"),
        lambda: Ended(*beside(forked_pytest, Path.cwd(), "test_marked.py", "-pno:cacheprovider")),
        "2 xfailed",
    ),
    "a function that alters the judge": (
        restored,
        lambda: commands.verify("two", blinding),
        "2 pass",
    ),
    "pytest that lists fixtures": (nothing, pytest_of(RIGHT, "--fixtures"), "no tests ran"),
    "score of which nothing is required": (
        nothing,
        ("score", "empties", "--min-score", "0"),
        "0.0 %",
    ),
    "extract of outputs without an element": (
        nothing,
        ("extract", "empties/test_rnn_14_plain", "-o", "new"),
        "",
    ),
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
    code, said = asked(command) if callable(command) else told(rnncli(*command))
    if undo:
        undo()

    assert code == CODES[way], said
    assert words in said


def told(done):
    """The exit code of a command, and what it says."""
    return done.code, done.err


def asked(function):
    """The exit code of a report, and what it says; it is true only if it passed."""
    report = function()
    assert bool(report) is report.passed is (report.exit_code == 0)
    return report.exit_code, str(report)


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
