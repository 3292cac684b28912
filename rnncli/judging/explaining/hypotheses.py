"""Hypotheses about a wrong output: another reading, one bug or two at once, or an earlier call.

The first three are mutants that can be run. A call that is right alone and wrong after another one
of its session uses a buffer of the earlier call: each possible leak, an input, its last states or
its outputs, is a change of the right evaluation, whose outputs are compared with those got.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import error_map, errors_of
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.arithmetic import (
    ABSOLUTE,
    APPROXIMATIONS,
    INEXACT_TAILS,
    PRECISIONS,
    coarser_arithmetic,
)
from rnncli.judging.explaining.fitting import (
    AND,
    READING,
    WrongOutputs,
    name_of,
    parts_of,
    replacing,
    subsets,
    together,
)
from rnncli.judging.explaining.patterns import Features, Places, features_of, places_of
from rnncli.judging.explaining.single_steps import (
    HeldRegion,
    RightSteps,
    Screen,
    first_difference,
    regions_of,
    steps_of,
)
from rnncli.judging.scoring.adequacy import Fate, outcomes
from rnncli.mutants.catalogue import MUTANTS, is_scored, mutants_of
from rnncli.mutants.edits import difference
from rnncli.mutants.equivalence import is_same, lengths_of
from rnncli.mutants.mutant import Change, Mutant, live, results
from rnncli.mutants.quantised_kernels import finer_unit_bug, rounding_outputs
from rnncli.mutants.scalings import FEWEST, scaling_named, scalings_of
from rnncli.numerics.grids import FIXED, fixed_point_of, multiples_of
from rnncli.recurrence.readings import READINGS, must_be_declared
from rnncli.talk.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.comparing.verdict import CaseVerdict, JudgedAttempt
    from rnncli.judging.explaining.fitting import Fit
    from rnncli.judging.explaining.single_steps import Steps
    from rnncli.mutants.mutant import Last, Outputs
    from rnncli.mutants.runs import Hypothesis
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Recurrence, Result


class Leak(NamedTuple):
    """Something of the previous call that an implementation may use."""

    sentence: str  # what leaks
    fields: tuple[str, ...] = ()  # fields of the recurrence
    initial: tuple[int, ...] = ()  # the states that start from its initial ones
    last: tuple[int, ...] = ()  # the states that start from its last ones
    # returns outputs that keep something of its result, given that result
    result: Callable[[Result, Recurrence, Array, Last], Outputs] | None = None

    def change(self, now: Recurrence, old: Recurrence, before: Result) -> Change | None:
        """Return the change of a call by the leak from one before; None if it changes nothing."""
        if self.result is not None:
            return results(partial(self.result, before))
        states = enumerate(zip(now.initial, old.initial, before.last, strict=True))
        initial = tuple(
            last if k in self.last else first if k in self.initial else own
            for k, (own, first, last) in states
        )
        fields = {field: getattr(old, field) for field in self.fields}
        changed = replace(now, initial=initial, **fields)
        return None if is_same(now, changed) else replacing(changed)


def _padding(before: Result, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    if before.Y is None:
        return Y, last
    return np.where(live(recurrence), Y, before.Y), last


def _unstarted(before: Result, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    started = (lengths_of(recurrence) > 0)[:, None]
    pairs = zip(last, before.last, strict=True)
    return Y, tuple(np.where(started, own, theirs) for own, theirs in pairs)


def _outputs(before: Result, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    del recurrence, last
    return (Y if before.Y is None else before.Y), before.last


LEAKS: Mapping[str, Leak] = {
    "x-of-call-before": Leak("X of the call before is read.", ("X",)),
    "weights-of-call-before": Leak("W and R of the call before are read.", ("W", "R")),
    "w-of-call-before": Leak("W of the call before is read.", ("W",)),
    "r-of-call-before": Leak("R of the call before is read.", ("R",)),
    "biases-of-call-before": Leak("B of the call before is read.", ("Wb", "Rb")),
    "peepholes-of-call-before": Leak("P of the call before is read.", ("P",)),
    "lengths-of-call-before": Leak("sequence_lens of the call before is read.", ("lengths",)),
    "initial-h-of-call-before": Leak("initial_h of the call before is read.", initial=(0,)),
    "initial-c-of-call-before": Leak("initial_c of the call before is read.", initial=(1,)),
    "starts-from-last-h-of-call-before": Leak(
        "H starts from the last h of the call before.", last=(0,)
    ),
    "starts-from-last-c-of-call-before": Leak(
        "C starts from the last c of the call before.", last=(1,)
    ),
    "starts-from-last-states-of-call-before": Leak(
        "States start from the last ones of the call before.", last=(0, 1)
    ),
    "padding-of-call-before": Leak(
        "Padding of Y keeps the values of the call before.", result=_padding
    ),
    "last-states-of-call-before": Leak(
        "Sequences of length 0 keep the last states of the call before.", result=_unstarted
    ),
    "outputs-of-call-before": Leak("The outputs are those of the call before.", result=_outputs),
}


def leak_fits(found: MeasuredAttempt, before: Vector) -> dict[str, float]:
    """Return the leaks that reproduce a call's outputs, with their margins, the nearest first."""
    wrong = WrongOutputs(found)
    now, old = wrong.recurrence, before.recurrence
    if not wrong.is_comparable or now.X.shape != old.X.shape:
        return {}
    last = Change().run(old, Compute.FLOAT64)
    changes = {name: leak.change(now, old, last) for name, leak in LEAKS.items()}
    hypotheses = [
        (Mutant(name, (), "calls", LEAKS[name].sentence, "", change),)
        for name, change in changes.items()
        if change is not None
    ]
    return {fit.hypothesis[0].id: float(fit.margin) for fit in wrong.fitting(hypotheses)}


