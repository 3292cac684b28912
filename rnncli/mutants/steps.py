"""Steps computed wrongly: batch and vector tails, clip, activations, gates, peepholes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.mutants.mutant import Change
from rnncli.mutants.parts import (
    ALL,
    GATED,
    GRU,
    LSTM,
    RNN,
    arrays,
    directions,
    family,
    joined,
    parameters,
    results,
    row,
    stepped,
)
from rnncli.mutants.reasons import (
    CELL_STARTS_AT_ZERO,
    COUPLED,
    NO_BIAS,
    NO_CLIP,
    NO_PEEPHOLES,
    NO_RECURRENT_BIAS,
    NO_RECURRENT_PRODUCT,
    NO_STEP,
    ONE_DIRECTION,
    ONE_SEQUENCE,
    RESETS_AFTER,
    RESETS_BEFORE,
    UNCOUPLED,
    where,
)
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence, Result

WIDTHS = (4, 8, 16)
Right: TypeAlias = "Callable[[Parameters, Value, States], States]"


# Batches and vectors


def _without_tail(values: Array, width: int, axis: int) -> Array:
    """Zero what is left over of an axis after whole vectors."""
    values = values.copy()
    size = values.shape[axis]
    tail: list[slice] = [slice(None)] * values.ndim
    tail[axis] = slice(size - size % width, size)
    values[tuple(tail)] = 0
    return values


def _units_without_tail(
    width: int, right: Right, p: Parameters, x: Value, states: States
) -> States:
    return tuple(_without_tail(state, width, -1) for state in right(p, x, states))


def _batch_without_tail(width: int) -> Change:
    return results(
        lambda _, Y, last: (
            _without_tail(Y, width, 2),
            tuple(_without_tail(state, width, 1) for state in last),
        )
    )


def _fits(size: Callable[[Recurrence], int], letter: str, width: int) -> Any:
    return where(lambda r: size(r) % width == 0, f"{letter} is a multiple of {width}")


def _hidden(recurrence: Recurrence) -> int:
    return int(recurrence.R.shape[3])


def _tails() -> Iterator[Mutant]:
    for width in WIDTHS:
        vectors = f"after whole vectors of {width}"
        effect = f"Sizes that are multiples of {width} are right."
        yield row(
            f"hidden-tail-{width}",
            ALL,
            f"Units left over {vectors} are not computed: zeros.",
            effect,
            stepped(partial(_units_without_tail, width)),
            _fits(_hidden, "H", width),
            NO_STEP,
        )
        yield row(
            f"recurrent-reduction-tail-{width}",
            ALL,
            f"H*(R^T) leaves out the units {vectors}.",
            effect,
            arrays(("R",), partial(_without_tail, width=width, axis=3)),
            _fits(_hidden, "H", width),
            NO_RECURRENT_PRODUCT,
        )
        yield row(
            f"input-tail-{width}",
            ALL,
            f"X*(W^T) leaves out the inputs {vectors}.",
            effect,
            arrays(("W",), partial(_without_tail, width=width, axis=3)),
            _fits(lambda r: r.W.shape[3], "I", width),
        )
        yield row(
            f"batch-tail-{width}",
            ALL,
            f"Sequences {vectors} are not computed: zeros.",
            effect,
            _batch_without_tail(width),
            _fits(lambda r: r.X.shape[1], "N", width),
        )


def _rows_shifted(right: Right, p: Parameters, x: Value, states: States) -> States:
    return right(p, x, tuple(np.roll(state, 1, axis=0) for state in states))


def _first_input(recurrence: Recurrence) -> Recurrence:
    X = recurrence.X
    return replace(recurrence, X=np.broadcast_to(X[:, :1], X.shape) if X.shape[1] else X)


def _batches() -> Iterator[Mutant]:
    effect = "A batch of one sequence is right."
    yield row(
        "batch-rows-mixed",
        ALL,
        "Each sequence is advanced from the states of its neighbour.",
        effect,
        stepped(_rows_shifted),
        ONE_SEQUENCE,
        NO_STEP,
    )
    yield row(
        "batch-first-row-only",
        ALL,
        "Every sequence is computed from the X of the first.",
        effect,
        _first_input,
        ONE_SEQUENCE,
        NO_STEP,
    )


# Clip


def _bound(recurrence: Recurrence) -> float:
    return recurrence.clip


def _clip_set(function: Callable[[float], float]) -> Callable[[Recurrence], Recurrence]:
    return lambda r: replace(r, clip=function(r.clip))


def _unclipped(
    function: Callable[..., States],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change to function(step, p, x, states, bound), activations not clipped."""
    change = stepped(function, bound=_bound)
    return lambda r: replace(change(r), clip=math.inf)


