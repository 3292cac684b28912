"""`rnncli inspect`, `lint` and `schema`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
import yaml

from rnncli.cases.library import spec_names, specs_folder
from rnncli.cli.schema import SCHEMAS
from rnncli.files.formats import read_tensors

DATA = Path(__file__).parents[1] / "data"


EXAMPLES = [name for name in spec_names() if name.startswith("ops/")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_inspected_config_is_the_same_case(rnncli, name, tmp_path, monkeypatch):
    """What `inspect` prints has every default, and runs to the same outputs."""
    monkeypatch.chdir(specs_folder() / "ops")  # where files named in specs lie
    printed = rnncli("inspect", name).out
    short = name.rpartition("/")[2]
    again = Path(f"{short}.yaml")

    record = json.loads(rnncli("inspect", name, "--json").out)
    assert record["op"] == yaml.safe_load(printed)["op"]
    assert rnncli("run", again, "-o", tmp_path / "a.npz").code == 0
    copy = tmp_path / f"{short}.yaml"
    copy.write_text(printed)
    shutil.copy(specs_folder() / "ops" / "c0.npz", tmp_path)
    assert rnncli("run", copy, "-o", tmp_path / "b.npz").code == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert list(read_tensors(tmp_path / "a.npz")) == record["outputs"]


def test_model_shows_its_recurrent_nodes_where_they_sit(rnncli):
    """Silero's two LSTMs are in the branches of an If."""
    model = DATA / "silero-vad" / "silero_vad_16k_op15.onnx"
    record = json.loads(rnncli("inspect", model, "--json").out)

    assert [node["operator"] for node in record["recurrent_nodes"]] == ["LSTM-14", "LSTM-14"]
    assert "If_1.then_branch" in record["recurrent_nodes"][0]["where"]
    assert record["recurrent_nodes"][0]["attributes"]["hidden_size"] == 128
    assert yaml.safe_load(rnncli("inspect", model).out)["inputs"] == record["inputs"]
    assert record["not_evaluated"] == []


def test_a_model_shows_recurrent_nodes_that_cannot_run(rnncli, tmp_path):
    """An LSTM with attention is not denied: it stands under `not_evaluated`, in YAML and JSON."""
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[4,2,3] x) => (y) { [lstm] y = com.microsoft.AttnLSTM (x) }"""
    onnx.save(onnx.parser.parse_model(text), model := tmp_path / "attention.onnx")

    record = json.loads(rnncli("inspect", model, "--json").out)

    assert record["recurrent_nodes"] == []
    assert record["not_evaluated"] == [
        {
            "node": "lstm",
            "operator": "com.microsoft::AttnLSTM",
            "where": "graph / lstm",
        }
    ]
    assert yaml.safe_load(rnncli("inspect", model).out) == record


def test_lint_lists_all_findings_at_once(rnncli, tmp_path):
    """Every finding of a file, each with its place; exit 1; a clean file is silent."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        "op: LSTM-14\n"
        "sizes: {seq_length: 4, batch_size: 2, input_size: 3, hiden_size: 5}\n"
        "attributes: {clip: -1, layuot: 1}\n"
    )

    outcome = rnncli("lint", wrong)

    assert outcome.code == 1
    assert f"{wrong}:2:54: unknown size 'hiden_size'; did you mean 'hidden_size'?" in outcome.out
    assert f"{wrong}:3:20: attribute 'clip' must be greater than 0" in outcome.out
    assert "'layuot'; did you mean 'layout'?" in outcome.out
    findings = [json.loads(line) for line in rnncli("lint", wrong, "--json").out.splitlines()]
    assert [finding["line"] for finding in findings] == [2, 2, 3, 3]
    clean = rnncli("lint", *EXAMPLES)
    assert (clean.code, clean.out, clean.err) == (0, "", "")


def test_lint_of_standard_input_and_of_nothing(spawned, rnncli, tmp_path):
    """`-` is standard input; a missing file is exit 2."""
    assert spawned("lint", "-", stdin="op: LSTM-14\n").code == 1
    assert rnncli("lint", tmp_path / "missing.yaml").code == 2
    assert rnncli("lint").code == 2


def test_schema_is_the_one_that_ships(rnncli, tmp_path):
    """`rnncli schema` prints what specs/schema holds, or writes it."""
    folder = specs_folder() / "schema"
    names = {what: f"{what}.schema.json" for what in SCHEMAS}
    assert {path.name for path in folder.iterdir()} == {*names.values()}
    for what, name in names.items():
        shipped = (folder / name).read_text(encoding="utf-8")
        assert rnncli("schema", what).out == shipped
        assert rnncli("schema", what, "-o", tmp_path / name).code == 0
        written = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        assert "written by rnncli" in written.pop("$comment")  # so that it is replaced again
        assert written == json.loads(shipped)
    assert rnncli("schema").out == rnncli("schema", "config").out
