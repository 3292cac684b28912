"""Claims about files of statements: what a row means, and the place of every mistake."""

from __future__ import annotations

import pytest
from support.tables import every

from rnncli.errors import ConfigError, UnreadableFile
from rnncli.verifying.tracing.statements import CheckKind, read_statements

TEXT = """\
operators: RNN GRU LSTM
sections:
- section: attribute clip
  statements:
    clip.bounds:
      says: A value beyond the threshold becomes the threshold.
      when: [writes clip, has values beyond the clip]
      against: clip-ignored peepholes-dropped
- section: attribute layout
  of: GRU LSTM
  statements:
    layout.given:
      says: "Layouts are two: 0 and 1."
      of: GRU
      since: 3
      until: 14
      except: GRU-7
      when: writes layout 1
    layout.refused:
      says: There is no other.
      kind: rejection
      when: breaks layout alone
    layout.why:
      says: It is convenient.
      why_not: nobody can tell
"""


@pytest.fixture
def read(tmp_path):
    """A function that reads a file of statements in which some text is replaced."""

    def reading(old="", new=""):
        assert TEXT.count(old) == 1 or not old
        path = tmp_path / "mine.yaml"
        path.write_text(TEXT.replace(old, new) if old else TEXT)
        return read_statements(path)

    return reading


def test_a_row_is_a_statement_for_each_operator(read):
    """With the versions, and the violations that its cell can have."""
    rows = {row.id: row for row in read()}

    bounds = rows["lstm.clip.bounds"]
    assert [row for row in rows if row.endswith("bounds")] == [
        "rnn.clip.bounds",
        "gru.clip.bounds",
        "lstm.clip.bounds",
    ]
    assert bounds.sentence == "A value beyond the threshold becomes the threshold."
    assert (bounds.section, bounds.versions) == ("attribute clip", (1, 7, 14, 22))
    assert bounds.when.words == "writes clip and has values beyond the clip"
    assert (bounds.kind, bounds.why_not) == (CheckKind.RESULT, "")
    assert bounds.against == ("clip-ignored", "peepholes-dropped")
    assert rows["rnn.clip.bounds"].against == ("clip-ignored",)


def test_a_section_names_the_operators_of_its_statements(read):
    """Unless one names its own; versions are from one to another, but for those left out."""
    rows = {row.id: row for row in read()}

    assert {id_ for id_ in rows if "layout" in id_} == {
        "gru.layout.given",
        *("gru.layout.refused", "lstm.layout.refused"),
        *("gru.layout.why", "lstm.layout.why"),
    }
    assert rows["gru.layout.given"].versions == (3, 14)
    assert rows["gru.layout.refused"].kind is CheckKind.REJECTION
    assert rows["gru.layout.why"].kind is CheckKind.NONE
    assert rows["gru.layout.why"].when.words == ""


@every(
    ("old", "new", "line", "said"),
    [
        ("operators: ", "operator: ", 1, "unknown key 'operator'; did you mean 'operators'?"),
        ("operators: RNN GRU LSTM\n", "", 1, "a file of statements has no operators"),
        ("operators: RNN", "operators: RRN", 1, "unknown operator 'RRN'"),
        ("- section: attribute clip\n  ", "- ", 3, "a section has no section"),
        ("of: GRU LSTM", "of: GRU LSTN", 10, "unknown operator 'LSTN'; did you mean 'LSTM'?"),
        ("of: GRU\n", "of: RNN\n", 14, "unknown operator 'RNN' (there are GRU, LSTM)"),
        ("      says: A value beyond the threshold becomes the threshold.\n", "", 6, "no says"),
        ("says: There is no other.", "says: 3", 20, "expected text, got 3"),
        ("says: There is no other.", "says:", 20, "expected text, got null"),
        ("against:", "agianst:", 8, "unknown key 'agianst'; did you mean 'against'?"),
        ("clip-ignored", "clip-ignord", 8, "'clip-ignord'; did you mean 'clip-ignored'?"),
        ("writes clip,", "writs clip,", 7, "'writs clip'; did you mean 'writes clip'?"),
        ("has values beyond", "has valeus beyond", 7, "did you mean 'has values beyond the clip'?"),
        ("breaks layout alone", "breaks layot alone", 22, "did you mean 'layout'?"),
        ("writes clip,", "uses Tanhh,", 7, "unknown function 'Tanhh'; did you mean 'Tanh'?"),
        ("writes layout 1", "gives B and Q", 18, "unknown input 'Q' (there are X, W, R, B"),
        ("writes layout 1", "asks for Y_c", 18, "unknown output 'Y_c'"),
        ("writes layout 1", "[[writes layout]]", 18, "expected text, got a list of 1"),
        ("kind: rejection", "kind: rejecting", 21, "did you mean 'rejection'?"),
        ("kind: rejection", "kind: 3", 21, "unknown kind '3'"),
        ("since: 3", "since: three", 15, "expected a version, got 'three'"),
        ("since: 3", "since: true", 15, "expected a version, got true"),
        ("since: 3", "since: 15", 12, "'layout.given' applies to no version of GRU"),
        ("except: GRU-7", "except: GRU-8", 17, "unknown operator version 'GRU-8'"),
        ("layout.why:", "layout.refused:", 23, "'layout.refused' is already set on line 19"),
        ("    clip.bounds:", "    - clip.bounds:", 5, "must be a mapping"),
        ("    clip.bounds:", "    x: 3\n    clip.bounds:", 5, "'x' must be a mapping"),
        ('two: 0 and 1."', "two: 0 and 1.", 26, "unexpected end of stream"),
    ],
)
def test_a_mistake_has_its_place(read, old, new, line, said):
    """File and line, and what was meant where that can be guessed."""
    with pytest.raises(ConfigError) as error:
        read(old, new)

    found = [sentence for place, sentence in error.value.findings if place.line == line]
    assert any(said in sentence for sentence in found), error.value.findings
    assert {place.file.rpartition("/")[2] for place, _ in error.value.findings} == {"mine.yaml"}


def test_each_condition_of_a_list_has_its_place(read):
    """And its line, where a list has several."""
    with pytest.raises(ConfigError) as error:
        read("[writes clip, has values", "[writs clip,\n             has valeus")

    assert [place[1:] for place, _ in error.value.findings] == [(7, 14), (8, 14)]


def test_an_id_stands_once(read):
    """In two sections, too."""
    with pytest.raises(ConfigError, match=r"'gru.clip.bounds' already stands on line 5"):
        read("    layout.given:", "    clip.bounds:")


def test_all_mistakes_are_told_at_once(read):
    """Each with its own place."""
    with pytest.raises(ConfigError) as error:
        read("      says: There is no other.\n      kind: rejection", "      kind: none")

    assert len(error.value.findings) == 2


def test_a_file_that_is_not_there_is_named(tmp_path):
    """As any other is."""
    with pytest.raises(UnreadableFile, match=r"none\.yaml"):
        read_statements(tmp_path / "none.yaml")
