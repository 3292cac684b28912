"""Claims about the tables of `rnncli bench`."""

import pytest

from rnncli.reports import contests


@pytest.mark.parametrize(("columns", "missing"), [(200, []), (80, ["GB/s"]), (20, ["quartiles"])])
def test_a_narrow_terminal_has_fewer_columns(monkeypatch, columns, missing):
    """What is left out first matters least; time and speed always stay."""
    monkeypatch.setattr(contests.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: size)
    size = type("Size", (), {"columns": columns})
    row = dict.fromkeys(contests.DRAWN, "12345678")

    names = contests._fitting([row])

    assert {"time", "speed", "error", "MiB"} <= {*names}
    assert not {*missing} & {*names}
    assert missing or names == list(contests.DRAWN)
