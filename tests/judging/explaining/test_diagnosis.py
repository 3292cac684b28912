"""Claims about diagnosis: each bug is named from nothing but its wrong outputs."""

from dataclasses import replace
from functools import cache

import pytest
from support.between_workers import made_once
from support.judged import core, explained_verdict, mutated, outputs_of

from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.diagnosis import diagnose
from rnncli.judging.explaining.fitting import AND
from rnncli.judging.explaining.hypotheses import (
    Evidence,
    evidence_of_failure,
    evidence_of_pass,
    evidence_of_several,
    evidence_of_two,
    sentence_of,
)
from rnncli.judging.explaining.patterns import Features, Places
from rnncli.mutants.catalogue import MUTANTS, mutants_of
from rnncli.mutants.mutant import Change
from rnncli.numerics import DTYPES
from rnncli.operators import operator_named

RIGHT = Change()
SAMPLE = [(cell, row.id) for cell in ("RNN", "GRU", "LSTM") for row in mutants_of(cell)[::19]]


@cache
def vectors(cell):
    """The vectors of the core pack that test a cell."""
    return [v for v in core().values() if operator_named(v.record.operator).cell.name == cell]


@cache
def passed(case_id, cell):
    """What a case says of a kernel that passes it."""
    return made_once(
        f"passed-{case_id}", lambda: evidence_of_pass(core()[case_id], mutants_of(cell), PACK_RULE)
    )


@cache
def evidence(cell, mutant, reading=None):
    """What the core pack says of a kernel with that bug: all, or a fifth and all with a reading."""
    found = []
    chosen = vectors(cell)
    if reading:
        chosen = [v for k, v in enumerate(chosen) if k % 5 == 0 or reading in v.alternatives]
    for vector in chosen:
        got = mutated(vector, [MUTANTS[mutant]])
        measured = MeasuredAttempt(vector, got)
        if measured.agrees:
            found.append(passed(vector.id, cell))
        else:
            found.append(evidence_of_failure(measured, mutants_of(cell)))
    return found


@pytest.mark.parametrize(("cell", "name"), SAMPLE)
def test_a_mutant_is_named_by_its_outputs(cell, name):
    """It, or one that cannot be told from it in the pack, explains every failure it causes."""
    gathered = evidence(cell, name)
    failures = [each for each in gathered if each.verdict is Verdict.DIFFERS]
    found = diagnose(gathered)

    assert found.unexplained == ()
    if failures:
        cause = found.causes[0]
        assert name in (cause.hypothesis, *cause.indistinguishable)
        assert len(cause.explains) == len(failures) == cause.of
        assert cause.refuted == ()
        assert cause.margin <= 1


def with_two(vector, got, mutants):
    """What a case that differs says, of two at once where no single one fits."""
    measured = MeasuredAttempt(vector, got)
    alone = evidence_of_failure(measured, mutants)
    return alone if alone.fits else evidence_of_two(measured, alone, mutants)


READ = {
    "clip-scope=gates": "clip-of-h-activation-flipped",
    "zero-length=initial": "lengths-zero-last-state",
    "alpha-order=positional": "alpha-beta-positional",
}


@pytest.mark.parametrize(("reading", "mutant"), READ.items())
def test_another_reading_is_no_bug(reading, mutant):
    """Who reads the specification otherwise is not said to have the bug that looks the same."""
    found = diagnose(evidence("LSTM", mutant, reading))
    cause = found.causes[0]

    assert found.unexplained == ()
    assert (cause.hypothesis, mutant in cause.indistinguishable) == (reading, True)
    assert cause.refuted == ()
    assert "Reads " in sentence_of(reading)


def test_of_bugs_that_explain_the_same_those_of_sizes_come_last():
    """A product that is lost is not first called the lost rest of a tile, which it is as well."""
    narrow = [
        each
        for each in evidence("LSTM", "input-product-dropped")
        if core()[each.id].record.sizes["input_size"] < 8
    ]
    cause = diagnose(narrow).causes[0]

    assert cause.hypothesis == "input-product-dropped"
    assert {"input-tail-8", "input-tail-16"} <= {*cause.indistinguishable}


