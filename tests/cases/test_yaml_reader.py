"""Claims about the YAML reader: core schema, places, findings, and nothing that can explode."""

import math

import pytest
from support.tables import every

from rnncli.cases.library import specs_folder
from rnncli.cases.yaml_reader import (
    DEEPEST_NESTING,
    LARGEST_FILE,
    LONGEST_SENTENCE,
    MOST_FINDINGS,
    MOST_NODES,
    Findings,
    Key,
    parse_yaml,
    plain_scalar,
    read_yaml,
)
from rnncli.errors import ConfigError, Place, UnreadableFile

# From the tables of YAML 1.2.2, section 10.3.2, and the traps of YAML 1.1.
SCALARS = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "nUll": "nUll",
    "true": True,
    "FALSE": False,
    "tRUE": "tRUE",
    "no": "no",
    "on": "on",
    "yes": "yes",
    "y": "y",
    "Off": "Off",
    "0": 0,
    "-0": 0,
    "+12": 12,
    "007": 7,
    "0o17": 15,
    "0o8": "0o8",
    "-0o7": "-0o7",
    "017": 17,
    "0x1F": 31,
    "0b101": "0b101",
    "1_000": "1_000",
    "1:30": "1:30",
    "190:20:30": "190:20:30",
    "2001-12-14": "2001-12-14",
    "1e-5": 1e-5,
    "1E5": 1e5,
    "1.": 1.0,
    ".5": 0.5,
    "-.5e+1": -5.0,
    "1.5": 1.5,
    ".": ".",
    "e5": "e5",
    "1e": "1e",
    "+": "+",
    ".inf": math.inf,
    "-.Inf": -math.inf,
    "+.INF": math.inf,
    "inf": "inf",
    "nan": "nan",
    "=": "=",
    "<<": "<<",
    "\N{ARABIC-INDIC DIGIT ONE}": "\N{ARABIC-INDIC DIGIT ONE}",
}


def plain(text):
    """The value of a text, without places."""
    return parse_yaml(text, "x.yaml").plain


def complaint(source):
    """What the reader says of a text that it refuses."""
    with pytest.raises(ConfigError) as caught:
        parse_yaml(source, "x.yaml")
    return str(caught.value)


@every(("text", "value"), SCALARS.items(), ids=map(repr, SCALARS))
def test_plain_scalars_follow_the_core_schema(text, value):
    """YAML 1.2's core schema decides, not YAML 1.1's."""
    found = plain_scalar(text)

    assert (type(found), found) == (type(value), value)


def test_nan_is_a_number():
    """NaN has its own spelling, and only that."""
    assert all(math.isnan(plain_scalar(text)) for text in (".nan", ".NaN", ".NAN"))


@pytest.mark.parametrize("quoted", ["'1'", '"1"', "|-\n  1", ">-\n  1"])
def test_quoted_scalars_are_text(quoted):
    """A quoted or block scalar is never a number."""
    assert plain(f"a: {quoted}") == {"a": "1"}


def test_every_key_and_value_knows_its_place():
    """Lines and columns count from 1, in characters; an alias stands where its anchor does."""
    root = parse_yaml("# é\nsizes: {é: 4, b: &x [1, 2]}\nc: *x\n", "x.yaml")

    (sizes, c) = root.value
    assert isinstance(sizes, Key)
    assert (sizes.place, c.place) == (Place("x.yaml", 2, 1), Place("x.yaml", 3, 1))
    assert root.place_of(("sizes", "b", 1)) == Place("x.yaml", 2, 25)
    assert root.place_of(("c", 0)) == Place("x.yaml", 2, 22)
    assert root.key_place("sizes", "b") == Place("x.yaml", 2, 15)


def test_a_missing_path_has_the_place_of_what_encloses_it():
    """Where the file says nothing, the nearest thing it says is named."""
    root = parse_yaml("a: {b: [1]}", "x.yaml")

    assert root.place_of(("a", "b", 7)) == root.place_of(("a", "b")) == Place("x.yaml", 1, 8)
    assert root.place_of(("z",)) == root.key_place("z", "y") == Place("x.yaml", 1, 1)


def test_keys_are_names():
    """A key is its text, also where a value of that spelling would not be text."""
    assert plain("{no: 1, 1: 2, null: 3, 1e5: 4}") == {"no": 1, "1": 2, "null": 3, "1e5": 4}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "\n\n", "\N{BYTE ORDER MARK}"])
