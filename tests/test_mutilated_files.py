"""Mutilated and hostile files: exit 2 or 3, one clear line, no traceback, bounded memory and time.

Each file goes through the whole command line in a process of its own, forked from one that has all
modules, so that hundreds of them take seconds.
"""

from __future__ import annotations

import io
import os
import random
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.beside import beside
from support.bombs import gzip_of_zeros, zip_of_zeros
from support.forked import forked

from rnncli.cases.library import specs_folder
from rnncli.files.formats import read_tensors, write_tensors

DATA = Path(__file__).parent / "data"
MODEL = DATA / "exports" / "lstm_packed_bi_ts.onnx"
MEBIBYTES = 1024


def run(folder, *arguments):
    """Run the command line in a forked process, and wait for it."""
    return beside(forked, folder, *arguments)


def assert_refused(outcome, codes=(2, 3)) -> None:
    """Exit 2 or 3, one line (a line a finding for YAML), no traceback, below a gibibyte."""
    assert outcome.code in codes, outcome
    assert "Traceback" not in outcome.err, outcome
    assert "internal error" not in outcome.err, outcome
    if outcome.code:
        lines = [line for line in outcome.err.splitlines() if not line.startswith("warning")]
        assert lines, outcome
        assert len(lines) == 1 or all(".yaml:" in line for line in lines), outcome
    assert outcome.mebibytes < MEBIBYTES, outcome


def command_for(path: Path) -> tuple[object, ...]:
    """Read a file the way its kind is read: a target, or the inputs of a model."""
    if path.suffix in {".npz", ".h5"}:
        return ("run", MODEL, "--inputs", path)
    if path.suffix in {".npy", ".pb"}:
        return ("run", MODEL, "--dim", "batch=3,seq=7", "-i", f"x={path}")
    return ("run", path)


def original(folder: Path, kind: str) -> Path:
    """Write a good file of a kind that is read, and what it refers to."""
    for name in {kind, *REFERRED.get(kind, ())}:
        (folder / name).write_bytes(originals()[name])
    return folder / kind


@cache
def originals() -> dict[str, bytes]:
    """A good file of every kind that is read; each runs without complaint."""
    with TemporaryDirectory() as folder:
        write_originals(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def write_originals(folder: Path) -> None:
    """Write all of them."""
    proto = onnx.load(MODEL)
    x = read_tensors(MODEL.with_suffix(".npz"))["in.x"]
    lens = read_tensors(MODEL.with_suffix(".npz"))["in.lens"]
    names = ("m.onnx", "m.textproto", "m.json", "m.onnxtxt")
    formats = ("protobuf", "textproto", "json", "onnxtxt")
    for name, format_name in zip(names, formats, strict=True):
        onnx.save(proto, folder / name, format=format_name)
    for name in ("i.npz", "i.h5"):
        write_tensors(folder / name, {"x": x, "lens": lens})
    for name in ("i.npy", "i.pb"):
        write_tensors(folder / name, {"x": x})
    (folder / "c.yaml").write_bytes(
        (specs_folder() / "ops" / "lstm_14_peepholes.yaml").read_bytes()
    )
    write_tensors(folder / "c0.npz", read_tensors(specs_folder() / "ops" / "c0.npz"))
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "m.onnx", "case/model.onnx")
    with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
        archive.add(folder / "m.onnx", "case/model.onnx")


KINDS = (
    *("m.onnx", "m.textproto", "m.json", "m.onnxtxt", "i.npz", "i.h5", "i.npy", "i.pb"),
    *("c.yaml", "a.zip", "a.tar.gz"),
)
REFERRED = {"c.yaml": ("c0.npz",)}


