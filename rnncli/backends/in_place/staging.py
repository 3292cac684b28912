"""Which stage a recurrence is walked on, and its weights laid out for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.backends.in_place.cells import kernel_of
from rnncli.backends.in_place.memory import kept
from rnncli.backends.in_place.projected import ProjectedStage
from rnncli.backends.in_place.stacked import StackedStage, is_small, is_soon_copied
from rnncli.backends.in_place.stage import Settings, Stage
from rnncli.backends.in_place.weights import Weights, given_by

if TYPE_CHECKING:
    import numpy as np

    from rnncli.recurrence.recurrence import Recurrence


def stage_for(recurrence: Recurrence, d: int, dtype: np.dtype[Any], live: int) -> Stage:
    """Return a stage for some sequences, the one of before where this thread still has it."""
    settings = settings_of(recurrence, d, dtype, live)
    is_stacked = is_small(settings) and (
        recurrence.constants is not None or is_soon_copied(settings)
    )
    make = StackedStage if is_stacked else ProjectedStage
    return kept((make, settings), lambda: make(settings, recurrence.activations[d]))


def settings_of(recurrence: Recurrence, d: int, dtype: np.dtype[Any], live: int) -> Settings:
    """Return what the stage of a direction, for some sequences, depends on."""
    r = recurrence
    T, _, I = r.X.shape  # noqa: E741
    _, G, H, _ = r.W.shape
    return Settings(
        kernel=kernel_of(r),
        N=live,
        I=I,
        H=H,
        G=G,
        steps=1 << (T - 1).bit_length(),
        dtype=dtype,
        activations=tuple([(a.function, a.alpha, a.beta) for a in r.activations[d]]),
        clips=(r.clip, r.clip, r.bound("h")),
        has_P=r.P is not None,
        has_Rbh=r.Rb is not None and r.linear_before_reset,
        input_forget=r.input_forget,
    )


def laid_out(stage: Stage, recurrence: Recurrence, d: int, dtype: np.dtype[Any]) -> Weights:
    """Return the weights of a direction laid out, once for all calls where they are constants."""
    constants = recurrence.constants
    if constants is None:
        return stage.lay_out(given_by(recurrence, d, dtype), str)
    key = stage.form, kernel_of(recurrence), d, dtype
    found: Weights | None = constants.get(key)
    if found is None:
        found = stage.lay_out(given_by(recurrence, d, dtype), lambda _: None)
        constants.keep(key, found)
    return found
