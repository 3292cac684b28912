"""Claims about the tables of `rnncli bench`."""

import pytest

from rnncli.reports import contests
from rnncli.reports.contests import bar, draw_contest, draw_means, draw_nodes, duration


def record(name, seconds, ratio, *, workload="tiny", is_own=False):
    """What a contest says of one implementation."""
    return {
        "workload": workload,
        "operator": "LSTM",
        "sizes": "T 1",
        "implementation": name,
        "is_own": is_own,
        "status": "ran" if seconds else "crashed",
        "seconds": seconds,
        "lower_quartile": seconds,
        "upper_quartile": seconds,
        "ratio": ratio,
        **dict.fromkeys(("gflops", "of_peak", "gbytes", "of_bandwidth", "error", "memory")),
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5, "1.5 s"),
        (0.0123456, "12.3 ms"),
        (5e-6, "5 us"),
        (3e-8, "30 ns"),
        (1e-12, "0.001 ns"),
    ],
)
def test_a_time_has_a_unit(seconds, text):
    """And three digits."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"), [(1, "█" * 16), (0.5, "█" * 8), (0, ""), (1 / 128, "▏"), (0.0001, "")]
)
def test_a_bar_is_a_share_of_the_longest(share, text):
    """In eighths of a character."""
    assert bar(share) == text


def test_one_that_failed_has_a_line_without_numbers(capsys):
    """Its status stands where its time would."""
    draw_contest("tiny LSTM", [record("a", 1e-3, 1.0), record("b", None, None)])
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].strip() == "tiny LSTM"
    assert next(line.split() for line in lines if line.startswith(" b")) == ["b", "crashed"]
    assert "█" * 16 in next(line for line in lines if line.startswith(" a"))


def test_nothing_that_ran_is_a_table_all_the_same(capsys):
    """All may fail."""
    draw_contest("tiny LSTM", [record("a", None, None)])
    draw_means([record("a", None, None)])

    assert "crashed" in capsys.readouterr().out


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


def test_means_are_geometric(capsys):
    """A half and a double cancel; rivals are the best runtime of each workload."""
    draw_means(
        [
            record("a", 1.0, 1.0, workload="one"),
            record("b", 1.0, 4.0, workload="one"),
            record("ours", 1.0, 2.0, workload="one", is_own=True),
            record("a", 1.0, 1.0, workload="two"),
            record("b", None, None, workload="two"),
            record("ours", 1.0, 0.5, workload="two", is_own=True),
        ]
    )
    lines = capsys.readouterr().out.splitlines()
    ours = next(line.split() for line in lines if line.startswith(" ours"))

    assert [cell for cell in ours if "█" not in cell] == [
        *("ours", "2", "1.00", "0.50", "2.00", "0.50")
    ]


def test_operators_are_compared_with_the_first_implementation(capsys):
    """Those that only one has stand alone."""
    draw_nodes({"a": {"Add": 0.001, "Fused": 0.003}, "b": {"Add": 0.002, "Mul": 0.002}})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]

    assert ["Add", "1", "ms", "25%", "2", "ms", "50%", "2.0"] in lines
    assert ["Mul", "2", "ms", "50%"] in lines
    assert ["Fused", "3", "ms", "75%"] in lines
