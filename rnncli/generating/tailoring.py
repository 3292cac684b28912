"""Tailoring: the cases of a suite within what a device takes, and more for what they leave.

Cases are moved instead of dropped. Which of them are kept, and which are added, is decided by the
bugs that they catch: a case after the other that catches most of what is caught least.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace as with_entries

from rnncli.cases.case import SIZES, default_size, size_names
from rnncli.cases.config.keys import CHOICES
from rnncli.cases.suite.suite import load_suite, parse_suite
from rnncli.cases.yaml_reader import as_yaml
from rnncli.errors import (
    ConfigError,
    NothingSelected,
    RnncliError,
    RnncliWarning,
    UndefinedDefault,
)
from rnncli.generating.moving import (
    PARAMETERS,
    Unmoved,
    fit_values,
    function_of,
    marks_of,
    moved,
)
from rnncli.generating.production import make_vectors, shared_record, with_later_calls
from rnncli.judging.comparing.requirements import FORMS
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.device import LARGEST_SOUGHT, admitted_sizes, operators_of, subsets
from rnncli.judging.scoring.kill_matrix import EDGES, Bug, Unscored, VectorRow, whole_row
from rnncli.numerics import says_nothing
from rnncli.operators import operator_named
from rnncli.operators.attributes import complete
from rnncli.operators.checking import num_directions
from rnncli.operators.operator import HEADS
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rnncli.cases.suite.suite import Entry, Suite
    from rnncli.generating.moving import Plain
    from rnncli.jobs.workers import Workers
    from rnncli.judging.comparing.requirements import Requirements
    from rnncli.judging.device import Device
    from rnncli.operators import Operator
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector

MOST_CASES = 40
# What the first case that catches a bug counts, and each further one: a quarter of the one before.
FURTHER = 1 / 4
# What it counts, beside one bug, that a case is one of those asked for.
OF_ITS_OWN = 1 / 2
# What a question counts, beside one bug or setting, and what a pair of settings does, that no
# chosen case has.
OF_A_QUESTION, OF_A_PAIR = 8, 1 / 10
# The suites whose cases, in other sizes, are candidates for what is left, and how many of them: by
# the kind of cells that the cases asked for have, of gated ones first those that are no units.
POOL = ("core", "tiles", "webnn", "webnn_tiles", "openvino", "openvino_tiles")
POOL_OF_UNITS = ("quantised", "quantised_tiles", "units", "units_tiles")
POOL_OF = {
    **dict.fromkeys(("LinearAttention", "CausalConv"), ("linear", "linear_contrib")),
    "IntegerLSTM": ("tflite",),
    "ProjectedLSTM": ("tflite_float",),
}
MOST_CANDIDATES = 300
# They are tried so many at once, those of linear recurrences half as many, until so many times
# nothing new is shown, by each bug until so many cases show it: whichever are chosen, one of them
# is.
AT_ONCE, IDLE, ENOUGH = 48, 2, 30
# The largest sizes of candidates, but for one in so many of which one is the device's own limit;
# most have fewer steps, and many are as layers are: multiples of this.
LARGEST_USUAL, AT_THE_LIMIT = 80, 12
LARGEST = {**dict.fromkeys(HEADS, 8), "kernel_size": 9, "dilation": 4}
MOST_STEPS, LAYERS = 20, 16
# Of so many choices of sizes, the first with so few products is taken, or that with the fewest.
TRIES, LARGEST_WORK = 8, 1 << 18
LARGEST_STATES = 1 << 16  # numbers of all states of a linear recurrence that each step leaves
# Without a limit: beyond this one.
BEYOND = 128
# How many candidates have another set of outputs, another call, and another call of other sizes;
# and steps and sequences that its calls have more.
OFTEN = 1 / 2
NUMBERS = (0.3, 0.7, 1.0, 1.3, -0.4)  # of functions: some within, at and beyond 1
OTHER_SIZES = ([(2, 0)], [(-1, 1)], [(1, -1)], [(-2, 0)], [(0, 2), (3, -1)])
# Sizes of which one is a multiple, or none, or 1, go through other parts of a kernel.
STEPS = (16, 4)
MOST_REASONS = 4
# The flag of a case that is not the one that its flags are about, and of those that are added.
TAILORED = "Tailored"
OF_TAILORED = "what a kernel does with the sizes and features that its device takes"
KEEPS_FLAGS = {"sizes", "dtype", "weights", "op", "calls"}
LETTERS = dict(
    zip(SIZES, ("t", "n", "i", "h", "o", "q", "kv", "k", "v", "c", "w", "d", "p"), strict=True)
)
LARGE = ("input_size", "hidden_size", "output_size", "key_size", "value_size", "channels")
LARGEST_BATCH = 8


@dataclass(frozen=True, slots=True)
class Tailored:
    """A suite for a device, and what became of the cases that it was made from."""

    suite: Suite  # the chosen cases
    device: str  # the name of the device
    cases: int  # the number of cases asked for
    taken: int  # the number of those that the device takes as they are
    changes: Mapping[str, int]  # what was moved -> in how many cases
    left_out: Mapping[str, int]  # why a case was left out -> how many
    alike: int  # the number that are alike after they were moved
    own: int  # the number of chosen cases among those asked for
    candidates: int  # the number of others that were tried
    seen: frozenset[Bug]  # the bugs that the chosen cases catch
    shown: frozenset[Bug]  # the bugs that any case tried catches
    known: frozenset[Bug]  # all bugs of the cells

    @property
    def sentences(self) -> Iterator[str]:
        """What was moved, left out, chosen and added, in a few lines."""
        out = sum(self.left_out.values())
        changed = ", ".join(f"{name} of {count}" for name, count in self.changes.items())
        yield (
            f"{counted(self.cases, 'case')}: {self.taken} as they are,"
            f" {self.cases - self.taken - out} moved{f' ({changed})' if changed else ''},"
            f" {out} left out"
        )
        for reason, count in list(self.left_out.items())[:MOST_REASONS]:
            yield f"  left out {count}: {reason}"
        yield (
            f"chosen: {self.own} of those, {self.alike} of which are as others are, and"
            f" {len(self.suite.entries) - self.own} of {self.candidates} others for what they leave"
        )
        yield (
            f"{self.device}: {len(self.seen)} of the {len(self.shown)} bugs that some case within"
            f" it shows are caught; the {len(self.known - self.shown)} others of"
            f" {len(self.known)} are outside"
        )


def tailored(
    suite: Suite,
    device: Device,
    workers: Workers,
    *,
    selection: str = "",
    most: int = MOST_CASES,
    done: Callable[[int], None] = lambda _: None,
) -> Tailored:
    """Return the cases of a suite within what a device takes, and more for what they leave.

    Args:
        suite: the cases.
        device: what the device takes.
        workers: who tries the cases.
        selection: the expression that selects cases, see `Suite.select`.
        most: the most cases to choose.
        done: called with a number of cases as they are tried.

    Raises:
        NothingSelected: no case of it can be moved there.
    """
    needs = device.requirements
    left_out: Counter[str] = Counter()
    changed: list[tuple[str, set[str]]] = []  # the name of what a case became, and what was moved
    own: dict[str, Plain] = {}
    alike: dict[str, str] = {}
    taken = 0
    entries = suite.select(selection)
    for entry in entries:
        written, is_taken = entry.written, not needs.reason(record_of(entry))
        try:
            case = written if is_taken else _lightened(moved(written, needs), needs)
        except Unmoved as error:
            left_out[str(error)] += 1
            continue
        taken += is_taken
        parts = {name for name in case if case[name] != written.get(name, case[name])}
        rest = entry.id.removeprefix(f"{entry.operator.slug}_")
        name = _named(case, rest if is_taken else f"from_{rest}", own)
        first = alike.setdefault(_content(case), name)
        changed.append((first, parts))
        if first == name:
            if not parts <= KEEPS_FLAGS:
                case["flags"] = [TAILORED]
            own[name] = case
    rows = _rows(_suite(device, own, suite.seed, suite), needs, workers, done) if own else {}
    unmade = {name: why for name, why in rows.items() if isinstance(why, str)}
    left_out.update(unmade[name] for name, _ in changed if name in unmade)
    changes = Counter(part for name, parts in changed if name not in unmade for part in parts)
    refusals = [name for name, row in rows.items() if isinstance(row, Unscored)]
    others, more = tried(
        device,
        workers,
        done,
        seed=suite.seed,
        beside={entry.operator for entry in entries},
        taken={*own},
        known=rows.values(),
        enough=ENOUGH,
    )
    cases = {**own, **others}
    scored = {n: row for n, row in {**rows, **more}.items() if isinstance(row, VectorRow)}
    caught = {name: row.every_caught for name, row in scored.items()}
    chosen = {*refusals[:most], *_chosen(caught, cases, most - len(refusals), own)}
    if not chosen:
        raise NothingSelected(f"{suite.file}: no case of it can be moved to {device.device}")
    final = {name: case for name, case in cases.items() if name in chosen}
    return Tailored(
        _suite(device, final, suite.seed, suite),
        device.device,
        len(entries),
        taken,
        dict(changes.most_common()),
        dict(left_out.most_common()),
        len(changed) - len(own),
        sum(name in own for name in final),
        len(others),
        seen=frozenset().union(*(caught.get(name, ()) for name in final)),
        shown=frozenset().union(*caught.values()),
        known=frozenset(
            Bug(row.cell, bug)
            for row in scored.values()
            for bug in (*row.outcomes, *row.structural)
        ),
    )


def record_of(entry: Entry) -> CaseRecord:
    """Return what is known of a case's record before it is made: all that is no result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` reports them
        calls = [entry.case(call) for call in range(entry.calls)]
        first, *later = [shared_record(entry, case, case.sources) for case in calls]
    record = with_later_calls(first, later) if later else first
    return with_entries(record, expect="rejection") if entry.breakage else record


