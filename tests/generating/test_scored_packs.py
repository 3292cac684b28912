"""Claims about scored packs: each case says which mutants it catches, the same everywhere."""

import json

import jsonschema
import pytest
from msgspec.structs import replace as with_entries
from support.forged_packs import write_manifest
from support.small_suite import small_suite

from rnncli.errors import NothingSelected, UnreadableFile
from rnncli.generating.generation import GenerationPlan, check, generate
from rnncli.generating.leftovers import Journal, premises
from rnncli.jobs.workers import EXECUTORS, Workers
from rnncli.mutants.catalogue import scored_of
from rnncli.packs.conversion import convert_pack
from rnncli.packs.manifest import MANIFEST, Manifest, manifest_schema
from rnncli.packs.pack import open_pack
from rnncli.reports.inspection import pack_record
from rnncli.verifying.scoring import ScoringPlan, score_all, select

TEXT = """\
suite: scored
summary: A case of two cells, one that must be refused, and one of half precision.
score: true
golden: float64
defaults: {sizes: {seq_length: 2, batch_size: 2, input_size: 3, hidden_size: 5}}
cases:
  plain:
    inputs: {B: uniform}
    matrix: {op: [RNN-7, GRU-14]}
  half: {op: RNN-14, dtype: float16}
  shape: {op: RNN-14, breaks: {shapes: {W: [1, 3, 3]}}}
"""


def write(folder, text=TEXT, **options):
    """Generate the suite; return what came of it."""
    return generate(GenerationPlan(suite=small_suite(text), **options), folder, lambda _: None)


def findings(folder, **options):
    """Check the folder against the suite."""
    report = check(GenerationPlan(suite=small_suite(TEXT), **options), folder, lambda _: None)
    return [*report.findings]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """The pack, as one process writes it."""
    folder = tmp_path_factory.mktemp("packs") / "scored"
    assert write(folder).failed == ()
    return folder


def test_a_case_lists_what_its_score_says_it_kills(pack):
    """`score` and the manifest never disagree; who must be refused kills nothing."""
    plan = ScoringPlan(suite=str(pack))
    matrix = score_all(plan, select(plan), lambda _: None)
    wanted = {row.id: row.kills for row in matrix.rows}
    found = {record.id: record.kills for record in open_pack(pack).manifest.cases}

    assert found == {**wanted, "rnn_14_shape": []}
    assert all(len(kills) > 20 for kills in wanted.values())


def test_the_manifest_lists_what_was_tried(pack):
    """So that what no case kills is known, too."""
    record = json.loads((pack / MANIFEST).read_text())

    jsonschema.validate(record, manifest_schema())
    assert record["mutants"] == {
        cell: [mutant.id for mutant in scored_of(cell)] for cell in ("RNN", "GRU")
    }


def test_only_suites_that_ask_for_it_are_scored(tmp_path):
    """Ten thousand cases need not wait for it."""
    write(tmp_path, TEXT.replace("score: true\n", ""))
    record = json.loads((tmp_path / MANIFEST).read_text())

    jsonschema.validate(record, manifest_schema())
    assert "mutants" not in record
    assert not any("kills" in case for case in record["cases"])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("layout", ["onnx", "npz"])
def test_bytes_depend_on_nobody(pack, tmp_path, layout, executor):
    """Whoever works, and whether it was converted."""
    write(tmp_path / "made", layout=layout, workers=Workers(jobs=2, executor=executor))
    convert_pack(open_pack(pack), tmp_path / "converted", layout)

    assert findings(tmp_path / "made", layout=layout) == []
    made, converted = ((tmp_path / n / MANIFEST).read_bytes() for n in ("made", "converted"))
    assert made == converted


def test_a_run_that_goes_on_keeps_what_was_scored(pack, tmp_path):
    """The journal holds it."""
    write(tmp_path)
    journal, suite = Journal(tmp_path), small_suite(TEXT)
    records = open_pack(tmp_path).manifest.cases
    journal.begin(premises(suite), {record.id for record in records}, records[:2])
    (tmp_path / MANIFEST).unlink()

    assert write(tmp_path).reused == 2
    assert (tmp_path / MANIFEST).read_bytes() == (pack / MANIFEST).read_bytes()


def test_a_check_finds_another_kill(pack):
    """What a case claims to kill is checked like every byte."""
    manifest = open_pack(pack).manifest
    record = manifest.cases[0]
    lying = with_entries(record, kills=record.kills[1:])
    changed = Manifest(manifest.header, (lying, *manifest.cases[1:]), manifest.files)
    before = (pack / MANIFEST).read_bytes()
    try:
        (pack / MANIFEST).write_bytes(changed.contents()[MANIFEST])
        assert findings(pack) == [(MANIFEST, "stale or altered")]
    finally:
        (pack / MANIFEST).write_bytes(before)


def test_cases_are_selected_by_what_they_kill(pack):
    """`-k kills:ID`, alone or with other words; what nobody kills selects nothing."""

    def chosen(expression):
        return [record.id for record in open_pack(pack).select(expression)]

    assert chosen("kills:bias-of-z-dropped") == ["gru_14_plain"]
    assert chosen("kills:recurrent-weights-transposed and rnn") == ["rnn_7_plain", "rnn_14_half"]
    assert "rnn_14_shape" in chosen("not kills:biases-dropped")
    with pytest.raises(NothingSelected):
        chosen("kills:nothing-like-it")


def test_an_inspection_counts_what_is_killed(pack, tmp_path):
    """And names what is not; of a pack that is not scored it says nothing."""
    record = pack_record(open_pack(pack))
    plan = ScoringPlan(suite=str(pack))
    matrix = score_all(plan, select(plan), lambda _: None)

    for score in matrix.by_cell:
        found = record["mutants"][score.name]
        assert (found["killed"], found["of"]) == (score.killed, score.mutants)
        assert found["not killed"] == [
            each.bug.mutant for each in matrix.survivors if each.bug.cell == score.name
        ]
    write(tmp_path, TEXT.replace("score: true\n", ""))
    assert "mutants" not in pack_record(open_pack(tmp_path))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda header, case: case.pop("kills"),
        lambda header, case: header.pop("mutants"),
        lambda header, case: case.update(kills=["nothing-like-it"]),
        lambda header, case: case.update(kills="all"),
        lambda header, case: header.update(mutants=["all"]),
    ],
)
def test_a_scored_pack_is_scored_as_a_whole(pack, tmp_path, spoil):
    """A manifest that says something else of some cases is refused, whoever computed its digest."""
    data = json.loads((pack / MANIFEST).read_bytes())
    spoil(data, data["cases"][1])
    write_manifest(tmp_path, data)

    with pytest.raises(UnreadableFile, match=r"manifest\.json.*(kills|mutants)"):
        open_pack(tmp_path)