# Order of gates that is a bug -> the layout of WebNN that, taken always, is that bug by default.
ALWAYS_TAKEN = {"gates-z-r-swapped": "rzn", "gate-order-ifco": "ifgo"}
LAYOUT_ALWAYS = "gate-layout-always-"

# Another, of outputs that are multiples of 2^-k alone -> the k.
FIXED_POINTS = {f"fixed-point-{k}": k for k in range(1, FIXED)}

# Another, of outputs that are the right ones times a number -> the number: a power of 2, or the
# largest level of 8 or 16 bits.
SCALED_OUTPUTS: Mapping[str, float] = {
    f"outputs-scaled-by-{factor}": factor
    for factor in (
        *(1 << k for k in range(1, 32)),
        *(127, 255, 32767, 65535),
        *(2.0**-k for k in range(1, 9)),
    )
}
# Units in fixed point by which a kernel may be off that computes in it.
UNITS = 8

# Another, of outputs in the byte order of another machine.
SWAPPED = "bytes-swapped"
# Another, of outputs that are whole numbers of as many bytes.
INTEGERS = "integers-for-floats"

# Hypothesis without a row in the table of mutants -> its sentence.
UNTABLED = {
    **{
        name: f"The outputs are {factor} times the right ones, as fixed-point numbers are that"
        " nothing divides, or another power of 2."
        for name, factor in SCALED_OUTPUTS.items()
    },
    **{
        name: f"Every value is a multiple of 2^-{k}: fixed point; `--atol {2.0**-k * 1.005:.3g}`"
        " judges by one unit."  # of three digits, rounded up
        for name, k in FIXED_POINTS.items()
    },
    **{
        f"{LAYOUT_ALWAYS}{layout}": "WebNN's layout is not read: the gates of W, R and B are taken"
        f" in the order {layout}."
        for layout in ALWAYS_TAKEN.values()
    },
    **{name: sentence for name, (sentence, _) in APPROXIMATIONS.items()},
    INEXACT_TAILS: "Activations near 0 are right to an absolute error alone, as is Sigmoid computed"
    " as (1 + tanh(x/2))/2: a gate that is nearly closed has lost its value.",
    **{name: leak.sentence for name, leak in LEAKS.items()},
    INTEGERS: "Elements are the bytes of int32, as fixed point is inside; wanted are float32.",
    SWAPPED: "The bytes of each element are in the other order; wanted is little-endian.",
}
# The most fitting hypotheses that a sentence names.
MOST_FITS_NAMED = 3
# The most multiplications for naming the bug of one case while a pack is judged: half a second.
# Diagnosis has no such limit.
AFFORDABLE = 1 << 31
# Then so many pairs are tried of a case whose steps are not known, each of which has to run.
MOST_PAIRS = 256
# Pairs of bugs are tried among so many hypotheses with the nearest outputs.
# Measured as the constants of `diagnosis`: same at 24 and 96.
NEAREST = 48
# The family whose members fit here and there when the true bug is unknown.
APPROXIMATE_FAMILY = "approximations"
# The most bugs, named by other cases of a cell, that are combined.
# Measured: same at 3 and 12.
MOST_COMBINED = 6


