"""Claims about runs that others recorded: lines that are not of a pack are not taken for it."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from msgspec import structs
from support.tables import every

from rnncli.api import commands
from rnncli.errors import InvalidRequest
from rnncli.judging.claim import Claim
from rnncli.judging.comparing.verdict import OutputVerdict, Verdict
from rnncli.judging.selected import Selected
from rnncli.packs.conversion import convert_pack
from rnncli.packs.pack import open_pack
from rnncli.reports.verification_schema import CASE_NAMES
from rnncli.subjects.implementation import Implementation
from rnncli.verifying.recorded_runs import require_every_case, require_pack, unlike_pack

CORE = Path(__file__).parents[2] / "vectors" / "core"
SOME = "gru_14_clip or gru_22_nan or second_call or zero_length or clip_scope or bad"


@cache
def pack():
    """The committed pack."""
    return open_pack(CORE)


@cache
def run(backend="mutant:clip-ignored", select=SOME):
    """A run of a part of it: wrong values, NaN, later calls, another reading, no steps."""
    subject = Implementation(backend=backend)
    return commands.verify(CORE, subject=subject, cases=Selected(select=select))


def told(case, of=None, *, is_own=True):
    """What a case has otherwise than the pack."""
    return unlike_pack(case, of or run(), pack(), CASE_NAMES, is_own=is_own)


@every("backend", ["numpy", "mutant:clip-ignored", "mutant:lengths-ignored"])
def test_every_case_of_a_run_is_its_packs(backend):
    """Whatever its verdict is: by its worst elements, in all calls and by all readings."""
    assert [told(case) for case in run(backend, "").cases] == [""] * 188


def wrong():
    """The case that differs."""
    return next(case for case in run().cases if case.id == "gru_14_clip")


def of_output(**changes):
    """The case with another first output."""
    first, *others = wrong().details.outputs
    return of_case(outputs=(structs.replace(first, **changes), *others))


def of_worst(**changes):
    """The case with another worst element."""
    return of_output(worst=structs.replace(wrong().details.outputs[0].worst, **changes))


def of_case(**changes):
    """The case with other details."""
    return wrong()._replace(details=structs.replace(wrong().details, **changes))


def of_record(**changes):
    """The case with other entries of the manifest."""
    return wrong()._replace(record=structs.replace(wrong().record, **changes))


FORGED = {
    "is not in .*core": lambda: of_case(id="gru_14_made_up"),
    "is of `rnncli verify`, which judges": lambda: wrong()._replace(relation="again"),
    "has dtype 'float16', and 'float32' in": lambda: of_record(dtype="float16"),
    "has expect 'rejection', and 'result' in": lambda: of_record(expect="rejection"),
    "has data set 3, and .*core 1 of them": lambda: of_case(data_set=3),
    "lacks one of the outputs Y, Y_h": lambda: of_case(outputs=wrong().details.outputs[1:]),
    "has 4 of the 90 elements of Y": lambda: of_output(size=4),
    "has 0 of the 90 elements of Y": lambda: of_output(size=0),
    "has Y by clip-scope=other, for which": lambda: of_output(reading="clip-scope=other"),
    "has Z, which .*core does not ask for": lambda: of_case(
        outputs=(*wrong().details.outputs, OutputVerdict("Z", Verdict.PASS))
    ),
    r"has Y worst at \[9,0,0,0\], outside its shape": lambda: of_worst(index=(9, 0, 0, 0)),
    r"has Y expected 0.02\d+ .* and the pack has 0.16\d+": lambda: of_worst(
        wanted=wrong().details.outputs[0].worst.got
    ),
    r"has Y expected .* \+- 1 at .*, and the pack has": lambda: of_worst(tolerance=1.0),
    "has Y with margin 0.5, and got .* makes it 256": lambda: of_output(margin=0.5),
    "has Y with margin 256.* and got 0.16": lambda: of_worst(got=0.16),
}


@every("sentence, case", FORGED.items())
def test_a_case_that_is_not_its_packs_is_named(sentence, case):
    """Each entry that can be told from the pack is compared with it."""
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(told(case()))


def test_other_tolerances_have_other_margins():
    """Of a run by a rule of its own only cases, names and sizes are the pack's."""
    assert told(of_worst(tolerance=1.0), is_own=False) == ""
    assert "of the 90 elements" in told(of_output(size=4), is_own=False)


RUNS = {
    "is on core, digest ffff.*has digest 8ba6.*this is the form onnx": lambda whole: replace(
        whole, pack=structs.replace(whole.pack, digest="f" * 64)
    ),
    "is on core, digest not verified": lambda whole: replace(
        whole, pack=structs.replace(whole.pack, digest="")
    ),
    "is on edge, digest 8ba6[0-9a-f]*; [^;]* has digest [0-9a-f]*$": lambda whole: replace(
        whole, pack=structs.replace(whole.pack, name="edge")
    ),
    "lacks 1 of the 188 cases of": lambda whole: replace(whole, cases=whole.cases[1:]),
    "has cases that .* has not: gru_14_made_up": lambda whole: replace(
        whole, cases=(*whole.cases, of_case(id="gru_14_made_up"))
    ),
    "the claim has 3 cases, found 188": lambda whole: replace(
        whole, claim=Claim("mine", "core", whole.pack.digest, 3, [])
    ),
}


@every("sentence, change", RUNS.items())
def test_a_run_that_is_not_of_a_pack_is_refused(sentence, change):
    """By its digest, the number of its cases, or that of its claim."""
    whole = change(run("numpy", ""))

    with pytest.raises(InvalidRequest, match=sentence):
        require_whole(whole)


def require_whole(whole):
    """Hold a run against the pack."""
    require_pack(whole, pack())
    require_every_case(whole, pack())


def test_a_whole_run_is_of_its_pack():
    """As a claim is that has as many cases as meet it."""
    whole = run("numpy", "")
    claim = Claim("mine", "core", whole.pack.digest, 188, [])

    for each in (whole, replace(whole, claim=claim)):
        require_whole(each)


def test_another_form_of_a_pack_is_another_digest(tmp_path):
    """It is told, since the vectors are the same."""
    convert_pack(pack(), tmp_path / "raw", "raw")

    with pytest.raises(InvalidRequest, match="in each form, and this is the form raw"):
        require_pack(run(), open_pack(tmp_path / "raw"))
