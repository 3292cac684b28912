"""A case within requirements: what the device lacks goes, and sizes go to the nearest it takes.

A case is a suite's mapping, as `Entry.written` has it. Each function of `MOVES` makes one part of
it meet the requirements, in an order in which later parts depend on earlier ones.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.case import SIZES, default_size, size_names
from rnncli.cases.config.keys import CHOICES, DEFAULT_DTYPE
from rnncli.cases.fills import default_entry
from rnncli.cases.suite.template import versions_of
from rnncli.judging.comparing.requirements import FIELDS, NEVER, shared_heads
from rnncli.judging.device import admitted_sizes, facts_of, subsets
from rnncli.judging.scoring.kill_matrix import EDGES
from rnncli.numerics import dtype_named
from rnncli.operators import operator_named
from rnncli.operators.attributes import complete
from rnncli.operators.checking import num_directions, opset_of
from rnncli.operators.operator import HEADS, OPEN
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.judging.comparing.requirements import Requirements
    from rnncli.operators import Operator
    from rnncli.operators.operator import Attribute
    from rnncli.recurrence.activations import Activation

    Plain = dict[str, Any]

# Combinations of so many of the nearest values of each size are tried.
NEAREST, NEAREST_OF, FEWER = 12, 4, 5  # or fewer, if more sizes depend on one another
PARAMETERS = ("alpha", "beta")
# The scales of tensors that a device takes as integers and a unit has as real numbers.
SCALE_OF = {"X": 1 / 50, "W": 1 / 80, "R": 1 / 80}


class Unmoved(Exception):  # noqa: N818 -- a reason, not an error of a user
    """Why a case cannot be moved."""


def _operator(case: Plain, needs: Requirements) -> None:
    """Choose the nearest version, and its nearest element type."""
    own = operator_named(case["op"])
    dtype = case.get("dtype") or DEFAULT_DTYPE
    versions = sorted(
        versions_of(own.family), key=lambda row: (abs(row.version - own.version), -row.version)
    )
    is_unit = "quantise" in case
    for row in versions:
        if is_unit and opset_of(row) is None:
            continue
        facts = facts_of(row, is_unit=is_unit)
        for each in dict.fromkeys((dtype, *row.dtypes)):
            if each in row.dtypes and needs.admits(row.family, **facts, dtype=each):
                case["op"] = row.name
                case["dtype"] = each
                return
    raise Unmoved(f"no version of {own.family}")


def _attributes(case: Plain, needs: Requirements) -> None:
    """Take away what the operator lacks, and give numbers and words values that are taken."""
    row = operator_named(case["op"])
    given = {n: v for n, v in case.get("attributes", {}).items() if n in row.attributes}
    case["attributes"] = given
    for name, attribute in row.attributes.items():
        field = field_of(attribute)
        if (attribute.role or name) in SIZES or not field:
            if not needs.admits(row.family, attributes=[name]) and not attribute.role:
                given.pop(name, None)
            continue
        named = [v for term in needs.terms if field in term.fields for v in term.values]
        numbers = [
            int(v) if v.lstrip("-").isdecimal() else float(v)
            for v in named
            if re.fullmatch(r"-?\d[\d.e-]*", v)
        ]
        own = given.pop(name, attribute.default)
        for value in (own, attribute.default, *attribute.choices, *numbers):
            read = str if field == "gate_order" else attribute.canonical
            held = NEVER if value is None else read(value)
            told = {name: value} if value != attribute.default else {}
            is_taken = needs.admits(row.family, **{field: held}, attributes=[*told])
            if is_taken and (name != row.demanding or any(_input_sets(row, told, case, needs))):
                given |= told
                break
        else:
            raise Unmoved(f"no {name} that it takes")


def _input_sets(
    row: Operator, given: Plain, case: Plain, needs: Requirements
) -> Iterator[list[str]]:
    """Yield the sets of optional inputs that are taken, and that a node with attributes may have.

    States of another element type than the case's are there only with the first of them.
    """
    demands = row.demands(complete(row, given))
    states = {each.name for each in row.inputs if each.kind == "states"}
    alike = {"dtype": case["dtype"], "states_dtype": case["dtype"], "mixed_dtypes": 0}
    may_be_fresh = not states or needs.admits(row.family, **alike)
    for some in subsets([each.name for each in row.inputs if each.optional]):
        is_legal = all((name in some) == is_needed for name, is_needed in demands.items())
        is_typed = may_be_fresh or states & {*some}
        if is_legal and is_typed and needs.admits(row.family, inputs=some):
            yield some


def field_of(attribute: Attribute) -> str:
    """Return the field of a requirement that is about one attribute alone, or ""."""
    if attribute.name == "layout" and attribute.type == "string":
        return "gate_order"
    names = [name for name in (attribute.role, attribute.name) if name in FIELDS]
    return names[0] if names and not attribute.type.endswith("s") else ""


def _activations(case: Plain, needs: Requirements) -> None:
    """Choose functions that are taken; the lists are those of the directions that there are."""
    row = operator_named(case["op"])
    given = case["attributes"]
    listed = row.attribute_for("activations")
    if listed is None:
        return
    directions, of_one = num_directions(complete(row, given)), len(row.cell.activations)
    usual, names = [*row.default_activations], given.get(listed.name)
    parameters = [each for p in PARAMETERS if (each := row.attribute_for(f"activation_{p}"))]
    if names and row.activation_lists != "one" and len(names) > of_one * directions:
        names = given[listed.name] = names[:of_one]
        for parameter, own in zip(PARAMETERS, parameters, strict=False):
            takers = sum(getattr(function_of(each), parameter) is not None for each in names)
            if values := given.pop(own.name, [])[:takers]:
                given[own.name] = values
    elif names and row.activation_lists == "each" and len(names) < of_one * directions:
        for own in (listed, *parameters):
            given |= {own.name: given[own.name] * directions} if own.name in given else {}

    def are_taken(*some: str) -> bool:
        return needs.admits(row.family, activations=[*{function_of(name).name for name in some}])

    used = given.get(listed.name) or usual
    if used == usual and len(used) == of_one:  # none of which takes a number
        for own in parameters:
            given.pop(own.name, None)
    if are_taken(*used):
        return
    known = next(filter(are_taken, (*usual, *(listed.choices or row.activations))), None)
    if known is None and not are_taken(*usual):
        raise Unmoved("no activation that it takes")
    for own in (listed, *parameters):
        given.pop(own.name, None)
    chosen = [name if known is None or are_taken(name) else known for name in usual]
    if chosen != usual:
        given[listed.name] = chosen * (len(used) // of_one)


def function_of(name: str) -> Activation:
    """Return the function of a name in any case."""
    return next(row for key, row in ACTIVATIONS.items() if key.casefold() == name.casefold())


def _inputs(case: Plain, needs: Requirements) -> None:
    """Take away optional inputs that are not taken, and give those that must be there."""
    row = operator_named(case["op"])
    rows = {each.name: each for each in row.inputs}
    given = {n: v for n, v in case.get("inputs", {}).items() if n in rows and v is not None}
    wanted = [name for name, each in rows.items() if each.optional and name in given]
    best = min(
        _input_sets(row, case["attributes"], case, needs),
        key=lambda some: (len({*some} ^ {*wanted}), [name in some for name in wanted]),
        default=None,
    )
    if best is None:
        raise Unmoved("no inputs that it takes")
    case["inputs"] = {
        name: given.get(name, default_entry(each) if each.optional else None)
        for name, each in rows.items()
        if name in best or (not each.optional and name in given)
    }


def _forms(case: Plain, needs: Requirements) -> None:
    """Choose the shapes of inputs that may have several, and the element type of states."""
    row, dtype = operator_named(case["op"]), case["dtype"]
    for each in row.inputs:
        key = "states_dtype" if each.kind == "states" else each.form
        if key not in FIELDS or (each.optional and each.name not in case["inputs"]):
            continue
        own, is_type = case.get(key) or CHOICES[key].default, each.kind == "states"
        for choice in (own, *[dtype] * is_type, *CHOICES[key].allowed(row)):
            types = {"dtype": dtype, "mixed_dtypes": int(choice != dtype)} if is_type else {}
            if needs.admits(row.family, **{key: choice}, **types):
                case |= {key: choice} if choice != own else {}
                break
        else:
            raise Unmoved(f"no {key} that it takes")


def _outputs(case: Plain, needs: Requirements) -> None:
    """Ask for the nearest set of outputs that is taken."""
    row = operator_named(case["op"])
    present = [*row.present_outputs(complete(row, case["attributes"]))]
    wanted = [name for name in case.get("outputs") or present if name in present] or present
    found = [some for some in subsets(present) if some and needs.admits(row.family, outputs=some)]
    if not found:
        raise Unmoved("no outputs that it takes")
    case["outputs"] = min(found, key=lambda some: len({*some} ^ {*wanted}))
    Y = next((each.name for each in row.outputs if each.role == "Y"), "")
    if Y not in case["outputs"]:
        case.pop("horizon", None)


def _calls(case: Plain, needs: Requirements) -> None:
    """Make fewer calls, and leave sizes open or not."""
    row = operator_named(case["op"])
    is_open = bool(case.get("open_sizes"))
    if not needs.admits(row.family, open_sizes=int(is_open)):
        is_open = not is_open and row.dialect.startswith("ONNX")
        case["open_sizes"] = is_open
        if not needs.admits(row.family, open_sizes=int(is_open)):
            raise Unmoved("open sizes")
    calls = case.get("calls", 1)
    own = [*calls] if isinstance(calls, list) else [{}] * (calls - 1)
    own = [copy.copy(each) for each in own]
    for call in own:  # with inputs of the first, which its model has
        if not is_open:
            call.pop("sizes", None)
        if "inputs" in call:
            call["inputs"] = {n: v for n, v in call["inputs"].items() if n in case["inputs"]}
    while own and not needs.admits(row.family, calls=1 + len(own)):
        own.pop()
    if not needs.admits(row.family, calls=1 + len(own)):
        own = [{}]
    case["calls"] = own if any(own) else 1 + len(own)


def _sizes(case: Plain, needs: Requirements) -> None:
    """Move the sizes of every call to the nearest that are taken, and lengths with them."""
    row = operator_named(case["op"])
    before = {n: case["sizes"].get(n, default_size(row, n)) for n in size_names(row)}
    case["sizes"] = nearest_sizes(needs, row, before)
    fit_values(case, before, case["sizes"])
    if isinstance(case["calls"], list):
        for call in case["calls"]:
            asked = {**before, **call.get("sizes", {})}
            held = {n: size for n, size in case["sizes"].items() if n not in OPEN}
            moved = nearest_sizes(needs, row, asked, held)
            fit_values(call, asked, moved)
            if "sizes" in call:
                call["sizes"] = {name: moved[name] for name in call["sizes"]}
    if isinstance(case.get("horizon"), int):
        case["horizon"] = min(case["horizon"], case["sizes"].get("seq_length", 1))


def nearest_sizes(
    needs: Requirements,
    row: Operator,
    wanted: Mapping[str, int],
    held: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return the nearest sizes that are taken; those that are held do not move.

    Raises:
        Unmoved: there are none.
    """
    held = held or {}
    family = row.family

    def is_taken(some: Mapping[str, int]) -> bool:
        if {*HEADS} <= some.keys() and any(row.rules({**complete(row, {}), **some}, "")):
            return False
        every = {**dict.fromkeys(SIZES, 1), **some, **shared_heads(some)}
        return needs.admits(family, **every, largest_size=max(every.values()))

    same = {**wanted, **held}
    # Empty calls are moved to others, unless nothing else is taken.
    is_due = all(size or not needs.admits(family, **{name: 1}) for name, size in same.items())
    if is_due and is_taken(same):
        return same
    together = {each for term in needs.terms if term.fields[1:] for each in term.fields}
    is_limited = any("largest_size" in term.fields for term in needs.terms)
    joint = [name for name in same if is_limited or name in together or name in HEADS]
    most = NEAREST if len(joint) <= NEAREST_OF else FEWER
    choices = {}
    for name, size in same.items():
        near = sorted(admitted_sizes(needs, name, family), key=partial(_distance, size))
        choices[name] = [size] if name in held else near[: most if name in joint else 1]

    def ranked() -> Iterator[tuple[int, ...]]:
        counts = [range(len(each)) for each in choices.values()]
        yield tuple(0 for _ in counts)
        yield from sorted(itertools.product(*counts), key=lambda ranks: (sum(ranks), max(ranks)))

    for ranks in ranked() if all(choices.values()) else ():
        some = {n: each[k] for (n, each), k in zip(choices.items(), ranks, strict=True)}
        if is_taken(some):
            return some
    raise Unmoved("no sizes that it takes")