def _content(case: Plain) -> str:
    """Return what distinguishes a case from others, but for its words."""
    return repr({name: value for name, value in case.items() if name not in ("flags", "summary")})


def _named(case: Plain, rest: str, others: Iterable[str]) -> str:
    """Return the id of a case, its operator and the rest, and a number where others have it."""
    known, name = {*others}, f"{operator_named(case['op']).slug}_{rest}"
    numbered = (f"{name}_{k}" for k in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in known)


def _suite(
    device: Device, cases: Mapping[str, Plain], seed: int = 0, of: Suite | None = None
) -> Suite:
    """Return a suite for a device with some cases, by id: those of a suite, or candidates."""
    flags = dict.fromkeys(flag for case in cases.values() for flag in case.get("flags", ()))
    slug = re.sub(r"[^a-z0-9.]+", "-", device.device.lower()).strip("-.") or "device"
    name = f"{of.name}-{slug}" if of else slug
    told = {
        "suite": name,
        "summary": f"{f'Cases of {of.name} and others' if of else 'Cases'} within what"
        f" {device.device} takes.",
        "seed": seed,
        "score": bool(of and of.score),
        "notes": {f: of.notes.get(f, OF_TAILORED) if of else OF_TAILORED for f in flags},
        "cases": dict(cases),
    }
    return parse_suite(as_yaml(told), f"{name}.yaml", of.folder if of else Path())


