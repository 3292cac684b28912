"""How far two right outputs of one call may be apart, where nobody knows the truth.

Each is within its tolerance of the truth, so they are at most the sum of both tolerances apart.
Tolerances are derived as those of vectors are, beside a trajectory in float64; it is evaluated here
and proved by nothing, but a scale need not be exact. An implementation on another trajectory, by
another reading or by a bug, is granted the widest of them everywhere, and at least u*sqrt(K) of its
largest value: relations ask whether it agrees with itself.

Deriving takes D*T*N*H*H steps. Beyond `DERIVABLE` of them a cheaper scale takes its place: the node
is evaluated in float64 as it is, and with weights and biases moved at random by as much as sums and
activations of a right kernel are off. What comes of that is a sample of rounding errors after any
number of steps; the bound is as many times the largest of a sequence's units at a step as the
profile grants deviations.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import FLOAT64, Compute
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.tolerances.conditioning import limit_of
from rnncli.judging.tolerances.derivation import derive
from rnncli.metamorphic.node_call import D, H, I, N, T
from rnncli.numerics import dtype_named
from rnncli.profiles import profile_named
from rnncli.randomness import seed_key, uniform
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.node_call import NodeCall
    from rnncli.numerics import Array
    from rnncli.profiles import Profile
    from rnncli.recurrence.recurrence import Recurrence

# About 3 s on two cores of a server.
DERIVABLE = 1 << 24
DRAWS = 2
DERIVED, PERTURBED = "derived", "perturbed"


class Closeness(NamedTuple):
    """How far apart the outputs of a call may be.

    Attributes:
        kind: `derived`, or `perturbed` where that would take too long.
        allowed: by output, of each element; NaN where two right outputs may be so far apart, or so
            near infinity, that nothing can be said.
    """

    kind: str
    allowed: Tensors


def closeness_of(call: NodeCall, outputs: Tensors, profile: str) -> Closeness:
    """Return how far two right outputs of a call may be apart.

    Args:
        call: in the layout of which outputs are compared.
        outputs: its own, of an implementation that may have another reading of the specification.
        profile: what a right kernel may do.
    """
    work = call.size(D) * call.sizes[T] * call.sizes[N] * call.sizes[H] ** 2
    kind = DERIVED if work <= DERIVABLE else PERTURBED
    grants = profile_named(profile)
    truth, tolerance = SCALES[kind](call, grants)
    wanted, each = (call.node.outputs_of(result) for result in (truth, tolerance))
    widths = {name: each[name].astype(np.float64) for name in wanted}
    if any(_is_another(outputs[name], wanted[name], widths[name]) for name in wanted):
        least = _least(call, outputs, grants)
        widths = {name: _widened_to(least, widths[name], outputs[name]) for name in wanted}
    return Closeness(kind, {n: _useful(wanted[n], widths[n], call) for n in wanted})


def _is_another(output: Array, wanted: Array, tolerance: Array) -> bool:
    """Whether an output is not the one that tolerances were derived beside."""
    return bool((errors_of(output, wanted, tolerance).margin > 1).any())


def _least(call: NodeCall, outputs: Tensors, profile: Profile) -> float:
    """Return what is granted to any element where the trajectory is another: u*sqrt(K) of all."""
    terms = call.sizes[I] + call.sizes[H] + 2
    finite = (np.nan_to_num(np.abs(v.astype(np.float64)), posinf=0) for v in outputs.values())
    largest = max((float(values.max(initial=0.0)) for values in finite), default=0.0)
    return profile.deviations * profile.rounding(call.dtype).unit * math.sqrt(terms) * largest


def _widened_to(least: float, widths: Array, output: Array) -> Array:
    """Return at least the widest of some tolerances, and a number, but where zero is left alone."""
    widest = float(np.nan_to_num(widths, posinf=0).max(initial=0.0))
    # Padding has 0, unless it is taken for steps.
    touched = (widths > 0) | (output != 0)
    return np.where(touched, np.maximum(widths, max(widest, least)), widths)


def _useful(wanted: Array, width: Array, call: NodeCall) -> Array:
    """Return twice the tolerances, NaN where they do not tell right from wrong."""
    size = np.abs(wanted.astype(np.float64))
    finite = np.isfinite(size)
    largest = float(np.max(size, initial=0.0, where=finite)) or 1.0
    limit = limit_of(np.zeros(0, call.dtype.numpy))
    with np.errstate(invalid="ignore"):
        return np.where(finite & (width <= limit * largest), 2 * width, np.nan)


def _derived(call: NodeCall, profile: Profile) -> tuple[Result, Result]:
    whole = replace(call.recurrence, wants_Y=True)
    truth = evaluate(whole, NumPyEngine(FLOAT64))
    return truth, derive(whole, profile, truth)


def _perturbed(call: NodeCall, profile: Profile) -> tuple[Result, Result]:
    wide = _widened(call.recurrence)
    numpy = backend_named("numpy")
    truth = numpy.run(wide, Compute.FLOAT64)
    moved = [numpy.run(_moved(wide, call, profile, k), Compute.FLOAT64) for k in range(DRAWS)]
    rounding = profile.rounding(call.dtype)

    def bound(of: Callable[[Result], Array | None], valid: Array) -> Array:
        right = of(truth)
        assert right is not None
        size = np.abs(right)
        with np.errstate(invalid="ignore"):
            apart = [np.abs(values - right) for each in moved if (values := of(each)) is not None]
        widest = np.max(apart, axis=(0, -1))[..., None]
        # What a saturated function may be off, whatever its argument is.
        least = rounding.relative * size + rounding.absolute + rounding.floor
        return np.where(valid, profile.deviations * (widest / 2 + least / 3), 0.0)

    lengths = call.lengths
    live = (np.arange(call.sizes[T])[:, None] < lengths)[:, None, :, None]
    started = (lengths > 0)[:, None]
    last = [bound(lambda each, k=k: each.last[k], started) for k in range(len(truth.last))]  # type: ignore[misc]
    return truth, Result(bound(lambda each: each.Y, live), tuple(last))


SCALES: dict[str, Callable[[NodeCall, Profile], tuple[Result, Result]]] = {
    DERIVED: _derived,
    PERTURBED: _perturbed,
}


def _widened(recurrence: Recurrence) -> Recurrence:
    """Return a recurrence of float64 tensors, with every bias there is."""

    def wide(values: Array | None) -> Array | None:
        return None if values is None else values.astype(np.float64)

    r = recurrence
    nothing = np.zeros(r.W.shape[:-1])
    return replace(
        r,
        dtype=dtype_named("float64"),
        X=r.X.astype(np.float64),
        W=r.W.astype(np.float64),
        R=r.R.astype(np.float64),
        Wb=nothing if r.Wb is None else r.Wb.astype(np.float64),
        Rb=wide(r.Rb),
        P=wide(r.P),
        initial=tuple(map(wide, r.initial)),
        wants_Y=True,
    )


def _moved(recurrence: Recurrence, call: NodeCall, profile: Profile, draw: int) -> Recurrence:
    """Return a recurrence whose weights and biases are off as sums and activations may be."""
    r, rounding = recurrence, profile.rounding(call.dtype)
    terms = r.X.shape[-1] + r.R.shape[-1] + 2
    relative = math.hypot(2 * rounding.accumulator * math.sqrt(terms / 3), rounding.unit)
    absolute = rounding.relative + rounding.absolute

    def sign(name: str, values: Array) -> Array:
        key = seed_key(draw, call.id, name)
        return np.where(uniform([key], values.shape)[0] < 0.5, -1.0, 1.0)

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
