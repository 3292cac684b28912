"""The command line: modules of commands, each of which parses, calls and prints, nothing else."""

from __future__ import annotations

from typing import NoReturn

# Objects made until cycles are looked for: more than the imports of any command make.
COLLECTED_AFTER = 100_000


def main() -> NoReturn:
    """Run the command line; never shows a traceback unless asked to.

    Whatever takes time to import comes after the signals have got their handlers. Imports make no
    cycles worth looking for, and the interpreter looks once more as it ends: that took a fifth of
    running a small model.
    """
    import atexit
    import gc
    import sys

    gc.set_threshold(COLLECTED_AFTER)
    atexit.register(gc.freeze)

    from rnncli.jobs import signals
    from rnncli.talk import terminal

    terminal.open_missing_streams()
    terminal.guard_streams()
    try:
        signals.begin()
        from rnncli.cli import group

        code = group.run()
    except KeyboardInterrupt as error:
        code = signals.report_interrupt(error)
    finally:
        signals.end()
    sys.exit(code)
