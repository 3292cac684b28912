"""Claims about runs that several machines made: a part is never taken for the whole."""

from dataclasses import replace

import pytest
from msgspec import structs
from support.verifications import every_verdict

from rnncli.errors import InvalidRequest
from rnncli.judging.explaining.diagnosis import Diagnosis
from rnncli.judging.report import JudgedSubject, Shard
from rnncli.reports.result_files import whole_runs
from rnncli.reports.site import results_of

WHOLE = replace(every_verdict(), date="2026-03-01T00:00:00Z")


def shards(of, whole=WHOLE):
    """The shards of a run, each later than the one before."""
    return [
        replace(
            whole,
            cases=whole.cases[k::of],
            date=whole.date.replace("T00", f"T0{k}"),
            shard=Shard(k + 1, of),
            due=len(whole.cases[k::of]),
        )
        for k in range(of)
    ]


@pytest.mark.parametrize("of", [1, 2, 3, 5])
def test_shards_in_any_order_are_the_whole(of):
    """Every case, in the pack's order; other runs stay where they are."""
    other = replace(WHOLE, subject=JudgedSubject("openvino"))
    first, joined = whole_runs([other, *reversed(shards(of))])

    assert first is other
    assert [case.id for case in joined.cases] == [c.id for c in WHOLE.cases]
    assert (joined.date, joined.shard, joined.total.cases) == (
        WHOLE.date,
        Shard(),
        len(WHOLE.cases),
    )
    assert joined.seconds == pytest.approx(of * WHOLE.seconds)


def test_what_explains_a_case_of_any_shard_explains_it_in_the_whole():
    """Whichever shard has the case; a run without a diagnosis stays without one."""
    parts = shards(2)
    named = [replace(part, diagnosis=Diagnosis(unexplained=(part.cases[0].id,))) for part in parts]
    (joined,), (without,) = whole_runs(named), whole_runs(parts)

    assert joined.diagnosis.unexplained == tuple(part.cases[0].id for part in parts)
    assert without.diagnosis is None


def test_shards_of_several_nights_are_a_history():
    """The first of each is one run, the second of each another."""
    later = replace(WHOLE, date="2026-03-02T00:00:00Z")
    ((pack,),) = [results_of([*shards(3, later), *shards(3)])]
    (runtime,) = pack.runtimes

    assert [run.date for run in runtime.runs] == [WHOLE.date, later.date]
    assert {run.total.cases for run in runtime.runs} == {len(WHOLE.cases)}


OTHER = {
    "another version": {"subject": JudgedSubject(WHOLE.subject.name, {"version": "0.1"})},
    "another pack": {"pack": structs.replace(WHOLE.pack, digest="0" * 64)},
    "another rule": {"rule": "atol 1"},
    "another setting": {"subject": JudgedSubject(WHOLE.subject.name, {"compute": "native"})},
}


@pytest.mark.parametrize("changes", [None, *OTHER.values()], ids=["nothing", *OTHER])
def test_a_shard_that_is_missing_is_named(changes):
    """One of another run does not stand in for it."""
    first, *others = shards(3)
    there = [] if changes is None else [replace(others[0], **changes)]

    with pytest.raises(InvalidRequest, match=r"onnxruntime .* lacks shard 2/3"):
        [*whole_runs([first, *there, others[1]])]


def test_the_night_that_lacks_a_shard_is_not_shown():
    """Two of one shard and one of the other."""
    again = [replace(each, date="2026-03-02T00:00:00Z") for each in shards(2)]

    with pytest.raises(InvalidRequest, match="has shard 1/2 twice, has shard 2/2 once"):
        results_of([*shards(2), again[0]])


def test_a_case_is_in_one_shard():
    """As where they are of two selections."""
    first, second = shards(2)

    with pytest.raises(InvalidRequest, match="a case is in two shards"):
        [*whole_runs([first, replace(second, cases=first.cases)])]


@pytest.mark.parametrize("name", ["threads", "version", "compute"])
def test_what_keeps_shards_apart_is_named(name):
    """A setting that differs, or that one of them alone has."""
    first, second = shards(2)
    about = second.subject.about | {name: "other"}
    other = replace(second, subject=JudgedSubject(second.subject.name, about))

    with pytest.raises(InvalidRequest, match=f"another run has subject's {name} 'other', and this"):
        [*whole_runs([first, other])]


def test_a_shard_has_the_cases_that_the_others_leave_it():
    """One that is cut by a case and counts its lines does not join."""
    first, *others = shards(3)
    cut = replace(first, cases=first.cases[:-1], due=first.due - 1)

    with pytest.raises(InvalidRequest, match=r"shard 1/3 has 4 cases, and the others leave it 5"):
        [*whole_runs([cut, *others])]
