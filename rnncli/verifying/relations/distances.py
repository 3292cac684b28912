"""Bounds on the distance between two correct outputs of one call, without a golden.

Each output is within its tolerance of the exact result, so two are at most the sum of both
tolerances apart. Tolerances are derived as for vectors, along a trajectory evaluated in float64.
That trajectory is not certified, but a scale need not be exact. An implementation on another
trajectory, through another reading or a bug, is allowed the widest tolerance everywhere, and at
least u*sqrt(K) of its largest value, since relations only ask whether it agrees with itself.

Deriving takes D*T*N*H*H operations, and more of linear attentions, whose steps all reach all later
ones. Beyond `DERIVABLE`, a cheaper scale is used: the node is evaluated in float64 unchanged, and
with weights and biases perturbed at random by the errors that sums and activations of a correct
kernel have; or queries, keys, values, rates and decays, at each step. The difference is a sample of
the rounding errors after any number of steps. The bound is the largest difference among a
sequence's units at a step, times the number of deviations the profile grants.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.tolerances.derivation import derive
from rnncli.numerics import FLOAT64, dtype_named, limit_of
from rnncli.numerics.profiles import profile_named
from rnncli.numerics.randomness import seed_key, uniform
from rnncli.recurrence.recurrence import Compute, Result
from rnncli.verifying.node_call import H, I, T

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile, Rounding
    from rnncli.recurrence.recurrence import Recurrence
    from rnncli.verifying.node_call import NodeCall

# About 3 s on two cores of a server.
DERIVABLE = 1 << 24
# How many products of a linear attention's matrices take as long as one of those.
OF_A_MATRIX = 64
# The sizes of sums in a step.
SUMMED = (I, H, "key_size", "kernel_size")
DRAWS = 2
# The kinds of bounds; MEASURED are those of whole models.
DERIVED, PERTURBED, MEASURED = "derived", "perturbed", "measured"


class Closeness(NamedTuple):
    """The allowed distance between outputs of a call."""

    kind: str  # `derived`, or `perturbed` if deriving would take too long
    # by output, for each element; NaN if two correct outputs may be so far apart, or so near
    # infinity, that nothing can be judged
    allowed: Tensors


def closeness_of(call: NodeCall, outputs: Tensors, profile: str) -> Closeness:
    """Return the allowed distance between two correct outputs of a call.

    Args:
        call: the call; its layout is that of the compared outputs.
        outputs: its outputs, from an implementation that may use another reading of the
            specification.
        profile: the errors that a correct kernel may make.
    """
    if call.row.cell.of_integers:  # equal or wrong
        return Closeness(DERIVED, {name: np.zeros(v.shape) for name, v in outputs.items()})
    kind = DERIVED if _work(call.recurrence) <= DERIVABLE else PERTURBED
    grants = profile_named(profile)
    truth, tolerance = SCALES[kind](call, grants)
    wanted, each = (call.node.outputs_of(result) for result in (truth, tolerance))
    widths = {name: each[name].astype(np.float64) for name in wanted}
    margins = (errors_of(outputs[name], wanted[name], widths[name]).margin for name in wanted)
    if any((margin > 1).any() for margin in margins):  # not on the trajectory of the tolerances
        # At least u*sqrt(K) of the maximum.
        terms = 2 + sum(call.size(each) for each in SUMMED if call.row.has(each))
        finite = (np.nan_to_num(np.abs(v.astype(np.float64)), posinf=0) for v in outputs.values())
        largest = max((float(values.max(initial=0.0)) for values in finite), default=0.0)
        unit = grants.rounding(call.dtype).unit
        least = grants.deviations * unit * math.sqrt(terms) * largest
        for name, width in widths.items():
            widest = max(float(np.nan_to_num(width, posinf=0).max(initial=0.0)), least)
            # Padding has tolerance 0, unless it is treated as steps.
            touched = (width > 0) | (outputs[name] != 0)
            widths[name] = np.where(touched, np.maximum(width, widest), width)

    # Twice the tolerances; NaN where they cannot tell right from wrong.
    allowed, limit = {}, limit_of(np.zeros(0, call.dtype.numpy))
    for name, width in widths.items():
        size = np.abs(wanted[name].astype(np.float64))
        is_finite = np.isfinite(size)
        largest = float(np.max(size, initial=0.0, where=is_finite)) or 1.0
        with np.errstate(invalid="ignore"):
            allowed[name] = np.where(is_finite & (width <= limit * largest), 2 * width, np.nan)
    return Closeness(kind, allowed)


def _work(recurrence: Recurrence) -> int:
    steps, sequences = map(int, recurrence.X.shape[:2])
    form, directions = recurrence.options.attention, len(recurrence.directions)
    if recurrence.cell.projects:
        return directions * steps * sequences * math.prod(recurrence.R.shape[2:])
    if form is None:  # a convolution, which takes as long as its outputs
        return 0
    readers = steps * form.group + form.key_size
    return steps * sequences * readers * form.key_size * form.value_size // OF_A_MATRIX


def _derived(call: NodeCall, profile: Profile) -> tuple[Result, Result]:
    whole = replace(call.recurrence, wants_Y=True)
    truth = evaluate(whole, NumPyEngine(FLOAT64))
    return truth, derive(whole, profile, truth)


def _perturbed(call: NodeCall, profile: Profile) -> tuple[Result, Result]:
    # The recurrence in float64, with all biases present that it may have.
    r = call.recurrence
    form = r.options.attention
    own = {name: _in_float64(getattr(r, name)) for name in ("X", "W", "R", "Rb", "P")}
    has_none = r.Wb is None and form is None
    Wb = np.zeros(r.W.shape[:-1]) if has_none else _in_float64(r.Wb)
    initial = tuple(map(_in_float64, r.initial))
    dtype = dtype_named("float64")
    wide = replace(r, **own, dtype=dtype, states_dtype=None, Wb=Wb, initial=initial, wants_Y=True)

    numpy = backend_named("numpy")
    truth = numpy.run(wide, Compute.FLOAT64)
    moving = _moved
    roundings = [profile.rounding(each) for each in r.dtypes]
    if form is not None:
        moving = _moved_attention
        roundings = [replace(each, absolute=0.0) for each in roundings]
    moved = [numpy.run(moving(wide, call, profile, k), Compute.FLOAT64) for k in range(DRAWS)]

    def bound(of: Callable[[Result], Array | None], valid: Any, rounding: Rounding) -> Array:
        right = of(truth)
        assert right is not None
        size = np.abs(right)
        with np.errstate(invalid="ignore"):
            apart = [np.abs(values - right) for each in moved if (values := of(each)) is not None]
        widest = np.max(apart, axis=(0, -1))[..., None]
        # The error of a saturated function, whatever its argument.
        least = rounding.relative * size + rounding.absolute + rounding.floor
        return np.where(valid, profile.deviations * (widest / 2 + least / 3), 0.0)

    lengths = call.lengths
    live = (np.arange(call.sizes[T])[:, None] < lengths)[:, None, :, None]
    started = (lengths > 0)[:, None]
    if form is not None:  # which has no padding
        live = started = np.ones((), np.bool_)
    last = [
        bound(lambda each, k=k: each.last[k], started, rounding)  # type: ignore[misc]
        for k, rounding in enumerate(roundings)
    ]
    return truth, Result(bound(lambda each: each.Y, live, roundings[0]), tuple(last))


SCALES: dict[str, Callable[[NodeCall, Profile], tuple[Result, Result]]] = {
    DERIVED: _derived,
    PERTURBED: _perturbed,
}


def _in_float64(values: Array | None) -> Any:
    return None if values is None else values.astype(np.float64)


def _moved(recurrence: Recurrence, call: NodeCall, profile: Profile, draw: int) -> Recurrence:
    """Return a recurrence with weights and biases perturbed by the errors of a correct kernel."""
    r, rounding = recurrence, profile.rounding(call.dtype)
    terms = r.X.shape[-1] + r.R.shape[-1] + 2
    relative = math.hypot(2 * rounding.accumulator * math.sqrt(terms / 3), rounding.unit)
    absolute = rounding.relative + rounding.absolute

    def sign(name: str, values: Array) -> Array:
        return _signs(seed_key(draw, call.id, name), values)

    def scaled(name: str, values: Array) -> Array:
        return values * (1 + (relative + rounding.factor) * sign(name, values))

    assert r.Wb is not None
    return replace(
        r,
        W=scaled("W", r.W),
        R=scaled("R", r.R),
        P=None if r.P is None else scaled("P", r.P),
        Wb=scaled("B", r.Wb) + absolute * sign("absolute", r.Wb),
    )


def _moved_attention(
    recurrence: Recurrence, call: NodeCall, profile: Profile, draw: int
) -> Recurrence:
    """Return a linear attention with all that its steps read perturbed likewise.

    A decay has the errors of the state that it multiplies as well; so has one of 0 where there is
    none.
    """
    form = recurrence.options.attention
    assert form is not None
    inside = profile.rounding(profile.step(call.dtype))
    terms = form.key_size + min(len(recurrence.X), inside.chunk) + 2
    relative = math.hypot(2 * inside.accumulator * math.sqrt(terms / 3), inside.unit)
    begin = sum(form.widths[:3])
    q_k_v, g, b = np.split(recurrence.X, [begin, begin + form.decays], axis=-1)
    if not form.decays:
        g, form = np.zeros_like(q_k_v[..., :1]), form._replace(decays=1)
    of_state = relative + inside.relative
    if recurrence.options.rounded_states:
        of_state += profile.rounding(call.recurrence.dtypes[1]).unit
    of_g = of_state + inside.unit * np.nan_to_num(np.abs(g), posinf=0.0)
    keys = [seed_key(draw, call.id, name) for name in ("X", "decay", "beta")]
    X = [
        q_k_v * (1 + relative * _signs(keys[0], q_k_v)),
        g + of_g * _signs(keys[1], g),
        b * (1 + relative * _signs(keys[2], b)),
    ]
    return replace(recurrence.opting(attention=form), X=np.concatenate(X, axis=-1))


def _signs(key: int, values: Array) -> Array:
    return np.where(uniform([key], values.shape)[0] < 0.5, -1.0, 1.0)