def test_a_bug_beside_another_reading_is_named():
    """Two things are wrong with one case: the reading is one of them."""
    vector = next(v for v in vectors("LSTM") if "clip-scope=gates" in v.alternatives)
    bug = MUTANTS["recurrent-bias-dropped"]
    recurrence = vector.recurrence_under("clip-scope=gates")
    got = outputs_of(vector, bug.run(recurrence))

    found = with_two(vector, got, mutants_of("LSTM"))

    assert diagnose([found]).causes[0].hypothesis == f"clip-scope=gates{AND}{bug.id}"


def test_a_case_that_passes_rules_out_the_other_reading():
    """It answers as the vector does, where the other reading answers otherwise."""
    vector = next(v for v in vectors("LSTM") if "clip-scope=gates" in v.alternatives)

    found = evidence_of_pass(vector, mutants_of("LSTM"), PACK_RULE)

    assert {"clip-scope=gates", "clip-of-h-activation-flipped"} <= found.refuted


SEVERAL = ("biases-dropped", "clip-ignored", "lengths-ignored", "initial-h-ignored")


def test_what_other_cases_named_is_tried_at_once():
    """Four bugs in one case are more than are searched for, but not more than are tried."""
    vector = next(v for v in vectors("LSTM") if v.id == "lstm_22_narrow_both_float16")
    wrong = MeasuredAttempt(vector, mutated(vector, [MUTANTS[name] for name in SEVERAL]))

    alone = evidence_of_failure(wrong, mutants_of("LSTM"))
    found = evidence_of_several(wrong, alone, [*SEVERAL, "peepholes-dropped"])

    assert alone.fits == {}
    assert set(next(iter(found.fits)).split(AND)) == set(SEVERAL)


@pytest.mark.parametrize("bug", ["", "peepholes-dropped"])
def test_a_coarser_arithmetic_is_named_alone_and_beside_a_bug(bug):
    """Who computes float64 in float32 is off by that much, and wrong besides."""
    vector = next(v for v in vectors("LSTM") if v.record.dtype == "float64")
    narrow = replace(vector.recurrence, dtype=DTYPES["float32"])
    change = MUTANTS[bug].change if bug else RIGHT
    result = change.run(narrow, Compute.NATIVE)
    got = {
        name: values.astype("float32").astype("float64")
        for name, values in outputs_of(vector, result).items()
    }

    found = with_two(vector, got, mutants_of("LSTM"))

    assert f"{bug}{AND}computed-in-float32".removeprefix(AND) in found.fits
    assert "float32" in sentence_of(next(iter(found.fits)))


def test_what_most_passes_refute_is_no_cause():
    """It came near by chance: nothing is named rather than that."""
    passes = [fact(f"p{k}", Verdict.PASS, refuted=["x"] if k else []) for k in range(4)]
    found = diagnose([fact("a", Verdict.DIFFERS, ["x"]), *passes])

    assert (found.causes, found.unexplained) == ((), ("a",))


def fact(name, verdict, fits=(), refuted=(), cell="RNN"):
    """One case's evidence."""
    return Evidence(name, cell, verdict, dict.fromkeys(fits, 0.5), frozenset(refuted))


def test_the_fewest_bugs_that_explain_everything_are_named():
    """One that explains three failures comes before three that explain one each."""
    found = diagnose(
        [
            fact("a", Verdict.DIFFERS, ["wide", "x"]),
            fact("b", Verdict.DIFFERS, ["wide", "y"]),
            fact("c", Verdict.DIFFERS, ["z"]),
            fact("d", Verdict.DIFFERS),
        ]
    )

    assert [(cause.hypothesis, cause.explains) for cause in found.causes] == [
        ("wide", ("a", "b")),
        ("z", ("c",)),
    ]
    assert found.unexplained == ("d",)


def test_passing_cases_decide_between_bugs_that_explain_as_much():
    """The one that would have been seen in a case that passes comes second."""
    found = diagnose(
        [
            fact("a", Verdict.DIFFERS, ["seen", "unseen"]),
            fact("b", Verdict.PASS, refuted=["seen"]),
            fact("c", Verdict.PASS),
        ]
    )
    (cause,) = found.causes

    assert (cause.hypothesis, cause.predicts, cause.refuted) == ("unseen", 2, ())
    assert cause.sentence == "RNN: unseen explains 1 of 1 failure, and predicts 2 of 2 passes"


