"""Claims about the bugs of the integer LSTM: its kernel is right, and each bug is seen."""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
from mutants.test_catalogue import same
from support.integer_lstms import integer_lstm_of
from support.shown_bugs import assert_seen

from rnncli.mutants.calls import call_of
from rnncli.mutants.catalogue import mutants_of
from rnncli.mutants.edits import Edit, EditedStep, edited, kernel_of
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.runs import Runs, part_of
from rnncli.recurrence.recurrence import Result

CELL = "IntegerLSTM"
ODD = (0.014648313, 0.012695177, 0.010742091, 0.016601427)
READ = {
    "cmsis": {"preset": "cmsis"},
    "litert": {"preset": "litert"},
    "single": {"rounding": "single"},
    "float32": {"scale-product": "float32"},
}
CASES = {
    "plain": integer_lstm_of,
    "odd_scales": partial(integer_lstm_of, of_weights=ODD, T=20, N=3, I=9, H=9),
    "fresh": partial(integer_lstm_of, states=None, output_state_zero_point=40),
    "fresh_one_step": partial(integer_lstm_of, states=None, T=1),
    "one_of_each": partial(integer_lstm_of, T=1, N=1, I=1, H=1),
    "no_steps": partial(integer_lstm_of, T=0),
    "square": partial(integer_lstm_of, I=5),
    "many_steps": partial(integer_lstm_of, T=40, N=1, H=3),
    "least": partial(integer_lstm_of, x=(-128, -127), weights=(-128, -127), factor=0.125),
    "large": partial(integer_lstm_of, factor=8, T=9),
    "large_cell": partial(
        integer_lstm_of,
        cell_state_scale=2.0**-15,
        states=((-128, 127), (-32768, 32767)),
        bias=40000,
        T=12,
        H=8,
        factor=2,
    ),
    "small_hidden": partial(
        integer_lstm_of,
        output_state_scale=0.00390625,
        output_state_zero_point=-100,
        states=((-128, 127), (-32768, 32767)),
        bias=12000,
    ),
    "odd_cell": partial(integer_lstm_of, cell_state_scale=0.00042724609375, T=12),
    "odd_cell_below": partial(integer_lstm_of, cell_state_scale=0.00030517578125, T=12, N=4),
    "finest_cell": partial(
        integer_lstm_of, cell_state_scale=2.0**-18, states=((-9, 9), (-32768, 32767)), factor=2
    ),
    "keeping": partial(  # a few of 32,768 products show how they are rounded
        integer_lstm_of,
        T=2,
        N=6000,
        I=1,
        H=16,
        states=((-9, 9), (-32768, 32767)),
        factor=0.1,
        bias=12000,
    ),
    "clip": partial(integer_lstm_of, cell_clip=0.7001953125, T=9),
    "clip_of_units": partial(integer_lstm_of, cell_clip=0.00122, T=9, seed=3),
    "clip_beyond": partial(integer_lstm_of, cell_clip=9.0, states=((-9, 9), (-32768, 32767))),
    "clip_below_a_unit": partial(integer_lstm_of, cell_clip=0.0001220703125),
    "fine_cell": partial(integer_lstm_of, cell_state_scale=2.0**-14, cell_clip=1.0, T=9),
    "top": partial(
        integer_lstm_of,
        input_scale=0.0078124990686774253845,
        of_weights=(0.015625001862645, 0.015624984, 0.01562476, 0.015625),
        T=9,
    ),
    "huge_bias": partial(integer_lstm_of, bias=2**31 - 100000, factor=2.0**-16, N=1),
    "wide": partial(integer_lstm_of, bits=16, T=9, bias=400000),
    "wide_odd": partial(integer_lstm_of, bits=16, T=20, N=3, I=9, H=9, of_weights=ODD),
    "wide_bias": partial(integer_lstm_of, bits=16, bias=2**40, factor=2.0**-22),
    "wide_large": partial(integer_lstm_of, bits=16, factor=8, T=9),
    "wide_clip": partial(integer_lstm_of, bits=16, cell_clip=0.33, T=9, factor=2),
    "intermediate": partial(
        integer_lstm_of,
        hidden_scale=0.00634765625,
        hidden_zero_point=4,
        readings={"hidden-scale": "intermediate"},
    ),
    **{name: partial(integer_lstm_of, readings=read, T=9) for name, read in READ.items()},
    "cmsis_clip": partial(integer_lstm_of, cell_clip=0.5, readings=READ["cmsis"]),
    "litert_clip": partial(
        integer_lstm_of, cell_clip=0.5, readings=READ["litert"], cell_state_scale=2.0**-10
    ),
}
ROWS = mutants_of(CELL)
EVERY = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@cache
def recurrence_named(name):
    """One of the recurrences above."""
    return CASES[name]()


@cache
def right(name):
    """Its right result."""
    return RIGHT.run(recurrence_named(name))


def alone(r):
    """What the text of the plain kernel gives, run as it is printed."""
    call, written = call_of(CELL)(r), SimpleNamespace()
    space = {**call.words, "written": written}
    exec(kernel_of(CELL), space)  # noqa: S102 -- a file of the package
    with np.errstate(all="ignore"):
        space[call.kernel[1]](call)
    last = (written.final_output_state, written.final_cell_state)
    states = zip(last, r.dtypes, strict=True)
    return Result(
        written.output[:, None].astype(r.dtype.numpy),
        tuple(state[None].astype(dtype.numpy) for state, dtype in states),
    )


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_right(name):
    """Its text, run as it is printed, gives the bits of the reference; so do its parts in steps."""
    r = recurrence_named(name)
    nothing = (Edit("sigmoid, tanh = FUNCTIONS", "sigmoid,  tanh = FUNCTIONS"),)
    cell = replace(r.cell, step=EditedStep(CELL, nothing, r))

    assert same(alone(r), right(name))
    assert same(RIGHT.run(replace(r, cell=cell)), right(name))


@EVERY
def test_it_is_seen_where_it_gives_no_reason_and_nowhere_else(row):
    """In one of the recurrences above at least."""
    assert_seen(row, {name: (recurrence_named(name), right(name)) for name in CASES})


@EVERY
def test_each_edit_changes_the_kernel(row):
    """In the order in which they are written."""
    for k in range(len(row.edits)):
        assert edited(CELL, row.edits[: k + 1]) != edited(CELL, row.edits[:k])


def test_there_are_enough():
    """Plausible bugs; those of gated cells are none of them."""
    assert len(ROWS) >= 150
    assert all(row.cells == (CELL,) for row in ROWS)


@pytest.mark.parametrize("name", ["plain", "wide", "clip", "no_steps", "litert_clip"])
def test_in_stacks_they_are_what_they_are_alone(name):
    """Those that change recurrences alike are evaluated together, to the same bits."""
    r, found = recurrence_named(name), 0
    for some, stack in Runs(r).results([(row,) for row in ROWS]):
        for k, (row,) in enumerate(some):
            assert same(part_of(stack, k), row.run(r)), row.id
            found += 1

    assert found == len(ROWS)
