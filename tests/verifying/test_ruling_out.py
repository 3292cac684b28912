"""Passing cases rule out the bugs that fit another case by chance."""

import pytest
from support.judged import CORE, core, explained_verdict
from support.small_suite import small_suite

from rnncli.generating.production import make_vectors
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.comparing.verdict import CaseVerdict, Verdict
from rnncli.judging.explaining.arithmetic import INEXACT_TAILS
from rnncli.judging.explaining.hypotheses import sentence_of
from rnncli.judging.report import JudgedCase
from rnncli.packs.pack import open_pack
from rnncli.verifying.ruling_out import ruled_out

SCORED, UNSCORED, TRUE = "batch-tail-4", "hard-sigmoid-of-a-sixth", "sigmoid-zero-below-18"


def left_of(fits, *passing, rule=PACK_RULE):
    """What remains of the bugs that fit a closed LSTM, and how many cases contradict each."""
    verdict = CaseVerdict("lstm_14_closed", Verdict.DIFFERS, fits=dict.fromkeys(fits, 0.0))
    verdicts = [verdict, *(CaseVerdict(name, Verdict.PASS) for name in passing)]
    cases = [JudgedCase(core()[each.id].record, each) for each in verdicts]
    details = ruled_out(cases, core().__getitem__, rule)[0].details
    return [*details.fits], details.against


@pytest.mark.parametrize(
    ("passing", "left"),
    [
        ((), [SCORED, UNSCORED, TRUE]),
        (("lstm_14_initial",), [TRUE]),
        (("gru_14_initial",), [SCORED, UNSCORED, TRUE]),
        (("lstm_14_both",), [SCORED, UNSCORED, TRUE]),
        (("lstm_14_dtype_float16",), [SCORED, UNSCORED, TRUE]),
    ],
)
def test_a_passing_case_rules_out_what_it_would_show(passing, left):
    """What its pack has recorded, and what it has not; of its own operator, dtype and direction."""
    assert left_of([SCORED, UNSCORED, TRUE], *passing) == (left, 0)


def test_what_is_inexact_near_0_is_told_where_no_bug_says_more():
    """Where none is left, or too many to name one."""
    fits = [SCORED, TRUE, INEXACT_TAILS]

    assert left_of(fits) == ([SCORED, TRUE], 0)
    assert left_of([SCORED, INEXACT_TAILS], "lstm_14_initial") == ([INEXACT_TAILS], 0)
    assert left_of([*fits, UNSCORED, "clip-ignored"])[0][2] == INEXACT_TAILS


def test_nothing_is_merely_inexact_near_0_where_most_cases_differ():
    """Values that are not near 0 are wrong, too."""
    names = ("lstm_14_closed", "lstm_14_initial", "lstm_14_ragged")
    verdicts = [CaseVerdict(n, Verdict.DIFFERS, fits={INEXACT_TAILS: 0.5}) for n in names]
    cases = [JudgedCase(core()[each.id].record, each) for each in verdicts]

    assert ruled_out(cases, core().__getitem__, PACK_RULE)[0].details.fits == {}


def test_what_is_inexact_near_0_stays_beside_other_bugs():
    """In a shard with a case of this operator for each bug, none of them says anything of it."""
    fits = {name: {name: 0.5} for name in ("lstm_14_initial", "lstm_14_ragged")}
    fits["lstm_14_closed"] = dict.fromkeys([*"abcd", INEXACT_TAILS], 0.5)
    verdicts = [CaseVerdict(n, Verdict.DIFFERS, fits=each) for n, each in fits.items()]
    cases = [JudgedCase(core()[each.id].record, each) for each in verdicts]

    assert INEXACT_TAILS in ruled_out(cases, core().__getitem__, PACK_RULE)[2].details.fits


def test_if_all_that_fits_is_ruled_out_it_stays_and_the_passes_are_counted():
    """It may be the bug where something else holds."""
    assert left_of([SCORED], "lstm_14_initial", "lstm_14_ragged") == ([SCORED], 2)


def alike():
    """The ids of the cases like lstm_14_initial in which the bug would be seen."""
    own = core()["lstm_14_initial"].record
    return [
        each.id
        for each in core().values()
        if SCORED in (each.record.kills or ())
        and (each.record.operator, each.record.dtype) == (own.operator, own.dtype)
        and each.record.requirements.direction == own.requirements.direction
        and each.record.requirements.layout == own.requirements.layout
    ]


def test_what_most_alike_cases_rule_out_is_not_even_a_part_of_the_bug():
    """Four of them, of those that pass, or more than it fits of those that differ otherwise."""
    assert len(alike()) >= 4
    assert left_of([SCORED], *alike()) == ([], 0)


@pytest.mark.parametrize(("differing", "left"), [(1, ([], 0)), (9, ([SCORED], 4))])
def test_what_fits_as_many_cases_stays_with_its_doubt(differing, left):
    """It may need something that those which pass have not, as states that are not given."""
    fits = {SCORED: 0.0}
    wrong = [CaseVerdict("lstm_14_closed", Verdict.DIFFERS, fits=fits) for _ in range(differing)]
    verdicts = [*wrong, *(CaseVerdict(name, Verdict.PASS) for name in alike()[:4])]
    cases = [JudgedCase(core()[each.id].record, each) for each in verdicts]

    for case in ruled_out(cases, core().__getitem__, PACK_RULE)[:differing]:
        assert ([*case.details.fits], case.details.against) == left


