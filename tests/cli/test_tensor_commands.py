"""`rnncli compare` and `rnncli convert`."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from rnncli.files.formats import read_tensors, write_tensors
from rnncli.packs.pack import open_pack

CORE = Path(__file__).parents[2] / "vectors" / "core"
TENSORS = {
    "Y": np.array([[1.0, -0.0], [np.nan, 3.0]], np.float32),
    "deep/name": np.array([1.5, np.inf], ml_dtypes.bfloat16),
    "empty": np.zeros((0, 3), np.int64),
}


def test_conversion_there_and_back_keeps_every_bit(rnncli, tmp_path):
    """From npz to h5 to an ONNX folder to npz: the same file again, but for the last one's seal."""
    write_tensors(tmp_path / "a.npz", TENSORS)
    for source, destination in (("a.npz", "b.h5"), ("b.h5", "c"), ("c", "d.npz")):
        assert rnncli("convert", tmp_path / source, tmp_path / destination).code == 0

    write_tensors(tmp_path / "again.npz", read_tensors(tmp_path / "d.npz"))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    assert list(read_tensors(tmp_path / "d.npz")) == list(TENSORS)


def test_model_of_a_test_case_goes_along_or_is_missed_aloud(rnncli, tmp_path):
    """Folder to folder keeps model.onnx; a file has no place for it, and the warning says so."""
    rnncli("run", "gru_7", "-o", tmp_path / "case")

    assert rnncli("convert", tmp_path / "case", tmp_path / "copy").err == ""
    assert rnncli("run", tmp_path / "copy", "--max-ulp", 0).code == 0
    assert "model.onnx of" in rnncli("convert", tmp_path / "case", tmp_path / "case.npz").err


@pytest.mark.parametrize(
    ("options", "code"), [((), 0), (("--equal-nan",), 0), (("--no-equal-nan",), 1)]
)
def test_nan_equals_nan_unless_told_otherwise(rnncli, tmp_path, options, code):
    """-0.0 equals 0.0 always, NaN equals NaN without --no-equal-nan."""
    write_tensors(tmp_path / "a.npz", TENSORS)
    write_tensors(tmp_path / "b.h5", {**TENSORS, "Y": np.abs(TENSORS["Y"])})

    assert rnncli("compare", tmp_path / "a.npz", tmp_path / "b.h5", *options).code == code


def test_difference_is_measured_and_placed(rnncli, tmp_path):
    """Per output: max abs, rel and ulp, and where; tolerances may name one output."""
    wanted = {"Y": np.ones((2, 3), np.float32), "Y_h": np.ones(4, np.float32)}
    got = {name: values.copy() for name, values in wanted.items()}
    got["Y"][1, 2] = np.nextafter(np.float32(1), np.float32(2))
    write_tensors(tmp_path / "got.npz", got)
    write_tensors(tmp_path / "wanted.npz", wanted)
    files = (tmp_path / "got.npz", tmp_path / "wanted.npz")

    outcome = rnncli("compare", *files)
    assert outcome.code == 1
    row = outcome.rows[0]
    assert (row["output"], row["verdict"], row["differing"]) == ("Y", "differs", "1 of 6")
    assert (row["max ulp"], row["worst at"]) == ("1", "[1,2]")
    assert (row["got"], row["wanted"]) == ("1.00000012", "1")
    assert outcome.rows[1]["verdict"] == "agrees"

    assert rnncli("compare", *files, "--max-ulp", "Y:1").code == 0
    assert rnncli("compare", *files, "--max-ulp", "Y_h:1").code == 1
    assert rnncli("compare", *files, "--max-ulp", "Z:1").code == 2
    record = json.loads(rnncli("compare", *files, "--json").out.splitlines()[0])
    assert (record["name"], record["agrees"], record["max_ulp"]) == ("Y", False, 1)


