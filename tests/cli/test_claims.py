"""Claims about `rnncli claims` and `verify --claims` as a vendor meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.small_suite import small_suite
from support.tables import every
from support.valid_records import valid_records

from rnncli import prepare
from rnncli.api import commands
from rnncli.files.described import jsonable
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.judging.selected import Selected
from rnncli.reports.verification import case_record, run_record, summary_record

CORE = Path(__file__).parents[2] / "vectors" / "core"
TEXT = """\
suite: some
summary: What a kernel that ignores clip does not get right.
seed: 3
golden: float64
notes: {Clip: the clip is ignored}
defaults:
  sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 2}
cases:
  plain: {matrix: {op: [RNN-14, GRU-14, LSTM-14]}}
  clip: {op: GRU-14, flags: [Clip], attributes: {clip: 0.1}}
  double: {op: GRU-14, dtype: float64}
"""
BACKEND = ("--backend", "mutant:clip-ignored")


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """A small pack."""
    folder = tmp_path_factory.mktemp("packs") / "some"
    assert not generate(GenerationPlan(suite=small_suite(TEXT)), folder, lambda _: None).failed
    return folder


def kernel(vector):
    """A kernel that ignores clip, in this process, as `mutant:clip-ignored` does in another."""
    return vector.run(prepare(vector.model, backend="mutant:clip-ignored"))


def lines_of(pack, **options):
    """What `verify --json` prints of that kernel."""
    report = commands.verify(pack, kernel, **options)
    cases = (case_record(report, case) for case in report.cases)
    records = (run_record(report), *cases, summary_record(report))
    return "".join(f"{json.dumps(jsonable(record))}\n" for record in records)


@pytest.fixture(scope="module")
def run(some, tmp_path_factory):
    """The lines of its run."""
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    path.write_text(lines_of(some))
    return path


@pytest.fixture
def claim(rnncli, some, run, tmp_path):
    """Its claim."""
    path = tmp_path / "claim.yaml"
    done = rnncli("claims", some, "--from", run, "-o", path)
    assert (done.code, done.out) == (0, "")
    return path


def test_a_claim_says_what_it_leaves_out(rnncli, some, run):
    """YAML on standard output, and in words what is outside, by requirement and by verdict."""
    done = rnncli("claims", some, "--from", run)
    lines = done.err.splitlines()

    assert done.code == 0
    assert done.out.splitlines()[-3:] == ["cases: 4", "require:", '  - "attributes!=clip"']
    assert lines[0] == "skipped 1: requires attributes without clip, has clip"
    assert lines[1] == "outside the claim: 1 differs"
    assert lines[2].startswith("conforms to its claim: some, 4 of 4, digest ")


def test_what_conforms_is_green_and_says_so_last(rnncli, some, claim, tmp_path):
    """In text, and in each report that is made of its lines later."""
    said = rnncli("verify", some, *BACKEND, "--claims", claim)
    lines = rnncli("verify", some, *BACKEND, "--claims", claim, "--json")
    (tmp_path / "claimed.jsonl").write_text(lines.out)
    files = {kind: tmp_path / f"claimed.{kind}" for kind in ("junit", "markdown", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    again = rnncli("report", tmp_path / "claimed.jsonl", *options)
    sentence = said.err.splitlines()[-1]

    assert (said.code, lines.code, again.code) == (0, 0, 0)
    assert " conforms to the claim of kernel: some, 4 of 4, digest " in sentence
    assert valid_records(lines.out)[0]["claim"]["require"] == ["attributes!=clip"]
    assert again.err.splitlines()[-1] == sentence
    for path in files.values():
        assert sentence in path.read_text().replace("\\", "")


def test_a_failure_inside_the_claim_is_red(rnncli, some, claim):
    """It is told as ever, and the last line says what it means."""
    text = claim.read_text().replace("cases: 4", "cases: 5")
    claim.write_text(text.replace('require:\n  - "attributes!=clip"', "require: []"))
    done = rnncli("verify", some, *BACKEND, "--claims", claim)

    assert done.code == 1
    assert "FAIL gru_14_clip" in done.err
    assert " does not conform to the claim of kernel: some, 4 of 5, " in done.err.splitlines()[-1]


OTHERS = {
    "-k plain": "--select",
    "--require layout=0": "--require",
    "--shard 1/2": "--shard",
    "--atol 1e-3": "--atol",
    "--rtol 1e-3": "--rtol",
    "--max-ulp 4": "--max-ulp",
    "--profile strict": "--profile",
    "--allow-refused": "--allow-refused",
    "--allow-missing": "--allow-missing",
    "--trust": "--trust",
    "--min-cases 2": "--min-cases",
    "--pack-digest 0123456789ab": "--pack-digest",
    "--allow-refused --atol 1e-3": "--atol and --allow-refused",
}


@every("given, named", OTHERS.items())
def test_no_option_asks_for_less_or_more_than_the_claim(rnncli, some, claim, given, named):
    """One sentence names them."""
    done = rnncli("verify", some, *BACKEND, "--claims", claim, *given.split())

    assert done.code == 2
    assert done.err == (
        f"--claims {claim}: judges exactly what the file claims, by the pack's own rule:"
        f" without {named}\n"
    )


def test_a_known_failure_is_no_part_of_a_claim(rnncli, some, claim, tmp_path):
    """It would excuse what is claimed."""
    (tmp_path / "known.txt").write_text("gru_14_clip known\n")
    done = rnncli("verify", some, *BACKEND, "--claims", claim, "--xfails", tmp_path / "known.txt")

    assert (done.code, "without --xfails" in done.err) == (2, True)


CHANGES = {
    "a digest": (("digest: ", f'digest: "{"f" * 64}"  # '), "the claim is on some, digest fff"),
    "a name": (("pack: ", 'pack: "core"  # '), "the claim is on core, digest"),
    "fewer cases": (("cases: 4", "cases: 3"), "the claim has 3 cases, found 4"),
    "more cases": (("cases: 4", "cases: 5"), "the claim has 5 cases, found 4"),
    "nothing inside": (("attributes!=clip", "opset>99"), "the claim has 4 cases, found 0"),
    "a misspelt field": (("attributes", "atributes"), "did you mean 'attributes'?"),
    "a misspelt key": (("cases:", "case:"), "'cases' is missing"),
}


@every("case", CHANGES)
def test_a_claim_on_something_else_is_an_error(rnncli, some, claim, case):
    """Before anything is judged, and never green; `lint` finds what is wrong in itself."""
    change, words = CHANGES[case]
    text = claim.read_text()
    claim.write_text(text.replace(*change))
    linted = rnncli("lint", claim)
    done = rnncli("verify", some, *BACKEND, "--claims", claim)
    claim.write_text(text)

    assert (done.code, words in done.err) == (2, True), done.err
    assert linted.out == (done.err if "misspelt" in case else "")


PARTS = {
    "a selection": ({"cases": Selected(select="plain")}, "was judged with --select"),
    "a run that stopped": ({"exitfirst": True}, "lacks 1 of the 5 cases of"),
    "a shard": ({"cases": Selected(shard="1/2")}, "lacks shard 2/2"),
}


@every("options, words", PARTS.values(), ids=str)
def test_a_run_that_is_a_part_gives_no_claim(rnncli, some, tmp_path, options, words):
    """What it did not judge might be wrong."""
    (tmp_path / "part.jsonl").write_text(lines_of(some, **options))
    done = rnncli("claims", some, "--from", tmp_path / "part.jsonl")

    assert (done.code, done.out, words in done.err) == (2, "", True), done.err


def test_all_shards_are_a_whole(rnncli, some, tmp_path, claim):
    """In any order."""
    for k in (1, 2):
        text = lines_of(some, cases=Selected(shard=f"{k}/2"))
        (tmp_path / f"{k}.jsonl").write_text(text)
    shards = [word for k in (2, 1) for word in ("--from", tmp_path / f"{k}.jsonl")]

    assert claim.read_text().startswith(rnncli("claims", some, *shards).out)


def test_a_claim_is_of_one_run_and_replaces_no_run(rnncli, some, run, tmp_path):
    """Nothing is written otherwise."""
    twice = tmp_path / "twice.jsonl"
    twice.write_text(run.read_text() * 2)
    several = rnncli("claims", some, "--from", twice, "-o", tmp_path / "claim.yaml")
    over = rnncli("claims", some, "--from", run, "-o", run)

    assert (several.code, "and there are 2" in several.err) == (2, True)
    assert (over.code, "it is an input of this command" in over.err) == (2, True)
    assert not (tmp_path / "claim.yaml").exists()


LIES = {
    "fewer cases": (('"cases": 4, "require"', '"cases": 3, "require"'), "does not count its cases"),
    "tolerances": (('["--claims"]', '["--claims", "--atol"]'), "does not count its cases"),
    "another pack": (
        ('"pack": "some", "digest": "', '"pack": "some", "digest": "0'),
        "match ^[0-9",
    ),
    "a misspelt entry": (('"require"', '"requires"'), "line 1.claim has no 'require'"),
}


@every("lie, words", LIES.values(), ids=str)
def test_lines_that_claim_something_else_are_refused(rnncli, some, claim, lie, words):
    """The summary of a run says what its claim makes of it."""
    path = claim.with_suffix(".jsonl")
    path.write_text(lines_of(some, claims=claim).replace(*lie))
    done = rnncli("report", path)

    assert (done.code, words in done.err) == (2, True), done.err


def test_onnxruntime_conforms_to_the_claim_that_its_run_gives(rnncli, tmp_path):
    """On the committed pack: what it refuses, and what it gets wrong, is outside."""
    pytest.importorskip("onnxruntime")
    runtime = ("--runtime", "onnxruntime")
    (tmp_path / "run.jsonl").write_text(rnncli("verify", CORE, *runtime, "--json").out)
    made = rnncli("claims", CORE, "--from", tmp_path / "run.jsonl", "-o", tmp_path / "claim.yaml")
    done = rnncli("verify", CORE, *runtime, "--claims", tmp_path / "claim.yaml")

    assert (made.code, done.code) == (0, 0)
    assert "layout!=1" in (tmp_path / "claim.yaml").read_text()
    assert done.err.splitlines()[-1] == made.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("conforms to its claim: core, 1")
