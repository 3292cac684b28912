"""What inputs are made from: a tiny suite, its packs, models and tensors, made once for all."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import pkgutil
import shutil
import sys
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import fuzz_protos
import fuzz_trees
import h5py
import numpy as np
import yaml
from onnx import numpy_helper
from support import judge_c

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rnncli.packs.vector import Vector

SUITE = """\
suite: tiny
summary: What a fuzzer takes to pieces.
seed: 5
golden: float64
score: true
notes:
  Gates: gates in the wrong order
  Clip: the input of h is not clipped
  Shape: a wrong shape is not refused
defaults:
  sizes: {seq_length: 2, batch_size: 1, input_size: 1, hidden_size: 1}
cases:
  plain:
    op: RNN-7
    flags: [Gates]
    weights: initializers
    horizon: 1
  clip:
    op: LSTM-14
    flags: [Clip]
    attributes: {clip: 0.4}
    inputs: {initial_c: {normal: [0, 2]}}
    calls: 2
  shape:
    op: RNN-14
    flags: [Shape]
    breaks: {shapes: {W: [1, 12, 3]}}
"""
# Scoring takes most of the time that making such a pack does.
UNSCORED = SUITE.replace("score: true\n", "")
MATRIX = """\
suite: wide
summary: Every key of a suite.
seed: 5
golden: float64
profile: standard
notes: {Gates: gates in the wrong order, Half: rounds twice}
defaults:
  opset: 14
  sizes: {seq_length: 2, batch_size: 2, input_size: 1, hidden_size: 1}
  inputs: {B: uniform}
cases:
  many:
    summary: Axes and what is left out of them.
    flags: [Gates]
    axis_flags: {float16: [Half]}
    inputs: {sequence_lens: lengths, W: {weights: 1.0}}
    matrix: {op: [RNN, GRU, LSTM], direction: [forward, bidirectional]}
    zip: {dtype: [float32, float16], layout: [0, 1]}
    strategy: pairwise
    exclude: [{op: GRU, direction: bidirectional}]
    include: [{op: GRU, direction: forward, dtype: float16, layout: 1}]
  given:
    op: LSTM
    flags: [Gates]
    attributes: {activations: [Sigmoid, Tanh, HardSigmoid], activation_alpha: [0.3], clip: 1.5}
    inputs: {initial_h: {special: [2, nan]}, X: [[[1], [2]], [[3], [4]]], P: zeros}
    outputs: [Y_h]
    readings: {clip-scope: gates}
"""
CONFIG = """\
op: LSTM-14
summary: Every optional input of LSTM-14, peepholes included.
sizes: {seq_length: 2, batch_size: 2, input_size: 1, hidden_size: 3}
dtype: float32
attributes:
  direction: bidirectional
  clip: 3.0
  activations: [Sigmoid, Tanh, Tanh, HardSigmoid, Softsign, Relu]
  activation_alpha: [0.25]
inputs:
  P: {uniform: [-0.5, 0.5]}
  B: zeros
  W: {weights: 1.0}
  sequence_lens: [2, 1]
  initial_h: {special: [2, nan]}
  initial_c: {file: c0.npz, key: c0}
outputs: [Y, Y_h, Y_c]
readings: {clip-scope: gates}
seed: 7
"""
SMALL_CONFIG = """\
op: GRU-22
sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 1}
inputs: {X: [[[1, 2]], [[.5, -1e-3]]], initial_h: {normal: [0, 1]}}
"""
OPENVINO = """\
suite: ir
summary: A model of OpenVINO for each of its operators.
seed: 5
golden: float64
notes: {Gates: gates in the wrong order}
defaults: {flags: [Gates], weights: initializers}
cases:
  sequence:
    sizes: {seq_length: 2, batch_size: 1, input_size: 1, hidden_size: 2}
    attributes: {direction: reverse}
    matrix: {op: [RNNSequence-5, GRUSequence-5, LSTMSequence-5]}
  cell:
    op: LSTMCell-4
    sizes: {batch_size: 1, input_size: 1, hidden_size: 2}
    attributes: {clip: 0.5}
    inputs: {B: uniform}
"""
ROLES = ("input", "output", "tolerance")
LAYOUTS = ("onnx", "npz", "h5", "raw")
# Subjects whose results are wrong, and where: everywhere, the invalid case computed as well; or
# in one output of the last call of `PARTLY_WRONG`, all else being right.
RIGHT, WRONG, PARTLY = "right", "wrong", "partly"
PARTLY_WRONG = "lstm_14_clip"
_HEAVY = ("runtimes.", "compiled", "numba", "benchmarks", "dask", "page")


@cache
def preload() -> None:
    """Import what commands import when they run, so that no input pays for it."""
    import rnncli

    for module in pkgutil.walk_packages(rnncli.__path__, "rnncli."):
        if not any(word in module.name for word in (*_HEAVY, "__main__")):
            try:
                importlib.import_module(module.name)
            except ImportError:
                continue


def in_child(function: Callable[[], object], out: str = os.devnull) -> int:
    """Call a function in a process of its own, its standard output in a file; return its code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            function()
            code = 0
        except SystemExit as stop:
            code = stop.code
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def command(*arguments: str, code: int = 0, out: str = os.devnull) -> None:
    """Run the command line in a process of its own.

    Raises:
        AssertionError: it ends with another exit code.
    """

    def body() -> None:
        from rnncli.cli import main

        sys.argv = ["rnncli", *arguments]
        main()

    assert in_child(body, out) == code, arguments


