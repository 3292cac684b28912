"""Claims about `rnncli trace`, and about statements in `list` and `inspect`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from rnncli.verifying.tracing.statements import CheckKind
from rnncli.verifying.tracing.tracing import INCOMPLETE, CaseTrace, CoverageState, TraceMatrix

CORE = Path(__file__).parents[2] / "vectors" / "core"
CLIP = "id:lstm_14_clip or id:lstm_14_clip_inactive"
SUITE = """\
suite: small
summary: One case that runs, one that must be refused.
golden: float64
cases:
  one:
    op: RNN-14
    sizes: {seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 5}
  two:
    op: RNN-14
    sizes: {seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 5}
    breaks: {attributes: {clip: -1}}
"""


def test_a_pipe_gets_a_table(rnncli):
    """A row a statement of the operators that the cases are of; the sum is on stderr."""
    done = rnncli("trace", CORE, "-k", CLIP)

    rows = {row["statement"]: row for row in done.rows}
    states = {name: row["state"] for name, row in rows.items()}
    assert done.code == 0
    assert {name.partition(".")[0] for name in rows} == {"lstm"}
    assert rows["lstm.clip.bounds"]["where"] == "ONNX LSTM-22, attribute clip"
    assert rows["lstm.clip.bounds"]["cases"] == "1"
    assert states["lstm.clip.bounds"] == "checked"
    assert states["lstm.p.gates"] == "unchecked"
    assert states["lstm.clip.refused"] == "beyond"
    assert states["lstm.support"] == "untestable"
    assert re.match(rf"core: {len(rows)} statements, 2 cases: \d+ checked, ", done.err)


def test_json_has_all_that_is_known(rnncli):
    """One object a statement."""
    lines = rnncli("trace", CORE, "-k", CLIP, "--json").out.splitlines()
    found = {record["statement"]: record for record in map(json.loads, lines)}

    bounds = found["lstm.clip.bounds"]
    assert bounds["cases"] == ["lstm_14_clip"]
    assert bounds["noticed"]["clip-ignored"] == 1
    assert bounds["unnoticed"] == []
    assert bounds["versions"] == [1, 7, 14, 22]
    assert bounds["versions_checked"] == [14]
    assert bounds["when"] == "writes clip and has values beyond the clip"


def test_missing_leaves_out_what_is_checked(rnncli):
    """And what no vector, or none of this pack, could check."""
    states = {row["state"] for row in rnncli("trace", CORE, "-k", CLIP, "--missing").rows}

    assert states == {"partly", "unchecked"}


def test_complete_fails_where_something_is_missing(rnncli):
    """Without it the matrix is only shown."""
    assert rnncli("trace", CORE, "-k", CLIP).code == 0
    assert rnncli("trace", CORE, "-k", CLIP, "--complete").code == 1
    assert rnncli("trace", CORE, "lstm.clip.bounds", "-k", CLIP, "--complete").code == 0
    assert rnncli("trace", CORE, "lstm.p.gates", "-k", CLIP, "--complete").code == 1


def test_complete_fails_where_cases_of_a_kind_are_missing():
    """A statement that no case of the pack could check is not checked: only refusals, say."""
    matrix = TraceMatrix("reject", (CaseTrace("a", "LSTM", 14, CheckKind.REJECTION, {}),))
    states = {each.state for each in matrix.coverage() if each.statement.kind is CheckKind.RESULT}

    assert states == {CoverageState.BEYOND} <= {*INCOMPLETE}


def test_a_version_is_checked_by_its_own_cases_alone(rnncli):
    """The same sentence holds for all versions, and an older one may be converted wrongly."""
    both = ("-k", "id:lstm_1_first or id:lstm_14_clip")
    done = rnncli("trace", CORE, *both, "--op", "LSTM-1")
    rows = {row["statement"]: row["state"] for row in done.rows}

    assert rows["lstm.version-1"] == "checked"
    assert rows["lstm.clip.bounds"] == "unchecked"
    assert {"lstm.version-7", "lstm.layout.default", "lstm.equations.transpose"} & {*rows} == set()


def test_several_packs_count_together(rnncli, tmp_path):
    """Each case by the name that `inspect` takes."""
    runs, refuses = tmp_path / "runs.yaml", tmp_path / "refuses.yaml"
    head, cases = SUITE.split("cases:\n")
    one, two = cases.split("  two:")
    runs.write_text(f"{head}cases:\n{one}")
    refuses.write_text(f"{head}cases:\n  two:{two}")
    done = rnncli("trace", runs, "--with", refuses, "--op", "RNN-14", "--json")
    found = {record["statement"]: record for record in map(json.loads, done.out.splitlines())}

    assert found["rnn.version-14"]["cases"] == [f"{runs}::rnn_14_one"]
    assert found["rnn.clip.refused"]["cases"] == [f"{refuses}::rnn_14_two"]
    assert found["rnn.layout.refused"]["state"] == "unchecked"
    assert done.err.startswith(f"{runs}, {refuses}: ")


def test_one_statement_has_all_of_its_cases(rnncli):
    """With what each notices."""
    done = rnncli("trace", CORE, "lstm.clip.bounds", "-k", CLIP)

    assert done.code == 0
    assert done.out.startswith("lstm.clip.bounds: A value beyond the threshold")
    assert "clip-halved, noticed by 1 of these cases" in done.out
    assert done.out.splitlines()[-1].startswith("lstm_14_clip\tclip-ignored clip-doubled")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((CORE, "lstm.clip.bound"), 2, "did you mean 'lstm.clip.bounds'?"),
        ((CORE, "-k", "no_such_case"), 5, "selects no case"),
        ((CORE, "-k", CLIP, "--op", "GRU"), 5, "no case of GRU; there are cases of LSTM"),
        (
            (CORE, "-k", CLIP, "lstm.clip.refused"),
            5,
            "no case of LSTM: it takes a case that must be refused",
        ),
        ((CORE, "-k", CLIP, "--op", "LSTM-7"), 5, "no case of LSTM-7; there are cases of LSTM"),
        ((CORE, "--op", "lst"), 2, "'lst' is not one of RNN, GRU, LSTM, RNNSequence"),
        ((), 2, "Missing argument 'PACK|SUITE'"),
        (("no_such_suite",), 2, "no such"),
    ],
)
def test_wrong_and_empty_requests(rnncli, arguments, code, said):
    """Where nothing was traced nothing is green."""
    done = rnncli("trace", *arguments)

    assert (done.code, said in done.err) == (code, True)


def test_a_damaged_pack_is_refused(rnncli, tmp_path):
    """No matrix is made of it."""
    copy = tmp_path / "core"
    shutil.copytree(CORE, copy)
    path = copy / "test_rnn_7_plain" / "test_data_set_0" / "input_0.pb"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")

    done = rnncli("trace", copy)
    assert (done.code, "input_0.pb is altered" in done.err) == (2, True)


def test_a_suite_is_made_in_memory(rnncli, tmp_path):
    """Cases that must be refused check refusals."""
    path = tmp_path / "small.yaml"
    path.write_text(SUITE)
    rows = {row["statement"]: row for row in rnncli("trace", path, "-j", "2").rows}

    assert rows["rnn.clip.refused"]["first cases, or what is missing"] == "rnn_14_two"
    assert rows["rnn.version-14"]["first cases, or what is missing"] == "rnn_14_one"
    assert rows["rnn.version-22"]["state"] == "unchecked"


def test_a_terminal_of_80_columns_names_every_statement_whole(rnncli, monkeypatch):
    """Ids are for copying; where statements stand is left out there."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    done = rnncli("trace", CORE, "-k", CLIP)

    assert "lstm.alpha.default.thresholdedrelu" in done.out
    assert "attribute clip" not in done.out
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in done.out.splitlines()) <= 80