@pytest.mark.parametrize(
    ("fits", "unknown", "left"), [(1, 3, 3), (1, 4, None), (3, 1, 0), (4, 4, 4), (9, 4, 0)]
)
def test_a_bug_by_which_others_would_differ_that_differ_otherwise_is_doubted(fits, unknown, left):
    """Not for a few, which may have another bug beside it, and not named if they are more."""
    records = [core()[name].record for name in ("lstm_14_closed", "lstm_14_initial")]
    of_it, others = {"fits": {SCORED: 0.0}}, {}
    cases = [
        JudgedCase(record, CaseVerdict(record.id, Verdict.DIFFERS, **more))
        for record, more, count in zip(records, (of_it, others), (fits, unknown), strict=True)
        for _ in range(count)
    ]
    found = ruled_out(cases, core().__getitem__, PACK_RULE)[0].details

    assert [*found.fits] == [SCORED] * (left is not None)
    assert found.against == (left or 0)


def test_a_reading_that_passing_cases_rule_out_is_not_advised():
    """By that they would fail."""
    own, other = Rule(reading={"requantise": "gates"}), "requantise=outputs"
    name, passing = "lstm_14_types_u8", "lstm_14_gates"
    vectors = {each.id: own.declared(each) for each in open_pack(CORE.parent / "units").vectors()}
    told = {"fits": {other: 0.0}, "reading": other, "message": f"gives what {other} gives"}
    differs = JudgedCase(vectors[name].record, CaseVerdict(name, Verdict.DIFFERS, **told))
    passes = JudgedCase(vectors[passing].record, CaseVerdict(passing, Verdict.PASS))
    alone, beside = (
        ruled_out(cases, vectors.__getitem__, own)[0].details
        for cases in ([differs], [differs, passes])
    )

    assert (alone.reading, beside.reading) == (other, "")
    assert beside.against == 1
    assert not beside.message


WEBNN = """\
suite: gates
summary: A layer by both layouts.
seed: 3
defaults:
  sizes: {seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 4}
  op: webnn.OPERATOR
cases:
  default: {}
  back: {attributes: {direction: backward}}
  other: {attributes: {layout: OTHER}}
  batches: {sizes: {batch_size: 3}}
"""


@pytest.mark.parametrize(
    ("operator", "other", "bug"),
    [("gru", "rzn", "gates-z-r-swapped"), ("lstm", "ifgo", "gate-order-ifco")],
)
@pytest.mark.parametrize(
    ("passing", "is_always"),
    [({"other"}, True), ({"other", "batches"}, False), (set(), False), ({"batches"}, False)],
)
def test_an_order_that_another_layout_alone_rules_out_is_that_layout_always(
    operator, other, bug, passing, is_always
):
    """In any direction; if one of the default passes as well, or none at all, it is an order."""
    text = WEBNN.replace("OPERATOR", operator).replace("OTHER", other)
    vectors = {vector.id: vector for vector in make_vectors(small_suite(text).entries)}
    verdicts = [
        CaseVerdict(name, Verdict.PASS)
        if name.rpartition("_")[2] in passing
        else CaseVerdict(name, Verdict.DIFFERS, fits={bug: 0.0})
        for name in vectors
    ]
    cases = [JudgedCase(vectors[each.id].record, each) for each in verdicts]
    left = {
        name: case.details.against
        for case in ruled_out(cases, vectors.__getitem__, PACK_RULE)
        for name in case.details.fits
    }

    if is_always:
        assert left == {f"gate-layout-always-{other}": 0}
        assert f"in the order {other}." in sentence_of(*left)
    else:
        assert [*left] == [bug]


@pytest.mark.parametrize(
    ("made", "some", "named"),
    [("gates", "", "gates"), ("gates", "ends", "state"), ("state", "", "state")],
)
def test_all_cases_have_the_reading_that_most_are_right_by(made, some, named):
    """A unit without levels of its gates rounds by requantise=gates as by requantise=state."""
    rule = Rule(reading={"requantise": made})
    vectors = {
        vector.id: vector
        for vector in open_pack(CORE.parent / "units").vectors()
        if "lstm" in vector.id and some in vector.id
    }
    verdicts = [
        explained_verdict(vector, rule.declared(vector).answers.outputs)
        for vector in vectors.values()
    ]
    cases = [JudgedCase(vectors[each.id].record, each) for each in verdicts]
    found = [each.details for each in ruled_out(cases, vectors.__getitem__, PACK_RULE)]

    wrong = [each for each in found if each.verdict is Verdict.DIFFERS]
    name = f"requantise={named}"
    assert {each.reading for each in wrong} == {name}
    assert {each.message for each in wrong} == {
        f"gives what {name} gives: --reading {name} judges by that"
    }
    assert all(name in each.fits for each in wrong)


def test_tolerances_that_let_a_bug_pass_rule_it_out_nowhere():
    """What the pack has recorded is by its own tolerances."""
    assert left_of([SCORED], "lstm_14_initial", rule=Rule(atol=10.0)) == ([SCORED], 0)
