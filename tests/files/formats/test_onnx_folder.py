"""ONNX test cases as folders: read as they are found, replaced only when nothing else is lost."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from rnncli.errors import InvalidRequest, UnreadableFile, Unsupported
from rnncli.files.atomic import RECORD
from rnncli.files.formats.format import DataSet
from rnncli.files.formats.onnx_folder import read_data_sets, write_test_case

RESULTS = DataSet(
    inputs={"X": np.ones((2, 3), np.float32), "lens": np.array([2, 1], np.int32)},
    outputs={"Y": np.zeros(2)},
)


def put(folder, file, values=None, name=""):
    """Write one tensor into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tensor = numpy_helper.from_array(np.float32(0) if values is None else values, name)
    (folder / file).write_bytes(tensor.SerializeToString())


def test_layout_is_the_one_of_onnx(tmp_path):
    """model.onnx beside test_data_set_0/ with input_K.pb and output_K.pb, names inside."""
    write_test_case(tmp_path / "case", [RESULTS, RESULTS], {"model.onnx": b"model"})
    files = sorted(str(file.relative_to(tmp_path / "case")) for file in tmp_path.rglob("*.*"))

    assert files == [
        RECORD,
        "model.onnx",
        *(
            f"test_data_set_{number}/{tensor}.pb"
            for number in (0, 1)
            for tensor in ("input_0", "input_1", "output_0")
        ),
    ]
    tensor = onnx.load_tensor(tmp_path / "case/test_data_set_1/input_1.pb")
    assert ("lens", [2]) == (tensor.name, list(tensor.dims))


def test_data_sets_and_tensors_are_in_numeric_order(tmp_path):
    """test_data_set_10 follows test_data_set_9, input_10 follows input_9."""
    for number in (9, 10):
        for position in range(12):
            folder = tmp_path / f"test_data_set_{number}"
            put(folder, f"input_{position}.pb", np.array([number, position]))
    sets = read_data_sets(tmp_path)

    assert [9, 10] == [each.inputs["input_0"].tolist()[0] for each in sets]
    assert list(range(12)) == [values.tolist()[1] for values in sets[0].inputs.values()]


@pytest.mark.parametrize(
    ("names", "read_as"),
    [
        (["a", "b"], ["a", "b"]),
        (["", ""], ["input_0", "input_1"]),
        (["a", ""], ["input_0", "input_1"]),
        (["a", "a"], ["input_0", "input_1"]),
        (["input_1", ""], ["input_0", "input_1"]),
    ],
)
def test_nameless_tensors_are_told_by_position(names, read_as, tmp_path):
    """When one has no name of its own, all go by position."""
    for position, name in enumerate(names):
        put(tmp_path, f"input_{position}.pb", np.array(position), name)
    (data_set,) = read_data_sets(tmp_path)

    assert read_as == list(data_set.inputs)
    assert [0, 1] == [values.item() for values in data_set.inputs.values()]


def test_other_files_of_a_case_are_left_alone(tmp_path):
    """Licences and the files that macOS leaves behind are no tensors."""
    put(tmp_path, "input_0.pb", name="X")
    (tmp_path / "._input_1.pb").write_bytes(b"junk")
    (tmp_path / "LICENSE").write_text("free")

    assert ["X"] == list(read_data_sets(tmp_path)[0].inputs)


def test_a_gap_is_named(tmp_path):
    """Without input_1 nobody knows which input input_2 is."""
    for position in (0, 2):
        put(tmp_path, f"input_{position}.pb")
    with pytest.raises(UnreadableFile, match=r"input_1\.pb is missing, of 2 inputs"):
        read_data_sets(tmp_path)


def test_a_folder_of_other_things_is_no_case(tmp_path):
    """The sentence says what a test case would have."""
    (tmp_path / "readme.txt").write_text("hello")
    with pytest.raises(UnreadableFile, match=f"^{tmp_path}: is not an ONNX test case"):
        read_data_sets(tmp_path)


