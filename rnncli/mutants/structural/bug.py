"""A structural mutant: the blocked kernel with one of its decisions replaced."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rnncli.backends.backend import Compute
from rnncli.mutants.equivalence import always_seen, first, where
from rnncli.mutants.mutant import BugFamily, Function
from rnncli.mutants.structural.blocked_kernel import BlockedKernel, Blocking
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.mutants.equivalence import Reason
    from rnncli.mutants.mutant import Session
    from rnncli.mutants.structural.blocked_kernel import BlockedLane, Replacement
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

Changes: TypeAlias = "Mapping[str, Replacement]"
Sizing: TypeAlias = "Callable[[int], SizeClass]"

# The usual block sizes of rows, with few tiles, chunks and blocks.
USUAL = Blocking(vector=8, block=16, reduction=32, tile=16, chunk=64, workers=1)


# The prefix of a reason that names a missing size or second call.
UNREACHED = "not reached: "


class Reach(StrEnum):
    """What a case needs to show a structural mutant."""

    SMALL = "size-free"
    SIZED = "sized"
    CALLS = "second call"


class SizeClass(NamedTuple):
    """Sizes at which a bug can be seen.

    Attributes:
        axis: T, N, I or H, a product of them, of directions D and of gates G, such as "G*H*I", or
            an equation of two, such as "I = H".
        edge: the block size behind it; 0 for an equation.
        words: the class in words, such as "H beyond 8 and not a multiple of it".
        holds: sizes by axis -> whether they are in the class.
    """

    axis: str
    edge: int
    words: str
    holds: Callable[[Mapping[str, int]], bool]

    def reached(self, recurrence: Recurrence) -> bool:
        """Whether the sizes of a recurrence are in the class."""
        return self.holds(sizes_of(recurrence))


def sizes_of(recurrence: Recurrence) -> dict[str, int]:
    """Return T, N, I and H, the number of directions D and of gates G."""
    (T, N, size), (D, G, H, _) = recurrence.X.shape, recurrence.W.shape
    return {"T": T, "N": N, "I": size, "H": H, "D": D, "G": G}


def product_of(sizes: Mapping[str, int], axis: str) -> int:
    """Return a size, or a product of sizes such as "G*H*I"."""
    return math.prod(sizes[each] for each in axis.split("*"))


def beyond(axis: str) -> Sizing:
    """Return the sizes beyond an edge, by the edge."""

    def sizes(edge: int) -> SizeClass:
        words = f"{axis} beyond {edge}"
        return SizeClass(axis, edge, words, lambda sizes: product_of(sizes, axis) > edge)

    return sizes


def tail(axis: str) -> Sizing:
    """Return the sizes beyond an edge that are not multiples of it, by the edge."""

    def sizes(edge: int) -> SizeClass:
        words = f"{axis} beyond {edge} and not a multiple of it"
        return SizeClass(
            axis, edge, words, lambda sizes: 0 < sizes[axis] % edge < edge < sizes[axis]
        )

    return sizes


def exactly(axis: str, edge: int) -> SizeClass:
    """Return one size."""
    return SizeClass(axis, edge, f"{axis} = {edge}", lambda sizes: sizes[axis] == edge)


def one(axis: str) -> SizeClass:
    """Return the size 1."""
    return exactly(axis, 1)


def equal(axis: str, other: str) -> SizeClass:
    """Return sizes beyond 1 that are the same."""
    words = f"{axis} = {other}"
    return SizeClass(words, 0, words, lambda sizes: sizes[axis] == sizes[other] > 1)


@dataclass(frozen=True, slots=True)
class StructuralMutant:
    """One plausible bug of a blocked kernel.

    Attributes:
        id: its id, as in `--backend mutant:ID`.
        cells: the names of the cells whose kernels can have it.
        family: the part of the kernel that is wrong.
        sentence: what goes wrong.
        changes: the kernel's methods that it replaces.
        size: the sizes that show it; None if small ones do.
        blocking: the kernel's block sizes.
        calls: number of calls of one session that show it.
        unseen: recurrence of its sizes -> why it cannot be seen there, or "".
    """

    id: str
    cells: tuple[str, ...]
    family: str
    sentence: str
    changes: Changes
    size: SizeClass | None = None
    blocking: Blocking = USUAL
    calls: int = 1
    unseen: Reason = always_seen

    @property
    def reach(self) -> Reach:
        """What a case needs to show it."""
        if self.calls > 1:
            return Reach.CALLS
        return Reach.SIZED if self.size else Reach.SMALL

    @property
    def effect(self) -> str:
        """The visible effect."""
        if self.calls > 1:
            return "Seen in the second call of a session, at any size."
        return f"Seen with {self.size.words}." if self.size else "Seen at small sizes, too."

    def equivalent_when(self, recurrence: Recurrence) -> str:
        """Return why the mutant cannot be seen in a recurrence, or ""."""
        if self.size and not self.size.reached(recurrence):
            return f"{UNREACHED}{self.size.words}"
        return self.unseen(recurrence)

    def run(self, recurrence: Recurrence, compute: Compute = Compute.FLOAT64) -> Result:
        """Evaluate in the first call of a session."""
        return self.session()(recurrence, compute)

    def session(self) -> Session:
        """Return a session, whose calls share the buffers of one kernel."""
        return BlockedKernel(self.blocking, self.changes).run


class StructuralFamily(BugFamily[StructuralMutant]):
    """The bugs of one part of the kernel.

    Args:
        name: its name.
        reasons: why all of its bugs cannot be seen in some recurrences.
        settings: what most of them have in common, as in `mutants`.
    """

    def __init__(self, name: str, *reasons: Reason, **settings: Any) -> None:
        super().__init__(name, *reasons)
        self.settings = settings

    def __call__(self, *reasons: Reason, **settings: Any) -> Callable[[Function], Function]:
        """Return the decorator of a bug; `changes` may be the one method that it replaces."""
        if isinstance(settings["changes"], str):
            settings["changes"] = replacing(settings["changes"])
        return super().__call__(*reasons, **self.settings | settings)

    def mutants(
        self,
        id: str,  # noqa: A002 -- what a mutant itself calls it
        sentence: str,
        change: Changes,
        *reasons: Reason,
        words: tuple[str, ...] = (),
        of: tuple[str, ...] = tuple(CELLS),
        block: str = "",
        widths: tuple[int, ...] = (),
        seen: SizeClass | Sizing | None = None,
        workers: int = USUAL.workers,
        calls: int = 1,
    ) -> Iterator[StructuralMutant]:
        """Yield a mutant at each width, which ends its id and is the last word of its sentence.

        Args:
            id: the id without the width.
            sentence: what goes wrong.
            change: the kernel's methods that it replaces.
            reasons: why it cannot be seen in some recurrences of its sizes.
            words: the words of its sentence.
            of: the names of the cells whose kernels can have it.
            block: the block size that is a width, by its name in `Blocking`; "" for none.
            widths: the widths of blocks; none for one mutant at any width.
            seen: the sizes that show it, or width -> sizes; None if small ones do.
            workers: number of workers that share the tiles.
            calls: number of calls of one session that show it.
        """
        for width in widths or (0,):
            block_sizes = {"workers": workers} | ({block: width} if block and width else {})
            yield StructuralMutant(
                f"{id}-{width}" if width else id,
                of,
                self.name,
                sentence.format(*words, width),
                change,
                seen if seen is None or isinstance(seen, SizeClass) else seen(width),
                replace(USUAL, **block_sizes),
                calls,
                first(*self.reasons, *reasons),
            )


def read(
    lane: BlockedLane, names: Sequence[str], function: Callable[[Array], Array]
) -> BlockedLane:
    """Return a direction in which the present ones of some arrays are read by a function."""
    arrays = {name: getattr(lane, name) for name in names}
    found: dict[str, Any] = {
        name: function(values)
        for name, values in arrays.items()
        if values is not None and values.size
    }
    return replace(lane, **found)


def replacing(method: str, **others: Replacement) -> Callable[[Replacement], Changes]:
    """Return the change that replaces one method by a bug, and others by what it needs."""
    return lambda function: {method: function, **others}


def passing(method: str) -> Callable[[Callable[[Any], Any]], Changes]:
    """Return the change that calls a method with another first argument."""

    def changes(other: Callable[[Any], Any]) -> Changes:
        return {method: lambda right, given, *rest: right(other(given), *rest)}

    return changes


def multiple_of(axes: str, width: int) -> Reason:
    """Return the reason that holds where a size, or a product of sizes, is a multiple."""
    sentence = f"{'*'.join(axes)} is a multiple of {width}"
    return where(lambda r: math.prod(sizes_of(r)[axis] for axis in axes) % width == 0, sentence)


def same_size(*axes: str) -> Reason:
    """Return the reason that holds where sizes are the same."""
    sentence = f"{' and '.join(axes)} are the same size"
    return where(lambda r: len({sizes_of(r)[axis] for axis in axes}) == 1, sentence)


def at_most_one(axis: str) -> Reason:
    """Return the reason that holds where a size is 1 or less."""
    return where(lambda r: sizes_of(r)[axis] <= 1, f"{axis} is at most 1")
