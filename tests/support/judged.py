"""Vectors to judge by, and implementations of them that are sound, or wrong in a known way."""

import warnings
from dataclasses import fields
from functools import cache
from pathlib import Path

from support.emulation import WIDE
from support.small_suite import small_suite

from rnncli.errors import RnncliWarning
from rnncli.generating.production import make_vectors
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.explaining.hypotheses import explained
from rnncli.judging.judgement import judged
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node
from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Attempt, Status, Vector

CORE = Path(__file__).parents[2] / "vectors" / "core"


@cache
def core():
    """The committed vectors by id."""
    return {stored.id: _whole(stored) for stored in open_pack(CORE).vectors()}


def _whole(stored):
    """Read every part of a vector."""
    return Vector(**{part.name: getattr(stored, part.name) for part in fields(Vector)})


def vectors_of(*cases):
    """Make vectors of cases, each the YAML of one; the first has the id `0`, or begins with it."""
    text = "suite: some\nsummary: Some.\nseed: 3\ngolden: float64\ncases:\n"
    text += "".join(f"  case_{k}: {case}\n" for k, case in enumerate(cases))
    found = list(make_vectors(small_suite(text).entries))
    for vector in found:
        if isinstance(vector, Exception):
            raise vector
    return found


def ran(outputs, seconds=0.0):
    """An attempt that ran."""
    return Attempt(Status.RAN, dict(outputs), seconds=seconds)


def explained_verdict(vector, outputs, rule=PACK_RULE):
    """Return the verdict on outputs, with its explanation."""
    return explained(judged(vector, ran(outputs), rule))


def outputs_of(vector, result):
    """Return a recurrence's result as the outputs of a vector."""
    return vector.node.outputs_of(result)


def computed(vector, change=lambda recurrence: recurrence, implementation="term-by-term"):
    """Evaluate a vector's recurrence, or a changed one, in its own precision."""
    return outputs_of(vector, WIDE[implementation].run(change(vector.recurrence)))


def mutated(vector, mutants):
    """What a kernel with those bugs gives, one bug after the other applied to the recurrence."""
    *first, last = mutants
    recurrence = vector.recurrence
    for mutant in first:
        recurrence = mutant.change.recurrence(recurrence)
    return outputs_of(vector, last.run(recurrence))


def bound(node):
    """Bind a generated node, all outputs asked for; surplus alpha and beta are allowed here."""
    row = OPERATORS[node.operator]
    names = [output.name for output in row.outputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)
        readings = {**row.readings, **node.readings}
        return Node(row, node.attributes, names, readings).recurrence(node.inputs)
