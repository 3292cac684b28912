"""Claims about claims: what one says is read to the letter, and nothing else is taken for one."""

from dataclasses import replace

import pytest
from msgspec import structs
from support.tables import every
from support.verifications import PACK, claimed

from rnncli.errors import ConfigError, UnreadableFile
from rnncli.judging.claim import Claim, parse_claim, read_claim
from rnncli.judging.comparing.verdict import Verdict

CLAIM = claimed().claim
TEXT = f"""\
implementation: onnxruntime 1.31.1   # in any words
pack: core
digest: {PACK.digest}
cases: 2
require: [layout=0]
"""

NAMES = ["mine 1.0", "", "no", "1e5", "#'\"\\: {a}", "ünï→ 日本", "x" * 300]


@every("name", NAMES)
@every("require", [[], ["layout=0"], ["flags!=NaN|Clip,dtype=float32", "opset<=14"]])
def test_what_is_written_is_read_back(name, require):
    """Whatever the implementation is called, and whatever its words mean in YAML."""
    claim = Claim(name, "core", "1e" + "5" * 62, 7, require)

    assert parse_claim(claim.text, "claim.yaml") == claim


def test_what_people_write_is_read(tmp_path):
    """With comments, without quotes."""
    (tmp_path / "claim.yaml").write_text(TEXT)

    assert read_claim(tmp_path / "claim.yaml") == CLAIM


FINDINGS = {
    "nothing": ("", "1:1: a claim must be a mapping, NAME: VALUE, got null"),
    "a list": ("- 1", "1:1: a claim must be a mapping, NAME: VALUE, got a list of 1"),
    "no YAML": ("a: [", "1:5: "),
    "no number of cases": (TEXT.replace("cases: 2\n", ""), "1:1: 'cases' is missing"),
    "no requirements": (TEXT.replace("require: [layout=0]", ""), "1:1: 'require' is missing"),
    "no case": (TEXT.replace("cases: 2", "cases: 0"), "4:8: 'cases' must be from 1 to any, got 0"),
    "some cases": (TEXT.replace("2\n", "many\n"), "4:8: 'cases' must be integer, got 'many'"),
    "part of a digest": (TEXT.replace(PACK.digest, "'0123456789ab'"), "3:9: 'digest' must match"),
    "a number for a name": (TEXT.replace("pack: core", "pack: 1"), "2:7: 'pack' must be string"),
    "one requirement": (TEXT.replace("[layout=0]", "layout=0"), "5:10: 'require' must be array"),
    "a requirement twice": (
        TEXT.replace("[layout=0]", "[layout=0, layout=0]"),
        "5:10: 'require' must not have duplicates",
    ),
    "a long requirement": (
        TEXT.replace("layout=0", f"'{'layout=0,' * 500}'"),
        "5:11: 'require'[0] must have at most 4000 characters",
    ),
    "many requirements": (
        TEXT.replace("layout=0", ", ".join(f"opset<={k}" for k in range(65))),
        "5:10: 'require' must have at most 64 entries",
    ),
    "an unknown field": (
        TEXT.replace("layout=0", "layuot=0"),
        "5:11: 'require'[0] cannot require 'layuot=0': unknown field 'layuot'; did you mean",
    ),
    "an empty requirement": (TEXT.replace("layout=0", "''"), "5:11: 'require'[0] cannot require"),
    "a misspelt key": (TEXT + "xfail: a\n", "6:1: unknown key 'xfail'"),
    "a key twice": (TEXT + "cases: 1\n", "6:1: 'cases' is already set on line 4"),
}


@every("text, finding", FINDINGS.values(), ids=str)
def test_what_is_not_a_claim_is_refused_with_its_place(text, finding):
    """A misspelt entry would be one that is not judged."""
    with pytest.raises(ConfigError) as raised:
        parse_claim(text, "claim.yaml")
    assert f"claim.yaml:{finding}" in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    """As for every other file."""
    with pytest.raises(UnreadableFile, match=r"claim\.yaml: "):
        read_claim(tmp_path / "claim.yaml")


