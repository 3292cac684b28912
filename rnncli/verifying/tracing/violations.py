"""Violations of statements: mutants, and finer bugs that are not mutants.

A statement is checked if a violation of it would be noticed. Most violations are mutants. The ones
in this module are finer than the bugs of real kernels, so suites are not scored by them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.reference import NumPyEngine
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.equivalence import COUPLED, NO_STEP, uses_none_of, where
from rnncli.mutants.mutant import LSTM, Change, Family, stepped
from rnncli.mutants.words_of_edits import dealt, with_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.mutants.mutant import Mutant, Right
    from rnncli.recurrence.activations import Activation, Function
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence

OF_STATEMENTS = "statements"

# function -> (id, the wrong formula in words, the wrong formula)
WRONG_FORMULAS: Mapping[str, tuple[tuple[str, str, Function], ...]] = {
    "Relu": (
        ("identity", "x", lambda _, x, __, ___: x),
        ("magnitude", "|x|", lambda math, x, _, __: math.absolute(x)),
    ),
    "Tanh": (
        ("of-half", "(1 - e^-x)/(1 + e^-x)", lambda math, x, _, __: math.tanh(x / 2)),
        ("hard", "min(max(x, -1), 1)", lambda _, x, __, ___: np.clip(x, -1, 1)),
    ),
    "Sigmoid": (
        ("of-minus", "1/(1 + e^x)", lambda math, x, _, __: math.sigmoid(-x)),
        ("hard", "min(max(x/4 + 1/2, 0), 1)", lambda _, x, __, ___: np.clip(x / 4 + 0.5, 0, 1)),
    ),
    "Affine": (
        ("without-alpha", "x + beta", lambda _, x, __, beta: x + beta),
        ("without-beta", "alpha*x", lambda _, x, alpha, __: alpha * x),
    ),
    "LeakyRelu": (
        ("relu", "max(0, x)", lambda math, x, _, __: math.maximum(x, 0)),
        ("everywhere", "alpha*x", lambda _, x, alpha, __: alpha * x),
    ),
    "ThresholdedRelu": (
        ("relu", "max(0, x)", lambda math, x, _, __: math.maximum(x, 0)),
        ("shifted", "max(0, x - alpha)", lambda math, x, alpha, _: math.maximum(x - alpha, 0)),
    ),
    "ScaledTanh": (
        ("without-alpha", "Tanh(beta*x)", lambda math, x, _, beta: math.tanh(beta * x)),
        ("without-beta", "alpha*Tanh(x)", lambda math, x, alpha, _: alpha * math.tanh(x)),
    ),
    "HardSigmoid": (
        (
            "without-upper-bound",
            "max(alpha*x + beta, 0)",
            lambda math, x, alpha, beta: math.maximum(alpha * x + beta, 0),
        ),
        (
            "without-lower-bound",
            "min(alpha*x + beta, 1)",
            lambda math, x, alpha, beta: math.minimum(alpha * x + beta, 1),
        ),
    ),
    "Elu": (
        ("relu", "max(0, x)", lambda math, x, _, __: math.maximum(x, 0)),
        ("identity", "x", lambda _, x, __, ___: x),
    ),
    "Softsign": (
        ("identity", "x", lambda _, x, __, ___: x),
        ("tanh", "Tanh(x)", lambda math, x, _, __: math.tanh(x)),
    ),
    "Softplus": (
        ("relu", "max(0, x)", lambda math, x, _, __: math.maximum(x, 0)),
        ("of-minus", "log(1 + e^-x)", lambda math, x, _, __: math.softplus(-x)),
    ),
}
# (function, alpha or beta, another library's default)
OTHER_DEFAULTS = (
    ("LeakyRelu", "alpha", 0.3),
    ("ThresholdedRelu", "alpha", 0.0),
    ("HardSigmoid", "alpha", 1 / 6),
    ("HardSigmoid", "beta", 0.0),
    ("Elu", "alpha", 1.6732632),
)
# The clip assumed by a kernel if none is given.
SOME_CLIP = 8.0


def _taken_for(name: str, function: Function) -> Callable[[Recurrence], Recurrence]:
    def new(each: Activation) -> Activation:
        return replace(each, function=function) if each.name == name else each

    return lambda r: replace(r, activations=tuple(tuple(map(new, row)) for row in r.activations))


bug = Family(OF_STATEMENTS)
for name, wrong in WRONG_FORMULAS.items():
    for wrong_id, formula, function in wrong:
        bug.row(
            f"{name.lower()}-is-{wrong_id}",
            f"{name}(x) is {formula}.",
            _taken_for(name, function),
            uses_none_of(name),
            NO_STEP,
            effect="Other functions are right.",
        )


def _other_default(name: str, key: str, other: float, r: Recurrence) -> Recurrence:
    def value(own: str, default: float, given: float) -> float:
        return other if own == name and given == default else given

    return replace(r, activations=with_values(r.activations, key, value))


def _positional(key: str, r: Recurrence) -> Recurrence:
    return replace(r, activations=dealt(r.activations, key, positional=True))


for name, key, default in OTHER_DEFAULTS:
    bug.row(
        f"default-{key}-of-{name.lower()}",
        f"The {key} of {name} is {default:.4g} where none is given.",
        partial(_other_default, name, key, default),
        effect="Values that are given are right.",
    )
for key in ("alpha", "beta"):
    bug.row(
        f"{key}-positional",
        f"Element k of activation_{key} is given to activation k, whether it takes one or not.",
        partial(_positional, key),
        effect="Right where the functions that take one come first.",
    )

OPEN = "Wrong from the first step on, or from the second."


def opened(gate: Callable[[Parameters], int]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that replaces one of the values of f in a step by 1."""

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        calls = count()

        def f(v: Value) -> Value:
            value = p.f(v)
            return np.ones_like(value) if next(calls) == gate(p) else value

        return right(replace(p, f=f), x, states)

    return stepped(step)