def sentence_of(hypothesis: str) -> str:
    """Return what goes wrong, in words."""
    sentences = []
    for name in parts_of(hypothesis):
        reading, _, choice = name.partition("=")
        row, mutant = READINGS.get(reading), MUTANTS.get(name) or scaling_named(name)
        if name in UNTABLED:
            sentence = UNTABLED[name]
        elif name in PRECISIONS:
            sentence = f"Computes in {PRECISIONS[name]}, whatever the dtype of the tensors."
        elif not choice:  # a run of another version of rnncli may name others
            sentence = mutant.sentence if mutant else "This version of rnncli does not know it."
        elif row is None or choice not in row.choices:  # in a pack from another version of rnncli
            sentence = f"Reads {reading} as {choice}."
        else:
            allowed = "" if must_be_declared(name) else "; the specification allows it"
            sentence = f"Reads {row.summary} as {choice}: {row.meanings[choice]}{allowed}."
        sentences.append(sentence)
    return " ".join(sentences)


def edit_of(hypothesis: str, cell: str = "") -> list[str]:
    """Return what its bugs edit in the plain kernel, as lines of a diff; [] for functions.

    Of a named cell only its own lines.
    """
    rows = (MUTANTS[name] for name in parts_of(hypothesis) if name in MUTANTS)
    texts = (difference((cell,) if cell in row.cells else row.cells, row.edits) for row in rows)
    return [line for text in texts for line in text.splitlines()]


def naming(fits: Iterable[str], against: int = 0) -> str:
    """Return which hypotheses fit, in words; with the sentence if just one does.

    Args:
        fits: the hypotheses.
        against: the number of cases that pass, or differ in another way, although each of these
            would show in them.
    """
    names = list(fits)
    if len(names) > MOST_FITS_NAMED and INEXACT_TAILS in names:  # which is what all of them share
        names = [INEXACT_TAILS]
    rule = counted(against, "alike case rules", "alike cases rule")
    but = f"; but {rule} it out: at most a part of the bug" if against else ""
    if len(names) == 1:
        return f"fits {names[0]}{but}: {sentence_of(names[0])}"
    if len(names) > MOST_FITS_NAMED:
        apart = f"fits {len(names)} known bugs, which this case cannot tell apart"
        return f"{apart}{but}: {listed(names, MOST_FITS_NAMED)}"
    return f"fits {', '.join(names[:-1])} or {names[-1]}{but}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one case for and against the hypotheses of its cell."""

    id: str  # the case's id
    cell: str  # the cell whose kernel it tests
    verdict: Verdict  # the case's verdict
    # for a case that differs: each hypothesis that reproduces its outputs -> the largest error /
    # tolerance between the two
    fits: dict[str, float]
    # the readings and single mutants tried that would have been seen; for a case that differs,
    # those that are not part of a fit
    refuted: frozenset[str] = frozenset()
    # the outputs of a case that differs and that nothing but an approximation fits
    got: Tensors = field(default_factory=dict, compare=False, repr=False)
    dtype: str = ""  # the dtype of its tensors
    features: Features = field(default_factory=Features)  # the features that tell it from others
    places: Places = field(default_factory=Places)  # for a case that differs: where it is wrong
    # for a case that differs and that nothing exact fits: each hypothesis that holds in a region of
    # it, and is right elsewhere
    regions: Mapping[str, HeldRegion] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[str]:
        """The mutants and readings in any of its fits."""
        return frozenset(part for name in self.fits for part in parts_of(name))