def _clip(values: Value, bound: float) -> Value:
    return np.clip(values, -bound, bound)


def _input_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    return right(p, _clip(x, bound), states)


def _product_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    product = replace(p, R=lambda *given: _clip(p.R(*given), bound))
    return right(product, x, states)


def _state_clipped(
    which: int, right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    new = list(right(p, x, states))
    new[which] = _clip(new[which], bound)
    return tuple(new)


def _values_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float
) -> States:
    """Clip what activations return instead of what they are given."""
    own: dict[str, Any] = {letter: getattr(p, letter) for letter in "fgh"}
    clipped: dict[str, Any] = {
        k: lambda v, own=function: _clip(own(v), bound) for k, function in own.items()
    }
    return right(replace(p, **clipped), x, states)


def _clipped_by(
    letters: str, clip: Callable[[Value, float], Value]
) -> Callable[[Recurrence], Recurrence]:
    """Return the change that clips the arguments of some activations only, in some way."""

    def step(right: Right, p: Parameters, x: Value, states: States, *, bound: float) -> States:
        own: dict[str, Any] = {letter: getattr(p, letter) for letter in letters}
        clipped: dict[str, Any] = {
            k: lambda v, own=function: own(clip(v, bound)) for k, function in own.items()
        }
        return right(replace(p, **clipped), x, states)

    return _unclipped(step)


def _no_lower_bound(recurrence: Recurrence) -> Recurrence:
    return _clipped_by("fgh" if recurrence.clip_hidden else "fg", np.minimum)(recurrence)


def _bias_after_clip(run: Run, recurrence: Recurrence) -> Result:
    """Clip Xt*(W^T) + Ht-1*(R^T), then add the biases: each direction has its own."""
    return joined([run(_biased_late(each)) for each in directions(recurrence)])


def _biased_late(recurrence: Recurrence) -> Recurrence:
    parts = [b[0].astype(np.float64) for b in (recurrence.Wb, recurrence.Rb) if b is not None]
    if not parts or math.isinf(recurrence.clip):
        return recurrence
    bias = np.sum(parts, axis=0)[:, None, :]
    bare = replace(recurrence, Wb=None, Rb=None, clip=math.inf)
    return stepped(_summed_clipped, bound=lambda _: recurrence.clip, bias=lambda _: bias)(bare)


def _summed_clipped(
    right: Right, p: Parameters, x: Value, states: States, *, bound: float, bias: Array
) -> States:
    """Hand the step sums that are clipped and then biased, in place of the products."""

    def product(state: Value, gates: slice = slice(None)) -> Value:
        return (_clip(x[gates] + p.R(state, gates), bound) + bias[gates]).astype(x.dtype)

    return right(replace(p, R=product), np.zeros_like(x), states)


