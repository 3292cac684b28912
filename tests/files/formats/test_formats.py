"""What holds for every format: exact round trips, the same bytes, whole files, clear refusals."""

import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.examples import examples
from support.tables import every

from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile
from rnncli.files.formats import (
    FORMATS,
    format_of,
    format_with,
    known_formats,
    read_data_sets,
    read_inputs,
    read_outputs,
    read_tensor,
    read_tensors,
    write_tensors,
)
from rnncli.files.formats.format import DataSet, flatten, unflatten
from rnncli.files.formats.onnx_folder import write_test_case
from rnncli.files.formats.stored import NARROW
from rnncli.numerics import DTYPES

FILES = [name for name in FORMATS if name != "/"]
MANY = ["npz", "h5", "/"]
PATHS = {name: "tensors/" if name == "/" else f"tensors.{name}" for name in FORMATS}
NAMELESS = {"npy"}
NUMPY_ONLY = {"npy"}


shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
texts = st.text(max_size=6) | st.sampled_from(["", "\0", "a\0", "\n", "é", "\udcff", "x" * 3000])


@st.composite
def tensors_of(draw, dtype):
    """Any bits of a dtype, of any small shape, in any memory order."""
    shape = draw(shapes)
    if dtype.name == "string":
        values = np.empty(shape, object)
        for index in np.ndindex(shape):
            values[index] = draw(texts)
        return values
    width = NARROW.get(dtype.name, 1 if dtype.name == "bool" else 8)
    flat = draw(hnp.arrays(np.uint8, (*shape, dtype.numpy.itemsize)))
    bits = flat if width == 8 else flat & np.uint8((1 << width) - 1)
    values = np.ascontiguousarray(bits).view(dtype.numpy).reshape(shape)
    return np.asfortranarray(values) if draw(st.booleans()) else values


odd_names = st.sampled_from(
    [
        *("", ".", "..", "/", "//", "a/", "/a", "a//b", "a/b", "a/./b", "a/../b", "a", "a/b/c"),
        *("a.npy", ".npy", "a.npy.npy", "a\\b", "a\0b", "\n", "é", "e\u0301", "日本", "💡", "A"),
        *("__rnncli__", "__rnncli__/0", "__rnncli__/1", "__rnncli__x", "x" * 300, "a:b", "a::b"),
        *("test_data_set_0/inputs/X", "test_data_set_3/outputs/", "test_data_set_1/outputs/a\n"),
        *("test_data_set_01/inputs/X", "input_0", "output_0", "model.onnx", "rnncli"),
    ]
)
names = odd_names | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def tensor_dicts(draw, *, native=False, max_size=6):
    """Up to so many tensors of any dtype, or of one that NumPy knows, with any names."""
    rows = [row for row in DTYPES.values() if not native or row.native_to_numpy]
    chosen = draw(st.lists(names, unique=True, min_size=int(max_size == 1), max_size=max_size))
    return {name: draw(tensors_of(draw(st.sampled_from(rows)))) for name in chosen}


def bits(tensors):
    """Everything that has to survive, in order, bit for bit."""
    return [
        (
            name,
            values.dtype,
            values.shape,
            values.ravel().tolist() if values.dtype == object else values.tobytes(),
        )
        for name, values in tensors.items()
    ]


def contents(path):
    """The bytes of a file, or of each file in a folder."""
    path = Path(path)
    if path.is_dir():
        return {
            str(file.relative_to(path)): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file()
        }
    return path.read_bytes()


def in_order_of_roles(tensors):
    """Whether a test case, which numbers tensors within roles, keeps these: in order, named."""
    sets = unflatten(tensors)
    kept = list(tensors) == list(flatten(sets))
    return kept and not any("" in {**each.inputs, **each.outputs} for each in sets)


def one_tensor(name):
    """Whether a format holds only one."""
    return format_with(name).name in {"npy", "pb"}


@pytest.mark.parametrize("name", MANY)
@examples(100)
@given(tensors=tensor_dicts())
def test_tensors_come_back_bit_for_bit(name, tensors):
    """Names, order, dtypes, shapes and bits of any tensors survive any format of many tensors."""
    assume(name != "/" or in_order_of_roles(tensors))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{PATHS[name]}"
        write_tensors(path, tensors)

        assert bits(tensors) == bits(read_tensors(path))