def test_an_empty_file_is_null(text):
    """Nothing is nothing, not an error of the reader."""
    assert plain(text) is None


def test_a_byte_order_mark_in_front_moves_no_column():
    """Editors write one; YAML allows it."""
    root = parse_yaml("\N{BYTE ORDER MARK}a: 1".encode(), "x.yaml")

    assert root.place_of(("a",)) == Place("x.yaml", 1, 4)


REFUSED = {
    "a: 1\nb: 2\na: 3": "x.yaml:3:1: 'a' is already set on line 1",
    "a: !!python/object:os.system x": "x.yaml:1:4: tags are refused",
    "a: !!str 1": "x.yaml:1:4: tags are refused",
    "a: ! 1": "x.yaml:1:4: tags are refused",
    "!!map {a: 1}": "x.yaml:1:1: tags are refused",
    "!!str a: 1": "x.yaml:1:1: tags are refused",
    "%TAG ! tag:x\n---\na: 1": "x.yaml:1:1: tags are refused; remove %TAG",
    "%YAML 1.1\n---\na: 1": "x.yaml:1:1: the file says YAML 1.1",
    "a: 1\n---\nb: 2": "x.yaml:2:1: a second document begins here",
    "a: &a [*a]": "x.yaml:1:8: '*a' stands inside itself",
    "&a {b: *a}": "x.yaml:1:8: '*a' stands inside itself",
    "a: *b": "x.yaml:1:4: no anchor '&b'",
    "a: &x {c: 1}\nb:\n  <<: *x": "x.yaml:3:3: merge keys",
    "? [a]\n: 1": "x.yaml:1:3: a key must be a plain name",
    "{a: 1, ? : 1}": "x.yaml:1:9: a key is empty",
    '"": 1': "x.yaml:1:1: a key is empty",
    "a:\n\tb: 1": "x.yaml:2:1: a tab is not allowed here; use spaces",
    "a: 1\n\t": "x.yaml:2:1: a tab is not allowed here; use spaces",
    "a: [1, 2": "x.yaml:1:9: expected ',' or ']', but got 'the end of the file'",
    "a: 'x": "x.yaml:1:6: found unexpected end of stream while scanning a quoted scalar",
    "a: b: c": "x.yaml:1:5: mapping values are not allowed here",
    "a: @x": "x.yaml:1:4: found character '@'",
    "a: 1e999": "x.yaml:1:4: 1e999 is beyond float64",
    f"a: {'1' * 5000}": "x.yaml:1:4: a number of 5000 digits",
    r'a: "\Uffffffff"': "x.yaml:1:7: an escape or a directive",
    f"%YAML 1.{'1' * 5000}\n---\n": "x.yaml:1:9: an escape or a directive",
    r'a: "\ud800"': "x.yaml:1:4: holds the control character U+D800",
    r'a: "\e[31m"': "x.yaml:1:4: holds the control character U+001B",
    "a: 1\nb: \x00": "x.yaml:2:4: the control character U+0000",
    "a: 1\r\nb: \x1b[31m": "x.yaml:2:4: the control character U+001B",
    "a: \u2028": "x.yaml:1:4: the control character U+2028",
    "a: \ufeff": "x.yaml:1:4: the control character U+FEFF",
    "a: \uffff": "x.yaml:1:4: the control character U+FFFF",
    b"a: 1\nb: \xff": "x.yaml:2:4: byte 0xff is not UTF-8",
    "é: ".encode() + b"\xc3": "x.yaml:1:4: byte 0xc3 is not UTF-8",
    "a: 1".encode("utf-16"): "x.yaml:1:1: the file is UTF-16 or UTF-32",
    "a: 1".encode("utf-32"): "x.yaml:1:1: the file is UTF-16 or UTF-32",
}


@every(("source", "start"), REFUSED.items(), ids=range(len(REFUSED)))
def test_what_is_refused_says_where_and_why(source, start):
    """Duplicates, tags, further documents, foreign bytes: one line each, at its place."""
    said = complaint(source)

    assert said.startswith(start)
    assert "\n" not in said


