"""Reasons why a mutant cannot be seen: each holds only where its results are right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import TokenForm
from rnncli.recurrence.recurrence import Direction, all_but

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import AttentionForm
    from rnncli.recurrence.integers import IntegerForm
    from rnncli.recurrence.recurrence import Recurrence, Result

Reason: TypeAlias = "Callable[[Recurrence], str]"
UNTOUCHED = "leaves every attribute and input as it is"
every_field = all_but()


def always_seen(recurrence: Recurrence) -> str:
    """Return no reason."""
    del recurrence
    return ""


def where(condition: Callable[[Recurrence], bool], sentence: str) -> Reason:
    """Return the reason that gives a sentence where a condition holds."""
    return lambda recurrence: sentence if condition(recurrence) else ""


def first(*reasons: Reason) -> Reason:
    """Return the reason that gives the first of several reasons."""
    if len(reasons) < 2:
        return reasons[0] if reasons else always_seen
    return lambda recurrence: next(filter(None, (reason(recurrence) for reason in reasons)), "")


def is_same(
    one: Recurrence,
    other: Recurrence,
    fields_of: Callable[[Recurrence], tuple[Any, ...]] = every_field,
) -> bool:
    """Whether the fields of two recurrences, or some of them, are the same, bit for bit."""
    return all(a is b or _same(a, b) for a, b in zip(fields_of(one), fields_of(other), strict=True))


def same_results(one: Result, other: Result) -> bool:
    """Whether every output is the same, bit for bit."""
    return _same(one.Y, other.Y) and _same(one.last, other.last)


def _same(one: Any, other: Any) -> bool:
    """Whether two fields of a recurrence or of a result are the same, bit for bit."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(map(_same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one is other or (one.shape == other.shape and one.tobytes() == other.tobytes())
    return one is other or bool(type(one) is type(other) and one == other)


def lengths_of(recurrence: Recurrence) -> Array:
    """Return the number of valid steps of each sequence [N]."""
    T, N, _ = recurrence.X.shape
    return np.full(N, T, np.int64) if recurrence.lengths is None else recurrence.lengths


def zero_when_multiplied(recurrence: Recurrence, state: int) -> bool:
    """Whether a state is zero whenever a step is computed from it."""
    given = recurrence.initial[state]
    return (given is None or not given.any()) and bool(np.all(lengths_of(recurrence) <= 1))


def _cell_starts_at_zero(recurrence: Recurrence) -> bool:
    """Whether C_{t-1} is a zero that no infinite gate makes NaN."""
    r = recurrence
    numbers = (r.X, r.W, r.R, r.Wb, r.Rb, *r.initial)
    finite = all(np.isfinite(values).all() for values in numbers if values is not None)
    return zero_when_multiplied(r, 1) and finite


def uses_none_of(*names: str) -> Reason:
    """Return the reason that holds where none of some activations is used."""
    spelled = " or ".join(names)
    return where(
        lambda r: not any(each.name in names for row in r.activations for each in row),
        f"no activation is {spelled}",
    )


