"""JSON values with something odd in one place, and what a schema says of them."""

import copy
from functools import partial

import jsonschema

from rnncli.errors import InvalidRequest
from rnncli.files.paths import Identifier, RelativePath
from rnncli.judging.comparing.requirements import Requirements

# What stands where something else should.
ODD = (None, True, -1, 10**30, 0.5, "", "x", [], [1], ["x", "x"], {}, {"more": 1}, [[]])


def places(value, path=()):
    """Every place in a JSON value that something else can be put."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield (*path, key)
        if isinstance(value[key], (dict, list)):
            yield from places(value[key], (*path, key))


def put(value, path, odd):
    """Return a copy with another value at a place; without that place for `...`."""
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if odd is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = odd
    return changed


def spoilt(value):
    """Copies with something odd at each place, or without that place."""
    return (put(value, path, odd) for path in places(value) for odd in (..., *ODD))


def _is_named(kind, value):
    """Whether a value, if it is a text, names a file; otherwise the refusal is raised."""
    return not isinstance(value, str) or kind(value) is not None


FORMAT_CHECKER = jsonschema.FormatChecker(formats=())
"""Judges texts that name files, which only we check."""
FORMAT_CHECKER.checks("rnncli-path", InvalidRequest)(partial(_is_named, RelativePath))
FORMAT_CHECKER.checks("rnncli-identifier", InvalidRequest)(partial(_is_named, Identifier))


@FORMAT_CHECKER.checks("rnncli-requirement", InvalidRequest)
def _is_required(value):
    """Whether a value, if it is a text, is a requirement; otherwise the refusal is raised."""
    return not isinstance(value, str) or Requirements.parse([value]) is not None
