"""Claims about the structural mutants: each is seen at the sizes it names, and at no others."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from support.recurrences import recurrence_of
from support.tables import every

from rnncli.backends.backend import Compute
from rnncli.errors import InvalidRequest
from rnncli.mutants.catalogue import MUTANTS, structural_of
from rnncli.mutants.equivalence import same_results
from rnncli.mutants.structural import STRUCTURAL, BlockedKernel, StructuralBugs, difference
from rnncli.recurrence.cells import CELLS as CELL_ROWS

CELLS = ("RNN", "GRU", "LSTM")
SMALL = {"T": 6, "N": 4, "I": 3, "H": 5}
FLAGS = {"RNN": {}, "GRU": {"linear_before_reset": 1}, "LSTM": {"input_forget": 1}}
VALUED = {
    "RNN": (["ScaledTanh"], [0.7], [0.9]),
    "GRU": (["HardSigmoid", "ScaledTanh"], [0.3, 0.7], [0.4, 0.9]),
    "LSTM": (["HardSigmoid", "ScaledTanh", "Softsign"], [0.3, 0.7], [0.4, 0.9]),
}
# The sizes where a product or an equation of them is what counts.
PRODUCTS = {
    "T*N*I": {"T": 5, "N": 3, "I": 4400, "H": 2},
    "G*H*I": {"T": 2, "N": 2, "I": 4400, "H": 15},
    "G*H*H": {"T": 2, "N": 2, "I": 2, "H": 260},
    "I = H": {**SMALL, "I": 5},
    "T = N": {**SMALL, "N": 6},
    "N = D": {**SMALL, "N": 2},
    "N = H": {**SMALL, "H": 4},
    "T*D*N*H": {"T": 33, "N": 8, "I": 2, "H": 130},
}


def _lengths(T, N, ragged):
    """Unsorted, the longest last, and a zero where there is room; or none."""
    return [max(T - 1 - k % 3, 0) for k in range(N - 1)] + [T] if ragged else None


# Rows that follow each other have sizes in common; those of large ones are not kept for long.
kept = lru_cache(maxsize=64)


@kept
def case(cell, variant, *given):
    """A recurrence with everything in it; of the variants one has what another cannot."""
    T, N, I, H = given  # noqa: E741
    given = {"T": T, "N": N, "I": I, "H": H, "D": 2, "peepholes": cell == "LSTM", "scale": 0.3}
    if variant == "ragged":
        return recurrence_of(cell, **given, clip=0.4, lengths=_lengths(T, N, ragged=True))
    if variant == "valued":
        names, alpha, beta = VALUED[cell]
        values = {"activation_alpha": 2 * alpha, "activation_beta": 2 * beta}
        return recurrence_of(cell, **given, **FLAGS[cell], activations=names, **values)
    if variant == "zero":
        lengths = [0, *(_lengths(T, N, ragged=True)[1:])]
        return recurrence_of(cell, **given, lengths=lengths, **FLAGS[cell])
    if variant == "short":
        return recurrence_of(cell, **given, lengths=[T // 2] * N)
    bare = recurrence_of(cell, **given, **FLAGS[cell])
    return replace(bare, initial=(None,) * len(bare.initial))


VARIANTS = ("ragged", "valued", "zero", "short", "bare")


def sizes(row):
    """Sizes that show a row."""
    if row.size is None or row.calls > 1:
        return SMALL
    if row.size.axis in PRODUCTS:
        return PRODUCTS[row.size.axis]
    many = {"T": 2, "N": 2, "I": 2, "H": 2} if row.size.edge > 255 else SMALL
    return {**many, row.size.axis: row.size.edge + ("beyond" in row.size.words)}


def below(row):
    """Sizes that do not: the edge itself; 2, where it is 1."""
    if row.size.axis in PRODUCTS:
        return SMALL
    smaller = min(row.size.edge, 8) if "beyond" in row.size.words else 2
    return {**SMALL, row.size.axis: smaller}


@kept
def right(blocks, cell, variant, *given):
    """The right result of a case."""
    return BlockedKernel(dict(blocks)).run(case(cell, variant, *given))


def seen(row, cell, variant, given):
    """Whether the last call of a session differs from the right kernel's."""
    arguments = (cell, variant, *given.values())
    recurrence, session = case(*arguments), row.session()
    for _ in range(row.calls - 1):
        session(another(recurrence), Compute.FLOAT64)
    found = session(recurrence, Compute.FLOAT64)
    return not same_results(found, right(tuple(row.blocks.items()), *arguments))


def another(r):
    """A recurrence of the same shapes and other numbers."""
    changed = {
        name: None if values is None else values[..., ::-1] + values.dtype.type(0.1)
        for name in ("X", "W", "R", "Wb", "Rb", "P")
        for values in [getattr(r, name)]
    }
    initial = tuple(None if s is None else 1 - s for s in r.initial)
    lengths = None if r.lengths is None else r.lengths[::-1].copy()
    return replace(r, **changed, initial=initial, lengths=lengths)


# Those of linear recurrences: test_linear_structural.
ROWS = [row for row in STRUCTURAL.values() if set(row.cells) <= set(CELLS)]
EVERY = pytest.mark.parametrize(
    ("row", "cell"),
    [(row, cell) for row in ROWS for cell in row.cells],
    ids=lambda value: getattr(value, "id", value),
)
LONG = {"lengths-in-int16"}