@pytest.mark.parametrize("kind", KINDS)
def test_original_is_accepted(tmp_path, kind):
    """Before it is mutilated every file runs."""
    outcome = run(tmp_path, *command_for(original(tmp_path, kind)))

    assert outcome.code == 0, outcome


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "c.yaml"])
@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_truncated_file_is_refused(tmp_path, kind, share):
    """A file cut short, to nothing at all or to 99 %, is never half read."""
    path = original(tmp_path, kind)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])

    assert_refused(run(tmp_path, *command_for(path)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits_are_refused_or_harmless(tmp_path, kind, seed):
    """Twenty flipped bits end in a sentence; only where the file is still valid, in a result."""
    path = original(tmp_path, kind)
    data = bytearray(path.read_bytes())
    dice = random.Random(f"{kind} {seed}")  # noqa: S311 -- repeatable, not secret
    for _ in range(20):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(bytes(data))

    assert_refused(run(tmp_path, *command_for(path)), codes=(0, 2, 3))


FOREIGN = {
    "empty": b"",
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "zeros": bytes(4096),
    "html": b"<!DOCTYPE html><html><body>404</body></html>",
    "noise": random.Random(0).randbytes(4096),  # noqa: S311
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", FOREIGN)
def test_foreign_bytes_are_refused(tmp_path, kind, content):
    """An empty file, an LFS pointer, a picture, a web page, noise under the wrong name."""
    path = original(tmp_path, kind)
    path.write_bytes(FOREIGN[content])

    assert_refused(run(tmp_path, *command_for(path)))


def model(*nodes, inputs=(("x", [2, 3]),), initializers=(), opset=17):
    """A small model of float32 tensors, its output `y`."""
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in inputs]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "g", infos, [output], list(initializers))
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def giant(dims):
    """A tensor that declares a shape and holds four bytes."""
    return TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=bytes(4))


