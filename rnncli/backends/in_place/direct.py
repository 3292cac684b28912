"""Small recurrences of constant weights and full sequences: all but the numbers is prepared once.

A call then takes what the steps take, and a few microseconds.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.in_place import tuning
from rnncli.backends.in_place.rounding import ready_to_round
from rnncli.backends.in_place.stacked import StackedStage, is_short, is_small
from rnncli.backends.in_place.stage import NotFiniteError, in_silence
from rnncli.backends.in_place.staging import settings_of
from rnncli.backends.in_place.weights import given_by
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from rnncli.recurrence.constants import Constants
    from rnncli.recurrence.recurrence import Recurrence

KEY = "in place"


def direct_for(recurrence: Recurrence, dtype: np.dtype[Any]) -> Direct | None:
    """Return what was prepared for calls like this, reserved; None where there is no such way."""
    constants = recurrence.constants
    T, N, _ = recurrence.X.shape
    if constants is None or recurrence.lengths is not None or not T * N:
        return None
    features = features_of(recurrence, dtype)
    known: tuple[Direct, ...] = constants.get(KEY) or ()
    for direct in known:
        if (
            direct.steps >= T
            and direct.features == features
            and direct.lock.acquire(blocking=False)
        ):
            return direct
    return _prepared(recurrence, dtype, constants, known)


def _prepared(
    recurrence: Recurrence, dtype: np.dtype[Any], constants: Constants, known: tuple[Direct, ...]
) -> Direct | None:
    """Prepare for calls like this, and keep that for later ones, if they are small."""
    T, N, _ = recurrence.X.shape
    settings = settings_of(recurrence, 0, dtype, N)
    if not (is_small(settings) or is_short(settings, T)):
        return None
    direct = Direct(recurrence, dtype)
    if direct.steps < T:
        return None
    direct.lock.acquire()
    constants.keep(KEY, (direct, *known)[: tuning.MOST_FORMS])
    return direct


def features_of(recurrence: Recurrence, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return what calls of the same weights may differ in, besides T and numbers."""
    r = recurrence
    return (
        *(dtype, r.X.shape[1], r.cell, r.activations, r.directions),
        *(r.clip, r.clip_hidden, r.input_forget, r.linear_before_reset),
    )


class Direct:
    """Evaluates recurrences of the same weights and features.

    Args:
        recurrence: any of them.
        dtype: of the arithmetic.

    Attributes:
        features: `features_of` them.
        steps: how many they have at most.
        lock: held while one is evaluated, in the memory of all.
    """

    def __init__(self, recurrence: Recurrence, dtype: np.dtype[Any]) -> None:
        r = recurrence
        self.features, self.lock = features_of(r, dtype), Lock()
        self._context = in_silence()
        self._is_native = dtype == r.dtype.numpy
        self._directions = []
        for d, activations in enumerate(r.activations):
            stage = StackedStage(settings_of(r, d, dtype, r.X.shape[1]), activations)
            stage.load(stage.lay_out(given_by(r, d, dtype), lambda _: None))
            self._directions.append((stage, r.directions[d] is Direction.REVERSE))
        self.steps = self._directions[0][0].steps

    def run(self, recurrence: Recurrence) -> Result:
        """Evaluate one.

        Raises:
            NotFiniteError: a number is too large, or a state not finite at the end.
        """
        try:
            return self._context.run(self._run, recurrence)
        except FloatingPointError as failure:
            raise NotFiniteError from failure
        finally:
            self.lock.release()

    def _run(self, recurrence: Recurrence) -> Result:
        r, dtype = recurrence, recurrence.dtype
        T, N, _ = r.X.shape
        D, _, H, _ = r.W.shape
        Y = np.empty((T, D, N, H), dtype.numpy) if r.wants_Y else None
        last = tuple([np.empty((D, N, H), dtype.numpy) for _ in r.initial])
        for d, (stage, is_reverse) in enumerate(self._directions):
            states = [None if state is None else state[d] for state in r.initial]
            history, ends = stage.run(r.X[::-1] if is_reverse else r.X, states)
            if not stage.is_finite(T, len(last)):
                raise NotFiniteError
            if Y is not None:
                values = history[::-1] if is_reverse else history
                Y[:, d] = values if self._is_native else ready_to_round(values, dtype)
            for room, end in zip(last, ends, strict=True):
                room[d] = end if self._is_native else ready_to_round(end, dtype)
        return Result(Y, last)