def test_what_cannot_be_told_apart_is_said():
    """Equal evidence names both; one bug is preferred to two."""
    found = diagnose([fact("a", Verdict.DIFFERS, [f"x{AND}y", "p", "q"])])
    (cause,) = found.causes

    assert (cause.hypothesis, cause.indistinguishable) == ("p", ("q",))


def test_cells_are_diagnosed_apart():
    """A bug of the GRU says nothing of the LSTM."""
    found = diagnose(
        [
            fact("a", Verdict.DIFFERS, ["x"], cell="GRU"),
            fact("b", Verdict.PASS, refuted=["x"], cell="LSTM"),
        ]
    )

    assert [(cause.cell, cause.refuted) for cause in found.causes] == [("GRU", ())]


def test_of_bugs_that_explain_as_much_the_finer_variant_comes_last():
    """Relu for ThresholdedRelu is what an alpha of 0 makes of it: the plain bug is named."""
    found = diagnose([fact("a", Verdict.DIFFERS, ["activation-g-is-relu", "alpha-default-zero"])])
    (cause,) = found.causes

    assert cause.hypothesis == "alpha-default-zero"
    assert cause.indistinguishable == ("activation-g-is-relu",)


@pytest.mark.parametrize(("cell", "name"), SAMPLE[::5])
def test_verify_and_diagnose_name_the_same(cell, name):
    """Where a verdict names one bug alone, the diagnosis of all cases has no other for it."""
    alone, gathered = {}, evidence(cell, name)
    for vector in vectors(cell)[::4]:
        fits = list(explained_verdict(vector, mutated(vector, [MUTANTS[name]])).fits)
        if len(fits) == 1:
            alone[vector.id] = fits[0]
    found = diagnose(gathered)

    assert {case: found.cause_of(case).hypothesis for case in alone} == alone


def test_a_cause_that_explains_little_of_what_is_wrong_is_a_doubt():
    """An unknown bug may look like it at times."""
    failures = [fact(f"f{k}", Verdict.DIFFERS, ["x"] if k == 0 else []) for k in range(26)]
    found = diagnose(failures)

    assert found.causes == ()
    assert [doubt.hypothesis for doubt in found.doubts] == ["x"]
    assert found.doubts[0].doubt == (
        "RNN: x fits 1 of 26 failures by value, but nothing explains the others"
    )


def test_what_other_failures_contradict_is_a_doubt():
    """They would be otherwise if that were the bug."""
    failures = [fact("a", Verdict.DIFFERS, ["x"])]
    failures += [fact(name, Verdict.DIFFERS, refuted=["x"]) for name in "bc"]
    found = diagnose(failures)

    assert (found.causes, len(found.unexplained)) == ((), 3)
    assert found.doubts[0].doubt == (
        "RNN: x fits 1 of 3 failures by value, but 2 differ in another way, such as b"
    )


def test_what_failures_contradict_is_a_cause_only_beside_another_bug():
    """One that explains those failures; that something else is wrong, too, is not enough."""
    fits = [fact(name, Verdict.DIFFERS, ["x"]) for name in "ab"]
    otherwise = [fact(name, Verdict.DIFFERS, refuted=["x"]) for name in "cde"]
    explained = [fact(name, Verdict.DIFFERS, ["y"], refuted=["x"]) for name in "cde"]
    another, passes = fact("f", Verdict.DIFFERS), fact("p", Verdict.PASS, refuted=["x"])
    found = diagnose([*fits, *otherwise, another])

    assert (found.causes, len(found.unexplained)) == ((), 6)
    assert [doubt.doubt for doubt in found.doubts] == [
        "RNN: x fits 2 of 6 failures by value, but 3 differ in another way, such as c"
    ]
    assert {c.hypothesis for c in diagnose([*fits, *explained, another]).causes} == {"x", "y"}
    assert diagnose([*fits, *otherwise, another, passes]).causes == ()