@examples(100)
@given(tensors=tensor_dicts(max_size=1))
def test_one_tensor_comes_back_from_pb(tensors):
    """A .pb keeps any tensor and its name (a nameless one takes the file's)."""
    assume("" not in tensors)
    with tempfile.TemporaryDirectory() as folder:
        write_tensors(f"{folder}/x.pb", tensors)

        assert bits(tensors) == bits(read_tensors(f"{folder}/x.pb"))


@examples(100)
@given(tensors=tensor_dicts(max_size=1, native=True))
def test_one_tensor_comes_back_from_npy(tensors):
    """A .npy keeps what it can say and refuses the rest; its tensor is named by the file."""
    (values,) = tensors.values()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.npy"
        try:
            write_tensors(path, tensors)
        except InvalidRequest as error:
            assert "a .npy file cannot hold this string tensor" in str(error)  # noqa: PT017
            assert not os.listdir(folder)  # noqa: PTH208
        else:
            assert bits({"x": values}) == bits(read_tensors(path))


@every("dtype", list(DTYPES.values()), ids=str)
@every("name", FORMATS)
def test_every_dtype_in_every_format(name, dtype, tmp_path):
    """All 16 lowest bit patterns, and a scalar, and nothing at all, of each dtype."""
    if name in NUMPY_ONLY and not dtype.native_to_numpy and dtype.name != "string":
        with pytest.raises(InvalidRequest, match=rf"cannot hold this {dtype}"):
            write_tensors(tmp_path / "tensors.npy", {"x": np.zeros(2, dtype.numpy)})
        return
    patterns = np.arange(16) % (1 << NARROW.get(dtype.name, 1 if dtype.name == "bool" else 8))
    if dtype.name == "string":
        vector = np.array([str(each) for each in patterns], object)
    else:
        vector = patterns.astype(f"u{min(dtype.numpy.itemsize, 8)}")
        vector = np.repeat(vector, dtype.numpy.itemsize // vector.itemsize).view(dtype.numpy)
    for values in (vector, vector[3:4].reshape(()), vector[:0].reshape(2, 0, 3)):
        path = f"{tmp_path}/{PATHS[name]}"
        write_tensors(path, {"tensors": values})

        assert bits({"tensors": values}) == bits(read_tensors(path))


@pytest.mark.parametrize("first", MANY)
@pytest.mark.parametrize("second", MANY)
@examples(30)
@given(tensors=tensor_dicts())
def test_conversion_there_and_back_is_identity(first, second, tensors):
    """Converting A to B and B to A gives the bytes of A again."""
    assume("/" not in {first, second} or in_order_of_roles(tensors))
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{number}{PATHS[name]}" for number, name in enumerate([first, second])]
        write_tensors(paths[0], tensors)
        original = contents(paths[0])
        write_tensors(paths[1], read_tensors(paths[0]))
        write_tensors(paths[0], read_tensors(paths[1]))

        assert original == contents(paths[0])


data_sets = st.builds(DataSet, inputs=tensor_dicts(max_size=3), outputs=tensor_dicts(max_size=3))


@examples(70)
@given(sets=st.lists(data_sets.filter(lambda each: each.inputs or each.outputs), max_size=3))
def test_data_sets_survive_a_plain_file(sets):
    """Inputs and outputs of several data sets are told apart again, whatever their names."""
    assume(sets)
    again = unflatten(flatten(sets))

    assert [(bits(each.inputs), bits(each.outputs)) for each in sets] == [
        (bits(each.inputs), bits(each.outputs)) for each in again
    ]


@examples(100)
@given(tensors=tensor_dicts())
def test_any_names_are_one_way_of_roles(tensors):
    """Splitting any names into roles and joining them again changes nothing but data set order."""
    assert sorted(flatten(unflatten(flatten(unflatten(tensors))))) == sorted(
        flatten(unflatten(tensors))
    )


def sample(dtype="float32", name="Y"):
    """One small tensor."""
    return {name: np.arange(6).astype(DTYPES[dtype].numpy).reshape(2, 3)}


OTHERWISE = """
import sys, time
from unittest import mock
import numpy as np
from rnncli.files.formats import write_tensors
from rnncli.numerics import DTYPES
mock.patch("time.time", return_value=2e9).start()
mock.patch("time.localtime", return_value=time.localtime(2e9)).start()
for path in sys.argv[1:]:
    dtype = DTYPES["float32" if path.endswith(".npy") else "bfloat16"].numpy
    values = np.arange(6).astype(dtype).reshape(2, 3)
    write_tensors(path, {"Y": np.asfortranarray(values)})
"""


def test_same_tensors_are_the_same_bytes(tmp_path):
    """Neither the date nor the process nor memory order shows in a file."""
    ours, others = ({name: f"{tmp_path}/{k}{PATHS[name]}" for name in FORMATS} for k in (1, 2))
    for name, path in ours.items():
        write_tensors(path, sample("float32" if name == "npy" else "bfloat16"))
    subprocess.run([sys.executable, "-c", OTHERWISE, *others.values()], check=True)

    assert [] == [name for name in FORMATS if contents(ours[name]) != contents(others[name])]


@pytest.mark.parametrize("name", ["npz", "npy", "pb", "/"])
def test_bytes_stay_what_they_are(name, tmp_path):
    """Files of today are the files of any later version: the bytes are part of the contract."""
    import hashlib

    path = f"{tmp_path}/{PATHS[name]}"
    write_tensors(path, sample())
    found = contents(path)
    joined = b"".join(found.values()) if isinstance(found, dict) else found

    assert GOLDEN[name] == hashlib.sha256(joined).hexdigest()[:16]


GOLDEN = {
    "npz": "15bf336dfc1c12a9",
    "npy": "47d9cb788e60cfff",
    "pb": "15ee04e69424b06f",
    "/": "f94fa3256225a3d7",
}


@pytest.mark.parametrize("name", FORMATS)
def test_byte_order_of_memory_does_not_show(name, tmp_path):
    """A big-endian array is the same tensor."""
    write_tensors(f"{tmp_path}/1{PATHS[name]}", sample())
    write_tensors(f"{tmp_path}/2{PATHS[name]}", {"Y": sample()["Y"].astype(">f4")})

    assert contents(f"{tmp_path}/1{PATHS[name]}") == contents(f"{tmp_path}/2{PATHS[name]}")


# Damage


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory):
    """One rich file per format."""
    folder = tmp_path_factory.mktemp("undamaged")
    rng = np.random.default_rng(0)
    rich = {
        "Y": rng.standard_normal((5, 1, 4)).astype(np.float32),
        "a/b/c": np.arange(5).astype(DTYPES["bfloat16"].numpy),
        "a.npy": np.array([["one", "two"], ["three", "four\0"]], object),
        "flag": np.array(True),
        "none": np.zeros((0, 3), np.int64),
        "__rnncli__": np.array([1 + 2j]),
    }
    for name in FORMATS:
        path = f"{folder}/{PATHS[name]}"
        write_tensors(path, {"Y": rich["Y"]} if one_tensor(name) else rich)
    write_tensors(folder / "other.pb", {"labels": np.array(["a", "b"], object)})
    np.savez_compressed(folder / "compressed.npz", Y=rich["Y"], z=np.zeros(10_000))
    return folder