def test_missing_and_misshapen_outputs_differ(rnncli, tmp_path):
    """An output that is missing, extra, or of another shape or dtype is a difference."""
    write_tensors(tmp_path / "a.npz", {"Y": np.zeros(2), "Z": np.zeros(2), "V": np.zeros(1)})
    write_tensors(
        tmp_path / "b.npz", {"Y": np.zeros(3), "V": np.zeros(1, np.float32), "X": np.zeros(1)}
    )

    outcome = rnncli("compare", tmp_path / "a.npz", tmp_path / "b.npz")

    assert outcome.code == 1
    assert {row["output"]: row["verdict"] for row in outcome.rows} == {
        "Y": "shape is [2], wanted [3]",
        "V": "dtype is float64, wanted float32",
        "X": "is missing",
        "Z": "is not expected",
    }


def test_unknown_extension_lists_the_formats(rnncli, tmp_path):
    """A slip is not taken for a folder: exit 2, and what there is."""
    write_tensors(tmp_path / "a.npz", TENSORS)

    outcome = rnncli("convert", tmp_path / "a.npz", tmp_path / "a.nc")

    assert outcome.code == 2
    assert "no format is named '.nc': there are .npz, .h5" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_an_earlier_conversion_is_replaced_and_nothing_else(rnncli, tmp_path):
    """As by `generate` and `extract`; never the pack that is read, and no file of somebody else."""
    raw, words = tmp_path / "raw", tmp_path / "words"
    rnncli("generate", "smoke", "-o", raw, "-k", "rnn_7", "--format", "raw")
    once = rnncli("convert", raw, words, "--format", "hex")
    again = rnncli("convert", raw, words, "--format", "hex")
    other = rnncli("convert", raw, words, "--format", "c")
    itself = rnncli("convert", raw, raw, "--format", "npz")
    (words / "notes.txt").write_text("mine")
    refused = rnncli("convert", raw, words, "--format", "hex")

    assert (once.code, again.code, again.out) == (0, 0, once.out)
    assert (other.code, [*words.glob("*/case.svh")]) == (0, [])
    assert (itself.code, "it is an input of this command" in itself.err) == (2, True)
    assert (refused.code, "the folder holds other files" in refused.err) == (2, True)
    assert (words / "notes.txt").exists()
    assert open_pack(raw).manifest.cases


def test_what_an_earlier_pack_loses_is_told(rnncli, tmp_path):
    """The name of the suite is all that it shares: its cases, and the values of those that stay."""
    names = ("more", "fewer", "seeds")
    keys = ("rnn_7 or rnn_14", "rnn_7", "rnn_7")
    for name, key, seed in zip(names, keys, (1, 1, 2), strict=True):
        rnncli("generate", "smoke", "-o", tmp_path / name, "-k", key, "--seed", seed)
    told = {
        layout: [
            rnncli("convert", tmp_path / name, tmp_path / layout, "--format", layout).err
            for name in ("more", "more", "fewer", "seeds")
        ]
        for layout in ("raw", "h5")
    }

    for layout, (first, again, fewer, seeds) in told.items():
        assert "earlier pack" not in first + again
        assert "of the earlier pack, 3 cases were removed (rnn_14_" in fewer, layout
        assert "of the earlier pack, 3 cases were changed (rnn_7_" in seeds, layout
    assert "and vectors.h5 was changed" in told["h5"][2]


def test_words_of_several_elements_are_of_the_layout_hex(rnncli, tmp_path):
    """Four float32 elements are a word of 128 bits; other layouts have no words."""
    done = rnncli("convert", CORE, tmp_path / "hex", "--format", "hex", "--pack", 4)
    words = (tmp_path / "hex" / "test_rnn_7_plain" / "inputs" / "X.hex").read_text().split()

    assert done.code == 0
    assert open_pack(tmp_path / "hex").manifest.digest in done.out
    assert {len(word) for word in words} == {32}
    outcome = rnncli("convert", CORE, tmp_path / "raw", "--format", "raw", "--pack", 4)
    assert (outcome.code, "--pack is of the layout hex, not of raw" in outcome.err) == (2, True)
    assert rnncli("verify", tmp_path / "hex", "--backend", "numpy").code == 2
