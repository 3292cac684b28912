"""Claims about what the YAML may say of one input."""

import math
from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from rnncli.cases.case import Filling
from rnncli.cases.config.inputs import read_input
from rnncli.cases.fills import FILLS, Blank
from rnncli.cases.yaml_reader import Findings, parse_yaml
from rnncli.files.formats import write_tensors
from rnncli.numerics import dtype_named
from rnncli.operators import OPERATORS

INPUTS = {row.name: row for row in OPERATORS["DynamicQuantizeLSTM-1"].inputs}


def read(text, name="P", shape=(2, 3), dtype="float32", folder=Path()):
    """Return the source of an input, and what is wrong with it."""
    findings = Findings()
    blank = Blank(shape, "[D, n]", dtype_named(dtype), 0, name, 4)
    node = parse_yaml(text, "x.yaml")
    source = read_input(node, INPUTS[name], blank, folder, findings)
    return source, [f"{place}: {sentence}" for place, sentence in findings], blank


def values(text, **more):
    """Return the array an input gets."""
    source, findings, blank = read(text, **more)
    assert findings == []
    return source.arrays(blank, ["case"])[0]


SAME = [
    ["uniform", "{uniform: }", "{uniform: []}", "{uniform: -0.5}", "{uniform: [-0.5, 0.5]}"],
    ["{uniform: [1, 3]}", "{uniform: 1, high: 3}", "{high: 3.0, low: 1, uniform: }"],
    ["zeros", "{zeros: }", "{constant: 0}", "{constant: , value: 0}"],
]


@pytest.mark.parametrize("spellings", SAME, ids=[spellings[0] for spellings in SAME])
def test_parameters_are_given_in_order_or_by_name(spellings):
    """What is not given has its default."""
    first, *others = [values(text) for text in spellings]

    assert all(np.array_equal(first, other) for other in others)


KINDS = {
    "values": ("P", (2, 3), "float32"),
    "lengths": ("sequence_lens", (2,), "int32"),
    "levels": ("W_zero_point", (2,), "uint8"),
}


@pytest.mark.parametrize("name", FILLS)
def test_what_a_fill_writes_of_itself_reads_the_same(name):
    """`inspect` shows YAML that gives the same values."""
    tensor, shape, dtype = KINDS[FILLS[name].kinds[0]]
    text = "{constant: 3}" if name == "constant" else name
    source, _, blank = read(text, name=tensor, shape=shape, dtype=dtype)
    again, _, _ = read(str(source.written).replace("'", ""), name=tensor, shape=shape, dtype=dtype)

    assert isinstance(source, Filling)
    assert source == again
    assert source.arrays(blank, ["case"])[0].shape == shape


def test_a_literal_is_rounded_once_to_the_dtype():
    """Numbers of any spelling, infinities and NaN."""
    found = values("[[1, 0.1, 0x10], [.inf, -.inf, .nan]]", dtype="float16")

    assert found.dtype == np.float16
    assert found[0].tolist() == [1, float(np.float16(0.1)), 16]
    assert found[1, :2].tolist() == [math.inf, -math.inf]
    assert math.isnan(found[1, 2])


@pytest.mark.parametrize(("text", "shape"), [("[]", (0,)), ("[[], []]", (2, 0))])
def test_a_literal_may_be_empty(text, shape):
    """A batch of none has no lengths."""
    assert values(text, shape=shape).shape == shape