def evidence_of_failure(
    found: MeasuredAttempt, mutants: Sequence[Mutant], fits: Mapping[str, float] | None = None
) -> Evidence:
    """Try readings and single mutants on a case that differs, and collect its features."""
    vector, steps = found.vector, steps_of(found)
    fitting = single_fits(found, mutants, steps) if fits is None else dict(fits)
    is_named = any(  # by a hypothesis that is not an approximation: many of those look alike
        part not in MUTANTS or MUTANTS[part].family != APPROXIMATE_FAMILY
        for name in fitting
        for part in parts_of(name)
    )
    regions: Mapping[str, HeldRegion] = {}
    if not is_named and steps is not None and steps.wrong.any():
        wrong = WrongOutputs(found)
        if wrong.is_comparable and not wrong.recurrence.quantiser:
            singles = [(mutant,) for mutant in mutants if _may_be_seen(mutant, wrong)]
            # What holds in some units, and what holds from a step on.
            screens = [Screen(wrong, steps), Screen(wrong, steps, since=0)]
            likely = dict.fromkeys(h for screen in screens for h in screen.partly_likely(singles))
            regions = regions_of(wrong, steps, screens[0], likely)
    fitting |= {name: fitting[same] for name, same in _same_readings(vector, fitting)}
    return Evidence(
        *(vector.id, vector.recurrence.cell.name, Verdict.DIFFERS, fitting),
        got={} if is_named else found.got,
        dtype=vector.record.dtype,
        features=features_of(vector),
        places=places_of(found, steps),
        regions=regions,
    )


def single_fits(
    found: MeasuredAttempt,
    mutants: Sequence[Mutant],
    steps: Steps | None,
    *,
    most: float = math.inf,
) -> dict[str, float]:
    """Return the hypotheses that reproduce the outputs, each with its margin, the nearest first.

    These are the alternative readings of a vector and single mutants, or else mutants under an
    alternative reading, or two readings of a unit; then functions that are inexact near 0, or else
    outputs in fixed point, weights that are scaled, or a coarser arithmetic.
    If the candidates would take more than `most` multiplications of whole runs, only as many as fit
    run, at least one, all of which give the first wrong step.
    """
    wrong = WrongOutputs(found)
    is_forced = steps is not None and steps.spot is not None
    affordable = is_forced or len(mutants) * wrong.multiplications <= most
    if other_bytes := _swapped(found) or _of_integers(found):
        return other_bytes
    if not (wrong.is_comparable and affordable):
        return _in_fixed_point(found) or _multiplied(found)
    likely = [mutant for mutant in mutants if _may_be_seen(mutant, wrong)]
    readings = [*_readings(found.vector)]
    singles: list[Hypothesis] = [(mutant,) for mutant in (*readings, *likely)]
    fits = _margins(wrong.fitting(_likely(wrong, steps, singles, most)))
    if not fits:
        two: list[Hypothesis] = [*product(readings, likely)]
        if wrong.has_levels:
            two = [*_two_roundings(found.vector)]
        if steps is None and len(two) > MOST_PAIRS and most < math.inf:
            two = []
        fits = _margins(wrong.fitting(_likely(wrong, steps, two, most)))
    if found.profile.ka == 0 and (margin := wrong.by_profile(ABSOLUTE)) <= 1:
        fits[INEXACT_TAILS] = margin
    fits = fits or _in_padding(wrong, steps) or _in_fixed_point(found)
    fits = fits or _multiplied(found) or _scaled(wrong)
    if fits or steps is None:
        return fits
    return coarser_arithmetic(steps, next(each for each in wrong.requested if each.which == 0))


def _swapped(found: MeasuredAttempt) -> dict[str, float]:
    """Return that the bytes of each element are in the other order, if that gives the outputs.

    Of values in fixed point it gives about 0, which fits where the outputs are nearly that.
    """
    largest, of_zeros = 0.0, 0.0
    for each in found.outputs.values():
        if each.got is None or each.problem or each.got.dtype.itemsize == 1:
            return {}
        with np.errstate(all="ignore"):  # right bytes may become NaN of any kind
            swapped, zeros = (
                errors_of(values, each.wanted, each.tolerance, each.max_ulp).margin.max(initial=0.0)
                for values in (each.got.byteswap(), np.zeros_like(each.got))
            )
        largest, of_zeros = max(largest, float(swapped)), max(of_zeros, float(zeros))
    return {SWAPPED: largest} if found.outputs and largest <= 1 < of_zeros else {}


def _of_integers(found: MeasuredAttempt) -> dict[str, float]:
    """Return that elements are whole numbers of as many bytes, multiples of the right outputs."""
    read = {}
    for name, each in found.outputs.items():
        if each.got is None or each.problem or each.got.dtype != np.float32:
            return {}
        read[name] = each.got.view(np.int32).astype(np.float32)
    fits = _multiplied(replace(found, got=read))
    return {INTEGERS: max(fits.values())} if fits else {}


