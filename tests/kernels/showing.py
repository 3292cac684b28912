"""Whether a bug shows: its kernel and the right one are given the same calls, in the same order.

What differs must be judged wrong, too, by the tolerances of the standard profile and under every
reading: a sound variant is not a bug.
"""

import math
import warnings
from functools import cache

import numpy as np
from kernels.random_cases import GATES, random_case, special_calls
from kernels.switch_table import KERNELS, kernel_with

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.generating.goldens import other_readings
from rnncli.judging.comparing.margins import measured_outputs
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.tolerances.derivation import derive
from rnncli.numerics import FLOAT64, round_to
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node
from rnncli.packs.vector import Answers

# Two sessions of one kernel compute the same, so that a bug shows by this part of it.
SHOWN = 0.1
# From how many states, of all steps, a call is large: an eighth are, and take most of the time.
LARGE = 800
# What the two right kernels may differ by, as a part of the largest value.
CLOSE = {"float32": 1e-4, "float64": 1e-12, "float16": 4e-4, "bfloat16": 3e-3}


@cache
def call(cell, seed):
    """Return a random call."""
    return random_case(cell, seed)


@cache
def right_outputs(kernel, cell, seed):
    """Return what the right kernel makes of a random call."""
    return answer(KERNELS[kernel](), call(cell, seed))


@cache
def calls(count):
    """List cell and seed of so many random calls of each cell, the large ones last."""
    every = [(cell, seed) for seed in range(count) for cell in GATES]
    return sorted(every, key=lambda each: _states(call(*each)) >= LARGE)


def _states(case):
    directions, _, units = case.inputs["R"].shape
    return math.prod(case.inputs["X"].shape[:2]) * directions * units


def answer(session, case):
    """Return the outputs of one call."""
    return session(case.operator, case.attributes, case.inputs, case.outputs)


def is_shown(bug, count):
    """Whether so many random calls of each cell show a bug, or the calls that its row names."""
    if bug.shown_by:
        return any(_special_differs(bug, cell) for cell in bug.cells.split())
    session = kernel_with(bug)
    return any(
        _is_wrong_answer(
            call(cell, seed),
            answer(session, call(cell, seed)),
            right_outputs(bug.kernel, cell, seed),
        )
        for cell, seed in calls(count)
        if cell in bug.cells.split()
    )


def _is_wrong_answer(case, found, right):
    return differs(found, right) and is_wrong(case, found)


def _special_differs(bug, cell):
    wrong, right = kernel_with(bug), KERNELS[bug.kernel]()
    return any(
        _is_wrong_answer(case, answer(wrong, case), answer(right, case))
        for case in special_calls(cell, bug.shown_by)
    )


def is_wrong(case, outputs):
    """Whether outputs are judged wrong under every reading of the operator."""
    node = Node(OPERATORS[case.operator], case.attributes, case.outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = [some for _, some in other_readings(node, node.recurrence(case.inputs))]
        return all(_disagrees(node.under(some), case, outputs) for some in ({}, *others))


def _disagrees(node, case, outputs):
    recurrence = node.recurrence(case.inputs)
    golden = node.outputs_of(evaluate(recurrence, NumPyEngine(FLOAT64)))
    wanted = {name: round_to(values, recurrence.dtype) for name, values in golden.items()}
    tolerances = node.outputs_of(derive(recurrence, PROFILES["standard"]))
    found = measured_outputs(outputs, Answers(wanted, tolerances), PACK_RULE)
    return any(each.differs for each in found.values())


def differs(found, wanted, part=SHOWN):
    """Whether outputs differ by more than a part of what two right kernels may."""
    return any(_apart(found[name], values, part) for name, values in wanted.items())


def _apart(found, wanted, part):
    if found.shape != wanted.shape:
        return True
    limit = part * CLOSE[wanted.dtype.name]
    a, b = (values.astype(np.float64) for values in (found, wanted))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = 1 + np.abs(b[np.isfinite(b)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        return bool((~same & ~(np.abs(a - b) <= limit * scale)).any())