def _clips() -> Iterator[Mutant]:
    effect = "Without clip, or where nothing reaches it, everything is right."

    def clip_row(
        id_: str,
        sentence: str,
        change: Change | Callable[[Recurrence], Recurrence],
        cells: tuple[str, ...] = ALL,
        *reasons: Any,
    ) -> Mutant:
        return row(f"clip-{id_}", cells, sentence, effect, change, NO_CLIP, *reasons)

    yield clip_row("ignored", "clip is not applied.", _clip_set(lambda _: math.inf))
    yield clip_row("doubled", "Pre-activations are clipped to 2*clip.", _clip_set(lambda c: 2 * c))
    yield clip_row("halved", "Pre-activations are clipped to clip/2.", _clip_set(lambda c: c / 2))
    yield clip_row("from-above-only", "There is no lower bound.", _no_lower_bound)
    yield clip_row(
        "before-bias",
        "The biases are added after clipping.",
        Change(result=_bias_after_clip),
        ALL,
        NO_BIAS,
    )
    yield clip_row(
        "of-input-product", "Only Xt*(W^T) and the biases are clipped.", _unclipped(_input_clipped)
    )
    yield clip_row(
        "of-recurrent-product", "Only Ht-1*(R^T) is clipped.", _unclipped(_product_clipped)
    )
    yield clip_row(
        "of-values",
        "What activations return is clipped, not what they are given.",
        _unclipped(_values_clipped),
    )
    yield clip_row(
        "of-h", "Ht is clipped, not the pre-activations.", _unclipped(partial(_state_clipped, 0))
    )
    yield clip_row(
        "of-c",
        "Ct is clipped, not the pre-activations.",
        _unclipped(partial(_state_clipped, 1)),
        LSTM,
    )
    yield clip_row(
        "of-h-activation-flipped",
        "The input of h is not clipped though it should be, or the other way round.",
        lambda r: replace(r, clip_hidden=not r.clip_hidden),
        LSTM,
    )
    for letters, cells in (("f", GATED), ("g", GATED)):
        yield clip_row(
            f"of-{letters}-only",
            f"Only the argument of {letters} is clipped.",
            _clipped_by(letters, _clip),
            cells,
        )


# Activations


def _each_row(
    function: Callable[[Recurrence, tuple[Activation, ...]], Iterable[Activation]],
) -> Callable[[Recurrence], Recurrence]:
    return lambda r: replace(
        r, activations=tuple(tuple(function(r, given)) for given in r.activations)
    )


DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


def _default(letter: str, recurrence: Recurrence, given: tuple[Activation, ...]) -> Any:
    names = zip(recurrence.cell.activations, DEFAULTS[recurrence.cell.name], given, strict=True)
    return (
        ACTIVATIONS[name] if letter in ("", own) else activation for own, name, activation in names
    )


def _swapped(a: int, b: int, _: Recurrence, given: tuple[Activation, ...]) -> list[Activation]:
    new = list(given)
    new[a], new[b] = given[b], given[a]
    return new


def _replaced_by_letter(letter: str) -> Callable[[Recurrence], Recurrence]:
    identity: dict[str, Any] = {letter: lambda v: v}
    return parameters(lambda p: replace(p, **identity))


def _with_value(each: Activation, key: str, value: float) -> Activation:
    return replace(each, alpha=value) if key == "alpha" else replace(each, beta=value)


def _value(key: str, value: Callable[[str, float], float]) -> Callable[[Recurrence], Recurrence]:
    """Return the change of alpha or beta, where an activation takes it: (name, given) -> other."""

    def new(each: Activation) -> Activation:
        given = getattr(each, key)
        return each if given is None else _with_value(each, key, value(each.name, given))

    return _each_row(lambda _, given: map(new, given))


def _own_default(key: str, name: str, _: float) -> float:
    return float(getattr(ACTIVATIONS[name], key))


def _zero_default(key: str) -> Callable[[Recurrence], Recurrence]:
    return _value(key, lambda name, v: 0.0 if v == getattr(ACTIVATIONS[name], key) else v)


def _exchanged(each: Activation) -> Activation:
    if each.alpha is None or each.beta is None:
        return each
    return replace(each, alpha=each.beta, beta=each.alpha)


def _queue(recurrence: Recurrence, key: str) -> list[float]:
    """Return activation_alpha or activation_beta as a node has to write it, in full."""
    flat = (getattr(each, key) for row in recurrence.activations for each in row)
    return [value for value in flat if value is not None]


def _positional(recurrence: Recurrence) -> Recurrence:
    """Give activation k element k, and the default where the list has ended."""
    for key in ("alpha", "beta"):
        recurrence = _dealt(recurrence, key, restart=False, positional=True)
    return recurrence


