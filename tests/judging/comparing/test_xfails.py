"""Files of known failures."""

import pytest

from rnncli.errors import ConfigError, UnreadableFile
from rnncli.judging.comparing import xfails
from rnncli.judging.comparing.verdict import FAILURES, CaseVerdict, Verdict
from rnncli.judging.comparing.xfails import MOST_DOUBTED, parse_xfails, read_xfails

TEXT = """\
# of 2026.4

lstm_14_peepholes*  [differs]      ignores P, https://example.com/1234 # and B
gru_14_[ab]         [refused,crashed] loses its B
  rnn_7_plain   takes the process down
lstm_14_*  other reasons
"""
XFAILS = parse_xfails(TEXT, "known.txt")
PEEPHOLES = "ignores P, https://example.com/1234 # and B"
DOWN = "takes the process down"
REMOVE = f"remove that line ({PEEPHOLES})"

# id, verdict -> reason
REASONS = [
    ("lstm_14_peepholes_both", Verdict.DIFFERS, PEEPHOLES),
    *(
        ("lstm_14_peepholes", right, f"known.txt:3 'lstm_14_peepholes*': narrow or {REMOVE}")
        for right in (Verdict.PASS, Verdict.ACCEPTABLE)
    ),
    ("rnn_7_plain", Verdict.PASS, f"known.txt:5 'rnn_7_plain': remove that line ({DOWN})"),
    ("lstm_14_peepholes", Verdict.CRASHED, "other reasons"),
    ("lstm_14_peepholes", Verdict.SKIPPED, ""),
    ("gru_14_a", Verdict.REFUSED, "loses its B"),
    ("gru_14_b", Verdict.CRASHED, "loses its B"),
    ("gru_14_b", Verdict.DIFFERS, ""),
    ("gru_14_c", Verdict.REFUSED, ""),
    ("GRU_14_A", Verdict.REFUSED, ""),
    ("rnn_7_plain", Verdict.TIMEOUT, DOWN),
    ("rnn_7_plain_2", Verdict.TIMEOUT, ""),
]


@pytest.mark.parametrize(("case_id", "verdict", "reason"), REASONS)
def test_the_first_entry_that_fits_gives_the_reason(case_id, verdict, reason):
    """By id or pattern and by verdict; what passes has its line too, what was skipped none."""
    assert XFAILS.reason(case_id, verdict) == reason


def test_an_entry_without_verdicts_expects_any_failure():
    """And nothing else; a case without results shows no bug, so [missing] must be written."""
    for verdict in Verdict:
        failures = FAILURES - {Verdict.MISSING}
        expected = verdict in failures or verdict in {Verdict.PASS, Verdict.ACCEPTABLE}
        assert bool(XFAILS.reason("rnn_7_plain", verdict)) == expected


@pytest.mark.parametrize("verdict", Verdict)
def test_an_expected_failure_does_not_fail_and_its_absence_does(verdict):
    """So that the list stays true; a case that was skipped is neither."""
    expected = XFAILS.reason("rnn_7_plain", verdict)
    found = CaseVerdict("rnn_7_plain", verdict, expected=expected)

    assert found.fails == (verdict in {Verdict.PASS, Verdict.ACCEPTABLE, Verdict.MISSING})


def test_a_pattern_of_every_case_is_told():
    """It would hide whatever comes; one case alone may well be known to fail."""
    everything = parse_xfails("* known", "known.txt")

    assert list(everything.doubts(["a", "b"])) == [
        "known.txt:1:1: '*' matches every case: no failure would count"
    ]
    assert list(everything.doubts(["a"])) == []


def test_entries_that_match_every_case_together_are_told():
    """As one that matches every case by itself."""
    both = parse_xfails("a* known\nb known", "known.txt")

    assert list(both.doubts(["a1", "a2", "b"])) == [
        "known.txt: its entries together match every case: no failure would count"
    ]
    assert list(both.doubts(["a1", "b", "c"])) == []


