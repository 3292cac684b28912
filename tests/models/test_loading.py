"""Claims about reading models: every form is read, every damage is one sentence."""

import io
import os
import tarfile
import zipfile
from contextlib import nullcontext

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.bombs import gzip_of_zeros, zip_of_zeros
from support.real_models import DATA

import rnncli
from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.models.loading import ARCHIVES, FOREIGN, FORMATS, load_model, model_from
from rnncli.models.sessions import evaluate_model
from rnncli.models.tensor_values import fields

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
X = {"x": np.float32([1, 2])}


@pytest.fixture
def proto():
    """Return a model that negates."""
    return onnx.parser.parse_model(TEXT)


@pytest.fixture
def zoo(tmp_path, proto):
    """Return a folder in model-zoo form, its data sets numbered 2 and 10, packed with metadata."""
    folder = tmp_path / "zoo" / "net"
    for number in (10, 2):
        (folder / f"test_data_set_{number}").mkdir(parents=True)
        (folder / f"test_data_set_{number}" / "input_0.pb").write_bytes(b"not read here")
    onnx.save(proto, folder / "model.onnx")
    (folder / "._model.onnx").write_bytes(b"macOS")
    (folder / "notes.txt").write_text("hello")
    return folder


def pack(folder, path):
    """Write an archive whose members begin with the folder's name."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(folder.parent))
    else:
        with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as archive:
            archive.add(folder, folder.name)
    return path


@pytest.mark.parametrize("extension", FORMATS)
def test_every_format_is_read(tmp_path, proto, extension):
    """A model means the same in all four formats."""
    path = tmp_path / f"m{extension}"
    onnx.save(proto, path, format=FORMATS[extension])

    assert [-1, -2] == evaluate_model(load_model(path), X)["y"].tolist()


@pytest.mark.parametrize("extension", ARCHIVES)
def test_archives_are_read_and_cleaned_up(zoo, tmp_path, extension):
    """The model of an archive runs, and its temporary folder goes with the model."""
    model = load_model(pack(zoo, tmp_path / f"net{extension}"))
    folder = model.folder

    assert [-1, -2] == evaluate_model(model, X)["y"].tolist()
    assert ["test_data_set_2", "test_data_set_10"] == [path.name for path in model.data_sets]
    assert model.name.endswith(f"net{extension}")
    assert folder.is_dir()
    del model
    assert not folder.exists()


def test_an_archive_stays_while_a_session_needs_it(zoo, tmp_path):
    """Evaluators that other threads need read external data, after the model itself has gone."""
    weights = numpy_helper.from_array(np.float32([2, 3]), "w")
    proto = onnx.parser.parse_model(TEXT.replace("Neg (x)", "Mul (x, w)"))
    proto.graph.initializer.append(weights)
    onnx.save(proto, zoo / "model.onnx", save_as_external_data=True, size_threshold=0, location="w")

    session = rnncli.prepare(pack(zoo, tmp_path / "net.zip"))
    anew = session._prepared._prepared()

    assert anew.outputs(X)["y"].tolist() == session.run(X)["y"].tolist() == [2, 6]


def test_a_folder_is_read(zoo):
    """``model.onnx`` in a folder is the model, even beside others; data sets in numeric order."""
    onnx.save(onnx.parser.parse_model(TEXT.replace("Neg", "Abs")), zoo / "another.onnx")

    model = load_model(zoo)

    assert [-1, -2] == evaluate_model(model, X)["y"].tolist()
    assert ["test_data_set_2", "test_data_set_10"] == [path.name for path in model.data_sets]


def test_a_folder_without_one_model_is_an_error(tmp_path, proto):
    """None, and two of them, are different sentences."""
    with pytest.raises(UnreadableFile, match=r"no model\.onnx and no other"):
        load_model(tmp_path)
    for name in ("a.onnx", "b.onnx"):
        onnx.save(proto, tmp_path / name)
    with pytest.raises(InvalidRequest, match=r"several models, name one: a\.onnx, b\.onnx"):
        load_model(tmp_path)


DAMAGED = {
    "empty": (b"", "is empty"),
    "LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n", "git lfs pull"),
    "foreign": (b"\x89PNG\r\n\x1a\n" + bytes(100), "not an ONNX model"),
    "text": (b"hello world\n", "not an ONNX model"),
    "no graph": (onnx.ModelProto(ir_version=8).SerializeToString(), "has no graph"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_is_named(tmp_path, kind):
    """The sentence begins with the path and says what the file is instead."""
    content, reason = DAMAGED[kind]
    path = tmp_path / "m.onnx"
    path.write_bytes(content)

    with pytest.raises(UnreadableFile, match=reason) as caught:
        load_model(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("extension", FORMATS)
def test_truncated_files_are_refused(tmp_path, proto, extension):
    """Half a model is not a model, in any format."""
    path = tmp_path / f"m{extension}"
    onnx.save(proto, path, format=FORMATS[extension])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    with pytest.raises(InvalidRequest, match=str(path)):
        evaluate_model(load_model(path), X)


def test_missing_files_and_devices_are_refused(tmp_path):
    """Neither is opened, so a pipe cannot hang."""
    os.mkfifo(tmp_path / "pipe.onnx")

    with pytest.raises(UnreadableFile, match="no such file"):
        load_model(tmp_path / "none.onnx")
    with pytest.raises(UnreadableFile, match="not a file"):
        load_model(tmp_path / "pipe.onnx")


@pytest.mark.parametrize("opening", [b"(", b"seq(", b"{"])
def test_deep_text_does_not_overflow_the_stack(tmp_path, opening):
    """Onnx's text parser has no limit of its own."""
    path = tmp_path / "m.onnxtxt"
    path.write_bytes(b"<ir_version: 8> g (" + opening * 200_000)

    with pytest.raises(UnreadableFile, match="nested deeper"):
        load_model(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"graph":' * 5000, '{"graph": {"node": 3}}'])
def test_deep_or_odd_json_is_refused(tmp_path, text):
    """Python's recursion limit is a sentence too."""
    path = tmp_path / "m.json"
    path.write_text(text)

    with pytest.raises(UnreadableFile, match=r"not an ONNX model|nested deeper"):
        load_model(path)


def field(number, content):
    """Return a length-delimited field of a protobuf."""
    length = len(content)
    digits = bytearray()
    while length > 127:
        digits.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *digits, length]) + content


