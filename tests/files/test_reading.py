"""Files are opened in one place: regular ones of bounded size, and nothing is waited for.

JSON from strangers has one meaning and bounded depth.
"""

import os
import socket
import subprocess
import sys

import pytest

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.reading import (
    DEEPEST,
    MissingFile,
    open_data,
    open_regular,
    parse_json,
    read_bytes,
    read_text,
    size_of,
)


def a_folder(path):
    """Make one."""
    path.mkdir()


def a_socket(path):
    """Make one; its name is as short as systems want it."""
    os.chdir(path.parent)
    socket.socket(socket.AF_UNIX).bind(path.name)


def a_device(path):
    """Name one that has no end."""
    path.symlink_to("/dev/zero")


def a_sparse_file(path):
    """Make one of a terabyte that has nothing on the disk."""
    path.touch()
    os.truncate(path, 1 << 35)


SPECIAL = {
    "is a folder, not a file": a_folder,
    "is a named pipe, not a file": os.mkfifo,
    "is a socket, not a file|No such device": a_socket,
    "is a device, not a file": a_device,
    "has 34359738368 bytes, of which only 0 are on disk": a_sparse_file,
}


@pytest.mark.parametrize("sentence", SPECIAL)
def test_what_is_no_regular_file_is_refused_at_once(sentence, tmp_path, monkeypatch):
    """The sentence names the file and says what it is."""
    monkeypatch.chdir(tmp_path)
    SPECIAL[sentence](tmp_path / "x")

    with pytest.raises(UnreadableFile, match=f"x: .*({sentence})"):
        open_regular(tmp_path / "x")


def test_a_large_file_is_refused_before_it_is_read(tmp_path):
    """The sentence has its size and the limit."""
    (tmp_path / "x").write_bytes(bytes(11))

    assert bytes(11) == read_bytes(tmp_path / "x", 11)
    with pytest.raises(UnreadableFile, match="x: has at least 11 bytes; the limit is 10"):
        read_bytes(tmp_path / "x", 10)


@pytest.mark.parametrize("name", ["none", "none/none", "file/none"])
def test_a_missing_file_is_told_from_others(name, tmp_path):
    """Its error is of a kind of its own."""
    (tmp_path / "file").touch()
    with pytest.raises(MissingFile, match=f"{name}: (Not a|no such file)"):
        read_bytes(tmp_path / name)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_impossible_names_are_unreadable(name):
    """No ValueError, no OSError."""
    with pytest.raises(UnreadableFile):
        read_bytes(name)


def test_text_is_utf_8(tmp_path):
    """A byte order mark is not part of it; another encoding is found by line."""
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa\nb")
    (tmp_path / "y").write_bytes(b"a\nb\xff")

    assert "a\nb" == read_text(tmp_path / "x")
    with pytest.raises(UnreadableFile, match="y:2: byte 0xff is not UTF-8"):
        read_text(tmp_path / "y")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "the file is empty"), (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull")],
)
def test_data_is_neither_nothing_nor_a_pointer(content, sentence, tmp_path):
    """What Git LFS leaves in place of a file is told from a damaged one."""
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UnreadableFile, match=f"x: .*{sentence}"):
        open_data(tmp_path / "x")


def test_a_stream_knows_its_size_and_begins_at_its_start(tmp_path):
    """Also after looking at how it begins."""
    (tmp_path / "x").write_bytes(b"abc")
    with open_data(tmp_path / "x") as stream:
        assert (3, b"abc") == (size_of(stream), stream.read())


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no /dev/fd")  # noqa: PTH110
def test_a_pipe_of_the_shell_is_read_to_its_end():
    """`<(command)` is a pipe by a name that only the user's shell can have given."""
    program = (
        "import sys; from rnncli.files.reading import read_text; print(read_text(sys.argv[1]))"
    )
    script = 'exec "$0" -c "$1" <(sleep 0.1; echo one; echo two)'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, program], capture_output=True, text=True, check=True
    )

    assert "one\ntwo\n\n" == done.stdout


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, "x", null, true]}', b'{"a": "\\ud83d\\ude00"}'])
def test_json_is_read(text):
    """Text or its UTF-8 bytes; both halves of a pair are a character."""
    assert ["a"] == list(parse_json(text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' stands in an object twice"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("[1e999]", "1e999 is not finite"),
        ("[" + "1" * 41 + "]", "a number has 41 digits"),
        ('["\\ud800"]', "half a surrogate pair"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), f"more than {DEEPEST} deep"),
        ("[" * 100_000, "is not JSON: it is nested too deeply"),
        (b"\xff", "is not JSON: "),
        ("", "is not JSON: "),
        ("[] []", "is not JSON: "),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_what_has_no_one_meaning_is_refused(text, sentence):
    """Other programs would read another thing, or run out of stack."""
    with pytest.raises(InvalidRequest, match=sentence):
        parse_json(text)
