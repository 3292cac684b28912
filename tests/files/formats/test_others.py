"""Files go both ways between us and the programs people already have."""

import json
import zipfile

import h5py
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.tables import every

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.formats import read_tensors, write_tensors
from rnncli.numerics import DTYPES


def test_numpy_loads_what_we_write(tmp_path):
    """Keys of an archive are the tensors' names, its arrays plain arrays."""
    written = {"Y": np.ones((2, 3), np.float32), "a/b": np.arange(3), "日本": np.array("text")}
    write_tensors(tmp_path / "x.npz", written)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as loaded:
        assert list(written) == loaded.files
        assert all(np.array_equal(written[name], loaded[name]) for name in written)


def test_numpy_finds_the_bits_and_the_note_of_bfloat16(tmp_path):
    """What NumPy cannot hold lies there as unsigned integers, and the file says what they are."""
    write_tensors(tmp_path / "x.npz", {"Y": np.ones(2, DTYPES["bfloat16"].numpy)})
    with np.load(tmp_path / "x.npz", allow_pickle=False) as loaded:
        assert [0x3F80, 0x3F80] == loaded["Y"].tolist()
        assert {"Y": {"dtype": "bfloat16"}} == json.loads(str(loaded["__rnncli__"]))


def test_saving_again_with_numpy_keeps_the_notes(tmp_path):
    """An archive that NumPy loaded and saved is still the same tensors."""
    write_tensors(tmp_path / "x.npz", {"Y": np.ones(2, DTYPES["bfloat16"].numpy)})
    with np.load(tmp_path / "x.npz") as loaded:
        np.savez_compressed(tmp_path / "y.npz", **loaded)

    assert DTYPES["bfloat16"].numpy == read_tensors(tmp_path / "y.npz")["Y"].dtype


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_we_read_what_numpy_saves(save, tmp_path):
    """Any order in memory, any byte order, text of any kind."""
    arrays = {
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(3, dtype=">i4"),
        "text": np.array([["a", "bc"]]),
        "bytes": np.array([b"a", b"bc"]),
        "scalar": np.float32(3),
    }
    save(tmp_path / "x.npz", **arrays)
    read = read_tensors(tmp_path / "x.npz")

    assert list(arrays) == list(read)
    assert arrays["fortran"].tolist() == read["fortran"].tolist()
    assert (np.int32, [0, 1, 2]) == (read["big"].dtype, read["big"].tolist())
    assert (object, [["a", "bc"]]) == (read["text"].dtype, read["text"].tolist())
    assert ["a", "bc"] == read["bytes"].tolist()
    assert () == read["scalar"].shape


def test_h5py_reads_what_we_write(tmp_path):
    """Names with '/' are groups, text is text, bits are unsigned integers with a note."""
    written = {
        "layer/W": np.ones((2, 3), np.float32),
        "Y": np.ones(2, DTYPES["bfloat16"].numpy),
        "text": np.array(["a", "é"], object),
    }
    write_tensors(tmp_path / "x.h5", written)
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(written["layer/W"], file["layer"]["W"][()])
        assert [0x3F80, 0x3F80] == file["Y"][()].tolist()
        assert {"position": 1, "dtype": "bfloat16"} == json.loads(file["Y"].attrs["rnncli"])
        assert ["a", "é"] == file["text"].asstr()[()].tolist()


def test_we_read_what_h5py_writes(tmp_path):
    """Chunked, compressed, shuffled, big-endian, complex and boolean datasets without notes."""
    values = np.arange(1000, dtype=np.float32).reshape(100, 10)
    options = {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (10, 3)}
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("packed", data=values, **options)
        file.create_dataset("growing", data=values, maxshape=(None, 10))
        file["g/big"] = np.arange(3, dtype=">i8")
        file["g/complex"] = np.array([1 + 2j], np.complex64)
        file["flag"] = np.array([True, False])
        file.create_group("empty")
    read = read_tensors(tmp_path / "x.hdf5")

    assert {"packed", "growing", "g/big", "g/complex", "flag"} == set(read)
    assert np.array_equal(values, read["packed"])
    assert np.array_equal(values, read["growing"])
    assert (np.dtype("i8"), [0, 1, 2]) == (read["g/big"].dtype, read["g/big"].tolist())
    assert (np.complex64, bool) == (read["g/complex"].dtype, read["flag"].dtype)