@bug(NO_STEP, changes=opened, of=LSTM, effect=OPEN)
def input_gate_open(_: Parameters) -> int:
    """Ct = ft (.) Ct-1 + ct."""
    return 0


@bug(COUPLED, NO_STEP, changes=opened, of=LSTM, effect=OPEN)
def forget_gate_open(_: Parameters) -> int:
    """Ct = Ct-1 + it (.) ct."""
    return 1


@bug(NO_STEP, changes=opened, of=LSTM, effect=OPEN)
def output_gate_open(p: Parameters) -> int:
    """Ht = h(Ct)."""
    return 1 if p.options.input_forget else 2


def _peepholes_of_one(r: Recurrence) -> Recurrence:
    ones = np.ones((len(r.W), 3, r.W.shape[-2]), r.dtype.numpy)
    return replace(r, P=ones) if r.P is None else r


def _bias_of_one(r: Recurrence) -> Recurrence:
    ones = np.ones(r.W.shape[:-1], r.dtype.numpy)
    return replace(r, Wb=ones) if r.Wb is None and r.Rb is None else r


def _initial_of_one(which: int, r: Recurrence) -> Recurrence:
    ones = np.ones((len(r.W), r.X.shape[1], r.W.shape[-2]), r.dtype.numpy)
    new = (ones if k == which and s is None else s for k, s in enumerate(r.initial))
    return replace(r, initial=tuple(new))


for name, cells, change in (
    ("b", bug.of, _bias_of_one),
    ("initial-h", bug.of, partial(_initial_of_one, 0)),
    ("initial-c", LSTM, partial(_initial_of_one, 1)),
    ("p", LSTM, _peepholes_of_one),
):
    bug.row(
        f"absent-{name}-is-one",
        "An input that is not given is taken for ones instead of zeros.",
        change,
        NO_STEP,
        of=cells,
        effect="Right where it is given.",
    )


def _some_clip(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, clip=min(recurrence.clip, SOME_CLIP))


bug.row(
    "clip-where-none-is-given",
    f"Pre-activations are clipped to {SOME_CLIP:g} where no clip is given.",
    _some_clip,
    effect="Right where all of them are smaller.",
)
bug.row(
    "float64-computed-in-float32",
    "Whatever the dtype, float32 is computed with.",
    Change(engine=lambda _: NumPyEngine(np.dtype(np.float32))),
    where(lambda r: r.dtype.name != "float64", "the dtype is narrower than float64"),
    effect="Only float64 is wrong.",
)

VIOLATIONS: Mapping[str, Mutant] = {each.id: each for each in bug.rows}


def violation_named(id: str) -> Mutant:  # noqa: A002 -- what a mutant itself calls it
    """Return a violation of a statement by its id: a mutant or a row of this module.

    Raises:
        InvalidRequest: the id is unknown.
    """
    found = VIOLATIONS.get(id) or MUTANTS.get(id)
    if found is None:
        raise InvalidRequest(f"unknown violation '{id}'{did_you_mean(id, [*VIOLATIONS, *MUTANTS])}")
    return found