REFUSED = {
    "unifrom": "1:1: unknown fill 'unifrom' for P; did you mean 'uniform'?",
    "{unifrom: 1}": "1:2: unknown fill 'unifrom' for P; did you mean 'uniform'?",
    "{}": "1:1: unknown fill '' for P (there are zeros",
    "lengths": "1:1: P cannot be filled by 'lengths'; it takes zeros",
    "{uniform: [1, 2, 3]}": "1:11: 'uniform' takes 2 values (low, high), got 3",
    "{zeros: 1}": "1:9: 'zeros' takes 0 values (none), got 1",
    "{uniform: [a, 1]}": "1:12: 'low' of 'uniform' must be a finite number, got 'a'",
    "{uniform: [true, 1]}": "1:12: 'low' of 'uniform' must be a finite number, got true",
    "{uniform: [.inf, 1]}": "1:12: 'low' of 'uniform' must be a finite number, got inf",
    "{normal: 0, st: 1}": "1:13: fill 'normal' has no parameter 'st'; did you mean 'std'?",
    "{zeros: , q: 1}": "1:11: fill 'zeros' has no parameter 'q'; it has none",
    "{uniform: 0, low: 1}": "1:14: 'low' of 'uniform' is given twice",
    "{uniform: [2, 1]}": "1:1: P: low must not exceed high, got 2 and 1",
    "{uniform: , zeros: }": "1:13: fill 'uniform' has no parameter 'zeros'",
    "{dyadic: [1, 3]}": "1:14: 'denominator' of 'dyadic' must be a power of two up to 256, got 3",
    "{dyadic: 0.5}": "1:10: 'limit' of 'dyadic' must be a positive integer, got 0.5",
    "{special: 0}": "1:11: 'every' of 'special' must be a positive integer, got 0",
    f"{{constant: {'9' * 399}}}": "1:12: 'value' of 'constant' must be a number, got 999",
    "0.5": "1:1: P must be a fill, a list or a file, got 0.5; write {constant: 0.5}",
    "true": "1:1: P must be a fill, a list or a file, got true",
    "[[1, 2, 3], 4]": "1:13: P must be [2, 3] = [D, n]: expected a list of 3 here, got 4",
    "[[1, 2, 3]]": "1:1: P must be [2, 3] = [D, n]: expected a list of 2 here, got 1",
    "[[1, 2, 3], [1, 2]]": "1:13: P must be [2, 3] = [D, n]: expected a list of 3 here, got 2",
    "[[1, 2, 3], [1, 2, [3]]]": "1:20: P wants a number of float32, got a list of 1",
    "[[1, 2, 3], [1, 2, 1_0]]": "1:20: P wants a number of float32, got '1_0'",
    "[[1, 2, 3], [1, 2, ~]]": "1:20: P wants a number of float32, got null",
    "[[1, 2, 3], [1, 2, true]]": "1:20: P wants a number of float32, got true",
    "[[1, 2, 3], [1, 2, 1e39]]": "1:1: P holds 1e+39, which float32 cannot hold",
    "{file: }": "1:7: 'file' must be a name, got null",
    "{file: 3}": "1:8: 'file' must be a name, got 3",
    "{file: ''}": "1:8: 'file' must be a name, got ''",
    "{file: a.npz, kye: b}": "1:15: unknown key 'kye' beside 'file'; did you mean 'key'?",
    "{file: nope.npz}": "1:8: P: nope.npz: no such file",
    "{file: /dev/zero}": "1:8: P: '/dev/zero' is not a path below a folder: it is absolute",
    "{file: .}": "1:8: P: '.' is not a path below a folder: it has the part '.'",
    f"{{file: {'x' * 5000}.npz}}": "1:8: P: ",
}


@every(("text", "start"), REFUSED.items(), ids=range(len(REFUSED)))
def test_what_is_wrong_is_said_at_its_place(text, start):
    """One finding, at the number, key or list that is wrong."""
    source, (finding,), _ = read(text)

    assert source is None
    assert finding.startswith(f"x.yaml:{start}")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("uniform", "1:1: sequence_lens cannot be filled by 'uniform'; it takes zeros"),
        ("{constant: 1.5}", "1:1: sequence_lens: 1.5 is not an integer"),
        ("[1, 2.0]", "1:5: sequence_lens wants an integer of int32, got 2.0"),
        ("[1, 3000000000]", "1:5: sequence_lens wants an integer of int32, got 3000000000"),
        ("[1]", "1:1: sequence_lens must be [2]"),
        ("4", "1:1: sequence_lens must be a fill, a list or a file, got 4; write {constant: 4}"),
    ],
)
def test_lengths_are_integers(text, start):
    """Of the operator's type, one for each sequence."""
    _, (finding,), _ = read(text, name="sequence_lens", shape=(2,), dtype="int32")

    assert finding.startswith(f"x.yaml:{start}")


def test_a_file_lies_relative_to_the_yaml(tmp_path):
    """The folder is the YAML's, not the process's; a file of one tensor needs no key."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_tensors(tmp_path / "a.npz", {"p": array})
    write_tensors(tmp_path / "b.npy", {"b": array})

    for text in ("{file: a.npz, key: p}", "{file: a.npz}", "{file: b.npy}"):
        assert np.array_equal(values(text, folder=tmp_path), array)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((3, 2), np.float32), "P must be [2, 3] = [D, n] by sizes"),
        (np.zeros((2, 3), np.float64), "P must be float32, got float64 from the file"),
    ],
)
def test_a_file_of_the_wrong_tensor_is_refused(tmp_path, array, sentence):
    """Shape and dtype are the case's; nothing is converted in silence."""
    write_tensors(tmp_path / "a.npz", {"p": array})

    _, (finding,), _ = read("{file: a.npz, key: p}", folder=tmp_path)

    assert sentence in finding


@pytest.mark.parametrize("key", ["q", "''"])
def test_a_key_that_is_not_there_is_refused(tmp_path, key):
    """Also an empty one."""
    write_tensors(tmp_path / "a.npz", {"p": np.zeros((2, 3), np.float32)})

    source, findings, _ = read(f"{{file: a.npz, key: {key}}}", folder=tmp_path)

    assert source is None
    assert len(findings) == 1


def test_a_file_that_is_none_is_refused(tmp_path):
    """Foreign bytes give one line, at the file's name."""
    (tmp_path / "a.npz").write_bytes(b"not a zip")

    _, (finding,), _ = read("{file: a.npz, key: p}", folder=tmp_path)

    assert finding.startswith("x.yaml:1:8: P: ")
    assert "\n" not in finding