DIGEST = PACK.digest[:12]
PASSES, SKIPPED = Verdict.PASS, Verdict.SKIPPED
CONFORMS = f"conforms to its claim: core, 2 of 2, digest {DIGEST}"
ENDS = {
    "all right": (claimed(PASSES, SKIPPED, PASSES), 0, CONFORMS, ""),
    "right by another reading": (claimed(PASSES, Verdict.ACCEPTABLE), 0, CONFORMS, ""),
    "refused": (
        claimed(PASSES, Verdict.REFUSED),
        1,
        "does not conform to its claim: core, 1 of 2",
        "",
    ),
    **{
        f"{each}": (claimed(PASSES, each), 1, "does not conform to its claim: core, 1 of 2", "")
        for each in (Verdict.DIFFERS, Verdict.CRASHED, Verdict.MISSING, Verdict.TIMEOUT)
    },
    "skipped inside": (
        claimed(PASSES, SKIPPED),
        5,
        "does not conform to its claim: core, 1 of 2",
        "the claim has 2 cases, found 1",
    ),
    "more than claimed": (
        claimed(PASSES, PASSES, PASSES),
        5,
        "does not conform to its claim: core, 3 of 2",
        "the claim has 2 cases, found 3",
    ),
    "nothing": (claimed(SKIPPED), 5, "does not conform to its claim: core, 0 of 2", "no case was"),
    "refusals that show nothing": (
        claimed(PASSES, PASSES, unproved=1),
        5,
        "does not conform to its claim: core, 2 of 2",
        "1 refusal of invalid cases cannot be judged",
    ),
    "of another pack": (
        claimed(PASSES, PASSES, pack=structs.replace(PACK, digest="f" * 64)),
        5,
        "does not conform to its claim: core, 2 of 2",
        f"the claim is on core, digest {DIGEST}, and this is core, digest ffffffffffff",
    ),
    "of another name": (
        claimed(PASSES, PASSES, pack=structs.replace(PACK, name="tiles")),
        5,
        "does not conform to its claim: core, 2 of 2",
        f"and this is tiles, digest {DIGEST}",
    ),
    "checksums not verified": (
        claimed(PASSES, PASSES, pack=structs.replace(PACK, digest="")),
        5,
        "does not conform to its claim: core, 2 of 2",
        "and this is core, digest not verified",
    ),
    "by other tolerances": (
        claimed(PASSES, PASSES, concessions=("--claims", "--atol")),
        5,
        "does not conform to its claim: core, 2 of 2",
        "a claim is judged without --atol",
    ),
}


@every("report, code, sentence, shortfall", ENDS.values(), ids=str)
def test_a_run_conforms_only_if_all_that_is_claimed_is_right(report, code, sentence, shortfall):
    """However its lines were made: the counts, the pack and the options decide."""
    assert report.exit_code == code
    assert report.conformance.startswith(sentence)
    assert shortfall in report.shortfall
    assert bool(report.shortfall) is bool(shortfall)
    assert report.terms.endswith(f"; {report.conformance}")


def test_of_the_claim_of_another_both_are_named():
    """Another version as well: what it conforms to is not what it says of itself."""
    own = claimed(PASSES, PASSES)
    other = replace(own, claim=structs.replace(own.claim, implementation="mine 1.0"))

    assert other.conformance.startswith(
        "onnxruntime 1.31.1 conforms to the claim of mine 1.0: core"
    )
    assert own.conformance == CONFORMS


def test_a_run_without_a_claim_says_nothing_of_one():
    """Nothing conforms by default."""
    plain = replace(claimed(PASSES), claim=None, concessions=())

    assert (plain.conformance, plain.adherence, plain.passed) == ("", "", True)
    assert plain.terms == "the pack's tolerances"