def test_all_findings_are_said_at_once_in_the_order_of_the_file():
    """Also those before the point at which the text breaks off."""
    said = complaint("a: !x 1\na: *b\nc: 1e999\nd: [").splitlines()

    assert [line.split(":")[1] for line in said] == ["1", "2", "2", "3", "4"]


def laughs(levels, width=10):
    """Lists of aliases of lists of aliases."""
    lines = [f"a0: &a0 [{'x,' * width}]"]
    lines += [f"a{k}: &a{k} [{f'*a{k - 1},' * width}]" for k in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "laughs": (laughs(60), f"more than {MOST_NODES:,} values"),
    "nested laughs": (f"k: &x {'[' * 60}{']' * 60}\nl: [{'*x,' * 9999}]", "more than"),
    "flow": ("[" * 500_000, f"nested more than {DEEPEST_NESTING} deep"),
    "flow mappings": ("{a: " * 200_000, f"nested more than {DEEPEST_NESTING} deep"),
    "block": ("- " * 500_000, f"nested more than {DEEPEST_NESTING} deep"),
    "explicit keys": ("? " * 500_000, f"nested more than {DEEPEST_NESTING} deep"),
    "long list": ("[" + "1," * 500_000 + "]", f"more than {MOST_NODES:,} values"),
    "duplicates": ("a: 1\n" * 40_000, "100 findings"),
    "unknown aliases": ("- *a\n" * 40_000, "100 findings"),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_bombs_are_defused(bomb):
    """Size after expansion, depth and number of findings are bounded."""
    source, reason = bomb

    said = complaint(source)

    assert reason in said
    assert len(said) < 100_000


def test_an_alias_is_shared_not_copied():
    """Aliases cost nothing until somebody walks them, and walking is bounded."""
    root = parse_yaml(laughs(4), "x.yaml")

    assert root.size > 10_000
    assert root.child("a1").child(0) is root.child("a0")


def test_a_file_above_the_limit_is_not_read_whole(tmp_path):
    """A sparse file of a terabyte costs a megabyte."""
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(UnreadableFile, match="larger than 1 MiB"):
        read_yaml(path)


def test_a_large_comment_is_fine():
    """Size alone is no fault below the limit."""
    assert plain("#" * (LARGEST_FILE - 10) + "\na: 1") == {"a": 1}


@pytest.mark.parametrize("name", ["missing.yaml", ".", "a\0b", "x" * 5000])
def test_unreadable_paths_are_said_in_one_line(tmp_path, name):
    """Missing, a folder, impossible names."""
    with pytest.raises(UnreadableFile) as caught:
        read_yaml(tmp_path / name)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", sorted(specs_folder().rglob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_files_are_read_alike_by_both_parsers(path):
    """With the same places."""
    assert repr(read_yaml(path, quickly=True)) == repr(read_yaml(path))


def test_what_libyaml_refuses_has_the_usual_message(tmp_path):
    """It is read again."""
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\nb: [1, 2\n")
    with pytest.raises(ConfigError) as usual:
        read_yaml(path)
    with pytest.raises(ConfigError) as quick:
        read_yaml(path, quickly=True)

    assert quick.value.findings == usual.value.findings


def test_they_are_raised_in_the_order_of_the_file_once_each():
    """The order in which things are checked does not show."""
    findings = Findings()
    for line, column in [(2, 1), (1, 9), (2, 1), (1, 10)]:
        findings.add(Place("x", line, column), "wrong")

    with pytest.raises(ConfigError) as caught:
        findings.raise_any()

    assert str(caught.value) == "x:1:9: wrong\nx:1:10: wrong\nx:2:1: wrong"


def test_nothing_found_raises_nothing():
    """An empty list is silent."""
    assert Findings().raise_any() is None


def test_there_is_an_end_to_them():
    """A hostile file is not answered with a million lines."""
    findings = Findings()
    for line in range(MOST_FINDINGS - 1):
        findings.add(Place("x", line, 1), "wrong")

    with pytest.raises(ConfigError, match="100 findings; the rest"):
        findings.add(Place("x", 1000, 1), "wrong")


def test_a_sentence_that_quotes_too_much_is_cut():
    """A name of a megabyte does not fill the terminal."""
    findings = Findings()
    findings.add(Place("x", 1, 1), "y" * 1_000_000)

    assert len(findings[0][1]) == LONGEST_SENTENCE + 3