@cache
def marks_of(size: int) -> tuple[bool, ...]:
    """Return what a kernel may take a size for: one, a multiple, or beyond an edge."""
    return (size == 1, *(size % m == 0 for m in (2, 4, 8, 16, 32)), *(size > m for m in EDGES))


def _distance(wanted: int, size: int) -> tuple[int, float, int]:
    differing = sum(a != b for a, b in zip(marks_of(wanted), marks_of(size), strict=True))
    return (differing, abs(math.log(size / wanted)) if wanted else size, size)


def fit_values(case: Plain, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Stretch lists of lengths to other sizes; other values that are given are filled instead."""
    if before == after:
        return
    # Longer keys would let states grow with each step.
    if (size := after.get("key_size", 0)) > before.get("key_size", 0):
        case.setdefault("inputs", {})["key"] = {"normal": [0, round(size**-0.5, 3)]}
    for name, value in case.get("inputs", {}).items():
        if not isinstance(value, list) and not (isinstance(value, dict) and "file" in value):
            continue
        is_list = isinstance(value, list) and all(isinstance(each, int) for each in value)
        if is_list and operator_named(case["op"]).packed:  # where packed sequences begin
            case["inputs"][name] = "packed"
        elif is_list:
            T, N = before.get("seq_length", 1), after["batch_size"]
            stretched = [
                min(after["seq_length"], round(each * after["seq_length"] / max(T, 1)))
                for each in value
            ]
            case["inputs"][name] = [stretched[k % len(stretched)] for k in range(N)]
        else:
            case["inputs"][name] = "uniform"


def _weights(case: Plain, needs: Requirements) -> None:
    """Put the weights where they are taken."""
    family = operator_named(case["op"]).family
    for place in dict.fromkeys((case["weights"], *FIELDS["weights"].values)):
        if needs.admits(family, weights=place):
            case["weights"] = place
            return
    raise Unmoved("no place of weights that it takes")


def _quantise(case: Plain, needs: Requirements) -> None:
    """Give the tensors of a unit types, scales and zero points that are taken."""
    row = operator_named(case["op"])
    family, required = row.family, [each.name for each in row.inputs if not each.optional]
    there = {*required, *case["inputs"], *case["outputs"]}
    dressed = {name: each for name, each in case.pop("quantise", {}).items() if name in there}
    wanted = {term.fields[0].partition(".")[0] for term in needs.terms if "." in term.fields[0]}
    for name in sorted(wanted & there - dressed.keys()):
        if not dressed:
            raise Unmoved("no unit of integers")
        dressed[name] = {"type": "uint8", "scale": SCALE_OF.get(name, 1 / 128), "zero_point": 128}
    for name, dress in dressed.items():
        for entry in ("type", "scale", "zero_point"):
            called = f"{name}.{entry}"
            named = [v for t in needs.terms if called in t.fields for v in t.values]
            own = dress.get(entry, 0)
            held = own if isinstance(own, list) else [own]
            if all(needs.admits(family, **{called: each}) for each in held):
                continue
            read = str if entry == "type" else float if entry == "scale" else int
            taken = [v for v in map(read, named) if needs.admits(family, **{called: v})]
            if not taken:
                raise Unmoved(f"no {called} that it takes")
            dress[entry] = taken[0]
            if entry == "type":  # in the middle of its levels, which another zero point is not
                ends = np.iinfo(dtype_named(str(taken[0])).numpy)
                dress["zero_point"] = (int(ends.min) + int(ends.max)) // 2 + 1
    if dressed:
        case["quantise"] = dressed


MOVES: tuple[Callable[[Plain, Requirements], None], ...] = (
    *(_operator, _attributes, _activations, _inputs, _forms, _outputs),
    *(_calls, _sizes, _weights, _quantise),
)


def moved(case: Mapping[str, Any], needs: Requirements) -> Plain:
    """Return a case, as `Entry.written` has it, within requirements.

    Raises:
        Unmoved: some part of it has nothing near that is taken.
    """
    found = copy.deepcopy(dict(case))
    for move in MOVES:
        move(found, needs)
    return found