def test_a_failure_that_contradicts_a_cause_is_named():
    """One of many may have met something else as well."""
    fits = [fact(f"f{k}", Verdict.DIFFERS, ["x"]) for k in range(8)]
    found = diagnose([*fits, fact("g", Verdict.DIFFERS, refuted=["x"])])

    assert found.causes[0].sentence == "RNN: x explains 8 of 9 failures; contradicted by g"


def with_word(word, *facts):
    """Evidence of cases that have something."""
    return [replace(each, features=Features({word: word})) for each in facts]


def test_a_bug_of_a_part_is_named_with_its_part():
    """All that fails has what nothing has that passes."""
    found = diagnose(
        [
            *with_word("P", *(fact(f"f{k}", Verdict.DIFFERS, ["x"]) for k in range(3))),
            *with_word("B", *(fact(f"p{k}", Verdict.PASS, refuted=["x"]) for k in range(9))),
        ]
    )
    (cause,) = found.causes

    assert (cause.hypothesis, cause.where) == ("x", "only with P")


def test_two_bugs_that_are_never_seen_alone_explain_all_that_either_touches():
    """Otherwise there is no known bug."""
    both = [fact(name, Verdict.DIFFERS, [f"x{AND}y"]) for name in "ab"]
    touched = fact("c", Verdict.DIFFERS, refuted=["y"])

    assert [c.hypothesis for c in diagnose(both).causes] == [f"x{AND}y"]
    assert diagnose(both[:1]).causes == ()
    assert diagnose([*both, touched]).causes == ()


def test_a_pair_that_explains_many_may_be_contradicted_by_one():
    """One bug is seen alone where the other cannot be."""
    both = [fact(f"b{k}", Verdict.DIFFERS, [f"x{AND}y"]) for k in range(10)]
    alone, other = fact("a", Verdict.DIFFERS, ["x"]), fact("o", Verdict.DIFFERS, refuted=["y"])
    found = diagnose([*both, alone, other])

    assert {c.hypothesis for c in found.causes} == {f"x{AND}y", "x"}
    assert found.unexplained == ("o",)


def test_what_a_call_before_leaves_is_named_however_little_it_explains():
    """It is found by value, and much else may be left as well."""
    leaks = [fact(f"l{k}", Verdict.DIFFERS, ["w-of-call-before"]) for k in range(2)]
    unknown = [fact(f"u{k}", Verdict.DIFFERS) for k in range(30)]

    assert [c.hypothesis for c in diagnose([*leaks, *unknown]).causes] == ["w-of-call-before"]
    assert diagnose([*leaks[:1], *unknown]).causes == ()


def test_an_estimated_function_is_no_bug_of_a_part():
    """Whatever feature the cases share in which it fits."""
    fits = with_word(
        "clip", *[fact(f"f{k}", Verdict.DIFFERS, ["tanh-approximated"]) for k in "abc"]
    )
    passes = [fact(f"p{k}", Verdict.PASS, refuted=["tanh-approximated"]) for k in range(40)]

    assert diagnose([*fits, *passes]).causes == ()


def test_what_is_seen_where_nothing_is_wrong_and_not_all_that_is_wrong_is_a_doubt():
    """It looks like the bug at times; either alone may be a part of it, or another bug beside."""
    fits = [fact(f"f{k}", Verdict.DIFFERS, ["x"]) for k in range(9)]
    otherwise = fact("g", Verdict.DIFFERS, refuted=["x"])
    passes = fact("p", Verdict.PASS, refuted=["x"])

    assert [c.hypothesis for c in diagnose([*fits, otherwise]).causes] == ["x"]
    assert [c.hypothesis for c in diagnose([*fits, passes]).causes] == ["x"]
    assert diagnose([*fits, otherwise, passes]).causes == ()


def zeros(*facts):
    """Evidence of cases of which all that is wrong is one number."""
    return [replace(each, places=Places(one_value=True)) for each in facts]


