"""Claims about data sets beside a model, and about tolerances that can judge."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.models.loading import load_data_set, load_model
from rnncli.numerics import DTYPES, conditioning_problem, limit_of

TEXT = """<ir_version: 3, opset_import: ["" : 8]>
g (float[1] w, float[1] a, float[1] b) => (float[1] c, float[1] d) <float[1] w = {3}> {
    c = Sub (a, b)
    d = Mul (c, w)
}"""


def tensor(name, value):
    """Return a tensor of one number."""
    return numpy_helper.from_array(np.float32([value]), name)


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes a model and its data sets, and loads it."""

    def write(**sets):
        onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "model.onnx")
        for number, files in sets.items():
            path = tmp_path / f"test_data_set_{number.removeprefix('set')}"
            path.mkdir()
            for file, content in files.items():
                (path / f"{file}.pb").write_bytes(content.SerializeToString())
        return load_model(tmp_path)

    return write


def data_sets(model):
    """Load every data set of a model."""
    return [load_data_set(model, path) for path in model.data_sets]


def values(tensors):
    """Return the numbers by name."""
    return {name: array.item() for name, array in tensors.items()}


def test_names_win_over_positions(folder):
    """Files in another order than the graph's are matched by their tensors' names."""
    model = folder(set0={"input_0": tensor("b", 1), "input_1": tensor("a", 2)})

    (found,) = data_sets(model)

    assert values(found.inputs) == {"b": 1, "a": 2}
    assert found.outputs == {}


def test_nameless_tensors_are_matched_by_position(folder):
    """Positions count the inputs that must be fed: the initializer w is none of them."""
    model = folder(
        set0={
            "input_0": tensor("", 1),
            "input_1": tensor("", 2),
            "output_0": tensor("", 3),
            "output_1": tensor("", 4),
        }
    )

    (found,) = data_sets(model)

    assert values(found.inputs) == {"a": 1, "b": 2}
    assert values(found.outputs) == {"c": 3, "d": 4}


def test_sets_and_files_are_in_numeric_order(folder):
    """Set 10 comes after set 9, and an input may be missing in the middle."""
    model = folder(set10={"input_1": tensor("", 2)}, set9={"input_0": tensor("", 1)})

    first, second = data_sets(model)

    assert ("test_data_set_9", "test_data_set_10") == (first.folder.name, second.folder.name)
    assert values(second.inputs) == {"b": 2}


def test_tolerances_lie_beside_outputs(folder):
    """They have the names of the outputs, by name or by position; none is needed."""
    model = folder(
        set0={
            "output_0": tensor("c", 3),
            "output_1": tensor("d", 4),
            "tolerance_1": tensor("d", 0.125),
        }
    )

    (found,) = data_sets(model)

    assert values(found.tolerances) == {"d": 0.125}


@pytest.mark.parametrize(
    ("tolerance", "problem"),
    [
        (np.float32([-1]), "has elements that are negative, infinite or NaN"),
        (np.float32([np.nan]), "has elements that are negative, infinite or NaN"),
        (np.float32([np.inf]), "has elements that are negative, infinite or NaN"),
        (np.float32([1]), "is too wide: tolerance 1 at"),
        (np.float32([[1]]), r"has shape \[1, 1\], and the output \[1\]"),
        (np.int32([1]), "is int32, and should be float32"),
    ],
    ids=str,
)
def test_a_tolerance_that_says_nothing_is_an_error(folder, tolerance, problem):
    """It would let every output pass, or none."""
    found = numpy_helper.from_array(tolerance, "c")
    model = folder(set0={"output_0": tensor("c", 3), "tolerance_0": found})

    with pytest.raises(
        UnreadableFile, match=f"test_data_set_0: the tolerance of output 'c' {problem}"
    ):
        data_sets(model)


def test_a_tolerance_without_output_is_an_error(folder):
    """Something is missing beside it."""
    model = folder(set0={"output_0": tensor("c", 3), "tolerance_1": tensor("d", 1)})

    with pytest.raises(UnreadableFile, match="the tolerance of output 'd' has no output beside it"):
        data_sets(model)


def test_one_tensor_too_many_is_an_error(folder):
    """It would be dropped in silence otherwise."""
    model = folder(set0={"input_2": tensor("", 1)})

    with pytest.raises(InvalidRequest, match=r"holds input_2\.pb, but the model has 2 inputs"):
        data_sets(model)


def test_a_damaged_tensor_is_named(folder, tmp_path):
    """The file is named, and nothing is a traceback."""
    model = folder(set0={"input_0": tensor("", 1)})
    (tmp_path / "test_data_set_0" / "input_0.pb").write_bytes(b"\xff\xff")

    with pytest.raises(UnreadableFile, match=r"input_0\.pb"):
        data_sets(model)


@pytest.mark.parametrize(
    ("wanted", "tolerance"),
    [
        ([1.0, -2.0], [0.0999, 0.0999]),
        ([], []),
        ([0.0, 0.0], [1e-7, 0.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([np.nan, 1.0], [0.0, 0.0499]),
        ([np.inf, 1.0], [0.0, 0.0499]),
        ([np.nan, np.inf], [0.0, 0.0]),
        (np.uint8([128, 130]), [1.0, 0.0]),
        (np.int16([-200, 200]), [0.0, 20.0]),
    ],
)
def test_fit(wanted, tolerance):
    """At most 5 % of the largest finite value; all zeros are compared with 1.

    Of levels, at most 5 % of the distance between them, or one level.
    """
    assert conditioning_problem(np.array(wanted), np.array(tolerance, np.float32)) == ""


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_coarse_dtypes_have_coarse_limits(dtype):
    """5 %, or some roundings where those are more; the sentence names the limit."""
    wanted = np.ones(2, DTYPES[dtype].numpy)
    limit = limit_of(wanted)

    assert limit == 0.05 if dtype != "bfloat16" else 0.05 < limit <= 0.25
    assert conditioning_problem(wanted, np.full(2, limit * 0.99)) == ""
    assert f"at most {limit:.0%}" in conditioning_problem(wanted, np.full(2, limit * 1.01))


@pytest.mark.parametrize(
    ("wanted", "tolerance", "sentence"),
    [
        ([[1.0, -2.0]], [[0.01, 0.12]], "tolerance 0.12 at [0, 1] is 6% of the largest value 2"),
        ([[1.0, -2.0]], [[np.nan, 0.01]], "element [0, 0]: its tolerance is not finite"),
        ([[1.0, -2.0]], [[0.1, np.inf]], "element [0, 1]: its tolerance is not finite"),
        ([[0.0]], [[0.06]], "6% of the largest value 1"),
        ([[np.inf, 1.0]], [[0.0, 0.06]], "6% of the largest value 1"),
        ([[1e-9]], [[1e-7]], "100x the largest value 1e-09"),
        (
            np.uint8([[200, 240]]),
            [[0, 3]],
            "3 at [0, 1] is too wide for levels that are 40",
        ),
        (
            np.uint8([[7]]),
            [[300]],
            "300 at [0, 0] is too wide for levels that are 0 apart",
        ),
    ],
)
def test_unfit(wanted, tolerance, sentence):
    """The sentence says by how much and where; NaN is never a pass."""
    problem = conditioning_problem(np.array(wanted), np.array(tolerance, np.float32))

    assert sentence in problem