def test_a_sequence_is_unsupported_and_its_file_named(tmp_path):
    """A sequence input is right but not supported: exit code 3, with the path of the file."""
    tensor = TensorProto(data_type=1, dims=[1], float_data=[2])
    sequence = onnx.SequenceProto(elem_type=1, tensor_values=[tensor])
    (tmp_path / "input_0.pb").write_bytes(sequence.SerializeToString())
    with pytest.raises(Unsupported, match=r"input_0\.pb: holds an ONNX sequence"):
        read_data_sets(tmp_path)


def test_a_test_case_is_replaced_as_a_whole(tmp_path):
    """Nothing of the old data sets stays behind."""
    case = tmp_path / "case"
    write_test_case(case, [RESULTS, RESULTS], {"model.onnx": b"old", "weights.bin": b"old"})
    write_test_case(case, [DataSet(outputs={"Y": np.ones(1)})], {"weights.bin": b"new"})

    assert [RECORD, "test_data_set_0", "weights.bin"] == sorted(
        each.name for each in case.iterdir()
    )
    assert ["output_0.pb"] == [each.name for each in (case / "test_data_set_0").iterdir()]
    assert ["case"] == [each.name for each in tmp_path.iterdir()]


@pytest.mark.parametrize(
    "foreign",
    [
        *("thesis.tex", "test_data_set_0/notes.txt", "test_data_set_0", "sub/model.onnx"),
        *("model.onnx", "test_data_set_0/output_0.pb"),  # of an exporter's own
    ],
)
def test_a_foreign_folder_is_never_replaced(foreign, tmp_path):
    """One file that is not ours, anywhere in it, and the folder stays as it is."""
    case = tmp_path / "case"
    (case / foreign).parent.mkdir(parents=True)
    (case / foreign).write_text("ten years of work")
    with pytest.raises(InvalidRequest, match=r"cannot write \S+: the folder holds other files"):
        write_test_case(case, [RESULTS], {})

    assert "ten years of work" == (case / foreign).read_text()
    assert ["case"] == [each.name for each in tmp_path.iterdir()]


def test_an_empty_folder_is_filled(tmp_path):
    """A folder made beforehand is as good as none."""
    (tmp_path / "case").mkdir()
    write_test_case(tmp_path / "case", [RESULTS], {})

    assert ["X", "lens"] == list(read_data_sets(tmp_path / "case")[0].inputs)


def test_a_folder_does_not_replace_a_file(tmp_path):
    """A file in the way is named."""
    (tmp_path / "case").write_text("a file")
    with pytest.raises(InvalidRequest, match="it is a file, not a folder"):
        write_test_case(tmp_path / "case", [RESULTS], {})


def test_files_are_copied_even_from_the_folder_itself(tmp_path):
    """A case can be written over itself, with the model it has."""
    case = tmp_path / "case"
    write_test_case(case, [RESULTS], {"model.onnx": b"model"})
    write_test_case(case, [RESULTS, RESULTS], {"model.onnx": case / "model.onnx"})

    assert b"model" == (case / "model.onnx").read_bytes()
    assert 2 == len(read_data_sets(case))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "test_data_set_0"])
def test_files_stay_in_the_folder(name, tmp_path):
    """What goes beside the data sets is named, not placed."""
    with pytest.raises(InvalidRequest, match="is not a valid name beside"):
        write_test_case(tmp_path / "case", [RESULTS], {name: b""})


def test_a_failure_leaves_the_old_case(tmp_path):
    """A file that cannot be copied: one sentence, the old case, no temporary."""
    case = tmp_path / "case"
    write_test_case(case, [RESULTS], {"model.onnx": b"old"})
    with pytest.raises(InvalidRequest, match=r"none.onnx: no such file"):
        write_test_case(case, [RESULTS], {"model.onnx": tmp_path / "none.onnx"})

    assert b"old" == (case / "model.onnx").read_bytes()
    assert ["case"] == [each.name for each in tmp_path.iterdir()]
