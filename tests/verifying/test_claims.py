"""Claims about claims from runs: they hold what is right, and the run conforms to them."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs
from support.tables import every
from support.verifications import output
from support.verified import generated

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.judging.comparing.requirements import Requirements
from rnncli.judging.comparing.verdict import CaseVerdict, Verdict
from rnncli.judging.report import JudgedCase, JudgedPack, JudgedSubject, VerificationReport
from rnncli.packs.pack import open_pack
from rnncli.verifying.claims import claim_of

CORE = Path(__file__).parents[2] / "vectors" / "core"


@cache
def pack():
    """The committed pack, whose manifest is all that a claim needs."""
    return open_pack(CORE)


def needs(record):
    """What a case asks for."""
    return record.requirements


def run(verdict_of=lambda _: Verdict.PASS, of=None):
    """A run of a whole pack with a verdict on each case."""
    manifest = (of or pack()).manifest
    cases = [JudgedCase(each, said(each, verdict_of(each))) for each in manifest.cases]
    judged = JudgedPack(manifest.header["suite"], manifest.digest, "core")
    return VerificationReport(judged, JudgedSubject("mine", {"version": "1"}), "", tuple(cases))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A pack with a valid and an invalid case of each of two operators."""
    text = """\
suite: guarded
summary: Valid and invalid cases.
seed: 1
golden: float64
defaults:
  sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 2}
cases:
  plain:
    matrix: {op: [RNN-14, GRU-14]}
  shape:
    matrix: {op: [RNN-14, GRU-14]}
    breaks: {sizes: {W: {input_size: 4}}}
"""
    return open_pack(generated(tmp_path_factory.mktemp("packs") / "guarded", text))


def with_details(whole, **changes):
    """The run with other details of every case."""
    changed = (
        each._replace(details=structs.replace(each.details, **changes)) for each in whole.cases
    )
    return replace(whole, cases=tuple(changed))


def said(record, verdict):
    """A verdict on a case, with an output where one is computed."""
    is_run = record.expect == "result" and verdict in {Verdict.PASS, Verdict.DIFFERS}
    names = record.outputs if is_run else ()
    return CaseVerdict(record.id, verdict, outputs=tuple(output(n, verdict) for n in names))


def failing(verdict, has):
    """A verdict on the cases that have something; the others pass."""
    return lambda record: verdict if has(record) else Verdict.PASS


# What fails, as it is told by its need -> its predicate, and the requirements of the claim.
LACKING = {
    "nothing": (lambda _: False, []),
    "a layout": (lambda record: needs(record).layout == 1, ["layout!=1"]),
    "two dtypes": (lambda record: needs(record).dtype != "float32", None),
    "an input": (lambda record: "P" in needs(record).inputs, ["inputs!=P"]),
    "a flag": (lambda record: "SigmoidTail" in record.flags, ["flags!=SigmoidTail"]),
}


@every("has, require", LACKING.values(), ids=str)
@every("verdict", [Verdict.REFUSED, Verdict.DIFFERS, Verdict.CRASHED, Verdict.SKIPPED])
def test_a_claim_holds_every_right_case_if_a_need_tells_them(has, require, verdict):
    """And nothing that is refused, wrong or not judged."""
    found = claim_of(run(failing(verdict, has)), pack())
    inside = [each.id for each in pack().manifest.cases if not has(each)]
    meets = Requirements.parse(found.claim.require)

    assert require is None or found.claim.require == require
    assert [r.id for r in pack().manifest.cases if not meets.reason(r)] == inside
    assert found.claim.cases == len(inside)
    assert found.claimed.passed
    assert found.claimed.conformance.startswith(f"conforms to its claim: core, {len(inside)} of")
    assert found.claim.implementation == "mine 1"