def pool_beside(operators: Iterable[Operator], *, is_unit: bool) -> tuple[str, ...]:
    """Return the suites of candidates beside cases of some operators: they have alike cells."""
    cells = dict.fromkeys(row.cell.name for row in operators if not row.cell.projects)
    if not cells:
        return POOL_OF_UNITS if is_unit else (*POOL, *POOL_OF_UNITS)
    return tuple(dict.fromkeys(suite for cell in sorted(cells) for suite in POOL_OF[cell]))


def candidates(
    device: Device, taken: Iterable[str] = (), *, beside: Collection[Operator] = ()
) -> dict[str, Plain]:
    """Return cases within what a device takes, by id: those of shipped suites, in other sizes.

    They depend on nothing but what the device takes, and the operators that they are `beside`.
    """
    needs, names = device.requirements, {*taken}
    families = {row.family for row in operators_of(needs)}
    # Only fields of units have a dot: X.type.
    is_unit = any("." in name for term in needs.terms for name in term.fields)
    chance = random.Random(";".join(device.require))  # noqa: S311 -- no secret
    pool = [
        entry
        for name in pool_beside(beside, is_unit=is_unit)
        for entry in load_suite(name).entries
        if entry.operator.family in families and not entry.breakage
        if entry.profile == ("exact" if entry.operator.cell.of_integers else "standard")
    ]
    chance.shuffle(pool)
    alike: dict[tuple[str, bool], list[Entry]] = {}
    for entry in pool:
        alike.setdefault(_likeness(entry), []).append(entry)
    found: dict[str, Plain] = {}
    contents: set[str] = set()
    for k, entry in enumerate(pool * max(1, -(-2 * MOST_CANDIDATES // max(1, len(pool))))):
        if len(found) >= MOST_CANDIDATES:
            break
        other = chance.choice(alike[_likeness(entry)])
        case, second = entry.written, other.written
        before = {
            name: case["sizes"].get(name, default_size(entry.operator, name))
            for name in size_names(entry.operator)
        }
        some = [
            {
                name: _some_size(needs, name, entry.operator.family, chance, k) or before[name]
                for name in before
            }
            for _ in range(TRIES)
        ]
        works = [*map(_work_of, some)]
        least = next((k for k, work in enumerate(works) if work <= LARGEST_WORK), None)
        case["sizes"] = some[works.index(min(works)) if least is None else least]
        fit_values(case, before, case["sizes"])
        fit_values(second, {name: second["sizes"].get(name, 1) for name in before}, case["sizes"])
        _cross(case, second, chance)
        _vary(case, entry.operator, needs, chance)
        try:
            case = _lightened(moved(case, needs), needs)
            (read,) = _suite(device, {"one": case}).entries  # what is wrong in one would be in all
            with warnings.catch_warnings():
                warnings.simplefilter("error", UndefinedDefault)  # has no right answer
                _ = read.case().node.activations
        except (Unmoved, ConfigError, UndefinedDefault):
            continue
        if (content := _content(case)) not in contents:
            contents.add(content)
            case["flags"] = [TAILORED]
            sizes = [f"{LETTERS[name]}{size}" for name, size in case["sizes"].items() if size]
            found[_named(case, "".join(sizes), {*names, *found})] = case
    return found


def _likeness(entry: Entry) -> tuple[str, bool]:
    return entry.operator.family, "quantise" in entry.written


def _work_of(sizes: Mapping[str, int]) -> int:
    again = sizes.get("hidden_size", 1) + sizes.get("input_size", 0)
    beside = {"input_size", "dilation", min(HEADS, key=lambda name: sizes.get(name, 1))}
    return math.prod(size for name, size in sizes.items() if name not in beside) * again


def _lightened(case: Plain, needs: Requirements) -> Plain:
    """Return a case of a linear recurrence with less work if it has much: of fewer heads, steps."""
    row, sizes = operator_named(case["op"]), dict(case["sizes"])
    if row.cell.projects or _work_of(sizes) <= LARGEST_STATES:
        return case
    for name in ("batch_size", *HEADS, "seq_length", "channels"):
        if name in sizes and _work_of(sizes) > LARGEST_STATES:
            sizes[name] = min([sizes[name], *admitted_sizes(needs, name, row.family)])
    lighter = {**case, "sizes": sizes}
    fit_values(lighter, case["sizes"], sizes)
    return moved(lighter, needs)


def _cross(case: Plain, other: Plain, chance: random.Random) -> None:
    """Give a case parts of another one of its operator: in half of the cases all that it lacks."""
    is_whole = chance.random() < OFTEN
    if "float64" in (case.get("golden"), other.get("golden")):  # as what it takes over may need
        case["golden"] = "float64"
    for name in ("inputs", "attributes", "quantise"):
        own, more = case.get(name, {}), other.get(name, {})
        lacked = {key: more[key] for key in more if key not in own}
        if any(key.startswith("activation") for key in own):  # a list and its numbers are one part
            lacked = {key: each for key, each in lacked.items() if not key.startswith("activation")}
        own |= {key: each for key, each in lacked.items() if is_whole or chance.random() < OFTEN}
        gone = [key for key in own if not is_whole and chance.random() < OFTEN / 2 and key != "key"]
        for key in gone:
            del own[key]
        if own:
            case[name] = own


def _vary(case: Plain, row: Operator, needs: Requirements, chance: random.Random) -> None:
    """Ask for other outputs, call once more, perhaps longer, and give other functions."""
    present = [*row.present_outputs(complete(row, case.get("attributes", {})))]
    sets = [each for each in subsets(present) if each and needs.admits(row.family, outputs=each)]
    if sets and chance.random() < OFTEN and not case.get("horizon"):
        case["outputs"] = chance.choice(sets)
    if chance.random() < OFTEN:
        case["calls"] = 2
        lists = [each for each in case.get("inputs", {}).values() if isinstance(each, list)]
        may_be_open = row.dialect.startswith("ONNX") and not row.packed
        is_open = may_be_open and needs.admits(row.family, open_sizes=1)
        if is_open and not lists and "quantise" not in case and chance.random() < OFTEN:
            case["open_sizes"] = True
            T, N = (case["sizes"][name] for name in ("seq_length", "batch_size"))
            case["calls"] = [
                {"sizes": {"seq_length": T + more, "batch_size": N + others}}
                for more, others in chance.choice(OTHER_SIZES)
                if T + more > 0 and N + others > 0
            ] or 2
    for key in FORMS:
        if (choices := CHOICES[key].allowed(row)) and chance.random() < OFTEN:
            case[key] = chance.choice(choices)
    listed = row.attribute_for("activations")
    if listed and chance.random() < OFTEN / 2:
        given = case.setdefault("attributes", {})
        directions = 1 if row.activation_lists == "one" else num_directions(complete(row, given))
        choices, count = listed.choices or row.activations, len(row.cell.activations)
        names = chance.choices(choices, k=count) * directions
        if chance.random() < OFTEN and row.dialect.startswith("ONNX"):  # others have one list
            names = chance.choices(choices, k=len(names))
        given[listed.name] = names
        for parameter in PARAMETERS:
            if own := row.attribute_for(f"activation_{parameter}"):
                takers = sum(getattr(function_of(each), parameter) is not None for each in names)
                given.pop(own.name, None)
                if takers and chance.random() < 1 - OFTEN / 2:
                    given[own.name] = chance.choices(NUMBERS, k=takers)


def _some_size(
    needs: Requirements, name: str, family: str, chance: random.Random, k: int
) -> int | None:
    """Return a size that is taken: of those that are alike to a kernel, the least."""
    admitted = admitted_sizes(needs, name, family)
    if not admitted:
        return None
    most, is_of_layers = LARGEST.get(name, LARGEST_USUAL), name in LARGE and chance.random() < OFTEN
    if name == "seq_length" and chance.random() < 1 - OFTEN / 2:
        most = MOST_STEPS
    kinds: dict[Any, int] = {}
    for size in admitted:
        if size <= max(most, admitted[0]) and not (is_of_layers and size % LAYERS):
            kinds.setdefault(marks_of(size), size)
    largest = admitted[-1]
    if largest > LARGEST_SOUGHT or needs.admits(family, **{name: 2 * largest}):  # as good as none
        beyond = BEYOND if name in LARGE else LARGEST.get(name, LARGEST_USUAL // 2)
        largest = next((size for size in admitted if size > beyond), admitted[0])
    is_its_turn = k % AT_THE_LIMIT == SIZES.index(name) or not kinds
    return largest if is_its_turn else chance.choice([*kinds.values()])


def tried(
    device: Device,
    workers: Workers,
    done: Callable[[int], None] = lambda _: None,
    *,
    seed: int = 0,
    beside: Collection[Operator] = (),
    taken: Iterable[str] = (),
    known: Iterable[VectorRow | Unscored | str] = (),
    enough: int = 1,
) -> tuple[dict[str, Plain], dict[str, VectorRow | Unscored | str]]:
    """Return candidates and what they show, until they show nothing that is not known.

    They are tried by each bug until so many cases as are enough show it.
    """
    shown = Counter[Bug]()
    found: dict[str, VectorRow | Unscored | str] = {}
    cases = candidates(device, taken, beside=beside)
    names, idle, rows = [*cases], 0, [*known]
    at_once = AT_ONCE // 2 if "linear" in pool_beside(beside, is_unit=False) else AT_ONCE
    for start in itertools.count(step=at_once):
        of_rows = Counter(b for row in rows if isinstance(row, VectorRow) for b in row.every_caught)
        idle = 0 if of_rows.keys() - shown.keys() else idle + 1
        shown += of_rows
        if idle == IDLE or start >= len(names):
            break
        some = {name: cases[name] for name in names[start : start + at_once]}
        known_well = frozenset(bug for bug, times in shown.items() if times >= enough)
        made = _rows(_suite(device, some, seed), device.requirements, workers, done, known_well)
        found |= made
        rows = [*made.values()]
    return {name: cases[name] for name in found}, found


def _rows(
    suite: Suite,
    needs: Requirements,
    workers: Workers,
    done: Callable[[int], None],
    known: frozenset[Bug] = frozenset(),
) -> dict[str, VectorRow | Unscored | str]:
    """Return the outcomes of all bugs in each case, by id, or why it cannot be made or taken."""
    found: dict[str, VectorRow | Unscored | str] = {}
    working = partial(_work, suite, needs, known)
    for some in workers.in_batches(working, [*suite.by_id], most=LARGEST_BATCH):
        found |= dict(some)
        done(len(some))
    return {name: found[name] for name in suite.by_id}


def _work(
    suite: Suite, needs: Requirements, known: frozenset[Bug], ids: Sequence[str]
) -> list[tuple[str, VectorRow | Unscored | str]]:
    # Which bugs a case catches does not depend on how its answers were proved; levels always are.
    own = [suite.entry(name) for name in ids]
    entries = [e if "quantise" in e.written else replace(e, golden="float64") for e in own]
    found: list[tuple[str, VectorRow | Unscored | str]] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RnncliWarning)  # `lint` reports them
        for name, vector in zip(ids, _made(entries), strict=True):
            if isinstance(vector, MemoryError):
                found.append((name, "takes more memory than --max-memory allows"))
            elif isinstance(vector, ConfigError):
                found.append((name, vector.findings[0][1]))
            elif isinstance(vector, RnncliError):
                _, *rest = [*str(vector).split(": "), "cannot be made"]
                found.append((name, rest[0]))
            elif isinstance(vector, Exception):
                raise vector
            else:
                outputs = [o for call in vector.calls for o in call.answers.outputs.values()]
                reason = needs.reason(vector.record) or says_nothing(outputs)
                found.append((name, reason or whole_row(vector, PACK_RULE, known)))
    return found


def _made(entries: Sequence[Entry]) -> list[Vector | Exception]:
    """Return the vectors of entries; one by one if together they take too much memory."""
    try:
        return [*make_vectors(entries)]
    except MemoryError as error:
        alone = [entries[k : k + 1] for k in range(len(entries))]
        return [error] if len(entries) == 1 else [v for each in alone for v in _made(each)]


def _chosen(
    caught: Mapping[str, frozenset[Bug]],
    cases: Mapping[str, Plain],
    most: int,
    own: Collection[str],
) -> list[str]:
    """Return cases, one after the other, that catch and vary most beyond those before.

    What is caught often counts less; a setting, and a pair of settings, that none before has stands
    for bugs that nobody has written down. Of equals, own cases come first.
    """
    settings = {name: _settings(cases[name]) for name in caught}
    pairs = {name: {*itertools.combinations(each, 2)} for name, each in settings.items()}
    times: Counter[Bug] = Counter()
    known: set[Any] = set()
    chosen: list[str] = []

    def gain(name: str) -> float:
        of_bugs = sum(FURTHER ** times[bug] for bug in caught[name])
        new = [OF_A_QUESTION if each[0] == "question" else 1 for each in {*settings[name]} - known]
        varied = sum(new) + OF_A_PAIR * len(pairs[name] - known)
        return of_bugs + varied + OF_ITS_OWN * (name in own)

    left = [*caught]
    while left and len(chosen) < most:
        best = max(left, key=gain)
        left.remove(best)
        chosen.append(best)
        times.update(caught[best])
        known.update(settings[best], pairs[best])
    return chosen


def _settings(case: Plain) -> list[tuple[str, ...]]:
    """Return the settings of a case whose pairs are to vary, in one order.

    What is asked for, and which parts are given, are questions of an operator: kernels answer each
    in a way of its own.
    """
    row = operator_named(case["op"])
    inputs = {name: str(fill) for name, fill in case.get("inputs", {}).items()}
    given = {n: value for n, value in case.get("attributes", {}).items() if value is not None}
    outputs = str(case.get("outputs"))
    asked = [
        (outputs,),
        (outputs, str(given.get("direction"))),
        (row.name,),
        (str(case.get("dtype")),),
        *((each.name, str(each.name in inputs)) for each in row.inputs),
        *((name,) for name in given),
        (str("activation_alpha" in given), str("activation_beta" in given)),
    ]
    found: list[tuple[str, ...]] = [
        *(("question", row.family, *each) for each in asked),
        ("present", row.family, str([*inputs])),
        *((name, str(case.get(name))) for name in ("dtype", "weights")),
        *((name, fill) for name, fill in inputs.items()),
        *((name, str(value)) for name, value in given.items()),
    ]
    found += [(key, str(case[key])) for key in FORMS if key in case]
    for name, size in case["sizes"].items():
        if size is not None:
            step = next((m for m in STEPS if size % m == 0), 1) if size > 1 else 0
            of_size = ("step", str(step)), ("beyond", str(sum(size > edge for edge in EDGES)))
            found += [(name, *k, *of) for k in of_size for of in ((), (row.family,))]
    calls = case.get("calls", 1)
    found.append(("calls", str(calls if isinstance(calls, int) else len(calls) + 1)))
    if isinstance(calls, list):  # longer or shorter, more or fewer sequences
        for which in ("seq_length", "batch_size"):
            before = case["sizes"].get(which, 1)
            changes = [each.get("sizes", {}).get(which, before) - before for each in calls]
            found.append(("calls", which, str([(c > 0) - (c < 0) for c in changes])))
    listed = row.attribute_for("activations")
    for k, function in enumerate(given.get(listed.name, ()) if listed else ()):
        found += [("question", row.family, function), (row.family, str(k), function)]
    return sorted({*found})