@every("dtype", DTYPES.values(), ids=str)
def test_onnx_reads_what_we_write(dtype, tmp_path):
    """ONNX's own reader finds name, element type, shape and values."""
    values = np.arange(3).astype(np.int8).astype(dtype.numpy)
    if dtype.name == "string":
        values = np.array(["a", "é", ""], object)
    write_tensors(tmp_path / "x.pb", {"Y/0": values})
    tensor = onnx.load_tensor(tmp_path / "x.pb")

    assert ("Y/0", dtype.onnx, [3]) == (tensor.name, tensor.data_type, list(tensor.dims))
    assert str(values.tolist()) == str(numpy_helper.to_array(tensor).tolist())


TYPED = [row for row in DTYPES.values() if row.name != "string"]


@every("dtype", TYPED, ids=str)
@every("count", [0, 1, 3])
def test_we_read_typed_fields(dtype, count, tmp_path):
    """Values in float_data, int32_data and so on, which is what make_tensor writes."""
    values = (np.arange(count) % 2).astype(np.int8).astype(dtype.numpy)
    tensor = helper.make_tensor("Y", dtype.onnx, [count], values)
    (tmp_path / "x.pb").write_bytes(tensor.SerializeToString())
    read = read_tensors(tmp_path / "x.pb")["Y"]

    assert (dtype.numpy, values.tobytes()) == (read.dtype, read.tobytes())


def test_nameless_tensor_has_the_name_of_its_file(tmp_path):
    """A .pb without a name is read as what the file is called."""
    tensor = TensorProto(data_type=1, dims=[1], float_data=[2])
    (tmp_path / "input_0.pb").write_bytes(tensor.SerializeToString())

    assert {"input_0": [2]} == {
        name: values.tolist() for name, values in read_tensors(tmp_path / "input_0.pb").items()
    }


def test_foreign_padding_is_cleared(tmp_path):
    """Unused bits of elements do not make equal tensors unlike: int4, bools other than 0 and 1."""
    np.savez(tmp_path / "x.npz", flag=np.array([0, 1, 2, 255], np.uint8).view(bool))

    assert [0, 1, 1, 1] == read_tensors(tmp_path / "x.npz")["flag"].view(np.uint8).tolist()
    ours = DTYPES["int4"].numpy
    for number, byte in enumerate((0xFF, 0x0F)):
        write_tensors(tmp_path / f"{number}.npz", {"x": np.array([byte], np.uint8).view(ours)})
    assert (tmp_path / "0.npz").read_bytes() == (tmp_path / "1.npz").read_bytes()


def test_several_tensors_do_not_fit_a_file_of_one(tmp_path):
    """.npy and .pb say that they hold one tensor, and what holds more."""
    for extension in ("npy", "pb"):
        with pytest.raises(InvalidRequest, match=r"exactly one tensor, not 2; write \.npz"):
            write_tensors(tmp_path / f"x.{extension}", {"a": np.ones(1), "b": np.ones(1)})


def test_protobuf_ends_at_2_gib(tmp_path):
    """A tensor that protobuf cannot hold is refused before it is copied."""
    giant = np.broadcast_to(np.float64(1), (1 << 28, 2))
    with pytest.raises(InvalidRequest, match="protobuf's limit is 2 GiB; write"):
        write_tensors(tmp_path / "x.pb", {"Y": giant})


def test_a_bomb_below_the_bound_is_read(tmp_path):
    """Zeros compress 1000-fold in honest files too: up to 128 MiB nothing is refused."""
    np.savez_compressed(tmp_path / "x.npz", mask=np.zeros(64 << 20, bool))

    assert 64 << 20 == read_tensors(tmp_path / "x.npz")["mask"].size


def test_data_behind_the_values_is_not_ignored(tmp_path):
    """A .npy with more in it than its header says is not half read."""
    np.save(tmp_path / "x.npy", np.ones(3))
    with (tmp_path / "x.npy").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(UnreadableFile, match="the data has 28 bytes"):
        read_tensors(tmp_path / "x.npy")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda content: content + b"more", "the data has 28 bytes"),
        (lambda content: content[:-1], "the data has 23 bytes"),
    ],
)
def test_a_member_of_an_archive_is_its_header_and_values(spoil, sentence, method, tmp_path):
    """Neither more nor less than the header says."""
    np.save(tmp_path / "x.npy", np.ones(3))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as archive:
        archive.writestr("x.npy", spoil((tmp_path / "x.npy").read_bytes()))
    with pytest.raises(UnreadableFile, match=sentence):
        read_tensors(tmp_path / "x.npz")


def test_a_member_whose_checksum_is_wrong_is_refused(tmp_path):
    """A bit that was flipped in the values is noticed."""
    np.savez(tmp_path / "x.npz", x=np.ones(3))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[content.index(np.ones(3).tobytes())] ^= 1
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(UnreadableFile, match="CRC"):
        read_tensors(tmp_path / "x.npz")
