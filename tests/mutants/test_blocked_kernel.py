"""Claims about the blocked kernel: whatever it is built on, it computes the equations."""

from functools import cache

import numpy as np
import pytest
from support.recurrences import PREVIOUS, recurrence_of
from support.tables import every

from rnncli.backends.backend import Compute
from rnncli.mutants.edits import Edit
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.structural import BlockedKernel
from rnncli.packs.pack import open_pack

BLOCKS = {
    "usual": {},
    "small": {"VECTOR": 2, "BLOCK": 4, "TERMS": 3, "TILE": 2, "CHUNK": 2, "WORKERS": 3},
    "single": dict.fromkeys(("VECTOR", "BLOCK", "TERMS", "TILE", "CHUNK"), 1),
    "large": {"VECTOR": 16, "BLOCK": 64, "TERMS": 64, "TILE": 32, "CHUNK": 32, "WORKERS": 4},
}
SHAPES = ("plain", "ragged", "reverse", "both", "none", "ones", "empty")
CELLS = ("RNN", "GRU", "LSTM")


@cache
def case(cell, shape, seed):
    """A recurrence of random sizes and features."""
    generator = np.random.default_rng([seed, SHAPES.index(shape), CELLS.index(cell)])
    T, N, I, H = generator.integers(1, 20, 4).tolist()  # noqa: E741
    if shape == "ones":
        T, N, I, H = 1, 1, 1, 1  # noqa: E741
    if shape == "empty":
        T, N, I, H = ((0, 3, 2, 5), (3, 0, 2, 5), (3, 2, 0, 5), (0, 0, 0, 1))[seed]  # noqa: E741
    given = {"T": T, "N": N, "I": I, "H": H, "seed": seed, "peepholes": cell == "LSTM"}
    if shape != "plain":
        given |= {"lengths": generator.integers(0, T + 1, N).tolist(), "clip": 0.7}
    if shape == "none":
        given["lengths"] = [0] * N
    if shape == "reverse":
        given |= {"direction": "reverse", "readings": {"zero-length": "initial"}}
    if shape == "both":
        given["readings"] = PREVIOUS["readings"]
    if shape in {"both", "none", "ones"}:
        given["D"] = 2
    flag = {"GRU": "linear_before_reset", "LSTM": "input_forget"}.get(cell)
    return recurrence_of(cell, **given | ({flag: seed % 2} if flag else {}))


def largest_error(found, wanted):
    """Of all outputs, which must have the shapes of those wanted."""
    pairs = [(found.Y, wanted.Y), *zip(found.last, wanted.last, strict=True)]
    assert all(one.shape == other.shape for one, other in pairs)
    return max(float(np.abs(one - other).max(initial=0)) for one, other in pairs)


@every("shape", SHAPES)
@every("cell", CELLS)
@every("blocks", BLOCKS.values(), ids=BLOCKS)
def test_it_agrees_with_the_reference(blocks, cell, shape):
    """Ragged, reverse, both, of no steps, of size 1: whatever the blocks, tiles and chunks."""
    for seed in range(4):
        recurrence = case(cell, shape, seed)
        wanted = RIGHT.run(recurrence, Compute.FLOAT64)

        assert largest_error(BlockedKernel(blocks).run(recurrence), wanted) < 1e-6


def test_errors_are_seen_by_these_tests():
    """The comparison is not of two zeros."""
    recurrence = case("LSTM", "both", 0)
    wanted = RIGHT.run(case("LSTM", "both", 0), Compute.FLOAT64)
    wrong = BlockedKernel(edits=(Edit("x + lane.bias", "x + 2 * lane.bias"),)).run(recurrence)

    assert largest_error(wrong, wanted) > 1e-2


@pytest.mark.parametrize("cell", CELLS)
def test_a_session_forgets(cell):
    """What it keeps from call to call changes no later call."""
    kernel = BlockedKernel(BLOCKS["small"])
    for shape in SHAPES:
        for seed in range(2):
            again = kernel.run(case(cell, shape, seed))
            fresh = BlockedKernel(BLOCKS["small"]).run(case(cell, shape, seed))

            assert largest_error(again, fresh) == 0


@pytest.mark.parametrize("blocks", ["small", "large"])
def test_it_passes_core(blocks):
    """Every case of the committed pack, layouts and every activation included."""
    from pathlib import Path

    from rnncli.judging.comparing.rule import PACK_RULE
    from rnncli.judging.scoring.adequacy import Fate, Trial

    pack = open_pack(Path(__file__).parents[2] / "vectors" / "core")
    for vector in pack.vectors():
        found = BlockedKernel(BLOCKS[blocks]).run(vector.recurrence)
        assert Trial(vector, PACK_RULE).outcome(found).fate is Fate.SURVIVED
