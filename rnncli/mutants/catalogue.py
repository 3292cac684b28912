"""Every mutant by its id, semantic ones and structural ones, and as a backend."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rnncli.backends.backend import QUANTISED
from rnncli.errors import InvalidRequest, did_you_mean, listed
from rnncli.mutants import imprecision, quantised_kernels
from rnncli.mutants.bug_table import BUGS
from rnncli.mutants.scalings import scaling_named
from rnncli.mutants.structural import STRUCTURAL, StructuralMutant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.backends.backend import Compute
    from rnncli.mutants.mutant import Family, Mutant
    from rnncli.recurrence.recurrence import Recurrence, Result

PACKED = ("packed sequences", "packed attentions", "tokens")
# Families by which suites are scored: those of bugs.txt by their keys, and those of arithmetic.
_SCORED = (
    *("gate order", "weight layout", "transposes", "biases"),
    *("initial states", "last states", "lengths", "padding"),
    *("directions", "layout", "batches", "clip", "activations", "reset gate", "update gate"),
    *("peepholes", "coupling", "forget bias"),
    *(imprecision.format_bug, imprecision.approximation_bug, imprecision.loss_bug),
    *(quantised_kernels.quantisation_bug, quantised_kernels.unit_bug),
    *("linear update", "linear decay", "linear rate", "linear heads", "linear scale"),
    *("linear states", "linear formats", "linear losses", "linear approximations"),
    *("convolution taps", "convolution dilation", "convolution activation", "convolution states"),
    *("convolution formats", "convolution losses", *PACKED),
    *("integer gates", "integer weights", "integer points", "integer biases", "integer scales"),
    *("integer cell", "integer clip", "integer saturation", "integer wide", "integer functions"),
    *("integer states", "integer layout"),
    *("projected gates", "projected weights", "projected coupling", "projected peepholes"),
    *("projected clip", "projected projection", "projected states", "projected layout"),
)
# Families of bugs that were reported of runtimes or converters; no other mutant covers them.
REPORTED = (
    *("reported states", "reported directions"),
    *(imprecision.reported_loss_bug, "reported reset gate"),
)
# Finer variants of these: of one tensor, gate, function or direction, or at one place. They name a
# bug as precisely as possible, but suites are not scored by them: a case that catches
# `biases-dropped` catches the biases of each gate, and gates in any order would count two dozen
# times. Nor are suites scored by the other choice of a reading, which is acceptable wherever it is
# seen, by an attribute that one dialect has, by what was reported to runtimes, or by "cell"
# and "batch major", which are younger than the committed packs: their manifests list the scored.
_UNSCORED = (
    *("batch major", "cell", "gate layout", "finer gate order", "terms", "finer activations"),
    imprecision.finer_format_bug,
    *(imprecision.finer_approximation_bug, imprecision.finer_loss_bug),
    quantised_kernels.finer_unit_bug,
    *("finer directions", "finer lengths", "finer clip", "finer peepholes", "finer states"),
    *("within a step", "resets", "inputs"),
    *("integer products", "integer tails", "integer outputs"),
    *REPORTED,
)


def rows_of(family: str | Family) -> Sequence[Mutant]:
    """Return the bugs of a family, one of edits by its key."""
    return BUGS[family] if isinstance(family, str) else family.rows


_ROWS = tuple(row for family in (*_SCORED, *_UNSCORED) for row in rows_of(family))
MUTANTS: Mapping[str, Mutant] = {row.id: row for row in _ROWS}
_UNSCORED_IDS = frozenset(row.id for family in _UNSCORED for row in rows_of(family))
EVERY: Mapping[str, Mutant | StructuralMutant] = {**MUTANTS, **STRUCTURAL}


def scored_of(
    cell: str, *, quantised: bool = False, dressed: bool = False, packed: bool = False
) -> tuple[Mutant, ...]:
    """Return the mutants of a cell, such as "LSTM", by which suites are scored.

    Args:
        cell: its name.
        quantised: whether an operator quantises, so that the bugs of that count as well.
        dressed: whether it is a quantised unit, likewise.
        packed: whether its sequences are packed, likewise.
    """
    families: dict[str | Family, bool] = {
        quantised_kernels.quantisation_bug: quantised,
        quantised_kernels.unit_bug: dressed,
        **dict.fromkeys(PACKED, packed),
    }
    left_out = [row for each, counts in families.items() if not counts for row in rows_of(each)]
    return tuple(row for row in mutants_of(cell) if is_scored(row.id) and row not in left_out)


def is_scored(id: str) -> bool:  # noqa: A002 -- what a mutant itself calls it
    """Whether a mutant scores suites; partial, shifted and reported ones only name bugs."""
    return id not in _UNSCORED_IDS


def family_of(id: str) -> str:  # noqa: A002 -- what a mutant itself calls it
    """Return the family of a mutant, structural ones included."""
    return EVERY[id].family


@cache
def mutants_of(cell: str) -> tuple[Mutant, ...]:
    """Return the mutants of a cell, all of which can name the bug of a case."""
    return tuple(row for row in MUTANTS.values() if cell in row.cells)


def structural_of(cell: str) -> tuple[StructuralMutant, ...]:
    """Return the structural mutants of a cell, such as "LSTM"."""
    return tuple(row for row in STRUCTURAL.values() if cell in row.cells)


def mutant_named(id: str) -> Mutant | StructuralMutant:  # noqa: A002 -- what a mutant itself calls it
    """Return the mutant of that id, structural ones and scalings by any factor included.

    Raises:
        InvalidRequest: the mutant does not exist.
    """
    if found := EVERY.get(id) or scaling_named(id):
        return found
    # The ids with most of its words, from the first on.
    words, alike = id.split("-"), list[str]()
    while words and not alike:
        alike = [each for each in EVERY if {*words} <= {*each.split("-")}]
        words.pop()
    near = did_you_mean(id, EVERY) or (f"; there are {listed(alike)}" if alike else "")
    raise InvalidRequest(f"unknown mutant '{id}'{near} (`rnncli mutants` lists them)")


class MutantBackend:
    """A backend with one plausible bug, whose calls form one session.

    A structural mutant keeps its buffers, so calls must not overlap.

    Args:
        id: the mutant's id.

    Raises:
        InvalidRequest: the mutant does not exist.
    """

    def __init__(self, id: str) -> None:  # noqa: A002 -- what a mutant itself calls it
        self.mutant = mutant_named(id)
        self._session = self.mutant.session()
        self.name = f"mutant:{id}"
        self.summary = f"wrong on purpose: {self.mutant.sentence}"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None for the mutant's own cells, else why it does not apply."""
        del compute
        if recurrence.quantiser is not None and isinstance(self.mutant, StructuralMutant):
            return QUANTISED
        cell, cells = recurrence.cell.name, self.mutant.cells
        return None if cell in cells else f"is a bug of {' and '.join(cells)}, not of {cell}"

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate like a kernel with this bug."""
        return self._session(recurrence, compute)