def _in_padding(wrong: WrongOutputs, steps: Steps | None) -> dict[str, float]:
    """Return that padding is not written, if nothing else is wrong: what is there may be any."""
    wrong_outputs = [each for each in wrong.requested if (each.errors.margin > 1).any()]
    if steps is None or [each.which for each in wrong_outputs] != [0]:
        return {}
    is_live = (steps.differs & steps.live[None, :, :, None]).any()
    return {} if is_live else {"padding-not-written": 0.0}


class Multiples(NamedTuple):
    """Of which powers of 2 all outputs of a case are multiples, and times what the right ones."""

    k: int  # of 2^-k
    largest: float  # the largest error
    scaled: Mapping[str, float] = {}  # each of `SCALED_OUTPUTS` that fits, with its margin

    def fits(self, k: int) -> dict[str, float]:
        """Return the fixed point of as many binary places, or more, as a hypothesis that fits."""
        return {f"fixed-point-{k}": self.largest * 2.0**k}


def multiples_in(found: MeasuredAttempt) -> Multiples | None:
    """Return the multiples that outputs are; None of levels, and of what cannot be compared."""
    if found.vector.node.unit is not None or not found.is_complete:
        return None
    got, wanted, tolerance = _finite(found)
    largest = float(np.abs(got - wanted).max(initial=0))
    return Multiples(multiples_of(got), largest, _scales(got, wanted, tolerance))


def _scales(got: Array, wanted: Array, tolerance: Array) -> dict[str, float]:
    """Return by which numbers outputs are the right ones times it, with margins."""
    fits = {}
    for name, factor in SCALED_OUTPUTS.items():
        off = np.abs(got / factor - wanted)
        allowed = np.maximum(tolerance, _units(got, factor))
        with np.errstate(all="ignore"):
            margin = float(np.where(off, off / allowed, 0).max(initial=0))
        if margin <= 1 and got.any():
            fits[name] = margin
    return fits


def _units(got: Array, factor: float) -> float:
    """Return by how much outputs may be off that are whole numbers, as fixed point is inside."""
    return 0.0 if (got != np.rint(got)).any() else UNITS / factor


def _multiplied(found: MeasuredAttempt) -> dict[str, float]:
    """Return the number that outputs are multiplied by, if enough of them tell it."""
    if (multiples := multiples_in(found)) is None:
        return {}
    got, wanted, tolerance = _finite(found)
    centred = wanted - wanted.mean() if wanted.size else wanted  # rounding down moves all alike
    factor = float(got @ centred) / (float(centred @ wanted) or 1.0)
    near = min(SCALED_OUTPUTS, key=lambda name: abs(factor / SCALED_OUTPUTS[name] - 1))
    told = np.abs(wanted) > 2 * np.maximum(tolerance, _units(got, SCALED_OUTPUTS[near]))
    if near not in multiples.scaled or np.count_nonzero(told) < FEWEST:
        return {}
    return {near: multiples.scaled[near]}


def _in_fixed_point(found: MeasuredAttempt) -> dict[str, float]:
    """Return the fixed point that all outputs are in, if it is coarser than their tolerances."""
    multiples = multiples_in(found)
    k = multiples and fixed_point_of(*_finite(found)[:2])
    widest = max(float(each.tolerance.max(initial=0)) for each in found.outputs.values())
    return multiples.fits(k) if multiples and k and widest < 2.0**-k else {}


def _finite(found: MeasuredAttempt) -> Array:
    """Return what was got and wanted, and tolerances [3, elements], where both are finite."""
    tensors: list[tuple[Any, ...]] = [
        (each.got, each.wanted, each.tolerance) for each in found.outputs.values()
    ]
    rows = [np.stack([v.astype(np.float64).ravel() for v in each]) for each in tensors]
    joined = np.concatenate(rows, axis=1)
    return np.asarray(joined[:, np.isfinite(joined[:2]).all(axis=0)])


def _scaled(wrong: WrongOutputs) -> dict[str, float]:
    """Return the weights that are multiplied by a number, which is fitted to the outputs."""
    count = sum(np.count_nonzero(each.errors.margin > 1) for each in wrong.requested)
    if not wrong.is_comparable or count < FEWEST:
        return {}

    def outputs(bug: Mutant | None) -> Array:
        result = (bug.change if bug else Change()).run(wrong.recurrence)
        tensors: list[Any] = [(result.Y, *result.last)[each.which] for each in wrong.requested]
        return np.concatenate([values.astype(np.float64).ravel() for values in tensors])

    right = outputs(None)
    got = np.concatenate([each.got.astype(np.float64).ravel() for each in wrong.requested])
    for scalings in scalings_of(wrong.recurrence):
        bugs = [scaling.fitted(outputs, right, got) for scaling in scalings]
        if fits := _margins(wrong.fitting((bug,) for bug in bugs if bug)):
            return fits
    return {}