IDENTITY = helper.make_node("Identity", ["x"], ["y"])
MODELS = {
    "giant initializer": lambda: model(
        helper.make_node("Add", ["x", "w"], ["y"]), initializers=[giant([1 << 40, 1 << 20])]
    ),
    "overflowing initializer": lambda: model(
        helper.make_node("Add", ["x", "w"], ["y"]), initializers=[giant([1 << 62, 1 << 62, 4])]
    ),
    "negative initializer": lambda: model(
        helper.make_node("Add", ["x", "w"], ["y"]), initializers=[giant([-1, -4])]
    ),
    "giant input": lambda: model(IDENTITY, inputs=[("x", [1 << 20, 1 << 20])]),
    "giant constant": lambda: model(
        helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([1 << 40]))),
        helper.make_node("ConstantOfShape", ["s"], ["y"]),
    ),
    "giant expansion": lambda: model(
        helper.make_node("Constant", [], ["s"], value_ints=[1 << 20, 1 << 20, 2, 3]),
        helper.make_node("Expand", ["x", "s"], ["z"]),
        helper.make_node("Neg", ["z"], ["y"]),
    ),
    "giant repeat": lambda: model(
        helper.make_node("Constant", [], ["s"], value_ints=[1 << 20, 1 << 20]),
        helper.make_node("Tile", ["x", "s"], ["y"]),
    ),
    "giant padding": lambda: model(
        helper.make_node("Constant", [], ["s"], value_ints=[0, 0, 1 << 40, 0]),
        helper.make_node("Pad", ["x", "s"], ["y"]),
    ),
    "giant range": lambda: model(
        helper.make_node("Constant", [], ["a"], value_float=0.0),
        helper.make_node("Constant", [], ["b"], value_float=1e12),
        helper.make_node("Constant", [], ["c"], value_float=1.0),
        helper.make_node("Range", ["a", "b", "c"], ["y"]),
    ),
    "cycle": lambda: model(
        helper.make_node("Add", ["x", "z"], ["y"]), helper.make_node("Neg", ["y"], ["z"])
    ),
    "no outputs": lambda: helper.make_model(helper.make_graph([IDENTITY], "g", [], [])),
    "output nobody makes": lambda: model(helper.make_node("Identity", ["x"], ["z"])),
    "unknown operator": lambda: model(helper.make_node("Lstm", ["x"], ["y"])),
    "unknown domain": lambda: model(helper.make_node("LSTM", ["x"], ["y"], domain="acme")),
    "opset 0": lambda: model(IDENTITY, opset=0),
    "opset of the future": lambda: model(IDENTITY, opset=1000),
    "lstm of rank 2": lambda: model(
        helper.make_node("LSTM", ["x", "x", "x"], ["y"], hidden_size=3)
    ),
    "outside the folder": lambda: model(
        helper.make_node("Add", ["x", "w"], ["y"]),
        initializers=[
            TensorProto(
                name="w",
                data_type=TensorProto.FLOAT,
                dims=[4],
                data_location=TensorProto.EXTERNAL,
                external_data=[
                    onnx.StringStringEntryProto(key="location", value="../../../etc/passwd")
                ],
            )
        ],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_impossible_model_is_refused(tmp_path, name):
    """Giant declared shapes, graphs that make no sense, operators nobody knows."""
    path = tmp_path / "m.onnx"
    path.write_bytes(MODELS[name]().SerializeToString())

    assert_refused(run(tmp_path, "run", path))


def npy(shape, dtype="<f4", data=bytes(16)):
    """An .npy whose header declares a shape of its own."""
    stream = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + data


def tar_bomb(size):
    """A compressed tar whose one member is `size` zeros."""
    member = tarfile.TarInfo("case/model.onnx")
    member.size = size
    return gzip_of_zeros(size, member.tobuf())


def evil_tar(name, link=""):
    """A tar with a member that wants to be outside, or is a link to outside."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        archive.addfile(member)
    return stream.getvalue()


def hdf5(fill):
    """An HDF5 file made by a function."""
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        fill(file)
    return stream.getvalue()


def tensor(**fields):
    """A serialized TensorProto."""
    return TensorProto(name="x", data_type=TensorProto.FLOAT, **fields).SerializeToString()


FILES = {
    "wrong shape.npy": lambda: npy((3, 7), data=bytes(84)),
    "wrong size.npy": lambda: npy((3, 7, 11), data=bytes(924)),
    "wrong dtype.npy": lambda: npy((3, 7, 10), "<f8", bytes(1680)),
    "giant.npy": lambda: npy((1 << 40, 1 << 20)),
    "overflow.npy": lambda: npy((1 << 62, 1 << 62)),
    "negative.npy": lambda: npy((-1, 7, 10)),
    "pickle.npy": lambda: npy((1,), "|O", b"cos\nsystem\n(S'true'\ntR."),
    "structured.npy": lambda: npy((1,), [("a", "<f4"), ("b", "<f4")]),
    "bomb.npz": lambda: zip_of_zeros(b"x.npy", 1 << 30),
    "giant member.npz": lambda: _zip({"x.npy": npy((1 << 40,))}),
    "pickle.npz": lambda: _zip({"x.npy": npy((1,), "|O", b"N.")}),
    "foreign.npz": lambda: _zip({"readme.txt": b"hello"}),
    "twice.npz": lambda: _zip({"x.npy": npy((4,))}) + b"PK\x05\x06" + bytes(18),
    "giant.h5": lambda: hdf5(
        lambda f: f.create_dataset("x", (1 << 30, 1 << 20), "f4", chunks=(1 << 10, 1 << 10))
    ),
    "external.h5": lambda: hdf5(lambda f: f.__setitem__("x", h5py.ExternalLink("/etc/x", "/"))),
    "dangling.h5": lambda: hdf5(lambda f: f.__setitem__("x", h5py.SoftLink("/nowhere"))),
    "compound.h5": lambda: hdf5(lambda f: f.create_dataset("x", data=np.zeros(1, "f4,f4"))),
    "giant.pb": lambda: tensor(dims=[1 << 40, 1 << 20], raw_data=bytes(4)),
    "overflow.pb": lambda: tensor(dims=[1 << 62, 1 << 62], raw_data=bytes(4)),
    "negative.pb": lambda: tensor(dims=[-3], raw_data=bytes(12)),
    "short.pb": lambda: tensor(dims=[3], raw_data=bytes(4)),
    "untyped.pb": lambda: TensorProto(name="x", dims=[1], raw_data=bytes(4)).SerializeToString(),
    "external.pb": lambda: tensor(dims=[1], data_location=TensorProto.EXTERNAL),
    "bomb.zip": lambda: zip_of_zeros(b"case/model.onnx", 3 << 30),
    "bomb.tar.gz": lambda: tar_bomb(3 << 30),
    "up.tar.gz": lambda: evil_tar("../../evil/model.onnx"),
    "absolute.tar.gz": lambda: evil_tar("/tmp/evil/model.onnx"),  # noqa: S108
    "link.tar.gz": lambda: evil_tar("case/model.onnx", "/etc/passwd"),
    "empty.zip": lambda: _zip({}),
    "two models.zip": lambda: _zip({"a.onnx": b"", "b.onnx": b""}),
}


def _zip(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.mark.parametrize("name", FILES)
def test_hostile_tensors_and_archives_are_refused(tmp_path, name):
    """Wrong dtype and shape, giant headers, pickles, links, bombs."""
    path = tmp_path / name
    path.write_bytes(FILES[name]())

    assert_refused(run(tmp_path, *command_for(path)))


SIZES = "sizes: {seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 5}\n"
YAML = {
    "billion laughs": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{chr(c + 1)}: &{chr(c + 1)} [{', '.join([f'*{chr(c)}'] * 9)}]\n" for c in range(97, 110)
    ),
    "recursive alias": "op: &a [*a]\n",
    "deep lists": "[" * 100_000,
    "deep mappings": "\n".join(" " * k + "a:" for k in range(3000)),
    "long key": "?" * 100_000 + ": 1\n",
    "python tag": "op: !!python/object/apply:os.system ['true']\n",
    "any tag": "op: !x LSTM-14\n",
    "duplicate key": "op: LSTM-14\nop: LSTM-7\n" + SIZES,
    "two documents": f"op: LSTM-14\n{SIZES}---\nop: LSTM-7\n",
    "tabs": "op:\tLSTM-14\nsizes:\n\tseq_length: 4\n",
    "latin-1": b"op: LSTM-14\nsummary: \xe9t\xe9\n",
    "nul": "op: LSTM-14\0\n",
    "giant sizes": "op: LSTM-14\n" + SIZES.replace("4", "2000000000").replace("5", "2000000000"),
    "giant number": "op: LSTM-14\n" + SIZES.replace("4", "9" * 5000),
    "endless merge": f"op: LSTM-14\n<<: {{a: 1}}\n{SIZES}",
    "list": "- op\n",
    "scalar": "LSTM-14\n",
    "nothing": "",
    "unknown operator": "op: LTSM-14\n" + SIZES,
    "device file": "op: LSTM-14\ninputs: {X: {file: /dev/zero}}\n" + SIZES,
    "missing file": "op: LSTM-14\ninputs: {X: {file: nowhere.npz, key: x}}\n" + SIZES,
    "nan clip": "op: LSTM-14\nattributes: {clip: .nan}\n" + SIZES,
    "wrong length": "op: LSTM-14\ninputs: {sequence_lens: [9, 1]}\n" + SIZES,
    "huge text": "op: LSTM-14\n# " + "x" * (4 << 20) + "\n" + SIZES,
}


@pytest.mark.parametrize("name", YAML)
def test_hostile_yaml_is_refused(tmp_path, name):
    """Bombs, tags, duplicate keys, foreign encodings, sizes that no machine has."""
    path = tmp_path / "c.yaml"
    text = YAML[name]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    assert_refused(run(tmp_path, "run", path))


def test_pipes_and_devices_are_no_files(tmp_path):
    """What never ends, or blocks, is not read."""
    os.mkfifo(tmp_path / "m.onnx")

    assert_refused(run(tmp_path, "run", tmp_path / "m.onnx"))
    assert_refused(run(tmp_path, "run", MODEL, "--inputs", "/dev/zero"))
