"""Files made to exhaust memory, time or trust are refused in one line, in little memory."""

import bz2
import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib

import h5py
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.bombs import MIB, deflated_zeros, zip_of_body, zip_of_zeros


def npy(descr="<f4", shape="(2,)", data=b"\0" * 8, header=None, version=(1, 0)):
    """A .npy with any header at all."""
    text = header or f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text) + 1)
    return b"\x93NUMPY" + bytes(version) + length + text.encode() + b"\n" + data


NPY = {
    "giant shape": (npy(shape="(1000000000000,)"), "declares float32 of shape"),
    "overflowing shape": (npy(shape="(4611686018427387904, 4)"), "declares float32 of shape"),
    "negative shape": (npy(shape="(-2,)"), "cannot be"),
    "giant empty shape": (npy(shape=f"(0, {10**30})", data=b""), ""),
    "too many dimensions": (npy(shape="(1,)" * 0 + "(" + "1," * 100 + ")", data=b"\0" * 4), ""),
    "shape of text": (npy(shape="('a',)"), ""),
    "text of no width": (npy("<U0", "(1000000000000,)", b""), "cannot be"),
    "wide text": (npy("<U1000000000", "(1,)"), "is damaged|the data has 8 bytes"),  # NumPy 2.0
    "pickle": (npy("|O", "(1,)", pickle.dumps(["evil"])), "never loaded"),
    "structure": (npy([("a", "<f4")], "(2,)"), "no tensor can hold"),
    "bits of an unknown type": (npy("|V2", "(4,)"), "no tensor can hold"),
    "date": (npy("<M8[s]", "(1,)"), "no tensor can hold"),
    "long double": (npy("<f16", "(1,)", b"\0" * 16), "no tensor can hold"),
    "header longer than the file": (npy(version=(2, 0))[:8] + b"\xff" * 4 + b"x" * 100, ""),
    "deep header": (npy(header="(" * 9000), ""),
    "deeper header": (npy(header="[" * 200 + "]" * 200), ""),
    "code as header": (npy(header="__import__('os').abort()"), ""),
    "version 3": (npy(version=(3, 0)), "version"),
    "more than declared": (npy(data=b"\0" * 12), "the data has 12 bytes"),
    "less than declared": (npy(data=b"\0" * 7), "the data has 7 bytes"),
}


