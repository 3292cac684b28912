"""Claims about approximated functions: the curve of their errors is found from wrong outputs."""

from functools import cache

import numpy as np
import pytest
from support.judged import core, outputs_of

from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.explaining.arithmetic import UnitSubset, approximation_of
from rnncli.judging.explaining.fitting import WrongOutputs
from rnncli.judging.explaining.single_steps import steps_of
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.mutant import MATH, computing


@cache
def vectors(cell):
    """Some float32 vectors of core that have Y, by the cell that they test."""
    return [
        v
        for v in core().values()
        if v.record.expect == "result"
        and v.recurrence.cell.name == cell
        and v.record.dtype == "float32"
        and "nan" not in v.id
    ]


def wrong(cell, change):
    """The vectors that a change gives wrongly, what it gives, and the steps of that."""
    for vector in vectors(cell):
        with np.errstate(all="ignore"):
            got = outputs_of(vector, change.run(vector.recurrence, "float64"))
        steps = steps_of(MeasuredAttempt(vector, got))
        if steps is not None and steps.wrong.any():
            yield vector, got, steps


def off_by(size, name):
    """A function with a smooth error of a size."""
    return lambda x: getattr(MATH, name)(x) + size * np.sin(2 * x) * np.exp(-x * x / 8)


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("size", [1e-3, 1e-5])
def test_an_approximated_tanh_is_named_with_its_error(cell, size):
    """Whatever the error is, as long as it is a function of the argument."""
    cases = list(wrong(cell, computing(tanh=off_by(size, "tanh"))))
    found = approximation_of(steps for *_, steps in cases)
    fits = [found.fit(WrongOutputs(MeasuredAttempt(vector, got))) for vector, got, _ in cases]

    assert found.name == "tanh-approximated"
    assert size / 2 < float(found.where.removeprefix("off by up to ").split(",")[0]) < 2 * size
    assert np.mean(np.array(fits) <= 1) > 0.9


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_gates_show_an_approximated_sigmoid(cell):
    """Through the products that they are part of."""
    cases = wrong(cell, computing(sigmoid=off_by(1e-4, "sigmoid")))

    assert approximation_of(steps for *_, steps in cases).name == "sigmoid-approximated"


def test_both_may_be_approximated():
    """Where neither alone explains what is wrong."""
    change = computing(sigmoid=off_by(1e-4, "sigmoid"), tanh=off_by(1e-4, "tanh"))
    found = approximation_of(steps for *_, steps in wrong("LSTM", change))

    assert found.name == "sigmoid-and-tanh-approximated"


@pytest.mark.parametrize(
    "bug",
    [
        *("recurrent-bias-dropped", "operands-in-float16", "h-stored-in-float16"),
        *("sums-in-float16", "gates-i-f-swapped", "computed-in-bfloat16", "clip-ignored"),
    ],
)
def test_other_bugs_are_no_approximation(bug):
    """Rounding is no function of the argument, and large errors are something else."""
    cases = wrong("LSTM", MUTANTS[bug].change)

    assert approximation_of(steps for *_, steps in cases) is None


def test_the_units_of_a_vector_body_are_told_from_those_left_over():
    """A width of 0 stands for all of them."""
    assert UnitSubset(4).has(6).tolist() == [True] * 4 + [False] * 2
    assert UnitSubset(4, rest=True).has(6).tolist() == [False] * 4 + [True] * 2
    assert UnitSubset().has(3).all()
    assert UnitSubset(8, rest=True).words == ", only in units after whole blocks of 8"


def test_the_units_of_a_part_are_named():
    """A fast vector body, and a tail that is right."""

    def body(x):
        in_body = np.arange(x.shape[-1]) < x.shape[-1] - x.shape[-1] % 4
        return np.where(in_body, off_by(1e-4, "tanh")(x), MATH.tanh(x))

    found = approximation_of(steps for *_, steps in wrong("RNN", computing(tanh=body)))

    assert found.where.endswith(", only in units in whole blocks of 4")
