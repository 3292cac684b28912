"""Claims about `rnncli trace`, and about statements in `list` and `inspect`."""

from __future__ import annotations

import re
from pathlib import Path

from rnncli.verifying.tracing.statements import CheckKind
from rnncli.verifying.tracing.tracing import INCOMPLETE, CaseTrace, CoverageState, TraceMatrix

CORE = Path(__file__).parents[2] / "vectors" / "core"


def test_complete_fails_where_cases_of_a_kind_are_missing():
    """A statement that no case of the pack could check is not checked: only refusals, say."""
    matrix = TraceMatrix("reject", (CaseTrace("a", "LSTM", 14, CheckKind.REJECTION, {}),))
    states = {each.state for each in matrix.coverage() if each.statement.kind is CheckKind.RESULT}

    assert states == {CoverageState.BEYOND} <= {*INCOMPLETE}


def test_a_terminal_of_80_columns_names_every_statement_whole(rnncli, monkeypatch):
    """Ids are for copying; where statements stand is left out there."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    done = rnncli("trace", CORE, "-k", "id:lstm_14_clip or id:lstm_14_clip_inactive")

    assert "lstm.alpha.default.thresholdedrelu" in done.out
    assert "attribute clip" not in done.out
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in done.out.splitlines()) <= 80
