"""All planted bugs of both kernels, and the kernels by name."""

from __future__ import annotations

from kernels import tiles_bugs, units_bugs
from kernels.bug import TILES, UNITS
from kernels.tiles_kernel import TilesKernel
from kernels.units_kernel import UnitsKernel

KERNELS = {UNITS: UnitsKernel, TILES: TilesKernel}
BUGS = {bug.id: bug for bug in (*units_bugs.BUGS, *tiles_bugs.BUGS)}


def kernel_with(bug):
    """Return a new session of the kernel that has one bug."""
    return KERNELS[bug.kernel]([bug.name])
