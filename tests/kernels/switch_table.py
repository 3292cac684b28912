"""All planted bugs of both kernels, and the kernels by name."""

from kernels.bug import HELD_OUT, TILES, TUNING, UNITS, bugs
from kernels.tiles_kernel import TilesKernel
from kernels.units_kernel import UnitsKernel

KERNELS = {UNITS: UnitsKernel, TILES: TilesKernel}
BUGS = {bug.id: bug for bug in bugs()}


def kernel_with(bug):
    """Return a new session of the kernel that has one bug."""
    return KERNELS[bug.kernel]([bug.name])


def groups():
    """Yield the rows of a table of bugs: half, kind and size, and the bugs, all kinds first."""
    for half in (TUNING, HELD_OUT):
        found = {"all": [b for b in BUGS.values() if b.half == half]}
        for bug in found["all"]:
            kind = f"{bug.kind}, {'sized' if bug.sized else 'any size'}"
            found.setdefault(kind, []).append(bug)
        yield from ((half, kind, bugs) for kind, bugs in found.items())