def mutilated(seed, whole):
    """Cut the file, or change a few of its bytes, mostly where something stands."""
    chance = random.Random(seed)  # noqa: S311
    damaged = bytearray(whole)
    if chance.random() < 0.25:
        del damaged[chance.randrange(len(damaged)) :]
    for _ in range(chance.choice([0, 1, 1, 2, 5, 30])):
        if damaged:
            position = chance.randrange(len(damaged))
            if chance.random() < 0.7:
                held = [place for place, byte in enumerate(damaged) if byte]
                position = chance.choice(held) if held else position
            damaged[position] = chance.choice([damaged[position] ^ (1 << chance.randrange(8)), 255])
    return bytes(damaged)


@pytest.mark.parametrize(
    "file",
    [*(PATHS[name] for name in FILES), "other.pb", "compressed.npz", "tensors/test_data_set_0"],
)
def test_damage_is_one_line_that_names_the_file(file, undamaged, tmp_path):
    """160 mutilated files of each format are refused in one line, or read: nothing else happens."""
    victim = f"{file}/output_0.pb" if "/" in file else file
    whole = (undamaged / victim).read_bytes()
    path = tmp_path / victim
    path.parent.mkdir(parents=True, exist_ok=True)
    refused = []
    for seed in range(160):
        path.write_bytes(mutilated(seed, whole))
        try:
            read_tensors(tmp_path / file)
        except RnncliError as error:
            refused.append((error.exit_code, str(error)))

    assert len(refused) > 20
    assert {code for code, _ in refused} <= {2, 3}
    assert all(str(tmp_path / file) in said and "\n" not in said for _, said in refused)


