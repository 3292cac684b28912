"""Claims about the bugs of the float LSTM with a projection: its kernel is right, each is seen."""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
from mutants.test_catalogue import same
from support.float_lstms import FORMS, FloatLstm
from support.shown_bugs import assert_seen

from rnncli.mutants.calls import call_of
from rnncli.mutants.catalogue import mutants_of
from rnncli.mutants.edits import edited, kernel_of
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.runs import Runs, part_of

CELL = "ProjectedLSTM"
CASES = {
    **{name: partial(FloatLstm, **form) for name, form in FORMS.items()},
    "one step": partial(FloatLstm, sizes=(1, 3, 4, 9), width=4),
    "one of each": partial(FloatLstm, "coupled_peephole", 1, sizes=(1, 1, 1, 1), proj_clip=0.2),
    "many steps": partial(FloatLstm, "peephole", 3, sizes=(40, 1, 5, 3), states=False),
    "registers": partial(FloatLstm, "coupled", 17, sizes=(5, 5, 17, 33), cell_clip=0.4),
    "square": partial(FloatLstm, width=5, sizes=(9, 4, 5, 5), proj_clip=0.3),
}
ROWS = mutants_of(CELL)
EVERY = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@cache
def pair_named(name):
    """One of the recurrences above, and its right result."""
    r = CASES[name]().recurrence
    return r, RIGHT.run(r)


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_right(name):
    """Its text, run as it is printed, gives what the reference gives."""
    r, wanted = pair_named(name)
    call, written = call_of(CELL)(r), SimpleNamespace()
    space = {**call.words, "written": written}
    exec(kernel_of(CELL), space)  # noqa: S102 -- a file of the package
    space[call.kernel[1]](call)

    for found, right in (
        (written.output[:, None], wanted.Y),
        (written.final_output_state[None], wanted.last[0]),
        (written.final_cell_state[None], wanted.last[1]),
    ):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


@EVERY
def test_it_is_seen_where_it_gives_no_reason_and_nowhere_else(row):
    """In one of the recurrences above at least."""
    assert_seen(row, {name: pair_named(name) for name in CASES})


@EVERY
def test_each_edit_changes_the_kernel(row):
    """In the order in which they are written."""
    for k in range(len(row.edits)):
        assert edited(CELL, row.edits[: k + 1]) != edited(CELL, row.edits[:k])


def test_there_are_enough():
    """Plausible bugs; those of gated cells are none of them."""
    assert len(ROWS) >= 100
    assert all(row.cells == (CELL,) for row in ROWS)


@pytest.mark.parametrize("name", ["plain", "everything", "registers"])
def test_in_stacks_they_are_what_they_are_alone(name):
    """Those that change recurrences alike are evaluated together, to the same bits."""
    r, found = pair_named(name)[0], 0
    for some, stack in Runs(r).results([(row,) for row in ROWS]):
        for k, (row,) in enumerate(some):
            assert same(part_of(stack, k), row.run(replace(r))), row.id
            found += 1

    assert found == len(ROWS)
