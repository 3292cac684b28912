"""Prepared calls: everything but the values, prepared once for constant weights.

For small recurrences of full sequences a call then takes the time of its steps and a few
microseconds.

Both directions can be fused into one recurrence with twice the units and half as many steps: the
weights are block-diagonal, and a step takes the inputs of both directions, X[t] and X[T - 1 - t].
"""

from __future__ import annotations

import math
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends import in_place as tuning
from rnncli.backends.in_place.stages import SmallStage, is_small, settings_of, weights_of
from rnncli.backends.threads import bounded
from rnncli.numerics import ready_to_round
from rnncli.recurrence.recurrence import TENSORS, Constants, Direction, Result, all_but

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.backends.backend import BoundCall
    from rnncli.backends.in_place.stages import StageSpan
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


class NotFiniteError(ArithmeticError):
    """An overflow, or a NaN or infinite state, with which kernels are not known to be right."""


def is_finite(span: StageSpan, states: int) -> bool:
    """Return whether the last states of a span are finite, and not so large that a product is not.

    Whatever it is multiplied by, a number that is not finite makes one that is not.
    """
    h, C = span.numbers
    return math.isfinite(h.dot(h if states == 1 else C))


PREPARED = "in place"
# What calls with the same weights share; a call itself looks at the fields left out.
_settings_of_calls = all_but(*TENSORS, "initial", "keep_initial", "wants_Y")


def prepared_call(recurrence: Recurrence, dtype: np.dtype[Any]) -> PreparedCall | None:
    """Return a prepared call for recurrences like this, locked; None if they are not small."""
    r, constants = recurrence, recurrence.constants
    T, N, _ = r.X.shape
    if constants is None or r.lengths is not None or not T * N:
        return None
    features = features_of(r, dtype)
    known: tuple[PreparedCall, ...] = constants.get(PREPARED) or ()
    for call in known:
        if call.steps >= T and call.features == features and call.lock.acquire(blocking=False):
            return call
    settings = settings_of(r, 0, dtype, N)
    # Few steps are faster with weights that are already stacked, even if these are many.
    if not (is_small(settings) or settings.multiplications * T <= tuning.STACKED_CALL):
        return None
    call = PreparedCall(r, dtype)
    if call.steps < T:
        return None
    call.lock.acquire()
    constants.keep(PREPARED, (call, *known)[: tuning.MOST_FORMS])
    return call


