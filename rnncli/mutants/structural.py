"""Structural mutants: bugs of the data movement around the equations, as edits of a blocked kernel.

`blocked_kernel.txt` computes the cells' equations with the data movement of real kernels: weights
are packed, all gates of a block of units together, and multiplied in blocks of terms; activations
process whole vectors of units, then the tail; sequences are sorted, the longest first, and split
into tiles, which workers share; inputs are projected one chunk of time at once. `structural.txt`
has its bugs. `linear_blocked_kernel.txt` computes linear recurrences likewise: attention by chunks
of steps, each in one go from the state before it, and convolutions by tiles; its bugs are in
`linear_structural.txt`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.backend import Compute, working_dtype
from rnncli.limits import check_clock
from rnncli.mutants import words_of_edits
from rnncli.mutants.bug_table import WORDS, BugTable
from rnncli.mutants.calls import KernelCall, LinearCall, call_of
from rnncli.mutants.edits import text_of
from rnncli.mutants.equivalence import always_seen, product_of, sizes_of
from rnncli.numerics import round_to
from rnncli.recurrence.lanes import clear_unstarted, empty_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

    from rnncli.mutants.bug_table import WrittenBug
    from rnncli.mutants.edits import Edit, Edits
    from rnncli.mutants.equivalence import Reason
    from rnncli.mutants.mutant import Session
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence, Result

# The prefix of a reason that names a missing size or second call.
UNREACHED = "not reached: "
KERNEL = text_of("blocked_kernel.txt")
LINEAR_KERNEL = text_of("linear_blocked_kernel.txt")
_SIZE = "(?:[TNIHDGKCw]|dk|dv|group)"
_AXIS, _PART = rf"{_SIZE}(?:\*{_SIZE})*", " and not a multiple of it"
_SIZES = re.compile(rf"({_AXIS}) beyond (\d+)(?:{_PART})?|({_AXIS}) = (\d+)|([TNIHD] = [TNIHD])")


class Reach(StrEnum):
    """What a case needs to show a structural mutant."""

    SMALL = "size-free"
    SIZED = "sized"
    CALLS = "second call"


class SizeClass(NamedTuple):
    """Sizes at which a bug can be seen."""

    # T, N, I or H, a product of them, of directions D and of gates G, such as "G*H*I", or an
    # equation of two, such as "I = H"
    axis: str
    edge: int  # the block size behind it; 0 for an equation
    words: str  # the class in words, such as "H beyond 8 and not a multiple of it"

    def reached(self, recurrence: Recurrence) -> bool:
        """Whether the sizes of a recurrence are in the class; those that equal others beyond 1."""
        sizes = sizes_of(recurrence)
        if not self.edge:
            one, other = self.axis.split(" = ")
            return sizes[one] == sizes[other] > 1
        size = product_of(sizes, self.axis)
        if " = " in self.words:
            return size == self.edge
        return size > self.edge and not (self.words.endswith(_PART) and size % self.edge == 0)


def size_class(words: str) -> SizeClass:
    """Return the sizes of some words.

    Raises:
        ValueError: the words are of no such class.
    """
    if (found := _SIZES.fullmatch(words)) is None:
        raise ValueError(f"'{words}' are no sizes; write 'H beyond 8', 'T = 1' or 'I = H'")
    axis, edge = found[1] or found[3] or found[5], found[2] or found[4] or 0
    return SizeClass(axis, int(edge), words)


class BlockedCall(KernelCall):
    """What the blocked kernel reads."""

    def step(self, p: Parameters, x: Value, states: States) -> States:
        """Advance by one time step."""
        check_clock()
        return self._recurrence.cell.step(p, x, states)


@cache
def blocks_of(kernel: str) -> list[str]:
    """Return the names of a kernel's block sizes."""
    return re.findall(r"[A-Z]{2,}(?=[A-Z, ]* = )", kernel)


@cache
def edited(kernel: str, edits: Edits) -> str:
    """Return a blocked kernel with some edits."""
    text = kernel
    for edit in edits:
        text = edit.applied(text)
    return text


@cache
def _compiled(function: str) -> CodeType:
    return compile(function, "<blocked kernel>", "exec")


@cache
def _functions(kernel: str, edits: Edits) -> tuple[CodeType, ...]:
    """Return the functions of the kernel; those that edits leave as they are are compiled once."""
    return tuple(map(_compiled, edited(kernel, edits).split("\n\n\n")))


