"""A planted bug: a row of a switch table that one of the two kernels consults where the bug acts.

The rows were written before any suite was measured with them, and each belongs to one of two
halves. Suites may be tuned on the tuning half. Nobody looks at which bugs of the held-out half a
suite catches: only its percentage is published.

Nobody chooses the half either: it is the parity of the last byte of the SHA-256 of the id, even for
tuning and odd for held-out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

UNITS, TILES = "units", "tiles"
TUNING, HELD_OUT = "tuning", "held-out"
STRUCTURAL, SEMANTIC = "structural", "semantic"


def half_of(bug_id):
    """Return the half an id belongs to, by a digest that was fixed before any measurement."""
    digest = hashlib.sha256(bug_id.encode()).digest()
    return HELD_OUT if digest[-1] % 2 else TUNING


@dataclass(frozen=True, slots=True)
class Bug:
    """One row.

    Attributes:
        name: unique in its kernel; what the kernel asks for.
        kernel: `units` or `tiles`.
        cells: the operators it can show in, separated by spaces.
        kind: `structural` (of the kernel's blocks, buffers, paths) or `semantic` (of the formulas).
        sized: whether it needs certain sizes: beyond a vector, block, tile or chunk, equal to each
            other, 1, or tiny.
        what: what goes wrong, in one sentence.
        report: the public report it is modelled on, as `owner/name#number`, or "".
        shown_by: the special input that shows it, or "" where random ones do.
    """

    name: str
    kernel: str
    cells: str
    kind: str
    sized: bool
    what: str
    report: str = ""
    shown_by: str = ""

    @property
    def id(self):
        """Unique among all bugs: the kernel and the name."""
        return f"{self.kernel}:{self.name}"

    @property
    def half(self):
        """`tuning` or `held-out`."""
        return half_of(self.id)


def bugs():
    """Return the rows of `bugs.txt`, which says how they are written."""
    found = []
    for line in (Path(__file__).parent / "bugs.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            kernel, kind, size = line.strip("[]").split(", ")
        elif line and not line.startswith("#"):
            name, cells, *rest = (part.strip() for part in line.split(" |"))
            found.append(Bug(name, kernel, cells, kind, size == "sized", *rest))
    return found


class Switches:
    """The bugs that one kernel has; called with a name, whether it has that one."""

    def __init__(self, names=()):
        self.names = frozenset(names)

    def __call__(self, name):
        """Whether the kernel has the bug of that name."""
        return name in self.names