@EVERY
def test_it_is_seen_at_its_sizes_and_equivalent_elsewhere(row, cell):
    """Some case of the sizes that it names shows it; where it gives a reason, none does."""
    if row.id in LONG:
        pytest.skip("32,768 steps: test_lengths_in_sixteen_bits_wrap")
    found = {}
    for variant in VARIANTS:
        reason = row.equivalent_when(case(cell, variant, *sizes(row).values()))
        if reason or not any(found.values()):
            found[variant] = seen(row, cell, variant, sizes(row))
            assert not (reason and found[variant]), reason

    assert any(found.values())


@every("row", [row for row in ROWS if row.size], ids=lambda r: r.id)
def test_it_is_not_seen_below_its_sizes(row):
    """At the edge itself, and with sizes of 2 where it takes a 1."""
    cell = row.cells[-1]
    recurrence = case(cell, "ragged", *below(row).values())

    assert row.equivalent_when(recurrence).startswith("not reached: ")
    assert not seen(row, cell, "ragged", below(row))


def test_lengths_in_sixteen_bits_wrap():
    """A length of 32,768 is none."""
    (row,) = (STRUCTURAL[name] for name in LONG)
    recurrence = recurrence_of("RNN", T=32768, N=1, I=1, H=1)

    assert row.equivalent_when(recurrence) == ""
    assert (row.run(recurrence).last[0] == recurrence.initial[0]).all()
    assert "not reached" in row.equivalent_when(recurrence_of("RNN", T=4))


@every("row", STRUCTURAL.values(), ids=STRUCTURAL)
def test_rows_explain_themselves(row):
    """Each has a sentence, a family, cells, and says at which sizes it is seen."""
    assert row.sentence.endswith(".")
    assert row.effect.endswith(".")
    assert row.family
    assert set(row.cells) <= set(CELL_ROWS)
    assert row.size is None or row.size.words in row.effect


def test_there_are_enough_of_each_kind():
    """Sized and size-free, in families, and none is called as a semantic one is."""
    assert len(STRUCTURAL) >= 300
    assert sum(row.size is None for row in STRUCTURAL.values()) >= 40
    assert len({row.family for row in STRUCTURAL.values()}) >= 10
    assert not set(STRUCTURAL) & set(MUTANTS)
    assert all(len(structural_of(cell)) >= 250 for cell in CELLS)


def test_results_have_the_dtype_of_the_recurrence():
    """In 16 bits as in 64."""
    for dtype in ("float16", "bfloat16", "float64"):
        recurrence = recurrence_of("GRU", dtype=dtype, N=9, H=9)
        found = STRUCTURAL["unit-tail-not-activated-8"].run(recurrence)

        assert found.Y.dtype == recurrence.dtype.numpy
        assert np.isfinite(found.Y.astype(float)).all()


MINE = """\
[mine] mine
with CHUNK={width}
seen T beyond {width}
unless NO_Y

later-chunks-negated-{width}: Chunks of {width} steps but the first write -H to Y.
of GRU
widths 2 4
- np.where(walked, history, 0)
+ np.where(walked, -history if steps[0] else history, 0)

never-advances: The last states are the initial ones.
with
seen any
- zip(last, states)
+ zip(last, start)
"""


def test_a_bug_is_a_few_lines():
    """One mutant a width, which stands for {width} in all that its family and it say."""
    two, four, last = StructuralBugs(MINE, "mine.txt").families["mine"]
    r = recurrence_of("GRU", T=6)
    right = BlockedKernel(four.blocks).run(r).Y

    assert (two.id, four.id) == ("later-chunks-negated-2", "later-chunks-negated-4")
    assert four.sentence == "Chunks of 4 steps but the first write -H to Y."
    assert (four.family, four.cells, four.blocks) == ("mine", ("GRU",), {"CHUNK": 4})
    assert four.equivalent_when(recurrence_of("GRU", T=4)) == "not reached: T beyond 4"
    assert four.equivalent_when(r) == ""
    assert four.equivalent_when(replace(r, wants_Y=False)) == "Y is not asked for"
    np.testing.assert_array_equal(four.run(r).Y, [*right[:4], *-right[4:]])
    assert (last.blocks, last.effect) == ({}, "Seen at small sizes, too.")
    np.testing.assert_array_equal(last.run(r).last[0], r.initial[0])
    assert last.difference.splitlines() == [
        "- for k, (place, state) in enumerate(zip(last, states)):",
        "+ for k, (place, state) in enumerate(zip(last, start)):",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seen T beyond", "seen T over", "mine.txt:6: 'T over 2' are no sizes; write 'H beyond 8'"),
        ("seen any", "seen T = 1 and not a multiple of it", "mine.txt:12: 'T = 1 and not a mult"),
        (
            "CHUNK={width}",
            "CHUNK=few",
            "mine.txt:6: with CHUNK=few: write VECTOR or BLOCK or",
        ),
        ("CHUNK=", "CHUNKS=", "mine.txt:6: with CHUNKS=2: write VECTOR or BLOCK or TERMS or TILE"),
        ("zip(last, states)", "zip(last, stats)", "mine.txt:12: 'zip(last, stats)' does not stand"),
        ("widths 2 4", "each A * B", "mine.txt:6: there are no variants 'A'"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(old, new, message):
    """A file and a line, and what was wanted there."""
    with pytest.raises(InvalidRequest) as refused:
        StructuralBugs(MINE.replace(old, new), "mine.txt")

    assert message in str(refused.value)


@every("row", STRUCTURAL.values(), ids=STRUCTURAL)
def test_every_edit_changes_the_kernel(row):
    """Each of them by itself, and what it is seen by is a difference of lines."""
    assert all(difference(row.kernel, (edit,)) for edit in row.edits)
    assert row.difference.splitlines()