def difference(kernel: str, edits: Edits) -> str:
    """Return edits as a diff of the lines of a blocked kernel, each piece without its indent."""
    pieces: list[str] = []
    lines = difflib.ndiff(kernel.splitlines(), edited(kernel, edits).splitlines())
    for changed, piece in groupby(lines, key=lambda line: line[0] in "+-"):
        own = [line for line in piece if changed]
        indent = min((len(line[2:]) - len(line[2:].lstrip()) for line in own), default=0)
        pieces += (line[:2] + line[2 + indent :] for line in own)
    return "\n".join(pieces)


class BlockedKernel:
    """A blocked kernel with the buffers that it keeps between calls.

    Args:
        blocks: block sizes that differ from those in its first line.
        edits: its bug.
        kernel: its text: of gated cells or of linear recurrences.
    """

    def __init__(
        self,
        blocks: Mapping[str, int] | None = None,
        edits: Edits = (),
        kernel: str = KERNEL,
    ) -> None:
        self._space: dict[str, Any] = {**vars(words_of_edits)}
        for function in _functions(kernel, edits):
            exec(function, self._space)  # noqa: S102 -- our file
        self._space |= blocks or {}

    def run(self, recurrence: Recurrence, compute: Compute = Compute.FLOAT64) -> Result:
        """Evaluate a recurrence; each output is rounded once to its dtype."""
        with np.errstate(all="ignore"):
            recurrence = recurrence.plain
            kind = call_of(recurrence.cell.name)
            call = kind(recurrence) if issubclass(kind, LinearCall) else BlockedCall(recurrence)
            found = self._space[kind.kernel[1]](call, working_dtype(recurrence, compute))
            Y, last = call.results(*found) if isinstance(call, LinearCall) else found
            places = empty_outputs(recurrence)
            if places.Y is not None:
                places.Y[...] = round_to(Y, recurrence.dtype)
            for place, state, dtype in zip(places.last, last, recurrence.dtypes, strict=True):
                place[...] = round_to(state, dtype)
            clear_unstarted(recurrence, places.last)
        return places


@dataclass(frozen=True, slots=True, eq=False)
class StructuralMutant:
    """One plausible bug of a blocked kernel."""

    id: str  # its id, as in `--backend mutant:ID`
    cells: tuple[str, ...]  # the names of the cells whose kernels can have it
    family: str  # the part of the kernel that is wrong
    sentence: str  # what goes wrong
    edits: Edits  # what it edits in the blocked kernel
    size: SizeClass | None = None  # the sizes that show it; None if small ones do
    # the kernel's block sizes that are not the usual ones
    blocks: Mapping[str, int] = field(default_factory=dict)
    calls: int = 1  # number of calls of one session that show it
    unseen: Reason = always_seen  # recurrence of its sizes -> why it cannot be seen there, or ""
    kernel: str = KERNEL  # the text of the blocked kernel

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
        return BlockedKernel(self.blocks, self.edits, self.kernel).run

    @property
    def difference(self) -> str:
        """Its edits as a diff."""
        return difference(self.kernel, self.edits)


class StructuralBugs(BugTable[StructuralMutant]):
    """The bugs of a blocked kernel."""

    def __init__(self, text: str, name: str, kernel: str = KERNEL) -> None:
        self._kernel = kernel
        super().__init__(text, name)

    words = (*WORDS, "widths", "with", "seen", "calls")

    def stands(self, edit: Edit, cells: tuple[str, ...]) -> bool:
        """Whether what is edited stands in the kernel, which all cells share."""
        del cells
        return edit.old in self._kernel

    def mutant(self, bug: WrittenBug) -> StructuralMutant:
        """Return the mutant that a bug is."""
        seen, blocks = bug.words.get("seen", "any"), {}
        for pair in bug.words.get("with", "").split():
            name, _, number = pair.partition("=")
            if name not in (known := blocks_of(self._kernel)) or not number.isdigit():
                raise self._wrong(f"with {pair}: write {' or '.join(known)}=NUMBER", bug.place)
            blocks[name] = int(number)
        try:
            size = None if seen == "any" else size_class(seen)
        except ValueError as error:
            raise self._wrong(f"{error}", bug.place) from None
        calls = int(bug.words.get("calls", 1))
        return StructuralMutant(
            *(bug.id, bug.cells, bug.family, bug.sentence, bug.edits),
            *(size, blocks, calls, bug.unseen, self._kernel),
        )


STRUCTURAL: Mapping[str, StructuralMutant] = {
    row.id: row
    for name, kernel in (("structural.txt", KERNEL), ("linear_structural.txt", LINEAR_KERNEL))
    for rows in StructuralBugs(text_of(name), name, kernel).families.values()
    for row in rows
}