@pytest.mark.parametrize("name", ["npz"])
def test_checksums_find_every_flipped_value(name, undamaged, tmp_path):
    """A flipped bit in the values of an archive never passes for a value."""
    whole = (undamaged / PATHS[name]).read_bytes()
    values = read_tensors(undamaged / PATHS[name])["Y"].tobytes()
    start = whole.index(values)
    path = tmp_path / "x.npz"
    for position in range(start, start + len(values)):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(UnreadableFile, match="CRC"):
            read_tensors(path)


@every("name", FILES)
@every(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer"),
        (b"Lorem ipsum dolor sit amet" * 50, ""),
        (b"\0" * 4096, ""),
        (b"\x93NUMPY", ""),
        (b"PK\x03\x04", ""),
        (b"\x89HDF\r\n\x1a\n", ""),
    ],
    ids=["empty", "lfs", "text", "zeros", "npy magic", "zip magic", "hdf5 magic"],
)
def test_foreign_content_is_refused(name, content, sentence, tmp_path):
    """What is no file of the format at all is said in one line; the usual accidents in words."""
    path = tmp_path / PATHS[name]
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=f"^{re.escape(str(path))}: .*{sentence}[^\n]*$"):
        read_tensors(path)


@pytest.mark.parametrize("name", FORMATS)
def test_missing_path_is_named(name, tmp_path):
    """A path that is not there is an unreadable file, not a traceback."""
    path = f"{tmp_path}/{PATHS[name]}"
    with pytest.raises(UnreadableFile, match=r"tensors.*: no such file"):
        read_tensors(path)


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_is_refused_at_once(name, tmp_path):
    """A named pipe would block for ever."""
    path = tmp_path / PATHS[name]
    os.mkfifo(path)
    with pytest.raises(UnreadableFile, match="is a named pipe, not a file"):
        read_tensors(path)


# Writing whole or not at all


REFUSED = {"x": np.array([object()])}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("before", [True, False], ids=["over a file", "new"])
def test_a_refused_tensor_leaves_what_was_there(name, before, tmp_path):
    """When a tensor cannot be written, the old file stays or none is left, and no temporary."""
    path = f"{tmp_path}/{PATHS[name]}"
    if before:
        write_tensors(path, sample())
    old = contents(path) if before else None
    listed = os.listdir(tmp_path)  # noqa: PTH208
    with pytest.raises(InvalidRequest):
        write_tensors(path, REFUSED if one_tensor(name) else {**sample(), **REFUSED})

    assert listed == os.listdir(tmp_path)  # noqa: PTH208
    assert not before or old == contents(path)


FULL_DISK = """
import resource, sys
import numpy as np
from rnncli.errors import InvalidRequest
from rnncli.files.formats import write_tensors
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
for path in sys.argv[1:]:
    try:
        write_tensors(path, {"Y": np.ones(1 << 16)})
    except InvalidRequest as error:
        print(error)
"""


def test_a_full_disk_is_one_sentence_and_no_file(tmp_path):
    """When the system takes no more bytes, the old file stays, no temporary, no traceback."""
    paths = [f"{tmp_path}/{PATHS[name]}" for name in FORMATS]
    for path in paths:
        write_tensors(path, sample())
    listed, old = sorted(tmp_path.iterdir()), [contents(path) for path in paths]
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, *paths], capture_output=True, text=True, check=True
    )

    assert done.stderr == ""
    for path, sentence in zip(paths, done.stdout.splitlines(), strict=True):
        assert re.fullmatch(rf"cannot write {re.escape(path.rstrip('/'))}\S*: .+", sentence)
    assert old == [contents(path) for path in paths]
    assert listed == sorted(tmp_path.iterdir())