def test_right_cases_that_nothing_tells_from_wrong_ones_are_named():
    """They are outside, and few."""
    wrong = "lstm_14_both", "gru_14_clip"
    found = claim_of(run(failing(Verdict.DIFFERS, lambda each: each.id in wrong)), pack())
    counts, told = found.sentences
    right = [case.id for case in found.outside if case.id not in wrong]

    assert counts == f"outside the claim: {len(right)} pass, 2 differ"
    assert f"{len(right)} right case" in told
    assert all(name in told for name in right[:8])
    assert found.claim.cases == len(pack().manifest.cases) - 2 - len(right) > 150


def test_a_claim_does_not_rest_on_refusals_beside_nothing_that_runs(guarded):
    """An invalid case stays inside only beside a valid one of its operator that is right."""
    fails = failing(Verdict.DIFFERS, lambda each: each.id == "gru_14_plain")
    found = claim_of(run(fails, guarded), guarded)
    meets = Requirements.parse(found.claim.require)
    inside = [each.id for each in guarded.manifest.cases if not meets.reason(each)]

    assert inside == ["rnn_14_plain", "rnn_14_shape"]
    assert found.claimed.passed


def test_refusals_alone_are_not_a_claim(guarded):
    """Whatever else is wrong."""
    fails = failing(Verdict.DIFFERS, lambda each: each.expect == "result")

    with pytest.raises(NothingSelected, match="no case to claim: 2 pass, 2 differ"):
        claim_of(run(fails, guarded), guarded)


def test_what_excuses_failures_in_the_run_excuses_nothing_in_the_claim():
    """A known failure is outside; one that passes is inside, and no longer a failure."""
    whole = run(failing(Verdict.DIFFERS, lambda each: needs(each).layout == 1))
    known = with_details(whole, expected="known")
    found = claim_of(replace(known, concessions=("--xfails",)), pack())

    assert found.claim.require == ["layout!=1"]
    assert found.claimed.passed


def test_a_claim_of_a_claim_is_the_same():
    """The run that a claim is judged by shows as much again."""
    first = claim_of(run(failing(Verdict.REFUSED, lambda each: needs(each).layout == 1)), pack())

    assert claim_of(first.claimed, pack()).claim == first.claim


REFUSED = {
    "a part": (
        lambda whole: replace(whole, cases=whole.cases[3:]),
        InvalidRequest,
        "the run of mine 1 lacks 3 of the 188 cases of",
    ),
    "relations": (
        lambda whole: replace(whole, cases=(*whole.cases, whole.cases[0]._replace(
            details=structs.replace(whole.cases[0].details, id="x::again")))),
        InvalidRequest,
        "has cases that .* has not: x::again",
    ),
    "another pack": (
        lambda whole: replace(whole, pack=structs.replace(whole.pack, digest="f" * 64)),
        InvalidRequest,
        "the run of mine 1 is on core, digest ffffffff",
    ),
    "checksums not verified": (
        lambda whole: replace(whole, pack=structs.replace(whole.pack, digest="")),
        InvalidRequest,
        "is on core, digest not verified",
    ),
    **{
        f"with {option}": (
            lambda whole, option=option: replace(whole, concessions=(option,)),
            InvalidRequest,
            f"was judged with {option}; a claim takes a run by the pack's own rule",
        )
        for option in ("--atol", "--profile", "--select", "--weights", "--trust")
    },
    "by options that are not recorded": (
        lambda whole: replace(whole, concessions=("options not recorded",)),
        InvalidRequest,
        "was judged with options not recorded",
    ),
    "nothing right": (
        lambda _: run(lambda _: Verdict.REFUSED),
        NothingSelected,
        "no case to claim: 188 refused",
    ),
}  # fmt: skip


@every("change, error, words", REFUSED.values(), ids=str)
def test_a_run_that_shows_no_claim_gives_none(change, error, words):
    """A sentence says what the run lacks."""
    with pytest.raises(error, match=words):
        claim_of(change(run()), pack())


def test_a_claim_needs_a_case_that_computes():
    """Cases without an element are right, and show nothing."""
    with pytest.raises(NothingSelected, match="no case to claim: "):
        claim_of(with_details(run(), outputs=()), pack())
