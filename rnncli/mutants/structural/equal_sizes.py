"""Wrong guesses from shapes, where two sizes are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, LSTM, initial_states
from rnncli.mutants.equivalence import NO_INITIAL, NO_PEEPHOLES, NO_Y
from rnncli.mutants.structural.bug import equal, exactly, family, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.blocked_kernel import BlockedKernel, Seam, States
    from rnncli.mutants.structural.bug import Changes, SizeClass, StructuralMutant
    from rnncli.recurrence.recurrence import Recurrence


def _where(size: SizeClass, change: Callable[[Recurrence], Recurrence]) -> Changes:
    """Return the change that takes a recurrence for another at some sizes."""

    def run(kernel: BlockedKernel, right: Seam, recurrence: Recurrence, *rest: Any) -> Any:
        del kernel
        return right(change(recurrence) if size.reached(recurrence) else recurrence, *rest)

    return {"run": run}


def _w_transposed(r: Recurrence) -> Recurrence:
    return replace(r, W=r.W.swapaxes(2, 3))


def _x_batch_first(r: Recurrence) -> Recurrence:
    return replace(r, X=r.X.swapaxes(0, 1))


def _p_transposed(r: Recurrence) -> Recurrence:
    return r if r.P is None else replace(r, P=r.P.swapaxes(1, 2))


def _y_by_sequence(size: SizeClass) -> Changes:
    def returned(kernel: BlockedKernel, right: Seam, r: Recurrence, Y: Any, last: States) -> Any:
        del kernel
        return right(r, np.swapaxes(Y, 1, 2).copy() if size.reached(r) else Y, last)

    return {"returned": returned}


I_IS_H, T_IS_N, N_IS_D, N_IS_H = equal("I", "H"), equal("T", "N"), equal("N", "D"), equal("N", "H")
H_IS_3 = exactly("H", 3)
BY_SEQUENCE = initial_states(lambda state: state.swapaxes(0, 1))
TRANSPOSED = initial_states(lambda state: state.swapaxes(1, 2))


def _rows() -> Iterator[StructuralMutant]:
    for name, cells, sentence, changes, size, reasons in (
        (
            "w-transposed",
            ALL,
            "W [H, I] is told from its transpose by its shape.",
            _where(I_IS_H, _w_transposed),
            I_IS_H,
            (),
        ),
        (
            "x-batch-first",
            ALL,
            "The layout of X is told from its shape.",
            _where(T_IS_N, _x_batch_first),
            T_IS_N,
            (),
        ),
        (
            "initial-states-by-sequence",
            ALL,
            "The layout of initial states is told from their shape.",
            _where(N_IS_D, BY_SEQUENCE),
            N_IS_D,
            (NO_INITIAL,),
        ),
        (
            "y-by-sequence",
            ALL,
            "The layout of Y is told from its shape.",
            _y_by_sequence(N_IS_D),
            N_IS_D,
            (NO_Y,),
        ),
        (
            "initial-states-transposed",
            ALL,
            "Initial states [N, H] are told from their transpose by their shape.",
            _where(N_IS_H, TRANSPOSED),
            N_IS_H,
            (NO_INITIAL,),
        ),
        (
            "peepholes-transposed",
            LSTM,
            "Peepholes [3, H] are told from their transpose by their shape.",
            _where(H_IS_3, _p_transposed),
            H_IS_3,
            (NO_PEEPHOLES,),
        ),
    ):
        yield row(f"equal-sizes-{name}", cells, sentence, changes, *reasons, size=size)


ROWS = family("equal sizes", _rows())