INTERRUPTED = """
import os, signal, sys
import numpy as np
from rnncli.files.formats import write_tensors

class Interrupting(dict):
    def items(self):
        yield from super().items()
        os.kill(os.getpid(), signal.SIGINT)
        yield "never", np.ones(3)

try:
    write_tensors(sys.argv[1], Interrupting(Y=np.ones(3)))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("name", ["npz", "h5"])
def test_an_interrupt_leaves_what_was_there(name, tmp_path):
    """Ctrl-C in the middle of writing keeps the old file and leaves no temporary."""
    path = f"{tmp_path}/{PATHS[name]}"
    write_tensors(path, sample())
    old = contents(path)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, path], capture_output=True, text=True, check=True
    )

    assert done.stdout == "interrupted\n"
    assert old == contents(path)
    assert len(os.listdir(tmp_path)) == 1  # noqa: PTH208


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_folder_is_named(name, tmp_path):
    """Folders are not made by guess."""
    with pytest.raises(InvalidRequest, match=r"cannot write \S+: there is no folder \S+none$"):
        write_tensors(f"{tmp_path}/none/{PATHS[name]}", sample())


@pytest.mark.parametrize("name", FORMATS)
def test_a_name_too_long_or_not_text_is_refused(name, tmp_path):
    """What one format could not hold, none takes."""
    for bad in ("x" * 8193, "\ud800"):
        with pytest.raises(InvalidRequest, match="the tensor name"):
            write_tensors(f"{tmp_path}/{PATHS[name]}", {bad: np.ones(2)})


# Which format, which tensor


def test_hdf5_has_fewer_dimensions_than_numpy(tmp_path):
    """A tensor of 33 dimensions is refused by name, not by a library's exception."""
    tensors = {"x": np.zeros((1,) * 33, np.float32)}

    with pytest.raises(InvalidRequest, match=r"a\.h5: 'x' has 33 dimensions, .* at most 32"):
        write_tensors(tmp_path / "a.h5", tensors)


def test_unknown_extension_lists_the_known():
    """The sentence has the path, the extension and what there is."""
    with pytest.raises(
        InvalidRequest, match=r"^out\.xyz: no format is named '\.xyz': there are .*\.npz.*FOLDER/$"
    ):
        format_of("out.xyz")
    with pytest.raises(
        InvalidRequest, match=r"^out: has no extension, which says the format: \.npz, .*FOLDER/$"
    ):
        format_of("out")


def test_extension_is_read_in_any_case():
    """X.NPZ is an archive too."""
    assert format_of("X.NPZ") is format_of("x.npz")


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_names_its_own_extension(name):
    """The table finds a format under each extension that the format claims."""
    assert name in format_with(name).extensions
    assert all(format_with(each) is format_with(name) for each in format_with(name).extensions)


def test_another_package_adds_a_format(tmp_path, monkeypatch):
    """An entry point named by its extension is a format like ours."""
    (tmp_path / "their_format.py").write_text(
        "from rnncli.files.formats.format import Format\n"
        "import numpy as np\n"
        "def read(path): return {'x': np.loadtxt(path)}\n"
        "def write(path, tensors): np.savetxt(path, tensors['x'])\n"
        "CSV = Format('csv', ('csv',), 'text', read, write)\n"
    )
    information = tmp_path / "their_format-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: their-format\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[rnncli.formats]\ncsv = their_format:CSV\n")
    monkeypatch.syspath_prepend(tmp_path)
    write_tensors(tmp_path / "x.csv", {"x": np.ones(3)})

    assert [1, 1, 1] == read_tensor(tmp_path / "x.csv").tolist()
    assert "csv" in known_formats()