def evidence_of_two(
    found: MeasuredAttempt, evidence: Evidence, mutants: Sequence[Mutant]
) -> Evidence:
    """Try pairs of the hypotheses with the nearest outputs on a case that nothing fits."""
    wrong, steps = WrongOutputs(found), steps_of(found)
    if not wrong.is_comparable:
        return evidence
    broad = (m for m in mutants if is_scored(m.id))  # finer variants would crowd others out
    tried = wrong.tried((mutant,) for mutant in _seen(found.vector, broad))
    near = [fit.hypothesis for fit in sorted(tried, key=lambda fit: fit.error)[:NEAREST]]
    several = _likely(wrong, steps, list(subsets([each[0] for each in near], 2)))
    return replace(evidence, fits=_margins(wrong.fitting(several)) or dict(_coarse(wrong, near)))


def _likely(
    wrong: WrongOutputs,
    steps: Steps | None,
    hypotheses: Sequence[Hypothesis],
    most: float = math.inf,
) -> Sequence[Hypothesis]:
    """Return the hypotheses that are worth a whole run, within `most` multiplications."""
    near: list[Hypothesis] = []
    if steps is None:
        likely = RightSteps(wrong).likely(hypotheses)
    elif steps.spot is None:
        likely = list(hypotheses)
    else:
        screen = Screen(wrong, steps)
        likely = screen.likely(hypotheses)
        near = [each for each in likely if screen.is_forcible(each)]
    runs = max(1.0, most / max(1, wrong.multiplications))
    return likely if len(likely) <= runs else near[: int(runs)]


def evidence_of_several(
    found: MeasuredAttempt, evidence: Evidence, names: Iterable[str]
) -> Evidence:
    """Try combinations of the mutants that other cases named on an unexplained case."""
    wrong = WrongOutputs(found)
    known = [MUTANTS[name] for name in names if name in MUTANTS]
    seen = _seen(found.vector, known)[:MOST_COMBINED]
    return replace(
        evidence, fits={**evidence.fits, **_margins(wrong.fitting(subsets(seen, len(seen))))}
    )


def evidence_of_named(found: MeasuredAttempt, evidence: Evidence, names: Iterable[str]) -> Evidence:
    """Try the pairs that fit other cases on an unexplained case; levels with arithmetic, too."""
    wrong = WrongOutputs(found)
    known = {**MUTANTS, **{each.id: each for each in _readings(found.vector)}}
    parts = [parts_of(name) for name in names]
    pairs = [together([known[part] for part in each]) for each in parts if known.keys() >= {*each}]
    fits = {**evidence.fits, **_margins(wrong.fitting(pairs))}
    if wrong.has_levels:
        for *bugs, last in parts:
            if last in PRECISIONS and known.keys() >= {*bugs}:
                fits |= _fitting(wrong, [tuple(known[bug] for bug in bugs)], last)
    return replace(evidence, fits=fits)


def evidence_of_pass(vector: Vector, mutants: Iterable[Mutant], rule: Rule) -> Evidence:
    """Return which readings and mutants a case rules out if it passes."""
    found = outcomes(vector, [*_readings(vector), *mutants], rule)
    seen = (Fate.KILLED, Fate.ACCEPTABLE)
    refuted = frozenset(name for name, each in found.items() if each.fate in seen)
    refuted |= {name for name, _ in _same_readings(vector, refuted)}
    return Evidence(
        *(vector.id, vector.recurrence.cell.name, Verdict.PASS, {}, refuted),
        dtype=vector.record.dtype,
        features=features_of(vector),
    )