def test_patterns_of_no_case_are_told_with_their_place():
    """A renamed case is found by its likeness."""
    ids = ["rnn_7_plane", "gru_14_a", "lstm_14_peepholes"]

    assert list(XFAILS.doubts(ids)) == [
        "known.txt:5:3: 'rnn_7_plain' matches no case of the pack; did you mean 'rnn_7_plane'?"
    ]


# line -> what is wrong with it
WRONG = {
    "rnn_7_plain": "'rnn_7_plain' has no reason",
    "rnn_7_plain [differs]": "'rnn_7_plain' has no reason",
    "rnn_7_plain [differ] a reason": "'differ' is not a verdict that can be expected; did you",
    "rnn_7_plain [pass] a reason": "'pass' is not a verdict that can be expected",
    "rnn_7_plain [skipped] a reason": "'skipped' is not a verdict that can be expected",
    "rnn_7_plain [] a reason": "'' is not a verdict that can be expected",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_is_told_with_its_place(line):
    """File, line and column."""
    with pytest.raises(ConfigError) as raised:
        parse_xfails(f"# comment\n\n   {line}", "known.txt")

    assert str(raised.value).startswith(f"known.txt:3:4: {WRONG[line]}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gru_1 [crashed] why", "known.txt:2 expects crashed, not differs"),
        ("gru_* [timeout, crashed] why", "known.txt:2 expects crashed or timeout, not differs"),
        ("gru_1 why", ""),
        ("gru_2 [crashed] why", ""),
    ],
)
def test_a_line_that_expects_another_failure_is_named(line, said):
    """A case that it names fails in another way; one without verdicts expects them all."""
    found = parse_xfails(f"# comment\n{line}", "known.txt")

    assert found.contradiction("gru_1", Verdict.DIFFERS) == said


def test_every_wrong_line_is_told_at_once():
    """All findings of the file, each on a line of its own."""
    with pytest.raises(ConfigError) as raised:
        parse_xfails("a\nb reason\nc\n", "known.txt")

    assert [line.partition(" ")[0] for line in str(raised.value).splitlines()] == [
        "known.txt:1:1:",
        "known.txt:3:1:",
    ]


@pytest.mark.parametrize("content", [b"a reason\r\n", b"\xef\xbb\xbfa reason", b"a\treason"])
def test_files_of_other_editors_are_read(tmp_path, content):
    """Windows line ends, a byte order mark, tabs."""
    path = tmp_path / "known.txt"
    path.write_bytes(content)

    assert read_xfails(path).reason("a", Verdict.DIFFERS) == "reason"


def test_unreadable_files_are_refused(tmp_path):
    """Missing, a folder, no text: one line that names it."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("missing", ".", "binary"):
        with pytest.raises(UnreadableFile, match=r"^[^\n]+$"):
            read_xfails(tmp_path / name)


@pytest.mark.parametrize("content", ["", "\n", "# none is known\n"])
def test_a_list_may_be_empty(tmp_path, content):
    """As before the first failure is known and after the last one is mended."""
    path = tmp_path / "known.txt"
    path.write_text(content)

    assert read_xfails(path).entries == ()


def test_a_long_list_is_searched_by_id(monkeypatch):
    """Only entries with a wildcard are compared with each case; the first of both kinds counts."""
    compared = []
    monkeypatch.setattr(xfails, "fnmatchcase", lambda *words: compared.append(words) or True)
    lines = [f"case_{k} [differs] known" for k in range(500)]
    known = parse_xfails("\n".join([*lines, "case_* [differs] others"]), "known.txt")
    ids = [f"case_{k}" for k in range(1000)]

    assert {known.reason(each, Verdict.DIFFERS) for each in ids[:500]} == {"known"}
    assert {known.reason(each, Verdict.DIFFERS) for each in ids[500:]} == {"others"}
    assert len(compared) == len(ids)


def test_many_entries_of_no_case_are_counted():
    """The first of them are named."""
    known = parse_xfails("\n".join(f"gone_{k} known" for k in range(500)), "known.txt")
    sentences = list(known.doubts(["gru", "lstm"]))

    assert len(sentences) == MOST_DOUBTED + 1
    assert sentences[-1] == "480 more known failures match no case of the pack"