NO_RECURRENT_PRODUCT = where(
    lambda r: zero_when_multiplied(r, 0) and bool(np.isfinite(r.R).all()),
    "H is zero whenever it is multiplied: one step from a zero state",
)
CELL_STARTS_AT_ZERO = where(
    _cell_starts_at_zero, "C is zero at every step: one step from a zero state"
)
NO_STEP = where(lambda r: not lengths_of(r).any(), "no sequence has a step")
NO_BIAS = where(lambda r: r.Wb is None and r.Rb is None, "no bias is given")
NO_INPUT_BIAS = where(lambda r: r.Wb is None, "no input bias is given")
NO_RECURRENT_BIAS = where(lambda r: r.Rb is None, "no recurrent bias is given")
NO_PEEPHOLES = where(lambda r: r.P is None, "no peepholes are given")
NO_INITIAL_H = where(lambda r: r.initial[0] is None, "no initial_h is given")
NO_INITIAL_C = where(lambda r: r.initial[1] is None, "no initial_c is given")
NO_INITIAL = where(lambda r: all(s is None for s in r.initial), "no initial state is given")
NOT_DRESSED = where(lambda r: r.unit is None, "no tensor is dressed in levels")
NO_CLIP = where(lambda r: bool(np.isinf(r.clip)), "there is no clip")
NOT_RAGGED = where(lambda r: r.lengths is None, "every sequence is as long as X")
NOT_PACKED = where(lambda r: r.lengths is None, "sequences are not packed")
ALIKE_ENDS = where(lambda r: len({*lengths_of(r)}) <= 1, "all sequences end with the same step")
NO_ZERO_LENGTH = where(lambda r: bool(np.all(lengths_of(r) > 0)), "no sequence has length 0")
GATES_IN_DEFAULT_ORDER = where(lambda r: not r.gates, "gates are in the default order")
ONE_DIRECTION = where(lambda r: len(r.directions) == 1, "there is one direction")
ONE_SEQUENCE = where(lambda r: r.X.shape[1] <= 1, "the batch is one sequence")
ONE_STEP = where(lambda r: r.X.shape[0] <= 1, "T is 1")
NO_REVERSE = where(lambda r: Direction.REVERSE not in r.directions, "no direction is reverse")
NO_FORWARD = where(lambda r: Direction.FORWARD not in r.directions, "no direction is forward")
NO_Y = where(lambda r: not r.wants_Y, "Y is not asked for")
RESETS_BEFORE = where(lambda r: not r.options.linear_before_reset, "linear_before_reset is 0")
RESETS_AFTER = where(lambda r: r.options.linear_before_reset, "linear_before_reset is not 0")
COUPLED = where(lambda r: r.options.input_forget, "input_forget is not 0")
UNCOUPLED = where(lambda r: not r.options.input_forget, "input_forget is 0")
NOTHING_MOVES = where(
    lambda r: r.options.linear_before_reset and r.Rb is None,
    "linear_before_reset is not 0 and no recurrent bias is given",
)
OLD_CELL = where(lambda r: r.options.peephole_previous, "Ct-1 is right: peephole-o is previous")
NEW_CELL = where(lambda r: not r.options.peephole_previous, "Ct is right: peephole-o is new")
INITIAL_H = where(lambda r: r.initial[0] is not None, "initial_h is given")
ONE_UNIT = where(lambda r: r.R.shape[3] == 1, "H is 1")
NOT_SQUARE = where(lambda r: r.W.shape[2] != r.W.shape[3], "input and hidden size differ")
SORTED = where(
    lambda r: bool(np.all(np.diff(lengths_of(r)) <= 0)), "the sequences are sorted by length"
)


NOTHING_ADDS = where(
    lambda r: (
        not (r.options.linear_before_reset and r.Wb is None and r.Rb is None and r.X.shape[1] >= 3)
    ),
    "B is given, or the reset is before, or N is below 3",
)


def _has_default_values(r: Recurrence) -> bool:
    rows = [each for row in r.activations for each in row]
    return all(
        (each.alpha, each.beta) == (ACTIVATIONS[each.name].alpha, ACTIVATIONS[each.name].beta)
        for each in rows
    )


DEFAULT_VALUES = where(_has_default_values, "alpha and beta are the defaults")
DEFAULT_FUNCTIONS = where(
    lambda r: all(tuple(each.name for each in row) == r.cell.defaults for row in r.activations),
    "the activations are the defaults",
)