def _seen(vector: Vector, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the alternative readings of a vector, then the mutants that it can show."""
    seen = (mutant for mutant in mutants if not mutant.equivalent_when(vector.recurrence))
    return [*_readings(vector), *seen]


def _may_be_seen(mutant: Mutant, wrong: WrongOutputs) -> bool:
    """Whether a mutant may be seen, without the checks that cost as much as running it."""
    return not (mutant.unseen(wrong.recurrence) or wrong.runs.is_idle(mutant))


def _readings(vector: Vector) -> Iterator[Mutant]:
    """Yield the alternative readings of a vector as mutants that replace the recurrence.

    Of a unit whose implementation declares readings, those that a pack does not store with them.
    """
    unit = (name for name, other in vector.node.roundings.items() if name == other)
    for name in dict.fromkeys((*vector.alternatives, *vector.node.unstored, *unit)):
        if vector.node.unit and name not in vector.alternatives:
            yield _rounding(vector, name)
        else:
            change = replacing(vector.recurrence_under(name))
            yield Mutant(name, (vector.recurrence.cell.name,), READING, "", "", change)


def _same_readings(vector: Vector, names: Collection[str]) -> list[tuple[str, str]]:
    """Return the readings of a unit that are one of some others there, each with that one."""
    return [
        (name, same)
        for name, same in vector.node.roundings.items()
        if name != same and same in names
    ]


def _two_roundings(vector: Vector) -> Iterator[Hypothesis]:
    """Yield each choice of what a unit rounds with each other one, or bug, of how it rounds."""
    for name, other in vector.node.roundings.items():
        if name == other and name.startswith("requantise="):
            for choice in READINGS["round"].choices:
                if choice != vector.node.readings["round"]:
                    yield (_rounding(vector, name, f"round={choice}"),)
            yield from ((_rounding(vector, name), bug) for bug in finer_unit_bug.rows)


def _rounding(vector: Vector, *names: str) -> Mutant:
    """Return readings of a unit as one mutant: other levels within, and of the outputs."""
    node = vector.node
    for name in names:
        node = node.as_read(name)
    change, levels = rounding_outputs(node.readings["round"]), node.inner_levels
    if levels or vector.node.inner_levels:
        change = replace(change, recurrence=lambda own: own.opting(levels=levels))
    return Mutant(AND.join(names), (vector.recurrence.cell.name,), READING, "", "", change)


def _margins(fits: Iterable[Fit]) -> dict[str, float]:
    """Return the margins of fits by name."""
    return {name_of(fit.hypothesis): float(fit.margin) for fit in fits}


def _coarse(wrong: WrongOutputs, near: Sequence[Hypothesis]) -> Iterator[tuple[str, float]]:
    """Yield the finest coarser arithmetic with errors of that size, alone or with a bug.

    Of levels all that fit with the finest one: a bug of levels moves many by one, and coarse
    arithmetic few; which it is, several cases show.
    """
    if wrong.has_levels:
        for name in PRECISIONS:
            if fits := [*_fitting(wrong, [(), *near], name)]:
                yield from fits
                return
        return
    tried = (fit for group in ([()], near) for n in PRECISIONS for fit in _fitting(wrong, group, n))
    yield from islice(tried, 1)


def _fitting(
    wrong: WrongOutputs, hypotheses: Iterable[Hypothesis], name: str
) -> Iterator[tuple[str, float]]:
    """Yield the hypotheses that fit, each together with a coarser arithmetic."""
    for hypothesis in hypotheses:
        margin = wrong.coarsely(hypothesis, PRECISIONS[name])
        if margin <= 1:
            yield AND.join(filter(None, (name_of(hypothesis), name))), margin


def explained(attempt: JudgedAttempt) -> CaseVerdict:
    """Complete a verdict on wrong outputs: where they go wrong, and which known bugs give them.

    Of a call that is stale after another one, of its session or of an earlier case of its sizes,
    the bugs are what that one may leave behind. A call that may be wrong alone as well has its own
    bugs if nothing leaks.
    """
    verdict, found, before = attempt.verdict, attempt.measured, attempt.before
    if found is None or not verdict.outputs or found.agrees:
        return verdict
    steps = steps_of(found)
    fits = {} if before is None else leak_fits(found, before)
    is_stale = before is not None and verdict.verdict is Verdict.STALE
    if not (fits or is_stale or verdict.after):
        mutants = mutants_of(found.vector.recurrence.cell.name)
        fits = single_fits(found, mutants, steps, most=AFFORDABLE)
    if verdict.reading:  # whose answers the pack has, however near the others come
        outputs = found.under(verdict.reading).outputs.values()
        largest = max(float(each.errors.margin.max(initial=0)) for each in outputs)
        fits = {verdict.reading: largest, **fits}
    return msgspec.structs.replace(
        verdict,
        localisation=steps.localisation if steps else first_difference(found),
        fits=fits,
        error_map=error_map(found),
    )