NODE, INITIALIZER, OUTPUT, ATTRIBUTE = 1, 5, 12, 5
BOMBS = {
    "nodes": field(NODE, b"") * 2_000_000,
    "initializers": field(INITIALIZER, b"") * 2_000_000,
    "outputs": field(OUTPUT, b"") * 2_000_000,
    "attributes of a node": field(NODE, field(ATTRIBUTE, b"") * 2_000_000),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_protobuf_of_nothing_is_refused_unparsed(tmp_path, kind):
    """Four megabytes of empty messages would take a hundred times that."""
    path = tmp_path / "m.onnx"
    path.write_bytes(field(7, BOMBS[kind]))

    with pytest.raises(UnreadableFile, match="more than 500000 nodes"):
        load_model(path)


def test_zeros_are_no_fields():
    """No field has the number 0: a megabyte of zeros is malformed at its first byte."""
    assert [] == list(fields(bytes(1 << 20), 0, 1 << 20))


def test_a_protobuf_of_numbers_is_refused_unparsed(tmp_path, monkeypatch):
    """To walk through many tiny fields that are no messages takes long, too."""
    monkeypatch.setattr("rnncli.models.tensor_values._MOST_FIELDS", 1000)
    (tmp_path / "m.onnx").write_bytes(b"\x08\x01" * 1001)

    with pytest.raises(UnreadableFile, match="more than 1000 fields"):
        load_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("extension", [".json", ".textproto", ".onnxtxt"])
def test_a_text_of_nothing_is_refused_unparsed(tmp_path, extension):
    """Two million empty brackets are no model."""
    path = tmp_path / f"m{extension}"
    path.write_bytes(b'{"graph": {"node": [' + b"{}," * 2_000_000 + b"]}}")

    with pytest.raises(UnreadableFile, match="more than 500000 brackets"):
        load_model(path)


def bomb_zip(path):
    """Write a zip of a gigabyte of zeros."""
    path.write_bytes(zip_of_zeros(b"model.onnx", 1 << 30))


def lying_zip(path):
    """Write a zip whose directory claims a tenth of a member's true size."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.onnx", bytes(1000))
    content = buffer.getvalue().replace((1000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(content)


def bomb_tar(path):
    """Write a tar.gz that claims a member of a terabyte."""
    info = tarfile.TarInfo("model.onnx")
    info.size = 1 << 40
    with tarfile.open(path, "w:gz") as archive:
        archive.fileobj.write(info.tobuf())


def header_bomb_tar(path):
    """Write a tar.gz with an extended header of a gigabyte, which tarfile reads whole."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 30
    path.write_bytes(gzip_of_zeros(info.size, info.tobuf()))


def tar_of(info, content=b""):
    """Return a function that writes a tar with one member."""

    def write(path):
        info.size = len(content)
        with tarfile.open(path, "w") as archive:
            archive.addfile(info, io.BytesIO(content))

    return write


def link(name, target, kind):
    """Return the header of a link."""
    info = tarfile.TarInfo(name)
    info.linkname, info.type = target, kind
    return info


def zip_link(path):
    """Write a zip with a symbolic link."""
    info = zipfile.ZipInfo("model.onnx")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")


def zip_traversal(path):
    """Write a zip with a member above its folder."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.onnx", b"x")


def tar_of_text_for_a_number(path):
    """Write a tar whose extended header has text where tarfile expects numbers."""
    info = tarfile.TarInfo("model.onnx")
    info.pax_headers = {"GNU.sparse.map": "many"}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)


def zip_without_name(path):
    """Write a zip with a member of no name, of which zipfile asks whether it ends in a slash."""
    zip_traversal(path)
    name = b"../../evil.onnx"
    content = path.read_bytes()
    at = content.rindex(name) - 46 + 28  # the length of the name in the directory
    content = content[:at] + bytes(2) + content[at + 2 :]
    path.write_bytes(content.replace(name, b"", 2))


def damaged_lzma_zip(path):
    """Write a zip whose one member is compressed by LZMA, and damaged."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("model.onnx", bytes(range(256)) * 20)
    content = bytearray(path.read_bytes())
    content[50:90] = bytes(40)
    path.write_bytes(content)


HOSTILE = {
    "lzma.zip": (damaged_lzma_zip, "lzma.zip: is damaged"),
    "number.tar": (tar_of_text_for_a_number, "number.tar: is damaged"),
    "nameless.zip": (zip_without_name, "nameless.zip: "),
    "bomb.zip": (bomb_zip, "far more than a model"),
    "lying.zip": (lying_zip, "larger than it may be|damaged"),
    "bomb.tar.gz": (bomb_tar, "far more than a model"),
    "header.tgz": (header_bomb_tar, "larger than it may be"),
    "absolute.tar": (tar_of(tarfile.TarInfo("/tmp/evil.onnx")), "outside its folder"),  # noqa: S108
    "above.tar": (tar_of(tarfile.TarInfo("a/../../evil.onnx")), "outside its folder"),
    "symlink.tar": (tar_of(link("model.onnx", "/etc/passwd", tarfile.SYMTYPE)), "link or a device"),
    "hardlink.tar": (tar_of(link("model.onnx", "x", tarfile.LNKTYPE)), "link or a device"),
    "device.tar": (tar_of(link("model.onnx", "", tarfile.CHRTYPE)), "link or a device"),
    "link.zip": (zip_link, "link or a device"),
    "above.zip": (zip_traversal, "outside its folder"),
    "foreign.zip": (
        lambda path: path.write_bytes(b"PK\x03\x04 no zip"),
        "is damaged: File is not a zip",
    ),
    "foreign.tgz": (lambda path: path.write_bytes(b"\x1f\x8b no gzip"), "foreign.tgz: "),
    "empty.zip": (lambda path: path.write_bytes(b""), "the file is empty"),
    "empty.tar": (lambda path: path.write_bytes(b""), "the file is empty"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(tmp_path, monkeypatch, name):
    """Bombs, links and paths outside write nothing that stays."""
    write, reason = HOSTILE[name]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    write(tmp_path / name)

    with pytest.raises(UnreadableFile, match=reason):
        load_model(tmp_path / name)

    assert [] == list((tmp_path / "tmp").iterdir())
    assert [] == list(tmp_path.rglob("evil.onnx"))


@pytest.mark.parametrize(("zeros", "is_read"), [(60_000, True), (1_000_000, False)])
def test_an_archive_unpacks_to_so_many_times_its_size(zoo, tmp_path, monkeypatch, zeros, is_read):
    """A model that compresses well is read; a bomb is not. Small ones are read in any case."""
    monkeypatch.setattr("rnncli.models.archives._ALWAYS_ALLOWED", 0)
    noise = np.random.default_rng(1).bytes(10_000)
    (zoo / "notes.txt").write_bytes(noise + bytes(zeros))
    path = pack(zoo, tmp_path / "net.zip")

    assert path.stat().st_size < zeros
    with nullcontext() if is_read else pytest.raises(UnreadableFile, match="unpacks to far more"):
        load_model(path)


def test_members_of_one_name_are_refused(tmp_path, proto):
    """A second member cannot replace the first."""
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("model.onnx", proto.SerializeToString())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("model.onnx", b"")

    with pytest.raises(UnreadableFile, match=r"holds 'model\.onnx' twice"):
        load_model(tmp_path / "twice.zip")


@pytest.fixture
def external(tmp_path):
    """Return a model whose weight lies in a file beside it."""
    weight = numpy_helper.from_array(np.float32([3, 5]), "w")
    model = onnx.parser.parse_model(TEXT.replace("Neg (x)", "Mul (x, w)"))
    model.graph.initializer.append(weight)
    (tmp_path / "in").mkdir()
    onnx.save(
        model,
        tmp_path / "in" / "m.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    return tmp_path / "in" / "m.onnx"


def relocate(path, **entries):
    """Change where the weight's data is said to lie."""
    model = onnx.load(path, load_external_data=False)
    tensor = model.graph.initializer[0]
    for entry in tensor.external_data:
        entry.value = str(entries.pop(entry.key, entry.value))
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    onnx.save(model, path)
    return path


def test_external_data_is_found_beside_the_model(external, monkeypatch, tmp_path):
    """By the model's folder, not by where the program runs."""
    monkeypatch.chdir(tmp_path)

    assert [3, 10] == evaluate_model(load_model(external), X)["y"].tolist()


def outside(path):
    """Make the data's file a link to one outside."""
    (path.parent.parent / "secret").write_bytes(bytes(8))
    (path.parent / "weights.bin").unlink()
    (path.parent / "weights.bin").symlink_to(path.parent.parent / "secret")


ASTRAY = {
    "above": (lambda path: relocate(path, location="../m"), "outside the model's folder"),
    "absolute": (lambda path: relocate(path, location="/etc/passwd"), "outside the model's folder"),
    "link": (outside, "outside the model's folder"),
    "missing": (lambda path: (path.parent / "weights.bin").unlink(), "no such file"),
    "folder": (lambda path: relocate(path, location="."), "outside the model's folder"),
    "none": (lambda path: relocate(path, location=""), "outside the model's folder"),
    "short": (lambda path: (path.parent / "weights.bin").write_bytes(b"1234"), "takes 8 bytes"),
    "offset": (lambda path: relocate(path, offset=4), "takes 8 bytes"),
    "length": (lambda path: relocate(path, length=4), "takes 8 bytes"),
    "negative": (lambda path: relocate(path, offset=-4), "not an offset or length"),
}


@pytest.mark.parametrize("way", ASTRAY)
def test_external_data_astray_is_refused(external, way):
    """Never a file outside the model's folder, never fewer bytes than the shape needs."""
    change, reason = ASTRAY[way]
    change(external)

    with pytest.raises(InvalidRequest, match=f"m.onnx: tensor 'w': .*{reason}"):
        evaluate_model(load_model(external), X)


def test_a_link_inside_the_folder_is_fine(external):
    """What counts is where it leads."""
    folder = external.parent
    (folder / "weights.bin").rename(folder / "blob")
    (folder / "weights.bin").symlink_to("blob")

    assert [3, 10] == evaluate_model(load_model(external), X)["y"].tolist()


def test_attributes_may_be_external_too(external):
    """A Constant's value is found beside the model, whatever folder the program runs in."""
    model = onnx.load(external, load_external_data=False)
    constant = helper.make_node("Constant", [], ["w"])
    constant.attribute.add(name="value", type=4, t=model.graph.initializer.pop())
    model.graph.node.insert(0, constant)
    onnx.save(model, external)

    assert [3, 10] == evaluate_model(load_model(external), X)["y"].tolist()


def test_a_model_above_two_gigabytes_runs(tmp_path):
    """Its weights are mapped, never serialised: a sparse file of 3 GB costs nothing."""
    tensor = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=(3 << 18, 1 << 10))
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="table.bin")
    with (tmp_path / "table.bin").open("wb") as file:
        file.truncate(3 << 30)
        file.seek((3 << 30) - 4)
        file.write(np.float32(7).tobytes())
    model = onnx.parser.parse_model(
        TEXT.replace("float[2] x", "int64[1] x").replace("Neg (x)", "Gather (table, x)")
    )
    model.graph.initializer.append(tensor)
    onnx.save(model, tmp_path / "m.onnx")

    rows = evaluate_model(load_model(tmp_path / "m.onnx"), {"x": np.int64([(3 << 18) - 1])})["y"]

    assert rows[0, -1] == 7
    assert not rows[0, :-1].any()


def test_packed_types_are_external_data_too(tmp_path):
    """Two int4 values take one byte in the file."""
    weight = helper.make_tensor("w", TensorProto.INT4, [3], [1, -2, 3])
    model = onnx.parser.parse_model(
        TEXT.replace("17", "21")
        .replace("float[2] y", "float[3] y")
        .replace("Neg (x)", "Cast <to=1> (w)")
    )
    (tmp_path / "w.bin").write_bytes(bytes([0xE1, 0x03]))
    weight.ClearField("int32_data")
    weight.external_data.add(key="location", value="w.bin")
    weight.data_location = TensorProto.EXTERNAL
    model.graph.initializer.append(weight)
    onnx.save(model, tmp_path / "m.onnx")

    assert [1, -2, 3] == evaluate_model(load_model(tmp_path / "m.onnx"), X)["y"].tolist()


def test_a_giant_shape_with_little_data_is_refused():
    """An initializer's declared shape allocates nothing."""
    for tensor in (
        TensorProto(name="w", data_type=1, dims=[1 << 40, 1 << 20], raw_data=b"1234"),
        TensorProto(name="w", data_type=1, dims=[1 << 40], float_data=[1]),
        TensorProto(name="w", data_type=22, dims=[1 << 40], raw_data=b"1"),
        TensorProto(name="w", data_type=1, dims=[-1], raw_data=b"1234"),
        TensorProto(name="w", data_type=99, dims=[1], raw_data=b"1234"),
        TensorProto(name="w", data_type=8, dims=[1], string_data=[b"\xff"]),
    ):
        model = onnx.parser.parse_model(TEXT)
        model.graph.initializer.append(tensor)
        with pytest.raises(InvalidRequest, match="tensor 'w'"):
            evaluate_model(_reloaded(model), X)


def test_sparse_initializers_are_dense_values():
    """Linear and coordinate indices both; a giant shape is refused."""
    for indices in (np.int64([1]), np.int64([[1]])):
        model = onnx.parser.parse_model(TEXT.replace("Neg (x)", "Add (x, s)"))
        sparse = model.graph.sparse_initializer.add(dims=[2])
        sparse.values.CopyFrom(numpy_helper.from_array(np.float32([9]), "s"))
        sparse.indices.CopyFrom(numpy_helper.from_array(indices))
        assert [1, 11] == evaluate_model(_reloaded(model), X)["y"].tolist()

        sparse.dims[0] = 1 << 60
        with pytest.raises(InvalidRequest, match=r"sparse tensor 's' takes .* TiB"):
            evaluate_model(_reloaded(model), X)


def _reloaded(proto):
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    return model_from(copy)


def test_the_message_names_the_file_as_given(monkeypatch):
    """A relative path stays relative."""
    monkeypatch.chdir(DATA)

    assert load_model("silero-vad").name == "silero-vad"


@pytest.mark.parametrize("extension", FOREIGN)
def test_a_file_of_another_program_is_told_with_a_way_to_a_model(tmp_path, extension):
    """By its name: nothing of it is read."""
    path = tmp_path / f"their{extension}"
    path.write_bytes(b"anything")

    with pytest.raises(InvalidRequest, match=r"model.onnx|--inputs|the .onnx file") as told:
        load_model(path)
    assert str(told.value).startswith(f"{path}: ")


def test_a_folder_of_configs_names_one(tmp_path):
    """They are targets, the folder is not."""
    (tmp_path / "gru.yaml").touch()
    with pytest.raises(UnreadableFile, match=r"one by one, as .*/gru.yaml"):
        load_model(tmp_path)


def test_of_a_missing_file_the_nearest_name_is_told(tmp_path):
    """Beside it, whatever reads it."""
    (tmp_path / "models.npz").touch()
    with pytest.raises(UnreadableFile, match=r"no such file; did you mean 'models.npz'"):
        rnncli.read_tensors(tmp_path / "model.npz")
