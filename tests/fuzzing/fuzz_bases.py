"""What inputs are made from: a tiny suite, its packs, models and tensors, made once for all."""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import fuzz_protos
import h5py
import numpy as np
import yaml
from onnx import numpy_helper

if TYPE_CHECKING:
    from pathlib import Path

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
ROLES = ("input", "output", "tolerance")
LAYOUTS = ("onnx", "npz", "h5")
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


def command(*arguments: str) -> None:
    """Run the command line in a process of its own.

    Raises:
        AssertionError: it does not succeed.
    """
    child = os.fork()
    if child == 0:
        from rnncli.cli import main

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv = ["rnncli", *arguments]
        code = 1
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, arguments


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
    pack, results = str(folder / "pack_onnx"), str(folder / "results_onnx")
    os.environ["MPLCONFIGDIR"] = str(folder / "fonts")
    command(
        "verify", pack, "--results", results, "-k", "rnn_7", "--html", str(folder / "page.html")
    )
    _canaries(folder)
    _journal(folder)
    return folder


def _results(folder: Path) -> None:
    """Results that are right: packs without what makes them packs."""
    for layout in LAYOUTS:
        results = folder / f"results_{layout}"
        shutil.copytree(folder / f"pack_{layout}", results)
        for name in ("manifest.json", "SHA256SUMS"):
            (results / name).unlink()


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
    from rnncli.packs.generating.journal import premises

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