def make_bases(folder: Path) -> Path:
    """Write the packs and canaries into a folder, and return it."""
    preload()
    folder.mkdir(parents=True, exist_ok=True)
    suite = folder / "tiny.yaml"
    suite.write_text(SUITE)
    (folder / "unscored.yaml").write_text(UNSCORED)
    for layout in LAYOUTS:
        command("generate", str(suite), "-o", str(folder / f"pack_{layout}"), "--format", layout)
    _results(folder)
    pack, results = str(folder / "pack_onnx"), str(folder / "right_onnx")
    os.environ["MPLCONFIGDIR"] = str(folder / "fonts")
    command(
        "verify", pack, "--results", results, "-k", "rnn_7", "--html", str(folder / "page.html")
    )
    _canaries(folder)
    _journal(folder)
    _runs(folder)
    _openvino(folder)
    if shutil.which("gcc"):
        judge_c.compiled(folder, "-O1", *judge_c.SANITIZED)
    return folder


def _runs(folder: Path) -> None:
    """What `verify --json` says of each subject."""
    for subject in (RIGHT, WRONG, PARTLY):
        line = ("verify", str(folder / "pack_onnx"), "--results", str(folder / f"{subject}_onnx"))
        code, out = int(subject != RIGHT), str(folder / f"{subject}.jsonl")
        command(*line, "--json", "--diagnose", code=code, out=out)


def _results(folder: Path) -> None:
    """What a device has computed for the packs: right, and wrong in two ways; in every layout."""
    from rnncli.files.formats import write_tensors
    from rnncli.files.formats.pb import serialize
    from rnncli.files.formats.raw import content_of
    from rnncli.packs.pack import open_pack
    from rnncli.packs.vector import group_of

    vectors = [*open_pack(folder / "pack_onnx").vectors()]
    for subject in (RIGHT, WRONG, PARTLY):
        files: dict[Path, bytes] = {}
        tensors: dict[str, np.ndarray] = {}
        for vector in vectors:
            onnx, raw = (folder / f"{subject}_{of}" / f"test_{vector.id}" for of in ("onnx", "raw"))
            calls = _computed(subject, vector)
            if not any(calls):
                files |= {place / "refused.txt": b"" for place in (onnx, raw)}
                tensors[f"{vector.id}/refused"] = np.zeros(1, np.float32)
            for call, outputs in enumerate(calls):
                data_set, place = f"test_data_set_{call}", f"{group_of(call)}outputs"
                for k, (name, values) in enumerate(outputs.items()):
                    files[onnx / data_set / f"output_{k}.pb"] = serialize(name, values)
                    files[raw / place / f"{name}.bin"] = content_of(values)
                    tensors[f"{vector.id}/{place}/{name}"] = values
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for of in ("npz", "h5"):
            (folder / f"{subject}_{of}").mkdir()
            write_tensors(folder / f"{subject}_{of}" / f"vectors.{of}", tensors)


def _computed(subject: str, vector: Vector) -> list[dict[str, np.ndarray]]:
    """Return a subject's outputs of each call; none of the invalid case if it is refused.

    What is wrong is wrong in every element, by more than the value, so that no tolerance which is
    not wider than the values takes it for right, and no change of a bit or two makes it right.
    """
    outputs = [dict(call.answers.outputs) for call in vector.calls]
    if subject == PARTLY and vector.id == PARTLY_WRONG:
        outputs[-1]["Y_c"] = _far_from(outputs[-1]["Y_c"])
    if subject == WRONG:
        every = [each or {"Y": np.ones((2, 1, 1, 1), np.float32)} for each in outputs]
        return [{name: _far_from(values) for name, values in each.items()} for each in every]
    return outputs


def _far_from(values: np.ndarray) -> np.ndarray:
    return (-1.5 * values - np.copysign(0.1, values)).astype(values.dtype)


def _openvino(folder: Path) -> None:
    """Models of OpenVINO: a recurrent node each, and a loop over one if openvino is installed."""
    (folder / "ir.yaml").write_text(OPENVINO)
    command("generate", str(folder / "ir.yaml"), "-o", str(folder / "ir"), "--format", "ir")
    assert in_child(partial(_save_loop, folder / "ir" / "loop.xml")) == 0


