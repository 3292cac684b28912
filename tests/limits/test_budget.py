"""Claims about the memory that a run may take, of this process and of one that is measured."""

import itertools
import sys
import zipfile

import numpy as np
import onnx
import pytest
from support.measured import measured

from rnncli import limits
from rnncli.errors import InvalidRequest
from rnncli.limits import OutOfMemory
from rnncli.models.generated_inputs import InputRecipe
from rnncli.models.loading import model_from

MIB = 1 << 20
GIANT = "g (float[2] x) => (float y) {{ {} }}"
NAMES = ["x", *(f"c{k}" for k in range(36))]
DOUBLING = "".join(f"{b} = Concat <axis = 0> ({a}, {a}) " for a, b in itertools.pairwise(NAMES))
HOSTILE = {
    "outer product": GIANT.format(
        "n = Constant <value = int64[2] {100000, 1}> () p = ConstantOfShape (n)"
        " m = Constant <value = int64[2] {1, 100000}> () q = ConstantOfShape (m)"
        " y = MatMul (p, q)"
    ),
    "doubling": GIANT.format(DOUBLING + "y = Identity (c35)"),
    "window": GIANT.format("n = Constant <value = int64 {1099511627776}> () y = HannWindow (n)"),
    "loop": GIANT.format(
        'n = Constant <value = int64 {1000000000000}> () y = Loop (n, "", x)'
        " <body = b (int64 i, bool c, float[k] s) => (bool d, float[k] t)"
        " { d = Identity (c) t = Concat <axis = 0> (s, s) }>"
    ),
}

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone holds a budget")


@on_linux
@pytest.mark.parametrize("name", HOSTILE)
def test_a_small_model_stays_below_1_gib(tmp_path, name):
    """Whatever makes the memory, the run ends with one sentence that names the node."""
    graph = onnx.parser.parse_graph(HOSTILE[name])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8
    )
    onnx.save(model, tmp_path / "m.onnx")

    code, words, peak = measured("run", tmp_path / "m.onnx")

    assert (code, "node '" in words, "768.0 MiB in all" in words) == (2, True, True)
    assert "--max-memory SIZE raises that" in words
    assert peak < 1 << 30


@pytest.mark.parametrize("shape", ["1000000000, 0, 3", "4611686018427387904, 4, 0"])
def test_an_input_of_zero_elements_may_be_too_large(shape):
    """A thousand million steps of an empty batch are as many steps."""
    graph = onnx.parser.parse_graph(f"g (float[{shape}] x) => (float y) {{ y = Neg (x) }}")
    model = model_from(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8
        )
    )

    with pytest.raises(InvalidRequest, match=r"input 'x' of shape .* takes"):
        InputRecipe(model).make({})


@on_linux
def test_a_config_of_zero_sequences_is_not_free(tmp_path):
    """A size of 0 makes no product of sizes harmless."""
    sizes = "seq_length: 1000000000, batch_size: 0, input_size: 3, hidden_size: 2"
    (tmp_path / "c.yaml").write_text(f"op: LSTM-14\nsizes: {{{sizes}}}\n")

    code, words, peak = measured("run", tmp_path / "c.yaml")

    assert (code, "these sizes are too large" in words, peak < 1 << 30) == (2, True, True)


@on_linux
def test_what_has_no_node_is_named_by_its_file(tmp_path):
    """Balls of the certified backend: flint ends the process where an allocation fails."""
    pytest.importorskip("flint")
    sizes = "seq_length: 2, batch_size: 1, input_size: 3, hidden_size: 1300"
    (tmp_path / "c.yaml").write_text(f"op: LSTM-14\nsizes: {{{sizes}}}\n")

    code, words, peak = measured("run", tmp_path / "c.yaml", "--backend", "certified")

    assert code == 2
    assert f"{tmp_path / 'c.yaml'}: a recurrence of 6,775,606 balls takes" in words
    assert peak < 1 << 30


@on_linux
def test_zipped_zeros_stay_below_1_gib(tmp_path):
    """Half a megabyte that holds half a gigabyte is refused before a second copy of it."""
    with (
        zipfile.ZipFile(tmp_path / "z.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.npy", "w") as member,
    ):
        header = {"descr": "<f4", "fortran_order": False, "shape": (125 * MIB,)}
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(500):
            member.write(bytes(MIB))

    code, words, peak = measured("compare", tmp_path / "z.npz", tmp_path / "z.npz")

    assert (code, "z.npz" in words, peak < 1 << 30) == (2, True, True)


@on_linux
def test_what_no_estimate_foresees_fails_as_an_allocation():
    """And afterwards the process may take as much as before."""
    with pytest.raises(OutOfMemory, match="not enough memory"), limits.held(64 * MIB):
        np.zeros(1 << 28)

    assert np.zeros(1 << 28).nbytes == 2 << 30


def test_files_that_the_user_named_add_to_the_default(tmp_path):
    """By what the disk holds of them, folders too; a size that the user gives stands."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "w.bin").write_bytes(np.ones(MIB, np.uint8).tobytes())
    with (tmp_path / "sparse.bin").open("wb") as file:
        file.truncate(1 << 40)

    with limits.held(None, [tmp_path, "no such file", "f.npz::key"]):
        grown = limits.current_budget().limit
    with limits.held(99 * MIB, [tmp_path]):
        given = limits.current_budget().limit

    assert limits.DEFAULT + 16 * MIB <= grown <= limits.DEFAULT + 17 * MIB
    assert given == 99 * MIB


def test_asking_names_what_takes_too_much_and_how_to_allow_it():
    """Without a budget only what the maker itself allows is allowed."""
    with (
        limits.limited(10 * MIB),
        pytest.raises(OutOfMemory, match=r"it takes 2\.0 GiB, and .* 10\.0 MiB .* --max-memory"),
    ):
        limits.ask(2 << 30, "it")
    with pytest.raises(OutOfMemory, match=r"it takes 2\.0 GiB, and at most 1\.0 GiB"):
        limits.ask(2 << 30, "it", otherwise=1 << 30)

    limits.ask(2 << 30, "it", otherwise=2 << 30)


def test_sizes_of_any_number_of_digits_can_be_told():
    """Those that a file declares."""
    with pytest.raises(OutOfMemory, match="takes more memory than there is"):
        limits.ask(10**400, "a tensor")