def archive(members, method=zipfile.ZIP_DEFLATED):
    """A zip archive of these members."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as opened:
        for name, content in members:
            opened.writestr(name, content)
    return target.getvalue()


def bomb(size):
    """An archive of one array of that many zero bytes, genuine in every respect."""
    return zip_of_zeros(b"x.npy", size, npy(shape=f"({size // 4},)", data=b""))


def understated():
    """A member that inflates to 100 MiB and says 136 bytes."""
    body = deflated_zeros(100 * MIB)
    return zip_of_body(b"x.npy", body, 0, 136)


def overlapping():
    """3000 members that share one body of 10 MiB."""
    head = npy(shape=f"({10 * MIB // 4},)", data=b"")
    packed = zlib.compress(head + b"\0" * (10 * MIB), 9)[2:-4]
    crc = zlib.crc32(head + b"\0" * (10 * MIB))
    return zip_of_body(b"0000.npy", packed, crc, len(head) + 10 * MIB, copies=3000)


def with_notes(notes):
    """An archive of one array and these notes."""
    array = io.BytesIO()
    np.save(array, np.array(notes))
    return archive([("x.npy", npy("|u1", "(2,)", b"12")), ("__rnncli__.npy", array.getvalue())])


class Evil:
    """What a pickle can be."""

    def __reduce__(self):
        return (exec, ("raise SystemExit(99)",))


NPZ = {
    "bomb of zeros": (lambda: bomb(600 * MIB), "a file of this size may take"),
    "understated size": (understated, ""),
    "overlapping members": (overlapping, ""),
    "text bomb": (
        lambda: archive([("x.npy", npy("<U1", f"({20 * MIB},)", b"a\0\0\0" * (20 * MIB)))]),
        "may take",
    ),
    "bzip2": (
        lambda: archive([("x.npy", npy())], zipfile.ZIP_BZIP2),
        "neither stored nor deflated",
    ),
    "another file inside": (lambda: archive([("readme.txt", b"hi")]), "lacks '.npy'"),
    "pickle": (lambda: archive([("x.npy", npy("|O", "(1,)", pickle.dumps(Evil())))]), "pickled"),
    "notes that are no JSON": (lambda: with_notes("[[["), ""),
    "deep notes": (lambda: with_notes("[" * 500_000), "'__rnncli__': is damaged"),
    "notes that are a list": (lambda: with_notes("[]"), "does not hold notes"),
    "a note that is a list": (lambda: with_notes('{"x": []}'), "does not hold notes"),
    "an unknown dtype": (lambda: with_notes('{"x": {"dtype": "bfloat61"}}'), "bfloat16"),
    "a dtype of other width": (lambda: with_notes('{"x": {"dtype": "bfloat16"}}'), "cannot lie"),
    "a dtype that is a list": (lambda: with_notes('{"x": {"dtype": []}}'), ""),
    "a name that is a number": (lambda: with_notes('{"x": {"name": 1}}'), "names a tensor 1"),
    "text without a shape": (lambda: with_notes('{"x": {"dtype": "string"}}'), ""),
    "text of giant shape": (
        lambda: with_notes('{"x": {"dtype": "string", "shape": [1000000000000]}}'),
        "",
    ),
    "a name twice": (
        lambda: archive([("x.npy", npy()), ("y.npy", npy())]).replace(b"y.npy", b"x.npy"),
        "twice",
    ),
    "not an archive": (lambda: bz2.compress(b"x" * 1000), "not a zip"),
}


def tensor(**fields):
    """A TensorProto of any fields at all."""
    return TensorProto(name="x", **fields).SerializeToString()


ONE = numpy_helper.from_array(np.ones(2, np.float32), "x")

PB = {
    "giant shape": (tensor(data_type=1, dims=[10**12], raw_data=b"1234"), "declares float32"),
    "giant shape, no data": (tensor(data_type=1, dims=[10**12]), "holds none"),
    "giant shape of 4-bit": (tensor(data_type=22, dims=[10**12], raw_data=b"1"), "declares int4"),
    "giant shape of 6-bit": (tensor(data_type=27, dims=[10**12], raw_data=b"1"), "float6"),
    "overflowing shape": (tensor(data_type=1, dims=[2**62, 4], raw_data=b"1234"), "declares"),
    "giant empty shape": (tensor(data_type=1, dims=[0, 2**62, 2**62]), ""),
    "negative shape": (tensor(data_type=1, dims=[-1, -1], raw_data=b"1234"), "declares the shape"),
    "too many dimensions": (tensor(data_type=1, dims=[1] * 100, raw_data=b"1234"), ""),
    "typed data too short": (tensor(data_type=1, dims=[3], float_data=[1, 2]), "2 in float_data"),
    "data of another type": (tensor(data_type=1, dims=[2], int64_data=[1, 2]), "int64_data"),
    "data twice": (
        tensor(data_type=1, dims=[1], raw_data=b"1234", float_data=[1]),
        "4 in raw_data, 1 in float_data",
    ),
    "raw text": (tensor(data_type=8, dims=[4], raw_data=b"1234"), "declares string"),
    "external data": (
        tensor(
            data_type=1,
            dims=[1],
            data_location=TensorProto.EXTERNAL,
            external_data=[onnx.StringStringEntryProto(key="location", value="/etc/passwd")],
        ),
        "has its values in another file",
    ),
    "unknown type": (tensor(data_type=99, dims=[1], raw_data=b"1"), "unknown tensor element type"),
    "no type": (tensor(dims=[1], raw_data=b"1"), "no element type"),
    "segment": (tensor(data_type=1, segment=TensorProto.Segment(begin=0, end=1)), "only tensors"),
    "name of bytes": (ONE.SerializeToString().replace(b"B\x01x", b"B\x01\xff"), "not Unicode"),
    "sequence": (
        onnx.SequenceProto(elem_type=1, tensor_values=[ONE]).SerializeToString(),
        "holds an ONNX sequence or optional",
    ),
    "named sequence": (
        onnx.SequenceProto(name="name", elem_type=1, tensor_values=[ONE]).SerializeToString(),
        "holds an ONNX sequence or optional",
    ),
    "optional": (
        onnx.OptionalProto(elem_type=1, tensor_value=ONE).SerializeToString(),
        "holds an ONNX sequence or optional",
    ),
    "model": (
        helper.make_model(helper.make_graph([], "g", [], [])).SerializeToString(),
        "not an ONNX tensor",
    ),
}


def giant(file):
    """Declared, never written."""
    file.create_dataset("x", (10**12,), "f8")


def giant_chunked(file):
    """The same in chunks."""
    file.create_dataset("x", (10**12,), "f8", chunks=(1024,))


def giant_chunk(file):
    """Ten values in a chunk of 2 GiB."""
    file.create_dataset("x", (10,), "f4", chunks=(2**29,), maxshape=(None,), compression="gzip")
    file["x"].id.write_direct_chunk((0,), zlib.compress(b"\0" * 100))


def sparse_chunked(file):
    """Of 8 GB one chunk is written."""
    file.create_dataset("x", (10**9,), "f8", chunks=(1024,))[:10] = 1


def inflating_chunk(file):
    """A chunk of 4 KiB that inflates to 1.5 GB."""
    file.create_dataset("x", (1024,), "f4", chunks=(1024,), compression="gzip")
    zeros = 1500 * MIB
    adler = struct.pack(">I", (zeros % 65521) << 16 | 1)
    file["x"].id.write_direct_chunk((0,), b"\x78\xda" + deflated_zeros(zeros) + adler)


def circle(file):
    """A group that holds itself."""
    file.create_group("a/b")
    file["a/b/c"] = file["a"]


def root_again(file):
    """The root under a name."""
    file["a"] = file["/"]


def many_names(file):
    """One dataset, a thousand times."""
    file["x"] = np.zeros(1000)
    for number in range(1000):
        file[f"x{number}"] = file["x"]


def soft_link(file):
    """A link within the file."""
    file["y"] = np.zeros(2)
    file["x"] = h5py.SoftLink("/y")


def external_link(file):
    """A link out of the file."""
    file["x"] = h5py.ExternalLink("other.h5", "/x")


def virtual(file):
    """Values from another file."""
    layout = h5py.VirtualLayout((10**12,), "f8")
    layout[:2] = h5py.VirtualSource("other.h5", "x", (2,))
    file.create_virtual_dataset("x", layout)


def external(file):
    """Values from any file of the system."""
    file.create_dataset("x", (4,), "u1", external=[("/etc/passwd", 0, 4)])


def variable_text(file):
    """Text on the heap of the file."""
    file["x"] = ["a", "b"]


def variable_numbers(file):
    """Lists of numbers."""
    file.create_dataset("x", (2,), h5py.vlen_dtype(np.int32))


def structure(file):
    """Elements with fields."""
    file["x"] = np.zeros(2, [("a", "f4"), ("b", "i4")])


def reference(file):
    """Elements that point at datasets."""
    file["y"] = np.zeros(2)
    file["x"] = file["y"].ref


def no_shape(file):
    """A dataset without values or shape."""
    file["x"] = h5py.Empty("f4")


def named_type(file):
    """A type among the datasets."""
    file["x"] = np.dtype("f4")


def other_filter(file):
    """Compressed by what only h5py knows."""
    file.create_dataset("x", data=np.zeros(100), compression="lzf")


def deep(file):
    """Groups in groups."""
    group = file
    for _ in range(3000):
        group = group.create_group("abcd")
    group["x"] = np.zeros(2)


def note(written):
    """A dataset with that note."""

    def make(file):
        file["x"] = np.zeros(2, np.uint8)
        file["x"].attrs["rnncli"] = written

    return make


H5 = {
    "giant shape": (giant, "its values are not there"),
    "giant chunked shape": (giant_chunked, "its values are not there"),
    "giant shape, one chunk": (sparse_chunked, "may take"),
    "giant chunk": (giant_chunk, "takes 2147483648 bytes"),
    "inflating chunk": (inflating_chunk, "inflates to more"),
    "circle": (circle, "a second time"),
    "root in itself": (root_again, "a second time"),
    "many names of one dataset": (many_names, "a second time"),
    "soft link": (soft_link, "'x' is a link"),
    "external link": (external_link, "'x' is a link"),
    "virtual dataset": (virtual, "in another file"),
    "external dataset": (external, "in another file"),
    "variable text": (variable_text, "variable length"),
    "variable numbers": (variable_numbers, "variable length|not there"),
    "structure": (structure, "no tensor can hold"),
    "reference": (reference, "or references"),
    "no shape": (no_shape, "not even a shape"),
    "named type": (named_type, "neither a group nor a dataset"),
    "other filter": (other_filter, "other than gzip"),
    "deep groups": (deep, "more than 8192"),
    "note of numbers": (note(np.zeros(3)), "is not one text"),
    "note of variable text": (note('{"dtype": "int4"}'), "is not one text"),
    "note that is no JSON": (note(np.bytes_(b"[[[")), ""),
    "note that is a list": (note(np.bytes_(b"[]")), "does not hold a note"),
    "position that is text": (note(np.bytes_(b'{"position": "1"}')), "does not hold a note"),
    "unknown dtype": (note(np.bytes_(b'{"dtype": "float33"}')), "unknown dtype"),
}

CASES = [
    *(("npy", name, content, words) for name, (content, words) in NPY.items()),
    *(("npz", name, make, words) for name, (make, words) in NPZ.items()),
    *(("npz", f"{name} inside", content, words) for name, (content, words) in NPY.items()),
    *(("pb", name, content, words) for name, (content, words) in PB.items()),
    *(("h5", name, make, words) for name, (make, words) in H5.items()),
]

READ = """
import json, resource, sys
from rnncli.errors import RnncliError
from rnncli.files.formats import read_tensors
for path in json.loads(sys.stdin.read()):
    try:
        read_tensors(path)
    except RnncliError as error:
        said = [error.exit_code, str(error)]
    else:
        said = [0, "was read"]
    print(json.dumps([path, said, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""

SMALL = """
import subprocess, sys  # Linux counts what this process ever held as its child's memory
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""


def make(path, extension, content):
    """Write a case, from its bytes or what makes it."""
    if extension == "h5":
        with h5py.File(path, "w") as file:
            content(file)
    elif isinstance(content, bytes) and extension == "npz":
        path.write_bytes(archive([("x.npy", content)]))
    else:
        path.write_bytes(content if isinstance(content, bytes) else content())


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a process of its own says about each file, and the memory it ever took, in KiB."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = {}
    for extension, name, content, _ in CASES:
        paths[extension, name] = folder / f"{len(paths)}.{extension}"
        make(paths[extension, name], extension, content)
    done = subprocess.run(
        [sys.executable, "-c", SMALL, READ],
        input=json.dumps([str(path) for path in paths.values()]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(paths, lines, strict=True))


@pytest.mark.parametrize(
    ("extension", "name", "words"),
    [case[:2] + case[3:] for case in CASES],
    ids=[f"{case[0]} {case[1]}" for case in CASES],
)
def test_hostile_file_is_one_sentence_and_little_memory(extension, name, words, said):
    """A hostile file is refused by name, in a line that says why, below 1 GiB of memory."""
    path, (exit_code, sentence), memory = said[extension, name]

    assert exit_code in {2, 3}, sentence
    assert sentence.startswith(f"{path}: ")
    assert any(each in sentence for each in words.split("|"))
    assert "\n" not in sentence
    assert memory < 1 << 20
