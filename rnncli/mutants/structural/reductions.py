"""Sums over inputs and units, computed in blocks of terms and blocks of units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.blocked_kernel import INPUTS, RECURRENT
from rnncli.mutants.changes import ALL
from rnncli.mutants.equivalence import NO_BIAS, NO_RECURRENT_PRODUCT
from rnncli.mutants.structural.bug import beyond, built_on, family, row, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.blocked_kernel import BlockedKernel, BlockedLane, Seam
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.numerics import Array


def _only(kind: str, function: Callable[..., Array]) -> Seam:
    """Return the change of one of the two products."""

    def change(kernel: BlockedKernel, right: Seam, asked: str, *arguments: Any) -> Any:
        if asked != kind:
            return right(asked, *arguments)
        return function(kernel, right, asked, *arguments)

    return change


def _times_remainder(factor: float) -> Callable[..., Array]:
    """Return the change that multiplies the terms behind whole blocks by a factor."""

    def operand(kernel: BlockedKernel, right: Seam, kind: str, values: Array) -> Any:
        K, terms = values.shape[1], kernel.blocking.reduction
        start = K - K % terms or K
        return right(kind, np.concatenate([values[:, :start], factor * values[:, start:]], 1))

    return operand


def _remainder_dropped(kernel: BlockedKernel, right: Seam, kind: str, values: Array) -> Any:
    """Leave the terms behind whole blocks out: not times 0, which would keep NaN."""
    K, terms = values.shape[1], kernel.blocking.reduction
    start = K - K % terms or K
    kept = values.copy()
    kept[:, start:] = 0
    return right(kind, kept)


def _weights_of_first_block(kernel: BlockedKernel, right: Seam, kind: str, weights: Array) -> Any:
    K, terms = weights.shape[-1], kernel.blocking.reduction
    start = K - K % terms or K
    return right(kind, np.concatenate([weights[..., :start], weights[..., : K - start]], -1))


def _reducing(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """Return the change that adds up the sums of blocks [blocks, reductions, n, any] otherwise."""

    def reduced(kernel: BlockedKernel, right: Seam, kind: str, partial_sums: Array) -> Any:
        del kernel
        if not partial_sums.shape[1]:
            return right(kind, partial_sums)
        return function(partial_sums)

    return reduced


def _bias_of_each_block(kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array) -> Any:
    return right(lane, steps) * max(1, -(-lane.X.shape[-1] // kernel.blocking.reduction))


PRODUCTS = ((INPUTS, "I", "inputs"), (RECURRENT, "H", "units"))
MANY, SOME = (4, 8, 16, 32, 64, 128, 256), (4, 16, 64)
REMAINDERS = (
    ("dropped", "are left out of the sum", "operand", _remainder_dropped, MANY),
    ("twice", "are added twice", "operand", _times_remainder(2.0), SOME),
    (
        "first-weights",
        "get the weights of the first block",
        "packed",
        _weights_of_first_block,
        SOME,
    ),
)
BLOCKS = (
    ("last-block-only", "each block of the sum overwrites the ones before", lambda s: s[:, -1]),
    ("first-block-only", "only the first block of the sum is taken", lambda s: s[:, 0]),
    ("odd-blocks-lost", "the second of two accumulators is lost", lambda s: s[:, ::2].sum(axis=1)),
)


def _remainders() -> Iterator[StructuralMutant]:
    for kind, axis, noun in PRODUCTS:
        reasons = (NO_RECURRENT_PRODUCT,) if kind == RECURRENT else ()
        for name, words, seam, function, widths in REMAINDERS:
            for width in widths:
                yield row(
                    f"{noun}-remainder-{name}-{width}",
                    ALL,
                    f"The {noun} behind whole blocks of {width} {words}.",
                    {seam: _only(kind, function)},
                    *reasons,
                    size=tail(axis, width),
                    blocking=built_on(reduction=width),
                )


def _blocks() -> Iterator[StructuralMutant]:
    for kind, axis, noun in PRODUCTS:
        reasons = (NO_RECURRENT_PRODUCT,) if kind == RECURRENT else ()
        for name, words, function in BLOCKS:
            for width in SOME:
                yield row(
                    f"{noun}-{name}-{width}",
                    ALL,
                    f"Of {noun} in blocks of {width}, {words}.",
                    {"reduced": _only(kind, _reducing(function))},
                    *reasons,
                    size=beyond(axis, width),
                    blocking=built_on(reduction=width),
                )


def _stale() -> Iterator[StructuralMutant]:
    for width in SOME:
        for kind, _, noun in PRODUCTS:
            reasons = (NO_RECURRENT_PRODUCT,) if kind == RECURRENT else ()
            stale = _reducing(lambda sums: np.cumsum(sums.sum(axis=1), axis=0))
            yield row(
                f"{noun}-stale-accumulators-{width}",
                ALL,
                f"The sums over {noun} of a block of {width} units start from those of the block"
                " before.",
                {"reduced": _only(kind, stale)},
                *reasons,
                size=beyond("H", width),
                blocking=built_on(block=width),
            )
        yield row(
            f"bias-of-each-block-{width}",
            ALL,
            f"The bias is added with every block of {width} inputs.",
            {"bias": _bias_of_each_block},
            NO_BIAS,
            size=beyond("I", width),
            blocking=built_on(reduction=width),
        )


ROWS = family("sums in blocks", (*_remainders(), *_blocks(), *_stale()))
