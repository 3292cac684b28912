"""What commands print of every row of our tables; transcripts show a few."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from support.shipped import suite as shipped
from support.tables import every

from rnncli.cases.library import spec_names, specs_folder, suite_names
from rnncli.cli.look_up import SCHEMAS
from rnncli.cli.options import NAMED_TARGET, SUITE
from rnncli.files.formats import read_tensors
from rnncli.mutants.catalogue import EVERY, mutants_of, scored_of, structural_of
from rnncli.operators import OPERATORS
from rnncli.recurrence import quantisation
from rnncli.recurrence.readings import READINGS

EXAMPLES = [name for name in spec_names() if name.startswith("ops/")]


@pytest.fixture
def records(rnncli):
    """The objects that a command prints, NaN of a broken clip included."""

    def read(*words):
        done = rnncli(*words, "--json")
        assert (done.code, done.err) == (0, "")
        return [json.loads(line, parse_constant=pytest.fail) for line in done.out.splitlines()]

    return read


def test_every_row_is_listed(rnncli, records):
    """In the order of the tables; mutants by cell in any case of its letters."""
    of_lstm = [row.id for row in (*mutants_of("LSTM"), *structural_of("LSTM"))]
    mutants = records("mutants")
    scored = [r for r in mutants if r["kind"] == "semantic" and "LSTM" in r["cells"]]

    assert [row["operator"] for row in rnncli("ops").rows] == list(OPERATORS)
    assert [row["bug"] for row in rnncli("mutants").rows] == list(EVERY)
    assert [record["id"] for record in mutants] == list(EVERY)
    assert [row["bug"] for row in rnncli("mutants", "--cell", "lstm").rows] == of_lstm
    assert len(scored) == len(scored_of("LSTM", quantised=True, dressed=True))


@every("name", OPERATORS)
def test_page_shows_everything_of_the_row(rnncli, records, name):
    """Inputs, outputs, attributes, equations, activations and readings are all on the page."""
    row, page = OPERATORS[name], rnncli("ops", name).out
    (record,) = records("ops", name)
    choices = [f"{n}={choice}" for n in row.readings for choice in READINGS[n].choices]
    functions = (
        row.activations if row.dialect.startswith("ONNX") else map(str.lower, row.activations)
    )
    equations = row.cell.equations.splitlines()
    tensors = [tensor.name for tensor in (*row.inputs, *row.outputs)]

    for word in (*tensors, *row.attributes, *functions, *row.dtypes, *choices):
        assert word in page
    assert all(line.partition("   or 1 - it")[0] in page for line in equations)
    assert row.quantised == all(line in page for line in quantisation.EQUATIONS.splitlines())
    assert record["name"] == name
    assert [each["name"] for each in record["inputs"]] == [each.name for each in row.inputs]


@pytest.mark.parametrize("name", suite_names())
def test_shipped_suites_are_listed_by_name(records, name):
    """From wherever one is; as JSON."""
    assert [record["id"] for record in records("list", name)] == [
        entry.id for entry in shipped(name).entries
    ]


@every("name", EXAMPLES)
def test_every_shipped_spec_runs_by_name(rnncli, name):
    """Each spec is a target, found by its name, and gives finite numbers."""
    outcome = rnncli("run", name)

    assert (outcome.code, outcome.err) == (0, "")
    assert {(row["nan"], row["inf"]) for row in outcome.rows} == {("0", "0")}


@pytest.mark.parametrize("name", EXAMPLES)
def test_inspected_config_is_the_same_case(rnncli, records, name, tmp_path, monkeypatch):
    """What `inspect` prints has every default, and runs to the same outputs."""
    monkeypatch.chdir(specs_folder() / "ops")  # where files named in specs lie
    printed, short = rnncli("inspect", name).out, name.rpartition("/")[2]
    (tmp_path / f"{short}.yaml").write_text(printed)
    shutil.copy(specs_folder() / "ops" / "c0.npz", tmp_path)
    codes = [
        rnncli("run", folder / f"{short}.yaml", "-o", tmp_path / out).code
        for folder, out in ((Path(), "a.npz"), (tmp_path, "b.npz"))
    ]
    (record,) = records("inspect", name)

    assert codes == [0, 0]
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert list(read_tensors(tmp_path / "a.npz")) == record["outputs"]
    assert record["op"] == yaml.safe_load(printed)["op"]


def test_schemas_are_those_that_ship_and_clean_files_are_silent(rnncli):
    """`rnncli schema` prints what specs/schema holds; `lint` says nothing of what ships."""
    texts = {path.name: path.read_text("utf-8") for path in (specs_folder() / "schema").iterdir()}
    clean = rnncli("lint", *EXAMPLES, "core", "reject")

    assert texts == {f"{what}.schema.json": rnncli("schema", what).out for what in SCHEMAS}
    assert (clean.code, clean.out, clean.err) == (0, "", "")


def test_names_are_completed():
    """Suites behind files, because bash drops what it was offered before; configs for `run`."""
    offered = [(item.type, item.value) for item in SUITE.shell_complete(None, None, "three")]
    configs = [item.value for item in NAMED_TARGET.shell_complete(None, None, "lstm_14_peep")]

    assert offered == [("file", "three"), ("plain", "three-way")]
    assert "lstm_14_peepholes" in configs
