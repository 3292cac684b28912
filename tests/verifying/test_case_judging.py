"""Claims about cases that fail only after other cases of the same process."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.judged import CORE, outputs_of
from support.second_calls import Process, right, twice
from support.small_suite import small_suite

import rnncli
from rnncli.backends.backend import Compute
from rnncli.generating.production import make_vectors
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.comparing.xfails import Xfails
from rnncli.mutants.mutant import RIGHT
from rnncli.packs.vector import Attempt, Status
from rnncli.subjects.function import FunctionSubject
from rnncli.subjects.implementation import Implementation
from rnncli.verifying import case_judging
from rnncli.verifying.case_judging import History, JudgingTerms, judge_case, shuffled

MIXED = """\
suite: mixed
summary: Cases of two sizes, interleaved.
seed: 11
defaults:
  sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 2}
  op: RNN-14
cases:
  one: {}
  wide: {sizes: {hidden_size: 5}}
  two: {}
  broad: {sizes: {hidden_size: 5}}
  long: {sizes: {seq_length: 7}}
"""
ONE, WIDE, TWO, BROAD, LONG = (f"rnn_14_{name}" for name in ("one", "wide", "two", "broad", "long"))


class KeepsByShape(Process):
    """Takes the first weights of a shape for those of all that have it."""

    def answer(self, vector):
        """Evaluate by the first R of that shape."""
        R = vector.inputs["R"]
        vector.inputs["R"] = self.kept.setdefault(R.shape, R)
        return Attempt(Status.RAN, right(vector))


class RefusesTheThird(Process):
    """Has room for two cases."""

    def answer(self, vector):
        """Count."""
        self.kept[len(self.kept)] = True
        if len(self.kept) > 2:
            return Attempt(Status.REFUSED, message="no more room")
        return Attempt(Status.RAN, right(vector))


def wrong(vector):
    """All that is right, and one."""
    return {name: values + 1 for name, values in right(vector).items()}


def mixed():
    """Fresh vectors by id: a kernel may alter them."""
    return {vector.id: vector for vector in make_vectors(small_suite(MIXED).entries)}


def judged(subject, ids=(ONE, WIDE, TWO, BROAD, LONG)):
    """The verdicts, in turn."""
    seen = History(subject)
    return [seen.judge(mixed()[name], PACK_RULE, lambda i: mixed()[i]).verdict for name in ids]


def test_what_is_kept_by_shape_is_stale_and_its_cause_is_found():
    """The case of the same shape, not the one between; sizes are interleaved."""
    found = judged(KeepsByShape())

    # Its process was asked no wide case when the broad one came.
    assert [each.verdict for each in found] == ["pass", "pass", "stale", "pass", "stale"]
    assert [each.after for each in found] == [(), (), (ONE,), (), (TWO,)]
    assert f"after {ONE} in the same process, Y" in found[2].message
    assert found[2].message.endswith("; alone it is right")
    assert found[2].fails


def test_cases_of_other_shapes_are_not_stale():
    """Each shape for the first time."""
    assert {each.verdict for each in judged(KeepsByShape(), (ONE, WIDE))} == {Verdict.PASS}


def test_what_is_refused_after_others_is_stale():
    """A valid case that the process has no room for any more; it takes both of the others."""
    *_, third = judged(RefusesTheThird(), (ONE, WIDE, TWO))

    assert (third.verdict, third.after) == (Verdict.STALE, (ONE, WIDE))
    assert "it is refused: no more room; alone it is right" in third.message


def test_what_is_wrong_alone_differs_and_asking_again_has_an_end():
    """A process is started for the first few only: hundreds would take minutes."""
    subject = Process(wrong)
    found = judged(subject, (ONE, WIDE, TWO, BROAD, LONG) * 4)

    assert {each.verdict for each in found} == {Verdict.DIFFERS}
    assert subject.started == case_judging.PATIENCE


def test_refusals_leave_stale_cases_to_be_found():
    """Those that are refused alone, however many, are no reason to believe a wrong answer."""

    class RefusesMost(KeepsByShape):
        def answer(self, vector):
            if vector.id in (WIDE, BROAD, LONG):
                return Attempt(Status.REFUSED, message="no")
            return super().answer(vector)

    subject = RefusesMost()
    *_, first, last = judged(subject, (WIDE, BROAD, LONG) * 4 + (ONE, TWO))

    assert first.verdict == Verdict.PASS
    assert (last.verdict, last.after) == (Verdict.STALE, (ONE,))


def test_a_right_subject_is_asked_once():
    """No process more than one."""
    subject = Process()

    assert {each.verdict for each in judged(subject)} == {Verdict.PASS}
    assert subject.started == 0


def test_the_first_case_of_a_process_is_as_wrong_as_it_is():
    """Nothing came before it."""
    subject = Process(wrong)

    assert [each.verdict for each in judged(subject, (ONE,))] == ["differs"]
    assert subject.started == 0


def test_a_cause_that_does_not_come_again_is_all_that_came_before():
    """What fails by chance is stale, too; the whole run is how to repeat it."""

    class FailsOnce(Process):
        failed = False

        def answer(self, vector):
            fails = vector.id == TWO and not self.failed
            self.failed = self.failed or fails
            return Attempt(Status.RAN, wrong(vector) if fails else right(vector))

    *_, third = judged(FailsOnce(), (ONE, WIDE, TWO))
    assert (third.verdict, third.after) == (Verdict.STALE, (ONE, WIDE))


def test_a_case_that_its_own_session_confuses_is_stale_without_others():
    """Where an earlier case and an earlier call each are enough, the call is named."""

    class KeepsLengths(Process):
        def answer(self, vector):
            lengths = vector.inputs["sequence_lens"]
            vector.inputs["sequence_lens"] = self.kept.setdefault("lengths", lengths)
            return Attempt(Status.RAN, right(vector))

    def fresh(case_id):
        return twice()[case_id]

    seen = History(KeepsLengths())
    ids = ("rnn_14_fill", "gru_14_fill")
    first, second = (seen.judge(fresh(name), PACK_RULE, fresh).verdict for name in ids)

    assert (first.verdict, first.after) == (Verdict.STALE, ())
    assert (second.verdict, second.after) == (Verdict.STALE, ())
    assert "another call of the same session" in second.message


def test_what_a_function_keeps_of_an_earlier_case_is_named():
    """It has no other process in which a case could be right."""
    kept = {}

    def keeps_weights(vector):
        recurrence = vector.recurrence
        W = kept.setdefault(recurrence.W.shape, recurrence.W)
        return outputs_of(vector, RIGHT.run(replace(recurrence, W=W), Compute.FLOAT64))

    terms = JudgingTerms(
        Implementation(function=keeps_weights), PACK_RULE, Xfails(), diagnoses=True
    )
    vectors = mixed()
    history = History(terms.subject.open())
    found = [judge_case(vectors[each], history, terms, vectors.get) for each in (ONE, WIDE, TWO)]

    assert [each.verdict.verdict for each in found] == [Verdict.PASS, Verdict.PASS, Verdict.DIFFERS]
    assert list(found[2].verdict.fits) == list(found[2].evidence.fits) == ["w-of-call-before"]


def test_a_function_that_keeps_its_last_state_is_stale():
    """Called again it answers otherwise; named are the cases that it takes, and what was kept."""
    kept = []

    def goes_on(vector):
        recurrence = vector.recurrence
        fits = kept and kept[-1].shape[-1] == recurrence.R.shape[-1]
        initial = (kept[-1],) if fits else recurrence.initial
        result = RIGHT.run(replace(recurrence, initial=initial), Compute.FLOAT64)
        kept.append(result.last[0])
        return outputs_of(vector, result)

    terms = JudgingTerms(Implementation(function=goes_on), PACK_RULE, Xfails())
    history, vectors = History(terms.subject.open()), mixed()
    *found, stale = (
        judge_case(vectors[each], history, terms, vectors.get).verdict
        for each in (LONG, BROAD, ONE, TWO)
    )

    assert {each.verdict for each in found} == {Verdict.PASS}
    assert (stale.verdict, stale.after) == (Verdict.STALE, (BROAD, ONE))
    assert f"after {BROAD} and {ONE} in the same process, Y" in stale.message
    assert stale.message.endswith("; asked again at once, the answer is another")
    assert next(iter(stale.fits)) == "starts-from-last-h-of-call-before"


def test_a_function_that_is_right_when_asked_again_is_stale():
    """What fails by chance, too; the whole run is how to repeat it."""
    asked = []

    def fails_once(vector):
        asked.append(vector.id)
        return wrong(vector) if asked == [ONE, TWO] else right(vector)

    _, second = judged(FunctionSubject(fails_once), (ONE, TWO))

    assert (second.verdict, second.after) == (Verdict.STALE, (ONE,))
    assert second.message.endswith("; asked again at once, it is right")


def test_a_function_that_stays_wrong_differs_and_is_asked_again_a_few_times():
    """Its answers are the same to the last bit."""
    asked = []

    def constantly_wrong(vector):
        asked.append(vector.id)
        return wrong(vector)

    found = judged(FunctionSubject(constantly_wrong), (ONE, WIDE, TWO, BROAD, LONG) * 4)

    assert {each.verdict for each in found} == {Verdict.DIFFERS}
    assert len(asked) == len(found) + case_judging.PATIENCE


def test_what_an_earlier_case_left_in_a_process_is_named():
    """As a buffer of the call before is; of other sizes nothing fits."""
    terms = JudgingTerms(Implementation(runtime="onnxruntime"), PACK_RULE, Xfails())
    history, vectors = History(KeepsByShape()), mixed()
    *_, third = (
        judge_case(vectors[each], history, terms, mixed().get) for each in (ONE, WIDE, TWO)
    )

    assert (third.verdict.verdict, third.verdict.after) == (Verdict.STALE, (ONE,))
    assert [*third.verdict.fits] == ["r-of-call-before"]


def test_a_shuffled_order_is_that_of_its_seed():
    """The same on every machine, another for another seed, and some cases keep it."""
    ids = [f"case_{k}" for k in range(50)]
    once, again, other = (shuffled(ids, seed) for seed in (7, 7, 8))

    assert once == again != other
    assert sorted(once) == sorted(ids) != once
    some = ids[::7]
    assert shuffled(some, 7) == [name for name in once if name in some]
    assert shuffled(ids, None) == ids


def test_every_transition_of_two_data_sets_is_asked():
    """0, 1, 0: there are no others."""
    calls = []

    def kernel(vector):
        calls.append(vector.call)
        return right(vector)

    case_judging.session_calls_of(Process(kernel), twice()["lstm_14_given"])
    assert {*pairwise(calls)} == {(0, 1), (1, 0)}


SURE = ("gru_14_initial", "lstm_14_initial", "rnn_14_initial")
UNSURE = ("lstm_14_empty_names", "rnn_14_outputs")


@pytest.mark.parametrize(
    ("divisor", "cause"), [(4096, "fixed-point-12"), (1, "outputs-scaled-by-4096")]
)
@pytest.mark.parametrize(("fixed", "is_one"), [((*SURE, *UNSURE), True), (SURE[:1], False)])
def test_a_case_with_few_values_is_in_the_fixed_point_of_the_others(fixed, is_one, divisor, cause):
    """If most are surely in it; alone it may be of floats of few bits. All have that cause, too."""

    def kernel(vector):
        answers = vector.answers.outputs.items()
        if vector.id not in fixed:
            return {name: values + np.float32(2**-12) for name, values in answers}
        return {name: np.rint(values * 4096) / np.float32(divisor) for name, values in answers}

    report = rnncli.verify(
        CORE,
        kernel,
        cases=rnncli.Selected(select=" or ".join(f"id:{name}" for name in (*SURE, *UNSURE))),
        diagnose=True,
    )
    named = {case.id for case in report.cases if cause in case.details.fits}

    assert all(case.verdict is Verdict.DIFFERS for case in report.cases)
    assert named == {*fixed}
    assert {cause.hypothesis for cause in report.diagnosis.causes} == {cause}
    assert (report.diagnosis.unexplained == ()) is is_one
