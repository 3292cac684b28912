"""The suites that ship: each read once in a process, and its vectors made once in a session."""

import warnings
from functools import cache, lru_cache

from support.between_workers import made_once
from support.judged import core

from rnncli.cases.suite.suite import load_suite
from rnncli.errors import RnncliWarning
from rnncli.generating.production import make_vectors


@cache
def suite(name):
    """Return a suite."""
    return made_once(f"suite-{name}", lambda: load_suite(name))


@lru_cache(maxsize=3)  # so that a process that asks for all keeps few in memory
def vectors(name, part=""):
    """Return the vectors of a suite: of core those that are committed, which are made the same.

    Args:
        name: of the suite.
        part: what the ids of the vectors hold.

    Raises:
        Exception: one could not be made.
    """
    if name == "core":
        return tuple(core().values())
    return made_once(f"vectors-{name}-{part}", lambda: _made(name, part))


def _made(name, part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # of an alpha that nobody takes
        entries = [entry for entry in suite(name).entries if part in entry.id]
        return tuple(map(_sound, make_vectors(entries)))


def _sound(made):
    if isinstance(made, Exception):
        raise made
    return made