def test_table_loads_neither_numpy_nor_onnx():
    """Looking a format up is left to those who use one."""
    program = (
        "import sys, rnncli.files.formats; rnncli.files.formats.known_formats();"
        "assert not {'numpy', 'onnx', 'h5py'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_one_tensor_of_a_file(tmp_path):
    """FILE::NAME picks one; a file of one needs no name; what is there is listed."""
    path = tmp_path / "x.npz"
    write_tensors(path, {"a::b": np.ones(1), "hidden": np.zeros(2)})
    write_tensors(tmp_path / "one.h5", {"anything": np.full(2, 7)})

    assert [1] == read_tensor(f"{path}::a::b").tolist()
    assert [7, 7] == read_tensor(tmp_path / "one.h5").tolist()
    with pytest.raises(InvalidRequest, match=r"no tensor 'hiden'; did you mean 'hidden'.*'a::b'"):
        read_tensor(f"{path}::hiden")
    with pytest.raises(InvalidRequest, match=r"name one tensor, as in .*::NAME; it holds 'a::b'"):
        read_tensor(path)


def test_a_path_with_colons_is_a_path(tmp_path):
    """A file whose own name has '::' is read as it is."""
    write_tensors(tmp_path / "a::b.npy", {"x": np.ones(1)})

    assert [1] == read_tensor(tmp_path / "a::b.npy").tolist()


@pytest.mark.parametrize("path", ["x" * 5000 + ".npz", "a\0b.npz", "a\0b/", "x" * 5000 + "/"])
def test_an_impossible_path_is_one_sentence(path):
    """Paths that no system can have are refused like missing ones."""
    with pytest.raises(UnreadableFile):
        read_tensors(path)
    with pytest.raises(RnncliError):
        read_tensor(f"{path}::key")


def test_inputs_of_a_plain_file_are_all_of_it(tmp_path):
    """A file without roles gives what it has, to either side."""
    write_tensors(tmp_path / "x.npz", {"X": np.ones(2), "W": np.ones(2)})

    assert ["X", "W"] == list(read_inputs(tmp_path / "x.npz"))
    assert ["X", "W"] == list(read_outputs(tmp_path / "x.npz"))


def test_a_case_without_inputs_has_none(tmp_path):
    """The outputs of a model without inputs are not taken for inputs."""
    write_test_case(tmp_path / "case", [DataSet(outputs={"Y": np.ones(1)})], {})

    assert {} == read_inputs(tmp_path / "case")


def test_inputs_of_several_data_sets_need_a_choice(tmp_path):
    """Which data set goes into the model is not guessed; their outputs are told apart."""
    case = {
        f"test_data_set_{number}/{role}": np.full(1, number)
        for number in (0, 1)
        for role in ("inputs/X", "outputs/Y")
    }
    write_tensors(f"{tmp_path}/case/", case)

    with pytest.raises(InvalidRequest, match="holds 2 data sets; choose one, as in"):
        read_inputs(tmp_path / "case")
    assert [1] == read_inputs(tmp_path / "case/test_data_set_1")["X"].tolist()
    assert ["test_data_set_0/outputs/Y", "test_data_set_1/outputs/Y"] == list(
        read_outputs(tmp_path / "case")
    )
    assert 2 == len(read_data_sets(tmp_path / "case"))


@pytest.mark.parametrize("name", ["npz", "h5"])
def test_a_file_of_more_tensors_than_are_read_is_refused_at_once(name, tmp_path, monkeypatch):
    """Neither read nor written: each costs HDF5 a good part of a millisecond."""
    path = tmp_path / f"many.{name}"
    tensors = {f"group{k}/x": np.float32(k) for k in range(3)}
    write_tensors(path, tensors)
    for place in ("reading", "formats.format"):
        monkeypatch.setattr(f"rnncli.files.{place}.MOST_ENTRIES", 2)

    with pytest.raises(UnreadableFile, match=r"many\.\w+: has at least 3 entries; the limit is 2"):
        read_tensors(path)
    with pytest.raises(InvalidRequest, match="more than 2 tensors"):
        write_tensors(path, tensors)


@pytest.mark.parametrize("name", ["npy", "npz", "h5", "pb"])
@pytest.mark.parametrize(
    "tensors",
    [
        {"x": np.array([object()], object)},
        {"x": np.zeros(2, "M8[s]")},
        {"\ud800": np.zeros(1)},
        {"x" * 9000: np.zeros(1)},
    ],
    ids=["object", "time", "surrogate", "long"],
)
def test_what_cannot_be_written_is_said_of_the_file(name, tensors, tmp_path):
    """Every sentence names it."""
    with pytest.raises(InvalidRequest, match=rf"^\S+out\.{name}: "):
        write_tensors(tmp_path / f"out.{name}", tensors)