def features_of(recurrence: Recurrence, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the properties besides T in which calls with the same weights may differ."""
    return dtype, recurrence.X.shape[1], _settings_of_calls(recurrence)


class PreparedCall:
    """A prepared call for recurrences of the same weights and features.

    Args:
        recurrence: one of them.
        dtype: of the arithmetic.

    Attributes:
        features: their `features_of`.
        steps: their maximum number of steps.
        multiplications: those of the product of a step.
        lock: held during an evaluation, since they share memory.
    """

    def __init__(self, recurrence: Recurrence, dtype: np.dtype[Any]) -> None:
        r = recurrence
        self.features, self.lock = features_of(r, dtype), Lock()
        # Overflows are raised: NumPy checks the processor's flags after each call in any case.
        with np.errstate(all="ignore", over="raise"):
            self._context = copy_context()  # entering it is cheaper than `np.errstate`
        self._dtype, self._is_native = r.dtype, dtype == r.dtype.numpy
        self._states = r.cell.states
        self._directions: list[tuple[SmallStage, bool]] = []
        for d, activations in enumerate(r.activations):
            stage = SmallStage(settings_of(r, d, dtype, r.X.shape[1]), activations)
            stage.load(stage.lay_out(weights_of(r, d, dtype)))
            self._directions.append((stage, r.directions[d] is Direction.REVERSE))
        self.steps, self.multiplications = stage.steps, stage.settings.multiplications
        self._prepare(self.steps)

    def _prepare(self, steps: int) -> None:
        """Look up what a number of steps use: of each direction, and of each output."""
        self._prepared = steps
        self._lanes = [(stage, stage.span(steps), reverse) for stage, reverse in self._directions]
        self._outputs = [
            [span.states[::-1] if reverse else span.states for _, span, reverse in self._lanes],
            *([span.last[k] for _, span, _ in self._lanes] for k in range(self._states)),
        ]

    def run(self, recurrence: Recurrence) -> Result:
        """Evaluate one recurrence; the call must be reserved.

        Raises:
            NotFiniteError: a number overflows, or a last state is not finite.
        """
        r = recurrence
        try:
            Y, *last = self._context.run(self._run, r.X, r.initial, wants_Y=r.wants_Y)
        except FloatingPointError as failure:
            raise NotFiniteError from failure
        finally:
            self.lock.release()
        return Result(Y, tuple(last))

    def attempt(
        self, X: Array, initial: Sequence[Array | None], lengths: None, *, wants_Y: bool
    ) -> tuple[Array | None, ...] | None:
        """Return Y and the last states; None where the call is reserved, or they are not finite."""
        del lengths
        if not self.lock.acquire(blocking=False):
            return None
        try:
            return self._context.run(self._run, X, initial, wants_Y=wants_Y)
        except (FloatingPointError, NotFiniteError):
            return None
        finally:
            self.lock.release()

    def _run(self, X: Array, initial: Sequence[Array | None], *, wants_Y: bool) -> tuple[Any, ...]:
        if self._prepared != len(X):
            self._prepare(len(X))
        for d, (stage, span, is_reverse) in enumerate(self._lanes):
            stage.step(span, X[::-1] if is_reverse else X, initial, d)
            if not is_finite(span, len(initial)):
                raise NotFiniteError
        outputs = self._outputs if wants_Y else self._outputs[1:]
        tensors = [self._output(parts) for parts in outputs]
        return tuple(tensors) if wants_Y else (None, *tensors)

    def _output(self, parts: Sequence[Array]) -> Array:
        """Return an output [..., D, N, H], given that of each direction [..., 1, N, H]."""
        if not self._is_native:
            parts = [ready_to_round(part, self._dtype) for part in parts]
        if len(parts) == 1:
            return parts[0].copy() if self._is_native else parts[0].astype(self._dtype.numpy, "C")
        *front, _, N, H = parts[0].shape
        both = np.empty((*front, len(parts), N, H), self._dtype.numpy)
        for d, part in enumerate(parts):
            both[..., d : d + 1, :, :] = part
        return both


def bound(recurrence: Recurrence, dtype: np.dtype[Any]) -> BoundCall | None:
    """Return the fast path of recurrences like one that was evaluated, or None.

    See `rnncli.backends.backend.bound_call`.
    """
    if recurrence.constants is None:
        return None
    if pays(recurrence):
        of_both = bound(fuse_directions(recurrence), dtype)
        return of_both and partial(_attempt_fused, of_both)
    call = prepared_call(recurrence, dtype)
    if call is None:
        return None
    call.lock.release()
    attempt = bounded(call.attempt, call.multiplications)
    return partial(attempt, wants_Y=recurrence.wants_Y)


def _attempt_fused(
    call: BoundCall, X: Array, initial: Sequence[Array | None], lengths: None
) -> tuple[Array | None, ...] | None:
    """Return Y and the last states of both directions, given the call of the fused recurrence."""
    tensors = call(_both_ways(X), [_side_by_side(state) for state in initial], lengths)
    if tensors is None:
        return None
    Y, *last = tensors
    result = split_directions(Result(Y, tuple(last)))  # type: ignore[arg-type]
    return (result.Y, *result.last)


FUSED = "fused"


def pays(recurrence: Recurrence) -> bool:
    """Return whether both directions can be fused and are faster if they are."""
    r = recurrence
    D, _, H, I = r.W.shape  # noqa: E741
    T, N, _ = r.X.shape
    return (
        D == 2
        and T >= tuning.FUSED_STEPS
        and D * H * (I + H) * N <= tuning.FUSED_ZEROS
        and r.lengths is None
        and r.activations[0] == r.activations[1]
    )


def fuse_directions(recurrence: Recurrence) -> Recurrence:
    """Return a single-direction recurrence equivalent to both directions."""
    r, constants = recurrence, recurrence.constants
    fused: Any = None if constants is None else constants.get(FUSED)
    if fused is None:
        _, G, H, _ = r.W.shape
        weights = {name: _side_by_side(getattr(r, name)) for name in ("Wb", "Rb", "P")}
        for name in ("W", "R"):  # [2, G, H, K] on the diagonal of [1, G, 2*H, 2*K]
            each = getattr(r, name)
            diagonal = np.zeros((1, G, 2, H, 2, each.shape[-1]), each.dtype)
            for d in range(2):
                diagonal[0, :, d, :, d] = each[d]
            weights[name] = diagonal.reshape(1, G, 2 * H, -1)
        fused = weights, None if constants is None else Constants()
        if constants is not None:
            constants.keep(FUSED, fused)
    both = replace(
        r,
        X=_both_ways(r.X),
        initial=tuple([_side_by_side(state) for state in r.initial]),
        directions=(Direction.FORWARD,),
        activations=r.activations[:1],
        **fused[0],
    )
    both.constants = fused[1]
    return both


def _both_ways(X: Array) -> Array:
    """Return inputs [T, N, I] as those of both directions [T, N, 2*I]."""
    return np.concatenate((X, X[::-1]), axis=2)


def split_directions(result: Result) -> Result:
    """Return the results of both directions, given those of the fused recurrence."""
    _, N, units = result.last[0].shape
    H = units // 2
    last = tuple([state.reshape(N, 2, H).swapaxes(0, 1) for state in result.last])
    if result.Y is None:
        return Result(None, last)
    both = result.Y.reshape(len(result.Y), N, 2, H)
    Y = np.empty((len(both), 2, N, H), both.dtype)
    Y[:, 0], Y[:, 1] = both[:, :, 0], both[::-1, :, 1]
    return Result(Y, last)


def _side_by_side(values: Array | None) -> Array | None:
    """Return biases, peepholes or states [2, n, H] as [1, n, 2*H]."""
    if values is None:
        return None
    _, n, H = values.shape
    return values.swapaxes(0, 1).reshape(1, n, 2 * H)
