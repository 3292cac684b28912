"""Vectors under the readings that an implementation declares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed_record

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.reference import exact
from rnncli.errors import Unsupported
from rnncli.files.paths import Identifier
from rnncli.judging.tolerances.derivation import derive
from rnncli.numerics import dtype_named
from rnncli.numerics.profiles import profile_named
from rnncli.packs.vector import Answers, Vector
from rnncli.recurrence.readings import READINGS
from rnncli.talk.words import listed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rnncli.operators import Node


def under_readings(vector: Vector, readings: Mapping[str, str]) -> Vector:
    """Return a vector whose own answers, at all its calls, are those under some readings.

    Readings that a case does not have change nothing. A pack has the answers under each reading by
    which some change; those under several are proved here.

    Raises:
        Unsupported: an element cannot be proved, or the extra that proves is not installed.
    """
    if vector.record.expect != "result":
        return vector
    first, *later = (_under(call, readings) for call in vector.calls)
    return first if first is vector else replace(first, later=tuple(later))


def _under(vector: Vector, readings: Mapping[str, str]) -> Vector:
    own, roundings = vector.record.readings, vector.node.roundings
    changed = {}
    for name, choice in readings.items():
        each = f"{name}={choice}"
        is_idle = choice in READINGS[name].unstored and each not in vector.node.unstored
        stands_for = "" if is_idle else roundings.get(each, name)
        if own.get(name, choice) != choice and stands_for:
            # A unit may round by another choice of the same reading: of one that dresses no gate,
            # `state` stands for `gates`, which it cannot have.
            other, _, standing = stands_for.partition("=")
            changed[name] = standing if standing and other == name else choice
    if not changed:
        return vector
    node, others = vector.node.under(changed), dict(vector.alternatives)
    if len(changed) == 1:
        ((name, choice),) = changed.items()
        answers = others.pop(roundings.get(each := f"{name}={choice}", each), None)
        others = {each: v for each, v in others.items() if each.startswith(f"{name}=")}
        if answers is not None:
            others[f"{name}={own[name]}"] = vector.answers
        if each in vector.node.unstored:
            answers = _proved(vector, node)
        answers = answers or vector.answers
    else:
        answers, others = _proved(vector, node), {}
    alternatives = [*map(Identifier, others)]
    record = changed_record(vector.record, readings=dict(node.readings), alternatives=alternatives)
    return Vector(
        id=vector.id,
        model=vector.model,
        inputs=vector.inputs,
        initializers=vector.initializers,
        answers=answers,
        alternatives=others,
        record=record,
        call=vector.call,
    )


def _proved(vector: Vector, node: Node) -> Answers:
    own = vector.record.readings
    recurrence = replace(node.recurrence(vector.inputs), wants_Y=True)
    golden = exact(recurrence)
    if golden is None:
        try:
            backend: Any = backend_named("certified")
        except Unsupported as error:
            under = [f"{k}={v}" for k, v in node.readings.items() if v != own.get(k, v)]
            needed = f"no pack has answers under {listed(under)}, and proving them takes an extra"
            raise Unsupported(f"{vector.id}: {needed}: {error}") from error
        wide = replace(recurrence, dtype=dtype_named("float64"))
        if reason := backend.supports(wide, Compute.FLOAT64):
            raise Unsupported(f"{vector.id}: under several readings, certified {reason}")
        golden = backend.prove(wide if node.unit else recurrence)
    allowed = derive(recurrence, profile_named(vector.record.profile), golden)
    return Answers(
        node.proved_outputs_of(golden, may_tie=True), node.tolerances_of(golden, allowed)
    )
