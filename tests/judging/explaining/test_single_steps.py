"""Claims about bugs in a part of a kernel: steps are theirs there, and right elsewhere."""

import numpy as np
import pytest
from support.judged import CORE, computed, core, outputs_of

from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.diagnosis import diagnose
from rnncli.judging.explaining.fitting import WrongOutputs
from rnncli.judging.explaining.hypotheses import Evidence, evidence_of_failure
from rnncli.judging.explaining.patterns import Features, region_in_words
from rnncli.judging.explaining.single_steps import HeldRegion, RightSteps
from rnncli.mutants.catalogue import mutants_of
from rnncli.mutants.mutant import RIGHT, stepped
from rnncli.packs.pack import open_pack

DROPPED = "recurrent-product-dropped"


def without_products(places):
    """The change that takes Ht-1 as zero where `places` of h [..., N, H] is."""

    def step(right, p, x, states):
        where = places(states[0])
        wrong = right(p, x, (np.zeros_like(states[0]), *states[1:]))
        pairs = zip(wrong, right(p, x, states), strict=True)
        return tuple(np.where(where, bad, good) for bad, good in pairs)

    return stepped(step)


def found_in(case, places):
    """The evidence of a case of a kernel that has no recurrent products in some places."""
    vector = core()[case]
    measured = MeasuredAttempt(vector, computed(vector, without_products(places)))
    return evidence_of_failure(measured, mutants_of(vector.recurrence.cell.name))


@pytest.mark.parametrize(
    "case", ["rnn_14_ragged", "rnn_14_both", "lstm_14_both", "lstm_14_initial"]
)
@pytest.mark.parametrize(
    ("axis", "places", "indices"),
    [
        ("units", lambda h: np.arange(h.shape[-1]) > 3, (4,)),
        ("units", lambda h: np.arange(h.shape[-1]) % 2 == 1, (1, 3)),
        ("rows", lambda h: (np.arange(h.shape[-2]) == 0)[:, None], (0,)),
    ],
)
def test_a_bug_in_a_region_is_named_with_it(case, axis, places, indices):
    """Although what is wrong there makes all of the next step wrong."""
    region = found_in(case, places).regions[DROPPED]

    assert (region.axis, region.indices) == (axis, indices)


def test_what_begins_late_holds_from_there_on():
    """An LSTM's C is right until then."""
    first = []

    def late(h):
        first.append(h)
        return np.full(h.shape, len(first) > 2)

    region = found_in("lstm_14_initial", late).regions[DROPPED]

    assert (region.axis, region.indices[0]) == ("steps", 2)


def test_what_is_of_two_places_has_no_region():
    """Some units of one row are none along an axis."""
    corner = found_in(
        "rnn_14_both",
        lambda h: (np.arange(h.shape[-2]) == 0)[:, None] & (np.arange(h.shape[-1]) < 2),
    )

    assert DROPPED not in corner.regions


def evidence(name, verdict, *, fits=(), refuted=(), regions=(), size=4):
    """What a case says, which has some hidden size."""
    sizes = {"hidden_size": size, "batch_size": 2, "seq_length": 3, "input_size": 2}
    held = {each: HeldRegion("units", (4,), 5, 0.1) for each in regions}
    return Evidence(
        *(name, "LSTM", verdict, dict.fromkeys(fits, 0.5), frozenset(refuted)),
        features=Features({}, sizes),
        regions=held,
    )


def test_most_of_what_is_left_must_have_the_region():
    """Else it is chance; one failing case is enough if it is all."""
    one = evidence("a", Verdict.DIFFERS, regions=["z-inverted"])
    others = [evidence(name, Verdict.DIFFERS) for name in "bc"]

    (cause,) = diagnose([one]).causes

    assert (cause.hypothesis, cause.where) == ("z-inverted", "only the last unit, in 1 case")
    assert diagnose([one, *others]).causes == ()


@pytest.mark.parametrize(
    ("size", "where"), [(17, "only where hidden_size > 4"), (1, "only where hidden_size = 1")]
)
def test_passes_of_other_sizes_contradict_nothing(size, where):
    """A hypothesis that gives all failures is a cause at their sizes, also of one case."""
    passing = [evidence(name, Verdict.PASS, refuted=["z-inverted"]) for name in "abc"]
    (cause,) = diagnose(
        [evidence("f", Verdict.DIFFERS, fits=["z-inverted"], size=size), *passing]
    ).causes

    assert (cause.hypothesis, cause.where) == ("z-inverted", where)
    assert cause.refuted == ("a", "b", "c")


def test_a_size_in_between_is_no_region_of_one_case():
    """Too many conditions hold in it."""
    passing = [
        evidence(str(size), Verdict.PASS, refuted=["z-inverted"], size=size) for size in (2, 9)
    ]
    found = diagnose([evidence("f", Verdict.DIFFERS, fits=["z-inverted"], size=5), *passing])

    assert found.causes == ()


@pytest.mark.parametrize(
    ("axis", "known", "words"),
    [
        ("units", {5: (1, 3)}, "only units 1 and 3, in 1 case"),
        ("units", {8: (0, 2, 4, 6)}, "only units 0, 2, ... 6, in 1 case"),
        ("units", {5: (0, 4)}, "only units 0 and 4, in 1 case"),
        ("units", {9: (0, 4, 5, 8)}, "only in some units"),
        ("units", {5: (4,)}, "only the last unit, in 1 case"),
        ("steps", {17: (16,), 19: (16,)}, "only step 16, in 2 cases"),
        ("steps", {17: (16,), 35: (16, 32)}, "only steps 16 and 32, in 2 cases"),
        ("steps", {65: (16, 32, 48, 64), 17: (16,)}, "only steps 16, 32, ... 64, in 2 cases"),
        ("steps", {17: (16,), 19: (16, 17, 18)}, "steps from step 16 on, in 2 cases"),
    ],
)
def test_regions_have_words(axis, known, words):
    """As patterns have."""
    regions = [HeldRegion(axis, indices, size, 0.1) for size, indices in known.items()]

    assert region_in_words(regions) == words


@pytest.mark.parametrize(
    ("pack", "case"),
    [
        ("tflite", "tflite_unidirectional_sequence_lstm_plain_batch_first_given"),
        ("tflite", "tflite_unidirectional_sequence_lstm_clip_half_p14"),
        ("linear", "linearattention_27_again_continued_delta"),
        ("units", "lstm_14_types_u8"),
    ],
)
def test_no_bug_is_left_out_whose_outputs_were_got(pack, case):
    """Where steps are not known, all steps of the right run leave out most of the others."""
    stored = open_pack(CORE.parent / pack)
    vector = stored.read(stored.case(case))
    r = vector.recurrence
    bugs = [(bug,) for bug in mutants_of(r.cell.name) if not bug.equivalent_when(r)]
    right, left = outputs_of(vector, RIGHT.run(r)), []
    for (bug,) in bugs:
        got = outputs_of(vector, bug.run(r))
        if all((got[name] == right[name]).all() for name in got):
            continue
        likely = RightSteps(WrongOutputs(MeasuredAttempt(vector, got))).likely(bugs)
        assert (bug,) in likely, bug.id
        left.append(len(likely))

    assert np.median(left) < len(bugs) / 3