def _restarted(recurrence: Recurrence) -> Recurrence:
    """Deal the second direction the values of the first once more."""
    for key in ("alpha", "beta"):
        recurrence = _dealt(recurrence, key, restart=True, positional=False)
    return recurrence


def _dealt(recurrence: Recurrence, key: str, *, restart: bool, positional: bool) -> Recurrence:
    queue, rows, k = _queue(recurrence, key), [], 0
    for given in recurrence.activations:
        k = 0 if restart else k
        row_ = []
        for each in given:
            takes = getattr(each, key) is not None
            value = queue[k] if k < len(queue) else getattr(ACTIVATIONS[each.name], key)
            row_.append(_with_value(each, key, value) if takes else each)
            k += positional or takes
        rows.append(tuple(row_))
    return replace(recurrence, activations=tuple(rows))


def _activations() -> Iterator[Mutant]:
    effect = "The default activations are right."
    yield row(
        "activations-ignored",
        ALL,
        "The default activations are applied whatever is asked for.",
        effect,
        _each_row(partial(_default, "")),
    )
    for letter, cells in (("f", GATED), ("g", GATED), ("h", LSTM)):
        yield row(
            f"activation-{letter}-ignored",
            cells,
            f"The default is applied in place of {letter}.",
            effect,
            _each_row(partial(_default, letter)),
        )
        yield row(
            f"activation-{letter}-missing",
            cells,
            f"{letter} is not applied at all.",
            "Values are larger than they should be, saturated ones most.",
            _replaced_by_letter(letter),
            NO_STEP,
        )
    yield row(
        "activation-f-missing-in-rnn",
        RNN,
        "f is not applied at all.",
        "Values are larger than they should be, saturated ones most.",
        _replaced_by_letter("f"),
        NO_STEP,
    )
    for pair, a, b, cells in (
        ("f-g", 0, 1, GATED),
        ("f-h", 0, 2, LSTM),
        ("g-h", 1, 2, LSTM),
    ):
        letters = " and ".join(pair.split("-"))
        yield row(
            f"activations-{pair}-swapped",
            cells,
            f"{letters} are taken for each other.",
            "Right only where both are the same.",
            _each_row(partial(_swapped, a, b)),
        )
    for key in ("alpha", "beta"):
        yield row(
            f"{key}-default-zero",
            ALL,
            f"activation_{key} that is not given is 0 instead of the function's default.",
            f"Functions that take no {key} are right, and so are given values.",
            _zero_default(key),
        )
        yield row(
            f"{key}-ignored",
            ALL,
            f"activation_{key} is not read: the function's default is taken.",
            f"Functions that take no {key} are right.",
            _value(key, partial(_own_default, key)),
        )
    yield row(
        "alpha-beta-exchanged",
        ALL,
        "alpha and beta of functions that take both are taken for each other.",
        "Only Affine, ScaledTanh and HardSigmoid are wrong.",
        _each_row(lambda _, given: map(_exchanged, given)),
    )
    yield row(
        "alpha-beta-positional",
        ALL,
        "Element k of activation_alpha and activation_beta is given to activation k, whether it"
        " takes one or not; lists are taken as written in full.",
        "Right where the functions that take values come first.",
        _positional,
    )
    yield row(
        "alpha-beta-restarted",
        ALL,
        "The second direction reads activation_alpha and activation_beta from their start.",
        "Only the second direction is wrong.",
        _restarted,
        ONE_DIRECTION,
    )


# Gates


def _reset_bias_outside(recurrence: Recurrence) -> Recurrence:
    """Add Rbh to Wbh: the reset gate then does not multiply it."""
    if recurrence.Rb is None or not recurrence.linear_before_reset:
        return recurrence
    Wb = np.zeros_like(recurrence.Rb) if recurrence.Wb is None else recurrence.Wb.copy()
    Rb = recurrence.Rb.copy()
    Wb[:, 2] += Rb[:, 2]
    Rb[:, 2] = 0
    return replace(recurrence, Wb=Wb, Rb=Rb)


