"""The command line: a module for each command, which parses, calls and prints, nothing else."""

from __future__ import annotations

import atexit
import gc
from typing import NoReturn

# Objects made until cycles are looked for: more than the imports of any command make.
COLLECTED_AFTER = 50_000


def main() -> NoReturn:
    """Run the command line; never shows a traceback unless asked to.

    Imports make no cycles worth looking for, and the interpreter looks once more as it ends: that
    took a fifth of running a small model.
    """
    gc.set_threshold(COLLECTED_AFTER)
    atexit.register(gc.freeze)
    from rnncli.cli import group

    group.main()
