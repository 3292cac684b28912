"""What the constants of diagnosis are worth: what is said of the planted bugs at other values.

    PYTHONPATH=tests python -m kernels.thresholds vectors/core --of 12

A bug's kernel runs once; its failures are then diagnosed with one constant after the other at
another value. Printed is how many bugs of each half are said something better or worse; the names
of bugs only of the tuning half. `--of N` takes every N-th bug, in the order of the digests of their
names.
"""

import argparse
import hashlib
import math
import sys
import warnings
from pathlib import Path

from kernels.bug import HELD_OUT, TUNING
from kernels.diagnosed import NONE, ORDER, classify, counts, investigation_of
from kernels.switch_table import BUGS

from rnncli.judging.explaining import diagnosis, hypotheses, patterns

# Module and constant -> other values.
OTHERS = {
    (diagnosis, "OF_ONE_DTYPE"): (set(),),
    (diagnosis, "OF_SIZES"): (set(),),
    (diagnosis, "MOST_OF"): (0.0, 0.25, 0.999),
    (diagnosis, "ARITHMETIC"): (set(),),
    (diagnosis, "LEAST_TOGETHER"): (1, 4),
    (diagnosis, "LEAST_BESIDE"): (1, 4, sys.maxsize),
    (diagnosis, "AGAINST"): (0.0, 0.25, 1.0),
    (diagnosis, "UNEXPLAINED"): (0.0, 0.125, 1.0),
    (diagnosis, "AGAINST_TWO"): (0.0, 0.05, 0.2),
    (diagnosis, "MINOR"): (0.0, 0.125, 0.5),
    (diagnosis, "REST"): (0.0, 0.25, 1.0),
    (diagnosis, "SHARED"): (0.0, 5e-7, 2e-6, 1e-3),
    (diagnosis, "LEAST_OF_A_PART"): (1, 2, 6),
    (diagnosis, "ZEROS"): (0.0, 0.5),
    (diagnosis, "SEARCHED"): (2, 8),
    (diagnosis, "CLEARLY"): (1.0, 2.0, 8.0, math.inf),
    (patterns, "WIDTHS"): (patterns.WIDTHS[:3],),
    (patterns, "SMALL_WIDTHS"): ((), patterns.WIDTHS[:2], patterns.WIDTHS),
    (patterns, "CHANCE"): (0.0, 0.01, 0.04, 1.0),
    (patterns, "CHANCE_OF_ONE"): (0.0, 0.125, 0.5, 1.0),
    (patterns, "BETTER"): (0.0, 0.25, 1.0),
    (patterns, "MOST_LISTED"): (1, 6),
    (hypotheses, "NEAREST"): (24, 96),
    (hypotheses, "MOST_COMBINED"): (3, 12),
}
BEST_FIRST = (*ORDER[:2], NONE, ORDER[2])


def kinds_of(bug, folder):
    """Return (constant, value) -> how good the diagnosis of a bug is; () is for all as they are."""
    begin = investigation_of(BUGS[bug].kernel, [BUGS[bug].name], folder)
    if begin is None:
        return {}
    kinds = {(): classify(begin().diagnosis(), bug)}
    for (module, name), values in OTHERS.items():
        own = getattr(module, name)
        for value in values:
            setattr(module, name, value)
            try:
                kinds[name, str(value)] = classify(begin().diagnosis(), bug)
            finally:
                setattr(module, name, own)
    return kinds


def main(arguments=None):
    """Print for each half and other value how many bugs are named better, and how many worse."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="Pack.")
    parser.add_argument("--of", type=int, default=1, help="Every N-th bug only.")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", RuntimeWarning)
    for half in (TUNING, HELD_OUT):
        ids = sorted(
            (bug.id for bug in BUGS.values() if bug.half == half),
            key=lambda name: hashlib.sha256(name.encode()).digest(),
        )
        found = {
            bug: kinds for bug in ids[:: options.of] if (kinds := kinds_of(bug, options.folder))
        }
        sys.stdout.write(f"{half}: {len(found)} seen: {counts([k[()] for k in found.values()])}\n")
        for change in dict.fromkeys(each for kinds in found.values() for each in kinds if each):
            moved = {
                bug: BEST_FIRST.index(kinds[()]) - BEST_FIRST.index(kinds[change])
                for bug, kinds in found.items()
                if kinds[change] != kinds[()]
            }
            better = sum(step > 0 for step in moved.values())
            named = f": {' '.join(moved)}" if half == TUNING and moved else ""
            sys.stdout.write(
                f"{' = '.join(change)}\t{better} better, {len(moved) - better} worse{named}\n"
            )


if __name__ == "__main__":
    main()