def _always_outside(recurrence: Recurrence) -> Recurrence:
    return _reset_bias_outside(replace(recurrence, linear_before_reset=True))


def _calls_of_f(
    function: Callable[[list[Value]], list[Value]],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change of what f has returned in a step: all its values, in order.

    A step is computed once to have them, and once with those that are to be in their place; None
    leaves a value to f.
    """

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        values: list[Value] = []

        def record(v: Value) -> Value:
            values.append(p.f(v))
            return values[-1]

        right(replace(p, f=record), x, states)
        given = iter(function(values))

        def replay(v: Value) -> Value:
            value = next(given)
            return p.f(v) if value is None else value

        return right(replace(p, f=replay), x, states)

    return stepped(step)


def _without_reset(values: list[Value]) -> list[Value]:
    z, r = values[0]
    return [np.stack([z, np.ones_like(r)])]


def _reset_inverted(values: list[Value]) -> list[Value]:
    z, r = values[0]
    return [np.stack([z, 1 - r])]


def _input_from_forget(recurrence: Recurrence) -> Recurrence:
    """I = 1 - f instead of f = 1 - i."""
    if not recurrence.input_forget:
        return recurrence
    change = _calls_of_f(lambda values: [1 - values[1], None, None])
    return change(replace(recurrence, input_forget=False))


def _blended(blend: Callable[[Value, Value, Value], Value], p: Parameters) -> Parameters:
    return replace(p, blend=blend)


def _blends() -> Iterator[Mutant]:
    for id_, sentence, blend in (
        ("z-inverted", "Ht = zt (.) ht + (1 - zt) (.) Ht-1.", lambda z, h, H: z * h + (1 - z) * H),
        ("z-ignored", "Ht = ht: the update gate is not applied.", lambda _, h, __: h),
        ("z-of-old-state-only", "Ht = ht + zt (.) Ht-1.", lambda z, h, H: h + z * H),
        ("z-of-new-state-only", "Ht = (1 - zt) (.) ht + Ht-1.", lambda z, h, H: (1 - z) * h + H),
    ):
        yield row(
            id_,
            GRU,
            sentence,
            "Wrong from the first step on.",
            parameters(partial(_blended, blend)),
            NO_STEP,
        )


def _resets() -> Iterator[Mutant]:
    before, after = "linear_before_reset = 0 is right.", "linear_before_reset != 0 is right."
    yield row(
        "linear-before-reset-ignored",
        GRU,
        "The reset gate is applied before the linear transformation also where"
        " linear_before_reset is not 0.",
        before,
        lambda r: replace(r, linear_before_reset=False),
        RESETS_BEFORE,
    )
    yield row(
        "linear-before-reset-always",
        GRU,
        "The reset gate is applied after the linear transformation also where"
        " linear_before_reset is 0.",
        after,
        lambda r: replace(r, linear_before_reset=True),
        RESETS_AFTER,
    )
    yield row(
        "linear-before-reset-bias-outside",
        GRU,
        "With linear_before_reset, Rbh is added after the reset gate is applied.",
        before,
        _reset_bias_outside,
        RESETS_BEFORE,
        NO_RECURRENT_BIAS,
    )
    yield row(
        "linear-before-reset-always-bias-outside",
        GRU,
        "The reset gate is applied to Ht-1*(Rh^T) also where linear_before_reset is 0, and never"
        " to Rbh.",
        after,
        _always_outside,
        where(
            lambda r: r.linear_before_reset and r.Rb is None,
            "linear_before_reset is not 0 and no recurrent bias is given",
        ),
    )
    for id_, sentence, function in (
        ("reset-ignored", "The reset gate is 1.", _without_reset),
        ("reset-inverted", "The reset gate is 1 - rt.", _reset_inverted),
    ):
        yield row(id_, GRU, sentence, "Right where Ht-1 is zero.", _calls_of_f(function), NO_STEP)


def _couplings() -> Iterator[Mutant]:
    yield row(
        "input-forget-ignored",
        LSTM,
        "input_forget is not read: the forget gate is computed from its weights.",
        "input_forget = 0 is right.",
        lambda r: replace(r, input_forget=False),
        UNCOUPLED,
        CELL_STARTS_AT_ZERO,
    )
    yield row(
        "input-forget-always",
        LSTM,
        "The forget gate is 1 - it also where input_forget is 0.",
        "input_forget = 1 is right.",
        lambda r: replace(r, input_forget=True),
        COUPLED,
        CELL_STARTS_AT_ZERO,
    )
    yield row(
        "input-forget-other-way",
        LSTM,
        "With input_forget, the input gate is 1 - ft.",
        "input_forget = 0 is right.",
        _input_from_forget,
        UNCOUPLED,
    )


def _forget_bias(recurrence: Recurrence) -> Recurrence:
    forget = CELLS["LSTM"].gates.index("f")
    given = recurrence.Wb
    D, G, H, _ = recurrence.W.shape
    Wb = np.zeros((D, G, H), recurrence.dtype.numpy) if given is None else given.copy()
    Wb = Wb.astype(np.float64)
    Wb[:, forget] += 1
    return replace(recurrence, Wb=Wb)


FORGET_BIAS = row(
    "forget-bias-plus-one",
    LSTM,
    "1 is added to the bias of the forget gate.",
    "Cells forget too slowly; a single step from a zero cell is right.",
    _forget_bias,
    COUPLED,
    CELL_STARTS_AT_ZERO,
)


# Peepholes


def _peepholes_ordered(order: str, values: Array) -> Array:
    return values[:, [order.index(gate) for gate in "iof"]]


def _old_cell_for_o(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Give o the peephole of Ct-1: in its pre-activation, and not again from Ct."""
    if p.P is None:
        return right(p, x, states)
    x = x.copy()
    x[1] += p.P[1] * states[1]
    return right(replace(p, P=np.stack([p.P[0], 0 * p.P[1], p.P[2]])), x, states)


def _h_for_c(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Give i and f the peepholes of Ht-1."""
    if p.P is None:
        return right(p, x, states)
    x = x.copy()
    x[0] += p.P[0] * states[0]
    x[2] += p.P[2] * states[0]
    return right(replace(p, P=np.stack([0 * p.P[0], p.P[1], 0 * p.P[2]])), x, states)


def _peepholes() -> Iterator[Mutant]:
    effect = "Without P everything is right."

    def peep(
        id_: str, sentence: str, change: Callable[[Recurrence], Recurrence], *reasons: Any
    ) -> Mutant:
        return row(f"peepholes-{id_}", LSTM, sentence, effect, change, NO_PEEPHOLES, *reasons)

    yield peep("dropped", "P is not read.", lambda r: replace(r, P=None))
    for k, gate in enumerate("iof"):
        change = arrays(("P",), partial(_zeroed, k))
        sentence = f"The peephole of gate {gate} is not added."
        reasons = (COUPLED,) if gate == "f" else ()
        yield peep(f"dropped-from-{gate}", sentence, change, *reasons)
    for order in ("ifo", "ofi", "oif", "fio", "foi"):
        change = arrays(("P",), partial(_peepholes_ordered, order))
        yield peep(f"in-order-{order}", f"P is read in the order {order} instead of iof.", change)
    yield peep("of-old-cell-for-o", "Po is multiplied by Ct-1.", stepped(_old_cell_for_o), NO_STEP)
    yield peep("of-h", "Pi and Pf are multiplied by Ht-1.", stepped(_h_for_c), NO_STEP)


def _zeroed(gate: int, values: Array) -> Array:
    values = values.copy()
    values[:, gate] = 0
    return values


ROWS = (
    *family("batches and vectors", (*_tails(), *_batches())),
    *family("clip", _clips()),
    *family("activations", _activations()),
    *family("linear_before_reset", _resets()),
    *family("update gate", _blends()),
    *family("peepholes", _peepholes()),
    *family("input_forget", _couplings()),
    *family("forget bias", (FORGET_BIAS,)),
)