def test_list_has_the_statements_of_each_case(rnncli):
    """With --json, where asked for: they are computed."""
    lines = rnncli("list", CORE, "-k", CLIP, "--json", "--statements").out.splitlines()
    found = {record["id"]: record["statements"] for record in map(json.loads, lines)}
    plain = rnncli("list", CORE, "-k", CLIP, "--json").out.splitlines()

    assert "lstm.clip.directions" in found["lstm_14_clip"]
    assert "lstm.clip.directions" not in found["lstm_14_clip_inactive"]
    assert "statements" not in json.loads(plain[0])
    assert rnncli("list", CORE, "--statements").code == 2


def test_inspect_shows_a_case_of_a_pack(rnncli):
    """With its statements."""
    shown = yaml.safe_load(rnncli("inspect", f"{CORE}::lstm_14_clip").out)

    assert shown["operator"] == "LSTM-14"
    assert "lstm.clip.bounds" in shown["statements"]
    assert "files" not in shown
    unknown = rnncli("inspect", f"{CORE}::lstm_14_clop")
    assert (unknown.code, "did you mean 'lstm_14_clip'?" in unknown.err) == (2, True)


def test_the_page_needs_no_pack(rnncli):
    """It is a page of the site."""
    done = rnncli("trace", "--page")

    assert (done.code, done.out.startswith("# Traceability")) == (0, True)