def _save_loop(path: Path) -> None:
    try:
        import openvino
        from openvino import opset3, opset5
    except ImportError:
        return
    loop = opset5.tensor_iterator()
    outer = opset5.parameter([2, 3, 1], np.float32, "outer")
    x, h = (opset5.parameter(shape, np.float32) for shape in ([2, 1, 1], [2, 2]))
    held = [opset5.constant(np.ones(shape, "f")) for shape in ([2, 1], [2, 2], [2])]
    step = opset5.squeeze(x, opset5.constant([1]))
    state = opset5.result(opset3.rnn_cell(step, h, *held, 2, ["tanh"], [], []).output(0))
    loop.set_function(openvino.Model([state], [x, h], "body"))
    loop.set_sliced_input(x, outer.output(0), 0, 1, 1, -1, 1)
    start = opset5.constant(np.zeros([2, 2], "f"))
    loop.set_merged_input(h, start.output(0), state.output(0))
    last = opset5.result(loop.get_iter_value(state.output(0), -1))
    openvino.save_model(openvino.Model([last], [outer], "m"), path)


def _canaries(folder: Path) -> None:
    """What somebody would like to read or overwrite: a case, and a file of every kind."""
    canary, case = folder / "canary", folder / "pack_onnx" / "test_lstm_14_clip"
    (canary / "test_data_set_0").mkdir(parents=True)
    for name in ("model.onnx", *(f"test_data_set_0/{role}_0.pb" for role in ROLES)):
        shutil.copy(case / name, canary / name)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(canary / "x.npz", x=values, c0=values)
    with h5py.File(canary / "x.h5", "w") as file:
        file["x"] = values
    (canary / "x.pb").write_bytes(numpy_helper.from_array(values, "x").SerializeToString())
    shutil.copy(canary / "model.onnx", canary / "x.onnx")
    (canary / "x.yaml").write_text(SMALL_CONFIG)
    (canary / "x.txt").write_text("a secret of 24 bytes....\n")
    (canary / "x.hard").write_text("linked\n")


def _journal(folder: Path) -> None:
    """The journal of a run that was killed after its last case."""
    from rnncli.cases.suite.suite import load_suite
    from rnncli.generating.leftovers import premises

    manifest = json.loads((folder / "pack_onnx" / "manifest.json").read_text())
    header = {
        "premises": premises(load_suite(str(folder / "unscored.yaml"))),
        "owned": sorted(case["id"] for case in manifest["cases"]),
    }
    records = [dict(case) for case in manifest["cases"]]
    for record in records:
        record.pop("kills", None)
    lines = [json.dumps(each) for each in (header, *records)]
    (folder / "journal").write_text("\n".join(lines) + "\n")


@cache
def text(path: Path) -> str:
    """Return the text of a file of the bases."""
    return path.read_text()


@cache
def yaml_json(content: str) -> str:
    """Return a YAML document as JSON, to be parsed anew for each input."""
    return json.dumps(yaml.safe_load(content))


@cache
def models() -> list[bytes]:
    """Return small models."""
    return fuzz_protos.models()


@cache
def tensors() -> list[bytes]:
    """Return serialized tensors."""
    return fuzz_protos.tensors()


@cache
def npz_bytes(names: tuple[str, ...] = ("x",)) -> bytes:
    """Return a sound .npz."""
    stream = io.BytesIO()
    shapes = {"x": (2, 3), "c0": (2, 2, 3)}
    values = {name: np.ones(shapes[name], np.float32) for name in names}
    np.savez(stream, **values)
    return stream.getvalue()


def tree(content: str) -> Any:
    """Return JSON, parsed anew."""
    return json.loads(content)


def sealed(tree: Any) -> tuple[bytes, str]:
    """Return a manifest as a pack holds it, its digest that of its content whatever that is."""
    if not isinstance(tree, dict):
        return fuzz_trees.write(tree).encode("utf-8", "surrogatepass"), ""
    entries = [(key, value) for key, value in tree.items() if key != "digest"]
    lines = ",\n".join(f"{fuzz_trees.write(k)}: {fuzz_trees.write(v)}" for k, v in entries)
    body = f"{{\n{lines}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(body + b"\n}\n").hexdigest()
    return body + f',\n"digest": "{digest}"\n}}\n'.encode(), digest


@cache
def _contents(folder: Path) -> dict[str, bytes | None]:
    """Return the files of a folder by their paths in it; folders are None."""
    below = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in below}


def copy(folder: Path, target: str) -> None:
    """Copy a folder of the bases, quickly."""
    os.mkdir(target)  # noqa: PTH102
    for path, content in _contents(folder).items():
        if content is None:
            os.mkdir(f"{target}/{path}")  # noqa: PTH102
        else:
            with open(f"{target}/{path}", "wb", buffering=0) as file:  # noqa: PTH123
                file.write(content)
