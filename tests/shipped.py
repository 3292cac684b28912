"""The suites that ship: each read once, and its vectors made once, in a process."""

import warnings
from functools import cache, lru_cache

from judged import core

from rnncli.cases.suite.suite import load_suite
from rnncli.errors import RnncliWarning
from rnncli.packs.generating.production import make_vectors


@cache
def suite(name):
    """Return a suite."""
    return load_suite(name)


@lru_cache(maxsize=3)  # so that a process that asks for all keeps few in memory
def vectors(name):
    """Return the vectors of a suite: of core those that are committed, which are made the same.

    Raises:
        Exception: one could not be made.
    """
    if name == "core":
        return tuple(core().values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # of an alpha that nobody takes
        return tuple(map(_sound, make_vectors(suite(name).entries)))


def _sound(made):
    if isinstance(made, Exception):
        raise made
    return made