def sizes_of(recurrence: Recurrence) -> dict[str, int]:
    """Return T, N, I and H, the number of directions D and of gates G; and those of its own.

    A linear attention has K heads of states, which are of dk rows and dv columns, each read by a
    group of queries; a convolution has C channels and w taps, d apart, and holds as many steps as
    they reach back. N is the batch.
    """
    (T, N, size), (D, G, H, _) = recurrence.X.shape, recurrence.W.shape
    found = {"T": T, "N": N, "I": size, "H": H, "D": D, "G": G}
    if (form := recurrence.options.attention) is not None:
        own = {"K": form.heads, "group": form.group, "dk": form.key_size, "dv": form.value_size}
        return found | own | {"N": N // form.heads}
    if recurrence.cell.projects or recurrence.options.integers or recurrence.options.projected:
        return found
    d = 1 + recurrence.options.gap
    return found | {"C": H, "w": G, "d": d, "held": (G - 1) * d}


def _form(recurrence: Recurrence) -> AttentionForm:
    """Return the form of a linear attention."""
    assert recurrence.options.attention is not None
    return recurrence.options.attention


def _integers(recurrence: Recurrence) -> IntegerForm:
    """Return the form of an integer LSTM."""
    assert recurrence.options.integers is not None
    return recurrence.options.integers


def _token(recurrence: Recurrence) -> TokenForm:
    """Return what is made of the tokens of a linear attention."""
    return recurrence.options.token or TokenForm()


def _numbers(recurrence: Recurrence, which: int) -> Array:
    """Return the decays of a linear attention, which are part 3 of its inputs, or betas, part 4."""
    return np.asarray(recurrence.options.parts(recurrence.X)[which]).astype(np.float64)


def _sizes(condition: Callable[..., bool], sentence: str) -> Reason:
    """Return the reason that holds where a condition of `sizes_of` does."""
    return where(lambda r: condition(sizes_of(r)), sentence)


# Those of linear recurrences.
NO_TOKEN = where(lambda r: not r.X.size, "there is no step")
SOME_STEPS = where(lambda r: len(r.X) > 0, "T is not 0")
NO_PAST = where(lambda r: r.initial[1] is None, "no past_state is given")
PAST_GIVEN = where(lambda r: r.initial[1] is not None, "past_state is given")
ONE_BATCH = _sizes(lambda n: n["N"] <= 1, "the batch is one sequence")
ONE_HEAD = _sizes(lambda n: n["K"] == 1, "there is one head of keys and values")
ONE_QUERY = _sizes(lambda n: n["group"] == 1, "each state is read by one head of queries")
ONE_OUTPUT_HEAD = _sizes(lambda n: n["K"] * n["group"] == 1, "there is one head")
DK_IS_NOT_DV = _sizes(lambda n: n["dk"] != n["dv"], "dk and dv differ")
DK_IS_DV = _sizes(lambda n: n["dk"] == n["dv"], "dk and dv are the same")
DK_OR_DV_IS_1 = _sizes(lambda n: 1 in (n["dk"], n["dv"]), "dk or dv is 1")
NO_DECAY = where(lambda r: not _form(r).decays, "there is no decay")
ONE_DECAY = where(lambda r: _form(r).decays <= 1, "a state has one decay, not each row")
NO_LENGTHS = where(lambda r: not _token(r).normalises, "queries and keys are as they are given")
NO_SOFTPLUS = where(lambda r: _token(r).gate != "softplus", "no softplus makes the decay")
NO_SIGMOID = where(lambda r: _token(r).gate != "sigmoid", "no sigmoid makes the decay")
NO_GATE = where(lambda r: _token(r).gate == "none", "the decay is as it is given")
USUAL_BOUND = where(lambda r: _token(r).bound == -5, "the bound is -5")
NO_ACTIVE_BETA = where(lambda r: not _token(r).activates_beta, "beta is as it is given")
ONE_KEY = where(lambda r: _form(r).key_size == 1, "dk is 1")
NO_BETA = where(lambda r: not _form(r).has_beta, "there is no beta")
SHARED_BETA = where(lambda r: _form(r).shares_beta, "all heads share beta")
ONE_GROUP_OR_OWN_QUERIES = where(
    lambda r: _form(r).share in (1, _form(r).heads), "queries are of one head, or each has its own"
)
OWN_KEYS = where(lambda r: not _form(r).shares_key, "each head of values has its keys")
OWN_BETA = where(lambda r: not _form(r).shares_beta, "each head has a beta")
SCALE_GIVEN = where(lambda r: _form(r).scale != 0, "a scale is given")
NO_SCALE_GIVEN = where(lambda r: _form(r).scale == 0, "no scale is given")
NO_SCALE_OF_1 = where(lambda r: _form(r).scale != 1, "the scale is not 1")
STATES_OF_OWN_DTYPE = where(
    lambda r: r.dtypes[-1].precision <= r.dtype.precision,
    "states have no finer type than queries",
)
DECAYS_BELOW_0 = where(
    lambda r: bool(_form(r).decays and (_numbers(r, 3) < 0).all()), "every decay is below 0"
)
NO_POSITIVE_DECAY = where(lambda r: not (_numbers(r, 3) > 0).any(), "no decay is above 0")
FINITE_DECAY = where(lambda r: not np.isinf(_numbers(r, 3)).any(), "no decay is infinite")
FINITE_INPUTS = where(lambda r: bool(np.isfinite(r.X).all()), "all inputs are finite")
NO_BETA_ABOVE_1 = where(lambda r: not (_numbers(r, 4) > 1).any(), "no beta is above 1")
BETA_IN_UNIT_INTERVAL = where(
    lambda r: not ((_numbers(r, 4) > 1) | (_numbers(r, 4) < 0)).any(), "no beta is outside 0 to 1"
)
ONE_CHANNEL = _sizes(lambda n: n["C"] <= 1, "there is one channel")
ONE_TAP = _sizes(lambda n: n["w"] == 1, "k is 1")
TWO_TAPS = _sizes(lambda n: n["held"] <= 1, "the window is of at most 2 steps")
LONG_CALL = _sizes(lambda n: n["T"] >= n["held"], "the call has k - 1 steps or more")
SHORT_CALL = _sizes(lambda n: n["T"] <= n["held"], "the call has k - 1 steps or fewer")
ADJACENT_TAPS = _sizes(lambda n: n["d"] == 1, "the dilation is 1")
SILU = where(lambda r: r.options.silu, "the sum is activated")
NO_SILU = where(lambda r: not r.options.silu, "there is no activation")
NO_PROJECTION = where(lambda r: r.projection is None, "there is no projection")
# Those of integer LSTMs, by their readings.
EIGHT_BITS = where(lambda r: _integers(r).bits == 8, "inputs have 8 bits")


def no_decay_below(bound: float) -> Reason:
    """Return the reason that holds where no decay is below a bound."""
    return where(lambda r: not (_numbers(r, 3) < bound).any(), f"no decay is below {bound}")


def no_decay_sum_below(bound: float) -> Reason:
    """Return the reason that holds where decays that are next to each other have no sum below."""
    return where(
        lambda r: not (np.minimum(_numbers(r, 3), 0).sum(0) < bound).any(),
        f"no sum of decays is below {bound}",
    )


def no_more_taps_than(number: int) -> Reason:
    """Return the reason that holds where a convolution has at most so many taps."""
    return _sizes(lambda n: n["w"] <= number, f"k is at most {number}")


def product_of(sizes: Mapping[str, int], axis: str) -> int:
    """Return a size, or a product of sizes such as "G*H*I"."""
    return math.prod(sizes[each] for each in axis.split("*"))


def multiple_of(axis: str, width: int) -> Reason:
    """Return the reason that holds where a size or a product has no tail after whole vectors."""
    return where(
        lambda r: product_of(sizes_of(r), axis) % width == 0, f"{axis} is a multiple of {width}"
    )


def same_size(axis: str, other: str) -> Reason:
    """Return the reason that holds where sizes are the same."""

    def same(r: Recurrence) -> bool:
        sizes = sizes_of(r)
        return sizes[axis] == sizes[other]

    return where(same, f"{axis} and {other} are the same size")


def at_most_one(axis: str) -> Reason:
    """Return the reason that holds where a size is 1 or less."""
    return where(lambda r: sizes_of(r)[axis] <= 1, f"{axis} is at most 1")


def no_longer_than(steps: int) -> Reason:
    """Return the reason that holds where no sequence has more than so many steps."""
    return where(
        lambda r: int(lengths_of(r).max(initial=0)) <= steps,
        f"no sequence has more than {steps} steps",
    )
