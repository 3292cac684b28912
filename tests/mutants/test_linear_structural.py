"""Claims about the structural bugs of linear recurrences: each is seen at the sizes it names."""

import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from mutants.test_linear_bugs import CASES, recurrence_named
from mutants.test_linear_bugs import right as reference
from support.linear_recurrences import attention_of, convolution_of
from support.tables import every

from rnncli.backends.backend import Compute
from rnncli.mutants.catalogue import structural_of
from rnncli.mutants.equivalence import same_results
from rnncli.mutants.structural import LINEAR_KERNEL, BlockedKernel, difference

SMALL = {
    "LinearAttention": {"N": 2, "T": 3, "K": 1, "group": 1, "dk": 3, "dv": 2},
    "CausalConv": {"N": 2, "T": 3, "C": 3, "w": 4},
}


def _nan(inputs):
    inputs["value"][:, -1] = np.nan


def _strong(inputs):
    inputs["decay"] *= 300


VARIANTS = {
    "LinearAttention": {
        "heads": {"decay": (-0.4, 0.0), "beta": (0.0, 1.0)},
        "keys": {"decay": (-0.4, 0.0), "beta": (0.0, 1.0), "per_key": True, "scale": 0.3},
        "delta": {"rule": "delta", "beta": (0.0, 0.5)},
        "gated": {"rule": "gated", "decay": (-0.4, 0.0), "past": False},
        "strong": {"decay": (-0.4, 0.0), "change": _strong},
        "growing": {"decay": (0.0, 0.2), "beta": (0.0, 0.5)},
        "nan": {"rule": "gated", "change": _nan},
    },
    "CausalConv": {
        "silu": {},
        "plain": {"activation": "none", "bias": False},
        "without_past": {"past": False},
        "apart": {"dilation": 2},
    },
}
BUILD = {"LinearAttention": attention_of, "CausalConv": convolution_of}
kept = lru_cache(maxsize=64)


@kept
def case(cell, variant, sizes):
    """A recurrence of some sizes."""
    return BUILD[cell](**dict(sizes), **VARIANTS[cell][variant])


def sizes(row):
    """Sizes that show a row."""
    found = dict(SMALL[row.cells[0]])
    if row.size:
        size = row.size.edge + ("beyond" in row.size.words)
        axes = row.size.axis.split("*")
        found |= {axes[0]: size, **dict.fromkeys(axes[1:], 1)}
    return tuple(found.items())


def below(row):
    """Sizes that do not: the edge itself; 2, where it is 1."""
    found = dict(SMALL[row.cells[0]])
    size = min(row.size.edge, 8) if "beyond" in row.size.words else 2
    axes = row.size.axis.split("*")
    return tuple((found | {axes[0]: size, **dict.fromkeys(axes[1:], 1)}).items())


def blocked(row):
    """The right kernel of a row."""
    return BlockedKernel(row.blocks, kernel=row.kernel)


def other(r):
    """The same shapes and other numbers."""
    initial = tuple(None if s is None else 1 - s for s in r.initial)
    return replace(r, X=r.X * r.X.dtype.type(0.5), initial=initial)


def seen(row, recurrence):
    """Whether the last call of a session differs from the right kernel's."""
    session = row.session()
    for _ in range(row.calls - 1):
        session(other(recurrence), Compute.FLOAT64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = session(recurrence, Compute.FLOAT64)
    return not same_results(found, blocked(row).run(recurrence))


ROWS = [row for cell in SMALL for row in structural_of(cell)]
EVERY = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@every("blocks", [{}, {"CHUNK": 2, "COLUMNS": 2, "PROGRAMS": 1, "TERMS": 2, "TILE": 2, "TAPS": 3}])
def test_the_blocked_kernel_is_right(blocks):
    """Whatever its blocks, it gives what the reference gives, up to the order of sums."""
    for cell, cases in CASES.items():
        for name in cases:
            r = recurrence_named(cell, name)
            if r.options.rounded_states:
                continue
            found, wanted = (
                BlockedKernel(blocks, kernel=LINEAR_KERNEL).run(r),
                reference(cell, name),
            )
            for one, other_, dtype in (
                (found.Y, wanted.Y, r.dtype),
                (found.last[1], wanted.last[1], r.dtypes[1]),
            ):
                rtol = 4 * 2.0**-dtype.precision
                pair = (each.astype(np.float64) for each in (one, other_))
                np.testing.assert_allclose(*pair, rtol=rtol, atol=rtol, err_msg=name)
                assert one.dtype == other_.dtype


@EVERY
def test_it_is_seen_at_its_sizes_and_equivalent_elsewhere(row):
    """Some case of the sizes that it names shows it; where it gives a reason, none does."""
    (cell,), found = row.cells, []
    for variant in VARIANTS[cell]:
        recurrence = case(cell, variant, sizes(row))
        reason = row.equivalent_when(recurrence)
        if is_seen := seen(row, recurrence):
            assert not reason, (variant, reason)
        found.append(is_seen)

    assert any(found)


@every("row", [row for row in ROWS if row.size], ids=lambda row: row.id)
def test_it_is_not_seen_below_its_sizes(row):
    """At the edge itself, and with sizes of 2 where it takes a 1."""
    (cell,) = row.cells
    for variant in VARIANTS[cell]:
        recurrence = case(cell, variant, below(row))

        assert row.equivalent_when(recurrence).startswith("not reached: ")
        assert not seen(row, recurrence), variant


@EVERY
def test_every_edit_changes_the_kernel(row):
    """Each of them by itself."""
    assert all(difference(row.kernel, (edit,)) for edit in row.edits)


def test_there_are_enough():
    """Of each operator, at every border of chunks, tiles and blocks."""
    assert len(structural_of("LinearAttention")) >= 150
    assert len(structural_of("CausalConv")) >= 80