def test_zeros_are_no_proof_where_other_failures_have_the_same_condition():
    """Whatever loses a term gives zeros somewhere; of several cells all count."""
    flat = [
        *zeros(*(fact(f"f{k}", Verdict.DIFFERS, ["x"]) for k in range(3))),
        *zeros(*(fact(f"g{k}", Verdict.DIFFERS, ["x"], cell="GRU") for k in range(3))),
    ]
    left = fact("h", Verdict.DIFFERS, cell="GRU")
    passes = with_word("B", *(fact(f"p{k}", Verdict.PASS, cell="GRU") for k in range(29)))

    assert len(diagnose([*flat, *passes]).causes) == 2
    assert diagnose([*flat, left, *passes]).causes == ()
    assert len(diagnose([*flat, *with_word("B", left), *passes]).causes) == 2

    more = zeros(*(fact(f"m{k}", Verdict.DIFFERS, ["x"], cell="GRU") for k in range(4)))
    assert len(diagnose([*flat, *more, left, *passes]).causes) == 2  # one of many says little


@pytest.mark.parametrize("name", ["table-1024", "sums-in-float16", "computed-in-float16"])
def test_what_is_left_of_many_failures_is_no_arithmetic_that_passes_refute(name):
    """Nor is a single failure: it comes near a few values by chance, and others say nothing."""
    failures = [fact(f"f{k}", Verdict.DIFFERS, ["x"], refuted=[name]) for k in range(9)]
    rest = [fact(f"r{k}", Verdict.DIFFERS, [name]) for k in range(3)]
    passes = fact("p", Verdict.PASS, refuted=[name])

    assert [c.hypothesis for c in diagnose([*failures, *rest]).causes] == ["x", name]
    assert [c.hypothesis for c in diagnose([*failures, *rest, passes]).causes] == ["x"]
    assert [c.hypothesis for c in diagnose([*failures, rest[0]]).causes] == ["x"]


def test_a_cause_has_twice_as_many_cases_for_it_as_against_it():
    """Two of three that show it may be chance."""
    failures = [fact(f"f{k}", Verdict.DIFFERS, ["x"]) for k in range(4)]
    passes = [fact(f"p{k}", Verdict.PASS, refuted=["x"]) for k in range(3)]

    assert [c.hypothesis for c in diagnose([*failures, *passes[:2]]).causes] == ["x"]
    assert diagnose([*failures, *passes]).causes == ()


def test_a_bug_of_a_part_has_one_condition():
    """Of all pairs of conditions some are met by three cases and by no other."""
    failures = [fact(f"f{k}", Verdict.DIFFERS, ["x"]) for k in range(3)]
    passes = [fact(f"p{k}", Verdict.PASS, refuted=["x"]) for k in range(8)]
    both = [replace(each, features=Features({"B": "B", "P": "P"})) for each in failures]
    either = [*with_word("B", *passes[:4]), *with_word("P", *passes[4:])]

    assert diagnose([*both, *either]).causes == ()


def test_what_gives_all_failures_is_a_bug_of_a_part_however_few_they_are():
    """Their values are proof enough; of two conditions that pass, neither is the part."""
    failures = with_word("B", *(fact(f"f{k}", Verdict.DIFFERS, ["x"]) for k in range(3)))
    passes = [fact(f"p{k}", Verdict.PASS, refuted=["x"]) for k in range(2)]
    other = fact("o", Verdict.DIFFERS)

    (cause,) = diagnose([*failures, *passes]).causes
    assert (cause.hypothesis, cause.where) == ("x", "only with B")
    assert diagnose([*failures, *with_word("B", *passes)]).causes == ()
    assert diagnose([*failures, *passes, other]).causes == ()


def test_beside_an_estimated_function_what_is_left_has_no_name():
    """The estimate is not exact: it may be behind that as well."""
    failures = [fact(f"f{k}", Verdict.DIFFERS, ["tanh-approximated"]) for k in range(9)]
    others = [replace(each, refuted=frozenset({"pade-tanh"})) for each in failures]
    rest = fact("r", Verdict.DIFFERS, ["pade-tanh"])

    assert [c.hypothesis for c in diagnose([*others, rest]).causes] == ["tanh-approximated"]


def test_the_smallest_unexplained_case_comes_first():
    """It stands for the others in sentences, and is the one to run again."""
    sizes = {"a": 4, "b": 1, "c": 2}
    found = diagnose(
        [
            replace(fact(name, Verdict.DIFFERS), features=Features(sizes={"hidden_size": size}))
            for name, size in sizes.items()
        ]
    )

    assert (found.unexplained, found.left) == (("b", "c", "a"), "b and 2 more")
